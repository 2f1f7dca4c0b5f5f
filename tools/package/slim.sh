# Part of a script: `slim`, which makes a tree of programs, libraries and plugins small, and leads the loader to what
# lies in the tree.

digest_of() { sha256sum "$1" | cut -d' ' -f1; }

# change_library LIBRARY COMMAND...: runs a command that changes a plugin's library. A manifest carries the digest and
# the size of its library, and the digest of its check library: they follow.
change_library() {
  local library=$1 before manifest
  before=$(digest_of "$library")
  "${@:2}" "$library"
  sed -i "s/$before/$(digest_of "$library")/" "$(dirname "$library")"/*.hexad.json
  manifest=${library%.so}.hexad.json
  [ ! -e "$manifest" ] || sed -i "s/\"size\": [0-9]*/\"size\": $(stat -c %s "$library")/" "$manifest"
}

# strip_tree ROOT: bin/*, lib/*.so* and the plugins without symbols that nobody links with.
strip_tree() {
  strip --strip-unneeded "$1"/bin/* "$1"/lib/*.so*
  local library
  for library in "$1"/lib/hexad/plugins/*.so; do change_library "$library" strip --strip-unneeded; done
}

# lead_loader ROOT: run paths inside of the tree alone, in place of the folders of the machine that it was built on.
# lib/hexad/system has libraries of others. Programs have an RPATH, which serves libraries of libraries too.
lead_loader() {
  local file
  for file in "$1"/bin/*; do
    patchelf --force-rpath --set-rpath '$ORIGIN/../lib:$ORIGIN/../lib/hexad/system' "$file"
  done
  for file in "$1"/lib/*.so; do patchelf --set-rpath '$ORIGIN:$ORIGIN/hexad/system' "$file"; done
  for file in "$1"/lib/hexad/plugins/*.so; do
    [[ $file == *_check.so ]] || change_library "$file" patchelf --set-rpath '$ORIGIN/../..:$ORIGIN/../system'
  done
}
