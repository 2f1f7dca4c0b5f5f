"""Part of benchmarks/cpu_table.py: how long commands and a run take to begin."""

import os
import subprocess
import time

from cpu_parts.processes import ROOT, grpo_run, median


def quick(command, repeats):
    """Of a command that takes milliseconds: nothing watches it."""
    runs = []
    for _ in range(repeats):
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        runs.append(
            {"seconds": time.perf_counter() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime, "ok": status == 0}
        )
    return {
        "seconds": median(runs, "seconds"),
        "cpu_seconds": median(runs, "cpu_seconds"),
        "ok": all(one["ok"] for one in runs),
    }


def startup(args):
    hexad = args.build / "bin/hexad"
    configs = sorted(ROOT.glob("configs/*.yaml")) + [ROOT / "tests/config/data/grpo_math_1B.yaml"]
    checks = {
        path.name: {"lines": len(path.read_text().splitlines())}
        | quick([hexad, "config", "check", path], 4 * args.repeats)
        for path in configs
    }
    first = []
    for _ in range(args.repeats):
        done, lines, _ = grpo_run(
            args,
            args.out / "first",
            1,
            "grpo.num_prompts_per_step=1",
            "grpo.num_generations_per_prompt=2",
            "policy.train_global_batch_size=2",
        )
        timing = {
            key.removeprefix("timing/train/"): value
            for key, value in lines[0].items()
            if key.startswith("timing/train/")
        }
        begun = lines[0]["time"] - timing["total_step_time"] - done["started"]
        first.append(
            {
                "until_step": begun,
                "until_rollout": begun + timing.get("prepare_for_generation/total", 0) + timing["generation"],
            }
        )
    version = quick([hexad, "--version"], 10 * args.repeats)
    return {
        "version": version,
        "config_check": checks,
        "first_rollout": first,
        "ok": version["ok"] and all(check["ok"] for check in checks.values()),
    }


def startup_rows(result):
    largest = max(result["config_check"].items(), key=lambda item: item[1]["lines"])
    slowest = max(result["config_check"].items(), key=lambda item: item[1]["seconds"])
    short = [("`hexad --version`", result["version"], 20)]
    short += [
        (f"`hexad config check {name}` ({check['lines']} lines, the {which})", check, 50)
        for (name, check), which in ((largest, "largest"), (slowest, "slowest"))
    ]
    rows = [
        (
            name,
            f"{1e3 * one['seconds']:.3g} ms, {1e3 * one['cpu_seconds']:.3g} of a processor",
            "",
            f"≤ {mark} ms",
            1e3 * one["seconds"] <= mark,
        )
        for name, one, mark in short
    ]
    for name, key in (("first step", "until_step"), ("first two rollouts", "until_rollout")):
        seconds = median(result["first_rollout"], key)
        rows.append((f"`hexad train`, launch to the {name}", f"{seconds:.3g} s", "", "≤ 3 s", seconds <= 3))
    return rows
