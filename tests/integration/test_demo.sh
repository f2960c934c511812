#!/bin/bash
# The demo as a whole on a text of our own, as small as it gets.
source "$(dirname "$0")/lib.sh" "$1"
cd "$work"

for ((i = 1; i <= 1500; i++)); do
    echo "Line $i says that $((i * 7 % 1000)) sheep and $((i * i % 97)) dogs went over the hill."
done >text.txt

run 0 demo --text text.txt --seconds 1 --json
line=$(tail -n 1 out)
pattern='^\{"val_bpb": ([0-9.]+), "gzip_bpb": ([0-9.]+), "xz_bpb": ([0-9.]+), "tokens_per_s": [0-9.]+, "seconds": [0-9.]+\}$'
[[ $line =~ $pattern ]] || die "the last line is not the result: $line"
awk -v model="${BASH_REMATCH[1]}" -v gzip="${BASH_REMATCH[2]}" -v xz="${BASH_REMATCH[3]}" \
    'BEGIN { exit !(model > 0 && model < 8 && gzip > 0.5 && gzip < 3 && xz > 0.5 && xz < 3) }' ||
    die "not possible: $line"
says err '$ hearth tokenizer train --vocab'
says err '$ hearth train --data runs/demo/data'
[[ -e runs/demo/log.jsonl && -d runs/demo/checkpoints ]] || die "runs/demo is not a run"

# It overwrites nothing, and names what it cannot use.
run 1 demo --text text.txt --run-dir runs/demo
says err "runs/demo is there already"
run 1 demo --text absent.txt
says err "absent.txt"
run 2 demo text.txt
says err "--text"
