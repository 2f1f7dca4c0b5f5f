#!/usr/bin/env bash
# Where our programs, libraries and plugins look for shared libraries: in no folder that depends on where they are
# started. An empty or relative entry of an RPATH would load whatever lies in the current folder under a library's name.
set -euo pipefail
build=$HEXAD_BUILD_DIR
failed=0 seen=0
while IFS= read -r file; do
  entries=$(readelf -d "$file" 2> /dev/null | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]$/\2/p')
  seen=$((seen + 1))
  while IFS= read -r -d : entry; do
    case $entry in
      /*|'$ORIGIN'|'$ORIGIN/'*) ;;
      *) echo "$file: RPATH '$entries' has the entry '$entry', wanted an absolute path or \$ORIGIN/..."; failed=1 ;;
    esac
  done < <([ -z "$entries" ] || printf '%s:' "$entries")
done < <(find "$build/bin" "$build/lib" -type f \( -perm -u+x -o -name '*.so' \))
[ "$seen" -gt 10 ] || { echo "only $seen files below $build"; failed=1; }

# Empty files under the names of all libraries that the program loads: none of them is opened.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ldd "$build/bin/hexad" | sed -nE 's/^\s*(\S+) => .*/\1/p' | while IFS= read -r name; do : > "$folder/$name"; done
(cd "$folder" && "$build/bin/hexad" --version > /dev/null) ||
  { echo "hexad does not start beside $(ls "$folder")"; failed=1; }
exit "$failed"
