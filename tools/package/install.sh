#!/usr/bin/env bash
# Makes an unpacked Hexad ready to run: fetches LibTorch and Apache Arrow, pinned by SHA-256, into the user's cache
# (`hexad setup` does the same). With --prefix Hexad itself is copied to DIR, and the libraries beside it.
# usage: install.sh [--prefix DIR] [--from DIR], or install.sh --download DIR
# --from DIR: the wheels are in DIR, and the network is not used. --download DIR: fetches them into DIR, no more.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
setup=$here/share/hexad/runtime/setup.sh
say() { printf 'install: %s\n' "$*"; }
die() { printf 'install: %s\n' "$*" >&2; exit 1; }
prefix='' download='' options=()
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || die "$1 wants a folder; usage: install.sh [--prefix DIR] [--from DIR], or install.sh --download DIR"
  case $1 in
    --prefix) prefix=$2 ;;
    --from) options+=(--from "$2") ;;
    --download) download=$2 ;;
    *) die "got $1, wanted --prefix DIR, --from DIR or --download DIR" ;;
  esac
  shift 2
done
if [ -n "$download" ]; then
  [ -z "$prefix" ] || die "--download $download installs nothing: leave --prefix $prefix out"
  exec bash "$setup" --download "$download" ${options[@]+"${options[@]}"}
fi
if [ -n "$prefix" ]; then
  mkdir -p "$prefix"
  prefix=$(cd "$prefix" && pwd)
  # Folders that are there, as /usr/local/bin, keep their owner and mode; a program that runs keeps the file it has.
  cp -R --remove-destination "$here/bin" "$here/include" "$here/lib" "$here/share" "$prefix/"
  options+=(--into "$prefix/lib/hexad/wheels")
fi
bash "$setup" ${options[@]+"${options[@]}"}
say "ready: ${prefix:-$here}/bin/hexad train quickstart"
