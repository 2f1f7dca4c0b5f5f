#!/usr/bin/env bash
# Writes docs/config.md from the schema, docs/plugins/NAME.md from the declaration of each plugin that comes with the
# engine (that folder holds nothing else), and docs/exit_codes.md. Usage: tools/update_config_docs.sh [BUILD_DIR]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/dev}
cmake --build "$build"
rm -f "$root"/docs/plugins/*.md
HEXAD_UPDATE_DOCS=1 HEXAD_SOURCE_DIR=$root "$build/tests/test_app" \
  --test-case="the reference pages are generated*,the page of exit codes*"
