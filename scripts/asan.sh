#!/usr/bin/env bash
# `make asan`: the library built with AddressSanitizer, under a host that makes random calls (chaos.c) and a host that
# does everything that hosts may do (survive.c). Errors and leaks are fatal. First it proves that the sanitizer reports
# faults.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
folder=target/asan
programs=$folder/hosts
library=$PWD/$folder/$host/release/libmeta_mystia_network.so
reports=$PWD/$folder/reports
mkdir -p "$programs"

# The flag is unstable, but the stable compiler has the support for it; the runtime is gcc's. With --target, build
# scripts and macros are not instrumented.
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cforce-frame-pointers=yes" \
    CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only \
    cargo build --release --lib --target "$host" --target-dir "$folder"

compile() {
    gcc -std=gnu11 -O1 -g -fno-omit-frame-pointer -fsanitize=address -Wall -Wextra -Werror -pthread -Iinclude \
        "$1" -o "$programs/$2" -ldl
}
compile tests/hosts/sanitizer/fault.c fault
compile tests/hosts/chaos/chaos.c chaos
compile bindings/c/tests/survive.c survive

export MMN_LIBRARY=$library
# Reports go to files: hosts may have closed standard error, and the partners' reports count, too.
options=detect_stack_use_after_return=1:log_path=$reports/report
export ASAN_OPTIONS=detect_leaks=1:$options
export MALLOC_ARENA_MAX=1

# proves WORD ARGUMENT...: `fault ARGUMENT...` must fail, and the report contain WORD
proves() {
    local word=$1
    shift
    rm -rf "$reports" && mkdir -p "$reports"
    if "$programs/fault" "$@" || ! grep -q "$word" "$reports"/*; then
        echo "FAILED: AddressSanitizer does not report a deliberate fault (fault $*: no $word)" >&2
        cat "$reports"/* >&2 2>/dev/null || true
        exit 1
    fi
}
proves "heap-buffer-overflow" library
# The report must come from the library's own code: without instrumentation an interceptor would find the fault, or
# nothing would.
if ! grep -q "in InitializeNetworkWithConfig" "$reports"/* || grep -A1 "^READ of size" "$reports"/* | grep -q "__interceptor_"; then
    echo "FAILED: the library is not instrumented" >&2
    cat "$reports"/* >&2
    exit 1
fi
proves "LeakSanitizer: detected memory leaks" leak
echo "AddressSanitizer and LeakSanitizer report deliberate faults"
rm -rf "$reports" && mkdir -p "$reports"

failed=0
run() {
    echo "$*"
    scripts/isolated.py "$@" || failed=1
}
run "$programs/survive" --rounds 30 unregister shutdown restart reentry
run "$programs/chaos"
# Without the search for leaks: the static variables of an unloaded library are gone, and with them the pointers to
# their memory (the nodes that arc-swap keeps for reuse, 128 bytes for each thread of the peak). survive.c measures that
# growth.
ASAN_OPTIONS=detect_leaks=0:$options run "$programs/survive" reload
if [ -n "$(ls "$reports")" ]; then
    cat "$reports"/*
    failed=1
fi
[ "$failed" = 0 ] && echo "make asan: nothing was found"
exit "$failed"
