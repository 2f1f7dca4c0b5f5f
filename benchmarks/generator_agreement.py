#!/usr/bin/env python3
"""Log-probs of the generator against those of the backend, end to end: `hexad generate` samples, `hexad score` scores.

    python3 benchmarks/generator_agreement.py MODEL_DIR [--hexad build/dev/bin/hexad] [--text FILE ...] [--tokens 10000]
                                              [--precision float32] [key=value ...]

Prompts are pieces of the text files, eight samples each, drawn through odd chunks and a KV cache that is too small for
all that run at once. Prints one JSON object; fails where the largest difference is 1e-4 or more (float32) or NeMo-RL's
token_mult_prob_error, the mean of exp(|difference|), is 1.02 or more.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys
import tempfile
import time

SAMPLES = 8
NEW_TOKENS = 80
PROMPT = 40


def run(hexad, command, model, lines, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        started = time.monotonic()
        done = subprocess.run([hexad, command, model, "--input", file.name, *options], stdout=subprocess.PIPE,
                              text=True)
        if done.returncode:
            sys.exit(f"hexad {command} failed with exit code {done.returncode}")
        return [json.loads(line) for line in done.stdout.splitlines()], time.monotonic() - started


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("overrides", nargs="*", help="key=value of the config, for both commands")
    parser.add_argument("--hexad", default=os.path.join(root, "build/dev/bin/hexad"))
    parser.add_argument("--text", nargs="+", default=sorted(glob.glob(os.path.join(root, "docs/*.md"))))
    parser.add_argument("--tokens", type=int, default=10000)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    args = parser.parse_intermixed_args()

    text = [{"text": open(path, encoding="utf-8").read()} for path in args.text]
    ids = [token for line in run(args.hexad, "tokenize", args.model, text)[0] for token in line["token_ids"]]
    count = math.ceil(args.tokens / (SAMPLES * NEW_TOKENS))
    step = (len(ids) - PROMPT) // count
    if step < 1:
        sys.exit(f"the text has {len(ids)} tokens, too few for {count} prompts")
    prompts = [ids[i * step:i * step + PROMPT + i] for i in range(count)]

    common = [f"policy.precision={args.precision}", "policy.max_total_sequence_length=512", *args.overrides]
    cache = 0.2 if args.precision == "float32" else 0.1
    generated, generate_s = run(
        args.hexad, "generate", args.model, [{"token_ids": prompt} for prompt in prompts], "--samples", str(SAMPLES),
        "--json",
        "policy.generation.ignore_eos=true", f"policy.generation.max_new_tokens={NEW_TOKENS}",
        "policy.generation.native_cfg.max_num_batched_tokens=77", f"policy.generation.native_cfg.kv_cache_gb={cache}",
        *common)
    whole = [prompts[i // SAMPLES] + line["token_ids"] for i, line in enumerate(generated)]
    scored, score_s = run(args.hexad, "score", args.model, [{"token_ids": tokens} for tokens in whole], *common)

    gaps = []
    for i, (line, score) in enumerate(zip(generated, scored, strict=True)):
        start = len(prompts[i // SAMPLES])
        gaps += [abs(a - b) for a, b in zip(line["logprobs"], score["logprobs"][start:], strict=True)]
    error = sum(map(math.exp, gaps)) / len(gaps)
    print(json.dumps({"precision": args.precision, "tokens": len(gaps), "largest_difference": max(gaps),
                      "token_mult_prob_error": error, "generate_s": round(generate_s, 1),
                      "score_s": round(score_s, 1)}))
    agrees = max(gaps) < 1e-4 if args.precision == "float32" else error < 1.02
    sys.exit(0 if agrees else "generator and backend disagree")


if __name__ == "__main__":
    main()
