#!/bin/bash
# The doctor on a GPU: what it reads of the chip, and what it says where a library is missing.
source "$(dirname "$0")/lib.sh" "$1"

TEST_GPU_CHIP=rtx-5090 run 0 doctor --run-dir "$work/runs"
for text in "NVIDIA GeForce RTX 5090, compute capability 12.0" "CUDA 13.0" "GiB free" "for this chip" \
    "limit 575 W of 575 W" "61 degrees" "Ready to train on the GPU"; do
    says out "$text"
done

TEST_GPU_CHIP=dgx-spark run 0 doctor --json --run-dir "$work/runs"
for text in '"ready": true' '"device": "cuda"' '"name": "NVIDIA GB10"' '"capability": 121' \
    "\"memory\": $((122572 << 20))," '"power_limit": 140' '"slowed": ""'; do
    says out "$text"
done
grep -q '"memory_free": [1-9]' "$work/out" || die "no free memory: $(cat "$work/out")"
grep -q '"state": "fix"' "$work/out" && die "something must be put right: $(cat "$work/out")"

# A driver older than the kernels' toolkit cannot load them, and must be updated.
TEST_GPU_FAULT=driver:12 run 1 doctor --run-dir "$work/runs"
says out "CUDA 12.8"
says out "update it, to 580 or later"

# A driver with neither NVML nor a cuBLASLt that works on it: the GPU cannot be used, and that must be put right.
mkdir "$work/driver"
ln -s "$(realpath "${LD_LIBRARY_PATH%%:*}/libcuda.so.1")" "$work/driver/libcuda.so.1"
LD_LIBRARY_PATH=$work/driver run 1 doctor --run-dir "$work/runs"
says out "libnvidia-ml.so.1, which comes with the driver, was not found"
says out "FIX"
says out "cuBLASLt"
says out "--device cpu"
