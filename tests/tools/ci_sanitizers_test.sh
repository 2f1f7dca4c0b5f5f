#!/usr/bin/env bash
# When CI runs `make test-sanitizers`, and what it says when it does not: tools/ci_sanitizers.sh with a stand-in for
# make.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"

# What runs under a limit: `make` with $MAKE_CODE; 124 is what timeout says of one that took too long.
cat > "$work/bin/make" <<'S'
#!/usr/bin/env bash
echo "make $*" >> "$CALLS"
exit "$MAKE_CODE"
S
chmod +x "$work/bin/make"
export PATH="$work/bin:$PATH" CALLS="$work/calls"
failed=0

# check NAME SECONDS_GONE MAKE_CODE, then what is wanted: EXIT_CODE CALLS TEXT
check() {
  local name=$1 gone=$2 code=0 text
  : > "$CALLS"
  text=$(MAKE_CODE=$3 "$source_dir/tools/ci_sanitizers.sh" "$gone" 2>&1) || code=$?
  if [ "$code" != "$4" ] || [ "$(paste -sd, "$CALLS")" != "$5" ] || [[ $text != *"$6"* ]]; then
    printf '%s: got exit code %s, calls "%s" and:\n%s\n' "$name" "$code" "$(paste -sd, "$CALLS")" "$text"
    printf 'wanted %s, "%s" and "%s"\n' "${@:4}"
    failed=1
  fi
}

check "time for all"       600   0 0 "make test-sanitizers" ""
check "just enough"       1800   0 0 "make test-sanitizers" ""
check "no time"           1801   0 0 "" "make test-sanitizers is left out: 9 of 40 minutes are left, it may take 10"
check "all time is gone"  5000   0 0 "" "make test-sanitizers is left out"
check "an input fails"       0   2 1 "make test-sanitizers" "make test-sanitizers failed (exit code 2)"
check "it does not end"      0 124 1 "make test-sanitizers" "make test-sanitizers did not end within 40 minutes of CI"
exit "$failed"
