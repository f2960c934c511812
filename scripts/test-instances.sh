#!/bin/bash
# Runs the tests of a build directory on every kernel instance this processor has but its best, which they
# run on by themselves: scripts/test-instances.sh BUILD [ctest options]. HEARTH_ISA forces the instance.
set -euo pipefail
build=$1
shift
usable=$( (HEARTH_ISA=none "$build/hearth" plan --model llama-15m 2>&1 || true) | sed -n 's/.*use one of: \(.*\), or unset it.*/\1/p' | tr -d ,)
[[ $usable ]] || { echo "test-instances: $build/hearth does not say which instances it has" >&2; exit 1; }
best=${usable##* }
for isa in $usable; do
    [[ $isa = "$best" ]] && continue
    HEARTH_ISA=$isa OMP_WAIT_POLICY=passive ctest --test-dir "$build" --output-on-failure "$@" |
        sed "/ Passed /d; /^ *Start /d; s/^\(.* tests passed.*\)/HEARTH_ISA=$isa: \1/"
done
