#!/usr/bin/env bash
# `make figures`: what the library reaches on this machine, through the C ABI. Medians of fresh processes.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p target/figures
gcc -O2 -std=gnu11 -Wall -Wextra -o target/figures/abi_bench benches/abi_bench.c -ldl -lpthread
library=target/release/libmeta_mystia_network.so

bench() {
    echo
    scripts/isolated.py target/figures/abi_bench "$library" "$@" 2>/dev/null
}

bench failover 3 10 --quiet 10
bench failover 5 10 --quiet 10
bench failover 3 10 --graceful --quiet 10
bench failover 3 10 --tight --quiet 10
bench elect 5 5 --star --quiet 10
bench tput 256 200000 --quiet 10
bench fanout 4 256 20000 --quiet 10
bench fanout 16 256 20000 --quiet 10
bench rtt 32 20000 --quiet 10
bench idle 8 20
bench ffi 1000000
