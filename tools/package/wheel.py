#!/usr/bin/env python3
"""Makes the wheel of a staged tree (tools/package/stage.sh): nothing is compiled, and nothing of it is Python. bin/
becomes scripts, all else data, so that pip gives it the layout of every installation: bin, lib and share of a prefix.

usage: tools/package/wheel.py STAGE OUT_DIR
Takes away what OUT_DIR has of other versions, and prints the file's name. Its platform follows from the newest glibc
that a file of it wants, at least 2.35; what wants more than that is told on standard error.
"""
import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LEAST = 35  # of glibc 2.x: Ubuntu 22.04's
DESCRIPTION = """\
Hexad trains language models with reinforcement learning: an engine in C++20 that reads NeMo-RL's YAML. `hexad train
quickstart` trains a tiny model on a CPU. LibTorch is that of the wheel torch, whose own requirements for GPUs are
2.7 GB; no Python runs. glibc 2.35 is needed (Ubuntu 22.04, Debian 12); RHEL 9 has 2.34, and is not served.
"""


def pinned(name):
    return re.search(rf"^{name}==(\S+)", (ROOT / "tools/wheels.txt").read_text(), re.M)[1]


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def newest_glibc(stage):
    """The second number of the newest glibc whose symbols a file wants."""
    newest = 0
    for path in sorted(each for each in stage.rglob("*") if each.is_file() and is_elf(each)):
        symbols = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        for minor, name in set(re.findall(r"\(?GLIBC_2\.(\d+)[.\d]*\)? +(\S+)$", symbols, re.M)):
            newest = max(newest, int(minor))
            if int(minor) > LEAST:
                print(f"wheel: {path.relative_to(stage)} wants {name} of glibc 2.{minor}", file=sys.stderr)
    return newest


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: hexad\nVersion: {version}\nSummary: RL post-training for language models\n"
            f"License: Apache-2.0\nRequires-Python: >=3.10\nRequires-Dist: torch=={pinned('torch')}\n"
            f"Requires-Dist: pyarrow=={pinned('pyarrow')}\nDescription-Content-Type: text/plain\n\n{DESCRIPTION}")


class Wheel:
    """Files in order, of one time and with their permissions, and the record of them."""

    def __init__(self, file):
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.record = []

    def add(self, name, content, executable=False):
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, info):
        self.record.append(f"{info}/RECORD,,")
        entry = zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0))
        entry.external_attr = 0o100644 << 16
        self.zip.writestr(entry, "\n".join(self.record) + "\n")
        self.zip.close()


def main():
    if len(sys.argv) != 3:
        sys.exit("wheel: wanted STAGE OUT_DIR")
    stage, out = Path(sys.argv[1]), Path(sys.argv[2])
    version = (ROOT / "sdk/VERSION").read_text().strip()
    tag = f"py3-none-manylinux_2_{max(LEAST, newest_glibc(stage))}_x86_64"
    base, file = f"hexad-{version}", out / f"hexad-{version}-{tag}.whl"
    out.mkdir(parents=True, exist_ok=True)
    for other in out.glob("hexad-*.whl"):
        other.unlink()
    wheel = Wheel(file)
    for path in sorted(each for each in stage.rglob("*") if each.is_file()):
        part = path.relative_to(stage)
        place = "scripts/" + part.name if part.parts[0] == "bin" else f"data/{part}"
        wheel.add(f"{base}.data/{place}", path.read_bytes(), bool(path.stat().st_mode & 0o100))
    info = f"{base}.dist-info"
    wheel.add(f"{info}/METADATA", metadata(version).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: hexad\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close(info)
    print(file)


if __name__ == "__main__":
    main()
