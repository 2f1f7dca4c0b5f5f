#!/usr/bin/env bash
# What tools/runtime/setup.sh unpacks, what it leaves where it fails, and that it is run again then.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "runtime_setup_test: $*" >&2; exit 1; }
says() { grep -qF -- "$2" <<< "$1" || fail "got: $1; wanted: $2"; }
refuses() {  # TEXT COMMAND...
  local said
  ! said=$("${@:2}" 2>&1) || fail "took: ${*:2}"
  says "$said" "$1"
}
listing() { (cd "$1" && find . -type f ! -path './.hexad/*' | LC_ALL=C sort | tr '\n' ' '); }

runtime=$work/runtime
cp -r "$source_dir/tools/runtime" "$runtime"
setup() { bash "$runtime/setup.sh" "$@"; }
. "$source_dir/tests/tools/runtime_wheels.sh"
mkdir "$work/wheels" "$work/none"
make_wheels "$work/wheels" "$runtime/wheels.txt" 2.11.0
unpacked="./nvidia/cu13/lib/libcudart.so.13 ./nvidia/cu13/lib/libcupti.so.13 ./pyarrow/libarrow.so.2600 \
./pyarrow/libparquet.so.2600 ./torch/lib/libtorch_cpu.so ./torch/version.py "
said=$(HEXAD_CACHE=$work/cache setup --from "$work/wheels")
says "$said" "LibTorch 2.11.0 (530 MB) into $work/cache/libtorch-2.11.0"
[ -e "$work/cache/arrow-26.0.1/pyarrow/libarrow.so.2600" ] || fail "no Arrow in the cache"
rm -r "$work/cache/libtorch-2.11.0/.hexad"  # as tools/setup.sh leaves it
said=$(HEXAD_CACHE=$work/cache setup --from "$work/none")
says "$said" "LibTorch 2.11.0 is in $work/cache/libtorch-2.11.0"
says "$said" "libcudart 13.0.96 is in $work/cache/libtorch-2.11.0"
says "$said" "Apache Arrow 26.0.1 is in $work/cache/arrow-26.0.1"

# The wheels alone, which another machine unpacks.
setup --from "$work/wheels" --download "$work/carried" > /dev/null
[ "$(listing "$work/carried")" = "$(listing "$work/wheels")" ] || fail "downloaded: $(listing "$work/carried")"
setup --from "$work/carried" --into "$work/there" > /dev/null
[ "$(listing "$work/there")" = "$unpacked" ] || fail "unpacked of downloaded wheels: $(listing "$work/there")"
refuses "--download $work/x unpacks nothing: leave --into $work/y out" setup --download "$work/x" --into "$work/y"

# A wheel with other bytes than were pinned, as after a download that breaks. The next run goes on: what there is of
# CUDA's is not fetched a second time, for it could not be.
torch=$work/wheels/torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl
cp "$torch" "$work/torch.whl"
echo more >> "$torch"
mkdir -p "$work/site/nvidia/cu13/lib"
echo old > "$work/site/nvidia/cu13/lib/libcudart.so.13"  # no hindrance, of whatever version
refuses "pip cannot fetch torch 2.11.0: see above" setup --from "$work/wheels" --into "$work/site"
[ "$(listing "$work/site")" = "./nvidia/cu13/lib/libcudart.so.13 ./nvidia/cu13/lib/libcupti.so.13 " ] ||
  fail "a broken download left: $(listing "$work/site")"
says "$(cat "$work/site/nvidia/cu13/lib/libcudart.so.13")" "13.0.96"
mv "$work/torch.whl" "$torch"
mkdir "$work/rest"
cp "$torch" "$work/wheels/pyarrow"* "$work/rest/"
said=$(setup --from "$work/rest" --into "$work/site") || fail "cannot be run again: $said"
says "$said" "libcudart 13.0.96 is in $work/site"
[ "$(listing "$work/site")" = "$unpacked" ] || fail "unpacked by the second run: $(listing "$work/site")"

# One that is ended while pip is at work leaves nothing.
mkdir "$work/fake"
cat > "$work/fake/python3" <<P
#!/bin/sh
[ "\$3" != --version ] || exit 0
ls -A "$work/ended" > "$work/started.part"
mv "$work/started.part" "$work/started"
exec sleep 60
P
chmod +x "$work/fake/python3"
PATH=$work/fake:$PATH bash "$runtime/setup.sh" --into "$work/ended" > /dev/null 2>&1 &
ended=$!
for _ in {1..600}; do [ ! -e "$work/started" ] || break; sleep 0.1; done
sleeper=$(ps -o pid= --ppid $ended)
kill $ended
wait $ended && fail "was not ended"
kill $sleeper
says "$(cat "$work/started")" ".fetch."
[ -z "$(ls -A "$work/ended")" ] || fail "left $(ls -A "$work/ended")"

# Another version in the same folder takes its place, and the rest stays. What pip has installed is not touched.
mkdir "$work/newer"
make_wheels "$work/newer" "$runtime/wheels.txt" 2.12.0
says "$(setup --from "$work/newer" --into "$work/site")" "LibTorch 2.12.0 (530 MB) into $work/site"
says "$(cat "$work/site/torch/version.py")" "2.12.0"
says "$(setup --from "$work/none" --into "$work/site")" "LibTorch 2.12.0 is in $work/site"
rm -r "$work/site/.hexad"
mkdir "$work/site/nvidia_cuda_runtime-13.0.88.dist-info"
refuses "$work/site has a nvidia-cuda-runtime that pip installed, and it would be overwritten: name another folder" \
  setup --from "$work/newer" --into "$work/site"

# A folder that is not there, a word that is no option.
refuses "--from $work/nowhere: no such folder" setup --from "$work/nowhere"
refuses "got --form, wanted --from DIR, --into DIR or --download DIR" setup --form x
echo "runtime_setup_test: ok"
