#!/bin/sh
# Builds build/libppo_clip_rust.so and its manifest: loss_rust/build.sh [FOLDER]. Needs rustc (1.63 or
# newer; no crates) and, for the manifest, cmake.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/build}
command -v rustc >/dev/null || { echo "loss_rust: no rustc in PATH: apt-get install rustc" >&2; exit 1; }
mkdir -p "$out"
rustc --edition 2021 -O --crate-type cdylib --crate-name ppo_clip_rust -C strip=symbols \
  -C link-args=-Wl,-z,now,-z,relro,-z,noexecstack,-z,nodelete,--build-id \
  -o "$out/libppo_clip_rust.so" "$here/ppo_clip_rust.rs"
writer=$here/../../cmake/write_manifest.cmake
[ -e "$writer" ] || writer=$here/../../../../lib/cmake/HexadSDK/write_manifest.cmake  # installed
cmake -DLIBRARY="$out/libppo_clip_rust.so" -DKIND=loss -DNAME=ppo_clip_rust -P "$writer"
echo "$out/libppo_clip_rust.so"
