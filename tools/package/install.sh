#!/usr/bin/env bash
# Makes an unpacked Hexad ready to run: fetches LibTorch and Apache Arrow, pinned by SHA-256, into the user's cache
# (`hexad setup` does the same). With --prefix Hexad itself is copied to DIR, and the libraries beside it.
# usage: install.sh [--prefix DIR] [--from DIR]
# --from DIR: the wheels are in DIR, and the network is not used.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf 'install: %s\n' "$*"; }
die() { printf 'install: %s\n' "$*" >&2; exit 1; }
prefix='' options=()
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || die "$1 wants a folder; usage: install.sh [--prefix DIR] [--from DIR]"
  case $1 in
    --prefix) prefix=$2 ;;
    --from) options+=(--from "$2") ;;
    *) die "got $1, wanted --prefix DIR or --from DIR" ;;
  esac
  shift 2
done
if [ -n "$prefix" ]; then
  mkdir -p "$prefix"
  prefix=$(cd "$prefix" && pwd)
  cp -a "$here/bin" "$here/include" "$here/lib" "$here/share" "$prefix/"
  options+=(--into "$prefix/lib/hexad/wheels")
fi
bash "$here/share/hexad/runtime/setup.sh" ${options[@]+"${options[@]}"}
say "ready: ${prefix:-$here}/bin/hexad train quickstart"
