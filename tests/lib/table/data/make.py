#!/usr/bin/env python3
"""Writes the files beside it: the same rows in each container, by pyarrow 26.0.1, datasets 5.2.0 and pandas 3.

usage: make.py   (in an environment with pyarrow, datasets and zstandard)
rows.jsonl, typed.jsonl and flat.jsonl say what the rows are, by Python's json.
"""
import datetime
import decimal
import gzip
import json
import os
import shutil
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

HERE = Path(__file__).resolve().parent
ROWS = [
    {"prompt": "1+1?", "answer": "2", "id": 7, "score": 0.5, "ok": True,
     "messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}],
     "meta": {"level": 1, "tags": ["a", "b"]}, "none": None},
    {"prompt": "größer?\n\t\"ja\" \\ 日本 🙂\u0001", "answer": None, "id": -9007199254740993, "score": 1e-07, "ok": False,
     "messages": [], "meta": {"level": None, "tags": []}, "none": None},
    {"prompt": "", "answer": "x" * 300, "id": 9223372036854775807, "score": 1e16, "ok": None,
     "messages": [{"role": "user", "content": None}], "meta": None, "none": None},
    {"prompt": "last", "answer": "4", "id": 0, "score": 123456.0, "ok": True,
     "messages": None, "meta": {"level": 2, "tags": None}, "none": None},
]
SCHEMA = pa.schema([("prompt", pa.string()), ("answer", pa.string()), ("id", pa.int64()), ("score", pa.float64()),
                    ("ok", pa.bool_()),
                    ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
                    ("meta", pa.struct([("level", pa.int32()), ("tags", pa.list_(pa.string()))])),
                    ("none", pa.null())])
FLAT = [("q", "a", "n", "x", "ok", "zip", "mixed"), ("1+1?", "2", "1", "1.10", "True", "007", "1"),
        ("say \"a, b\"\nthen", "", "-20", "1e5", "False", "12", "x"), ("tab\tbed ü", "yes", "", "3", "", "8", "")]


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def pack(name):
    data = (HERE / name).read_bytes()
    (HERE / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))
    (HERE / f"{name}.zst").write_bytes(zstandard.compress(data))


def write_ipc(name, table, make, **options):
    with make(str(HERE / name), table.schema, **options) as writer:
        for batch in table.to_batches(max_chunksize=3):
            writer.write_batch(batch)


def write_rows():
    (HERE / "rows.jsonl").write_bytes(lines(ROWS))
    (HERE / "rows.json").write_text(json.dumps(ROWS, indent=1))
    pack("rows.jsonl")
    pack("rows.json")
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    pq.write_table(table, HERE / "rows.parquet", row_group_size=3)
    pq.write_table(table, HERE / "zstd.parquet", compression="zstd", use_dictionary=False, data_page_version="2.0")
    write_ipc("stream.arrow", table, pa.ipc.new_stream)
    write_ipc("file.arrow", table, pa.ipc.new_file)
    for codec in ("lz4", "zstd"):
        write_ipc(f"{codec}.arrow", table, pa.ipc.new_file, options=pa.ipc.IpcWriteOptions(compression=codec))
    os.makedirs(HERE / "hub/data")
    for part in range(2):
        pq.write_table(table.slice(2 * part, 2), HERE / f"hub/data/train-0000{part}-of-00002.parquet")
    pq.write_table(table.slice(3), HERE / "hub/data/test-00000-of-00001.parquet")
    rows = datasets.Dataset(table)
    rows.save_to_disk(HERE / "saved", num_shards=2)
    datasets.DatasetDict({"train": rows, "test": rows.select([3])}).save_to_disk(HERE / "saved_splits")


# Types that JSON has none for, and others of those that it has.
def write_typed():
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)
    columns = {
        "large": (pa.large_string(), ["a", "ü"], None), "view": (pa.string_view(), ["a", "a text of thirteen"], None),
        "coded": (pa.dictionary(pa.int8(), pa.string()), ["red", "red"], None),
        "bytes": (pa.binary(), [b"plain", b""], ["plain", ""]),
        "i8": (pa.int8(), [-128, 127], None), "u64": (pa.uint64(), [2**64 - 1, 0], None),
        "f32": (pa.float32(), [0.5, 0.1], [0.5, 0.10000000149011612]), "f16": (pa.float16(), [1.5, -2.0], None),
        "nan": (pa.float64(), [float("nan"), float("-inf")], [None, None]),
        "real": (pa.float64(), [-0.0, 1e-05], None), "huge": (pa.float64(), [1.7976931348623157e308, 5e-324], None),
        "us": (pa.timestamp("us"), [moment, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)], [1704164645678, -1]),
        "utc": (pa.timestamp("s", tz="UTC"), [moment, datetime.datetime(1970, 1, 1)], [1704164645000, 0]),
        "day": (pa.date32(), [moment.date(), datetime.date(1969, 12, 31)], [1704153600000, -86400000]),
        "money": (pa.decimal128(9, 2), [decimal.Decimal("1.10"), None], ["1.10", None]),
        "big_list": (pa.large_list(pa.int64()), [[1, None], []], None),
        "json": (pa.json_(), ['{"a": [1, null],\n"ü": "1"}', "{no"], [{"a": [1, None], "ü": "1"}, "{no"]),
        "pair": (pa.list_(pa.int64(), 2), [[1, 2], [3, 4]], None),
        "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], []], [[["a", 1], ["b", None]], []]),
        "deep": (pa.list_(pa.list_(pa.struct([("x", pa.list_(pa.int8()))]))), [[[{"x": [1]}], []], None], None),
    }
    table = pa.table({name: pa.array(values, kind) for name, (kind, values, _) in columns.items()})
    rows = [{name: (values if said is None else said)[i] for name, (_, values, said) in columns.items()}
            for i in range(2)]
    (HERE / "typed.jsonl").write_bytes(lines(rows))
    pq.write_table(table, HERE / "typed.parquet")
    write_ipc("typed.arrow", table, pa.ipc.new_stream)


def write_flat():
    def cell(text):
        return '"' + text.replace('"', '""') + '"' if set(text) & set('",\n\t') else text
    for name, comma in (("flat.csv", ","), ("flat.tsv", "\t")):
        (HERE / name).write_text("".join(comma.join(map(cell, row)) + "\n" for row in FLAT))
        pack(name)
    said = {"True": "true", "False": "false", "": "null"}
    written = ("n", "x", "ok")  # numbers and truth values in every row: as they are written
    (HERE / "flat.jsonl").write_text("".join("{" + ", ".join(
        f'"{name}": ' + (said.get(text, text) if name in written or text == "" else json.dumps(text))
        for name, text in zip(FLAT[0], row)) + "}\n" for row in FLAT[1:]))


# Rows enough for several row groups, batches and epochs, in letters that every tokenizer of the tests has.
def write_many():
    os.makedirs(HERE / "many")
    letters = "abcdefgh"
    rows = [{"question": "".join(letters[i >> shift & 7] for shift in (6, 3, 0)) * (1 + i % 3),
             "answer": letters[i % 8]}
            for i in range(200)]
    (HERE / "many/rows.jsonl").write_bytes(lines(rows))
    (HERE / "many/rows.json").write_text(json.dumps(rows))
    for name, comma in (("rows.csv", ","), ("rows.tsv", "\t")):
        (HERE / "many" / name).write_text(
            "".join(comma.join(row) + "\n" for row in [list(rows[0])] + [list(row.values()) for row in rows]))
    for name in ("rows.jsonl", "rows.json", "rows.csv", "rows.tsv"):
        pack(f"many/{name}")
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, HERE / "many/rows.parquet", row_group_size=30)
    with pa.ipc.new_stream(str(HERE / "many/rows.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=30)


# Row groups of more rows than are decoded together, by pages of a few rows: lists of as many as the row's number says.
def write_large_groups():
    numbers = range(2600)
    table = pa.table({"number": pa.array(numbers, pa.int64()),
                      "list": pa.array([None if i % 11 == 0 else [i] * (i % 4) for i in numbers], pa.list_(pa.int64())),
                      "text": pa.array(["abcdefgh"[i % 8] * (i % 5) for i in numbers])})
    pq.write_table(table, HERE / "large_groups.parquet", row_group_size=1300, compression="zstd", data_page_size=512,
                   use_dictionary=["text"])


def write_refused():
    os.makedirs(HERE / "refused")
    pq.write_table(pa.table({"a": pa.array([datetime.timedelta(seconds=1)])}), HERE / "refused/duration.parquet")
    pq.write_table(pa.table({"a": pa.array([b"\xff\xfe"])}), HERE / "refused/bytes.parquet")
    latin1 = pa.array([b"plain", "M\u00fcll".encode("latin-1")]).view(pa.string())
    messages = pa.ListArray.from_arrays([0, 1, 2], pa.StructArray.from_arrays([latin1], ["content"]))
    pq.write_table(pa.table({"messages": messages}), HERE / "refused/latin1.parquet")
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), HERE / "refused/twice.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.string())}), HERE / "refused/no_rows.parquet")
    write_ipc("refused/union.arrow", pa.table({"a": pa.UnionArray.from_sparse(
        pa.array([0], pa.int8()), [pa.array([1])])}), pa.ipc.new_stream)


def main():
    for entry in HERE.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != "make.py":
            entry.unlink()
    write_rows()
    write_typed()
    write_flat()
    write_many()
    write_large_groups()
    write_refused()


if __name__ == "__main__":
    main()
