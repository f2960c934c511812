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
python3 - "$work/out" <<'END'
import json, sys

report = json.load(open(sys.argv[1]))
assert report["device"] == "cpu" and report["gpu"] is None
assert {c["state"] for c in report["checks"]} <= {"ok", "note", "fix"}
assert report["ready"] == all(c["state"] != "fix" for c in report["checks"])
assert all(c["remedy"] for c in report["checks"] if c["state"] == "fix")
END
[[ $(ls -A "$work") == $'err\nout' || $(ls -A "$work") == out ]] || die "the doctor left files: $(ls -A "$work")"

# What cannot be written to, and an instruction set that cannot run here.
run 1 doctor --run-dir /proc/runs
says out "FIX"
says out "--run-dir"
HEARTH_ISA=no-such run 1 doctor --run-dir "$work"
says out "HEARTH_ISA"
