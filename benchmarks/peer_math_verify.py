#!/usr/bin/env python3
"""The math environment against math-verify, on thousands of answers.

    python benchmarks/peer_math_verify.py --verdicts build/dev/bin/math_verdicts \\
        [--golden tests/plugins/environment/math/math_verify_pairs.json]

Run by a Python that has math-verify, latex2sympy2_extended and sympy; `ninja -C build/dev math_verdicts` builds the
program. Both judge the same (gold, response) pairs as NeMo-RL's HFVerifyWorker does: gold in a \\boxed{} as LaTeX, the
response as plain numbers and LaTeX, an exception as 0. Prints the pairs, agreement and both sides' time a class, then
every difference. --golden writes the pairs with math-verify's verdicts for the test that reads them; pairs on which
its verdict hangs on a time-out, and so on the machine, are left out of the file and counted.
"""
import argparse
import collections
import importlib.metadata
import json
import logging
import multiprocessing
import subprocess
import time

from math_pairs.pairs import pairs

PACKAGES = ["math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime"]
SLOW_S = 4.0  # math-verify gives up after 5 s of reading, and of comparing


def judge(pair):
    """math-verify's verdict as NeMo-RL asks for it, and its seconds."""
    from math_verify.errors import TimeoutException
    from math_verify.metric import math_metric
    from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig
    logging.disable(logging.CRITICAL)
    metric = math_metric(gold_extraction_target=(LatexExtractionConfig(),),
                         pred_extraction_target=(ExprExtractionConfig(), LatexExtractionConfig()))
    start = time.perf_counter()
    try:
        verdict = float(metric(["\\boxed{" + pair[1] + "}"], [pair[2]])[0])
    except (Exception, TimeoutException):
        verdict = 0.0
    return verdict, time.perf_counter() - start


def ours(program, judged):
    lines = "".join(json.dumps({"gold": gold, "response": response}) + "\n" for _, gold, response in judged)
    done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    return [(float(line.split()[0]), float(line.split()[1]) / 1e6) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verdicts", required=True, help="the program math_verdicts")
    parser.add_argument("--golden", help="file to write")
    parser.add_argument("--cache", help="file that keeps math-verify's verdicts between runs")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    judged = pairs(options.seed)
    cache = {}
    if options.cache:
        try:
            cache = {(gold, response): verdict for gold, response, *verdict in json.load(open(options.cache))}
        except FileNotFoundError:
            pass
    missing = [pair for pair in judged if pair[1:] not in cache]
    with multiprocessing.Pool(options.processes) as pool:
        for pair, verdict in zip(missing, pool.imap(judge, missing, chunksize=8)):
            cache[pair[1:]] = verdict
    if options.cache:
        json.dump([[*key, *verdict] for key, verdict in cache.items()], open(options.cache, "w"))
    peer = [cache[pair[1:]] for pair in judged]
    mine = ours(options.verdicts, judged)

    classes = collections.defaultdict(list)
    for pair, a, b in zip(judged, peer, mine, strict=True):
        classes[pair[0]].append((pair, a, b))
    print(" ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES))
    print(f"{'class':<20}{'pairs':>6}{'right':>7}{'differ':>7}{'peer ms':>9}{'ours us':>9}{'worst us':>10}")
    for name, rows in [*classes.items(), ("all", [row for rows in classes.values() for row in rows])]:
        differ = sum(a[0] != b[0] for _, a, b in rows)
        right = sum(a[0] == 1 for _, a, _ in rows)
        peer_s, ours_s = sum(a[1] for _, a, _ in rows) / len(rows), sum(b[1] for _, _, b in rows) / len(rows)
        print(f"{name:<20}{len(rows):>6}{right:>7}{differ:>7}{peer_s * 1e3:>9.1f}{ours_s * 1e6:>9.0f}"
              f"{max(b[1] for _, _, b in rows) * 1e6:>10.0f}")
    for pair, a, b in zip(judged, peer, mine, strict=True):
        if a[0] != b[0]:
            slow = "(slow) " if a[1] > SLOW_S else ""
            print(f"peer {a[0]:.0f} ours {b[0]:.0f} {slow}[{pair[0]}] {pair[1]!r} {pair[2]!r}")
    if options.golden:
        kept = [[*pair, int(a[0])] for pair, a in zip(judged, peer, strict=True) if a[1] <= SLOW_S]
        versions = {name: importlib.metadata.version(name) for name in PACKAGES}
        with open(options.golden, "w", encoding="utf-8") as file:
            head = {"made_by": "benchmarks/peer_math_verify.py", "versions": versions, "seed": options.seed,
                    "left_out_as_slow": len(judged) - len(kept)}
            file.write(json.dumps(head)[:-1] + ',\n"pairs": [\n')
            file.write(",\n".join(json.dumps(row, ensure_ascii=False) for row in kept) + "\n]}\n")


if __name__ == "__main__":
    main()
