#!/bin/sh
# Installs what the demo and the tests need beside Rust (as root, with apt), or names what is missing and how to install
# it. Says nothing and takes milliseconds when nothing is missing.
set -eu

missing=""  # the tools, for people
packages="" # the Debian packages that bring them

lacks() {
    missing="$missing $1"
    packages="$packages $2"
}

has() {
    command -v "$1" >/dev/null 2>&1
}

look() {
    missing="" packages=""
    if ! has gcc; then
        lacks gcc "gcc libc6-dev"
    elif ! echo '#include <stdio.h>' | gcc -E -x c - >/dev/null 2>&1; then
        # Debian's gcc only recommends the C headers.
        lacks "C-headers" "libc6-dev"
    fi
    has g++ || lacks g++ "g++"
    # mono-mcs brings the assemblies that the C# programs reference: mscorlib, System, System.Core.
    has mcs || lacks mcs "mono-mcs"
    has mono || lacks mono "mono-runtime"
    has python3 || lacks python3 "python3"
    # The discovery tests lay a cable between two network namespaces.
    has ip || [ "$(uname)" != Linux ] || lacks ip "iproute2"
}

look
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && has apt-get; then
    echo "installing:$packages"
    export DEBIAN_FRONTEND=noninteractive
    # Quiet when it works; apt's own words when it does not.
    log=$(mktemp)
    # shellcheck disable=SC2086 # the packages are a list
    if ! { apt-get update && apt-get install -y --no-install-recommends $packages; } >"$log" 2>&1; then
        cat "$log" >&2
    fi
    rm -f "$log"
    look
fi

if ! has cargo; then
    echo "missing: cargo (Rust 1.88 or newer); see https://rustup.rs" >&2
    failed=1
fi
for tool in $missing; do
    case $tool in
        gcc) line="gcc libc6-dev" ;;
        C-headers) line="libc6-dev" ;;
        g++) line="g++" ;;
        mcs) line="mono-mcs" ;;
        mono) line="mono-runtime" ;;
        ip) line="iproute2" ;;
        *) line=$tool ;;
    esac
    echo "missing: $tool; install it: sudo apt-get install -y --no-install-recommends $line" >&2
    failed=1
done
[ -z "${failed:-}" ]
