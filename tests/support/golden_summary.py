"""Prints how many cases of each golden file ran, and what no test ran or read, by name; fails if nothing ran.

    golden_summary.py REPORT

REPORT is the folder in which the tests note the cases that they ran (tests/support/golden.cpp). What is left over also
goes into the folder HEXAD_TEST_REPORT as skipped, for the end of `make test` (tools/test_report.sh).
"""
import collections
import json
import os
import pathlib
import sys

root = pathlib.Path(os.environ.get("HEXAD_GOLDEN_DIR") or pathlib.Path(os.environ["HEXAD_SOURCE_DIR"]) / "tests/golden")


def cases_noted(report):
    """The names of the cases that ran and of those that were skipped, by file, and the files that tests know. Models
    have cases without names."""
    noted, known = {"ran": collections.defaultdict(list), "skipped": collections.defaultdict(list)}, set()
    for path in sorted(report.glob("*")):
        for line in path.read_text().splitlines():
            name, *case = line.split("\t")
            known.add(name)
            if case:
                noted[case[1]][name].append(case[0])
    return noted["ran"], noted["skipped"], known


def cases_left(path, seen):
    """The cases of a file that no test has seen, by name; `part/ (number)` where none of a first part did."""
    by_part = collections.defaultdict(list)
    for case in json.loads(path.read_text())["cases"]:
        by_part[case["name"].split("/")[0]].append(case["name"])
    left = []
    for part, names in by_part.items():
        rest = [name for name in names if name not in seen]
        whole = len(rest) == len(names) > 1
        left += [f"{part}/ ({len(rest)})"] if whole else rest
    return left


def files_left(folder, is_read):
    """(name, number of files) of the files below `folder` that no test reads, a folder of them by its own name."""
    left = []
    for path in sorted(folder.iterdir()):
        if is_read(path) or path.name == "README.md":
            continue
        below = files_left(path, is_read) if path.is_dir() else [(path, 1)]
        total = sum(1 for p in path.rglob("*") if p.is_file()) if path.is_dir() else 1
        left += [(path, total)] if sum(count for _, count in below) == total > 0 else below
    return left


def main(report):
    ran, skipped, known = cases_noted(report)
    for name in sorted(ran):
        print(f"{len(ran[name]):6d} cases  {name}")
    print(f"{sum(map(len, ran.values())):6d} cases in {len(ran)} files")
    lines = []
    for name in sorted(ran):
        seen = {*ran[name], *skipped[name]}
        if (path := root / f"{name}.json").exists() and (left := cases_left(path, seen)):
            lines.append(f"{name}: no test runs {', '.join(left)}")
    read = {root / name for name in known} | {root / f"{name}.json" for name in known}
    for path, count in files_left(root, lambda path: path in read):
        name = path.relative_to(root)
        lines.append(f"{name}/ ({count} files): no test reads it" if path.is_dir() else f"{name}: no test reads it")
    for line in lines:
        print("left:", line)
    if folder := os.environ.get("HEXAD_TEST_REPORT"):
        os.makedirs(folder, exist_ok=True)
        pathlib.Path(folder, "golden_summary").write_text("".join(f"skipped\tgolden: {line}\n" for line in lines))
    return 0 if ran else 1


sys.exit(main(pathlib.Path(sys.argv[1])))
