#!/usr/bin/env bash
# `make deny`: the requirements of deny.toml on the dependencies. The check for known faults needs a copy of the RustSec
# database, which cargo-deny gets from github.com. Without one, the script checks the rest, reports that and exits with
# code 3.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
if ! cargo deny --version >/dev/null 2>&1; then
    if [ ! -x target/tools/bin/cargo-deny ]; then
        echo "installing: cargo-deny $version, in target/tools (minutes)"
        cargo install --quiet --locked --root target/tools cargo-deny --version "$version" || {
            echo "missing: cargo-deny; install it: cargo install --locked cargo-deny --version $version" >&2
            exit 1
        }
    fi
    PATH=$PWD/target/tools/bin:$PATH
fi

failed=0
for manifest in Cargo.toml fuzz/Cargo.toml examples/godot/Cargo.toml; do
    echo "$manifest"
    cargo deny --manifest-path "$manifest" --config "$PWD/deny.toml" --log-level error check licenses bans sources || failed=1
done
[ "$failed" = 0 ] || exit 1
if ! cargo deny --log-level error fetch db >/dev/null 2>&1; then
    echo "NOT CHECKED: the known faults; the RustSec database cannot be reached" >&2
    exit 3
fi
cargo deny --log-level error check advisories
