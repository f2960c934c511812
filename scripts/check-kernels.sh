#!/bin/bash
# Checks what the compiler made of the GPU's kernels, for each chip: no spills and no local memory, registers
# and shared memory within the chip's limits, as many warps at once as src/cuda/kernels/gates.txt asks, and
# the instructions meant. Prints a table per chip (Markdown), also to REPORT.
#
#   [CHIPS='90 120f'] scripts/check-kernels.sh IMAGES [REPORT]
#   IMAGES: a build's cuda/, after `ninja cuda_chips`
set -euo pipefail

images=${1:?usage: scripts/check-kernels.sh IMAGES [REPORT]}
report=${2:-/dev/null}
root=$(cd "$(dirname "$0")/.." && pwd)
gates=$root/src/cuda/kernels/gates.txt
sources=("$root"/src/cuda/kernels/*.cu)

# Per SM and chip: warps, blocks, bytes of shared memory; the most a block may have of the last.
limits() {
    case $1 in
    80) echo 64 32 167936 166912 ;;
    86) echo 48 16 102400 101376 ;;
    89 | 120f) echo 48 24 102400 101376 ;;
    90 | 100) echo 64 32 233472 232448 ;;
    esac
}

check_chip() {
    local chip=$1 warps blocks shared block_shared name files=("$gates")
    read -r warps blocks shared block_shared < <(limits "$chip")
    for source in "${sources[@]}"; do
        name=$images/$(basename "$source" .cu).sm_$chip
        for file in "$name.ptx" "$name.txt"; do
            [ -f "$file" ] || { echo "$file is missing: run ninja cuda_chips" >&2; return 1; }
            files+=("$file")
        done
    done
    awk -v chip="$chip" -v sm_warps="$warps" -v sm_blocks="$blocks" -v sm_shared="$shared" \
        -v block_shared="$block_shared" -f "$root/scripts/check-kernels.awk" "${files[@]}"
}

if ! command -v "${HEARTH_NVCC:-nvcc}" >/dev/null && ! [ -d "$images" ]; then
    echo "no nvcc, so there are no kernels to check"
    exit 77
fi

failed=0
: >"$report"
for chip in ${CHIPS:-80 86 89 90 100 120f}; do
    check_chip "$chip" | tee -a "$report" || failed=1
done
exit $failed
