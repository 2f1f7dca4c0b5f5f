#!/usr/bin/env python3
"""Part 3 of the ABI gate: libabigail sees no difference between today's types and those of v1.<minor>.abi.

The types are taken from the debug information of libabi_probe.so, which has one function a type of the baseline. Any
exit status but 0 of abidiff stops the gate, harmless changes included; there are no suppressions. --update writes the
file, after check_prefix.py has said `same`.
"""

import pathlib
import sys
import tempfile

from check_prefix import require_same
from description import BASELINE, INCLUDE, die, read_baseline, run


def must(*command, stdin=""):
    status, out, errors = run(*command, stdin=stdin)
    if status != 0:
        die(f"{command[0]} failed with status {status}:\n{out}{errors}")


def build_probe(baseline, folder):
    source = "#include <hexad/abi.h>\n"
    for name in baseline["typedefs"]:
        source += f"void probe_{name}({name}* value) {{ (void)value; }}\n"
    library = folder / "libabi_probe.so"
    must("gcc", "-x", "c", "-std=c11", "-g", "-O0", "-shared", "-fPIC", "-I", INCLUDE,
         "-DHEXAD_TARGET_MINOR=HEXAD_ABI_MINOR", "-o", library, "-", stdin=source)
    return library


def dump(library, path):
    # No folders of the machine that it was made on.
    must("abidw", "--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--out-file", path, library)


def main():
    update = "--update" in sys.argv[1:]
    baseline = require_same() if update else read_baseline()
    expected = BASELINE.parent / f"v1.{baseline['minor']}.abi"
    with tempfile.TemporaryDirectory() as folder:
        library = build_probe(baseline, pathlib.Path(folder))
        if update:
            dump(library, expected)
        if not expected.exists():
            die(f"{expected} is missing; run check_abidiff.py --update")
        must("abidiff", "--harmless", "--fail-no-debug-info", expected, library)
    print(f"abidiff: {len(baseline['typedefs'])} types are those of {expected.name}")


if __name__ == "__main__":
    main()
