#!/usr/bin/env python3
"""Log-prob passes of a backend on GPUs: model TFLOP/s beside NeMo-RL's published 455 (8B, H100).

    benchmarks/logprobs.py --build build/cuda --out RESULT.json [--model llama-8b] [--layers N] [--gpus 4] [--backend
    dtensor]
        [--fp8 hybrid [--fp8-recipe blockwise]] [--batch-invariant] [--micro-batch 16384] [--tokens 131072] [--passes 5]
        [--rows packed,full,packed-fp8] [key=value ...]

Random weights at the real shapes. The correctness check is train_step.py's: fp32 log-probs against transformers in
fp32, bf16 and FP8 against fp32. TFLOP/s count 2 * matrix parameters * tokens + 2 * layers * query width * sum of
squared lengths. Exits with 1 when the check does not hold.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from train_step import (add_model_arguments, add_pass_arguments, check, flops, make_model, model_config, rows_of, run,
                        step_lengths, weights_of)


def main():
    parser = argparse.ArgumentParser()
    add_model_arguments(parser, "llama-8b", 4)
    add_pass_arguments(parser)
    parser.add_argument("--passes", type=int, default=5)
    args = parser.parse_args()
    args.trace = ""
    rows_wanted = rows_of(parser, args)
    config = model_config(args)
    result = {"model": args.model, "layers": config["num_hidden_layers"], "gpus": args.gpus, "backend": args.backend,
              "batch_invariant": args.batch_invariant, "fp8": args.fp8,
              "fp8_recipe": args.fp8_recipe if args.fp8 else "", "published_nemo_rl_h100": 455}
    with tempfile.TemporaryDirectory() as temporary, weights_of(args, config, make_model) as model:
        scratch = pathlib.Path(temporary)
        result["checks"] = {"skipped": True, "ok": True} if args.no_check else check(args, model, scratch)
        for rows in rows_wanted:
            lengths = step_lengths(args, rows)
            seconds = run(args, model, scratch, lengths, rows, 0, args.passes)["logprobs_s"][1:]
            result[rows] = {"tokens": sum(lengths), "seconds": seconds,
                            "tflops_per_gpu": flops(config,
                                                    lengths) / 3 / statistics.median(seconds) / args.gpus / 1e12}
            print(rows, json.dumps(result[rows]), flush=True)
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    return 0 if result["checks"]["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
