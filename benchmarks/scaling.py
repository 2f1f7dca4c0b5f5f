#!/usr/bin/env python3
"""Training on 1, 2, 4 ... GPUs with a fixed amount of work for each: how much of one GPU's speed is left.

    benchmarks/scaling.py --build build/cuda --out RESULT.json [--model qwen2.5-1.5b] [--gpus 1,4] [--backend dtensor]
        [--micro-batch 16384] [--tokens 131072] [--steps 6] [key=value ...]

Runs benchmarks/train_step.py (packed RL lengths, --tokens an optimizer step and GPU) once for every number of GPUs,
with its correctness check on the first. The limit is 1: each rank computes what one GPU alone does, and NVLink carries
weights and gradients meanwhile. Exits with 1 when a check does not hold.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--gpus", default="1,4")
    args, rest = parser.parse_known_args()
    counts = [int(n) for n in args.gpus.split(",")]
    runs = []
    with tempfile.TemporaryDirectory() as temporary:
        for n in counts:
            out = pathlib.Path(temporary) / f"{n}.json"
            command = [sys.executable, str(pathlib.Path(__file__).with_name("train_step.py")), "--out", str(out),
                       "--gpus", str(n), "--rows", "packed",
                       *(["--no-check"] if runs else []), *rest]
            if subprocess.run(command).returncode:
                return 1
            runs.append(json.loads(out.read_text()))
    speeds = [run["packed"]["tokens_per_second_per_gpu"] for run in runs]
    result = {"model": runs[0]["model"], "backend": runs[0]["backend"], "gpus": counts,
              "tokens_per_second_per_gpu": speeds,
              "efficiency": [speed / speeds[0] for speed in speeds], "runs": runs}
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    print(json.dumps({key: result[key] for key in ("gpus", "tokens_per_second_per_gpu", "efficiency")}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
