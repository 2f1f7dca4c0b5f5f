#!/usr/bin/env bash
# What tools/acceptance.sh says of cases that hold, fail, and are known to fail: among stand-ins of cases and of CMake.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset HEXAD_ACCEPTANCE PRESET CASES
mkdir -p "$work/tree/tools" "$work/tree/tests" "$work/tree/build/dev/bin" "$work/bin" "$work/cases/cases/"{plugin,user}
cp "$source_dir/tools/acceptance.sh" "$work/tree/tools/"
printf '#!/bin/sh\n' > "$work/tree/build/dev/bin/hexad"
cat > "$work/bin/cmake" <<'S'
#!/usr/bin/env bash
echo "cmake $*" >> "$CALLS"
S
cat > "$work/cases/run-cases" <<'S'
#!/usr/bin/env bash
echo "run-cases $1 $HEXAD $PREFIX" >> "$CALLS"
case $1 in
  ^plugin/) printf '%s' "$PLUGIN" ;;
  ^user/) echo "2 hold, 0 do not" ;;
esac
S
chmod +x "$work/bin/cmake" "$work/cases/run-cases" "$work/tree/build/dev/bin/hexad"
export PATH="$work/bin:$PATH" CALLS="$work/calls"
failed=0

# check NAME, then what is wanted: EXIT_CODE TEXT [NOT_THIS_TEXT]; arguments of the script in $areas, the list in $open
check() {
  local code=0 text
  : > "$CALLS"
  printf '# a list\n%s\n' "$open" > "$work/tree/tests/acceptance_open.txt"
  # shellcheck disable=SC2086
  text=$(cd / && "$work/tree/tools/acceptance.sh" $areas 2>&1) || code=$?
  if [ "$code" != "$2" ] || [[ $text != *"$3"* ]] || { [ -n "${4:-}" ] && [[ $text == *"$4"* ]]; }; then
    printf '%s: got exit code %s and:\n%s\nwanted %s and "%s"\n' "$1" "$code" "$text" "$2" "$3"
    failed=1
  fi
}

areas= open=
export PLUGIN=
check "no folder of cases" 0 "nothing was run"
export HEXAD_ACCEPTANCE=$work/none
check "a named folder that is not there" 1 "no run-cases in $work/none"
HEXAD_ACCEPTANCE=$work/cases
PLUGIN=$'3 hold, 0 do not\n'
check "all hold" 0 "plugin: 3 hold, 0 do not"
calls="run-cases ^plugin/ build/dev/bin/hexad $work/tree/build/hexad"
grep -qxF "cmake --install build/dev --prefix build/hexad" "$CALLS" && grep -qxF "$calls" "$CALLS" ||
  { echo "calls: $(cat "$CALLS")"; failed=1; }
PLUGIN=$'plugin/02-x: wanted 3: got 4\n1 hold, 1 do not\n'
check "one that nobody knows of" 1 "FAILS plugin/02-x: wanted 3: got 4"
open="plugin/02-x  # no such thing yet"
check "one that is known" 0 "open  plugin/02-x" FAILS
open=$'plugin/02-x\nplugin/03-y'
check "one that holds by now" 0 "holds plugin/03-y: take it out of tests/acceptance_open.txt" "FAILS"
open="plugin/02"
check "a name that is part of another" 1 "FAILS plugin/02-x"
areas=user open=
check "one area" 0 "user: 2 hold, 0 do not" plugin
areas="user other"
check "an area that is not there" 2 "no area other; there are: plugin user"
areas=plugin PLUGIN=$'run-cases: out of memory\n'
check "cases that break off" 1 "plugin: the cases broke off: run-cases: out of memory"
rm "$work/tree/build/dev/bin/hexad"
check "no build" 1 "no build/dev/bin/hexad"
exit $failed
