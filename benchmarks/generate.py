#!/usr/bin/env python3
"""Rollout speed of the native generator on one GPU beside vLLM's, one after the other in one run.

    benchmarks/generate.py --program build/cuda/bin/generate --out RESULT.json [--model llama-8b] [--fp8]
    [--kv-cache-dtype fp8] [--tests d,a,b]
        [--running 512] [--batch-invariant] [--peer peer_vllm.py --peer-running 512 [--peer-path SITE]
        [--peer-argument=--mem=0.9 ...]] [-- OPTION ...]

The tests are described in benchmarks/generate.cpp, whose program checks its log-probs against full forward passes in
the same run and prints the ceiling by the GPU's memory and arithmetic beside each result; what follows `--` is handed
to it. The peer gets the same work with dummy weights of the same shapes. --fp8: weights of both in FP8.
--kv-cache-dtype fp8: keys and values of both. --batch-invariant runs the work a second time in that mode, where
log-probs must have the forward pass's bits, and gives its speed as a part of the usual one's. --peer-path: folder with
vLLM, put on PYTHONPATH. Exits with 1 when a check does not hold.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

PEER_MODELS = {"llama-8b": "llama8b", "qwen2.5-1.5b": "qwen1.5b", "tiny": "tiny"}
PEER_ENVIRONMENT = {"VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
                    "VLLM_HOST_IP": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}


def lines_of(command, timeout, environment, prefix=""):
    """The JSON objects that a program prints, one a line; those after `prefix`."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    found = [json.loads(line[len(prefix):]) for line in result.stdout.splitlines() if line.startswith(prefix + "{")]
    if not found:
        raise RuntimeError(
            f"{command[0]}: exit {result.returncode}, no result: {(result.stderr + result.stdout)[-2000:]}")
    return found, result.returncode


def ours(args, *options):
    command = [str(args.program), "--model", args.model, "--tests", args.tests, "--running", str(args.running),
               *(["--precision", "fp8"] if args.fp8 else []),
               "--kv-cache-dtype", args.kv_cache_dtype,
               "--launched", repr(time.time()), *options, *args.option]
    return lines_of(command, args.timeout, os.environ)


def peer(args):
    environment = os.environ | PEER_ENVIRONMENT | {"LD_LIBRARY_PATH": "", "PEER_T0": str(time.time())}
    if args.peer_path:
        environment["PYTHONPATH"] = args.peer_path
    command = [sys.executable, args.peer, "--model", PEER_MODELS[args.model], "--tests", args.tests, "--max-num-seqs",
               str(args.peer_running),
               *(["--quantization", "fp8"] if args.fp8 else []), "--kv-dtype", args.kv_cache_dtype, *args.peer_argument]
    return lines_of(command, args.peer_timeout, environment, "RESULT ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("build/cuda/bin/generate"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default="llama-8b", choices=sorted(PEER_MODELS))
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--kv-cache-dtype", default="auto", choices=("auto", "fp8"))
    parser.add_argument("--tests", default="d,a,b")
    parser.add_argument("--running", type=int, default=512)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--peer", default="", help="path of peer_vllm.py")
    parser.add_argument("--peer-path", default="")
    parser.add_argument("--peer-running", type=int, default=512)
    parser.add_argument("--peer-argument", action="append", default=[])
    parser.add_argument("--peer-timeout", type=float, default=420)
    parser.add_argument("--batch-invariant", action="store_true")
    parser.add_argument("option", nargs="*")
    args = parser.parse_args()
    lines, code = ours(args)
    result = {"model": args.model, "ok": code == 0, "ours": {line["kind"]: line for line in lines}}
    for kind, line in result["ours"].items():
        print("ours", kind,
              json.dumps({k: line[k] for k in ("out_tok_s", "tok_s_per_seq", "of_ceiling", "first_token_s",
                                               "start_to_first_token_s") if k in line}), flush=True)
    if args.batch_invariant:
        lines, code = ours(args, "--batch-invariant", "1")
        result["batch_invariant"] = {line["kind"]: line for line in lines}
        result["ok"] = result["ok"] and code == 0
        result["of_usual_speed"] = {kind: line["out_tok_s"] / result["ours"][kind]["out_tok_s"]
                                    for kind,
                                    line in result["batch_invariant"].items() if "out_tok_s" in line
                                    and "out_tok_s" in result["ours"].get(kind, {})}
        print("batch-invariant, of the usual speed:", json.dumps(result["of_usual_speed"]), flush=True)
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))  # the peer may take long, or fail
    if args.peer:
        lines, code = peer(args)
        result["peer"], result["ok"] = {line["kind"]: line for line in lines}, result["ok"] and code == 0
        result["times_peer"] = {kind: line["out_tok_s"] / result["peer"][kind]["out_tok_s"] for kind,
                                line in result["ours"].items()
                                if "out_tok_s" in line and "out_tok_s" in result["peer"].get(kind, {})}
        print("times the peer:", json.dumps(result["times_peer"]))
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
