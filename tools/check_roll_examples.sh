#!/usr/bin/env bash
# Checks every YAML file below `examples` of a ROLL checkout. Prints how many are valid, which capabilities the others
# ask for that this program lacks (with the number of files), and what else is wrong with files.
# Usage: tools/check_roll_examples.sh [--files] CHECKOUT [BUILD_DIR]
# --files prints a line for each file in the place of the numbers.
set -euo pipefail
export LC_ALL=C
list=
if [[ ${1:-} == --files ]]; then list=1; shift; fi
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(cd "${1:?which checkout?}/examples" && pwd) build=${2:-$root/build/dev}

# "FILE<tab>valid", or of each error "FILE<tab>missing<tab>CAPABILITY" or "FILE<tab>wrong<tab>KEYS: MESSAGE".
outcome() {
  local text code=0
  text=$("$build/bin/hexad" config check "$folder/$1" 2>&1) || code=$?
  if [[ $code == 0 ]]; then printf '%s\tvalid\n' "$1"; return; fi
  if [[ $code != 2 ]]; then printf '%s\twrong\texit status %s\n' "$1" "$code"; return; fi
  sed -nE "s|^(.*: )?error: (.*)|\2|p" <<< "$text" | while read -r error; do
    if [[ $error =~ ^[^:]*:\ (.*)\ is\ not\ available\ in\ this\ version ]]; then
      printf '%s\tmissing\t%s\n' "$1" "${BASH_REMATCH[1]}"
    else
      printf '%s\twrong\t%s\n' "$1" "$error"
    fi
  done
}

got=$(cd "$folder" && find . -name '*.yaml' | sed 's|^\./||' | sort | while read -r path; do outcome "$path"; done)
if [[ $list ]]; then
  awk -F '\t' '{ said[$1] = said[$1] (seen[$1]++ ? "; " : ": ") ($3 ? $3 : $2) }
    END { for (file in said) print file said[file] }' <<< "$got" | sort
  exit
fi
awk -F '\t' '!seen[$1]++ { files++ } $2 == "valid" { valid++ }
  END { printf "%d files: %d valid, %d refused\n", files, valid, files - valid }' <<< "$got"
echo "files  missing"
awk -F '\t' '$2 == "missing" && !seen[$1 $3]++ { files[$3]++ }
  END { for (c in files) printf "%5d  %s\n", files[c], c }' \
  <<< "$got" | sort -k1,1nr -k2
awk -F '\t' '$2 == "wrong" { if (!said++) print "wrong"; print "  " $1 ": " $3 }' <<< "$got"
