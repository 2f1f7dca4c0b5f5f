#!/usr/bin/env python3
"""The rows of docs/performance.md's table, each by its own script, one after the other; results as JSON files.

    benchmarks/table.py --build build/cuda --out results/table [--rows train-1.5b,logprobs-8b] [--peers FOLDER] [--vllm SITE] [--list]

--peers: folder of peer_hf_train.py and peer_vllm.py, which then run beside ours; --vllm: folder with vLLM, put on PYTHONPATH.
Prints a line for each row: what was measured, the mark to beat, the target, and whether its checks held. A row that fails
leaves its error in RESULT.txt and the others go on. Exits with 1 when one failed.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent


def train(*options, peer=True):
    return lambda args: ["train_step.py", "--build", str(args.build), *options, *(["--peer", str(args.peers / "peer_hf_train.py")] if args.peers and peer else [])]


def script(name, *options):
    return lambda args: [name, "--build", str(args.build), *options]


def rollouts(model, tests, running, peer_running, *options):
    def command(args):
        peer = ["--peer", str(args.peers / "peer_vllm.py"), "--peer-running", peer_running, *(["--peer-path", args.vllm] if args.vllm else [])] if args.peers else []
        return ["generate.py", "--program", str(args.build / "bin/generate"), "--model", model, "--tests", tests, "--running", running, *options, *peer]
    return command


def value(*path):
    def read(result):
        for key in path:
            result = result[key]
        return result
    return read


PACKED = ["--micro-batch", "12288", "--tokens", "65536"]
# name: (GPUs, command, [(what is read from its result, unit, mark to beat, target), ...])
ROWS = {
    "train-1.5b": (1, train("--rows", "packed,full"), [(value("packed", "tokens_per_second_per_gpu"), "tokens/s", "peer of the same run (42,600)", "1.25 x peer")]),
    "train-8b": (4, train("--model", "llama-8b", "--gpus", "4", *PACKED, "--rows", "packed,packed-fp8", "--fp8", "hybrid"), [
        (value("packed", "tflops_per_gpu"), "TFLOP/s/GPU", "peer of the same run (544)", "600"),
        (value("packed-fp8", "tflops_per_gpu"), "TFLOP/s/GPU in fp8", "744-800 (published, H100)", "850"),
        (value("packed", "logprob_tflops_per_gpu"), "TFLOP/s/GPU of log-probs", "455 (published, H100)", "640"),
        (value("packed", "launch_to_first_step_s"), "s to the first step", "minutes", "60")]),
    "logprobs-8b": (4, script("logprobs.py", "--rows", "packed"), [(value("packed", "tflops_per_gpu"), "TFLOP/s/GPU", "455 (published, H100)", "640")]),
    "rollouts-8b": (1, rollouts("llama-8b", "d,a", "512", "512"), [
        (value("ours", "a", "out_tok_s"), "tokens/s", "vLLM of the same run (14,297)", "1.5 x vLLM"),
        (value("ours", "d", "tok_s_per_seq"), "tokens/s each of eight", "vLLM of the same run (191)", "1.2 x vLLM"),
        (value("ours", "engine", "start_to_first_token_s"), "s to the first token", "vLLM of the same run (40-57)", "10")]),
    "rollouts-8b-fp8": (1, rollouts("llama-8b", "a", "512", "1024", "--fp8"), [(value("ours", "a", "out_tok_s"), "tokens/s", "vLLM of the same run (16,996)", "1.5 x vLLM")]),
    "rollouts-8b-tail": (1, rollouts("llama-8b", "b", "2048", "1024"), [(value("ours", "b", "out_tok_s"), "tokens/s", "vLLM of the same run (14,978)", "1.3 x vLLM")]),
    "rollouts-1.5b": (1, rollouts("qwen2.5-1.5b", "a", "1024", "1024"), [(value("ours", "a", "out_tok_s"), "tokens/s", "vLLM of the same run (48,600)", "1.5 x vLLM")]),
    "refit-8b": (4, script("refit.py", "--model", "llama-8b", "--gpus", "4"), [(value("refit_s"), "s", "5 (NeMo-RL)", "0.1")]),
    "grpo-8b": (4, script("grpo_step.py"), [(value("gpu_seconds_per_sample"), "GPU s/sample", "0.4375 (NeMo-RL, 8 x H100)", "0.20")]),
    "scaling-1.5b": (4, script("scaling.py", "--gpus", "1,4"), [(lambda result: result["efficiency"][-1], "of one GPU", "", "0.97")]),
    "train-moe": (4, train("--model", "qwen3-30b-a3b", "--layers", "24", "--gpus", "4", "--rows", "packed", "--tokens", "65536", peer=False), [
        (value("packed", "tflops_per_gpu"), "TFLOP/s/GPU, 24 of 48 layers", "203-299 (published)", "320")]),
}


def run(name, args):
    _, command, readings = ROWS[name]
    out = args.out / f"{name}.json"
    full = [sys.executable, *command(args), "--out", str(out)]
    full[1] = str(HERE / full[1])
    out.unlink(missing_ok=True)
    started = time.time()
    done = subprocess.run(full, capture_output=True, text=True)
    (args.out / f"{name}.txt").write_text(" ".join(full) + "\n" + done.stdout + done.stderr)
    if not out.exists():
        print(f"{name}: exit {done.returncode} after {time.time() - started:.0f} s: {(done.stderr or done.stdout).strip()[-400:]}", flush=True)
        return False
    result = json.loads(out.read_text())
    for read, unit, mark, target in readings:
        print(f"{name}: {read(result):.4g} {unit}; mark {mark}; target {target}", flush=True)
    print(f"{name}: checks {'hold' if done.returncode == 0 else 'FAIL'}; {time.time() - started:.0f} s", flush=True)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/cuda"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/table"))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--vllm", default="")
    parser.add_argument("--list", action="store_true", help="names, GPUs and marks, and nothing runs")
    args = parser.parse_args()
    names = args.rows.split(",")
    for name in names:
        if name not in ROWS:
            parser.error(f"no row {name}: there are {', '.join(ROWS)}")
    if args.list:
        for name in names:
            gpus, _, readings = ROWS[name]
            for _, unit, mark, target in readings:
                print(f"{name}: {gpus} GPUs; {unit}; mark {mark}; target {target}")
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    return 0 if all([run(name, args) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
