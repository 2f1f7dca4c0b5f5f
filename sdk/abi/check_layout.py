#!/usr/bin/env python3
"""Part 2 of the ABI gate: every field lies where the baseline says, for every compiler, language and machine.

Compiles include/hexad/abi_layout.h, which --update writes from the baseline: offsets follow from natural alignment,
which x86-64 and aarch64 share (LP64). They are computed here and confirmed by the compilers.
"""

import itertools
import sys

from check_prefix import require_same
from description import INCLUDE, die, read_baseline, run

HEADER = INCLUDE / "hexad/abi_layout.h"
SIZES = {"int32_t": 4, "uint32_t": 4, "float": 4, "int64_t": 8, "uint64_t": 8, "double": 8}

TOP = """\
/* Where every field of the ABI lies, x86-64 and aarch64. Generated from sdk/abi/v1.json by check_layout.py --update. */
/* clang-format off */
#ifndef HEXAD_ABI_LAYOUT_H_
#define HEXAD_ABI_LAYOUT_H_

#include <hexad/abi.h>

#ifndef __LP64__
#error "the Hexad ABI is for LP64 machines: 64-bit long and pointers"
#endif
#ifdef __cplusplus
#define HEXAD_ASSERT_(condition, text) static_assert(condition, text)
#else
#define HEXAD_ASSERT_(condition, text) _Static_assert(condition, text)
#endif
#define HEXAD_FIELD_(type, field, offset, size)                                                       \\
  HEXAD_ASSERT_(offsetof(type, field) == (offset) && sizeof(((type*)0)->field) == (size), #type "." #field " moved")
#define HEXAD_SIZE_(type, size) HEXAD_ASSERT_(sizeof(type) == (size), #type " has another size")
"""
BOTTOM = """
#undef HEXAD_SIZE_
#undef HEXAD_FIELD_
#undef HEXAD_ASSERT_
#endif  /* HEXAD_ABI_LAYOUT_H_ */
"""


def size_and_alignment(spelled, typedefs):
    if "*" in spelled:
        return 8, 8
    if spelled == "DLDataType":
        return 4, 2
    if spelled in typedefs:
        return size_and_alignment(typedefs[spelled], typedefs)
    if spelled not in SIZES:
        die(f"type {spelled} has no fixed size and alignment; the ABI has {', '.join(SIZES)}, pointers and DLDataType")
    return SIZES[spelled], SIZES[spelled]


def round_up(offset, alignment):
    return -(-offset // alignment) * alignment


def struct_lines(name, fields, baseline):
    """One assertion a field and one for the whole, under the minor in which they came."""
    offset, widest, newest = 0, 1, 0
    for field, spelled in fields.items():
        since = baseline["since"].get(f"{name}.{field}", 0)
        size, alignment = size_and_alignment(spelled, baseline["typedefs"])
        offset = round_up(offset, alignment)
        yield since, f"HEXAD_FIELD_({name}, {field}, {offset}, {size});"
        offset, widest, newest = offset + size, max(widest, alignment), max(newest, since)
    if offset != round_up(offset, widest):
        die(f"{name} ends in padding, where a later field could hide; name it `reserved`")
    yield newest, f"HEXAD_SIZE_({name}, {offset});"


def generate(baseline):
    text = TOP
    for name, fields in baseline["structs"].items():
        text += "\n"
        for since, lines in itertools.groupby(struct_lines(name, fields, baseline), key=lambda line: line[0]):
            body = "".join(f"{line}\n" for _, line in lines)
            text += f"#if HEXAD_TARGET_MINOR >= {since}\n{body}#endif\n" if since else body
    return text + BOTTOM


def compilers():
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    yield "gcc", *strict
    yield "clang", *strict
    # Without an aarch64 libc: stdint.h and stddef.h are the compiler's own.
    yield "clang", "--target=aarch64-linux-gnu", "-ffreestanding", "-nostdlibinc", *strict


def main():
    if "--update" in sys.argv[1:]:
        HEADER.write_text(generate(require_same()))
    baseline = read_baseline()
    if not HEADER.exists() or HEADER.read_text() != generate(baseline):
        die(f"{HEADER} is not what the baseline gives; run check_layout.py --update")
    languages = [("c", "c11"), ("c", "c17"), ("c++", "c++17"), ("c++", "c++20")]
    targets = range(baseline["minor"] + 1)
    count = 0
    for compiler, (language, standard), target in itertools.product(compilers(), languages, targets):
        command = [*compiler, "-x", language, f"-std={standard}", f"-DHEXAD_TARGET_MINOR={target}", "-I", INCLUDE, "-"]
        status, _, errors = run(*command, stdin="#include <hexad/abi_layout.h>\n")
        if status != 0:
            die(f"{' '.join(map(str, command))} refuses abi_layout.h:\n{errors}")
        count += 1
    print(f"layout: {len(baseline['structs'])} structs, {count} compilations agree")


if __name__ == "__main__":
    main()
