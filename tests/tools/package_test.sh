#!/usr/bin/env bash
# What tools/package makes of a tree: wheel, Debian package, tarball and what its install.sh copies.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "package_test: $*" >&2; exit 1; }
says() { grep -qF -- "$2" <<< "$1" || fail "got: $1; wanted: $2"; }
refuses() {  # TEXT COMMAND...
  local said
  ! said=$("${@:2}" 2>&1) || fail "took: ${*:2}"
  says "$said" "$1"
}
listing() { (cd "$1" && find . -type f ! -path './.hexad/*' | LC_ALL=C sort | tr '\n' ' '); }

# A wheel of a tree.
stage=$work/stage version=$(cat "$source_dir/sdk/VERSION")
mkdir -p "$stage/bin" "$stage/lib/hexad/plugins"
cp /bin/true "$stage/bin/hexad"
echo '{}' > "$stage/lib/hexad/plugins/liba.hexad.json"
mkdir "$work/out"
touch "$work/out/hexad-0.0.9-py3-none-manylinux_2_35_x86_64.whl" "$work/out/other-1.whl"
wheel=$("$source_dir/tools/package/wheel.py" "$stage" "$work/out")
[ "$(listing "$work/out")" = "./$(basename "$wheel") ./other-1.whl " ] || fail "wheels: $(listing "$work/out")"
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

# A Debian package, the only one in its folder: links from where man and shells look, and what dpkg-shlibdeps says where
# it fails; here something else stands in for that.
cp /bin/true "$stage/bin/hexad"
cp /bin/true "$stage/lib/hexad/plugins/liba.so"
pages="man/man1/hexad.1 man/man1/hexad-train.1 bash-completion/completions/hexad fish/vendor_completions.d/hexad.fish"
for file in $pages zsh/site-functions/_hexad; do
  mkdir -p "$(dirname "$stage/share/$file")"
  echo "$file" > "$stage/share/$file"
done
mkdir "$work/fake" "$work/debs"
touch "$work/debs/hexad_0.0.9_amd64.deb" "$work/debs/hexad-sdk_0.0.9_amd64.deb"
make_deb() {  # COMMANDS of dpkg-shlibdeps
  printf '#!/bin/sh\n%s\n' "$1" > "$work/fake/dpkg-shlibdeps"
  chmod +x "$work/fake/dpkg-shlibdeps"
  PATH=$work/fake:$PATH "$source_dir/tools/package/deb.sh" "$stage" "$work/debs"
}
deb=$(make_deb 'echo shlibs:Depends=libc6')
[ "$(listing "$work/debs")" = "./hexad-sdk_0.0.9_amd64.deb ./hexad_${version}_amd64.deb " ] ||
  fail "packages: $(listing "$work/debs")"
dpkg-deb --extract "$deb" "$work/root"
shared=$work/root/usr/share
for file in $pages; do [ "$(cat "$shared/$file")" = "$file" ] || fail "no /usr/share/$file"; done
[ "$(cat "$shared/zsh/vendor-completions/_hexad")" = zsh/site-functions/_hexad ] || fail "no completion for zsh"
[ "$(readlink "$shared/man/man1/hexad.1")" = ../../../lib/hexad/share/man/man1/hexad.1 ] ||
  fail "the link of a page: $(readlink "$shared/man/man1/hexad.1")"
refuses "cannot find library libx.so.1" make_deb 'echo "cannot find library libx.so.1" >&2; exit 2'
refuses "deb: dpkg-shlibdeps finds no package for a library, see above" make_deb 'exit 2'
refuses "deb: dpkg-shlibdeps says nothing of tree/usr/lib/hexad/bin/hexad" make_deb ''

# A tarball, the only one in its folder, with wheels to fetch.
. "$source_dir/tests/tools/runtime_wheels.sh"
mkdir -p "$stage/share/hexad"
cp -r "$source_dir/tools/runtime" "$stage/share/hexad/runtime"
mkdir -p "$stage/include" "$work/tarballs" "$work/wheels"
make_wheels "$work/wheels" "$stage/share/hexad/runtime/wheels.txt" 2.11.0
cp /bin/sleep "$stage/bin/hexad"
touch "$work/tarballs/hexad-0.0.9-linux-x86_64.tar.gz" "$work/tarballs/hexad-sdk-0.0.9.tar.gz"
tarball=$("$source_dir/tools/package/tarball.sh" "$stage" "$work/tarballs")
[ "$(listing "$work/tarballs")" = "./$(basename "$tarball") ./hexad-sdk-0.0.9.tar.gz " ] ||
  fail "tarballs: $(listing "$work/tarballs")"

# install.sh: into a prefix whose folders keep their owners and modes, and again while the program runs.
mkdir -p "$work/untarred" "$work/prefix/bin" "$work/prefix/lib"
tar -C "$work/untarred" -xzf "$tarball"
install_hexad() { "$work"/untarred/*/install.sh "$@"; }
[ "$(id -u)" != 0 ] || chown -R 12345 "$work/untarred"  # another's, as a tarball of another's is
chmod 1777 "$work/prefix/bin"
chmod 2755 "$work/prefix/lib"
state() { stat -c '%n %a %u' "$work/prefix/bin" "$work/prefix/lib"; }
before=$(state)
says "$(install_hexad --prefix "$work/prefix" --from "$work/wheels")" "ready: $work/prefix/bin/hexad train quickstart"
[ "$(state)" = "$before" ] || fail "folders were $before, and are $(state)"
[ "$(stat -c '%a %u' "$work/prefix/bin/hexad")" = "755 $(id -u)" ] || fail "the program: $(ls -l "$work/prefix/bin")"
[ -e "$work/prefix/lib/hexad/wheels/torch/lib/libtorch_cpu.so" ] || fail "no LibTorch in the prefix"
"$work/prefix/bin/hexad" 60 &
install_hexad --prefix "$work/prefix" --from "$work/wheels" > /dev/null || fail "not installed beside a running one"
kill $!
install_hexad --from "$work/wheels" --download "$work/fetched" > /dev/null
[ "$(listing "$work/fetched")" = "$(listing "$work/wheels")" ] || fail "install.sh fetched $(listing "$work/fetched")"
refuses "--download $work/d installs nothing: leave --prefix $work/p out" \
  install_hexad --prefix "$work/p" --download "$work/d"
refuses "got --form, wanted --prefix DIR, --from DIR or --download DIR" install_hexad --form x
echo "package_test: ok"
