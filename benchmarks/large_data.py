#!/usr/bin/env python3
"""Data larger than memory: what the controller holds, and how long a run takes to its first step.

  benchmarks/large_data.py [--hexad build/dev/bin/hexad] [--dir results/large_data] [--forms parquet,jsonl]
                           [--rows 5000,5000000] [--row-group 10000] [--turns 3] [--keep]

Trains configs/quickstart.yaml (the controller, a worker, the smallest model) for two steps on rows that it makes with
pyarrow: folders of ten files, about 200 bytes a row. Prints for each form and size the median of the seconds from the
start of the program to the first line of metrics.jsonl, and the most of RssAnon of the controller until then, of runs
in turns. The first run of a form and size is told apart: where rows are written into the cache, it does so (the cache
lies in --dir, and is empty at first). Every container has to give the same losses as the others of its size.
--row-group 0 leaves the size of row groups to pyarrow.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

LETTERS = "abcdefgh"
FILES = 10


def table(begin, end):
    """Rows whose question is their number, in letters."""
    numbers = pa.array(range(begin, end), pa.uint64())
    letters = pa.array(LETTERS)

    def text(values, length):
        digits = [pc.bit_wise_and(pc.shift_right(values, pa.scalar(3 * place, pa.uint64())), pa.scalar(7, pa.uint64()))
                  for place in range(length)]
        return pc.binary_join_element_wise(*[letters.take(digit) for digit in digits], "")
    mixed = pc.multiply(numbers, pa.scalar(0x9E3779B97F4A7C15, pa.uint64()))
    return pa.table({"question": text(numbers, 8), "answer": text(numbers, 1),
                     "note": pc.binary_repeat(text(mixed, 21), 7), "number": numbers})


def write(rows, form, file, options):
    if form == "parquet":
        pq.write_table(rows, file, row_group_size=options.row_group or None)
    elif form == "arrow":
        with pa.ipc.new_file(str(file), rows.schema) as writer:
            writer.write_table(rows, max_chunksize=10_000)
    elif form == "csv":
        pa.csv.write_csv(rows, file)
    else:
        columns = [rows["question"], rows["answer"], rows["note"], rows["number"].cast(pa.string())]
        names = ['{"question": "', '", "answer": "', '", "note": "', '", "number": ']
        texts = pc.binary_join_element_wise(*[each for pair in zip(names, columns) for each in pair], "}\n", "")
        with open(file, "wb") as out:
            for chunk in texts.chunks:
                out.write(chunk.buffers()[2])


def make(options, forms, count):
    """Folders of these rows by form."""
    folders = {form: pathlib.Path(options.dir).absolute() / f"{form}_{count}" for form in forms}
    for folder in folders.values():
        folder.mkdir(parents=True)
    for part in range(FILES):
        rows = table(part * count // FILES, (part + 1) * count // FILES)
        for form, folder in folders.items():
            write(rows, form, folder / f"train-{part:05}-of-{FILES:05}.{form}", options)
    return folders


def anonymous_bytes(process):
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    return 0


def processor_seconds(process):
    """What the controller has computed so far, which tells more than time does on a busy machine."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(options, data):
    """Of the first step: seconds to it, most anonymous bytes of the controller until then, its processor seconds; what
    both steps came to."""
    folder = pathlib.Path(options.dir).absolute() / "run"
    shutil.rmtree(folder, ignore_errors=True)
    metrics = folder / "logs/exp_001/metrics.jsonl"
    command = [options.hexad, "train", "configs/quickstart.yaml", "cluster.device=cpu", "grpo.max_num_steps=2",
               "grpo.val_period=0", "grpo.val_at_start=false", "grpo.val_at_end=false", "checkpointing.enabled=false",
               f"logger.log_dir={folder / 'logs'}",
               f"data.train={{dataset_name: rows, data_path: {data}, env_name: exact_answer}}"]
    environment = {**os.environ, "HEXAD_CACHE": str(pathlib.Path(options.dir).absolute() / "cache")}
    most, computed, begin = 0, 0, time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not (metrics.exists() and b"\n" in metrics.read_bytes()):
            most, computed = max(most, anonymous_bytes(process.pid)), processor_seconds(process.pid)
            time.sleep(0.002)
        seconds = time.monotonic() - begin
        said = process.communicate()[1]
    if process.returncode != 0:
        raise SystemExit(said.decode())
    steps = [json.loads(line) for line in metrics.read_text().splitlines()]
    names = ("reward", "loss", "grad_norm")
    return seconds, most, computed, [[step[f"train/{name}"] for name in names] for step in steps]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hexad", default="build/dev/bin/hexad")
    parser.add_argument("--dir", default="results/large_data")
    parser.add_argument("--forms", default="parquet,jsonl")
    parser.add_argument("--rows", default="5000,5000000")
    parser.add_argument("--row-group", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="leave the rows in --dir")
    options = parser.parse_args()
    forms, counts = options.forms.split(","), [int(count) for count in options.rows.split(",")]
    shutil.rmtree(options.dir, ignore_errors=True)
    folders = {count: make(options, forms, count) for count in counts}
    results = {}
    for _ in range(options.turns + 1):
        for count in counts:
            for form in forms:
                results.setdefault((form, count), []).append(run(options, folders[count][form]))
    for count in counts:
        losses = [each[3] for form in forms for each in results[form, count]]
        if any(each != losses[0] for each in losses):
            raise SystemExit(f"{count} rows: runs differ: {losses}")
    for form in forms:
        for count in counts:
            first, *others = results[form, count]
            size = sum(file.stat().st_size for file in folders[count][form].iterdir())
            seconds = statistics.median(each[0] for each in others)
            print(f"{form:8} {count:>9,} rows {size / 1e6:7.1f} MB: first step after {seconds:.2f} s "
                  f"({' '.join(f'{each[0]:.2f}' for each in others)}; the first run {first[0]:.2f} s), "
                  f"of the controller {statistics.median(each[2] for each in others):.2f} s of a processor, "
                  f"RssAnon {max(each[1] for each in results[form, count]) / 1e6:.0f} MB")
    if not options.keep:
        shutil.rmtree(options.dir)


if __name__ == "__main__":
    main()
