#!/usr/bin/env bash
# What `hexad setup` runs: unpacks the libraries of others that Hexad opens on a CPU, from pinned wheels: LibTorch with
# the two of CUDA's that it is linked with, and Apache Arrow. A wheel that is there already in the pinned version is not
# fetched again, so that what has failed halfway is run again, and goes on.
# usage: setup.sh [--from DIR] [--into DIR | --download DIR]
# --from DIR: the wheels are in DIR, and the network is not used. --into DIR: a folder like site-packages; default: in
# $HEXAD_CACHE, $XDG_CACHE_HOME/hexad or ~/.cache/hexad, where tools/setup.sh has them too. --download DIR: the wheels
# themselves into DIR, for --from on another machine, and nothing else.
set -euo pipefail
say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wheels=$here/wheels.txt
[ -e "$wheels" ] || wheels=$here/../wheels.txt  # of a checkout
from='' into='' download=''
while [ $# -gt 0 ]; do
  case $1 in
    --from|--into|--download) [ $# -gt 1 ] || die "$1 wants a folder"; printf -v "${1#--}" '%s' "$2"; shift 2 ;;
    *) die "got $1, wanted --from DIR, --into DIR or --download DIR" ;;
  esac
done
[ -z "$from" ] || [ -d "$from" ] || die "--from $from: no such folder"
[ -z "$from" ] || from=$(cd "$from" && pwd)
[ -z "$into" ] || [ -z "$download" ] || die "--download $download unpacks nothing: leave --into $into out"
[ -n "$download" ] || [ "$(uname -m)" = x86_64 ] || die "this machine is $(uname -m): the wheels are for x86_64 alone"
python3 -m pip --version > /dev/null 2>&1 ||
  die "it is pip that fetches the wheels, and python3 -m pip does not run here: apt-get install python3-pip"
. "$here/fetch_wheel.sh"

if [ -n "$download" ]; then
  mkdir -p "$download"
  for name in nvidia-cuda-runtime nvidia-cuda-cupti torch pyarrow; do
    say "$name $(version_of $name) into $download"
    download_wheel $name "$download"
  done
  exit
fi

cache=${HEXAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hexad}

# is_there SITE NAME FILE: whether this wheel is, in the pinned version. SITE/.hexad/NAME says which one was unpacked,
# and where tools/setup.sh did that, the name of the cache's folder.
is_there() {
  [ -e "$1/$3" ] || return 1
  if [ -e "$1/.hexad/$2" ]; then [ "$(cat "$1/.hexad/$2")" = "$(version_of "$2")" ]; else [ -z "$into" ]; fi
}

# place FROM SITE: moves files, one at a time, so that none is ever there by half, and one that is in use stays whole.
place() {
  local file
  (cd "$1" && find . ! -type d) | while IFS= read -r file; do
    mkdir -p "$2/$(dirname "$file")"
    mv -f "$1/$file" "$2/$file"
  done
}

# provide TITLE SIZE SITE NAME FILE PATTERN: has the files of a wheel that match PATTERN below SITE, each where pip
# would place it. FILE is one of them.
provide() {
  local title site=$3 name=$4 part=$3/.part.$4
  title="$1 $(version_of "$name")"
  if is_there "$site" "$name" "$5"; then say "$title is in $site"; return; fi
  [ -e "$site/.hexad/$name" ] || ! compgen -G "$site/${name//-/_}-*.dist-info" > /dev/null ||
    die "$site has a $name that pip installed, and it would be overwritten: name another folder with --into"
  say "$title ($2) into $site"
  unfinished+=("$part")
  fetch_wheel "$name" "$6" "$part"
  mkdir -p "$site/.hexad"
  rm -f "$site/.hexad/$name"
  place "$part" "$site"
  rm -rf "$part"
  version_of "$name" > "$site/.hexad/$name"
}

# Libraries of CUDA have the first number of its version in their names, Arrow's the first two: libparquet.so.2600 is of
# 26.0.
cuda=$(version_of nvidia-cuda-runtime | cut -d. -f1)
arrow=$(version_of pyarrow | awk -F. '{printf "%d%02d", $1, $2}')
torch_site=${into:-$cache/libtorch-$(version_of torch)}
arrow_site=${into:-$cache/arrow-$(version_of pyarrow)}
nvidia=nvidia/cu$cuda/lib
provide libcudart '2 MB' "$torch_site" nvidia-cuda-runtime "$nvidia/libcudart.so.$cuda" '.*/lib/libcudart\.so'
provide libcupti '11 MB' "$torch_site" nvidia-cuda-cupti "$nvidia/libcupti.so.$cuda" '.*/lib/libcupti\.so'
provide LibTorch '530 MB' "$torch_site" torch torch/lib/libtorch_cpu.so \
  'torch/(version\.py|lib/(libtorch_cpu|libc10|libgomp)\.so)'
provide 'Apache Arrow' '48 MB' "$arrow_site" pyarrow "pyarrow/libparquet.so.$arrow" 'pyarrow/lib(arrow|parquet)\.so\.'
