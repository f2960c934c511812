#!/bin/bash
# Whole runs on the GPU backend: their losses are the CPU's, and what must not change a bit does not.
source "$(dirname "$0")/lib.sh" "$1"
make_data

train cpu --device cpu
train cuda --device cuda
near cuda cpu 2e-3

# The order in which a GPU does what may be done in any order decides nothing.
for seed in 2 3 4 5 6; do
    TEST_GPU_SEED=$seed TEST_GPU_ORDER=random train "seed-$seed" --device cuda
    same "seed-$seed" cuda
done

for level in cheap mlp layer; do
    train "recompute-$level" --device cuda --recompute "$level"
    same "recompute-$level" cuda
done

for what in state activations all; do
    TEST_GPU_SEED=7 train "offload-$what" --device cuda --offload "$what"
    same "offload-$what" cuda
done

train one --device cuda --micro-batch 1
near one cuda 2e-3

# Where the processor and the GPU share one memory, batches and losses pass through it uncopied.
for seed in 8 9; do
    TEST_GPU_CHIP=dgx-spark TEST_GPU_SEED=$seed train "spark-$seed" --device cuda --micro-batch 1
    same "spark-$seed" one
done

for state in bf16 8bit; do
    train "cpu-$state" --device cpu --optimizer-state "$state"
    train "cuda-$state" --device cuda --optimizer-state "$state"
    near "cuda-$state" "cpu-$state" 3e-3
done

train cpu-window --device cpu --window-pattern SL --window 4
train cuda-window --device cuda --window-pattern SL --window 4
near cuda-window cpu-window 2e-3
[[ $(losses cuda-window) != "$(losses cuda)" ]] || die "the window changed nothing"

train cpu-fp32 --device cpu --precision fp32
train cuda-fp32 --device cuda --precision fp32
near cuda-fp32 cpu-fp32 1e-5

# A run goes on where it stopped, on the same device with the same bits, on the other within rounding.
train stopped --device cuda --stop-after 3
run 0 train --run-dir "$work/stopped" --resume --quiet
same stopped cuda
for there in "cpu cuda" "cuda cpu"; do
    read -r first second <<<"$there"
    train "$first-$second" --device "$first" --stop-after 3
    run 0 train --run-dir "$work/$first-$second" --resume --device "$second" --quiet
    near "$first-$second" cpu 2e-3
done

# Evaluation and samples run on it too.
train all --device cuda --eval-every 3 --eval-tokens 96 --sample-every 6 --sample-tokens 4
grep -q val_loss "$work/all/log.jsonl" || die "no evaluation in the log"
same all cuda
