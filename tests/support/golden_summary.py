"""Prints how many cases of each golden file were visited and which files nothing reads; fails at zero cases."""
import os
import pathlib
import sys

root = pathlib.Path(os.environ.get("HEXAD_GOLDEN_DIR") or pathlib.Path(os.environ["HEXAD_SOURCE_DIR"]) / "tests/golden")
counts = {}
report = pathlib.Path(sys.argv[1]) / "counts.txt"
for line in report.read_text().splitlines() if report.exists() else []:
    name, cases = line.rsplit(" ", 1)
    counts[name] = counts.get(name, 0) + int(cases)
files = {str(p.relative_to(root).with_suffix("")) for p in root.glob("*.json")}
files |= {str(p.relative_to(root).with_suffix("")) for p in root.glob("tokenizers/*.json")}
files |= {str(p.parent.relative_to(root)) for p in root.glob("models/*/cases.json")}
for name in sorted(counts):
    print(f"{counts[name]:6d} cases  {name}")
print(f"{sum(counts.values()):6d} cases in {len(counts)} files")
print("read by nothing yet:", ", ".join(sorted(files - set(counts))) or "none")
sys.exit(0 if counts and min(counts.values()) > 0 else 1)
