#!/usr/bin/env bash
# `make relay-soak`: hostile members at mmn-relay for RELAY_SOAK_SECONDS (600), then for a fifth of that at one under
# AddressSanitizer, whose errors and leaks are fatal. Its memory may not grow, and a room in play may not notice.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${RELAY_SOAK_SECONDS:-600}
export MALLOC_ARENA_MAX=1
soak() {
    scripts/isolated.py cargo test --release -p mmn_relay --test relay "$@" soak:: -- --ignored --nocapture
}
RELAY_SOAK_SECONDS=$seconds soak

# As in scripts/asan.sh; the program and its members are instrumented.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cforce-frame-pointers=yes"
export CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
# The sanitizer keeps freed memory for a while, to find uses of it: less of it, so that growth shows.
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:quarantine_size_mb=16
RELAY_SOAK_SECONDS=$((seconds / 5 > 30 ? seconds / 5 : 30)) soak --target "$host" --target-dir target/asan
echo "make relay-soak: nothing was found"
