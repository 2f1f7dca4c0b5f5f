#!/usr/bin/env bash
# build_progress.sh PRESET JOBS [TARGET...]: `cmake --build` with its progress in one line and what is left of it in
# time:
#   building 41/109, about 3 min left
# On a terminal the line is rewritten; elsewhere there is a line every 30 seconds. What a command prints is shown in
# full, and the exit code is that of the build.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2 folder=build/$1
shift 2
[ -t 1 ] && terminal=yes || terminal=no
every_s=30

# Seconds that a command takes on one core, about: the few that are dear, by what they make.
weight_of() {
  case $1 in
    *torch*pch.dir/cmake_pch.hxx.gch) weight=25 ;;
    *native.dir/cpu/attention.cpp.o) weight=23 ;;
    *hexad_native.dir/Unity/*) weight=19 ;;
    *hexad_modeling.dir/Unity/*|*plugin_megatron.dir/Unity/*) weight=14 ;;
    *native.dir/cpu/gemm.cpp.o|*hexad_runtime.dir/Unity/*|*plugin_*.dir/Unity/*|*hexad_text.dir/Unity/*) weight=12 ;;
    tests/*plugins*.cpp.o|tests/*modeling*.cpp.o|*.dir/Unity/*) weight=9 ;;
    tests/*.o|*.gch) weight=4 ;;
    *) weight=1 ;;
  esac
}

# What is not there yet will be made. Of the other commands as many as there are files already may make one anew, each
# of the mean weight; the rest, of archives, is quick.
declare -A weight_to_make=()
missing=0 missing_weight=0 present=0 present_weight=0
while read -r made; do
  weight_of "$made"
  weight_to_make[$made]=$weight
  if [ -e "$folder/$made" ]; then present=$((present + 1)) present_weight=$((present_weight + weight))
  else missing=$((missing + 1)) missing_weight=$((missing_weight + weight)); fi
done < <(ninja -C "$folder" -t commands ${@:+"$@"} 2> /dev/null | grep -oE ' -o [^ ]+' | cut -c5-)

weight_of_all() {  # $1 commands
  local others=$(($1 > missing ? $1 - missing : 0))
  local again=$((others < present ? others : present))
  all_weight=$((missing_weight + others - again))
  [ "$again" = 0 ] || all_weight=$((all_weight + again * present_weight / present))
}

time_left() {  # of weight $1 when weight $2 took $3 seconds; at first from the weights more than from these
  local prior=20
  local seconds=$(($1 * ($3 + prior / jobs) / ($2 + prior)))
  if [ "$seconds" -ge 90 ]; then left="about $(((seconds + 30) / 60)) min left"
  else left="about $((seconds / 10 * 10 + 10)) s left"; fi
}

clear_line() { [ "$terminal" = no ] || printf '\r\033[K'; }

show() {  # that $1 of $2 commands are done
  weight_of_all "$2"
  time_left $((all_weight > done_weight ? all_weight - done_weight : 1)) "$done_weight" "$SECONDS"
  if [ "$terminal" = yes ]; then
    printf '\r\033[Kbuilding %d/%d, %s' "$1" "$2" "$left"
  elif [ "$SECONDS" -ge "$next_line" ]; then
    printf 'building %d/%d, %s\n' "$1" "$2" "$left"
    next_line=$((SECONDS + every_s))
  fi
}

# Reads what ninja prints: lines that begin with its status, and what commands print.
follow() {
  local line made finished=0 total=0 failed=no done_weight=0 next_line=0
  SECONDS=0
  while IFS= read -r line || [ -n "$line" ]; do
    if [[ $line =~ ^@([0-9]+)/([0-9]+)\ (.*) ]]; then
      case ${BASH_REMATCH[3]} in
        "Re-checking globbed directories"*|"Re-running CMake"*) continue ;;
      esac
      finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} made=${BASH_REMATCH[3]##* }
      done_weight=$((done_weight + ${weight_to_make[$made]:-1}))
      [ "$finished" = "$total" ] || show "$finished" "$total"
    elif [[ $line != "ninja: Entering directory"* && $line != "ninja: no work to do." ]]; then
      [[ $line != "FAILED: "* ]] || failed=yes
      clear_line
      printf '%s\n' "$line"
    fi
  done
  clear_line
  if [ "$total" -gt 0 ] && [ "$finished" = "$total" ] && [ "$failed" = no ]; then
    printf 'built %d of %d in %d:%02d min\n' "$finished" "$total" $((SECONDS / 60)) $((SECONDS % 60))
  fi
}

NINJA_STATUS='@%f/%t ' cmake --build --preset "$preset" -j "$jobs" ${@:+--target "$@"} 2>&1 | follow
