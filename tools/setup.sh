#!/usr/bin/env bash
# Installs everything Hexad builds with (Debian 12+, Ubuntu 24.04+). Idempotent; says what it installs before it does.
# LibTorch and Apache Arrow are unpacked from the pinned wheels `torch` and `pyarrow` into $HEXAD_CACHE (default
# ~/.cache/hexad), outside the checkout.
# `--cuda` adds what only the preset `cuda` needs (the CUDA toolkit with cuDNN is the machine's); `--tests` installs
# what only `make test` needs, `--package` what packing and `make test-install` need.
set -euo pipefail

wheels=$(cd "$(dirname "$0")" && pwd)/wheels.txt  # versions, and the SHA-256 of each file
from=''  # no folder that has them
. "$(dirname "$wheels")/runtime/fetch_wheel.sh"
torch_version=$(version_of torch)
arrow_version=$(version_of pyarrow)
cudnn_frontend_version=$(version_of nvidia-cudnn-frontend)
flashinfer_version=$(version_of flashinfer-python)
cache=${HEXAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hexad}
packages=(g++ cmake ninja-build ccache mold pkg-config python3 python3-pip cmark-gfm
  libboost-dev libyaml-cpp-dev libspdlog-dev libfmt-dev doctest-dev nlohmann-json3-dev
  libcli11-dev libcurl4-openssl-dev libzmq3-dev cppzmq-dev libsodium-dev libpcre2-dev libicu-dev rapidjson-dev
  libzstd-dev)
test_packages=(chromium clang clang-tidy libclang-rt-dev llvm abigail-tools openmpi-bin slurmctld slurmd slurm-client
  munge tmux zsh fish groff-base)

# Ubuntu has Chromium as a snap alone: there a browser that is installed already serves.
command -v chromium-browser google-chrome > /dev/null && test_packages=("${test_packages[@]:1}")

package_packages=(binutils patchelf dpkg-dev mmdebstrap buildah)

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

[ "$(uname -m)" = x86_64 ] || die "this machine is $(uname -m); LibTorch is pinned for x86_64"
command -v apt-get >/dev/null || die "needs apt-get (Debian 12+ or Ubuntu 24.04+); install by hand: ${packages[*]}"

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "needs root to run '$*': run as root or install sudo"; fi
}

# install_packages NAME...
install_packages() {
  local missing=()
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

install_libtorch() {
  local dest=$cache/libtorch-$torch_version
  mkdir -p "$cache"
  if [ ! -e "$dest/torch/include/torch/headeronly/version.h" ]; then  # `hexad setup` leaves headers out
    say "downloading LibTorch $torch_version (530 MB) into $cache"
    fetch_wheel torch 'torch/(include|lib|share)/|torch/version\.py' "$dest"
  fi
  # libtorch_cpu.so of this wheel needs libcudart and libcupti, also where there is no GPU, and looks for them here.
  local cuda=$dest/nvidia/cu13/lib
  if [ ! -e "$cuda/libcupti.so.13" ]; then
    say "downloading the CUDA runtime libraries that LibTorch needs (15 MB) into $cache"
    fetch_wheel nvidia-cuda-runtime '.*/lib/libcudart' "$cache/cuda-runtime-wheel"
    fetch_wheel nvidia-cuda-cupti '.*/lib/libcupti\.so' "$cache/cuda-cupti-wheel"
    mkdir -p "$cuda"
    find "$cache/cuda-runtime-wheel" "$cache/cuda-cupti-wheel" -name '*.so*' -exec cp {} "$cuda/" \;
    rm -rf "$cache/cuda-runtime-wheel" "$cache/cuda-cupti-wheel"
  fi
}

# Arrow's C++, headers and libraries: data in Parquet, Arrow and CSV files is read by it.
install_arrow() {
  local dest=$cache/arrow-$arrow_version
  [ -e "$dest/pyarrow/include/parquet/arrow/reader.h" ] && return
  mkdir -p "$cache"
  say "downloading Apache Arrow $arrow_version (55 MB) into $cache"
  fetch_wheel pyarrow 'pyarrow/(include/(arrow|parquet)/|lib(arrow|parquet)\.so\.)' "$dest"
}

install_cudnn_frontend() {
  local dest=$cache/cudnn-frontend-$cudnn_frontend_version
  [ -e "$dest/include/cudnn_frontend.h" ] && return
  say "downloading the headers of the cuDNN frontend $cudnn_frontend_version into $cache"
  fetch_wheel nvidia-cudnn-frontend 'include/' "$dest"
}

install_flashinfer() {
  local dest=$cache/flashinfer-$flashinfer_version
  [ -e "$dest/flashinfer/data/include/flashinfer/attention/prefill.cuh" ] &&
    [ -e "$dest/flashinfer/data/cutlass/include/cutlass/cutlass.h" ] && return
  mkdir -p "$cache"
  say "downloading the headers of FlashInfer $flashinfer_version and of the CUTLASS in it (62 MB) into $cache"
  fetch_wheel flashinfer-python 'flashinfer/data/(include|cccl|cutlass/include)/' "$dest"
}

case "${1:-}" in
  "") install_packages "${packages[@]}"; install_libtorch; install_arrow ;;
  --cuda)
    install_packages "${packages[@]}"; install_libtorch; install_arrow
    install_cudnn_frontend; install_flashinfer ;;
  --tests) install_packages "${test_packages[@]}" ;;
  --package) install_packages "${package_packages[@]}" ;;
  *) die "got $1, wanted nothing, --cuda, --tests or --package" ;;
esac
