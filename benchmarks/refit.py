#!/usr/bin/env python3
"""Weight updates from a sharded backend to the generators beside it, every weight compared, beside the hardware's
limit.

    benchmarks/refit.py --build build/cuda --out RESULT.json [--model llama-8b] [--gpus 4] [--backend dtensor]
        [--repeats 8] [--sleep-level 0] [--trace FILE] [key=value ...]

Random weights at the real shapes; a training step before each update, so that the weights change. With --sleep-level 2
the old weights are given back first, as policy.generation.colocated.sleep_level says, and the new ones need no second
set. Exits with 1 when a weight differs, or what the generators draw has other log-probs than the backend's. `--model
tiny` needs neither a GPU nor torch: its weights are made by the backend.

The limit is that of an all-gather of what a GPU lacks at the measured bus bandwidth of NCCL, and of one copy of the
weights at the measured bandwidth of memory (reading and writing counted), one after the other.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from train_step import add_model_arguments, make_model, model_config, weights_of

BUS, MEMORY = 290e9, 4.2e12  # bytes a second: all-gather over 4 H200s; copy on one, read and written bytes together


def run(args, folder):
    tiny = args.model == "tiny"
    command = [str(args.build / "bin" / "refit"), str(folder), "--hexad", str(args.build / "bin" / "hexad"),
               "--repeats", str(args.repeats),
               "--samples", str(2 * args.gpus), "--sleep-level", str(args.sleep_level),
               *(["--trace", args.trace] if args.trace else []), "policy.precision=bfloat16",
               "policy.sequence_packing.enabled=true", "++policy.sequence_packing.train_mb_tokens=2048",
               "++policy.sequence_packing.logprob_mb_tokens=2048",
               "++policy.max_total_sequence_length=1024", f"policy.backend={args.backend}",
               f"++cluster.gpus_per_node={args.gpus}",
               f"++cluster.device={'cpu' if tiny else 'cuda'}",
               f"++policy.generation.native_cfg.kv_cache_gb={0.01 if tiny else 8}",
               *(["++policy.random_init_seed=1"] if tiny else []), *args.override]
    result = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
    if not result.stdout.strip():
        raise RuntimeError(f"refit: exit {result.returncode}: {result.stderr[-1500:]}")
    return json.loads(result.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_arguments(parser, "llama-8b", 4)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--sleep-level", type=int, default=0)
    parser.add_argument("--trace", help="Chrome trace of one more update, a file for each rank")
    parser.add_argument("--timeout", type=float, default=560)
    parser.add_argument("override", nargs="*")
    args = parser.parse_args()
    config = model_config(args)
    def make(folder, config):
        if args.model == "tiny":
            (folder / "config.json").write_text(json.dumps(config))
        else:
            make_model(folder, config)

    with weights_of(args, config, make) as folder:
        got = run(args, folder)
    size = got["weight_bytes"]
    limit = {"gather_s": size * (args.gpus - 1) / args.gpus / BUS, "copy_s": 2 * size / MEMORY}
    result = {"model": args.model, "layers": config["num_hidden_layers"], "gpus": args.gpus, "backend": args.backend,
              "sleep_level": args.sleep_level,
              "refit_s": statistics.median(got["refit_s"][1:]), "worker_s": statistics.median(got["worker_s"][1:]),
              "limit_s": sum(limit.values()), **limit, "run": got}
    print(json.dumps({key: result[key] for key in ("model", "gpus", "refit_s", "worker_s", "limit_s")}
                     | {"ok": got["ok"]}), flush=True)
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    return 0 if got["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
