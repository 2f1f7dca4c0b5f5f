"""Runs of the quickstart that are told to the real libraries of the four trackers, without a network: what these store
is every step's metrics, a resumed run is the same run to them, and one whose trackers are killed goes on.
`make test-peers`, with the environment that tools/setup_peers.sh makes. Wants HEXAD_SOURCE_DIR and HEXAD_BUILD_DIR.
usage: trackers_test.py [all|killed ...]
"""
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tracker_stores

SOURCE, BUILD = Path(os.environ["HEXAD_SOURCE_DIR"]), Path(os.environ["HEXAD_BUILD_DIR"])
SETTINGS = {
    "wandb": "{project: test, mode: offline}",
    "swanlab": "{project: test, mode: offline}",
    "trackio": "{project: test}",
    "mlflow": "{experiment_name: test, tracking_uri: 'file://%s/mlruns'}",
}


def arguments(folder, services, steps):
    settings = {name: SETTINGS[name].replace("%s", str(folder)) for name in services}
    return [BUILD / "bin/hexad", "train", SOURCE / "configs/quickstart.yaml", f"grpo.max_num_steps={steps}",
            "grpo.num_prompts_per_step=2", "grpo.num_generations_per_prompt=2", "policy.train_global_batch_size=4",
            "++policy.train_micro_batch_size=4", "grpo.val_at_start=false", "grpo.val_period=0",
            f"++logger.log_dir={folder}/logs", f"++checkpointing.checkpoint_dir={folder}/checkpoints",
            "++checkpointing.enabled=true", "++checkpointing.save_period=2",
            f"policy.model_name={SOURCE}/configs/quickstart_model",
            f"++logger.tracker_python={sys.executable}",
            *(f"++logger.{name}_enabled=true" for name in services),
            *(f"++logger.{name}={text}" for name, text in settings.items())]


def environment(folder):
    return {**os.environ, "HOME": str(folder), "TRACKIO_DIR": f"{folder}/trackio", "MLFLOW_ALLOW_FILE_STORE": "true"}


def train(folder, services, steps):
    """A run of the quickstart up to a step, from the newest checkpoint. Returns what it said."""
    run = subprocess.run(arguments(folder, services, steps), env=environment(folder), capture_output=True, text=True,
                         cwd=folder)
    assert run.returncode == 0, run.stderr
    for trouble in ("have not reached", "was killed", "is killed", "ended with"):
        assert trouble not in run.stderr, run.stderr
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


def logged_in(folder):
    """The metrics of metrics.jsonl by step, of a run and its resumption."""
    logged = {}
    for file in sorted(folder.glob("logs/exp_*/metrics.jsonl")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            step, _ = row.pop("step"), row.pop("time")
            logged[step] = {key: value for key, value in row.items() if value is not None}
    return logged


def compare(service, logged, got):
    for step, row in logged.items():
        for key, value in row.items():
            name = key
            if service == "mlflow":
                name = name.replace("@", "_").replace("generation/environment", "generation.environment")
            assert name in got[step], f"{service}: step {step} lacks {name}: {sorted(got[step])}"
            same = math.isclose(got[step][name], value, rel_tol=1e-6)  # SwanLab's numbers are single
            assert same, f"{service}: step {step}: {name} is {got[step][name]}, wanted {value}"


def check_all():
    """All of them beside one run, which is resumed once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder, SETTINGS, 2), train(folder, SETTINGS, 4)
        logged = logged_in(folder)
        assert sorted(logged) == [1, 2, 3, 4], sorted(logged)
        for service in SETTINGS:
            compare(service, logged, stored(folder, service))
            print(f"{service}: {sum(map(len, logged.values()))} metrics of 4 steps, resumed after 2")
        assert len(ids(folder)) == 1, ids(folder)


def pids_of(folder, service):
    """The processes of a tracker: its script and all that its library has started from there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            home = f"HOME={folder}\0".encode() in (process / "environ").read_bytes()
        except OSError:
            continue
        if home and f"to_{service}.py" in command:
            found.append(int(process.name))
    return found


def check_killed():
    """kill -9 of each in the middle of a run: it goes on, and ends with 0."""
    with tempfile.TemporaryDirectory() as name:
        folder, steps = Path(name), 400
        with open(folder / "said", "w+") as said:
            run = subprocess.Popen(arguments(folder, SETTINGS, steps), env=environment(folder), stdout=said,
                                   stderr=said, cwd=folder)
            try:
                while run.poll() is None and len(logged_in(folder)) < 3:
                    time.sleep(0.1)
                for service in SETTINGS:
                    pids = pids_of(folder, service)
                    assert pids, f"{service}: no process"
                    for pid in pids:
                        os.kill(pid, signal.SIGKILL)
                assert run.poll() is None, "it ended before its trackers were killed: raise steps"
                assert run.wait(600) == 0, (folder / "said").read_text()
            finally:
                run.kill(), run.wait()
        text = (folder / "said").read_text()
        assert sorted(logged_in(folder)) == list(range(1, steps + 1)), text
        for service in SETTINGS:
            assert f"tracker {service}: " in text and "was killed by signal 9" in text, text
        print(f"killed: {steps} steps, exit code 0")


for each in sys.argv[1:] or ["all", "killed"]:
    {"all": check_all, "killed": check_killed}[each]()
