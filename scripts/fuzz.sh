#!/bin/bash
# Runs every fuzz target of a build directory for some seconds each, keeping what it finds interesting
# in BUILD/corpus/TARGET. Starts from tests/fuzz/seeds/TARGET where there are seeds.
# Usage: fuzz.sh BUILD SECONDS
set -euo pipefail
build=$1 seconds=$2
seeds=$(dirname "$0")/../tests/fuzz/seeds

for target in "$build"/tests/fuzz/fuzz_*; do
    [[ -f $target && -x $target ]] || continue
    name=$(basename "$target")
    corpus=$build/corpus/$name
    mkdir -p "$corpus"
    inputs=("$corpus")
    [[ -d $seeds/$name ]] && inputs+=("$seeds/$name")
    echo "== $name, $seconds s"
    "$target" -max_total_time="$seconds" -print_final_stats=1 -verbosity=0 -close_fd_mask=1 \
        -artifact_prefix="$build/corpus/$name-" "${inputs[@]}" 2>"$build/corpus/$name.log" || {
        tail -n 40 "$build/corpus/$name.log"
        echo "$name failed; the input is named above" >&2
        exit 1
    }
    grep number_of_executed_units "$build/corpus/$name.log"
done
