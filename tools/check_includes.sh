#!/usr/bin/env bash
# The arrows of dependency (docs/architecture.md): lib <- core <- compat <- app; sdk, lib <- modeling <- plugins;
# runtime stands alone. No plugin's name in lib, core and app.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0

# forbid FOLDERS PATTERN WHY
forbid() {
  local found
  found=$(grep -rnE --include='*.c' --include='*.[ch]pp' --include='*.h' --include='*.cu' --include='*.cuh' \
    "#include *[<\"]($2)" $1 2>/dev/null)
  [ -z "$found" ] && return
  echo "wrong direction: $3"
  echo "$found"
  bad=1
}
gpu='torch|ATen|c10|cuda|nccl'
forbid "sdk" "lib/|core/|compat/|app/|modeling/|plugins/|runtime/|$gpu" 'sdk includes only libc and dlpack.h'
forbid "lib" "sdk/|hexad/|core/|compat/|app/|modeling/|plugins/|runtime/|$gpu" 'lib includes only lib'
forbid "core" "compat/|app/|modeling/|plugins/|runtime/[^r]|runtime/r[^u]|$gpu" \
  'core includes sdk, lib and runtime/runtime.h'
forbid "compat" "sdk/|app/|modeling/|plugins/|runtime/|$gpu" 'compat includes lib and core/config'
forbid "compat" 'core/[^c]|core/c[^o]' 'compat includes lib and core/config'
forbid "app" "modeling/|plugins/|runtime/|$gpu" 'app includes sdk, lib, core and compat'
forbid "modeling" 'core/|compat/|app/|plugins/|runtime/' 'modeling includes only sdk and lib'
forbid "plugins" 'core/|compat/|app/|runtime/' 'plugins include only sdk, lib and modeling'
forbid "runtime" 'lib/|core/|compat/|app/|modeling/|plugins/' 'runtime includes only sdk'
# at::parallel_for runs on one thread where it is compiled without OpenMP: modeling/op/cpu/parallel.hpp stands for it.
found=$(grep -rn 'at::parallel_for' --include='*.cpp' --include='*.hpp' modeling plugins |
  grep -v '^modeling/op/cpu/parallel\.')
[ -n "$found" ] && { echo "at::parallel_for outside modeling/op/cpu/parallel.cpp:"; echo "$found"; bad=1; }
# A std::ifstream takes a read error for the end of the file, and a std::ofstream writes through links.
found=$(grep -rnE 'std::[io]?fstream' lib core compat app modeling --include='*.cpp' --include='*.hpp' |
  grep -vE '"/proc/|^lib/process/tree\.cpp:|:[0-9]+:// ')
[ -n "$found" ] && { echo "a stream of the standard library; lib/base/file/input_file.hpp and file.hpp stand for it:"
  echo "$found"; bad=1; }
# The engine knows kinds of plugins and no plugin by name.
found=$(grep -rniE 'megatron|dtensor|vllm|sglang' core lib app --include='*.cpp' --include='*.hpp')
[ -n "$found" ] && { echo "a plugin's name in lib, core or app:"; echo "$found"; bad=1; }
for plugin in plugins/*/; do
  name=$(basename "$plugin")
  found=$(grep -rnoE '#include "plugins/[a-z_]+/' "$plugin" 2>/dev/null | grep -v "\"plugins/$name/")
  case $name in *_bridge) found=$(grep -v '"plugins/server_bridge/' <<< "$found") ;; esac  # a library of these
  [ -n "$found" ] && { echo "wrong direction: $name includes a sibling plugin"; echo "$found"; bad=1; }
done
exit $bad
