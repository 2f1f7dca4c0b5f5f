"""Keeps a run of Hexad in trackio: logger.trackio_enabled. `logger.trackio` holds arguments of trackio.init."""
import sys

sys.dont_write_bytecode = True
from lines import follow, numbers

import trackio


class Tracker:
    def start(self, event):
        # It knows runs by their names: one that begins is a new one, whatever its name.
        arguments = {"project": event["project"], "name": event["name"], "config": event["config"],
                     "resume": "allow" if event["resumed_at"] else "never", "embed": False}
        trackio.init(**{**arguments, **event["settings"]})

    def step(self, event):
        trackio.log(numbers(event["metrics"]), step=event["step"])

    def samples(self, event):
        table = trackio.Table(columns=event["columns"], data=event["rows"])
        trackio.log({f"samples/{event['name']}": table}, step=event["step"])

    def artifact(self, event):
        if hasattr(trackio, "log_artifact"):  # older ones keep no files
            trackio.log_artifact(event["path"], type=event["name"])

    def end(self, event):
        trackio.finish()


follow(Tracker())
