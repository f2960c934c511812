#!/bin/bash
# hearth eval, with no more than a checkpoint and the dataset, gives the loss that training itself logged.
source "$(dirname "$0")/lib.sh" "$1"

awk 'BEGIN { srand(5); split("the a one some every no river house tree night old dark quiet runs sings waits falls near", w, " ");
    for (line = 0; line < 600; line++) { s = ""; n = 3 + int(rand() * 20);
        for (i = 0; i < n; i++) s = s w[int(rand() * 18) + 1] " ";
        print s "." } }' >"$work/text.txt"
run 0 tokenizer train --vocab 300 --out "$work/tok" "$work/text.txt"
run 0 data build --tokenizer "$work/tok" --out "$work/data" --split-on '\n' --val-fraction 0.1 "$work/text.txt"

# what NAME FILE: the number of that name in JSON, as the log has it
number() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" "$2" | tail -n 1 | xargs printf '%.9g'; }

evaluate() { # CHECKPOINT OPTIONS...: the loss
    local checkpoint=$1
    shift
    run 0 eval --checkpoint "$checkpoint" --data "$work/data" --json "$@"
    number loss "$work/out"
}

# agrees RUN OPTIONS...: of training; in a micro-batch and chunks that are not those of eval
agrees() {
    local name=$1
    shift
    run 0 train --data "$work/data" --run-dir "$work/$name" --layers 2 --dim 64 --seq-len 32 --batch-tokens 192 \
        --micro-batch 3 --steps 4 --seed 3 --eval-every 2 --quiet "$@"
    local logged evaluated
    logged=$(number val_loss "$work/$name/log.jsonl")
    evaluated=$(evaluate "$work/$name")
    [[ $logged == "$evaluated" ]] || die "$name: training logged $logged, eval gives $evaluated"
}

agrees llama --heads 2
says err "data: packing stream; attention inside documents"
agrees llama-documents --heads 2 --packing documents --no-document-mask
says err "data: packing documents; attention across documents"
agrees nanochat --model d4 --head-dim 32
says err "data: packing bestfit; attention across documents"
agrees nanochat-stream --model d4 --head-dim 32 --packing stream --document-mask
says err "data: packing stream; attention inside documents"

# Training evaluates --eval-tokens, and eval the whole split, unless it is told the same.
agrees_of() { # TOKENS
    run 0 train --data "$work/data" --run-dir "$work/part" --layers 2 --dim 64 --seq-len 32 --batch-tokens 192 --heads 2 \
        --steps 2 --eval-every 2 --eval-tokens "$1" --quiet
    [[ $(number val_loss "$work/part/log.jsonl") == $(evaluate "$work/part" --tokens "$1") ]] || die "other tokens"
    [[ $(number val_loss "$work/part/log.jsonl") != $(evaluate "$work/part") ]] || die "eval takes only some of the split"
}
agrees_of 96

evaluate "$work/llama-documents" --packing stream >"$work/loss"
says err "data: packing stream; attention across documents"
[[ $(<"$work/loss") != $(evaluate "$work/llama-documents") ]] || die "--packing changes nothing"

# A model without the record, or without that of attention, is evaluated as its architecture is trained.
checkpoint=$work/llama-documents/checkpoints/step-00000004
state=$checkpoint/train_state.json
recorded() { # SED: the record, edited
    cp "$state" "$work/state.json"
    sed -i "$1" "$state"
}
restore() { cp "$work/state.json" "$state"; }
recorded 's/"version": 2/"version": 1/'
sed -i '/"attention"/d' "$state"
evaluate "$checkpoint" >"$work/loss"
says err "data: packing documents; attention inside documents"
rm "$state"
evaluate "$checkpoint" >"$work/loss"
says err "data: packing stream; attention inside documents"
restore

# A damaged record is refused.
refused() { # SED MESSAGE
    recorded "$1"
    run 1 eval --checkpoint "$checkpoint" --data "$work/data"
    says err "train_state.json"
    says err "$2"
    restore
}
refused 's/{/[/' "not valid JSON"
refused 's/"version": 2/"version": 3/' '"version" is 3'
refused 's/"packing": "documents"/"packing": "loose"/' "no packing is named 'loose'"
refused '/"packing"/d' '"packing" is missing'
refused 's/across documents/everywhere/' "\"attention\" is 'everywhere'"
refused 's/"attention": ".*"/"attention": 7/' '"attention" is not'
run 0 eval --checkpoint "$checkpoint" "$work/text.txt"
