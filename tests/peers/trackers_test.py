"""Runs of the quickstart that are told to the real libraries of the four trackers, without a network: what these store
is every step's metrics, and a resumed run is the same run to them. `make test-peers`, with the environment that
tools/setup_peers.sh makes. Wants HEXAD_SOURCE_DIR and HEXAD_BUILD_DIR. usage: trackers_test.py [SERVICE ...]
"""
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tracker_stores

SOURCE, BUILD = Path(os.environ["HEXAD_SOURCE_DIR"]), Path(os.environ["HEXAD_BUILD_DIR"])
SETTINGS = {
    "wandb": "{project: test, mode: offline}",
    "swanlab": "{project: test, mode: offline}",
    "trackio": "{project: test}",
    "mlflow": "{experiment_name: test, tracking_uri: 'file://%s/mlruns'}",
}


def train(folder, service, steps):
    """A run of the quickstart up to a step, from the newest checkpoint. Returns what it said."""
    settings = SETTINGS[service].replace("%s", str(folder))
    command = [BUILD / "bin/hexad", "train", SOURCE / "configs/quickstart.yaml", f"grpo.max_num_steps={steps}",
               "grpo.num_prompts_per_step=2", "grpo.num_generations_per_prompt=2", "policy.train_global_batch_size=4",
               "++policy.train_micro_batch_size=4", "grpo.val_at_start=false", "grpo.val_period=0",
               f"++logger.log_dir={folder}/logs", f"++checkpointing.checkpoint_dir={folder}/checkpoints",
               "++checkpointing.enabled=true", "++checkpointing.save_period=2", f"++logger.{service}_enabled=true",
               f"++logger.{service}={settings}", f"++logger.tracker_python={sys.executable}"]
    offline = {"HOME": str(folder), "TRACKIO_DIR": f"{folder}/trackio", "MLFLOW_ALLOW_FILE_STORE": "true"}
    run = subprocess.run(command, env={**os.environ, **offline}, capture_output=True, text=True, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "have not reached" not in run.stderr and "was killed" not in run.stderr, run.stderr
    return run.stderr


def stored(folder, service):
    if service in ("wandb", "swanlab"):  # a file in the log folder of each process
        parts = [getattr(tracker_stores, service)(each) for each in sorted((folder / "logs").glob("exp_*"))]
        steps = {step: row for part, _ in parts for step, row in part.items()}
        assert all(runs == 1 for _, runs in parts), parts
        return steps
    steps, runs = getattr(tracker_stores, service)(folder / {"trackio": "trackio", "mlflow": "mlruns"}[service])
    assert runs == 1, f"{service}: {runs} runs"
    return steps


def ids(folder):
    """Of the runs, by the names of the files and folders that W&B and SwanLab make."""
    files = [*folder.glob("logs/**/run-*.wandb"), *folder.glob("logs/**/run-*.swanlab")]
    return {file.stem.split("-")[-1] for file in files}


def check(service):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second = train(folder, service, 2), train(folder, service, 4)
        logged = {}
        for file in sorted(folder.glob("logs/exp_*/metrics.jsonl")):
            for line in file.read_text().splitlines():
                row = json.loads(line)
                step, _ = row.pop("step"), row.pop("time")
                logged[step] = {key: value for key, value in row.items() if value is not None}
        assert sorted(logged) == [1, 2, 3, 4], sorted(logged)
        got = stored(folder, service)
        for step, row in logged.items():
            for key, value in row.items():
                name = key.replace("@", "_") if service == "mlflow" else key
                assert name in got[step], f"{service}: step {step} lacks {name}: {sorted(got[step])}"
                same = math.isclose(got[step][name], value, rel_tol=1e-6)  # SwanLab's numbers are single
                assert same, f"{service}: step {step}: {name} is {got[step][name]}, wanted {value}"
        if service in ("wandb", "swanlab"):
            assert len(ids(folder)) == 1, ids(folder)
        print(f"{service}: {sum(map(len, logged.values()))} metrics of 4 steps, resumed after 2")


for each in sys.argv[1:] or SETTINGS:
    check(each)
