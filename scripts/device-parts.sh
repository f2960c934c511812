#!/bin/bash
# The parts of scripts/device-check.sh, which runs `device-parts.sh NAME` under a time limit. A part says in
# WORK/reason what came of it; its status is 0, 77 (skipped) or that of a failure.
# From there: BUILD, WORK (scratch), RESULTS, MOST (seconds), QUICK, TESTS.
set -euo pipefail

say() { echo "$*" | tee "$WORK/reason"; }

doctor() {
    "$BUILD/hearth" doctor --run-dir "$WORK/runs" || true
    "$BUILD/hearth" doctor --json --run-dir "$WORK/runs" >"$WORK/doctor.json" || true
    say "$(sed -n 's/.*"name": "\(NVIDIA[^"]*\)".*/\1/p' "$WORK/doctor.json" | head -1)"
    grep -q '"device": "cuda"' "$WORK/doctor.json"
}

# ---- Kernel tests, plain and under compute-sanitizer ----

tests() {
    local program name
    for program in "$BUILD"/tests/cuda/test_cuda_*_plain; do
        name=${program##*/test_cuda_}
        [[ -n $TESTS && " $TESTS " != *" ${name%_plain} "* ]] || echo "$program"
    done
}

# One test, behind a command that runs it, until END. Its status is collected.
run_test() { # TEST COMMAND...
    local test=$1 name status=0 arguments=() left=$((END - $(date +%s)))
    shift
    name=$(basename "$test")
    [[ $name != *wrappers* ]] || arguments=("$BUILD/tests/cuda/wrappers.fatbin")
    timeout --foreground -k 2 $((left > 1 ? left : 1)) "$@" "$test" "${arguments[@]}" >"$WORK/$name.log" 2>&1 || status=$?
    echo "${name#test_cuda_} $status" >>"$WORK/statuses"
    ((status == 0)) || tail -n 60 "$WORK/$name.log"
}
export -f run_test

run_tests() { # COMMAND...: several tests at a time; the GPU is not what takes the time
    local passed failed late
    rm -f "$WORK/statuses"
    tests | xargs -P 4 -I '{}' bash -c 'run_test "$@"' run_test '{}' "$@"
    passed=$(grep -c ' 0$' "$WORK/statuses" || true)
    late=$(awk '$2 == 124 || $2 == 137 { printf " %s", $1 }' "$WORK/statuses")
    failed=$(awk '$2 != 0 && $2 != 124 && $2 != 137 { printf " %s (%d)", $1, $2 }' "$WORK/statuses")
    say "$passed programs passed${failed:+; failed:$failed}${late:+; not done in time:$late}"
    [[ -z $failed ]] || return 1
    [[ -z $late ]] || return 124
}

kernels() { run_tests; }

sanitizer() { # TOOL OPTIONS...
    local tool command refusal status=0
    command=$(command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | head -1 || true)
    if [[ -z $command ]]; then
        say "compute-sanitizer is not installed"
        return 77
    fi
    tool=("$command" --error-exitcode 99 --print-limit 5 --report-api-errors no --tool "$@")
    run_test "$(tests | head -1)" "${tool[@]}" >"$WORK/first.log"
    refusal=$(grep -m 1 -i -E 'not supported|unable to' "$WORK/first.log" || true)
    if [[ -n $refusal ]]; then
        say "compute-sanitizer refuses this device: $refusal"
        return 77
    fi
    run_tests "${tool[@]}" || status=$?
    return $((status == 124 ? 0 : status)) # slow, which is no fault
}

memcheck() { sanitizer memcheck; }

racecheck() {
    local all
    all=$(tests | sed 's/.*test_cuda_\(.*\)_plain/\1/' | grep -v matmul | tr '\n' ' ') # cuBLASLt's kernels are not ours
    TESTS=$all
    sanitizer racecheck
}

# ---- Training ----

# train NAME DEVICE
train() {
    local sizes=(--layers 4 --dim 512 --heads 8 --kv-heads 4 --ffn 1376 --seq-len 512 --batch-tokens 4096 --steps 20)
    [[ -z $QUICK ]] ||
        sizes=(--layers 2 --dim 64 --heads 2 --kv-heads 1 --ffn 96 --seq-len 48 --batch-tokens 192 --steps 3)
    "$BUILD/hearth" train --data "$WORK/data" --run-dir "$WORK/$1" --device "$2" "${sizes[@]}" --seed 3 \
        --lr 1e-3 --warmup 2 --eval-every 0 --checkpoint-every 0 --quiet
}

losses() { sed -n 's/.*"loss": *\([-0-9.e+]*\).*/\1/p' "$WORK/$1/log.jsonl"; }

# The largest relative difference between the losses of two runs
difference() {
    paste <(losses "$1") <(losses "$2") | awk '
        { d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > most || NF != 2) most = NF == 2 ? d : 9 }
        END { print NR ? most + 0 : 9 }'
}

# On this repository's own text: docs and sources
training() {
    local worst vocab=4096
    [[ -z $QUICK ]] || vocab=320
    cat docs/*.md docs/design/*.md src/*/*.c >"$WORK/text.txt"
    "$BUILD/hearth" tokenizer train --vocab $vocab --pattern gpt4 --out "$WORK/tok" "$WORK/text.txt"
    "$BUILD/hearth" data build --tokenizer "$WORK/tok/tokenizer.json" --out "$WORK/data" "$WORK/text.txt"
    train cuda cuda
    train again cuda
    train cpu cpu
    worst=$(difference cuda cpu)
    paste <(losses cuda) <(losses cpu)
    say "losses differ from the CPU's by $worst of them at most"
    if [[ $(losses cuda) != "$(losses again)" ]]; then
        say "two runs have other losses"
        return 1
    fi
    awk -v worst="$worst" 'BEGIN { exit !(worst <= 5e-3) }'
}

# ---- The benchmark ----

gpu_bench() {
    local quick=(--quick "$QUICK") torch=()
    [[ -z ${TORCH_DEVICE:-} ]] || torch=(--torch "$TORCH_DEVICE")
    python3 bench/gpu.py --build "$BUILD" --scratch "$WORK/bench" --out "$RESULTS" "${quick[@]}" "${torch[@]}" "$@"
}

prepare() { gpu_bench --prepare; }

bench() {
    cat "$WORK/prepare.log"
    say "results are in $RESULTS"
    local revision
    revision=$(cat "$BUILD/revision" 2>/dev/null || git describe --always --dirty)
    gpu_bench --seconds $((MOST - 8)) --revision "$revision"
}

END=$(($(date +%s) + ${MOST:?} - 5))
export END
"$1"
