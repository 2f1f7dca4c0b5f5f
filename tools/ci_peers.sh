#!/usr/bin/env bash
# `make test-peers` within CI. usage: ci_peers.sh SECONDS_GONE, from the root of the checkout
# Runs it where what CI may take, less what has gone, leaves room for its tests, and for the installation of their peers
# if that is not done yet. Otherwise, and where the installation fails (no network, no disk), one line says that it is
# left out and why, which is no failure of CI. Tests that fail, or do not end in what is left of the time, are.
set -euo pipefail

# Seconds: of all CI; most for the installation; least for the tests (two minutes when measured).
whole=2400 install=900 tests=600
here=$(dirname "$0")
start=$SECONDS gone=$1

say() { printf 'ci: %s\n' "$*"; }
leave_out() { say "make test-peers is left out: $*"; exit 0; }

need=$tests
"$here/setup_peers.sh" --installed || need=$((tests + install))
left=$((whole - gone))
[ "$left" -ge "$need" ] || leave_out "$((left / 60)) of $((whole / 60)) minutes are left, it may take $((need / 60))"

if [ "$need" -gt "$tests" ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  say "installing the peers of make test-peers, at most $((install / 60)) minutes"
  timeout --kill-after=10 "$install" "$here/setup_peers.sh" > "$log" 2>&1 && code=0 || code=$?
  [ "$code" != 124 ] || leave_out "its peers were not installed within $((install / 60)) minutes"
  if [ "$code" != 0 ]; then
    cat "$log"
    leave_out "its peers cannot be installed: $(tail -n 1 "$log")"
  fi
fi
timeout --kill-after=10 $((left - (SECONDS - start))) make test-peers && code=0 || code=$?
[ "$code" = 0 ] && exit
[ "$code" != 124 ] || say "make test-peers did not end within $((whole / 60)) minutes of CI"
say "make test-peers failed (exit code $code)"
exit 1
