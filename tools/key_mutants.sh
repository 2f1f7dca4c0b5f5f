#!/usr/bin/env bash
# Is every test that tests/config/keys.txt names for a key, of the engine or of a plugin, one that fails when the key is
# ignored? Runs it with the key ignored, key by key, and prints those that pass all the same; first with no key ignored,
# when it has to pass. Wants a tree that can ignore a key:
#   git worktree add ../mutants && cd ../mutants && git apply tools/ignored_key.patch
#   cmake --preset dev && ninja -C build/dev && tools/key_mutants.sh
# Usage: tools/key_mutants.sh [REGEX of keys]
set -uo pipefail
cd "$(dirname "$0")/.."
wanted=${1:-.}
limit=900  # seconds a case; some wait for the default of 600 of the key that is ignored
build=$PWD/build/dev
export HEXAD_BUILD_DIR=$build HEXAD_SOURCE_DIR=$PWD OMP_NUM_THREADS=1

if HEXAD_IGNORED_KEY=policy.model_name "$build/bin/hexad" config check configs/quickstart.yaml >/dev/null 2>&1; then
  echo "$build ignores no key: apply tools/ignored_key.patch and build again" >&2
  exit 2
fi

# run FOLDER CASE: the test program of a folder of tests/ on one case, up to its first failure. Prints passed, failed,
# or what kept it from either.
run() {
  local name=${2//\\/\\\\} program="$build/tests/test_${1//\//_}" code=0
  local options=(--test-suite-exclude=gpu,faults --abort-after=1)
  [ -x "$program" ] || { echo "$program is not there"; return; }
  timeout "$limit" "$program" "${options[@]}" -tc="${name//,/\\,}" >/dev/null 2>&1 </dev/null || code=$?
  case $code in
    0) echo passed ;;
    1 | 134) echo failed ;;  # as doctest ends, and an assertion of a library
    124) echo "no end within $limit s" ;;
    *) echo "exit code $code" ;;
  esac
}

checked=0 unproven=0
while IFS= read -r line; do
  case $line in
    '' | '#'*) ;;
    'details of '*) folder= ;;
    ' '*)
      [ -n "$folder" ] || continue
      for key in $line; do
        grep -qE -- "$wanted" <<<"$key" || continue
        checked=$((checked + 1))
        [ -n "$whole" ] || whole=$(run "$folder" "$name")
        with=$(HEXAD_IGNORED_KEY=$key run "$folder" "$name")
        [ "$whole" != passed ] || [ "$with" != failed ] || continue
        unproven=$((unproven + 1))
        echo "$key: \"$folder: $name\": $whole; with the key ignored: $with"
      done
      ;;
    *) folder=${line%%: *} name=${line#*: } whole= ;;
  esac
done <tests/config/keys.txt
echo "$checked keys, $unproven of them without a proof"
[ "$unproven" = 0 ]
