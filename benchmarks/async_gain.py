#!/usr/bin/env python3
"""Asynchronous GRPO beside the synchronous run on the same ranks: time to the same reward where generation and training
take as long.

    benchmarks/async_gain.py --build build/dev --out RESULT.json [--seeds 42 43 44] [--steps 60] [--ages 1 2] [--jobs 1]
        [--running N] [--device cpu] [key=value ...]

A wider model than the quickstart's on two ranks, one trains and one generates, a thread each; responses of 8 letters
(the length is imposed: work must not change with what is learned), rewarded for each that is the right one, which is
always the same, so that every seed ends at 1. First the number of sequences that generate at once is chosen (--running
says it), by a synchronous run with each of several, so that a step's generation comes near its training (log-probs
counted); what both took in the runs is told. Then, for every seed, the synchronous run and one for each age of samples.
Told for each: seconds until the reward, averaged over five steps, is 0.95 of what the synchronous run of that seed ends
at, over the synchronous run's seconds to the same level; and over all steps. The limit is 0.5, as long as nothing else
takes time. --jobs runs go side by side, on a host with two free cores for each.

Fails when a run does not get there, or an asynchronous one trained another number of groups than its steps want, or
lost one: by the run's own account every group that was started was trained or, at the end, dropped.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

WINDOW, LEVEL, TARGET = 5, 0.95, 0.75
PROMPTS, SAMPLES, LETTERS = 32, 8, 8  # of a step, of a prompt, of a response
MODEL = {"hidden_size": 256, "intermediate_size": 768, "head_dim": 64}
CANDIDATES = (1, 2, 3, 4, 6, 8)  # sequences that generate at once
RUNNING = "policy.generation.native_cfg.max_num_seqs"


def write_model(folder):
    """The quickstart's, wide enough that products take the time, and not calls."""
    shutil.copytree("configs/quickstart_model", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **MODEL}))


def write_prompts(path):
    draw = random.Random(5)
    lines = [{"input": "".join(draw.choice("abcdefgh") for _ in range(4)), "output": "b" * LETTERS}
             for _ in range(2048)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def train(args, folder, seed, steps, running, age):
    """Lines of the metrics of one run, and what it says became of its groups; age 0: synchronous."""
    folder.mkdir()
    command = [str(args.build / "bin" / "hexad"), "train", "configs/quickstart_async.yaml", f"grpo.seed={seed}",
               f"grpo.max_num_steps={steps}",
               "checkpointing.enabled=false", "grpo.val_period=0", "grpo.val_at_start=false", "grpo.val_at_end=false",
               f"logger.log_dir={folder}",
               f"cluster.device={args.device}", f"policy.model_name={folder.parent / 'model'}",
               f"grpo.num_prompts_per_step={PROMPTS}",
               "policy.optimizer.kwargs.lr=7.0e-6", f"++{RUNNING}={running}",
               f"grpo.async_grpo.enabled={'true' if age else 'false'}",
               f"grpo.async_grpo.max_trajectory_age_steps={max(age, 1)}", "data.train.dataset_name=ResponseDataset",
               f"++data.train.data_path={folder.parent / 'prompts.jsonl'}", "data.train.env_name=token_task",
               "~data.train.kind", "~data.train.size",
               "~data.train.validation_size", "++env.token_task={}", "policy.max_total_sequence_length=32",
               f"grpo.num_generations_per_prompt={SAMPLES}", f"policy.train_global_batch_size={PROMPTS * SAMPLES // 2}",
               f"policy.generation.max_new_tokens={LETTERS}",
               f"policy.generation.imposed_lengths={[LETTERS] * PROMPTS * SAMPLES}".replace(" ", ""),
               *args.override]
    result = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}\nexit {result.returncode}: {(result.stderr + result.stdout)[-2000:]}")
    account = re.search(r"groups: (\d+) started, (\d+) trained, (\d+) dropped", result.stdout + result.stderr)
    lines = [json.loads(line) for line in next(folder.rglob("metrics.jsonl")).read_text().splitlines()]
    return [line for line in lines if "train/reward" in line], [int(n) for n in account.groups()] if account else None


def phases(lines):
    """Median seconds of generating, and of training, in a synchronous step."""
    def seconds(name):
        return statistics.median(line.get(f"timing/train/{name}", 0.0) for line in lines[2:])
    return seconds("generation"), seconds("policy_training") + seconds("policy_and_reference_logprobs")


def calibrate(args, folder, pool):
    """The number of sequences at once with which both phases take as long as each other: they generate in so many
    waves.

    As many runs side by side as are measured later.
    """
    runs = {running: pool.submit(train, args, folder / f"calibrate{running}", 1, 8, running, 0)
            for running in CANDIDATES}
    tried = {running: dict(zip(("generation_s", "training_s"), phases(run.result()[0]))) for running,
             run in runs.items()}
    return min(tried, key=lambda r: abs(math.log(tried[r]["generation_s"] / tried[r]["training_s"]))), tried


def curve(lines):
    """(seconds since the first step began, mean reward of the last steps), from the WINDOWth step on."""
    began = lines[0]["time"] - lines[0]["timing/train/total_step_time"]
    rewards = [line["train/reward"] for line in lines]
    return [(line["time"] - began, statistics.mean(rewards[i - WINDOW + 1:i + 1])) for i,
            line in enumerate(lines) if i >= WINDOW - 1]


def judge(sync, asynchronous, account, age):
    level = LEVEL * curve(sync)[-1][1]
    reached = [next((t for t, reward in curve(lines) if reward >= level), None) for lines in (sync, asynchronous)]
    found = {"age": age, "level": level, "sync_s": reached[0], "async_s": reached[1],
             "all_steps_ratio": curve(asynchronous)[-1][0] / curve(sync)[-1][0],
             "ratio": reached[1] / reached[0] if all(reached) else None,
             "avg_trajectory_age": statistics.mean(line.get("train/avg_trajectory_age", 0.0) for line in asynchronous),
             "groups": account}
    started, trained, dropped = account
    found["ok"] = found["ratio"] is not None and trained == PROMPTS * len(asynchronous) and started == trained + dropped
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/dev"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[42, 43, 44])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ages", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--running", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("override", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_prompts(folder / "prompts.jsonl")
        write_model(folder / "model")
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            running, tried = (args.running, {}) if args.running else calibrate(args, folder, pool)
            started = time.monotonic()
            runs = {(seed, age): pool.submit(train, args, folder / f"seed{seed}-age{age}", seed, args.steps, running,
                                             age)
                    for seed in args.seeds for age in (0, *args.ages)}
            lines = {key: run.result() for key, run in runs.items()}
    result = {"device": args.device, "steps": args.steps, "jobs": args.jobs, RUNNING: running, "calibration": tried,
              "wall_s": time.monotonic() - started,
              "phases": {seed: phases(lines[seed, 0][0]) for seed in args.seeds},
              "runs": [{"seed": seed, **judge(lines[seed, 0][0], *lines[seed, age], age)} for seed in args.seeds
                       for age in args.ages]}
    ratios = {age: [run["ratio"] for run in result["runs"] if run["age"] == age] for age in args.ages}
    result["median_ratio"] = {age: statistics.median(of_age) if None not in of_age else None for age,
                              of_age in ratios.items()}
    result["ok"] = all(run["ok"] for run in result["runs"])
    result["target_reached"] = all(ratio is not None and ratio <= TARGET for ratio in result["median_ratio"].values())
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    print(json.dumps({key: result[key] for key in (RUNNING, "phases", "median_ratio", "ok", "target_reached")}))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
