#!/usr/bin/env bash
# Makes the tarball of a staged tree (tools/package/stage.sh carry) with install.sh. Takes away what OUT_DIR has of
# other versions, and prints the file's name.
# usage: tools/package/tarball.sh STAGE OUT_DIR
set -euo pipefail
stage=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
name=hexad-$(cat "$here/../../sdk/VERSION")-linux-x86_64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/$name"
cp -a -l "$stage/." "$work/$name/" 2> /dev/null || cp -a "$stage/." "$work/$name/"
install -m 755 "$here/install.sh" "$work/$name/install.sh"
rm -f "$out"/hexad-*-linux-x86_64.tar.gz
tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
echo "$out/$name.tar.gz"
