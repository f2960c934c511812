#!/bin/bash
# Unpacks the arm64 libraries of this Debian release into a directory, for the cross build and for
# qemu. apt works on state of its own there, so the system's packages and lists are left alone.
# Usage: aarch64-sysroot.sh DIR
set -euo pipefail
packages="libc6-dev libpcre2-dev libjansson-dev libyaml-dev libssl-dev zlib1g-dev
    libzstd-dev liblz4-dev libsnappy-dev liblzma-dev libcmocka-dev libgomp1"

sysroot=$1
[[ -e $sysroot/.complete && $(<"$sysroot/.complete") == "$packages" ]] && exit 0
rm -rf "$sysroot"
apt=$sysroot/.apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
apt=$(realpath "$apt")
: >"$apt/status"

apt_arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" -o Debug::NoLocking=1 "$@"
}
apt_arm64 update
# shellcheck disable=SC2086 # a list of words
apt_arm64 -y --no-install-recommends --download-only install $packages >/dev/null
for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
rm -rf "$apt"
echo "$packages" >"$sysroot/.complete"
