#!/bin/bash
# The plan's memory is what the backend asks of the driver, to the byte: on chips that are posed as, and as
# planned for them where there is no GPU. A step that does not fit is refused before it begins.
source "$(dirname "$0")/lib.sh" "$1"
make_data
steps=1

# asked KINDS: the most bytes that were asked for at once of these kinds of memory
asked() {
    awk -v kinds="$1" '$1 ~ "^(" kinds ")$" { now += $2; if (now > most) most = now } END { print most + 0 }' "$work/log"
}

# planned KEY: of the plan just made
planned() { sed -n "s/^ *\"$1\": *\([0-9]*\),*$/\1/p" "$work/out"; }

model=(--layers 2 --dim 64 --heads 2 --kv-heads 1 --ffn 96 --seq-len 48 --batch-tokens 192 --vocab 320
    --data "$work/data" --steps 1 --eval-every 0)

compare() { # CHIP OPTIONS...
    local chip=$1 device pinned there_device there_pinned
    shift
    export TEST_GPU_CHIP=$chip
    run 0 plan --device cuda --json "${model[@]}" "$@"
    device=$(planned device_bytes) pinned=$(planned pinned_bytes)
    rm -f "$work/log"
    TEST_GPU_LOG=$work/log run 0 train --device cuda "${model[@]}" --run-dir "$work/$chip$RANDOM" --quiet "$@"
    [[ $(asked 'device|managed') == "$device" ]] || die "$chip $*: $device bytes planned, $(asked 'device|managed') asked for"
    [[ $(asked pinned) == "$pinned" ]] || die "$chip $*: $pinned pinned bytes planned, $(asked pinned) asked for"
    LD_LIBRARY_PATH='' run 0 plan --device "$chip" --json "${model[@]}" "$@"
    there_device=$(planned device_bytes) there_pinned=$(planned pinned_bytes)
    [[ $there_device == "$device" && $there_pinned == "$pinned" ]] ||
        die "$chip $*: planned elsewhere $there_device and $there_pinned bytes, there $device and $pinned"
}

for chip in rtx-5090 rtx-5080 rtx-4090 rtx-3090 a100 h100 h200 b200; do compare $chip --micro-batch 2; done
compare rtx-5090 --micro-batch 1 --recompute layer --optimizer-state 8bit
compare rtx-5090 --micro-batch 2 --offload all
compare rtx-5080 --micro-batch 4 --offload state --optimizer-state bf16
compare rtx-5090 --micro-batch 2 --precision fp32
compare dgx-spark --micro-batch 2

llama=("${model[@]}")
model=(--model d4 --seq-len 32 --batch-tokens 128 --vocab 320 --data "$work/data" --steps 1 --eval-every 0)
compare h100 --micro-batch 2
compare rtx-5090 --micro-batch 4 --recompute layer --optimizer-state bf16
compare rtx-5080 --micro-batch 2 --offload all
model=("${llama[@]}")

# Too little memory: an answer before the run, by the plan and, where others hold it, by the driver's refusal.
export TEST_GPU_CHIP=rtx-5080
run 1 train --device cuda "${model[@]}" --run-dir "$work/small" --memory 665M
says err "does not fit"
says err "kept for the GPU's driver and libraries"
asked_for=$(sed -n 's/.*Give --memory \([0-9]*M\),.*/\1/p' "$work/err")
run 0 train --device cuda "${model[@]}" --run-dir "$work/small" --memory "$asked_for" --quiet
for allocation in 1 2 3; do
    TEST_GPU_FAULT=allocate:$allocation run 1 train --device cuda "${model[@]}" --run-dir "$work/taken"
    says err "cannot be had"
    says err "close what else uses the GPU"
done

# A kernel that fails ends the run with its reason, and what was saved goes on.
TEST_GPU_FAULT=launch:100 run 1 train --device cuda "${model[@]}" --steps 3 --checkpoint-every 1 --run-dir "$work/broken" --quiet
says err "CUDA_ERROR_LAUNCH_FAILED"
run 0 train --run-dir "$work/broken" --resume --quiet
grep -q '"step":3,' "$work/broken/log.jsonl" || die "the run did not go on"

# What is missing is named, with what to do.
TEST_GPU_FAULT=device:0 run 1 train --device cuda "${model[@]}" --run-dir "$work/none"
says err "shows no GPU"
LD_LIBRARY_PATH='' run 1 train --device cuda "${model[@]}" --run-dir "$work/none"
says err "no NVIDIA driver is installed"

# A cache with algorithms that cuBLASLt does not propose is made anew.
sed -i 's/"algorithm": *"[0-9a-f]*"/"algorithm": "'"$(printf 'f%.0s' {1..128})"'"/' "$XDG_CACHE_HOME"/hearth/matmuls-*.json
grep -q '"fff' "$XDG_CACHE_HOME"/hearth/matmuls-*.json || die "the cache was not spoilt"
run 0 train --device cuda "${model[@]}" --run-dir "$work/spoilt"
says err "matmuls: timed"

# A matmul algorithm that fails is left out, reported, and not tried again.
rm -rf "$XDG_CACHE_HOME"
TEST_GPU_FAULT=matmul:0 run 0 train --device cuda "${model[@]}" --run-dir "$work/first"
says err "is left out from now on"
TEST_GPU_FAULT=matmul:0 run 0 train --device cuda "${model[@]}" --run-dir "$work/second"
grep -q "is left out" "$work/err" && die "an algorithm that failed was tried again"

# Where the choice cannot be kept, the run says why and goes on.
touch "$work/file"
XDG_CACHE_HOME=$work/file run 0 train --device cuda "${model[@]}" --run-dir "$work/unkept"
says err "the choice of matmul algorithms is not kept"
says err "$work/file"
