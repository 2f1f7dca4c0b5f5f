#!/usr/bin/env bash
# Checks every config of a NeMo-RL checkout, and compares which are valid and which keys of the others are refused with
# tests/config/nemo_recipes.txt. Prints the differences; exit status 1 if there are any.
# Usage: tools/check_nemo_recipes.sh CHECKOUT/examples/configs [VERSION] [BUILD_DIR]
# VERSION is the first word of a heading there (newest), or `-` to print the list in place of comparing it.
set -euo pipefail
export LC_ALL=C HF_HOME=${HF_HOME:-$HOME/.cache/huggingface}  # some configs name data below HF_HOME
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(cd "${1:?which folder?}" && pwd) version=${2:-newest} build=${3:-$root/build/dev}
list=$root/tests/config/nemo_recipes.txt

# "path", or "path: KEY KEY ..." for a refused one; a config that is not even read has the key `-`.
outcome() {
  local text code=0 keys
  text=$("$build/bin/hexad" config check "$folder/$1" 2>&1) || code=$?
  if [[ $code == 0 ]]; then echo "$1"; return; fi
  if [[ $code != 2 ]]; then echo "$1: exit $code"; return; fi
  keys=$(sed -nE 's/^(.*: )?error: ([^: ]+): .*/\2/p' <<< "$text" | sort -u | paste -sd' ')
  echo "$1: ${keys:--}"
}

got=$(cd "$folder" && find . -name '*.yaml' | sed 's|^\./||' | sort | while read -r path; do outcome "$path"; done)
if [[ $version == - ]]; then echo "$got"; exit; fi
wanted=$(awk -v version="$version" '/^#/ { on = $2 == version || $2 == version ","; next } on && NF' "$list")
if [[ -z $wanted ]]; then echo "$list has no heading '# $version'" >&2; exit 1; fi
refused=$(grep -c ': ' <<< "$got" || true)
echo "$(($(wc -l <<< "$got") - refused)) valid, $refused refused"
diff -U0 --label "$list, $version" --label "$folder" <(echo "$wanted") <(echo "$got")
