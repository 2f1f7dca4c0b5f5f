#!/usr/bin/env bash
# `make test-sanitizers` within CI. usage: ci_sanitizers.sh SECONDS_GONE, from the root of the checkout
# Runs it where what CI may take, less what has gone, leaves room for a build from nothing and the replay. Otherwise one
# line says that it is left out, which is no failure of CI. A replay that fails, or does not end in what is left of the
# time, is.
set -euo pipefail

# Seconds: of all CI; most for both (when measured 289 and 4, on two cores shared with other builds).
whole=2400 need=600
left=$((whole - $1))

say() { printf 'ci: %s\n' "$*"; }

if [ "$left" -lt "$need" ]; then
  say "make test-sanitizers is left out: $((left / 60)) of $((whole / 60)) minutes are left, it may take $((need / 60))"
  exit 0
fi
timeout --kill-after=10 "$left" make test-sanitizers && code=0 || code=$?
[ "$code" = 0 ] && exit
[ "$code" != 124 ] || say "make test-sanitizers did not end within $((whole / 60)) minutes of CI"
say "make test-sanitizers failed (exit code $code)"
exit 1
