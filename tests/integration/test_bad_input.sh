#!/bin/bash
# shellcheck disable=SC2086,SC2012,SC2059 # options are split into words on purpose; names here are plain
# Bad input gets a clear error that names the file, the value or the remedy, and nothing is lost.
source "$(dirname "$0")/lib.sh" "$1"
cd "$work"

text() { awk -v n="$1" 'BEGIN { srand(3); split("rain wind sea hill bird song cold warm slow deep", w, " ");
    for (i = 0; i < n; i++) printf "%s %s\n", w[int(rand() * 10) + 1], w[int(rand() * 10) + 1] }'; }
# int32 number... : little-endian words, as shard headers are written
words() { for n in "$@"; do printf "\\x$(printf %02x $((n & 255)))\\x$(printf %02x $((n >> 8 & 255)))\\x$(printf %02x $((n >> 16 & 255)))\\x$(printf %02x $((n >> 24 & 255)))"; done; }
header() { words "$1" "$2" "$3"; head -c 1012 /dev/zero; }
small="--layers 1 --dim 16 --heads 2 --seq-len 16 --batch-tokens 64 --steps 4 --quiet"

text 4000 >good.txt
run 0 tokenizer train --vocab 280 --pattern gpt4 --out tok good.txt
run 0 tokenizer train --vocab 270 --pattern gpt2 --out other-tok good.txt
run 0 data build --tokenizer tok/tokenizer.json --out data good.txt
run 0 data build --tokenizer other-tok/tokenizer.json --out other-data good.txt

# Text: missing, empty, invalid UTF-8, NUL bytes.
run 1 data build --tokenizer tok/tokenizer.json --out d1 absent.txt
says err absent.txt
: >empty.txt
run 1 data build --tokenizer tok/tokenizer.json --out d1 empty.txt
says err empty.txt
[[ ! -e d1 ]] || die "a dataset was left behind"
run 1 tokenizer train --vocab 300 --pattern gpt4 --out t1 absent.txt
says err absent.txt
{ text 500; printf 'bad \xff\xfe\xc3 bytes \0 and NUL\n'; text 500; } >odd.txt
run 0 tokenizer encode --tokenizer tok/tokenizer.json odd.txt
"$hearth" tokenizer decode --tokenizer tok/tokenizer.json <out >back.txt
cmp odd.txt back.txt || die "invalid UTF-8 or a NUL was not kept"
run 0 data build --tokenizer tok/tokenizer.json --out odd odd.txt

# Shards: truncated, another magic, tokens beyond the vocabulary.
damage() { rm -rf hurt && cp -r data hurt; }
shard=hurt/train_000000.bin
damage && truncate -s -10 $shard
run 1 train --data hurt --run-dir r1 $small
says err train_000000.bin
damage && words 1234567 | dd of=$shard conv=notrunc status=none
run 1 train --data hurt --run-dir r1 $small
says err magic
damage && for i in $(seq 400); do printf '\xff\xff'; done | dd of=$shard bs=1 seek=1024 conv=notrunc status=none
run 1 train --data hurt --run-dir r2 $small
says err 65535
says err train_000000.bin

# Bare llm.c shards work; a corpus shorter than a sequence does not.
mkdir bare short
tokens() { for i in $(seq "$1"); do printf "\\x$(printf %02x $((i % 7)))\\x00"; done; }
{ header 20240520 1 500; tokens 500; } >bare/x_train_0.bin
{ header 20240520 1 80; tokens 80; } >bare/x_val_0.bin
run 0 train --data bare --run-dir bare-run $small
{ header 20240520 1 9; tokens 9; } >short/x_train_0.bin
{ header 20240520 1 9; tokens 9; } >short/x_val_0.bin
run 1 train --data short --run-dir r3 $small
says err seq-len

# Models and batches.
run 1 train --data data --run-dir r4 $small --dim 18 --heads 6
says err odd
run 1 train --data data --run-dir r4 $small --dim 32 --heads 4 --kv-heads 3
says err "1, 2, 4"
run 1 train --data data --run-dir r4 $small --batch-tokens 70
says err 64
says err 80
run 1 train --data data --run-dir r4 $small --batch-tokens 96 --micro-batch 4
says err 128
giant="--layers 64 --dim 1024 --heads 8 --seq-len 16 --steps 4 --batch-tokens 268435456 --micro-batch 16777216"
run 1 train --data data --run-dir r4 $giant --memory 9T # some 500 TB of activations
says err "does not fit"
run 1 train --data data --run-dir r4 $giant --memory 900T
says err "free now"
[[ ! -e r4/checkpoints/step-00000004 ]] || die "a refused run trained"

run 1 train --data data --run-dir r4 $small --memory 10M
says err "does not fit in 10.00 MiB: the smallest plan takes"
says err "64.00 MiB is kept for the process"
run 1 train --data data --run-dir r4 $small --memory 1
says err "does not fit in 1 byte: the smallest plan takes"
run 2 train --data data --run-dir r4 $small --memory 12Q
says err "--memory: '12Q' is not a size in bytes such as 512M or 16G"

run 1 train --data data --run-dir r4 $small --sample-every 2 --sample-prompt "$(text 40 | tr '\n' ' ')"
says err --sample-prompt
for horizon in "--flops 1e30" "--steps 200M"; do
    # shellcheck disable=SC2086 # two words
    run 1 train --data data --run-dir r4 --layers 1 --dim 16 --heads 2 --seq-len 16 --batch-tokens 64 $horizon
done

run 2 train --data data --run-dir r4 --steps 0
says err steps
run 1 tokenizer train --pattern gpt9 --vocab 300 --out t9 good.txt
says err gpt9

# Options and YAML keys.
run 2 train --data data --run-dir r5 --micro-bach 4
says err --micro-batch
echo 'batch-token: 64' >bad.yaml
run 2 train --config bad.yaml --data data --run-dir r5
says err batch-tokens
says err bad.yaml:1

# The run directory: unwritable is found before training, and one process has it at a time.
echo occupied >file
run 1 train --data data --run-dir file/run $small
says err file
run 1 train --data data --run-dir /proc/hearth $small
says err /proc/hearth
"$hearth" train --data data --run-dir busy --layers 1 --dim 16 --heads 2 --seq-len 16 --batch-tokens 64 \
    --steps 1M 2>busy.err &
while ! grep -q '^step' busy.err; do kill -0 $! || die "the run ended"; sleep 0.02; done
run 1 train --data data --run-dir busy $small
says err $!
kill -TERM $!
wait $! || die "SIGTERM"

# A full disk: training goes on, the old checkpoint stands, the log says so.
(
    ulimit -f 24 # KiB: the log fits, a checkpoint does not
    "$hearth" train --data data --run-dir full $small --steps 6 --checkpoint-every 3 2>full.err && exit 1
    exit 0
) || die "a run whose last checkpoint failed must not succeed"
grep -q '"step": *6\|"step":6' full/log.jsonl || die "training did not go on"
grep -q 'checkpoint failed' full/log.jsonl || die "the log does not say that the checkpoint failed"
[[ -z $(ls full/checkpoints) ]] || die "half a checkpoint was left"

# Resuming with another model, tokenizer or dataset; or with nothing to resume.
run 0 train --data data --run-dir run $small
before=$(sha256sum run/checkpoints/step-00000004/model.safetensors)
run 1 train --run-dir run --resume --steps 8 --dim 32 --head-dim 16
says err "another model"
run 1 train --run-dir run --resume --steps 8 --data other-data --vocab 280
says err tokenizer
text 3000 >more.txt
run 0 data build --tokenizer tok/tokenizer.json --out more-data more.txt
run 1 train --run-dir run --resume --steps 8 --data more-data
says err dataset
run 1 train --run-dir nothing --resume
says err nothing
run 1 train --data data --run-dir run $small
says err --resume
run 1 train --data other-data --vocab 280 --run-dir r6 --init-from run/checkpoints/step-00000004 $small
says err tokenizer
[[ $before == $(sha256sum run/checkpoints/step-00000004/model.safetensors) ]] || die "the checkpoint changed"
run 1 train --run-dir run --resume --steps 8 --rope-theta 500
says err rope-theta
run 1 train --run-dir run --resume --steps 8 --window-pattern SL
says err window-pattern
run 1 train --run-dir run --resume --steps 8 --model llama-42m
says err llama-42m
run 2 train --run-dir run --resume --init-from run
says err --init-from
run 0 train --run-dir run --resume --steps 8 --quiet
[[ -d run/checkpoints/step-00000008 ]] || die "the run did not go on to the new horizon"
# A run is resumed from wherever, whatever its texts hold; and a run directory has weights to start from.
run 0 train --data data --run-dir odd-text $small --stop-after 2 --sample-prompt $'a\xc2\x85b\xe2\x80\xa8"\\\x7f'
(cd / && "$hearth" train --run-dir "$work/odd-text" --resume --quiet) || die "not resumed from another directory"
[[ -d odd-text/checkpoints/step-00000004 ]] || die "the resumed run did not go on"
run 1 train --data data --run-dir r7 $small --sample-prompt $'bad\xff'
says err UTF-8
run 0 train --data data --run-dir r7 $small --init-from run
run 1 train --data data --run-dir r9 $small --model run
says err "/run is a run: --init-from"
says err "--resume goes on with it"
run 1 plan --model run
says err "--init-from run takes"
run 0 plan --init-from run
says out "llama, 1 layers x 16"
run 1 plan --model data
says err "--model data is no model (it has no config.json): give a preset"
run 1 plan --init-from nowhere
says err "nowhere is no checkpoint"
printf 'json: true\nquiet: True\nsteps: 3\n' >global.yaml
run 0 train --config global.yaml --data data --run-dir r8 --layers 1 --dim 16 --heads 2 --seq-len 16 --batch-tokens 64
says out '"steps":3'

# A run that diverges keeps its good checkpoints.
run 1 train --data data --run-dir wild $small --steps 60 --warmup 20 --lr 1e30 --checkpoint-every 1 --keep 2
says err diverged
last=$(ls wild/checkpoints | tail -n 1)
bad=$(grep -m 1 '"event":"skip"' wild/log.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')
((10#${last#step-} < bad)) || die "checkpoint $last was written while the gradient was not finite"

run 0 plan --config run/config.yaml
says out parameters
