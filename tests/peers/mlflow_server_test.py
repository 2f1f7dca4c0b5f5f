"""A run of the quickstart that is told to a real server of MLflow by REST, without Python: killed, resumed, and read
back; and what hexad-mlflow makes of names, numbers and texts that the server does not take.
`make test-peers`, with the environment that tools/setup_peers.sh makes. Wants HEXAD_SOURCE_DIR and HEXAD_BUILD_DIR.
usage: mlflow_server_test.py [run|unusual|library ...]
"""
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from mlflow_server import Server

SOURCE, BUILD = Path(os.environ["HEXAD_SOURCE_DIR"]), Path(os.environ["HEXAD_BUILD_DIR"])
# Step 4 of the run that is killed has no end: it is longer than those that follow have to be.
REWARD = """import time
def reward(completions, answer, step, num_steps):
    while step == 4 and num_steps > 4:
        time.sleep(1)
    return [float(given.strip() == wanted) for given, wanted in zip(completions, answer)]
"""


def arguments(folder, server, steps):
    (folder / "slow.py").write_text(REWARD)
    return [BUILD / "bin/hexad", "train", SOURCE / "configs/quickstart.yaml", f"grpo.max_num_steps={steps}",
            "grpo.num_prompts_per_step=2", "grpo.num_generations_per_prompt=2", "policy.train_global_batch_size=4",
            "++policy.train_micro_batch_size=4", "grpo.val_at_start=false", "grpo.val_at_end=false",
            "grpo.val_period=0", f"++logger.log_dir={folder}/logs", f"++checkpointing.checkpoint_dir={folder}/saved",
            "++checkpointing.metric_name=null", "++checkpointing.enabled=true", "++checkpointing.save_period=2",
            f"policy.model_name={SOURCE}/configs/quickstart_model", "cluster.device=cpu",
            f"++env.exact_answer={{python: {folder}/slow.py, num_workers: 1}}",
            "++logger.tracker_python=/no/such/python", "++logger.mlflow_enabled=true",
            f"++logger.mlflow={{experiment_name: a test, run_name: the run, tracking_uri: '{server.uri}'}}"]


def logged_in(folder):
    """The metrics of metrics.jsonl by step, of a run and its resumption."""
    logged = {}
    for file in sorted(folder.glob("logs/exp_*/metrics.jsonl")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            step, _ = row.pop("step"), row.pop("time")
            logged[step] = {key: value for key, value in row.items() if value is not None}
    return logged


def told(server, step):
    """Whether the server has the reward of a step."""
    runs = server.runs("a test")
    return runs and any(at >= step for at, _ in server.history(runs[0]["info"]["run_id"], "train/reward")[0])


def kill_in_step_4(folder, server):
    """kill -9 while the rewards of step 4 are waited for; the newest checkpoint is that of step 2."""
    with open(folder / "said", "w") as said:
        run = subprocess.Popen(arguments(folder, server, 100), stdout=said, stderr=said, cwd=folder)
    try:
        while not told(server, 3):
            assert run.poll() is None, (folder / "said").read_text()
            time.sleep(0.05)
    finally:
        run.send_signal(signal.SIGKILL), run.wait()
    assert sorted(logged_in(folder)) == [1, 2, 3], sorted(logged_in(folder))


def flat(config, prefix=""):
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def check_metrics(server, run, logged, repeated):
    for metric in sorted({name for row in logged.values() for name in row}):
        name = metric.replace("@", "_").replace("generation/environment", "generation.environment")
        values, _ = server.history(run, name)
        for step, row in logged.items():
            if metric not in row:
                continue
            got = [value for at, value in values if at == step]
            assert len(got) == (2 if step == repeated else 1), f"{name} at step {step}: {got}"
            assert any(math.isclose(each, row[metric], rel_tol=1e-12) for each in got), f"{name}: {got}, {row[metric]}"


def check_run():
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as store, Server(Path(store)) as server:
        folder = Path(name)
        kill_in_step_4(folder, server)
        resumed = subprocess.run(arguments(folder, server, 4), capture_output=True, text=True, cwd=folder)
        assert resumed.returncode == 0, resumed.stderr
        assert "tracker mlflow" not in resumed.stderr, resumed.stderr
        logged = logged_in(folder)
        assert sorted(logged) == [1, 2, 3, 4], sorted(logged)

        runs = server.runs("a test")
        assert len(runs) == 1, [each["info"] for each in runs]
        info, data = runs[0]["info"], runs[0]["data"]
        assert (info["run_name"], info["status"]) == ("the run", "FINISHED"), info
        assert int(info["end_time"]) > int(info["start_time"]), info
        tags = {each["key"]: each["value"] for each in data["tags"]}
        ids = {json.loads(file.read_text())["run_id"] for file in folder.glob("saved/step_*/training_info.json")}
        assert ids == {tags["hexad.run_id"]}, (ids, tags)
        check_metrics(server, info["run_id"], logged, repeated=3)  # of which there was no checkpoint

        config = json.loads(server.artifact(info["run_id"], "config.json"))
        wanted = dict(flat(config))
        got = {each["key"]: each["value"] for each in data["params"]}
        assert wanted["grpo.num_prompts_per_step"] == "2" and wanted["policy.generation.backend"] == "native", wanted
        assert got == {key: value[:500] for key, value in wanted.items()}, set(got.items()) ^ set(wanted.items())

        tables = [f"samples/train_data_step{step:06}.json" for step in (1, 2, 3, 4)]
        assert sorted(server.artifacts(info["run_id"])) == ["config.json", "report.html", *tables]
        report = (folder / "logs/exp_002/report.html").read_bytes()
        assert server.artifact(info["run_id"], "report.html") == report
        table = json.loads(server.artifact(info["run_id"], tables[3]))
        assert "response" in table["columns"] and len(table["data"]) == 4, table
        print(f"run: {sum(map(len, logged.values()))} metrics of 4 steps, {len(got)} parameters, killed in step 4")


def feed(server, events, project, command):
    """What a tracker makes of events; its run of MLflow."""
    start = {"event": "start", "id": "the-id", "project": project, "name": "it", "resumed_at": 0, "log_dir": "/logs",
             "settings": {"tracking_uri": server.uri}, "config": {}}
    lines = [{**start, **events[0]}, *events[1:], {"event": "end", "status": "finished"}]
    text = "".join(json.dumps(each) + "\n" for each in lines)
    sent = subprocess.run(command, input=text, capture_output=True, text=True)
    assert sent.returncode == 0 and "left out" not in sent.stderr and "Traceback" not in sent.stderr, sent.stderr
    runs = server.runs(project)
    assert len(runs) == 1, runs
    return runs[0]


def step(number, metrics):
    return {"event": "step", "step": number, "time": 1764246000.5 + number, "metrics": metrics}


NAMES = {"pass@k": "pass_k", "a:b": "a_b", "tab\there": "tab_here", "a//b": "a/_b", "/a": "_a", "t/": "t_", ".": "_",
         "..": "__", "a/../b": "a/__/b", "a/./b": "a/_/b", "..a": "__a", "a b": "a b", "a-b": "a-b", "p/q": "p/q",
         "p/q/r": "p/q.r", "x" * 300: "x" * 250}


def check_library():
    """The same names by MLflow's own library, which ends a program that tells it a name that it does not take."""
    with tempfile.TemporaryDirectory() as store, Server(Path(store)) as server:
        config = {"p@k": 1, "p_k": 2, "": 3, "a//b": 4, "x" * 299: 5, "x" * 300: 6}
        events = [{"config": config}, step(1, {name: 1.5 for name in NAMES})]
        run = feed(server, events, "library", [sys.executable, SOURCE / "app/tracker/to_mlflow.py"])
        told = {each["key"]: each["value"] for each in run["data"]["metrics"]}
        assert told == {name: 1.5 for name in NAMES.values()}, sorted(told)
        got = {each["key"]: each["value"] for each in run["data"]["params"]}
        assert got == {"p_k": "1", "p_k_2": "2", "_": "3", "a/_b": "4", "x" * 250: "5", "x" * 242 + "_2": "6"}, got
        print(f"library: {len(told)} names of metrics, {len(got)} of parameters")


def check_unusual():
    far = "x" * 300
    names = [*NAMES, "na\u00efve", "\U0001f600"]
    config = {"long": "y" * 10000, "euro": "\u20ac" * 3000, "empty": "", "none": None, "list": [1, {"a": 2}],
              "lines": "a\nb\0c", "p@k": 1, "p_k": 2, "a//b": 3, "": 4, f"{far}1": 5, f"{far}2": 6, "nothing": {},
              **{f"k{number}": number for number in range(250)}}
    numbers = {"zero": 0, "negative": -0.5, "largest": 1.7976931348623157e308, "least": 5e-324, "whole": 2**53,
               "not finite": None}  # the engine writes null for NaN and infinite values
    with tempfile.TemporaryDirectory() as store, Server(Path(store)) as server:
        events = [{"config": config}, step(1, {name: 1.5 for name in names}), step(2, numbers),
                  step(3, {f"many/m{number}": number for number in range(2500)}),
                  *(step(number, {"train/loss": number / 7}) for number in range(1, 13))]
        run = feed(server, events, "unusual", [BUILD / "bin/hexad-mlflow"])
        told = {each["key"]: each["value"] for each in run["data"]["metrics"]}
        assert len(told) == len(names) + len(numbers) - 1 + 2500 + 1, len(told)
        for name in [*NAMES.values(), "na__ve", "____"]:
            assert told.get(name) == 1.5, (name, told.get(name))
        for name, value in numbers.items():
            assert told.get(name) == value, (name, told.get(name))
        assert all(told[f"many/m{number}"] == number for number in range(2500))

        values, pages = server.history(run["info"]["run_id"], "train/loss", page=5)
        assert pages == 3, pages
        assert sorted(values) == [(number, number / 7) for number in range(1, 13)], values

        got = {each["key"]: each["value"] for each in run["data"]["params"]}
        assert len(got) == len(config), sorted(got)
        assert got["long"] == "y" * 500 and re.fullmatch("\u20ac{166}", got["euro"]), got["euro"]
        assert (got["empty"], got["none"], got["nothing"], got["list"]) == ("", "null", "{}", '[1,{"a":2}]'), got
        assert (got["p_k"], got["p_k_2"], got["a/_b"], got["_"]) == ("1", "2", "3", "4"), got
        assert (got[far[:250]], got[far[:242] + "_2"]) == ("5", "6")
        assert all(got[f"k{number}"] == str(number) for number in range(250))
        stored = json.loads(server.artifact(run["info"]["run_id"], "config.json"))
        assert stored == config  # which holds all that parameters cannot
        print(f"unusual: {len(told)} metrics, {len(got)} parameters, {pages} pages of a history")


for each in sys.argv[1:] or ["run", "unusual", "library"]:
    {"run": check_run, "unusual": check_unusual, "library": check_library}[each]()
