"""What W&B, SwanLab, trackio and MLflow have stored of a run on this machine, read back without their help: each
function gives {step: {metric: value}} of all files below a folder, and how many runs they are of."""
import json
import sqlite3
import struct
import zlib
from pathlib import Path


def wandb(folder):
    """Offline files: records of wandb_internal.proto in a framing of LevelDB's."""
    from wandb.proto import wandb_internal_pb2 as proto
    steps, runs = {}, set()
    for file in sorted(folder.glob("wandb/offline-run-*/run-*.wandb")):
        for data in _records(file, b":W&B"):
            record = proto.Record.FromString(data)
            if record.HasField("run"):
                runs.add(record.run.run_id)
            if record.HasField("history"):
                row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
                step = row.pop("_step", record.history.step.num)
                steps.setdefault(step, {}).update(_plain(row))
    return steps, len(runs)


def swanlab(folder):
    """Offline files: records of SwanLab's record.proto in the same framing."""
    from swanlab.proto.swanlab.record.v1 import record_pb2 as proto
    steps, runs = {}, set()
    for file in sorted(folder.glob("run-*/run-*.swanlab")):
        runs.add(file.stem)
        for data in _records(file, b":SWL"):
            record = proto.Record.FromString(data)
            if record.HasField("scalar"):
                steps.setdefault(record.scalar.step, {})[record.scalar.key] = record.scalar.value.number
    return steps, len(runs)


def trackio(folder):
    """A table of SQLite."""
    steps, runs = {}, set()
    for file in folder.glob("*.db"):
        for run, step, metrics in sqlite3.connect(file).execute("select run_id, step, metrics from metrics"):
            runs.add(run)
            steps.setdefault(step, {}).update(_plain(json.loads(metrics)))
    return steps, len(runs)


def mlflow(folder):
    """A file a metric, a line a value: milliseconds, value, step."""
    steps, runs = {}, set()
    for file in folder.glob("*/*/metrics/**/*"):
        if file.is_dir():
            continue
        run = file.relative_to(folder).parts[1]
        runs.add(run)
        name = file.relative_to(folder / file.relative_to(folder).parts[0] / run / "metrics").as_posix()
        for line in file.read_text().splitlines():
            _, value, step = line.split()[:3]
            steps.setdefault(int(step), {})[name] = float(value)
    return steps, len(runs)


def _plain(row):
    """The metrics, without tables and what a library adds of itself."""
    return {name: value for name, value in row.items() if isinstance(value, (int, float)) and name[0] != "_"}


def _records(file, mark):
    """The data of each record of a log of LevelDB's, whose checksums are zlib's here. Raises where one is damaged."""
    block, header = 32768, 7
    data = Path(file).read_bytes()
    assert data[:4] == mark, f"{file}: not such a file"
    at, parts = header, []
    while at + header <= len(data):
        if block - at % block < header:  # no header fits: the rest of the block is empty
            at += block - at % block
            continue
        checksum, length, kind = struct.unpack("<IHB", data[at:at + header])
        part = data[at + header:at + header + length]
        assert zlib.crc32(part, zlib.crc32(bytes([kind]))) == checksum, f"{file}: damaged at {at}"
        parts.append(part)
        at += header + length
        if kind in (1, 4):  # whole, or the last part
            yield b"".join(parts)
            parts = []
