# What the integration tests share. A test is `test_NAME.sh HEARTH`; it sources this file, which sets
#   hearth   the built program          work   a fresh directory, removed at the end
# and runs with -eu, so a command that fails ends the test. `skip WHY` ends it as skipped.
# shellcheck shell=bash
set -euo pipefail
hearth=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/hearth-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2034 # for the tests
shared=${HEARTH_SHARED_DATA:-$(dirname "${BASH_SOURCE[0]}")/../../../shared/data}

skip() {
    echo "skipped: $*"
    exit 77
}

die() {
    echo "FAILED: $*" >&2
    exit 1
}

# run STATUS ARGUMENTS...: runs hearth, which must end with STATUS; what it prints is left in
# $work/out and $work/err.
run() {
    local expected=$1 status=0
    shift
    "$hearth" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    ((status == expected)) && return
    sed 's/^/  stderr: /' "$work/err" >&2
    die "hearth $* ended with $status, not $expected"
}

# says FILE TEXT: the file ($work/out or $work/err) must contain the text.
says() {
    grep -q -F -e "$2" "$work/$1" && return
    sed "s/^/  $1: /" "$work/$1" >&2
    die "std$1 lacks: $2"
}
