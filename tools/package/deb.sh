#!/usr/bin/env bash
# Makes the Debian package of a staged tree (tools/package/stage.sh depend): a prefix of its own below /usr/lib/hexad,
# and links to it where programs, man and shells look. It is for the release that it was made on, whose libraries it
# depends on. Takes away what OUT_DIR has of other versions, and prints the file's name.
# usage: tools/package/deb.sh STAGE OUT_DIR
set -euo pipefail
stage=$1 out=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
version=$(cat "$root/sdk/VERSION")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir -p "$tree/DEBIAN" "$tree/usr/lib" "$tree/usr/bin" "$tree/usr/share/doc/hexad" "$out" "$work/debian"
cp -a "$stage" "$tree/usr/lib/hexad"
ln -s ../lib/hexad/bin/hexad "$tree/usr/bin/hexad"

# link FOLDER [AS]: each file of share/FOLDER of the prefix from /usr/share/AS, by default the same folder.
link() {
  mkdir -p "$tree/usr/share/${2:-$1}"
  ln -sr "$tree/usr/lib/hexad/share/$1"/* "$tree/usr/share/${2:-$1}/"
}
link man/man1
link bash-completion/completions
link zsh/site-functions zsh/vendor-completions  # Debian's name for it
link fish/vendor_completions.d
cp "$root/LICENSE" "$tree/usr/share/doc/hexad/copyright"
chmod -R u=rwX,go=rX "$tree"

# What is linked with LibTorch or Arrow is no package's; libzmq is opened with the first socket. dpkg-shlibdeps wants
# a debian/control to run at all.
printf 'Source: hexad\n\nPackage: hexad\nArchitecture: amd64\n' > "$work/debian/control"
cd "$work"
linked=()
for file in tree/usr/lib/hexad/bin/* tree/usr/lib/hexad/lib/hexad/plugins/*.so; do
  readelf -d "$file" | grep -q 'NEEDED.*\[libtorch' || linked+=("$file")
done
found=$(dpkg-shlibdeps -O --ignore-missing-info "${linked[@]}" 2> said) ||
  { cat said >&2; echo "deb: dpkg-shlibdeps finds no package for a library, see above" >&2; exit 1; }
depends=$(sed -n 's/^shlibs:Depends=//p' <<< "$found")
[ -n "$depends" ] || { cat said >&2; echo "deb: dpkg-shlibdeps says nothing of ${linked[*]}" >&2; exit 1; }
cat > "$tree/DEBIAN/control" <<C
Package: hexad
Version: $version
Architecture: amd64
Maintainer: The Hexad maintainers <maintainers@hexad.invalid>
Section: science
Priority: optional
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Depends: $depends, libzmq5
Recommends: python3-pip
Description: RL post-training engine for language models
 Run "hexad setup" once as the user who trains: it fetches LibTorch and Apache
 Arrow into the cache of that user.
C
dpkg-deb --root-owner-group --build "$tree" "$work" > /dev/null
cd "$root"
rm -f "$out"/hexad_*.deb
mv "$work"/hexad_*.deb "$out/"
echo "$out/hexad_${version}_amd64.deb"
