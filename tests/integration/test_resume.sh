#!/bin/bash
# A run that is stopped, killed or planned otherwise ends with the same bits as one that was not. STEPS: of a run, a
# multiple of 12, and ROWS: of a batch; they are fewer where a GPU is emulated.
source "$(dirname "$0")/lib.sh" "$1"

steps=${STEPS:-60}
batch=$((${ROWS:-8} * 32))
stop=$((steps * 9 / 20))
export XDG_CACHE_HOME=$work/cache

# step N: as checkpoints are named
step() { printf 'step-%08d' "$1"; }

make_text() { # some structure to learn, some noise
    awk 'BEGIN { srand(7); split("the a one some every no river house tree night old dark quiet runs sings waits falls near under over", w, " ");
        for (line = 0; line < 6000; line++) { s = "";
            for (i = 0; i < 9; i++) s = s w[int(rand() * 20) + 1] " ";
            print s "." } }' >"$1"
}

sha() { sha256sum "$work/$1/checkpoints/$(step "$2")/model.safetensors" | cut -d' ' -f1; }

train() { # RUN OPTIONS...: a tiny model
    local name=$1
    shift
    run 0 train --data "$work/data" --run-dir "$work/$name" --layers 2 --dim 32 --heads 2 --seq-len 32 \
        --batch-tokens $batch --micro-batch 2 --steps "$steps" --seed 3 --eval-every $((steps * 5 / 12)) \
        --sample-every $((steps * 5 / 6)) --checkpoint-every $((steps / 6)) --quiet "$@"
}

same() { # RUN: its last weights are those of the uninterrupted run
    [[ $(sha "$1" "$steps") == "$whole" ]] || die "$1 ended with other weights"
}

make_text "$work/text.txt"
run 0 tokenizer train --vocab 320 --pattern gpt4 --out "$work/tok" "$work/text.txt"
run 0 data build --tokenizer "$work/tok/tokenizer.json" --out "$work/data" --split-on '\n' "$work/text.txt"

train whole
whole=$(sha whole "$steps")

train again
same again

train stopped --stop-after $stop
[[ -d $work/stopped/checkpoints/$(step $stop) ]] || die "no checkpoint where the run stopped"
run 0 train --run-dir "$work/stopped" --resume --quiet
same stopped
[[ ! -s $work/err ]] || die "a run that goes on as it began warns: $(<"$work/err")"

for level in cheap mlp layer; do
    train "recompute-$level" --recompute $level
    same "recompute-$level"
done

for offload in state activations all; do
    train "offload-$offload" --offload $offload
    same "offload-$offload"
done
grep -q '^offload: "all"$' "$work/offload-all/config.yaml" || die "config.yaml does not record the offload"
train moved --offload all --stop-after $stop
run 0 train --run-dir "$work/moved" --resume --offload none --quiet
same moved

# Killed at random moments until it is done.
kills=0
"$hearth" train --data "$work/data" --run-dir "$work/killed" --layers 2 --dim 32 --heads 2 --seq-len 32 \
    --batch-tokens $batch --micro-batch 2 --steps "$steps" --seed 3 --eval-every $((steps * 5 / 12)) --checkpoint-every $((steps / 12)) --quiet \
    2>/dev/null &
for _ in 1 2 3 4; do
    while ! compgen -G "$work/killed/checkpoints/step-*" >/dev/null; do
        kill -0 $! 2>/dev/null || break
        sleep 0.02
    done
    sleep 0.$((RANDOM % 5))
    kill -9 $! 2>/dev/null && kills=$((kills + 1))
    wait $! 2>/dev/null || true
    [[ -d $work/killed/checkpoints/$(step "$steps") ]] && break
    "$hearth" train --run-dir "$work/killed" --resume --quiet 2>/dev/null &
done
wait $! || run 0 train --run-dir "$work/killed" --resume --quiet
same killed
echo "killed $kills times"

# A signal ends a run cleanly, and it goes on.
"$hearth" train --data "$work/data" --run-dir "$work/signalled" --layers 2 --dim 32 --heads 2 --seq-len 32 \
    --batch-tokens $batch --micro-batch 2 --steps "$steps" --seed 3 --checkpoint-every $((steps / 6)) 2>"$work/err" &
while ! grep -q '^step' "$work/err"; do kill -0 $! || die "the run ended before its first step"; sleep 0.02; done
kill -TERM $!
wait $! || die "SIGTERM must end with status 0"
run 0 train --run-dir "$work/signalled" --resume --quiet
same signalled

# Of what makes it another training a resumed run warns, as of the value now and the one before, and of nothing else.
train changed --stop-after $stop --weight-decay 0.1 --warmup 3
run 0 train --run-dir "$work/changed" --resume --tokens $((steps * 2 * batch)) --weight-decay 0.2 --schedule linear \
    --lr 6e-4 --warmup 3 --clip 1 --checkpoint-every 5 --eval-every 0 --recompute layer --device cpu \
    --stop-after 1 --quiet
cat >"$work/expected" <<END
warning: --steps $((steps * 2)) now, $steps before
warning: --schedule linear now, cosine before
warning: --weight-decay 0.2 now, 0.1 before
END
cmp "$work/expected" "$work/err" || die "other warnings: $(<"$work/err")"
run 0 train --run-dir "$work/changed" --resume --stop-after 1 --quiet
[[ ! -s $work/err ]] || die "changes of the last time are warned of again: $(<"$work/err")"
run 0 train --run-dir "$work/changed" --resume --cooldown 0.5 --stop-after 1 --quiet
[[ ! -s $work/err ]] || die "a cool-down that there is none of is warned of: $(<"$work/err")"
run 0 train --run-dir "$work/changed" --resume --micro-batch 1 --logit-chunk 8 --stop-after 1 --quiet
says err "--micro-batch 1 now, 2 before"
says err "--logit-chunk 8 now, "
printf 'beta2: 0.99\n' >"$work/options.yaml"
run 0 train --run-dir "$work/changed" --resume --config "$work/options.yaml" --stop-after 1 --quiet
says err "--beta2 0.99 now, 0.95 before"

# A run goes on from anywhere, also when the run that its weights came from is gone, or when it has the name of its model.
cd "$work"
train llama-15m --model llama-15m --stop-after $stop
run 0 train --run-dir llama-15m --resume --quiet
same llama-15m
run 0 train --data data --run-dir heir --init-from llama-15m --batch-tokens $batch --steps 6 --stop-after 2 --quiet
cd /
run 0 train --run-dir "$work/heir" --resume --stop-after 2 --quiet
model=$(grep '^model:' "$work/heir/config.yaml")
mv "$work/llama-15m" "$work/away"
run 0 train --run-dir "$work/heir" --resume --stop-after 1 --quiet
[[ $(grep '^model:' "$work/heir/config.yaml") == "$model" ]] || die "config.yaml forgot the model"
mv "$work/away" "$work/llama-15m"
run 0 train --run-dir "$work/heir" --resume --stop-after 1 --model "${model:8:-1}" --quiet
[[ -d $work/heir/checkpoints/$(step 6) ]] || die "the heir did not go on"

# What is planned is what would go on.
cd "$work"
run 0 plan --run-dir heir --resume --data data --json
says out '"steps": 6'
says out "\"batch_tokens\": $batch"
run 1 plan --run-dir heir --resume --model d4
says err "heir trains the model"
run 2 plan --resume
says err "--resume needs --run-dir"
