#!/bin/bash
# nanochat's models and recipe: what plan says of them, overrides, and runs that go on with the same bits: with Muon, rows
# packed by best fit, and a batch that the recipe chose and that whole micro-batches changed.
source "$(dirname "$0")/lib.sh" "$1"

# plan VALUE...: of the model and options before "--", as JSON, which must hold each value
plan() {
    local options=()
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    run 0 plan "${options[@]}" --device h200 --json
    for value in "$@"; do says out "$value"; done
}

plan --model d24 --tokens-per-param 8 -- '"parameters": 1384122122' '"scaling_parameters": 729810624' \
    '"flops_per_token": 4775225616.0' '"batch_tokens": 1048576' '"steps": 5568' '"value_embeds": 603979776' \
    '"matrices": 0.028284271247461' '"weight_decay": 0.0597384244634'
plan --model d12 -- '"parameters": 286261730' '"batch_tokens": 524288' '"steps": 2520' '"matrices": 0.02,' \
    '"weight_decay": 0.28'
plan --model d6 --head-dim 64 --seq-len 512 --batch-tokens 16384 -- '"batch_tokens": 16384' '"steps": 16992'
# 4 layers of q 512x512, k and v 256x512, o 512x512, mlp 2x2048x512; 2 value embeddings with gates of 4x12; and so on
plan --model d4 --dim 512 --heads 8 --kv-heads 4 -- '"parameters": 61866114'
run 1 plan --model d24 --memory 1G --device h200 --json
says out '"fits": false'
says out '"parameters": 1384122122'

run 1 plan --model llama-15m --embedding-lr 0.5
says err "--embedding-lr 0.5 has a meaning only with nanochat's recipe"
run 1 plan --model d4 --lr 1e-3
says err "--optimizer adamw"
for option in "--beta1 0.1" "--beta2 0.5" "--epsilon 0.001"; do
    read -ra words <<<"$option"
    run 1 plan --model d4 "${words[@]}"
    says err "$option has a meaning only without nanochat's recipe"
    plan --model d4 --optimizer adamw "${words[@]}" -- '"fits": true'
done
run 1 plan --model d4 --ffn 100
says err "ffn"
for dim in 64 192; do # heads of 128
    run 1 plan --model d4 --dim $dim
    says err "--dim $dim is not whole heads of nanochat, which are 128 wide: give --head-dim"
done

awk 'BEGIN { srand(5); split("the a one some every no river house tree night old dark quiet runs sings waits falls near", w, " ");
    for (line = 0; line < 3000; line++) { s = ""; n = 3 + int(rand() * 20);
        for (i = 0; i < n; i++) s = s w[int(rand() * 18) + 1] " ";
        print s "." } }' >"$work/text.txt"
run 0 tokenizer train --vocab 300 --pattern nanochat --out "$work/tok" "$work/text.txt"

# Documents are cropped to 10,000 characters for its tokenizer, as Python counts them; a text of no documents is not.
hash_of() { # OPTIONS...
    run 0 tokenizer train --vocab 300 --json --out "$work/other-tok" "$@"
    grep -o '"hash": "[^"]*"' "$work/out"
}
prose=$(head -c 9000 "$work/text.txt" | tr '\n' ' ')
accents=$(printf '\303\251%.0s' $(seq $((10000 - ${#prose}))))
echo "{\"text\": \"$prose$accents$(printf 'zq%.0s' $(seq 9000))\"}" >"$work/long.jsonl"
echo "{\"text\": \"$prose$accents\"}" >"$work/short.jsonl"
sed 's/^{"text": "//; s/"}$//' "$work/long.jsonl" >"$work/long.txt"
whole=$(hash_of --pattern nanochat --max-doc-chars 0 "$work/long.jsonl")
cropped=$(hash_of --pattern nanochat "$work/short.jsonl")
[[ $whole != "$cropped" ]] || die "the test's documents are too much alike"
[[ $(hash_of --pattern nanochat "$work/long.jsonl") == "$cropped" ]] || die "a document is not cropped"
says err "--max-doc-chars"
echo "{\"text\": \"$(printf 'zq%.0s' $(seq 4000))\"}" >"$work/other.jsonl"
[[ $(hash_of --pattern nanochat "$work/short.jsonl" "$work/long.jsonl" "$work/other.jsonl" --max-chars 15K) == "$cropped" ]] ||
    die "--max-chars does not end the text"
[[ $(hash_of --pattern nanochat "$work/short.jsonl" "$work/other.jsonl" --max-chars 5K) == "$cropped" ]] ||
    die "--max-chars cuts the document that goes beyond it"
mkdir "$work/books"
cp "$work/long.txt" "$work/books"
for text in "$work/long.txt" "$work/books" "$work/books/*.txt"; do
    [[ $(hash_of --pattern nanochat "$text") == "$whole" ]] || die "$text is cropped"
done
run 1 tokenizer train --vocab 300 --out "$work/other-tok" --max-doc-chars 5000 "$work/books"
says err "--split-on"
run 0 tokenizer train --vocab 300 --out "$work/other-tok" --max-doc-chars 0 "$work/books"
# 20,000 different words, of which a document keeps the first 10,000 characters
echo "{\"text\": \"$(seq -s ' ' 20000)\"}" >"$work/numbers.jsonl"
run 1 tokenizer train --vocab 8192 --pattern nanochat --out "$work/other-tok" --quiet "$work/numbers.jsonl"
says err "more than half"
says err "leave less of it out (--max-doc-chars"
[[ $(hash_of --pattern nanochat "$work/long.txt" --max-chars 10K) == "$cropped" ]] ||
    die "--max-chars does not crop a text"
pattern="--pattern gpt4 --specials <|bos|>"
# shellcheck disable=SC2086 # words
[[ $(hash_of $pattern "$work/long.jsonl") != $(hash_of $pattern "$work/short.jsonl") ]] ||
    die "documents are cropped with another pattern"

run 0 data build --tokenizer "$work/tok" --out "$work/data" --split-on '\n' "$work/text.txt"

train() { # RUN OPTIONS...: rows of 24 tokens
    local name=$1
    shift
    run 0 train --model d4 --layers 2 --dim 64 --head-dim 32 --data "$work/data" --run-dir "$work/$name" --seq-len 24 \
        --micro-batch 3 --warmup 2 --seed 3 --eval-every 0 --quiet "$@"
}

same() { # RUN OTHER STEPS: the weights and the optimizer's state at the end
    for file in model optimizer; do
        cmp "$work/$1/checkpoints/step-0000000$3/$file.safetensors" \
            "$work/$2/checkpoints/step-0000000$3/$file.safetensors" || die "$1 ended otherwise than $2"
    done
    cmp <(grep -o '"lr":[^,]*' "$work/$1/log.jsonl") <(grep -o '"lr":[^,]*' "$work/$2/log.jsonl") ||
        die "the rates of $1 are not those of $2"
}

for options in "--precision fp32" "--optimizer-state bf16"; do
    read -ra words <<<"$options"
    rm -rf "$work"/whole "$work"/stopped "$work"/offloaded
    train whole --batch-tokens 144 --steps 6 "${words[@]}"
    train stopped --batch-tokens 144 --steps 6 "${words[@]}" --stop-after 3
    run 0 train --run-dir "$work/stopped" --resume --optimizer muon --beta1 0.9 --quiet
    same stopped whole 6
    train offloaded --batch-tokens 144 --steps 6 "${words[@]}" --recompute layer --offload all
    same offloaded whole 6
done
grep -q '^packing: "bestfit"$' "$work/whole/config.yaml" || die "nanochat's rows are not those of best fit"

# The recipe's batch, a power of two, is not whole rows of 24: the rates are those of the batch in whole rows.
train chosen --micro-batch 300 --steps 2
train continued --micro-batch 300 --steps 2 --stop-after 1
run 0 train --run-dir "$work/continued" --resume --quiet
same continued chosen 2

train adamw --optimizer adamw --batch-tokens 144 --steps 4 --stop-after 2
run 1 train --run-dir "$work/adamw" --resume --optimizer muon --quiet
says err "was begun with --optimizer adamw: --optimizer muon needs a run of its own (--init-from $work/adamw"
run 1 train --run-dir "$work/whole" --resume --optimizer adamw --quiet
says err "was begun with --optimizer muon: --optimizer adamw needs a run of its own (--init-from $work/whole"
run 0 eval --checkpoint "$work/whole" --data "$work/data" --json
run 0 generate --checkpoint "$work/whole" --prompt "the old house" --max-tokens 8
