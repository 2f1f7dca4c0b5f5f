#!/usr/bin/env bash
# What wheel, tarball and Debian package are made of: an installation of a build (bin, lib, share, include) without
# debug information, whose files find each other wherever it lies. LibTorch and Arrow are not in it: the program looks
# for the wheels that have them (lib/installation/wheel.hpp).
# usage: tools/package/stage.sh BUILD_DIR DEST carry|depend
# carry: with the libraries of others (lib/hexad/system, their licences in share/doc/hexad), but for those that every
# distribution has: glibc, libgcc_s, libstdc++. depend: without.
set -euo pipefail
build=$1 dest=$2 libraries=$3
here=$(cd "$(dirname "$0")" && pwd)
. "$here/slim.sh"
[ -x "$build/bin/hexad" ] || { echo "package: no $build/bin/hexad: make build first" >&2; exit 2; }
command -v patchelf > /dev/null || { echo "package: needs patchelf: tools/setup.sh --package" >&2; exit 2; }

rm -rf "$dest"
mkdir -p "$(dirname "$dest")"
cmake --install "$build" --prefix "$dest" > /dev/null
mkdir -p "$dest/share/doc/hexad"
cp "$here/../../LICENSE" "$dest/share/doc/hexad/"

system_path() { ldconfig -p | awk -v name="$1" '$1 == name && /x86-64/ {print $NF; exit}'; }
# The Debian package of a library's file, which the archive may know below /usr or not.
package_of() {
  local real
  real=$(readlink -f "$1")
  { dpkg-query -S "$real" || dpkg-query -S "${real#/usr}"; } 2> /dev/null | head -n1 | cut -d: -f1
}

carry() {
  local theirs='ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+|libgomp.*|linux-vdso'
  theirs="^($theirs|libtorch.*|libc10.*|libcu(da|pti|blas|dnn|fft|solver|sparse|rand|file).*|libnv.*|libnccl.*"
  theirs="$theirs|libarrow|libparquet|libhexad.*)\.so"
  local system=$dest/lib/hexad/system zmq=libzmq.so.5  # which hexad opens with its first socket
  mkdir -p "$system" "$dest/share/doc/hexad/licences"
  cp -L "$(system_path $zmq)" "$system/$zmq"
  for file in "$dest"/bin/* "$dest"/lib/*.so "$dest"/lib/hexad/plugins/*.so "$system/$zmq"; do
    ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}'
  done | sort -u | while read -r name path; do
    [[ $name =~ $theirs ]] || [ "$path" = "$dest/lib/$name" ] || cp -L "$path" "$system/$name"
  done
  local library package
  for library in "$system"/*; do
    package=$(package_of "$(system_path "$(basename "$library")")")
    [ -n "$package" ] || { echo "package: no Debian package has $(basename "$library")" >&2; exit 1; }
    cp -L "/usr/share/doc/$package/copyright" "$dest/share/doc/hexad/licences/$package"
  done
}

[ "$libraries" != carry ] || carry
strip_tree "$dest"
lead_loader "$dest"
