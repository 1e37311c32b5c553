#!/usr/bin/env bash
# `make test`: the simulators, which only compute, run beside the rooms and the hosts, which mostly wait.
set -euo pipefail
cd "$(dirname "$0")/.."

# With the etcd strategy in all unoptimized builds, so that they are built once; without it in the library that hosts load.
rooms=(
    --package meta_mystia_network --package room_transport --package mmn_relay
    --features "meta_mystia_network/etcd,meta_mystia_network/hosts" --tests
)
# Optimized, because these are computations over many seeds. Only the core has tests of each guard's switch, too.
simulators=(--release --lib -p room_simulator -p room_core -p state_simulator -p room_state)
leave_out=()
# The relay that its own tests start: an optimized one would be another build of all that it depends on.
export MMN_RELAY=$PWD/target/debug/mmn-relay
# Rooms across NATs need root and nftables in namespaces, which some containers do not have.
if ! tests/lab/nat.py --check; then
    echo "make test: leaves out the tests of hosts::behind_nats, hosts::over_a_relay, hosts::port_mapping, hosts::over_turn and one of hosts::overlay, which this machine cannot run" >&2
    leave_out=(--skip behind_nats --skip over_a_relay --skip port_mapping:: --skip over_turn:: --skip an_overlay_names_the_member_that_carries_a_link)
fi

# Most of the following commands run without a network.
cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')"
if ! cargo nextest --version >/dev/null 2>&1; then
    failed=0
    cargo build --release
    scripts/isolated.py cargo test --no-fail-fast "${simulators[@]}" || failed=1
    # One at a time: in one network, the rooms of two tests could meet.
    scripts/isolated.py cargo test --no-fail-fast "${rooms[@]}" -- --test-threads=1 "${leave_out[@]}" || failed=1
    exit "$failed"
fi

# CI builds once, and needs nothing that makes the next build faster.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
mkdir -p target
# Unoptimized beside optimized: each of these builds ends with minutes on one core.
builds=target/builds.log
cargo nextest run --no-run "${rooms[@]}" >"$builds" 2>&1 &
building=$!
trap 'kill "$building" 2>/dev/null || true' EXIT
cargo build --release
# Built and run in the time that the others leave.
log=target/simulators.log
nice -n 19 cargo nextest run --profile simulators --no-fail-fast "${simulators[@]}" >"$log" 2>&1 &
simulating=$!
trap 'kill "$building" "$simulating" 2>/dev/null || true' EXIT
echo "make test: the simulators run beside the other tests; their output comes at the end, and is in $log meanwhile"
wait "$building" || { cat "$builds" >&2; exit 1; }

failed=0
profile=default
unshare --net true 2>/dev/null || profile=one-network
scripts/isolated.py cargo nextest run --profile "$profile" --no-fail-fast --test-threads=$(($(nproc) * 5)) \
    "${rooms[@]}" -- "${leave_out[@]}" || failed=1
wait "$simulating" || failed=1
cat "$log"
scripts/slowest.py target/nextest/{"$profile",simulators}/junit.xml
exit "$failed"
