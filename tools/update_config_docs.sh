#!/usr/bin/env bash
# Writes docs/config.md from the schema. Usage: tools/update_config_docs.sh [BUILD_DIR]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/dev}
cmake --build "$build" --target test_config
HEXAD_UPDATE_DOCS=1 HEXAD_SOURCE_DIR=$root "$build/tests/test_config" --test-case="the reference page is generated*"
