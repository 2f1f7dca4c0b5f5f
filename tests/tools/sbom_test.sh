#!/usr/bin/env bash
# tools/sbom.py on a build of one program and one library of ours, which link zlib and open libzmq by its name; on a
# package, an archive and a bundle of it; and what it refuses.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
sbom=$source_dir/tools/sbom.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { printf '%s\n' "$*"; failed=1; }

build=$work/build
mkdir -p "$build/bin" "$build/lib/hexad/plugins"
printf 'CMAKE_PROJECT_VERSION:STATIC=1.2.3\nCMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$work" > "$build/CMakeCache.txt"
cached=$(ldconfig -p)  # whole: who writes into a pipe that is closed early fails
library() { awk -v name="$1" '$1 == name {print $NF; exit}' <<< "$cached"; }
zlib=$(library libz.so.1)
zmq=$(library libzmq.so.5)
printf 'const char* zlibVersion(void);\nconst char* ours(void) { return zlibVersion(); }\n' > "$work/ours.c"
cc -shared -fPIC -o "$build/lib/libours.so" "$work/ours.c" -Wl,--no-as-needed "$zlib"
printf 'const char* ours(void);\nconst char* opened = "libzmq.so.5";\nint main(void) { return !ours() || !opened; }\n' \
  > "$work/hexad.c"
cc -o "$build/bin/hexad" "$work/hexad.c" -L"$build/lib" -lours "-Wl,-rpath,\$ORIGIN/../lib" "-Wl,-rpath-link,/usr/lib"

# check FILE EXPRESSION...: of `bom`, `of` (components by name), `uses(name)`
check() {
  python3 - "$@" <<'P' || failed=1
import hashlib, json, pathlib, subprocess, sys
bom = json.loads(pathlib.Path(sys.argv[1]).read_text())
of = {each["name"]: each for each in bom["components"]}
def uses(name): return {each["value"] for each in of[name]["properties"] if each["name"] == "hexad:use"}
def version(name): return subprocess.check_output(["dpkg-query", "-W", "-f", "${Version}", name], text=True)
def digest(path): return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
def needs(ref): return next(each["dependsOn"] for each in bom["dependencies"] if each["ref"] == ref)
wrong = [each for each in sys.argv[2:] if not eval(each)]
for each in wrong: print(f"{sys.argv[1]}: not so: {each}\n  components: {sorted(of)}")
refs = [each["bom-ref"] for each in bom["components"]]
if len(refs) != len(set(refs)): sys.exit("a bom-ref stands twice")
known = {"hexad", *refs}
if any(not set(each["dependsOn"]) <= known for each in bom["dependencies"]): sys.exit("a ref to nothing")
sys.exit(bool(wrong))
P
}

out=$("$sbom" "$build")
[ "$out" = "$build/hexad.cdx.json" ] || fail "it printed $out"
check "$build/hexad.cdx.json" 'bom["bomFormat"] == "CycloneDX" and bom["specVersion"] == "1.5"' \
  'bom["metadata"]["component"]["version"] == "1.2.3"' 'of["zlib1g"]["version"] == version("zlib1g")' \
  'of["zlib1g"]["purl"].startswith("pkg:deb/") and "arch=" in of["zlib1g"]["purl"]' 'uses("zlib1g") == {"linked"}' \
  'uses("libc6") == {"linked"}' 'of["libzmq5"]["version"] == version("libzmq5")' \
  'uses("libzmq5") == {"opened at run time"}' '"hexad:libours.so" in needs("hexad:hexad")' \
  "of['libours.so']['hashes'][0]['content'] == digest('$build/lib/libours.so')" 'of["dlpack"]["version"]'
cp "$build/hexad.cdx.json" "$work/first"
"$sbom" "$build" > /dev/null
cmp -s "$work/first" "$build/hexad.cdx.json" || fail "the same build has two documents"

# The artefacts: of each what is in it, and no more.
mkdir -p "$work/deb/DEBIAN" "$work/deb/usr/bin" "$work/deb/usr/include"
printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: none <none@none.invalid>\nDescription: x\n' \
  > "$work/deb/DEBIAN/control"
cp "$build/bin/hexad" "$work/deb/usr/bin/"
cp "$source_dir/sdk/include/dlpack.h" "$work/deb/usr/include/"
dpkg-deb --build "$work/deb" "$work/x.deb" > /dev/null
tar -czf "$work/x.tar.gz" -C "$work/deb/usr" include
mkdir -p "$work/bundle/lib"
cp -L "$zlib" "$build/lib/libours.so" "$work/bundle/lib/"
"$sbom" "$build" "$work/x.deb" "$work/x.tar.gz" "$work/bundle" > /dev/null
check "$work/x.deb.cdx.json" '{"hexad", "dlpack", "libzmq5", "zlib1g"} <= of.keys()' 'uses("dlpack") == {"bundled"}' \
  'bom["metadata"]["component"]["name"] == "x.deb"'
check "$work/x.tar.gz.cdx.json" 'of.keys() == {"dlpack"}'
check "$work/bundle.cdx.json" 'uses("zlib1g") == {"bundled", "linked"}' '"libzmq5" not in of'

# A library that nothing installed is a file, and told.
cp "$zlib" "$build/lib/nobodys.so.1"
cc -shared -fPIC -o "$build/lib/libours.so" "$work/ours.c" -Wl,--no-as-needed "$build/lib/nobodys.so.1"
mv "$build/lib/nobodys.so.1" "$build/lib/libz.so.1"
said=$(LD_LIBRARY_PATH=$build/lib "$sbom" "$build" 2>&1)
[[ $said == *"no package and no pinned wheel has $build/lib/libz.so.1"* ]] || fail "of a stranger's library: $said"

# One of a wheel that was unpacked into the cache is the wheel of tools/wheels.txt.
mkdir -p "$work/cache/libtorch-9/torch/lib"
mv "$build/lib/libz.so.1" "$work/cache/libtorch-9/torch/lib/"
LD_LIBRARY_PATH=$work/cache/libtorch-9/torch/lib "$sbom" "$build" > /dev/null
check "$build/hexad.cdx.json" 'of["torch"]["purl"].startswith("pkg:pypi/torch@")' 'of["torch"]["hashes"]' \
  '"zlib1g" not in of'

# refused WORDS ARGUMENT...
refused() {
  said=$("$sbom" "${@:2}" 2>&1) && fail "${*:2}: not refused"
  [[ $said == *"$1"* ]] || fail "${*:2}: got: $said"
}
refused "wanted BUILD_DIR"
refused "is no build" "$work"
refused "is not there" "$build" "$work/none.deb"
refused "is no .deb, no .tar.gz and no folder" "$build" "$work/hexad.c"
mkdir "$work/empty" "$work/other" "$work/nothing"
echo "#define DLPACK_MAJOR_VERSION 1" > "$work/other/dlpack.h"
refused "does not say its version" "$build" "$work/other"
cp "$build/CMakeCache.txt" "$work/nothing/"
refused "has no program, library or plugin" "$work/nothing"
rm "$build/lib/libours.so"
refused "needs libours.so, which the loader does not find" "$build"
refused "is empty" "$build" "$work/empty"

# What scripts install is pinned: every requirement of every list has a digest, and no script installs anything else but
# what we have built or fetched before.
for list in "$source_dir"/tools/wheels*.txt; do
  awk '/^[a-z]/ {if (name && !hashes) bad = name; name = $1; hashes = 0}
    /--hash=sha256:[0-9a-f]+/ {++hashes}
    END {if (!hashes) bad = name " "; if (bad) print bad ": no digest"; exit bad != ""}' "$list" || fail "$list"
done
unpinned=$(cd "$source_dir" && git ls-files '*.sh' '*.py' '*.cmake' Makefile .ci | grep -v '^tests/' | xargs awk '
  FNR == 1 {joined = ""}
  {joined = joined $0; if (/\\$/) next}
  joined ~ /--no-index|\/packages\/hexad-/ {joined = ""}
  joined ~ /pip.* (install|download) / && joined !~ /require-hashes|printf|say |die |^ *#/ {print FILENAME ": " joined}
  {joined = ""}' || true)
[ -z "$unpinned" ] || fail "installs without digests: $unpinned"
exit $failed
