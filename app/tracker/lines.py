"""The lines that Hexad writes to a tracker (docs/trackers.md), handed to the methods that are named as their events."""
import json
import os
import sys


def follow(tracker):
    """Until the end of the run. One without a last line was killed: it gets an end with the status crashed."""
    events = _own_input()
    status = None
    for line in events:
        event = json.loads(line)
        status = event.get("status")
        handler = getattr(tracker, event["event"], None)  # an event of a later version is none of ours
        if handler:
            handler(event)
    if status is None:
        tracker.end({"event": "end", "status": "crashed"})


def numbers(metrics):
    """Those that are finite; others are null."""
    return {name: value for name, value in metrics.items() if value is not None}


def flat(config, prefix=""):
    """{"a": {"b": 1}} as {"a.b": 1}."""
    result = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[prefix + key] = value
    return result


def _own_input():
    """The events, out of reach of the processes that a library starts; what it prints goes to the log of the run."""
    events = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = sys.stderr
    return events
