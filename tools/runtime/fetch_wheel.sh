# Part of a script: fetch_wheel, which unpacks files of pinned wheels. The script has set `wheels`, a list of versions
# and SHA-256, `from`, a folder that has the wheels (empty: pip's index), and `die`, a function that says why it ends.

version_of() { sed -n "s/^$1==\([^ ]*\).*/\1/p" "$wheels"; }

# fetch_wheel NAME PATTERN DEST: unpacks the files of a wheel that match PATTERN below DEST, which it makes anew. pip
# refuses a file that has another SHA-256 than the list says. For CPython 3.11, whatever Python runs here: nothing of
# it is imported.
fetch_wheel() {
  local name=$1 pattern=$2 dest=$3 work
  local index=()
  [ -z "$from" ] || index=(--no-index --find-links "$from")
  mkdir -p "$(dirname "$dest")"
  work=$(mktemp -d "$(dirname "$dest")/.fetch.XXXXXX")
  # The line of that name, and those that it goes on with.
  sed -n "/^$name==/,/[^\\]\$/p" "$wheels" > "$work/pinned.txt"
  [ -s "$work/pinned.txt" ] || die "$wheels does not name $name"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 311 \
    --implementation cp --abi cp311 --abi none --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux_2_27_x86_64 --platform any \
    --require-hashes ${index[@]+"${index[@]}"} -d "$work" -r "$work/pinned.txt" ||
    { rm -rf "$work"; die "pip cannot fetch $name $(version_of "$name"): see above"; }
  python3 - "$work" "$pattern" <<'P'
import glob, re, sys, zipfile
work, pattern = sys.argv[1:]
for wheel in glob.glob(f"{work}/*.whl"):
    archive = zipfile.ZipFile(wheel)
    archive.extractall(f"{work}/out", [n for n in archive.namelist() if re.match(pattern, n)])
P
  rm -rf "$dest"
  mv "$work/out" "$dest"
  rm -rf "$work"
}
