#!/usr/bin/env bash
# What tools/tidy.sh looks at, and what it says: in a repository of its own, with a stand-in for clang-tidy.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/repo/tools" "$work/repo/core" "$work/repo/build/dev/Unity"
cp "$source_dir/tools/tidy.sh" "$work/repo/tools/"

# clang-tidy: notes its arguments, and finds something in files that say so.
cat > "$work/bin/clang-tidy" <<'S2'
#!/usr/bin/env bash
echo "$*" >> "$CALLS"
sleep "$TAKES"
code=0
if grep -q bound "${!#}"; then
  printf "%s:2:1: error: reference to local binding 'bound' declared in enclosing function 'f'\n" "${!#}"
  printf '  int bound;\n      ^\n'
  code=1
fi
if grep -q wrong "${!#}"; then echo "${!#}:1:1: error: this is wrong [bugprone-all]"; exit 1; fi
exit $code
S2
chmod +x "$work/bin/clang-tidy"
export PATH="$work/bin:$PATH" CALLS="$work/calls" TAKES=0
cd "$work/repo"
for name in one two three; do echo "int $name;" > "core/$name.cpp"; done
echo "#pragma once" > core/one.hpp
printf '#include "%s"\n' "$PWD/core/one.cpp" "$PWD/core/two.cpp" > build/dev/Unity/unity_0.cxx
echo "int pch;" > build/dev/pch.hxx
printf '[{"directory": "%s", "file": "%s", "command": "c++ -DA -fpch-preprocess -include %s -o x -c %s"},
  {"directory": "%s", "file": "%s", "command": "c++ -DB -c %s"}]' \
  "$PWD" "$PWD/build/dev/Unity/unity_0.cxx" "$PWD/build/dev/pch.hxx" unity_0.cxx \
  "$PWD" "$PWD/core/three.cpp" three.cpp \
  > build/dev/compile_commands.json
echo build > .gitignore
git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm first
failed=0

# tidy NAME CODE PATTERN CALLS [ARGUMENT...]: runs it; wanted are the exit code, a text, and how often clang-tidy ran
tidy() {
  local name=$1 code=0 text
  : > "$CALLS"
  text=$(tools/tidy.sh "${@:5}" 2>&1) || code=$?
  if [ "$code" != "$2" ] || [[ $text != *"$3"* ]] || [ "$(wc -l < "$CALLS")" != "$4" ]; then
    printf '%s: got exit code %s, %s calls and:\n%s\n' "$name" "$code" "$(wc -l < "$CALLS")" "$text"
    printf 'wanted %s, %s calls and: %s\n' "$2" "$4" "$3"
    failed=1
  fi
}

tidy "a single commit" 0 "there is no commit HEAD~1" 0
tidy "nothing has changed" 0 "0 files have changed" 0 HEAD
echo "int more;" >> core/one.cpp
echo "int more;" >> core/one.hpp
tidy "a file of a unit, and its header" 0 "1 files have changed that build/dev compiles; 0 of them have findings" 1 HEAD
grep -q '"name": "core/one.cpp", "lines": \[\[2, 2\]\]' "$CALLS" || { echo "lines: got $(cat "$CALLS")"; failed=1; }
echo "int wrong;" >> core/three.cpp
tidy "a finding" 1 "core/three.cpp:1:1: error: this is wrong" 2 HEAD
tidy "files by name" 0 "2 files have changed" 2 core/one.cpp core/two.cpp
echo "int bound;" > core/two.cpp
tidy "what clang 14 alone refuses" 0 "; 0 of them have findings" 1 core/two.cpp
echo "int bound, wrong;" > core/two.cpp
tidy "that, and a finding" 1 "core/two.cpp:1:1: error: this is wrong" 1 core/two.cpp
git checkout -q core/two.cpp
TIDY_SECONDS=0 tidy "no time" 0 "not looked at within 0 s: core/one.cpp core/three.cpp" 0 HEAD
TAKES=60 TIDY_SECONDS=5 tidy "too slow" 0 "not looked at within 5 s: core/two.cpp" 1 core/two.cpp
exit "$failed"
