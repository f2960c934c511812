#!/bin/bash
# Installs from Debian what is missing, and nothing else. Usage: install-dependencies.sh GROUP...
# When everything is there it only asks dpkg, in a few milliseconds.
set -euo pipefail

declare -A groups=(
    [build]="gcc libc6-dev cmake ninja-build pkg-config libpcre2-dev libjansson-dev
        libyaml-dev libssl-dev zlib1g-dev libzstd-dev liblz4-dev libsnappy-dev liblzma-dev
        libcmocka-dev"
    [demo]="bible-kjv"
    [test]="bible-kjv clang-14 libomp-14-dev gcc-aarch64-linux-gnu qemu-user g++ libclang-rt-14-dev"
    [fuzz]="clang-14 libomp-14-dev libclang-rt-14-dev llvm-14"
    [bench]="g++ libdnnl-dev python3 python3-venv"
    [lint]="clang-format-14 shellcheck"
)

wanted=()
for group in "$@"; do
    [[ ${groups[$group]:-} ]] || { echo "$0: no group '$group'; there are: ${!groups[*]}" >&2; exit 2; }
    read -r -d '' -a names <<<"${groups[$group]}" || true
    wanted+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian: please see to it that the likes of these are installed: ${wanted[*]}" >&2
    exit 0
fi

status=$(dpkg-query -W -f '${db:Status-Status}:${Package}\n' "${wanted[@]}" 2>/dev/null) || true
installed=" $(sed -n 's/^installed://p' <<<"$status" | tr '\n' ' ') "
missing=()
for name in "${wanted[@]}"; do
    [[ $installed == *" $name "* || " ${missing[*]-} " == *" $name "* ]] || missing+=("$name")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
    command -v sudo >/dev/null || {
        echo "hearth needs these Debian packages. As root: apt-get install ${missing[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "Installing from Debian: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install "${missing[@]}" \
    >/dev/null
