# Part of a script: download_wheel and fetch_wheel, which take pinned wheels. The script has set `wheels`, a list of
# versions and SHA-256, `from`, a folder that has the wheels (empty: pip's index), and `die`, a function that says why
# it ends.

# What the script takes away when it ends, also by Ctrl-C: folders of wheels that are half unpacked.
unfinished=()
trap 'rm -rf ${unfinished[@]+"${unfinished[@]}"}' EXIT

version_of() { sed -n "s/^$1==\([^ ]*\).*/\1/p" "$wheels"; }

# download_wheel NAME DIR: its file into DIR. pip refuses a file that has another SHA-256 than the list says. For
# CPython 3.11, whatever Python runs here: nothing of it is imported.
download_wheel() {
  local pinned index=()
  [ -z "$from" ] || index=(--no-index --find-links "$from")
  pinned=$(sed -n "/^$1==/,/[^\\]\$/p" "$wheels")  # the line of that name, and those that it goes on with
  [ -n "$pinned" ] || die "$wheels does not name $1"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 311 \
    --implementation cp --abi cp311 --abi none --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux_2_27_x86_64 --platform any \
    --require-hashes ${index[@]+"${index[@]}"} -d "$2" -r /dev/stdin <<< "$pinned" ||
    die "pip cannot fetch $1 $(version_of "$1"): see above"
}

# fetch_wheel NAME PATTERN DEST: unpacks the files of a wheel that match PATTERN below DEST, which it makes anew.
fetch_wheel() {
  local name=$1 pattern=$2 dest=$3 work
  mkdir -p "$(dirname "$dest")"
  work=$(mktemp -d "$(dirname "$dest")/.fetch.XXXXXX")
  unfinished+=("$work")
  download_wheel "$name" "$work"
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
