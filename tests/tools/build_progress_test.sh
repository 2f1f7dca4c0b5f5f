#!/usr/bin/env bash
# What `make build` shows: tools/build_progress.sh with stand-ins for cmake, which prints what ninja does, and for
# ninja, which lists the commands of the build.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/tools" "$work/build/dev"
cp "$source_dir/tools/build_progress.sh" "$work/tools/"

# cmake prints $PRINTED, a line each, with a pause of $PAUSE seconds before each, and ends with $CODE.
cat > "$work/bin/cmake" <<'S'
#!/usr/bin/env bash
echo "cmake $*" >> "$CALLS"
[ "$NINJA_STATUS" = '@%f/%t ' ] || exit 99
while IFS= read -r line; do
  sleep "$PAUSE"
  printf '%s\n' "$line"
done <<< "$PRINTED"
exit "$CODE"
S
# ninja -t commands: three files, of which two are dear.
cat > "$work/bin/ninja" <<'S'
#!/usr/bin/env bash
echo "ninja $*" >> "$CALLS"
echo "c++ -O2 -o modeling/CMakeFiles/hexad_modeling.dir/Unity/unity_0_cxx.cxx.o -c a.cxx"
echo "c++ -O2 -o modeling/CMakeFiles/hexad_modeling.dir/Unity/unity_1_cxx.cxx.o -c b.cxx"
echo ": && ar qc archive/libx.a x.o && : "
echo "c++ -o bin/hexad"
S
chmod +x "$work/bin/cmake" "$work/bin/ninja"
export PATH="$work/bin:$PATH" CALLS="$work/calls"
failed=0
whole='[0/2] Re-checking globbed directories...
@0/1 Re-running CMake...
@1/4 Building CXX object modeling/CMakeFiles/hexad_modeling.dir/Unity/unity_0_cxx.cxx.o
@2/4 Building CXX object modeling/CMakeFiles/hexad_modeling.dir/Unity/unity_1_cxx.cxx.o
@3/4 Linking CXX static library archive/libx.a
@4/4 Linking CXX executable bin/hexad'
broken='@1/4 Building CXX object modeling/CMakeFiles/hexad_modeling.dir/Unity/unity_0_cxx.cxx.o
@2/4 Building CXX object b.o
FAILED: b.o 
c++ -O2 -o b.o -c b.cpp
b.cpp:1:2: error: no such thing
    1 |  what;
ninja: build stopped: subcommand failed.'

# build PAUSE CODE PRINTED [TARGET...]: its text and exit code
build() {
  code=0
  : > "$CALLS"
  text=$(PAUSE=$1 CODE=$2 PRINTED=$3 "$work/tools/build_progress.sh" dev 2 "${@:4}" 2>&1) || code=$?
}

# wanted NAME CODE PATTERN: a regular expression for all of the text
wanted() {
  if [ "$code" != "$2" ] || ! [[ $text =~ ^$3$ ]]; then
    printf '%s: got exit code %s and:\n%s\nwanted %s and:\n%s\n' "$1" "$code" "$text" "$2" "$3"
    failed=1
  fi
}
wrong_targets() { echo "targets: got $(cat "$CALLS")"; failed=1; }
line=$'\n'

build 0 0 "${whole#*$'\n'}"
wanted "a pipe" 0 "building 1/4, about 10 s left${line}built 4 of 4 in 0:0[0-9] min"
build 0 0 "$whole" quickstart
wanted "what is no progress is shown" 0 "\[0/2\] Re-checking globbed directories...${line}building 1/4, .*"
grep -qx 'cmake --build --preset dev -j 2 --target quickstart' "$CALLS" || wrong_targets
grep -qx 'ninja -C build/dev -t commands quickstart' "$CALLS" || wrong_targets

# Units of weight 14 in a second or two.
build 1 0 "${whole#*$'\n'}"
wanted "seconds" 0 "building 1/4, about [12]0 s left${line}built 4 of 4 in 0:0[5-9] min"

build 0 1 "$broken"
wanted "a failure" 1 "building 1/4, about 10 s left${line}FAILED: b.o ${line}c\+\+ -O2 -o b.o -c b.cpp${line}""\
b.cpp:1:2: error: no such thing${line}    1 \|  what;${line}ninja: build stopped: subcommand failed."

build 0 1 "${broken//\/4/\/2}"
wanted "the last one fails" 1 "building 1/2, .*ninja: build stopped: subcommand failed."

build 0 0 "ninja: no work to do."
wanted "nothing to do" 0 ""

# Files that are there have changed: each of them counts as the mean.
mkdir -p "$work/build/dev/bin" "$work/build/dev/modeling/CMakeFiles/hexad_modeling.dir/Unity"
touch "$work/build/dev/bin/hexad" "$work/build/dev/modeling/CMakeFiles/hexad_modeling.dir/Unity/unity_"{0,1}_cxx.cxx.o
build 0 0 '@1/3 Building CXX object other.o'
wanted "changed files" 0 "building 1/3, about 20 s left"

# On a terminal one line is written over and over.
code=0
export PAUSE=0 CODE=0 PRINTED=${whole#*$'\n'}
text=$(script -qec "$work/tools/build_progress.sh dev 2" /dev/null < /dev/null 2>&1) || code=$?
clear=$'\r\033\\[K'
lines="${clear}building 1/4, about [0-9]+ [smin]+ left${clear}building 2/4, [^$line]*${clear}building 3/4, [^$line]*"
wanted "a terminal" 0 "$lines${clear}built 4 of 4 in 0:0[0-9] min"$'\r?'
exit "$failed"
