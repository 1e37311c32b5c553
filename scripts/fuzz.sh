#!/usr/bin/env bash
# `make fuzz`: each target of fuzz/ for FUZZ_SECONDS (30), or the targets in FUZZ_TARGETS, under AddressSanitizer.
# Begins with the inputs of fuzz/corpus/, and keeps new ones in target/fuzz/corpus/. An input that breaks a target is in
# fuzz/artifacts/. Move it to fuzz/corpus/, where `make test` runs it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.13.2
if ! cargo fuzz --version >/dev/null 2>&1; then
    if [ ! -x target/tools/bin/cargo-fuzz ]; then
        echo "installing: cargo-fuzz $version, in target/tools"
        cargo install --quiet --locked --root target/tools cargo-fuzz --version "$version" || {
            echo "missing: cargo-fuzz; install it: cargo install --locked cargo-fuzz --version $version" >&2
            exit 1
        }
    fi
    PATH=$PWD/target/tools/bin:$PATH
fi

# The sanitizer's flags are unstable, but the stable compiler supports them.
export RUSTC_BOOTSTRAP=1
seconds=${FUZZ_SECONDS:-30}
targets=${FUZZ_TARGETS:-$(cargo fuzz list)}
folder=$PWD/target/fuzz
export CARGO_TARGET_DIR=$folder/build
failed=0
cargo fuzz build
for target in $targets; do
    mkdir -p "$folder/corpus/$target"
    # Memory that a room keeps for the process is no leak: `make asan` searches for leaks.
    options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -detect_leaks=0 -print_final_stats=1)
    [ "$target" != node ] || options+=(-max_len=4096)
    [ "$target" != abi ] || options+=(-max_len=2048)
    echo "$target: $seconds s"
    if scripts/isolated.py cargo fuzz run "$target" "$folder/corpus/$target" "fuzz/corpus/$target" -- "${options[@]}" \
        >"$folder/$target.log" 2>&1; then
        grep -E "number_of_executed_units|peak_rss_mb" "$folder/$target.log" | sed 's/^stat::/  /'
    else
        tail -60 "$folder/$target.log" >&2
        failed=1
    fi
done
[ "$failed" = 0 ] && echo "make fuzz: nothing was found"
exit "$failed"
