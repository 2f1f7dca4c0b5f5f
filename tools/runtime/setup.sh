#!/usr/bin/env bash
# What `hexad setup` runs: unpacks the libraries of others that Hexad opens on a CPU, from pinned wheels: LibTorch with
# the two of CUDA's that it is linked with, and Apache Arrow. Nothing that is there already is fetched again.
# usage: setup.sh [--from DIR] [--into DIR]
# --from DIR: the wheels are in DIR, and the network is not used. --into DIR: a folder like site-packages; default: in
# $HEXAD_CACHE, $XDG_CACHE_HOME/hexad or ~/.cache/hexad, where tools/setup.sh has them too.
set -euo pipefail
say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wheels=$here/wheels.txt
[ -e "$wheels" ] || wheels=$here/../wheels.txt  # of a checkout
from='' into=''
while [ $# -gt 0 ]; do
  case $1 in
    --from|--into) [ $# -gt 1 ] || die "$1 wants a folder"; printf -v "${1#--}" '%s' "$2"; shift 2 ;;
    *) die "got $1, wanted --from DIR or --into DIR" ;;
  esac
done
[ -z "$from" ] || [ -d "$from" ] || die "--from $from: no such folder"
[ -z "$from" ] || from=$(cd "$from" && pwd)
[ "$(uname -m)" = x86_64 ] || die "this machine is $(uname -m): the wheels are for x86_64 alone"
python3 -m pip --version > /dev/null 2>&1 ||
  die "it is pip that fetches the wheels, and python3 -m pip does not run here: apt-get install python3-pip"
. "$here/fetch_wheel.sh"

cache=${HEXAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hexad}
torch_site=${into:-$cache/libtorch-$(version_of torch)}
arrow_site=${into:-$cache/arrow-$(version_of pyarrow)}

# fetch_into SITE NAME PATTERN: the files of a wheel, each as pip would place it below SITE.
fetch_into() {
  local part=$1/.part.$2
  fetch_wheel "$2" "$3" "$part"
  cp -a -l "$part/." "$1/"
  rm -rf "$part"
}

if [ -e "$torch_site/torch/lib/libtorch_cpu.so" ] && [ -e "$torch_site/nvidia/cu13/lib/libcupti.so.13" ]; then
  say "LibTorch $(version_of torch) is in $torch_site"
else
  say "LibTorch $(version_of torch) (530 MB) into $torch_site"
  fetch_into "$torch_site" nvidia-cuda-runtime '.*/lib/libcudart\.so'
  fetch_into "$torch_site" nvidia-cuda-cupti '.*/lib/libcupti\.so'
  fetch_into "$torch_site" torch 'torch/(version\.py|lib/(libtorch_cpu|libc10|libgomp)\.so)'
fi
if ls "$arrow_site"/pyarrow/libparquet.so.* > /dev/null 2>&1; then
  say "Apache Arrow $(version_of pyarrow) is in $arrow_site"
else
  say "Apache Arrow $(version_of pyarrow) (48 MB) into $arrow_site"
  fetch_into "$arrow_site" pyarrow 'pyarrow/lib(arrow|parquet)\.so\.'
fi
