#!/usr/bin/env python3
"""Encoding speed (CPU time) of lib/text/tokenizer against Hugging Face `tokenizers`, both on one core, after checking
that the ids are equal. Run by a Python that has `tokenizers`, from the repository root:

    python benchmarks/tokenizer_speed.py [--build build/dev] [--tokenizers DIR] [--rounds 3] [--mb 4] [--text FILE ...]

Text: the Python standard library's sources ("code"), words of the golden texts shuffled ("mixed", many scripts), and
the given files, cut into documents of 4 kB. The peer is timed with encode and encode_batch_fast; the faster counts.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sysconfig
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import tokenizers  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def build_bench(build):
    subprocess.run(["ninja", "-C", build, "tokenizer_bench"], check=True)
    return os.path.join(build, "bin", "tokenizer_bench")


def cut(text, size=4000):
    return [text[i:i + size] for i in range(0, len(text), size)]


def corpora(folder, megabytes, files):
    size = int(megabytes * 1e6)
    code = ""
    for path in sorted(glob.glob(sysconfig.get_paths()["stdlib"] + "/*.py")):
        code += open(path, encoding="utf-8", errors="replace").read()
        if len(code) > size:
            break
    words = []
    for path in sorted(glob.glob(folder + "/*.json")):
        for case in json.load(open(path))["cases"]:
            words += case["inputs"].get("text", "").split(" ")
    words = [w for w in words if len(w) < 60]
    rng = random.Random(1)
    mixed, length = [], 0
    while length < size:
        mixed.append(rng.choice(words))
        length += len(mixed[-1].encode()) + 1
    result = {"code": cut(code[:size]), "mixed": cut(" ".join(mixed))}
    for path in files:
        result[os.path.basename(path)] = cut(open(path, encoding="utf-8", errors="replace").read()[:size])
    return result


def peer_speed(tokenizer, docs, rounds):
    best = {}
    for name, run in (("encode", lambda: [tokenizer.encode(d, add_special_tokens=False) for d in docs]),
                      ("encode_batch_fast", lambda: tokenizer.encode_batch_fast(docs, add_special_tokens=False))):
        for _ in range(rounds):
            start = time.process_time()
            run()
            best[name] = min(best.get(name, 1e9), time.process_time() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"{ROOT}/build/dev")
    parser.add_argument("--bench", help="a tokenizer_bench that is built already")
    parser.add_argument("--tokenizers", default=f"{ROOT}/tests/golden/tokenizers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mb", type=float, default=4)
    parser.add_argument("--text", nargs="*", default=[])
    args = parser.parse_args()
    print(f"tokenizers {tokenizers.__version__}, one core")
    print(f"{'tokenizer':16} {'text':10} {'peer MB/s':>10} {'hexad MB/s':>11} {'ratio':>6} {'ids':>6} "
          f"{'load s: peer':>13} {'hexad':>6}")
    with tempfile.TemporaryDirectory() as folder:
        exe = args.bench or build_bench(args.build)
        texts = corpora(f"{ROOT}/tests/golden/tokenizers", args.mb, args.text)
        for path in sorted(glob.glob(f"{args.tokenizers}/*/tokenizer.json")):
            model = os.path.dirname(path)
            start = time.process_time()
            peer = tokenizers.Tokenizer.from_file(path)
            peer.no_truncation()
            load = time.process_time() - start
            for name, docs in texts.items():
                docs_file = f"{folder}/docs.jsonl"
                with open(docs_file, "w") as out:
                    out.writelines(json.dumps({"text": d}) + "\n" for d in docs)
                run = lambda what: subprocess.run([exe, model, docs_file, what], capture_output=True, text=True,
                                                  check=True).stdout
                ids = [json.loads(line) for line in run("ids").splitlines()]
                want = [e.ids for e in peer.encode_batch_fast(docs, add_special_tokens=False)]
                ours = json.loads(run(str(args.rounds)))
                theirs = ours["mb"] / min(peer_speed(peer, docs, args.rounds).values())
                print(f"{os.path.basename(model):16} {name:10} {theirs:10.1f} {ours['first_mb_s']:11.1f} "
                      f"{ours['first_mb_s'] / theirs:6.1f} {'equal' if ids == want else 'DIFFER':>6} {load:13.2f} "
                      f"{ours['load_s']:6.2f}")


if __name__ == "__main__":
    main()
