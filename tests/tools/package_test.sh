#!/usr/bin/env bash
# What tools/package/wheel.py makes of a tree, and what tools/runtime/setup.sh unpacks: from wheels that are made here.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "package_test: $*" >&2; exit 1; }
says() { grep -qF -- "$2" <<< "$1" || fail "got: $1; wanted: $2"; }

# A wheel of a tree.
stage=$work/stage version=$(cat "$source_dir/sdk/VERSION")
mkdir -p "$stage/bin" "$stage/lib/hexad/plugins"
cp /bin/true "$stage/bin/hexad"
echo '{}' > "$stage/lib/hexad/plugins/liba.hexad.json"
wheel=$("$source_dir/tools/package/wheel.py" "$stage" "$work/out")
[ "$(basename "$wheel")" = "hexad-$version-py3-none-manylinux_2_35_x86_64.whl" ] || fail "named $wheel"
python3 - "$wheel" "$version" <<'P'
import base64, hashlib, sys, zipfile
archive, base = zipfile.ZipFile(sys.argv[1]), f"hexad-{sys.argv[2]}"
record = {}
for line in archive.read(f"{base}.dist-info/RECORD").decode().splitlines():
    name, digest, size = line.rsplit(",", 2)
    record[name] = (digest, size)
assert set(record) == set(archive.namelist()), set(record) ^ set(archive.namelist())
for name, (digest, size) in record.items():
    if digest:
        content = archive.read(name)
        assert int(size) == len(content), name
        real = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert digest == "sha256=" + real, name
program = archive.getinfo(f"{base}.data/scripts/hexad")
assert program.external_attr >> 16 & 0o111, "the program cannot be run"
assert archive.read(program)[:4] == b"\x7fELF"
assert f"{base}.data/data/lib/hexad/plugins/liba.hexad.json" in record
metadata = archive.read(f"{base}.dist-info/METADATA").decode()
assert "\nRequires-Dist: torch==" in metadata and "\nRequires-Dist: pyarrow==" in metadata, metadata
P
# One whose program wants a newer glibc says so in its name, and which symbol it is.
cat > "$work/new.c" <<'C'
unsigned arc4random(void);
int main(void) { return (int)arc4random(); }
C
if gcc "$work/new.c" -o "$stage/bin/hexad" 2> /dev/null; then  # glibc 2.36 or later
  wheel=$("$source_dir/tools/package/wheel.py" "$stage" "$work/out" 2> "$work/said")
  says "$wheel" "-manylinux_2_36_x86_64.whl"
  says "$(cat "$work/said")" "bin/hexad wants arc4random of glibc 2.36"
fi

# setup.sh: wheels with the names and files of the real ones, and their digests.
runtime=$work/runtime
cp -r "$source_dir/tools/runtime" "$runtime"
mkdir "$work/wheels"
python3 - "$work/wheels" "$runtime/wheels.txt" <<'P'
import hashlib, sys, zipfile
folder, listed = sys.argv[1:]
files = {"torch 2.11.0": ["torch/version.py", "torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so", "torch/a.py"],
         "nvidia-cuda-runtime 13.0.96": ["nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/include/a.h"],
         "nvidia-cuda-cupti 13.0.85": ["nvidia/cu13/lib/libcupti.so.13"],
         "pyarrow 26.0.1": ["pyarrow/libarrow.so.2600", "pyarrow/libparquet.so.2600", "pyarrow/libarrow_x.so.2600"]}
with open(listed, "w") as pins:
    for wheel, names in files.items():
        name, version = wheel.split()
        base = f"{name.replace('-', '_')}-{version}"
        path = f"{folder}/{base}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for each in names + [f"{base}.dist-info/{part}" for part in ("METADATA", "WHEEL", "RECORD")]:
                archive.writestr(each, f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                                 if each.endswith("METADATA") else "Wheel-Version: 1.0\n")
        pins.write(f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(open(path, 'rb').read()).hexdigest()}\n")
P
listing() { (cd "$1" && find . -type f | LC_ALL=C sort | tr '\n' ' '); }
bash "$runtime/setup.sh" --from "$work/wheels" --into "$work/site" > "$work/said"
[ "$(listing "$work/site")" = "./nvidia/cu13/lib/libcudart.so.13 ./nvidia/cu13/lib/libcupti.so.13 \
./pyarrow/libarrow.so.2600 ./pyarrow/libparquet.so.2600 ./torch/lib/libtorch_cpu.so ./torch/version.py " ] ||
  fail "unpacked: $(listing "$work/site")"
says "$(HEXAD_CACHE=$work/cache bash "$runtime/setup.sh" --from "$work/wheels")" "into $work/cache/libtorch-2.11.0"
[ -e "$work/cache/arrow-26.0.1/pyarrow/libarrow.so.2600" ] || fail "no Arrow in the cache"
says "$(HEXAD_CACHE=$work/cache bash "$runtime/setup.sh")" "LibTorch 2.11.0 is in $work/cache/libtorch-2.11.0"
# A wheel with other bytes than were pinned, a folder that is not there, a word that is no option.
rm -rf "$work/site"
echo more >> "$work/wheels/torch-2.11.0-py3-none-any.whl"
! said=$(bash "$runtime/setup.sh" --from "$work/wheels" --into "$work/site" 2>&1) || fail "took another torch"
says "$said" "pip cannot fetch torch 2.11.0: see above"
[ ! -e "$work/site/torch" ] || fail "left a torch"
! said=$(bash "$runtime/setup.sh" --from "$work/none" 2>&1) || fail "took a folder that is not there"
says "$said" "--from $work/none: no such folder"
! said=$(bash "$runtime/setup.sh" --form x 2>&1) || fail "took a word that is no option"
says "$said" "got --form, wanted --from DIR or --into DIR"
echo "package_test: ok"
