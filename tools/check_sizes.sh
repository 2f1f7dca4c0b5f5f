#!/usr/bin/env bash
# No line over 120 columns, no source file over 400 lines, no folder of more than 25 source files. Of what we write:
# data, generated pages, frozen headers, tables of Markdown and the JSON of a message in it are as they are.
set -uo pipefail
cd "$(dirname "$0")/.."
columns=120 lines=400 files=25
bad=0

# report TITLE FOUND
report() {
  [ -z "$2" ] && return
  echo "$1:"
  echo "$2"
  bad=1
}

# The ABI is one file by intent; dlpack.h is another project's.
kept='^(sdk/include/dlpack\.h|sdk/include/hexad/abi(_layout)?\.h|tests/abi/frozen/)'
sources=$(git ls-files '*.c' '*.cpp' '*.h' '*.hpp' '*.cu' '*.cuh')
scripts=$(git ls-files '*.py' '*.sh')
texts=$(git ls-files '*.rs' '*.js' '*.css' '*.html' '*.cmake' '*CMakeLists.txt' '*.yaml' '*.md' Makefile .ci \
  .clang-tidy)
written=$(printf '%s\n' "$sources" "$scripts" "$texts" |
  grep -vE "$kept" | grep -vE '^(docs/config\.md|docs/plugins/|tests/golden/|tests/fuzz/corpus/|tests/.*/data/)')

long=$(xargs -r -d '\n' env LC_ALL=C.UTF-8 grep -nHE "^.{$((columns + 1)),}$" <<< "$written" |
  grep -vE '^[^:]*\.md:[0-9]*: *(\||\{")' | cut -c1-160)
report "lines over $columns columns" "$long"
tall=$(printf '%s\n' "$sources" "$scripts" | grep -vE "$kept" | xargs -r -d '\n' wc -l |
  awk -v most=$lines '$2 != "total" && $1 > most')
report "files over $lines lines (split by idea)" "$tall"
crowded=$(xargs -r -d '\n' -n1 dirname <<< "$sources" | sort | uniq -c | awk -v most=$files '$1 > most')
report "folders of more than $files source files (a folder is one noun)" "$crowded"
exit $bad
