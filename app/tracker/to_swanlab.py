"""Sends a run of Hexad to SwanLab: logger.swanlab_enabled. `logger.swanlab` holds arguments of swanlab.init."""
import os
import sys

sys.dont_write_bytecode = True
from lines import follow, numbers

import swanlab

STATES = {"finished": {}, "interrupted": {"state": "aborted"}}


class Tracker:
    def start(self, event):
        settings = dict(event["settings"])
        settings.setdefault("experiment_name", settings.pop("name", event["name"]))  # older ones have this name alone
        arguments = {"project": event["project"], "id": event["id"], "resume": "allow", "logdir": event["log_dir"],
                     "config": event["config"]}
        swanlab.init(**{**arguments, **settings})

    def step(self, event):
        swanlab.log(numbers(event["metrics"]), step=event["step"])

    def samples(self, event):
        texts = [swanlab.Text("\n\n".join(f"{name}: {value}" for name, value in zip(event["columns"], row)))
                 for row in event["rows"]]
        if texts:
            swanlab.log({f"samples/{event['name']}": texts}, step=event["step"])

    def artifact(self, event):
        if hasattr(swanlab, "save"):  # older ones keep no files
            swanlab.save(event["path"], base_path=os.path.dirname(event["path"]))

    def end(self, event):
        try:
            swanlab.finish(**STATES.get(event["status"], {"state": "crashed", "error": event["status"]}))
        except TypeError:  # older ones have no states
            swanlab.finish()


follow(Tracker())
