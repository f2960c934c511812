#!/bin/bash
# Proves and measures the CUDA backend on a GPU, in at most six minutes: kernel tests, training against the
# CPU's losses, compute-sanitizer, and the benchmark beside PyTorch. Each part is ok, failed or skipped, and
# what there is so far is kept when it is interrupted. The exit status is 1 when something failed.
#
#   scripts/device-check.sh         on a machine with a GPU: with build-device/ if it is there, else a build
#   scripts/device-check.sh pack    on one with the build's dependencies (a GPU is not needed): makes
#                                   build-device/, for a machine that has nothing but this repository and it
#
# Variables: OUT, where everything goes (results to bench/results, the log to the build directory); LIMIT,
# seconds for all (350); CHIPS, that pack compiles for ("90 120f"); TESTS, which kernel tests (all); QUICK=1,
# tiny sizes, to try this script on the test driver; PARTS, which of the parts below; TORCH_DEVICE, cpu to
# try the benchmark where PyTorch has no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

programs() { # the kernel tests, as targets
    local source
    for source in tests/cuda/operations/test_*.c tests/cuda/wrappers/test_wrappers.c; do
        source=$(basename "$source" .c)
        echo "test_cuda_${source#test_}_plain"
    done
}

build() { # DIRECTORY CMAKE-OPTIONS...
    local directory=$1
    shift
    cmake -S . -G Ninja -B "$directory" --log-level=WARNING "$@" >/dev/null
    # shellcheck disable=SC2046
    ninja --quiet -C "$directory" hearth bench-programs $(programs)
}

# ---- What travels ----

# Libraries that a bare machine may lack, or have in another version.
libraries() {
    ldd "$@" | awk '$2 == "=>" { print $3 }' | sort -u | grep -v -E '/(libc|libm|libdl|libpthread|librt)\.so'
}

pack() {
    local to=build-device chips=${CHIPS:-90 120f}
    scripts/install-dependencies.sh build
    # shellcheck disable=SC2016
    build build-pack "-DHEARTH_CUDA_CHIPS=${chips// /;}" '-DCMAKE_BUILD_RPATH=$ORIGIN/lib;$ORIGIN/../lib;$ORIGIN/../../lib'
    rm -rf $to
    mkdir -p $to/bench $to/tests/cuda $to/lib
    strip -o $to/hearth build-pack/hearth
    for name in gpu profile; do strip -o $to/bench/$name build-pack/bench/$name; done
    for name in $(programs); do strip -o "$to/tests/cuda/$name" "build-pack/tests/cuda/$name"; done
    cp build-pack/tests/cuda/wrappers.fatbin $to/tests/cuda/
    # shellcheck disable=SC2046
    cp -L $(libraries $to/hearth $to/tests/cuda/test_*) $to/lib/
    git describe --always --dirty >$to/revision
    du -sh $to
}

# ---- The check ----

record() { # NAME STATE SECONDS REASON
    printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4" >>"$report"
    printf '%-10s %-8s %4s s  %s\n' "$1" "$2" "$3" "$4"
}

left() { echo $((limit - SECONDS)); }

part() { # NAME SECONDS-AT-MOST
    local name=$1 most=$2 status=0 began=$SECONDS state reason
    [[ " $parts " == *" $name "* ]] || return 0
    ((most <= $(left))) || most=$(left)
    if ((most < 5)); then
        record "$name" skipped 0 "no time was left"
        return
    fi
    rm -f "$WORK/reason"
    printf '\n== %s\n' "$name" >>"$log"
    # In the background, so that an interruption is not kept waiting.
    MOST=$most timeout -k 5 "$most" bash scripts/device-parts.sh "$name" >>"$log" 2>&1 &
    wait $! || status=$?
    reason=$(cat "$WORK/reason" 2>/dev/null || true)
    case $status in
    0) state=ok ;;
    77) state=skipped ;;
    124 | 137) state=failed reason=${reason:-"not done after $most s"} ;;
    *) state=failed reason=${reason:-"see $log"} ;;
    esac
    [[ $state != failed ]] || failed=1
    record "$name" $state $((SECONDS - began)) "$reason"
}

# cuBLASLt: PyTorch's, so that both multiply with the same; else the system's or the toolkit's.
find_cublaslt() {
    local folder site here=${LD_LIBRARY_PATH:-}
    site=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null || true)
    for folder in ${here//:/ } "$site"/nvidia/*/lib system /usr/local/cuda*/lib64; do
        if [[ $folder == system ]]; then
            ! ldconfig -p 2>/dev/null | grep -q 'libcublasLt\.so\.1[23]' || return 0
        elif compgen -G "$folder/libcublasLt.so.1[23]" >/dev/null; then
            export LD_LIBRARY_PATH=${here:+$here:}$folder
            return 0
        fi
    done
}

# The chip that is here, as nvcc calls it; 120f serves all of 12.x.
chip() {
    local capability
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1) || {
        echo "nvidia-smi, which would say what chip is here, does not run: give CHIPS, such as CHIPS=90" >&2
        return 1
    }
    case $capability in
    12.*) echo 120f ;;
    *) echo "${capability/./}" ;;
    esac
}

check() {
    limit=${LIMIT:-350} parts=${PARTS:-doctor kernels training memcheck bench racecheck} failed=0
    export BUILD=${BUILD:-build-device} QUICK=${QUICK:-} TESTS=${TESTS:-}
    if [[ ! -x $BUILD/hearth ]]; then
        chips=${CHIPS:-$(chip)} BUILD=build-gpu
        build $BUILD "-DHEARTH_CUDA_CHIPS=${chips// /;}"
    fi
    export RESULTS=${OUT:-bench/results} WORK
    WORK=$(mktemp -d)
    log=${OUT:-$BUILD}/device-check.log report=${OUT:-$BUILD}/device-check.md
    mkdir -p "$RESULTS" "$(dirname "$log")"
    export XDG_CACHE_HOME=$WORK/cache PYTHONUNBUFFERED=1
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$WORK"' EXIT
    trap 'exit 130' INT TERM
    : >"$log"
    printf '| part | | seconds | |\n| --- | --- | ---: | --- |\n' >"$report"
    find_cublaslt

    # PyTorch compiles its steps for minutes: beside the tests, which measure nothing.
    if [[ " $parts " == *" bench "* ]]; then
        MOST=150 timeout -k 5 150 bash scripts/device-parts.sh prepare >"$WORK/prepare.log" 2>&1 &
    fi
    part doctor 20
    part kernels 60
    part training 60
    part memcheck 60
    wait
    part bench $(($(left) > 80 ? $(left) - 40 : $(left)))
    tail -n 100 "$WORK/bench/log.txt" >>"$log" 2>/dev/null || true
    part racecheck 60
    return $failed
}

case ${1:-} in
'') check ;;
pack) pack ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
