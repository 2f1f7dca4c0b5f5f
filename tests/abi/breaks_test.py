"""The gate tested on itself: every kind of change to the header is stopped, by the parts that are meant to see it."""

import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import typing
import unittest

SOURCE = pathlib.Path(os.environ["HEXAD_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["HEXAD_BUILD_DIR"])


class Change(typing.NamedTuple):
    name: str
    edits: list  # (old, new) pairs; each old text stands in the header exactly once
    says: str  # a line of the prefix check
    parts: str  # all parts that must notice, and no other one
    header: str = "hexad/abi.h"


REORDERED = [("(*deadline_ns)(", "(*step_)("), ("(*step)(hexad_call*", "(*deadline_ns)(hexad_call*"),
             ("(*step_)(", "(*step)(")]
SHIFTED = [("REDUCE_MIN 2 ", "REDUCE_MEDIAN 2\n#define HEXAD_REDUCE_MIN 3 "), ("REDUCE_MAX 3", "REDUCE_MAX 4"),
           ("REDUCE_LAST 4", "REDUCE_LAST 5")]
SEED = "  uint64_t (*seed)(hexad_call* call);\n"
FLAGS = "  uint64_t (*flags)(hexad_call* call);\n"
QUERY = "HEXAD_EXPORT const hexad_plugin_desc* hexad_plugin_query_v1("

CHANGES = [
    Change("fields reordered", REORDERED, "BREAK: hexad_host.deadline_ns: reordered",
           "prefix layout abidiff frozen"),
    Change("set of constants grown in the middle", SHIFTED, "BREAK: HEXAD_REDUCE_MIN: constant changed; was: 2; now: 3",
           "prefix frozen"),
    Change("constant renumbered", [("HEXAD_KIND_LOSS 3", "HEXAD_KIND_LOSS 6")],
           "BREAK: HEXAD_KIND_LOSS: constant changed; was: 3; now: 6", "prefix frozen"),
    Change("signature changed", [("char* name, double value, double weight", "char* name, float value, double weight")],
           "BREAK: hexad_host.metric: type changed", "prefix abidiff frozen"),
    Change("function removed", [("  hexad_code (*barrier)(hexad_call* call, hexad_comm* comm);\n", "")],
           "BREAK: hexad_host.barrier: removed", "prefix layout abidiff frozen"),
    Change("field inserted in the middle", [(FLAGS, FLAGS + SEED)],
           "BREAK: hexad_host.alloc: moved by a field before it", "prefix layout abidiff frozen"),
    Change("const dropped", [("  const char* version;\n", "  char* version;\n")],
           "BREAK: hexad_host.version: type changed; was: const char *; now: char *", "prefix abidiff"),
    Change("int64_t halved, with padding",
           [("  int64_t num_tokens;               /* T */", "  int32_t num_tokens, pad;")],
           "BREAK: hexad_loss_batch.num_tokens: type changed; was: int64_t; now: int32_t", "prefix layout abidiff"),
    Change("field renamed", [("(*comm_native)", "(*comm_handle)")],
           "BREAK: hexad_host.comm_native: renamed; was: comm_native; now: comm_handle", "prefix layout abidiff"),
    Change("appended without a minor", [("} hexad_host;", SEED + "} hexad_host;")],
           "HEXAD_ABI_MINOR is {minor}, wanted {next}", "prefix layout abidiff"),
    Change("frozen struct grown", [("} hexad_metric_spec;", "  uint64_t unit;\n} hexad_metric_spec;")],
           "BREAK: hexad_metric_spec.unit: a frozen struct grew", "prefix layout abidiff frozen"),
    Change("constant added without a minor",
           [("#define HEXAD_CANCELLED 1\n", "#define HEXAD_CANCELLED 1\n#define HEXAD_UNKNOWN 2\n")],
           "HEXAD_ABI_MINOR is {minor}, wanted {next}", "prefix"),
    Change("second exported symbol", [(QUERY, "HEXAD_EXPORT int32_t hexad_plugin_init(void);\n" + QUERY)],
           "BREAK: hexad_plugin_init: function added", "prefix"),
    Change("type in dlpack.h changed",
           [("  uint64_t byte_offset;\n} DLTensor;", "  int64_t byte_offset;\n} DLTensor;")],
           "verdict: same", "abidiff", "dlpack.h"),
]


class Scratch:
    """A copy of the SDK that may be broken."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hexad-abi-"))
        self.sdk = self.folder / "sdk"
        self.changelog = self.sdk / "CHANGELOG.md"
        shutil.copytree(SOURCE / "sdk/include", self.sdk / "include")
        shutil.copytree(SOURCE / "sdk/abi", self.sdk / "abi")
        shutil.copy(SOURCE / "sdk/CHANGELOG.md", self.changelog)
        header = (self.sdk / "include/hexad/abi.h").read_text()
        self.minor = int(re.search(r"define HEXAD_ABI_MINOR (\d+)", header)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def edit(self, edits, header="hexad/abi.h"):
        path = self.sdk / "include" / header
        text = path.read_text()
        for old, new in edits:
            assert text.count(old) == 1, f"{header} has {text.count(old)} times, wanted once: {old}"
            text = text.replace(old, new)
        path.write_text(text)

    def check(self, part, *arguments, **environment):
        """Runs a part of the gate; returns (does it pass, what it said)."""
        command = [sys.executable, self.sdk / f"abi/check_{part}.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
        return done.returncode == 0, done.stdout + done.stderr

    def check_frozen(self):
        """Part 4, the other way round: the frozen plugins are built from the changed header and meet today's host. The
        disagreement is that of frozen plugins with a host built from it, and the engine need not be built again."""
        for source in (SOURCE / "tests/abi/frozen").glob("v*/*.c"):
            library = self.folder / "tests/abi" / source.parent.name / f"libfrozen_{source.stem}.so"
            library.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["gcc", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-I",
                            self.sdk / "include", source, "-o", library], check=True)
        environment = {**os.environ, "HEXAD_BUILD_DIR": str(self.folder)}
        done = subprocess.run([BUILD / "tests/test_abi_frozen", "--test-case=frozen plugins*"], env=environment,
                              capture_output=True, text=True, timeout=60)
        return done.returncode == 0, done.stdout + done.stderr

    def check_all(self):
        return {"frozen": self.check_frozen(), **{part: self.check(part) for part in ("prefix", "layout", "abidiff")}}


def noticed(change):
    with Scratch() as scratch:
        scratch.edit(change.edits, change.header)
        results = scratch.check_all()
        says = change.says.format(minor=scratch.minor, next=scratch.minor + 1)
        return results, says


class Gate(unittest.TestCase):
    maxDiff = None

    def test_an_unchanged_header_passes(self):
        with Scratch() as scratch:
            for part, (passes, said) in scratch.check_all().items():
                self.assertTrue(passes, f"{part}: {said}")

    def test_every_change_is_stopped_by_the_parts_meant_for_it(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for change, (results, says) in zip(CHANGES, pool.map(noticed, CHANGES)):
                with self.subTest(change.name):
                    stopped = {part for part, (passes, _) in results.items() if not passes}
                    self.assertEqual(stopped, set(change.parts.split()), results)
                    self.assertIn(says, results["prefix"][1])

    def test_a_legal_minor_passes_once_the_baselines_are_written(self):
        with Scratch() as scratch:
            minor = scratch.minor + 1
            scratch.edit([("} hexad_host;", SEED + "} hexad_host;"),
                          (f"define HEXAD_ABI_MINOR {scratch.minor}", f"define HEXAD_ABI_MINOR {minor}")])
            self.assertIn(f"has no heading '## 1.{minor}'", scratch.check("prefix", "--update")[1])
            scratch.changelog.write_text(scratch.changelog.read_text() + f"\n## 1.{minor}\n- hexad_host.seed\n")
            passes, said = scratch.check("prefix")
            self.assertFalse(passes)
            self.assertIn("minor: hexad_host.seed: appended", said)
            self.assertIn("verdict: minor", said)
            for part in ("layout", "abidiff"):
                self.assertIn("check_prefix.py says minor, wanted same", scratch.check(part, "--update")[1])
            for part in ("prefix", "layout", "abidiff"):
                passes, said = scratch.check(part, "--update")
                self.assertTrue(passes, said)
            for part, (passes, said) in scratch.check_all().items():
                self.assertTrue(passes, f"{part}: {said}")
            layout = (scratch.sdk / "include/hexad/abi_layout.h").read_text()
            self.assertIn(f"#if HEXAD_TARGET_MINOR >= {minor}\nHEXAD_FIELD_(hexad_host, seed,", layout)

    def test_a_break_is_recut_with_a_reason_until_the_abi_is_frozen(self):
        with Scratch() as scratch:
            scratch.edit(REORDERED)
            self.assertFalse(scratch.check("prefix", "--update")[0])
            passes, said = scratch.check("prefix", "--recut", "deadlines come after steps")
            self.assertTrue(passes, said)
            self.assertRegex(scratch.changelog.read_text(), r"- \d{4}-\d\d-\d\d recut: deadlines come after steps\n")
            self.assertEqual(scratch.check("prefix"), (True, "verdict: same\n"))
        with Scratch() as scratch:
            baseline = scratch.sdk / "abi/v1.json"
            baseline.write_text(baseline.read_text().replace('"status": "rc"', '"status": "frozen"'))
            scratch.edit(REORDERED)
            passes, said = scratch.check("prefix", "--recut", "a good one")
            self.assertFalse(passes)
            self.assertIn("the ABI is frozen: a break needs hexad_plugin_query_v2", said)

    def test_a_missing_tool_or_baseline_is_a_failure(self):
        with Scratch() as scratch:
            for part, tool in (("prefix", "clang"), ("layout", "gcc"), ("abidiff", "gcc")):
                passes, said = scratch.check(part, PATH="/nonexistent")
                self.assertFalse(passes)
                self.assertIn(f"{tool} is missing; tools/setup.sh --tests installs it", said)
            (scratch.sdk / f"abi/v1.{scratch.minor}.abi").unlink()
            self.assertIn("is missing; run check_abidiff.py --update", scratch.check("abidiff")[1])
            (scratch.sdk / "abi/v1.json").unlink()
            self.assertIn("is missing; restore it from the repository", scratch.check("prefix")[1])


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # plugins and host that disagree may crash
    unittest.main()
