# What the tests of whole runs on a GPU share: a small dataset and models, trained with the test driver in
# place of NVIDIA's (LD_LIBRARY_PATH leads to it).
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/../../integration/lib.sh" "$1"
export XDG_CACHE_HOME=$work/cache

# Some structure to learn, some noise.
make_data() {
    awk 'BEGIN { srand(7); split("the a one some every no river house tree night old dark quiet runs sings waits falls near under over", w, " ");
        for (line = 0; line < 2000; line++) { s = "";
            for (i = 0; i < 9; i++) s = s w[int(rand() * 20) + 1] " ";
            print s "." } }' >"$work/text.txt"
    run 0 tokenizer train --vocab 320 --pattern gpt4 --out "$work/tok" "$work/text.txt"
    run 0 data build --tokenizer "$work/tok/tokenizer.json" --out "$work/data" --split-on '\n' "$work/text.txt"
}

steps=6

# train RUN OPTIONS...: a tiny model; 6 steps unless told otherwise
train() {
    local name=$1
    shift
    run 0 train --data "$work/data" --run-dir "$work/$name" --layers 2 --dim 64 --heads 2 --kv-heads 1 \
        --ffn 96 --seq-len 48 --batch-tokens 192 --micro-batch 2 --logit-chunk 48 --steps $steps --seed 3 \
        --lr 3e-3 --warmup 1 --eval-every 0 --checkpoint-every 3 --keep 0 --quiet "$@"
}

# losses RUN: one a line
losses() { sed -n 's/.*"loss": *\([-0-9.e+]*\).*/\1/p' "$work/$1/log.jsonl"; }

sha() { sha256sum "$work/$1/checkpoints/step-0000000$2/model.safetensors" | cut -d' ' -f1; }

# same RUN OTHER: the same losses and weights, bit for bit
same() {
    [[ $(losses "$1") == "$(losses "$2")" ]] || die "$1 and $2 have other losses: $(losses "$1" | tr '\n' ' ') and $(losses "$2" | tr '\n' ' ')"
    [[ $(sha "$1" $steps) == "$(sha "$2" $steps)" ]] || die "$1 and $2 ended with other weights"
}

# within TOLERANCE COUNT: reads that many pairs of positive numbers, which differ by no more than that, relatively
within() {
    awk -v tolerance="$1" -v count="$2" '
        { difference = $1 - $2; if (difference < 0) difference = -difference
          if (NF != 2 || !(difference <= tolerance * $2)) { print NR ": " $1 " and " $2; wrong = 1 } }
        END { exit wrong || NR != count }'
}

# near RUN OTHER TOLERANCE: as many losses, each within the relative tolerance
near() {
    paste <(losses "$1") <(losses "$2") | within "$3" $steps || die "$1 and $2 differ by more than $3"
}
