#!/usr/bin/env bash
# `make check`: a first answer in two minutes once everything is built, six from nothing. Installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

# The tests run without a network, and cargo-nextest reads even dependencies that no build here needs.
cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')"

cargo fmt --all --check
scripts/import_circles.py
scripts/words.py
scripts/documents.py
cargo clippy --workspace --all-targets --features hosts -- -D warnings

# The unit tests of the core and the library, a few rooms over loopback, and one host in C.
MMN_LIBRARY=$PWD/target/quick/libmeta_mystia_network.so
export MMN_LIBRARY
cargo build --profile quick
# Without the peers that break the rules, and without slow tests: `make test` has both.
filter='package(room_core) and not test(chaos::) or package(room_state) or package(room_transport) or package(mmn_relay) and not test(limits::)
    or kind(lib) and package(meta_mystia_network) and not test(hostile::)
    or binary(e2e) and test(/^(membership|messages|leadership)::/) or test(=old_host::an_old_host_runs_with_this_library)'
if cargo nextest --version >/dev/null 2>&1; then
    scripts/isolated.py cargo nextest run --cargo-profile quick --no-fail-fast --package room_core --package room_state --package room_transport \
        --package mmn_relay --package meta_mystia_network \
        --features meta_mystia_network/hosts --lib --bins --test relay --test e2e --test hosts --filterset "$filter"
else
    scripts/isolated.py cargo test --profile quick --package room_core --package room_state --package room_transport --package meta_mystia_network --lib -- --skip hostile:: --skip chaos::
    scripts/isolated.py cargo test --profile quick --package mmn_relay -- --skip limits::
    scripts/isolated.py cargo test --profile quick --test e2e -- membership:: messages:: leadership::
    scripts/isolated.py cargo test --profile quick --features hosts --test hosts an_old_host_runs
fi

# Further targets for a change of these files.
changed() { { git diff --name-only HEAD && git diff --name-only HEAD~ HEAD; } 2>/dev/null | grep -Eq "$1"; }
asks() { changed "$1" && echo "changed: $2; before it is merged: $3" || true; }
asks '^crates/core/' 'the core' 'make sim, make mutants'
asks '^(tests/(sim|state)|crates/state)/' 'the simulator' 'make sim'
asks '^(src/(net|room|dispatch)|crates/transport)/' 'the network' 'make fuzz, make lab, make soak'
asks '^src/(ffi|runtime|fork)|^include/' 'the ABI' 'make asan, make valgrind, make soak'
asks '^crates/(relay|transport)/' 'the relay' 'make relay-load, make relay-soak'
asks '^src/etcd/|^tests/etcd/' 'etcd' 'make test-all'
asks '^bindings/|^packaging/|^examples/' 'bindings and packages' 'make dist test-dist, make test-windows'
echo "next: make test"
