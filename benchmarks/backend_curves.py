#!/usr/bin/env python3
"""Free-running reward curves of both training backends: the quickstart with several seeds on dtensor and on megatron.

    python3 benchmarks/backend_curves.py OUT_DIR [--hexad build/dev/bin/hexad] [--seeds 42 43 44 45 46]
                                         [--steps 60] [--only dtensor:42 ...] [key=value ...]

Runs what OUT_DIR does not hold yet, one run after another: `hexad train configs/quickstart.yaml` with each seed on
dtensor (one rank) and on megatron (TP2, PP2 and DP2 on eight CPU ranks for the first seed, TP2 and PP2 on four for the
others). Then it writes OUT_DIR/backend_curves.json and .svg.

The criterion, in windows of five steps of the training reward: the mean of megatron's runs lies between the lowest and
the highest of dtensor's runs, widened by 0.01; and the two means differ by less than dtensor's runs differ among
themselves (highest minus lowest, at least 0.01). Fails where a window does not.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import time

WINDOW = 5
MARGIN = 0.01
LAYOUTS = {
    "dtensor": [],
    "megatron TP2 PP2": ["policy.megatron_cfg.enabled=true", "++policy.megatron_cfg.tensor_model_parallel_size=2",
                         "++policy.megatron_cfg.pipeline_model_parallel_size=2", "cluster.gpus_per_node=4"],
    "megatron TP2 PP2 DP2": ["policy.megatron_cfg.enabled=true", "++policy.megatron_cfg.tensor_model_parallel_size=2",
                             "++policy.megatron_cfg.pipeline_model_parallel_size=2", "cluster.gpus_per_node=8"],
}


def plan(seeds):
    """(backend, seed, layout) of every run."""
    runs = []
    for index, seed in enumerate(seeds):
        runs.append(("dtensor", seed, "dtensor"))
        runs.append(("megatron", seed, "megatron TP2 PP2" if index else "megatron TP2 PP2 DP2"))
    return runs


def train(root, args, folder, seed, layout):
    started = time.monotonic()
    command = [args.hexad, "train", "configs/quickstart.yaml", f"grpo.seed={seed}", f"grpo.max_num_steps={args.steps}",
               "++checkpointing.enabled=false", f"++logger.log_dir={folder}/logs", "++cluster.device=cpu",
               *LAYOUTS[layout], *args.overrides]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nfailed with exit code {done.returncode}\n{done.stdout[-2000:]}")
    lines = [json.loads(line) for line in open(glob.glob(f"{folder}/logs/exp_*/metrics.jsonl")[-1])]
    return {"layout": layout, "seed": seed, "seconds": round(time.monotonic() - started, 1),
            "reward": [line["train/reward"] for line in lines if "train/reward" in line],
            "validation": {line["step"]: line["validation/accuracy"] for line in lines
                           if "validation/accuracy" in line}}


def windows(rewards):
    return [sum(rewards[i:i + WINDOW]) / WINDOW for i in range(0, len(rewards) - WINDOW + 1, WINDOW)]


def judge(runs):
    """One object a window: the spread of dtensor's runs, both means, and whether the criterion holds."""
    curves = {backend: [windows(run["reward"]) for run in runs if run["backend"] == backend]
              for backend in ("dtensor", "megatron")}
    found = []
    for w in range(min(len(curve) for both in curves.values() for curve in both)):
        ours, theirs = [c[w] for c in curves["dtensor"]], [c[w] for c in curves["megatron"]]
        mean, other, low, high = sum(ours) / len(ours), sum(theirs) / len(theirs), min(ours), max(ours)
        found.append({"steps": [w * WINDOW + 1, (w + 1) * WINDOW], "lowest": low, "highest": high, "dtensor": mean,
                      "megatron": other, "within": low - MARGIN <= other <= high + MARGIN
                      and abs(other - mean) < max(high - low, MARGIN)})
    return found


def svg(runs, target):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from curve_svg import draw
    draw(target, "Quickstart: training reward, five seeds on each backend", {
        "dtensor, one rank": ("#0b62c4", [list(enumerate(r["reward"], 1)) for r in runs if r["backend"] == "dtensor"]),
        "megatron, TP2 PP2 (one seed with DP2)": ("#d9730d", [list(enumerate(r["reward"], 1)) for r in runs
                                                              if r["backend"] == "megatron"]),
    })


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("overrides", nargs="*", help="key=value of the config, for every run")
    parser.add_argument("--hexad", default=os.path.join(root, "build/dev/bin/hexad"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[42, 43, 44, 45, 46])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", nargs="+", default=[], metavar="BACKEND:SEED", help="make these runs and stop")
    args = parser.parse_intermixed_args()
    out = os.path.abspath(args.out)
    runs = []
    for backend, seed, layout in plan(args.seeds):
        file = f"{out}/{backend}_{seed}/run.json"
        wanted = not args.only or f"{backend}:{seed}" in args.only
        if not os.path.exists(file) and wanted:
            shutil.rmtree(os.path.dirname(file), ignore_errors=True)  # of a run that did not end
            os.makedirs(os.path.dirname(file))
            made = {"backend": backend, **train(root, args, os.path.dirname(file), seed, layout)}
            json.dump(made, open(file, "w"))
            print(f"{layout}, seed {seed}: {made['seconds']} s, last reward {made['reward'][-1]:.3f}", flush=True)
        if os.path.exists(file):
            runs.append(json.load(open(file)))
    if args.only:
        return
    found = judge(runs)
    result = {"criterion_holds": all(w["within"] for w in found), "windows": found, "runs": runs}
    json.dump(result, open(f"{out}/backend_curves.json", "w"), indent=1)
    svg(runs, f"{out}/backend_curves.svg")
    for w in found:
        print("steps {0[0]:3}-{0[1]:3}: dtensor {1:.3f} ({2:.3f} to {3:.3f})  megatron {4:.3f}  {5}".format(
            w["steps"], w["dtensor"], w["lowest"], w["highest"], w["megatron"], "within" if w["within"] else "OUTSIDE"))
    sys.exit(not result["criterion_holds"])


if __name__ == "__main__":
    main()
