#!/usr/bin/env bash
# Makes the Debian package of a staged tree (tools/package/stage.sh depend): a prefix of its own below /usr/lib/hexad,
# and /usr/bin/hexad. It is for the release that it was made on, whose libraries it depends on. Prints its name.
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
depends=$(dpkg-shlibdeps -O --ignore-missing-info "${linked[@]}" 2> /dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "deb: dpkg-shlibdeps says nothing of ${linked[*]}" >&2; exit 1; }
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
mv "$work"/hexad_*.deb "$out/"
echo "$out/hexad_${version}_amd64.deb"
