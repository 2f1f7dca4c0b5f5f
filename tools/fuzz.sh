#!/usr/bin/env bash
# Feeds inputs to the programs of the preset `fuzz`, one after another. usage: fuzz.sh RUNS [NAME...]
# An input may take 20 seconds (of wall time, on a machine that may be busy) and a program one GiB. What is found lies
# in build/fuzz/found (fed alone, it gives whole stacks), an input that reached new code in build/fuzz/corpus/NAME.
# Prints a line for each. -entropic=0: its counting took more time than the inputs of `config` themselves. What
# AddressSanitizer keeps of freed memory is no fault of a program: it may keep 64 MiB, and gives pages back each second.
set -euo pipefail

runs=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/fuzz
[ $# -gt 0 ] || set -- $(cd "$root/tests/fuzz/corpus" && ls)
mkdir -p "$build/found" "$build/log"
memory=$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")
asan=malloc_context_size=4:quarantine_size_mb=64:allocator_release_to_os_interval_ms=1000
failed=0
for name in "$@"; do
  mkdir -p "$build/corpus/$name"
  TMPDIR=$memory UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=$asan \
    "$build/tests/fuzz_$name" -runs="$runs" -max_len=4096 -timeout=20 -entropic=0 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="$build/found/$name-" \
    "$build/corpus/$name" "$root/tests/fuzz/corpus/$name" > "$build/log/$name" 2>&1 < /dev/null || failed=1
  stat() { sed -n "s/^stat::$1: *//p" "$build/log/$name"; }
  printf '%-16s %s inputs, %s a second, %s MiB at most%s\n' "$name" "$(stat number_of_executed_units)" \
    "$(stat average_exec_per_sec)" "$(stat peak_rss_mb)" \
    "$(sed -n 's/^artifact_prefix=.*Test unit written to /; FOUND /p' "$build/log/$name")"
done
exit $failed
