#!/usr/bin/env python3
"""Log-prob passes of a backend on GPUs: model TFLOP/s beside NeMo-RL's published 455 (8B, H100).

    benchmarks/logprobs.py --build build/cuda --out RESULT.json [--model llama-8b] [--layers N] [--gpus 4] [--backend dtensor]
        [--fp8 hybrid] [--micro-batch 16384] [--tokens 131072] [--passes 5] [--rows packed,full] [key=value ...]

Random weights at the real shapes. The correctness check is train_step.py's: fp32 log-probs against transformers in fp32,
bf16 and FP8 against fp32. TFLOP/s count 2 * matrix parameters * tokens + 2 * layers * query width * sum of squared lengths. Exits
with 1 when the check does not hold.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from train_step import MODELS, check, flops, make_model, run, skewed_lengths


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/cuda"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default="llama-8b", choices=sorted(MODELS))
    parser.add_argument("--layers", type=int, default=0, help="fewer layers than the model has; said in the result")
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--backend", default="dtensor")
    parser.add_argument("--fp8", default="", choices=["", "e4m3", "hybrid"], help="linears in FP8, scaled by tensor")
    parser.add_argument("--micro-batch", type=int, default=16384)
    parser.add_argument("--tokens", type=int, default=131072, help="of a pass and GPU")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--rows", default="packed,full")
    parser.add_argument("--timeout", type=float, default=240)
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("override", nargs="*")
    args = parser.parse_args()
    args.trace = ""
    config = dict(MODELS[args.model], torch_dtype="bfloat16", hidden_act="silu", bos_token_id=0, eos_token_id=1)
    if args.layers:
        config["num_hidden_layers"] = args.layers
    result = {"model": args.model, "layers": config["num_hidden_layers"], "gpus": args.gpus, "backend": args.backend, "fp8": args.fp8, "published_nemo_rl_h100": 455}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        result["parameters"] = make_model(folder, config)
        result["checks"] = {"skipped": True, "ok": True} if args.no_check else check(args, folder, config)
        for rows in args.rows.split(","):
            tokens = args.tokens * args.gpus
            lengths = [4096] * (tokens // 4096) if rows == "full" else skewed_lengths(tokens // 800, 800, 4096, 3)
            lengths = lengths[:len(lengths) // args.gpus * args.gpus]
            seconds = run(args, folder, lengths, rows, 0, args.passes)["logprobs_s"][1:]
            result[rows] = {"tokens": sum(lengths), "seconds": seconds,
                            "tflops_per_gpu": flops(config, lengths) / 3 / statistics.median(seconds) / args.gpus / 1e12}
            print(rows, json.dumps(result[rows]), flush=True)
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    return 0 if result["checks"]["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
