#!/usr/bin/env python3
"""Two builds of Hexad beside each other on this machine's CPU, in one run: has a commit made anything slower?

    benchmarks/compare_builds.py BEFORE AFTER --out FOLDER [--model DIR] [--only startup,quickstart,training,generation]
        [--repeats 5] [--threads 2]

BEFORE and AFTER: source trees with build/dev; `make quickstart` has built enough for startup and quickstart, and
`ninja -C build/dev train_step generator_rounds` builds the rest. --model: a Hugging Face directory for training and
generation. The two take turns, one sample each at a time, and the order changes with every turn. FOLDER gets
compare_builds.json; a line a row is printed: both medians, and the median of AFTER / BEFORE over the turns. Exits
with 1 where the two did not compute the same: rewards of the quickstart, loss and gradient norm of the first step,
greedy tokens.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

HEXAD = "build/dev/bin/hexad"
LOSS = 1e-3  # relative: the order of sums may change


def timed(command, cwd, threads):
    """Wall and processor seconds of a command."""
    before, begin = os.times(), time.perf_counter()
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": str(threads)})
    wall, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        words = " ".join(str(word) for word in command)
        raise RuntimeError(f"{words} in {cwd}: exit code {done.returncode}: {done.stderr[-2000:]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": wall, "cpu_seconds": used, "stdout": done.stdout}


def turns(trees, repeats, sample):
    """[[of BEFORE, of AFTER], ...]: `sample` of each tree by turns."""
    found = []
    for turn in range(repeats):
        order = [0, 1] if turn % 2 == 0 else [1, 0]
        pair = {side: sample(trees[side], side) for side in order}
        found.append([pair[0], pair[1]])
    return found


def row(name, pairs, key="seconds"):
    sides = [[pair[side][key] for pair in pairs] for side in (0, 1)]
    return {"name": name, "before": statistics.median(sides[0]), "after": statistics.median(sides[1]), "samples": sides,
            "ratio": statistics.median(after / before for before, after in zip(*sides))}


def startup(args):
    configs = ["quickstart", "recipes/grpo_math_8B", "recipes/grpo_math_8B_megatron"]
    commands = [["--version"]] + [["config", "check", f"configs/{config}.yaml"] for config in configs]
    for command in commands:
        sample = lambda tree, _: timed([tree / HEXAD, *command], tree, args.threads)
        turns(args.trees, 3, sample)  # the files are in the page cache
        yield row("hexad " + " ".join(command), turns(args.trees, 20 * args.repeats, sample)), True


def quickstart(args):
    def sample(tree, side):
        folder = args.out / f"quickstart{side}"
        subprocess.run(["rm", "-rf", folder], check=True)
        done = timed([tree / HEXAD, "train", "configs/quickstart.yaml", f"checkpointing.checkpoint_dir={folder}/run",
                      f"logger.log_dir={folder}/logs"], tree, args.threads)
        files = sorted(folder.glob("logs/**/metrics.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        done["rewards"] = [line["train/reward"] for line in lines if "train/reward" in line]
        return done

    pairs = turns(args.trees, args.repeats, sample)
    same = all(pair[0]["rewards"] and pair[0]["rewards"] == pair[1]["rewards"] for pair in pairs)
    yield row("hexad train configs/quickstart.yaml", pairs), same
    yield row("hexad train configs/quickstart.yaml, processor", pairs, "cpu_seconds"), same


class Program:
    """A program that does a piece of work for each line that it reads, and answers with a line."""

    def __init__(self, command, tree, threads):
        self.process = subprocess.Popen([str(word) for word in command], cwd=tree, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env=os.environ | {"OMP_NUM_THREADS": str(threads)})

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args[0]} has ended with {self.process.wait()}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def close(a, b):
    return abs(a - b) <= LOSS * max(abs(a), abs(b), 1e-6)


def training(args):
    lengths = args.out / "lengths.json"
    lengths.write_text(json.dumps([256] * 16))
    for precision in ("float32", "bfloat16"):
        keys = [f"policy.precision={precision}", "policy.sequence_packing.enabled=true",
                "++policy.sequence_packing.train_mb_tokens=1024", "++policy.sequence_packing.logprob_mb_tokens=1024",
                "++policy.max_total_sequence_length=256", "policy.train_global_batch_size=16"]
        options = ["--lengths", lengths, "--wait", "--steps", args.repeats + 1]
        programs = [Program([tree / "build/dev/bin/train_step", args.model, "--hexad", tree / HEXAD, *options, *keys],
                            tree, args.threads) for tree in args.trees]
        first = [program.ask("") for program in programs]
        pairs = turns(args.trees, args.repeats, lambda _, side: programs[side].ask(""))
        for program in programs:
            program.end()
        same = all(close(first[0][key], first[1][key]) for key in ("loss", "grad_norm"))
        yield row(f"training, 16 x 256 tokens, {precision}", pairs, "train_s"), same


def generation(args):
    draw = random.Random(1)
    prompts = [[draw.randrange(1000, 40000) for _ in range(32)] for _ in range(32)]
    programs = [Program([tree / "build/dev/bin/generator_rounds", args.model, args.threads], tree, args.threads)
                for tree in args.trees]
    work = json.dumps({"prompts": prompts, "new_tokens": 64, "temperature": 0, "seed": 1})
    ask = lambda side: programs[side].ask(work)
    first = [ask(side) for side in (0, 1)]
    pairs = turns(args.trees, args.repeats, lambda _, side: ask(side))
    for program in programs:
        program.end()
    yield row("generation, 32 x 64 tokens", pairs), first[0]["tokens"] == first[1]["tokens"]


PARTS = {"startup": startup, "quickstart": quickstart, "training": training, "generation": generation}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, type=lambda path: pathlib.Path(path).resolve(), metavar="TREE")
    parser.add_argument("--out", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--model", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", default="startup,quickstart", help="parts, joined by commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows, ok = [], True
    for part in args.only.split(","):
        if part in ("training", "generation") and not args.model:
            parser.error(f"{part} wants --model")
        for found, same in PARTS[part](args):
            found["same"] = same
            ok &= same
            rows.append(found)
            print(f"{found['name']:62} {found['before']:9.4g} s {found['after']:9.4g} s  {found['ratio']:6.3f}"
                  f"{'' if same else '  NOT THE SAME'}", flush=True)
    (args.out / "compare_builds.json").write_text(json.dumps(rows, indent=1))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
