#!/bin/bash
# nanochat's model and recipe on the GPU backend: Muon beside AdamW, rows packed by best fit. Losses are the CPU's, and
# what must not change a bit does not.
source "$(dirname "$0")/lib.sh" "$1"
make_data

# nanochat RUN OPTIONS...: 6 steps of d4, windows shorter than its rows
nanochat() {
    local name=$1
    shift
    run 0 train --model d4 --data "$work/data" --run-dir "$work/$name" --seq-len 32 --batch-tokens 128 --micro-batch 2 \
        --logit-chunk 48 --steps $steps --seed 3 --eval-every 0 --checkpoint-every 3 --keep 0 --quiet "$@"
}

for device in cpu cuda; do
    nanochat "d4-$device-bf16" --device $device
    nanochat "d4-$device-fp32" --device $device --precision fp32
done
near d4-cuda-bf16 d4-cpu-bf16 2e-3
near d4-cuda-fp32 d4-cpu-fp32 1e-5

# Narrow, with rates that take it far in 6 steps. Muon makes what is rounding in a gradient as large as the rest of it, so
# runs drift apart, whatever their precision.
narrow() {
    nanochat "$@" --dim 64 --heads 2 --kv-heads 1 --head-dim 32 --ffn 256 --warmup 1 --matrix-lr 0.1 \
        --embedding-lr 6 --unembedding-lr 0.2 --scalar-lr 0.02
}
for device in cpu cuda; do
    narrow "$device-bf16" --device $device
    narrow "$device-fp32" --device $device --precision fp32
done
near cuda-bf16 cpu-bf16 2e-3
near cuda-fp32 cpu-fp32 2e-3
losses cuda-bf16 | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.8 * first) }' || die "it learns nothing"

for seed in 2 3; do
    TEST_GPU_SEED=$seed TEST_GPU_ORDER=random narrow "seed-$seed" --device cuda
    same "seed-$seed" cuda-bf16
done
for options in "--recompute layer" "--offload all"; do
    read -ra words <<<"$options"
    narrow "${words[0]}" --device cuda "${words[@]}"
    same "${words[0]}" cuda-bf16
done

# Muon's momentum is rounded by the numbers of its step, wherever the run goes on.
for state in fp32 bf16; do
    narrow "whole-$state" --device cuda --optimizer-state $state
    narrow "stopped-$state" --device cuda --optimizer-state $state --stop-after 3
    run 0 train --run-dir "$work/stopped-$state" --resume --quiet
    same "stopped-$state" "whole-$state"
done
narrow moved --device cpu --stop-after 3
run 0 train --run-dir "$work/moved" --resume --device cuda --quiet
near moved cpu-bf16 2e-3

# Its caches: a text, and choices that are scored as branches behind what they have in common.
for device in cpu cuda; do
    run 0 generate --checkpoint "$work/cuda-fp32" --prompt "the old house" --max-tokens 24 --temperature 0 \
        --precision fp32 --device $device --quiet
    cp "$work/out" "$work/text-$device"
done
cmp "$work/text-cpu" "$work/text-cuda" || die "another text on the GPU"

mkdir -p "$work/bundle/eval_data"
cat >"$work/bundle/core.yaml" <<'YAML'
icl_tasks:
- {label: choice, dataset_uri: choice.jsonl, num_fewshot: [2], icl_task_type: multiple_choice, continuation_delimiter: " "}
- {label: schema, dataset_uri: schema.jsonl, num_fewshot: [0], icl_task_type: schema, continuation_delimiter: " "}
- {label: words, dataset_uri: words.jsonl, num_fewshot: [1], icl_task_type: language_modeling, continuation_delimiter: " "}
YAML
printf 'Eval Task,Random baseline\nchoice,25\nschema,50\nwords,0\n' >"$work/bundle/eval_meta_data.csv"
awk -v folder="$work/bundle/eval_data" 'BEGIN { split("river house tree night old dark quiet", w, " ")
    for (i = 0; i < 8; i++) { a = w[i % 7 + 1]; b = w[i * 3 % 7 + 1]; c = w[i * 5 % 7 + 1]
        printf "{\"query\": \"the %s %s\", \"choices\": [\"%s\", \"%s runs\", \"no %s\"], \"gold\": %d}\n", a, b, c, a, b, i % 3 >(folder "/choice.jsonl")
        printf "{\"context_options\": [\"some %s\", \"every %s\"], \"continuation\": \"waits near %s\", \"gold\": %d}\n", a, b, c, i % 2 >(folder "/schema.jsonl")
        printf "{\"context\": \"one %s\", \"continuation\": \"%s\"}\n", a, b >(folder "/words.jsonl") } }'
for device in cpu cuda; do
    run 0 eval --checkpoint "$work/cuda-fp32" --core "$work/bundle" --core-details "$work/core-$device" \
        --precision fp32 --device $device --quiet
done
[[ $(wc -l <"$work/core-cpu") == 24 ]] || die "not every example was scored"
outcomes() { sed 's/"losses":[^]]*],*//' "$work/core-$1"; }
scores() { grep -o '[0-9]*\.[0-9]*' "$work/core-$1"; }
cmp <(outcomes cpu) <(outcomes cuda) || die "other outcomes on the GPU"
paste <(scores cpu) <(scores cuda) | within 1e-5 $((8 * (3 + 2 + 1))) || die "other losses of choices on the GPU"
