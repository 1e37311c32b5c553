#!/usr/bin/env bash
# `make test`: first everything that may run side by side, then, one at a time, what starts processes that
# load the built library (on two cores, elections of one test would starve those of another).
set -euo pipefail
cd "$(dirname "$0")/.."

# Most of what follows runs without a network.
cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')"
cargo build --release

if cargo nextest --version >/dev/null 2>&1; then
    run() { scripts/isolated.py cargo nextest run --no-fail-fast "$@"; }
    one_at_a_time="--test-threads=1"
else
    run() { scripts/isolated.py cargo test --no-fail-fast "$@"; }
    one_at_a_time="-- --test-threads=1"
fi

failed=0
# With the etcd strategy in all that is not optimized, so that it is built once; without it in the library that hosts load.
run --features etcd --lib --test etcd --test e2e --test reopen --test lifecycle --test events --test header --test abi_exports \
    --test ffi_before_init --test ffi_options --test ffi_peers --test wiped --test gossip_example --test room_example --example simulate || failed=1
# Optimized: it is arithmetic over many seeds. The core alone has tests of each guard's switch, too.
run --release -p room_simulator -p room_core || failed=1
# shellcheck disable=SC2086 # two words
run --features etcd --test hosts $one_at_a_time || failed=1
exit "$failed"
