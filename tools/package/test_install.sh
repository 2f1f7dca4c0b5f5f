#!/usr/bin/env bash
# Installs each form in a bare Debian 12 root as an ordinary user, and trains the quickstart: `make test-install`.
# Prints a line a form: seconds and megabytes of our own part, of all that it needs on a CPU, and the accuracy. Fails
# where one is not installed or is too large, its plugin is not run, a Parquet file is not read, or the quickstart's
# accuracy stays below what it trains to. The seconds are no gate: it is told whether what is promised of them holds.
# usage: tools/package/test_install.sh BUILD_DIR [FORM...]     FORM: wheel, tarball, deb, dockerfile; default: all
# TORCH=cuda: the Dockerfile with torch's CUDA wheels, on the package of a CUDA build (20 GB of disk while it is made).
# As root: it makes the root with mmdebstrap, and enters it by chroot in a mount namespace of its own. Registry settings
# are those of pip's configuration here, and Debian's mirror that of apt here.
set -euo pipefail
build=$(cd "$1" && pwd)
shift
forms=("$@")
[ ${#forms[@]} -gt 0 ] || forms=(wheel tarball deb dockerfile)
here=$(cd "$(dirname "$0")" && pwd)
packages=$build/package work=${HEXAD_INSTALL_WORK:-$build/package/test}
most_own=80 most_all=600  # megabytes: of our own part, of the tarball with all that it needs on a CPU
most_seconds=60  # that our own part takes, whose wheels and packages of others pip and apt have in their caches
threshold=0.9  # of val:accuracy, which the quickstart passes long before its end
uid=1000 home=/home/tester  # of the ordinary user
own_is="own part"  # what a form's seconds are of
die() { printf 'test-install: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "run it as root: the root is entered by chroot"
mkdir -p "$work"

# What fetching wants of this machine: pip's configuration, and the certificates that it names.
hand_in_settings() {
  local root=$1
  python3 -m pip config list | python3 -c '
import re, sys
lines = (re.match(r"(?:global|:env:)\.([^=]+)=(.*)", line.strip()) for line in sys.stdin)
settings = {match[1]: match[2].strip("\x27\"") for match in lines if match}
print("[global]", *(f"{name} = {value}" for name, value in settings.items()), sep="\n")' > "$root/etc/pip.conf"
  mkdir -p "$root/etc/ssl/certs"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
}

make_root() {
  local base=$work/base
  if [ ! -e "$base/.made" ]; then
    rm -rf "$base"
    mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3-pip,python3-venv bookworm "$base" \
      /etc/apt/sources.list.d/debian.sources
    chroot "$base" useradd --create-home --uid $uid tester
    touch "$base/.made"
  fi
  hand_in_settings "$base"
}

# inside ROOT USER COMMAND...: with its own /proc and /tmp, the packages in /packages and the wheels in /wheels.
inside() {
  local root=$1 user=$2
  shift 2
  mkdir -p "$root/packages" "$root/wheels"
  unshare --mount --pid --fork -- bash -ec '
    root=$1 user=$2 packages=$3 wheels=$4 home=$5
    shift 5
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount --bind -o ro "$packages" "$root/packages"
    mount --bind -o ro "$wheels" "$root/wheels"
    [ "$user" != 0 ] || home=/root
    exec env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=$home LC_ALL=C.UTF-8 \
      chroot --userspec="$user:$user" "$root" bash -ec "cd; $*"' \
    bash "$root" "$user" "$packages" "$work/wheels" "$home" "$@"
}

# The wheels of others that a CPU needs, fetched here once, for installations that use no network.
fetch_wheels() { bash "$here/../runtime/setup.sh" --download "$work/wheels"; }

# A plugin of the SDK that is installed there, built here: the root has no compiler.
build_plugin() {
  local prefix=$1 root=$2
  rm -rf "$work/plugin"
  mkdir -p "$work/plugin"
  "$prefix/bin/hexad" plugin new loss_c my_loss --into "$work/plugin" > /dev/null
  cmake -S "$work/plugin/my_loss" -B "$work/plugin/build" -DHexadSDK_DIR="$prefix/lib/cmake/HexadSDK" > /dev/null
  cmake --build "$work/plugin/build" > /dev/null
  local user=$root$home/.local/share/hexad/plugins
  mkdir -p "$user"
  cp "$work/plugin/build/lib/hexad/plugins"/* "$user/"
  chown -R "$uid:$uid" "$root$home/.local"
}

# A Parquet file of questions for the quickstart's model, which Arrow opens.
show_parquet() {
  local form=$1 root=$2 hexad=$3
  cp "$here/../../tests/lib/table/data/many/rows.parquet" "$root$home/rows.parquet"
  inside "$root" "$uid" "$hexad data show quickstart --rows 1 '++data.train={_override_: true, \
    dataset_name: ResponseDataset, data_path: rows.parquet, env_name: exact_answer}'" > "$work/$form.rows.log" 2>&1 ||
    die "$form: data show of a Parquet file failed: $work/$form.rows.log"
  grep -q '^<question>aaa<answer>' "$work/$form.rows.log" ||
    die "$form: data show does not show the first row of a Parquet file: $work/$form.rows.log"
}

# The promise that a form's own part is installed within most_seconds, beside what was measured.
verdict() {
  [ "$own_is" = "own part" ] || return 0
  [ "$1" -lt $most_seconds ] && echo " (below $most_seconds s: holds)" || echo " (below $most_seconds s: does not hold)"
}

# try_out FORM ROOT HEXAD PREFIX OWN_SECONDS OWN_MB ALL_MB (MiB): a run with the plugin, then the whole quickstart.
try_out() {
  local form=$1 root=$2 hexad=$3 prefix=$4 begin took accuracy
  build_plugin "$root$prefix" "$root"
  show_parquet "$form" "$root" "$hexad"
  inside "$root" $uid "$hexad train quickstart grpo.max_num_steps=2 ++checkpointing.enabled=false \
    ++logger.log_dir=logs/plugin ++loss_fn.plugin=my_loss '++loss_fn.plugin_config={clip_eps: 0.3}'" \
    > "$work/$form.plugin.log" 2>&1 || die "$form: a run with a plugin of the SDK failed: $work/$form.plugin.log"
  grep -q 'my_loss .*share/hexad/plugins/libmy_loss.so' "$work/$form.plugin.log" ||
    die "$form: the run did not take the plugin of the user's folder: $work/$form.plugin.log"
  begin=$SECONDS
  inside "$root" $uid "$hexad train quickstart" > "$work/$form.log" 2>&1 || die "$form: $work/$form.log"
  took=$((SECONDS - begin))
  accuracy=$(python3 - "$root$home"/logs/quickstart/exp_*/metrics.jsonl <<'P'
import json, sys
found = [value for file in sys.argv[1:] for line in open(file) for key, value in json.loads(line).items()
         if key.replace("/", ":").endswith("accuracy") and key.startswith("val")]
print(found[-1])
P
  )
  printf '%-10s %s %3d s%s, %3d MB; with what it needs on a CPU %4d MB; quickstart %d s, accuracy %s\n' \
    "$form" "$own_is" "$5" "$(verdict "$5")" "$6" "$7" "$took" "$accuracy"
  python3 -c "import sys; sys.exit(not $accuracy >= $threshold)" || die "$form: accuracy $accuracy, wanted $threshold"
  [ "$6" -lt $most_own ] || die "$form: its own part is $6 MB, wanted less than $most_own"
}

megabytes() { du -scm "$@" | tail -n1 | cut -f1; }
fresh_root() {  # NAME: a copy of the base
  rm -rf "${work:?}/$1"
  cp -a --reflink=auto "$work/base" "$work/$1"
  echo "$work/$1"
}

test_wheel() {
  local root begin own
  root=$(fresh_root wheel)
  inside "$root" $uid "python3 -m venv venv"
  begin=$SECONDS
  inside "$root" $uid "venv/bin/pip install --quiet --no-deps /packages/hexad-*.whl"
  own=$((SECONDS - begin))
  # LibTorch without the CUDA wheels that torch wants for GPUs.
  inside "$root" $uid "venv/bin/pip install --quiet --no-index --no-deps /wheels/*.whl"
  try_out wheel "$root" venv/bin/hexad /home/tester/venv $own "$(megabytes "$packages"/hexad-*.whl)" \
    "$(megabytes "$root/home/tester/venv")"
}

test_tarball() {
  local root begin own prefix all
  root=$(fresh_root tarball)
  begin=$SECONDS
  inside "$root" $uid "tar xzf /packages/hexad-*-linux-x86_64.tar.gz"
  own=$((SECONDS - begin))
  prefix=$(cd "$root" && echo home/tester/hexad-*)
  inside "$root" $uid "/$prefix/install.sh --from /wheels" > "$work/tarball.install.log" 2>&1 ||
    die "tarball: install.sh failed: $work/tarball.install.log"
  all=$(megabytes "$root/$prefix" "$root/home/tester/.cache/hexad")
  try_out tarball "$root" "/$prefix/bin/hexad" "/$prefix" $own "$(megabytes "$packages"/hexad-*.tar.gz)" "$all"
  [ "$all" -lt $most_all ] || die "tarball: $all MB with what it needs on a CPU, wanted less than $most_all"
}

install_deb="apt-get update -qq && apt-get install -y -qq --no-install-recommends /packages/hexad_*.deb"
test_deb() {
  local root begin own
  root=$(fresh_root deb)
  begin=$SECONDS
  inside "$root" 0 "$install_deb" > "$work/deb.install.log" 2>&1 || die "deb: apt failed: $work/deb.install.log"
  own=$((SECONDS - begin))
  inside "$root" $uid "hexad setup" >> "$work/deb.install.log" 2>&1 || die "deb: hexad setup: $work/deb.install.log"
  try_out deb "$root" hexad /usr/lib/hexad $own "$(megabytes "$packages"/hexad_*.deb)" \
    "$(megabytes "$root/usr/lib/hexad" "$root/home/tester/.cache/hexad")"
}

# The Dockerfile by buildah, on the same base; what it has made is entered as the other roots are.
test_dockerfile() {
  local container begin own root size context=$work/context store
  rm -rf "$work/buildah" "$work/buildah.run"
  store=(buildah --root "$work/buildah" --runroot "$work/buildah.run" --storage-driver vfs)
  container=$("${store[@]}" from scratch)
  "${store[@]}" add --quiet "$container" "$work/base" / > /dev/null
  "${store[@]}" commit --quiet "$container" hexad-base > /dev/null
  rm -rf "$context"
  mkdir -p "$context"
  cp "$packages"/hexad_*.deb "$context/"
  begin=$SECONDS
  "${store[@]}" bud --isolation chroot --pull-never --build-arg BASE=localhost/hexad-base \
    --build-arg TORCH="${TORCH:-cpu}" -t hexad \
    -f "$here/Dockerfile" "$context" > "$work/dockerfile.install.log" 2>&1 ||
    die "dockerfile: buildah: $work/dockerfile.install.log"
  own=$((SECONDS - begin))
  container=$("${store[@]}" from localhost/hexad)
  root=$("${store[@]}" mount "$container")
  size=$(megabytes "$root/usr/lib/hexad" $(find "$root/usr/local/lib" -maxdepth 2 -name dist-packages))
  [[ $("${store[@]}" inspect --type image --format '{{.OCIv1.Config.Env}}' localhost/hexad) == *HOME=/tmp* ]] ||
    die "dockerfile: its HOME is not /tmp, and a user without a name has none that he may write to"
  # As `docker run --user` has it, with a folder of that user at /work: one without a name in the image.
  own_is="built with all that it fetches"
  home=/work uid=4711
  chown $uid "$root/work"
  chmod 755 "$root/work"
  try_out dockerfile "$root" hexad /usr/lib/hexad $own "$(megabytes "$packages"/hexad_*.deb)" "$size"
}

make_root
fetch_wheels
for form in "${forms[@]}"; do "test_$form"; done
