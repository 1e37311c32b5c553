#!/usr/bin/env bash
# `make soak`: shutdowns in flight (SOAK_ROUNDS, 1,000), then a member through SOAK_SECONDS (900) of joins, leaves,
# crashes, restarts under one id and pauses. Prints the growth.
set -euo pipefail
cd "$(dirname "$0")/.."

export MMN_LIBRARY=${MMN_LIBRARY:-$PWD/target/release/libmeta_mystia_network.so}
export MALLOC_ARENA_MAX=1
programs=target/soak
mkdir -p "$programs"
gcc -std=gnu11 -O2 -g -Wall -Wextra -Werror -pthread -Iinclude bindings/c/tests/survive.c -o "$programs/survive" -ldl
scripts/isolated.py "$programs/survive" --rounds "${SOAK_ROUNDS:-1000}" shutdown
scripts/isolated.py python3 tests/hosts/member/soak.py
