#!/usr/bin/env bash
# `make valgrind`: a C host that closes rooms with events in flight, and calls every function from inside callbacks,
# under valgrind. Errors and lost memory are fatal, except for the list in tests/valgrind.supp.
set -euo pipefail
cd "$(dirname "$0")/.."

# Hardly optimized: a good optimizer reads a value before it checks whether there is one. That is correct (the value
# does not count then), but valgrind reports it as a fault.
CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=line-tables-only cargo build --lib --target-dir target/valgrind
library=$PWD/target/valgrind/debug/libmeta_mystia_network.so
programs=target/valgrind
mkdir -p "$programs"
gcc -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread -Iinclude bindings/c/tests/survive.c -o "$programs/survive" -ldl

# The other processes of the room run without it.
MMN_LIBRARY=$library scripts/isolated.py valgrind -q --error-exitcode=9 --num-callers=40 --suppressions=tests/valgrind.supp \
    --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
    "$programs/survive" --rounds 20 shutdown reentry
echo "make valgrind: nothing was found"
