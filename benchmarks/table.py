#!/usr/bin/env python3
"""The rows of docs/performance.md's table, each by its own script, one after the other; results as JSON files.

    benchmarks/table.py --build build/cuda --out results/table [--rows train-1.5b,train-8b]
        [--peers FOLDER] [--vllm SITE] [--weights FOLDER] [--read] [--list]

--peers: folder of peer_hf_train.py and peer_vllm.py, which then run beside ours; --vllm: folder with vLLM, put on
PYTHONPATH. Prints a line for each measure: value, mark to beat (the peer's of the same run, or of a better one before),
target; and whether the row's checks held. A row that fails leaves its error in ROW.txt and the others go on. --read:
nothing runs, the results that are in --out are read. summary.json has all lines; benchmarks/table_svg.py draws it.
Exits with 1 when a row failed.
"""
import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Measure:
    name: str
    unit: str
    read: Callable  # from a row's result
    mark: float  # published, or the peer's on the same kind of GPU in another run; 0: none
    target: float  # times the mark, or with `absolute` a value
    absolute: bool = False
    less: bool = False  # less is better
    peer: Callable | None = None  # the mark of the same run, from a row's result


def train(*options, peer=True):
    return lambda args: ["train_step.py", "--build", str(args.build), *options,
                         *(["--peer", str(args.peers / "peer_hf_train.py")] if args.peers and peer else [])]


def script(name, *options):
    return lambda args: [name, "--build", str(args.build), *options]


def rollouts(model, tests, running, peer_running, *options):
    def command(args):
        peer = ["--peer", str(args.peers / "peer_vllm.py"), "--peer-running", peer_running,
                *(["--peer-path", args.vllm] if args.vllm else [])] if args.peers else []
        return ["generate.py", "--program", str(args.build / "bin/generate"), "--model", model, "--tests", tests,
                "--running", running, *options, *peer]
    return command


def at(*path):
    def read(result):
        for key in path:
            result = result[key]
        return result
    return read


PACKED = ["--micro-batch", "6144", "--tokens", "65536", "--steps", "4"]
# name: (GPUs, command, measures)
ROWS = {
    "train-1.5b": (1, train("--rows", "packed,full"), [
        Measure("Qwen2.5-1.5B training, 1 GPU", "tokens/s", at("packed", "tokens_per_second_per_gpu"), 42600, 1.25,
                peer=at("peer", "tokens_per_second_per_gpu"))]),
    "train-8b": (4, train("--model", "llama-8b", "--gpus", "4", *PACKED, "--rows", "packed,packed-fp8", "--fp8",
                          "hybrid"), [
        Measure("Llama-8B training bf16, 4 GPUs", "TFLOP/s/GPU", at("packed", "tflops_per_gpu"), 544, 600,
                absolute=True, peer=at("peer", "tflops_per_gpu")),
        Measure("Llama-8B training fp8, 4 GPUs", "TFLOP/s/GPU", at("packed-fp8", "tflops_per_gpu"), 744, 850,
                absolute=True),
        Measure("log-probs, 8B, 4 GPUs", "TFLOP/s/GPU", at("packed", "logprob_tflops_per_gpu"), 455, 640,
                absolute=True),
        Measure("launch to the first step, 8B", "s", at("packed", "launch_to_first_step_s"), 0, 60, absolute=True,
                less=True)]),
    "rollouts-8b": (1, rollouts("llama-8b", "d,a", "512", "512"), [
        Measure("generation 8B, 64 x 16", "tokens/s", at("ours", "a", "out_tok_s"), 14297, 1.5,
                peer=at("peer", "a", "out_tok_s")),
        Measure("eight sequences, 8B", "tokens/s each", at("ours", "d", "tok_s_per_seq"), 191, 1.2,
                peer=at("peer", "d", "tok_s_per_seq")),
        Measure("process start to first token, 8B", "s", at("ours", "engine", "start_to_first_token_s"), 40, 10,
                absolute=True, less=True)]),
    "rollouts-8b-tail": (1, rollouts("llama-8b", "b", "2048", "1024"), [
        Measure("generation 8B, long tail", "tokens/s", at("ours", "b", "out_tok_s"), 14978, 1.3,
                peer=at("peer", "b", "out_tok_s"))]),
    "rollouts-1.5b": (1, rollouts("qwen2.5-1.5b", "a", "1024", "1024"), [
        Measure("generation Qwen2.5-1.5B", "tokens/s", at("ours", "a", "out_tok_s"), 48600, 1.5,
                peer=at("peer", "a", "out_tok_s"))]),
    "rollouts-8b-fp8": (1, rollouts("llama-8b", "a", "512", "1024", "--fp8"), [
        Measure("generation 8B, fp8 weights", "tokens/s", at("ours", "a", "out_tok_s"), 16996, 1.5,
                peer=at("peer", "a", "out_tok_s"))]),
    "refit-8b": (4, script("refit.py", "--model", "llama-8b", "--gpus", "4"),
                 [Measure("refit 8B, 4 GPUs", "s", at("refit_s"), 5, 0.1, absolute=True, less=True)]),
    "grpo-8b": (4, script("grpo_step.py", "--micro-batch", "6144"), [
        Measure("GRPO step, 8B, 4 GPUs", "GPU s/sample", at("gpu_seconds_per_sample"), 0.4375, 0.2, absolute=True,
                less=True)]),
    "scaling-1.5b": (4, script("scaling.py", "--gpus", "1,4"), [
        Measure("Qwen2.5-1.5B, 1 to 4 GPUs", "of one GPU", lambda result: result["efficiency"][-1], 0, 0.97,
                absolute=True)]),
    "train-moe": (4, train("--model", "qwen3-30b-a3b", "--layers", "24", "--gpus", "4", "--micro-batch", "8192",
                           "--rows", "packed,packed-fp8", "--fp8", "hybrid", "--tokens", "65536", "--steps", "4",
                           peer=False), [
        Measure("Qwen3-30B-A3B, 24 layers, 4 GPUs", "TFLOP/s/GPU", at("packed", "tflops_per_gpu"), 203, 320,
                absolute=True),
        Measure("the same in fp8", "TFLOP/s/GPU", at("packed-fp8", "tflops_per_gpu"), 203, 320, absolute=True)]),
    "train-8b-fp8-blockwise": (4, train("--model", "llama-8b", "--gpus", "4", *PACKED, "--rows", "packed-fp8", "--fp8",
                                        "e4m3", "--fp8-recipe", "blockwise", peer=False), [
        Measure("Llama-8B training fp8 by blocks, 4 GPUs", "TFLOP/s/GPU", at("packed-fp8", "tflops_per_gpu"), 744, 850,
                absolute=True)]),
}


def short(number):
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def line_of(row, measure, result):
    """A measure of a result, as summary.json has it."""
    value, mark, same_run = measure.read(result), measure.mark, False
    # a peer that ran worse than before lowers no bar
    if measure.peer and result.get("peer") and measure.peer(result) >= mark:
        mark, same_run = measure.peer(result), True
    target = measure.target if measure.absolute else measure.target * mark
    return {"row": row, "name": measure.name, "unit": measure.unit, "value": value, "mark": mark, "same_run": same_run,
            "target": target, "less": measure.less,
            "reached": value <= target if measure.less else value >= target}


def report(name, result, checks):
    lines = []
    for measure in ROWS[name][2]:
        try:
            lines.append(line_of(name, measure, result))
        except KeyError as missing:
            checks = False
            print(f"{measure.name}: the result of {name} has no {missing}", flush=True)
    for line in lines:
        mark = f"mark {short(line['mark'])}{' of the same run' if line['same_run'] else ''}, " if line["mark"] else ""
        print(f"{line['name']}: {short(line['value'])} {line['unit']}; {mark}target {short(line['target'])}: "
              f"{'reached' if line['reached'] else 'not reached'}", flush=True)
    print(f"{name}: checks {'hold' if checks else 'FAIL'}", flush=True)
    return lines, checks

# Of the scripts that take --weights.
DEFAULT_MODELS = {"train_step.py": "qwen2.5-1.5b", "scaling.py": "qwen2.5-1.5b", "grpo_step.py": "llama-8b"}


def run(name, args):
    """The row's result, or None, and whether its checks held."""
    out = args.out / f"{name}.json"
    out.unlink(missing_ok=True)
    full = [sys.executable, *ROWS[name][1](args), "--out", str(out)]
    model = DEFAULT_MODELS.get(full[1])
    if args.weights and model:
        model = full[full.index("--model") + 1] if "--model" in full else model
        full += ["--weights", str(args.weights / model)]
    full[1] = str(HERE / full[1])
    started = time.time()
    done = subprocess.run(full, capture_output=True, text=True)
    (args.out / f"{name}.txt").write_text(" ".join(full) + "\n" + done.stdout + done.stderr)
    if out.exists():
        return json.loads(out.read_text()), done.returncode == 0
    print(f"{name}: exit {done.returncode} after {time.time() - started:.0f} s: "
          f"{(done.stderr or done.stdout).strip()[-400:]}", flush=True)
    return None, False


def read(name, args):
    path = args.out / f"{name}.json"
    if not path.exists():
        print(f"{name}: no result")
        return None, not args.rows  # asked for by name
    result = json.loads(path.read_text())
    checks = result.get("checks", result.get("run", result))
    return result, checks.get("ok", True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/cuda"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/table"))
    parser.add_argument("--rows", default="", help="all of them by default")
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--vllm", default="")
    parser.add_argument("--weights", type=pathlib.Path, help="folder for random weights, which rows of one model share")
    parser.add_argument("--read", action="store_true", help="nothing runs: read the results that are there")
    parser.add_argument("--list", action="store_true", help="rows, GPUs and measures, and nothing runs")
    args = parser.parse_args()
    names = args.rows.split(",") if args.rows else list(ROWS)
    for name in names:
        if name not in ROWS:
            parser.error(f"no row {name}: there are {', '.join(ROWS)}")
    if args.list:
        for name in names:
            print(f"{name}: {ROWS[name][0]} GPUs; {'; '.join(measure.name for measure in ROWS[name][2])}")
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    lines, ok = [], True
    for name in names:
        result, held = (read if args.read else run)(name, args)
        if result:
            more, held = report(name, result, held)
            lines += more
        ok = ok and held
    (args.out / "summary.json").write_text(json.dumps(lines, indent=1))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
