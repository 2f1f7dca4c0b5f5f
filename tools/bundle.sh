#!/usr/bin/env bash
# Packs a build for a machine that has LibTorch and little else: stripped program, plugins and the shared libraries they
# need (not libc, libstdc++, LibTorch, CUDA or Arrow). Prints the size. Run the result with
#   LD_LIBRARY_PATH=<torch>/lib:<nvidia libraries> bundle/bin/hexad ...
# usage: tools/bundle.sh BUILD_DIR [DEST [PROGRAM ...]]
# PROGRAM: others of the build to take along, as bin/train_step or tests/test_modeling.
set -euo pipefail
build=$1
dest=${2:-$build/bundle}
programs=(bin/hexad "${@:3}")
[ -x "$build/bin/hexad" ] || { echo "bundle: no $build/bin/hexad: build it first" >&2; exit 2; }

rm -rf "$dest"
mkdir -p "$dest/bin" "$dest/lib/hexad/plugins"
for program in "${programs[@]}"; do
  mkdir -p "$(dirname "$dest/$program")"
  cp "$build/$program" "$dest/$program"
done
cp "$build"/lib/*.so "$dest/lib/" 2>/dev/null || true
rm -f "$dest/lib/libhexad_arrow.so"  # Arrow is 50 MB: rows travel as JSONL
cp "$build"/lib/hexad/plugins/* "$dest/lib/hexad/plugins/"

# Everything that the loader finds for our files, but what the other machine brings itself.
theirs='ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libgomp.*|linux-vdso'
theirs="^($theirs|libtorch.*|libc10.*|libcu.*|libnv.*|libnccl.*|libhexad.*)\.so"
zmq=libzmq.so.5  # which hexad opens with its first socket
cp -L "$(awk -v name="$zmq" '$1 == name {print $NF; exit}' <<< "$(ldconfig -p)")" "$dest/lib/$zmq"
for file in "${programs[@]/#/$dest/}" "$dest"/lib/*.so "$dest/lib/$zmq"; do
  ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}'
done | sort -u | while read -r name path; do
  [[ $name =~ $theirs ]] || cp -L "$path" "$dest/lib/$name"
done
for program in "${programs[@]}"; do [[ $program == bin/* ]] || strip --strip-unneeded "$dest/$program"; done
. "$(dirname "$0")/package/slim.sh"
strip_tree "$dest"
du -sh "$dest"
