"""Sends a run of Hexad to Weights & Biases: logger.wandb_enabled. `logger.wandb` holds arguments of wandb.init."""
import sys

sys.dont_write_bytecode = True
from lines import follow, numbers

import wandb

EXIT_CODES = {"finished": 0, "interrupted": 130}


class Tracker:
    def start(self, event):
        settings = dict(event["settings"])
        settings.pop("log_nemo_gym_full_result_tables", None)  # NeMo-RL's own
        arguments = {"project": event["project"], "name": event["name"], "id": event["id"], "resume": "allow",
                     "dir": event["log_dir"], "config": event["config"]}
        self.run = wandb.init(**{**arguments, **settings})

    def step(self, event):
        self.run.log(numbers(event["metrics"]), step=event["step"])

    def samples(self, event):
        table = wandb.Table(columns=event["columns"], data=event["rows"], allow_mixed_types=True)
        self.run.log({f"samples/{event['name']}": table}, step=event["step"])

    def artifact(self, event):
        artifact = wandb.Artifact(f"{event['name']}-{self.run.id}", type=event["name"])
        artifact.add_file(event["path"])
        self.run.log_artifact(artifact)

    def end(self, event):
        self.run.finish(exit_code=EXIT_CODES.get(event["status"], 1))


follow(Tracker())
