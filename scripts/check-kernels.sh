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

# Per SM: warps, blocks, bytes of shared memory; the most a block may have of the last.
declare -A limits=(
    [80]="64 32 167936 166912"
    [86]="48 16 102400 101376"
    [89]="48 24 102400 101376"
    [90]="64 32 233472 232448"
    [100]="64 32 233472 232448"
    [120f]="48 24 102400 101376"
)

check_chip() {
    local chip=$1 warps blocks shared block_shared name files=("$gates")
    read -r warps blocks shared block_shared <<<"${limits[$chip]:?no limits are known of sm_$chip}"
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

failed=0
: >"$report"
for chip in ${CHIPS:-$(printf '%s\n' "${!limits[@]}" | sort -n)}; do
    check_chip "$chip" | tee -a "$report" || failed=1
done
exit $failed
