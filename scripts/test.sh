#!/usr/bin/env bash
# `make test`: first the tests in one process, then processes that load the built library.
set -euo pipefail
cd "$(dirname "$0")/.."

# Most of the following commands run without a network.
cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')"
cargo build --release
cargo build --release -p mmn_relay

failed=0
reports=()
report=target/nextest/default/junit.xml
if cargo nextest --version >/dev/null 2>&1; then
    run() {
        rm -f "$report"
        scripts/isolated.py cargo nextest run --no-fail-fast "$@" || failed=1
        if [ -f "$report" ]; then
            reports+=("target/nextest/report-${#reports[@]}.xml")
            cp "$report" "${reports[-1]}"
        fi
    }
    threads="--test-threads="
    skip="-- --skip"
else
    run() { scripts/isolated.py cargo test --no-fail-fast "$@" || failed=1; }
    threads="-- --test-threads="
    skip="--skip"
fi
# With the etcd strategy in all unoptimized builds, so that they are built once; without it in the library that hosts
# load. Rooms over loopback mostly wait.
# shellcheck disable=SC2086 # two words
run --package meta_mystia_network --package room_transport --package mmn_relay \
    --features meta_mystia_network/etcd,meta_mystia_network/hosts --lib --bins --test relay --test etcd --test e2e --test rooms --test reopen --test lifecycle --test events --test header --test abi_exports --test ships \
    --test one_responder --test ffi_before_init --test ffi_options --test ffi_peers --test wiped --test gossip_example --test room_example --example simulate \
    $threads$(($(nproc) * 2))
# Optimized, because these are computations over many seeds. Only the core has tests of each guard's switch, too.
run --release -p room_simulator -p room_core -p state_simulator -p room_state
# Most of these wait, each in a network of its own. Without root they share one, where their rooms would meet.
if unshare --net true 2>/dev/null; then
    at_a_time=$(($(nproc) * 3 / 2))
else
    at_a_time=1
fi
# Rooms across NATs need root and nftables in namespaces, which some containers do not have.
without=
if ! tests/lab/nat.py --check; then
    echo "make test: leaves out the tests of hosts::behind_nats and hosts::over_a_relay, which this machine cannot run" >&2
    without="$skip behind_nats --skip over_a_relay"
fi
# shellcheck disable=SC2086 # several words
run --features etcd,hosts --test hosts $threads$at_a_time $without
[ ${#reports[@]} -eq 0 ] || scripts/slowest.py "${reports[@]}"
exit "$failed"
