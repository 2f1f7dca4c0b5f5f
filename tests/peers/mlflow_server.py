"""A real server of MLflow on a free port of this machine, with a store of SQLite, and what it answers by REST."""
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

START_S = 300


class Server:
    """With `with`. Its folder has the store, the artifacts and the log."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self.log = folder / "server.log"
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port),
                   "--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/store.db", "--artifacts-destination",
                   f"{folder}/artifacts"]
        quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **quiet}, cwd=folder,
                                            start_new_session=True)

    def __enter__(self):
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=5):
                    return self
            except OSError:
                time.sleep(0.2)
        self.__exit__()
        raise AssertionError(f"no server of MLflow within {START_S} s:\n{self.log.read_text()[-3000:]}")

    def __exit__(self, *_):
        """The whole session: the server has workers."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def get(self, path, /, **query):
        return json.loads(self._read(f"/api/2.0/mlflow/{path}?{urllib.parse.urlencode(query)}"))

    def post(self, path, body):
        return json.loads(self._read(f"/api/2.0/mlflow/{path}", json.dumps(body).encode()))

    def artifact(self, run, path):
        """The bytes of a file."""
        return self._read("/get-artifact?" + urllib.parse.urlencode({"run_uuid": run, "path": path}))

    def artifacts(self, run, path=""):
        """The paths of the files in a folder and below."""
        found = []
        for each in self.get("artifacts/list", run_id=run, path=path).get("files", []):
            found += self.artifacts(run, each["path"]) if each["is_dir"] else [each["path"]]
        return found

    def runs(self, experiment):
        """Those of an experiment by its name; [] where there is none."""
        try:
            known = self.get("experiments/get-by-name", experiment_name=experiment)
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            return []
        ids = [known["experiment"]["experiment_id"]]
        return self.post("runs/search", {"experiment_ids": ids, "max_results": 100}).get("runs", [])

    def history(self, run, metric, page=1000):
        """Its values as (step, value), in pages of so many, and how many pages these were."""
        values, token, pages = [], None, 0
        while token is not None or pages == 0:
            more = {"page_token": token} if token else {}
            answer = self.get("metrics/get-history", run_id=run, metric_key=metric, max_results=page, **more)
            values += [(int(each.get("step", 0)), float(each["value"])) for each in answer.get("metrics", [])]
            token, pages = answer.get("next_page_token") or None, pages + 1
        return values, pages

    def _read(self, path, body=None):
        request = urllib.request.Request(self.uri + path, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()
