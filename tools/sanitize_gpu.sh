#!/usr/bin/env bash
# Runs the GPU cases of test programs under compute-sanitizer, several at a time, and prints a line for each: held,
# FOUND (with the log's place) or late. Cases know of it and leave out their largest shapes. Exit code 1 when something
# was found, 3 when nothing was but a case came too late.
# usage: tools/sanitize_gpu.sh [--tool memcheck|racecheck|synccheck|initcheck] [--only REGEX] [--late SECONDS] [--jobs
# N] PROGRAM...
set -uo pipefail
tool=memcheck only=. late=300 jobs=4 programs=()
while [ $# -gt 0 ]; do
  case $1 in
    --tool) tool=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --late) late=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    *) programs+=("$1"); shift ;;
  esac
done
[ ${#programs[@]} -gt 0 ] || { echo "sanitize_gpu: no test program given" >&2; exit 2; }
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
[ -x "$sanitizer" ] || { echo "sanitize_gpu: no compute-sanitizer: it comes with the CUDA toolkit" >&2; exit 2; }
logs=$(mktemp -d "${TMPDIR:-/tmp}/sanitize.XXXXXX")

one() {  # PROGRAM NUMBER CASE
  local log="$logs/$(basename "$1").$2" code
  # Commas separate patterns, and brackets and stars are read as such: any character stands for them.
  timeout "$late" "$sanitizer" --tool "$tool" --error-exitcode 97 --target-processes all "$1" -ts=gpu \
    -tc="$(printf %s "$3" | tr ',[]*\\"' '??????')" > "$log" 2>&1
  code=$?
  case $code in
    0) echo "held   $3" ;;
    124) echo "late   $3" ;;
    *) echo "FOUND  $3 (exit $code, $log): $(grep -m1 -E "$finding" "$log")" ;;
  esac
}
export -f one
finding='^=+ (Invalid|Error|Race|Uninit|Barrier|Program hit)|ERROR: '
export finding logs tool late sanitizer HEXAD_UNDER_SANITIZER=1

for program in "${programs[@]}"; do
  "$program" -ltc -ts=gpu --no-version | grep -vE '^(\[doctest\]|=+$)' | grep -E "$only" | grep -n . |
    sed "s|^\([0-9]*\):|$program\x1f\1\x1f|"
done | xargs -d '\n' -P "$jobs" -I{} bash -c \
  'IFS=$'"'\x1f'"' read -r program number name <<< "$1"; one "$program" "$number" "$name"' _ {} | tee "$logs/summary"
[ -s "$logs/summary" ] || { echo "sanitize_gpu: no GPU case matches" >&2; exit 2; }
! grep -q ^FOUND "$logs/summary" || exit 1
! grep -q ^late "$logs/summary" || exit 3
