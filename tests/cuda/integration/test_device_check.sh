#!/bin/bash
# scripts/device-check.sh, which is for machines with a GPU, on the test GPU: what it does and says.
source "$(dirname "$0")/lib.sh" "$1"
check=$(dirname "$0")/../../../scripts/device-check.sh

cat >"$work/compute-sanitizer" <<'END'
#!/bin/bash
# Finds something in the test "rope", and is refused where REFUSED is set.
while [[ $1 == --* ]]; do
    [[ $1 != --tool ]] || tool=$2
    shift 2
done
[[ -z ${REFUSED:-} ]] || { echo "Device not supported" && exit 1; }
[[ $tool != racecheck || $1 != *rope* ]] || exit 99
exec "$@"
END
chmod +x "$work/compute-sanitizer"

check() { # EXIT OUT PARTS VARIABLE=VALUE...
    local want=$1 out=$work/$2 parts=$3 status=0
    shift 3
    env "$@" PATH="$work:$PATH" BUILD="$(dirname "$hearth")" QUICK=1 TESTS="rope wrappers" PARTS="$parts" OUT="$out" \
        "$check" >"$work/out" 2>&1 || status=$?
    [[ $status == "$want" ]] || die "exit $status, not $want: $(cat "$work/out" "$out/device-check.log")"
}

check 0 good "doctor kernels training memcheck"
for line in "doctor  *ok .*RTX 5090" "kernels  *ok .*2 programs passed" "training  *ok " "memcheck  *ok "; do
    grep -q "$line" "$work/out" || die "no line '$line' in: $(cat "$work/out")"
done
grep -q '^| training | ok |' "$work/good/device-check.md" || die "no table"

check 1 bad "memcheck racecheck"
grep -q "racecheck  *failed .*rope_plain (99)" "$work/out" || die "what racecheck found is not said: $(cat "$work/out")"

check 0 refused "memcheck" REFUSED=1
grep -q "memcheck  *skipped .*Device not supported" "$work/out" || die "not skipped: $(cat "$work/out")"

check 1 missing "training" LD_LIBRARY_PATH=
grep -q "training  *failed" "$work/out" || die "no GPU is no failure: $(cat "$work/out")"
