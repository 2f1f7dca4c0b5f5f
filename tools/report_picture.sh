#!/usr/bin/env bash
# The first screen of a run's report as a picture, for a README: headless Chromium, light.
#
#   tools/report_picture.sh RUN_DIR OUT.png [HEXAD]
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${3:-build/dev/bin/hexad}" report "$1" --out "$work/report.html"
timeout 300 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
  --window-size=1280,1000 --virtual-time-budget=3000 --screenshot="$work/report.png" "file://$work/report.html" \
  2> /dev/null
mv "$work/report.png" "$2"
