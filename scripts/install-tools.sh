#!/bin/sh
# Installs what the demo and the tests need beside Rust (as root, with apt), or names what is missing and how to install
# it. Says nothing and takes milliseconds when nothing is missing. Arguments name further tools: coreclr,
# chromium, valgrind, protoc, etcd, etcdctl, openssl, cmake, pkg-config, mingw,
# python-packages. After `--only`, they are all that is looked for.
set -eu
cd "$(dirname "$0")/.."

missing=""  # the tools, for people
packages="" # the Debian packages that bring them
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

# What the demo and every test of hosts needs.
look_for_hosts() {
    if ! has gcc; then
        lacks gcc "gcc libc6-dev"
    elif ! echo '#include <stdio.h>' | gcc -E -x c - >/dev/null 2>&1; then
        # Debian's gcc only recommends the C headers.
        lacks "C-headers" "libc6-dev"
    fi
    has g++ || lacks g++ "g++"
    # mono-mcs brings the assemblies that the C# programs reference: mscorlib, System, System.Core.
    has mcs || lacks mcs "mono-mcs"
    has mono || lacks mono "mono-runtime"
    has python3 || lacks python3 "python3"
    # Hosts with a network each, and slow lines.
    has ip && has tc || lacks ip "iproute2"
}

# The variants with POSIX threads: the C++ header needs std::mutex.
mingw="gcc-mingw-w64-x86-64-posix g++-mingw-w64-x86-64-posix"

look() {
    missing="" packages=""
    [ -n "$only" ] || look_for_hosts
    for tool in $more; do
        case $tool in
            # Whichever is there draws the page; the one that is installed needs no display.
            chromium) has chromium || has chromium-headless-shell || has google-chrome || lacks chromium chromium-headless-shell ;;
            protoc) has_protoc || lacks protoc "protobuf-compiler libprotobuf-dev" ;;
            etcd) has etcd || lacks etcd etcd-server ;;
            etcdctl) has etcdctl || lacks etcdctl etcd-client ;;
            mingw) has x86_64-w64-mingw32-gcc-posix && has x86_64-w64-mingw32-g++-posix || lacks mingw "$mingw" ;;
            python-packages) has_python_packages || has_venv || lacks venv "python3-venv" ;;
            coreclr) has_coreclr || has_pip || lacks pip "python3-pip" ;;
            *) has "$tool" || lacks "$tool" "$tool" ;;
        esac
    done
}

# .NET Core 3.1's runtime, which a package of Python carries: one file to download, nothing to install. The program that it
# brings to get system libraries is never called.
coreclr=target/tools/dotnetcore2
coreclr_version=3.1.23
coreclr_sha256=5f076ddc39da0c685e7de20ecb91ee81185928918ec86fbeb3bffc55dd867ab5

has_coreclr() {
    [ -x "$coreclr/bin/dotnet" ]
}

# The compiler of etcd-client's messages. Debian's comes without the files that they import.
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

# What builds wheels and checks types, in an environment of its own.
python_packages=target/tools/python
python_versions="hatchling==1.33.0 mypy==2.4.1"

has_python_packages() {
    [ "$(cat "$python_packages/versions" 2>/dev/null)" = "$python_versions" ]
}

has_venv() {
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1
}

wants_python_packages() {
    case " $more " in *" python-packages "*) ! has_python_packages ;; *) false ;; esac
}

get_python_packages() {
    log=$(mktemp)
    rm -rf "$python_packages"
    # The file is written at the end, so that nothing half done is ever taken for the whole. A package that is not pure Python is
    # taken as it is built for this machine, or not at all.
    # shellcheck disable=SC2086 # the versions are a list
    if python3 -m venv "$python_packages" >"$log" 2>&1 &&
        "$python_packages/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: $python_versions >>"$log" 2>&1; then
        echo "$python_versions" >"$python_packages/versions"
        echo "installed: $python_versions, in $python_packages"
    else
        cat "$log" >&2
    fi
    rm -f "$log"
}

wants_coreclr() {
    case " $more " in *" coreclr "*) ! has_coreclr ;; *) false ;; esac
}

get_coreclr() {
    folder=$(mktemp -d)
    mkdir -p target/tools
    # Moved to its place at the end, so that nothing half done is ever taken for it.
    if python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux1_x86_64 \
        -d "$folder" "dotnetcore2==$coreclr_version" >"$folder/log" 2>&1 &&
        echo "$coreclr_sha256  $(echo "$folder"/*.whl)" | sha256sum -c --quiet >>"$folder/log" 2>&1 &&
        python3 -m zipfile -e "$folder"/*.whl "$folder/files" &&
        chmod +x "$folder/files/dotnetcore2/bin/dotnet" &&
        rm -rf "$coreclr" && mv "$folder/files/dotnetcore2" "$coreclr"; then
        echo "installed: .NET Core $coreclr_version, in $coreclr"
    else
        cat "$folder/log" >&2
    fi
    rm -rf "$folder"
}


look
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && has apt-get; then
    echo "installing:$packages"
    export DEBIAN_FRONTEND=noninteractive
    # Quiet when it works; apt's own words when it does not.
    log=$(mktemp)
    # shellcheck disable=SC2086 # the packages are a list
    if ! { apt-get update && apt-get install -y --no-install-recommends $packages; } >"$log" 2>&1; then
        cat "$log" >&2
    fi
    rm -f "$log"
    look
fi

if wants_coreclr && has_pip; then
    get_coreclr
fi

if wants_python_packages && has_venv; then
    get_python_packages
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
        mingw) line=$mingw ;;
        venv) line="python3-venv" ;;
        *) line=$tool ;;
    esac
    echo "missing: $tool; install it: sudo apt-get install -y --no-install-recommends $line" >&2
    failed=1
done
if wants_coreclr; then
    echo "missing: .NET Core 3.1 in $coreclr; the package dotnetcore2==$coreclr_version of Python's package index has it (its folder dotnetcore2)" >&2
    failed=1
fi
if wants_python_packages; then
    echo "missing: $python_versions of Python's package index, in a virtual environment in $python_packages" >&2
    failed=1
fi
[ -z "${failed:-}" ]
