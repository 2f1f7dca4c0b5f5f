"""Sends a run of Hexad to MLflow: logger.mlflow_enabled. `logger.mlflow`: experiment_name, run_name, tracking_uri,
artifact_location. The packages mlflow and mlflow-skinny both do."""
import re
import sys

sys.dont_write_bytecode = True
from lines import flat, follow, numbers

import mlflow

STATES = {"finished": "FINISHED", "interrupted": "KILLED"}
RUN_ID = "hexad.run_id"  # the tag by which a resumed run is found
MOST_NAME = 250
MOST_TEXT = 500  # of a parameter: servers before 2.8 refuse more


class Tracker:
    def start(self, event):
        settings = event["settings"]
        if settings.get("tracking_uri"):
            mlflow.set_tracking_uri(settings["tracking_uri"])
        self.client = mlflow.MlflowClient()
        experiment = self.client.get_experiment_by_name(event["project"])
        where = experiment.experiment_id if experiment else self.client.create_experiment(
            event["project"], artifact_location=settings.get("artifact_location"))
        known = self.client.search_runs([where], filter_string=f"tags.`{RUN_ID}` = '{event['id']}'")
        if known:
            self.run = known[0].info.run_id
            self.client.update_run(self.run, status="RUNNING")
            return
        self.run = self.client.create_run(where, run_name=event["name"], tags={RUN_ID: event["id"]}).info.run_id
        parameters = _parameters(event["config"])
        for at in range(0, len(parameters), 100):  # as many as a request may have
            self.client.log_batch(self.run, params=parameters[at:at + 100])
        self.client.log_dict(self.run, event["config"], "config.json")

    def step(self, event):
        milliseconds = int(event["time"] * 1000)
        metrics = [mlflow.entities.Metric(_name(_beside(key, event["metrics"])), value, milliseconds, event["step"])
                   for key, value in numbers(event["metrics"]).items()]
        for at in range(0, len(metrics), 1000):
            self.client.log_batch(self.run, metrics=metrics[at:at + 1000])

    def samples(self, event):
        table = {"columns": event["columns"], "data": event["rows"]}  # as MLflow's own tables are stored
        self.client.log_dict(self.run, table, f"samples/{event['name']}_step{event['step']:06}.json")

    def artifact(self, event):
        self.client.log_artifact(self.run, event["path"])

    def end(self, event):
        self.client.set_terminated(self.run, status=STATES.get(event["status"], "FAILED"))


def _beside(key, metrics):
    """a/b.c of the metric a/b/c where a/b is one too: in a store of files none can lie below another."""
    name = key
    for at, character in enumerate(key):
        if character == "/" and key[:at] in metrics:
            name = name[:at] + "." + name[at + 1:]
    return name


def _name(key):
    """MLflow takes these characters in names of metrics and parameters, and no others. A name is a path to it, which
    may not be written in two ways: an empty part, as in a//b, has _ for a slash, and ./ or ../ for the dots."""
    name = re.sub(r"[^\w\-. /]", "_", key[:MOST_NAME])
    name = re.sub(r"(?<![^/])(\.\.|\.(?=/|$))", lambda dots: "_" * len(dots[0]), name)
    return re.sub(r"^/|(?<=/)/|/$", "_", name) or "_"


def _parameters(config):
    """No name twice: such a request is refused as a whole."""
    named = {}
    for key, value in flat(config).items():
        name, number = _name(key), 2
        while name in named:
            name, number = f"{_name(key)[:MOST_NAME - 8]}_{number}", number + 1
        named[name] = mlflow.entities.Param(name, str(value)[:MOST_TEXT])
    return list(named.values())


follow(Tracker())
