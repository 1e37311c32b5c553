#!/usr/bin/env bash
# `make godot`: the example for Godot 4. The library's own builds never see the crate `godot`.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=$PWD/target/godot
manifest=(--locked --manifest-path examples/godot/Cargo.toml)
# The tests run without a network.
cargo fetch "${manifest[@]}" --target "$(rustc -vV | sed -n 's/^host: //p')"
cargo fmt --manifest-path examples/godot/Cargo.toml --check
cargo clippy "${manifest[@]}" --all-targets -- -D warnings
cargo build "${manifest[@]}" --release
scripts/isolated.py cargo test "${manifest[@]}"
