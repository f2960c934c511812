#!/bin/bash
# The command line itself: help, exit statuses, and suggestions for what is misspelt.
source "$(dirname "$0")/lib.sh" "$1"

run 2
says err "Usage: hearth VERB"
for word in --help -h help; do
    run 0 $word
    says out "Usage: hearth VERB"
done
run 2 trian
says err "did you mean 'train'?"

# Every verb explains itself on stdout, and refuses an option it does not know, naming the way to help.
for verb in demo "tokenizer train" "tokenizer encode" "tokenizer decode" "tokenizer eval" \
    "data build" "data inspect" train eval generate plan doctor; do
    read -r -a words <<<"$verb"
    run 0 "${words[@]}" --help
    says out "Usage: hearth $verb"
    [[ ! -s $work/err ]] || die "hearth $verb --help writes to stderr"
    run 2 "${words[@]}" --no-such-option
    says err "unknown option --no-such-option"
    says err "Try 'hearth $verb --help'."
done

run 2 train --model-size 3
says err "unknown option --model-size"
run 2 train --stesp 10
says err "did you mean --steps?"
run 2 train -steps 10
says err "unknown option -steps"
run 2 train --steps
says err "--steps needs a value"
run 2 train --steps ten
says err "ten"
run 2 train --steps -5
says err "--steps"
run 2 train --precision bf61
says err "choose from"

# A YAML file takes the same options; a mistake in it is named by file and line.
yaml() {
    printf '%b' "$1" >"$work/config.yaml"
}
yaml 'steps: 10\nlerning-rate: 0.1\n'
run 2 train --config "$work/config.yaml"
says err "config.yaml:2"
says err "lerning-rate"
yaml 'stesp: 10\n'
run 2 train --config "$work/config.yaml"
says err "did you mean steps?"
yaml 'steps: [10, 20]\n'
run 2 train --config "$work/config.yaml"
says err "config.yaml:1"
yaml 'steps: {a: 1}\n'
run 2 train --config "$work/config.yaml"
yaml 'steps: "10\n'
run 2 train --config "$work/config.yaml"
says err "config.yaml"
yaml 'precision: fp23\n'
run 2 train --config "$work/config.yaml"
says err "choose from"
for twice in 'steps: 10\nlr: 0.1\nsteps: 20\n' 'steps: 10\n\nsteps:\n' 'batch-tokens: 64\n#\nbatch_tokens: 64\n' \
    'quiet: true\nlr: 1\nquiet: true\n'; do
    yaml "$twice"
    run 2 train --config "$work/config.yaml"
    says err "config.yaml:3: "
    says err "was given in line 1 already"
done
yaml 'steps: 3\n---\nseed\n---\n7\n'
run 2 train --config "$work/config.yaml"
says err "config.yaml:2: "
for name in config help; do
    yaml "steps: 3\n$name: foo.yaml\n"
    run 2 train --config "$work/config.yaml"
    says err "config.yaml:2: $name "
    says err "command line"
done
run 2 train --config "$work/absent.yaml"
says err "cannot open"
says err "absent.yaml"
