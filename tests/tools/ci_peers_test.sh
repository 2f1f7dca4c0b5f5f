#!/usr/bin/env bash
# When CI runs `make test-peers`, and what it says when it does not: tools/ci_peers.sh among stand-ins of what it calls.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tools" "$work/bin"
cp "$source_dir/tools/ci_peers.sh" "$work/tools/"

# Its peers: those of $INSTALLED, an installation that ends with $INSTALL_CODE.
cat > "$work/tools/setup_peers.sh" <<'S'
#!/usr/bin/env bash
if [ "${1:-}" = --installed ]; then [ "$INSTALLED" = yes ]; exit; fi
echo installs >> "$CALLS"
echo "setup_peers: no room" >&2
exit "$INSTALL_CODE"
S
# What runs under a limit: `make` with $MAKE_CODE; 124 is what timeout says of one that took too long.
cat > "$work/bin/make" <<'S'
#!/usr/bin/env bash
echo "make $*" >> "$CALLS"
exit "$MAKE_CODE"
S
chmod +x "$work/tools/setup_peers.sh" "$work/bin/make"
export PATH="$work/bin:$PATH" CALLS="$work/calls"
failed=0

# check NAME SECONDS_GONE INSTALLED INSTALL_CODE MAKE_CODE, then what is wanted: EXIT_CODE CALLS TEXT
check() {
  local name=$1 gone=$2 code=0 text
  : > "$CALLS"
  text=$(cd "$work" && INSTALLED=$3 INSTALL_CODE=$4 MAKE_CODE=$5 tools/ci_peers.sh "$gone" 2>&1) || code=$?
  if [ "$code" != "$6" ] || [ "$(paste -sd, "$CALLS")" != "$7" ] || [[ $text != *"$8"* ]]; then
    printf '%s: got exit code %s, calls "%s" and:\n%s\n' "$name" "$code" "$(paste -sd, "$CALLS")" "$text"
    printf 'wanted %s, "%s" and "%s"\n' "${@:6}"
    failed=1
  fi
}

out="make test-peers is left out"
check "time for all"            600 no  0   0   0 "installs,make test-peers" "installing the peers"
check "installed"              1700 yes 0   0   0 "make test-peers" ""
check "just enough"             900 no  0   0   0 "installs,make test-peers" ""
check "no time to install"      901 no  0   0   0 "" "$out: 24 of 40 minutes are left, it may take 25"
check "just enough to test"    1800 yes 0   0   0 "make test-peers" ""
check "no time to test"        1801 yes 0   0   0 "" "$out: 9 of 40 minutes are left, it may take 10"
check "all time is gone"       5000 yes 0   0   0 "" "$out"
check "installation fails"        0 no  1   0   0 "installs" \
  "$out: its peers cannot be installed: setup_peers: no room"
check "installation too slow"     0 no  124 0   0 "installs" "$out: its peers were not installed within 15 minutes"
check "tests fail"                0 yes 0   2   1 "make test-peers" "make test-peers failed (exit code 2)"
check "tests do not end"          0 yes 0   124 1 "make test-peers" \
  "make test-peers did not end within 40 minutes of CI"
exit "$failed"
