#!/usr/bin/env python3
"""Where the time of a trace goes: GPU time by kind of kernel, the largest kernels, and how long the GPU had nothing to
do.

    benchmarks/trace_summary.py TRACE.json[.gz] [--top 25] [--json]

Overlapping kernels of several streams count once in `busy` and each in its own line.
"""
import argparse
import collections
import gzip
import json
import re
import sys

KINDS = [("communication", r"nccl"), ("attention", r"flash|fmha|cudnn.*(attn|sdpa|flash)|attention"),
         ("gemm", r"gemm|nvjet|cutlass|cublas|xmma|wgmma"),
         ("optimizer", r"adam|multi_tensor|lpnorm|foreach"), ("norm", r"rms_norm|RmsNorm|layer_norm"),
         ("softmax", r"statistics_kernel|gradient_kernel|softmax"),
         ("activation", r"swiglu|Swiglu|silu"), ("rope", r"rotate"), ("residual", r"add_kernel|embed_kernel"),
         ("copy", r"memcpy|memset|copy"), ("elementwise", r"elementwise|reduce|index")]


def kind_of(name):
    return next((kind for kind, pattern in KINDS if re.search(pattern, name, re.I)), "other")


def summary(events, top):
    kernels = [e for e in events if e.get("ph") == "X" and e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    if not kernels:
        return {"kernels": 0}
    kernels.sort(key=lambda e: e["ts"])
    begin, end = kernels[0]["ts"], max(e["ts"] + e["dur"] for e in kernels)
    busy, reached, gaps = 0.0, begin, []
    kinds, names, counts = collections.Counter(), collections.Counter(), collections.Counter()
    for e in kernels:
        start, stop = e["ts"], e["ts"] + e["dur"]
        if start > reached:
            gaps.append((round(start - reached, 1), e["name"][:60]))
        busy += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
        kinds[kind_of(e["name"])] += e["dur"]
        names[e["name"]] += e["dur"]
        counts[e["name"]] += 1
    return {"kernels": len(kernels), "span_ms": (end - begin) / 1e3, "busy_ms": busy / 1e3,
            "idle_ms": (end - begin - busy) / 1e3,
            "kinds_ms": {k: round(v / 1e3, 2) for k, v in kinds.most_common()},
            "largest": [{"name": n[:110], "ms": round(t / 1e3, 2), "count": counts[n]} for n,
                        t in names.most_common(top)],
            "longest_gaps_us": sorted(gaps, reverse=True)[:8]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--top", type=int, default=25)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with (gzip.open if args.trace.endswith(".gz") else open)(args.trace, "rt") as file:
        result = summary(json.load(file)["traceEvents"], args.top)
    if args.json or not result["kernels"]:
        print(json.dumps(result, indent=1))
        return 0 if result["kernels"] else 1
    print(f"{result['kernels']} kernels in {result['span_ms']:.1f} ms, GPU idle {result['idle_ms']:.1f} ms")
    for kind, ms in result["kinds_ms"].items():
        print(f"  {kind:14s} {ms:9.2f} ms  {100 * ms / result['span_ms']:5.1f} %")
    for kernel in result["largest"]:
        print(f"  {kernel['ms']:9.2f} ms {kernel['count']:6d} x  {kernel['name']}")
    for gap, name in result["longest_gaps_us"]:
        print(f"  idle {gap:9.1f} us before {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
