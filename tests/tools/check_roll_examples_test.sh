#!/usr/bin/env bash
# What tools/check_roll_examples.sh says of files that are valid, ask for what is missing, are wrong, and break the
# program: with a stand-in for the program.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/roll/examples/a" "$work/roll/examples/b" "$work/build/bin"
cat > "$work/build/bin/hexad" <<'S'
#!/usr/bin/env bash
[ "$1 $2" = "config check" ] || exit 9
cat "$3"
case $3 in *valid.yaml) exit 0 ;; *dead.yaml) exit 139 ;; *) exit 2 ;; esac
S
chmod +x "$work/build/bin/hexad"
echo "valid.yaml:1:1: notice: hydra: of ROLL's launcher" > "$work/roll/examples/a/valid.yaml"
cat > "$work/roll/examples/a/two.yaml" <<'S'
two.yaml:3:1: error: x.{a, b}, y.a: LoRA is not available in this version; without these keys all weights are trained
two.yaml:4:1: error: adv_estimator: a critic (adv_estimator: gae) is not available in this version; nearest: grpo
two.yaml:1:1: notice: hydra: of ROLL's launcher
S
cat > "$work/roll/examples/b/mixed.yaml" <<'S'
ROLL's default of y: error: y.lora: LoRA is not available in this version
error: mixed.yaml:6:2: key '0' is read as int 0; quote it if the text is meant
S
: > "$work/roll/examples/b/dead.yaml"

failed=0
# check WANTED ARGUMENTS...
check() {
  local wanted=$1 got
  shift
  got=$(cd / && "$source_dir/tools/check_roll_examples.sh" "$@" "$work/roll" "$work/build")
  if [ "$got" != "$wanted" ]; then
    printf 'got:\n%s\nwanted:\n%s\n' "$got" "$wanted"
    failed=1
  fi
}

check "4 files: 1 valid, 3 refused
files  missing
    2  LoRA
    1  a critic (adv_estimator: gae)
wrong
  b/dead.yaml: exit status 139
  b/mixed.yaml: mixed.yaml:6:2: key '0' is read as int 0; quote it if the text is meant"
check "a/two.yaml: LoRA; a critic (adv_estimator: gae)
a/valid.yaml: valid
b/dead.yaml: exit status 139
b/mixed.yaml: LoRA; mixed.yaml:6:2: key '0' is read as int 0; quote it if the text is meant" --files
exit $failed
