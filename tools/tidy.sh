#!/usr/bin/env bash
# clang-tidy, by the checks of .clang-tidy, over C++ that has changed.
#
#   tools/tidy.sh [BASE]       lines that differ from the commit BASE; without it from the commit at which the branch
#                              left origin/main, or from the commit before
#   tools/tidy.sh FILE...      these files, all of them
#
# PRESET (dev) names the build whose compile commands count; it must be configured. Each file is looked at by itself,
# also where the build joins several into one unit, and without precompiled headers, which are GCC's. A header is looked
# at through the .cpp beside it. After TIDY_SECONDS (300) the files that are left are named, which is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/${PRESET:-dev}
limit=${TIDY_SECONDS:-300}

say() { printf 'tidy: %s\n' "$*"; }
die() { say "$*" >&2; exit 2; }

[ -e "$build/compile_commands.json" ] || die "$build/compile_commands.json is missing: run make configure"
command -v clang-tidy > /dev/null || die "clang-tidy is missing: run tools/setup.sh --tests"

if [ -f "${1:-}" ]; then
  files=("$@")
else
  base=${1:-$(git merge-base HEAD origin/main 2> /dev/null || true)}
  # On main itself: what its newest commit changed.
  [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ] || base=HEAD~1
  git rev-parse --verify --quiet "$base^{commit}" > /dev/null ||
    { say "no file is looked at: there is no commit $base here"; exit 0; }
  mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp' '*.hpp')
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/log" "$work/found" "$work/lines"
: > "$work/diff"
[ -z "${base:-}" ] || git diff -U0 "$base" -- '*.cpp' '*.hpp' > "$work/diff"
# A database of single files in $work, the files of it that are asked for, one a line, and the lines of each that count.
python3 - "$build" "$work" "${files[@]+"${files[@]}"}" > "$work/files" <<'P'
import json, os, pathlib, re, shlex, shutil, sys

build, work, *asked = sys.argv[1:]
commands = {}
for entry in json.load(open(f"{build}/compile_commands.json")):
    path = pathlib.Path(entry["file"])
    units = [path]
    if "/Unity/" in entry["file"]:
        units = map(pathlib.Path, re.findall(r'#include "([^"]+)"', path.read_text()) if path.exists() else [])
    for unit in units:
        commands.setdefault(os.path.realpath(unit), entry)


def clang_command(entry, file):
    """What says how the file is read: of GCC's other options clang knows some and clang-tidy needs none."""
    words, kept = iter(shlex.split(entry["command"])), ["clang++"]
    for word in words:
        if word in ("-isystem", "-I", "-D"):
            kept += [word, next(words)]
        elif word == "-include":
            header = pathlib.Path(next(words))
            copy = pathlib.Path(work, f"{header.parent.name}.{header.name}")  # beside which there is no .gch
            if header.exists():
                shutil.copyfile(header, copy)
                kept += [word, str(copy)]
        elif word.startswith(("-I", "-D", "-std=")):
            kept.append(word)
    return kept + ["-c", file]


def changed_lines(diff):
    """First and last of each run of lines that a `git diff -U0` adds, by file; None where nothing was compared."""
    if not diff:
        return None
    lines, name = {}, ""
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(found[1]), int(found[2] or 1)
            if count:
                lines.setdefault(name, []).append([first, first + count - 1])
    return lines


lines = changed_lines(pathlib.Path(work, "diff").read_text())
database, wanted, filters = [], [], {}
for name in asked:
    path = os.path.realpath(re.sub(r"\.hpp$", ".cpp", name))
    if path not in commands or (lines is not None and name not in lines):
        continue
    if lines is not None:
        filters.setdefault(path, []).append({"name": name, "lines": lines[name]})
    if path in wanted:
        continue
    wanted.append(path)
    entry = commands[path]
    database.append({"directory": entry["directory"], "file": path, "arguments": clang_command(entry, path)})
json.dump(database, open(f"{work}/compile_commands.json", "w"))
for path, of_file in filters.items():
    pathlib.Path(work, "lines", os.path.relpath(path).replace("/", "+")).write_text(json.dumps(of_file))
wanted.sort(key=lambda path: "libtorch" in commands[path]["command"])  # the quick ones first
for path in wanted:
    print(os.path.relpath(path))
P

# look FILE: what is found goes to a file of its own in $work/found; what there is no time for is named in $work/left.
look() {
  local left name=${1//\//+} code=0
  local log=$work/log/$name lines=$work/lines/$name
  left=$((end - $(date +%s)))
  if [ "$left" -gt 0 ]; then
    timeout "$left" clang-tidy --quiet -p "$work" -line-filter="$(cat "$lines" 2> /dev/null)" "$1" \
      > "$log" 2> "$log.err" || code=$?
  else
    code=124
  fi
  case $code in
    0) ;;
    124) echo "$1" >> "$work/left" ;;
    *)
      # Not ours: clang 14 refuses C++20's captures of structured bindings, which it does not know yet.
      awk '/error: reference to local binding/ { skip = 3 } skip-- > 0 { next } { print }' "$log" > "$log.ours"
      if grep -qE ': (error|warning): ' "$log.ours"; then
        grep -hE -A2 ': (error|warning): ' "$log.ours" > "$work/found/$name"
      elif cmp -s "$log" "$log.ours"; then
        cp "$log.err" "$work/found/$name"
      fi
      ;;
  esac
  return 0
}
export -f look
end=$(($(date +%s) + limit))
export work end
xargs -r -d '\n' -P "$(nproc)" -a "$work/files" -n1 bash -c 'look "$1"' _

cat "$work"/found/* 2> /dev/null || true
found=$(find "$work/found" -type f | wc -l)
left=$(sort "$work/left" 2> /dev/null || true)
say "$(wc -l < "$work/files") files have changed that $build compiles; $found of them have findings"
[ -z "$left" ] || say "not looked at within $limit s: $(paste -sd' ' <<< "$left")"
[ "$found" = 0 ]
