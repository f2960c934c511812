#!/bin/bash
# The doctor: a machine that can train is ready; what cannot be is named with its remedy.
source "$(dirname "$0")/lib.sh" "$1"
export CUDA_VISIBLE_DEVICES= # as if there were no GPU to use

# Whether there is a card without a driver depends on the machine, all else must be good.
"$hearth" doctor --run-dir "$work/runs" >"$work/out" || true
for row in instructions threads memory room writing "open files" driver; do
    says out " $row "
done
grep -v -A1 'FIX *driver' "$work/out" | grep -q FIX && die "something is not ready: $(cat "$work/out")"

"$hearth" doctor --json --run-dir "$work/runs" >"$work/out" || true
says out '"device": "cpu"'
says out '"gpu": null'
ready=true
grep -q '"state": "fix"' "$work/out" && ready=false
says out "\"ready\": $ready"
awk '/"state"/ { if (!/"(ok|note|fix)"/) exit 1; fix = /"fix"/ } /"remedy": ""/ && fix { exit 1 }' "$work/out" ||
    die "a state that is not known, or no remedy: $(cat "$work/out")"
[[ $(ls -A "$work") == $'err\nout' || $(ls -A "$work") == out ]] || die "the doctor left files: $(ls -A "$work")"

# What cannot be written to, and an instruction set that cannot run here.
run 1 doctor --run-dir /proc/runs
says out "FIX"
says out "--run-dir"
HEARTH_ISA=no-such run 1 doctor --run-dir "$work"
says out "HEARTH_ISA"
