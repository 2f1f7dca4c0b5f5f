#!/usr/bin/env python3
"""Part 1 of the ABI gate: may the header of today stand in for the one of the baseline (v1.json)?

  same    nothing changed: exit 0
  minor   structs that begin with struct_size grew at the end, or names were added. Needs HEXAD_ABI_MINOR + 1 and a
          heading in CHANGELOG.md; --update then writes the baseline
  BREAK   anything else. While the ABI is v1-rc, --recut "reason" writes the baseline and the reason into CHANGELOG.md
"""

import argparse
import dataclasses
import datetime
import json
import re
import sys

from description import BASELINE, SDK, describe, die, read_baseline

CHANGELOG = SDK / "CHANGELOG.md"


@dataclasses.dataclass
class Finding:
    verdict: str  # "minor" or "BREAK"
    what: str
    where: str
    was: str
    now: str

    def __str__(self):
        return f"{self.verdict}: {self.where}: {self.what}; was: {self.was}; now: {self.now}"


def compare_struct(name, old, new):
    was, now = list(old.items()), list(new.items())
    for i, (field, spelled) in enumerate(was):
        where = f"{name}.{field}"
        here, here_spelled = now[i] if i < len(now) else ("(end of struct)", "")
        if here == field:
            if here_spelled != spelled:
                yield Finding("BREAK", "type changed", where, spelled, here_spelled)
        elif field not in new and here not in old and here_spelled == spelled:
            yield Finding("BREAK", "renamed", where, field, here)
        else:
            what = "removed" if field not in new else "reordered" if here in old else "moved by a field before it"
            yield Finding("BREAK", what, where, field, here)
            return  # whatever follows has moved with it
    verdict, what = ("minor", "appended") if "struct_size" in old else ("BREAK", "a frozen struct grew")
    for field, spelled in now[len(was):]:
        yield Finding(verdict, what, f"{name}.{field}", "nothing", spelled)


def compare_names(kind, old, new, addition):
    for name, was in old.items():
        if name not in new:
            yield Finding("BREAK", f"{kind} removed", name, was, "nothing")
        elif new[name] != was:
            yield Finding("BREAK", f"{kind} changed", name, was, new[name])
    for name in new.keys() - old.keys():
        yield Finding(addition, f"{kind} added", name, "nothing", new[name])


def compare(old, new):
    """The findings that lie between two descriptions; none: they are the same."""
    findings = []
    for name in old["structs"].keys() & new["structs"].keys():
        findings += compare_struct(name, old["structs"][name], new["structs"][name])
    names = [dict.fromkeys(each["structs"], "a struct") for each in (old, new)]
    findings += compare_names("struct", *names, "minor")
    findings += compare_names("typedef", old["typedefs"], new["typedefs"], "minor")
    findings += compare_names("constant", old["constants"], new["constants"], "minor")
    findings += compare_names("function", old["functions"], new["functions"], "BREAK")  # one exported symbol, no more
    return sorted(findings, key=lambda each: (each.verdict, each.where))


def verdict_of(findings):
    return min((each.verdict for each in findings), default="same")  # "BREAK" < "minor"


def heading(minor):
    """Where CHANGELOG.md begins to tell of a minor, as a match; None if it does not."""
    return re.search(rf"^## 1\.{minor}\b.*\n", CHANGELOG.read_text(), re.MULTILINE)


def unmet_demands(old, new, verdict):
    wanted = old["minor"] + (verdict == "minor")
    if verdict != "BREAK" and new["minor"] != wanted:
        yield f"HEXAD_ABI_MINOR is {new['minor']}, wanted {wanted}"
    if verdict == "minor" and not heading(wanted):
        yield f"{CHANGELOG} has no heading '## 1.{wanted}'"


def write_baseline(old, new):
    """`since` keeps the minor in which a field came, where that is not 0."""
    def paths(each):
        return [f"{name}.{field}" for name, fields in each["structs"].items() for field in fields]

    known = set(paths(old))
    since = {path: old["since"].get(path, 0 if path in known else new["minor"]) for path in paths(new)}
    baseline = {"status": old["status"], **new, "since": {path: minor for path, minor in since.items() if minor}}
    BASELINE.write_text(json.dumps(baseline, indent=1) + "\n")


def append_reason(minor, reason):
    found = heading(minor)
    if not found:
        die(f"{CHANGELOG} has no heading '## 1.{minor}'")
    text = CHANGELOG.read_text()
    end = text.find("\n## ", found.end())
    end = len(text) if end < 0 else end
    line = f"- {datetime.date.today()} recut: {reason}\n"
    CHANGELOG.write_text(text[:end].rstrip("\n") + "\n" + line + text[end:])


def require_same():
    """For the other parts: a baseline of theirs is written only when this check has nothing to say."""
    old, new = read_baseline(), describe()
    verdict = verdict_of(compare(old, new))
    if verdict != "same" or list(unmet_demands(old, new, verdict)):
        die(f"check_prefix.py says {verdict}, wanted same; settle that first")
    return old


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the baseline of a legal minor")
    parser.add_argument("--recut", metavar="REASON", help="write the rc baseline in spite of a break")
    args = parser.parse_args()

    old, new = read_baseline(), describe()
    findings = compare(old, new)
    verdict = verdict_of(findings)
    demands = list(unmet_demands(old, new, verdict))
    print("\n".join([*map(str, findings), *demands, f"verdict: {verdict}"]))
    if args.recut and verdict != "same":
        if old["status"] != "rc":
            die("the ABI is frozen: a break needs hexad_plugin_query_v2")
        append_reason(new["minor"], args.recut)
        write_baseline(old, new)
    elif demands:
        return 1
    elif verdict == "minor" and args.update:
        write_baseline(old, new)
    elif verdict != "same":
        print('a minor: run again with --update' if verdict == "minor" else
              'undo it; or, while the ABI is v1-rc, run again with --recut "reason"')
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
