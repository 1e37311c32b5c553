#!/usr/bin/env bash
# `make figures`: what the library reaches on this machine, through the C ABI. Medians of fresh processes;
# round trips beside those of a plain UDP socket in the same run.
set -euo pipefail
cd "$(dirname "$0")/.."

library=target/release/libmeta_mystia_network.so
programs=target/figures
mkdir -p "$programs"
gcc -O2 -std=gnu11 -Wall -Wextra -o "$programs/abi_bench" benches/abi_bench.c -ldl -lpthread
gcc -O2 -std=gnu11 -Wall -Wextra -o "$programs/udp_rtt" benches/udp_rtt.c

bench() {
    echo
    scripts/isolated.py "$programs/abi_bench" "$library" "$@" 2>/dev/null
}

bench failover 3 10 --quiet 10
bench failover 5 10 --quiet 10
bench failover 3 10 --graceful --quiet 10
bench failover 3 10 --tight --quiet 10
bench elect 5 5 --star --quiet 10
bench tput 256 200000 --quiet 10
bench fanout 4 256 20000 --quiet 10
bench fanout 16 256 20000 --quiet 10

plain=$(scripts/isolated.py "$programs/udp_rtt" 32 20000 2>/dev/null)
bench rtt 32 20000 --quiet 10 | tee "$programs/rtt.txt"
ours=$(awk '$1 == "p50_us" { print $2 }' "$programs/rtt.txt")
awk -v ours="$ours" -v plain="$plain" 'BEGIN {
    printf "round trip of 32 bytes: %.1f us; plain UDP: %.1f us; ratio %.1f\n", ours, plain, ours / plain
}'

echo
scripts/isolated.py python3 tests/hosts/member/sixteen.py build 60 2>/dev/null

bench idle 8 20
bench ffi 1000000

# Outcomes that take too long for `make test`: 50 concurrent SetLeader calls, on time to the millisecond; 30 s of sleep.
export MMN_LIBRARY=$library
echo
scripts/isolated.py python3 tests/hosts/promises.py concurrent_set_leaders_agree rounds=50 slack_ms=0
scripts/isolated.py python3 tests/hosts/life.py a_paused_process_is_back_by_itself seconds=30
