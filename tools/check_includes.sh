#!/usr/bin/env bash
# One direction of dependency: sdk, lib <- core; sdk, lib <- modeling <- plugins; runtime stands alone. No file over 800 lines.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0

# forbid FOLDERS PATTERN WHY
forbid() {
  local found
  found=$(grep -rnE --include='*.c' --include='*.cpp' --include='*.h' --include='*.hpp' --include='*.cu' --include='*.cuh' "#include *[<\"]($2)" $1 2>/dev/null)
  [ -z "$found" ] && return
  echo "wrong direction: $3"
  echo "$found"
  bad=1
}
forbid "core sdk" 'torch|ATen|c10|cuda|nccl' 'core and sdk never see LibTorch or CUDA'
forbid "sdk" 'core/|modeling/|plugins/|runtime/' 'sdk includes only libc and dlpack.h'
forbid "lib" 'core/|modeling/|plugins/|runtime/|torch|ATen|c10|cuda|nccl' 'lib includes only lib, and never LibTorch or CUDA'
forbid "core" 'modeling/|plugins/|runtime/[^r]|runtime/r[^u]' 'core sees of the runtime only runtime/runtime.h'
forbid "modeling" 'core/|plugins/|runtime/' 'modeling includes only sdk and lib'
forbid "plugins" 'core/|runtime/' 'plugins include only sdk, lib and modeling'
forbid "runtime" 'core/|modeling/|plugins/' 'runtime includes only sdk'
# at::parallel_for runs on one thread where it is compiled without OpenMP: modeling/op/cpu/parallel.hpp stands for it.
found=$(grep -rn 'at::parallel_for' --include='*.cpp' --include='*.hpp' modeling plugins | grep -v '^modeling/op/cpu/parallel\.')
[ -n "$found" ] && { echo "at::parallel_for outside modeling/op/cpu/parallel.cpp:"; echo "$found"; bad=1; }
# Core knows kinds of plugins and no plugin by name, but for the table of other systems' sections and the translations of their
# files.
found=$(grep -rniE 'megatron|dtensor|vllm|sglang' core --include='*.cpp' --include='*.hpp' |
  grep -vE '^core/config/(dialect\.cpp|eval_form\.(cpp|hpp)|trl_names\.cpp|roll/)')
[ -n "$found" ] && { echo "a plugin's name in core:"; echo "$found"; bad=1; }
for plugin in plugins/*/; do
  name=$(basename "$plugin")
  found=$(grep -rnoE '#include "plugins/[a-z_]+/' "$plugin" 2>/dev/null | grep -v "\"plugins/$name/")
  [ -n "$found" ] && { echo "wrong direction: $name includes a sibling plugin"; echo "$found"; bad=1; }
done

long=$(git ls-files '*.c' '*.cpp' '*.h' '*.hpp' '*.cu' '*.cuh' | grep -vE '^(sdk/include/dlpack.h|tests/abi/frozen/)' | xargs -r wc -l | awk '$2 != "total" && $1 > 800')
[ -n "$long" ] && { echo "files over 800 lines (split by idea):"; echo "$long"; bad=1; }
exit $bad
