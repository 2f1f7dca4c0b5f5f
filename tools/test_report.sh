#!/usr/bin/env bash
# What the test programs have noted in a folder (tests/support/report.hpp): cases that could not run, with the reason,
# and cases that held only when they were run again. By name, for the end of `make test`.
#
#   tools/test_report.sh FOLDER
set -euo pipefail
notes=$(cat "$1"/* 2> /dev/null | sort || true)

# tell KIND TITLE
tell() {
  local lines
  lines=$(grep -P "^$1\t" <<< "$notes" | cut -f2- || true)
  if [ -z "$lines" ]; then
    echo "$2: none"
  else
    echo "$2: $(wc -l <<< "$lines")"
    sed 's/^/  /' <<< "$lines"
  fi
}
tell skipped 'skipped'
tell retried 'held when run again'
