#!/usr/bin/env python3
"""Builds the library as it is shipped, for every platform, into target/dist (`make dist`).

    target/dist/win-x64/      meta_mystia_network.dll, its import libraries for MSVC and MinGW
    target/dist/linux-x64/    libmeta_mystia_network.so for glibc 2.17 and newer
    target/dist/linux-arm64/  the same for ARM
    target/dist/linux-*/relay/  mmn-relay, a static program, with its service and its container
    target/dist/packages/     installable packages: see docs/packages.md
    target/dist/SHA256SUMS

Each folder has both headers, the files for CMake and pkg-config, and the licences. Arguments name platforms; without any,
all three are built, and then the packages. With --relay, only the relay is built, into target/relay/ (`make relay`). Missing
tools are installed (as root, with apt; into target/tools) or named.

The standard library of a platform comes from rustup (`rustup target add ...`) if it has it; else from the source in Debian's
package rust-web-src, with Debian's compiler.
"""

import argparse
import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "meta_mystia_network"
TOOLS = ROOT / "target" / "tools"
GLIBC = (2, 17)
# DLLs of Windows 10. Rust's standard library takes random numbers from bcryptprimitives.dll, which older versions lack; crypt32.dll
# has the certificates that the system trusts, for TURN over TLS.
WINDOWS_DLLS = {
    "advapi32.dll", "api-ms-win-core-synch-l1-2-0.dll", "bcrypt.dll", "bcryptprimitives.dll", "crypt32.dll", "iphlpapi.dll",
    "kernel32.dll", "msvcrt.dll", "ntdll.dll", "userenv.dll", "ws2_32.dll",
}  # fmt: skip


class Failed(Exception):
    """The missing or faulty part, in one line."""


@dataclasses.dataclass(frozen=True)
class Platform:
    rid: str  # .NET's name
    triple: str  # Rust's name
    library: str
    relay_triple: str | None  # of the relay, where it is shipped


PLATFORMS = {
    platform.rid: platform
    for platform in [
        Platform("win-x64", "x86_64-pc-windows-gnu", f"{NAME}.dll", None),
        Platform("linux-x64", "x86_64-unknown-linux-gnu", f"lib{NAME}.so", "x86_64-unknown-linux-musl"),
        Platform("linux-arm64", "aarch64-unknown-linux-gnu", f"lib{NAME}.so", "aarch64-unknown-linux-musl"),
    ]
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=f"of {', '.join(PLATFORMS)}")
    parser.add_argument("--output", type=Path, default=ROOT / "target" / "dist")
    parser.add_argument("--relay", action="store_true", help="only mmn-relay, without a PLATFORM for this machine")
    arguments = parser.parse_args()
    try:
        if arguments.relay:
            make_relay(arguments.platforms)
            return 0
        unknown = [rid for rid in arguments.platforms if rid not in PLATFORMS]
        if unknown:
            raise Failed(f"{unknown[0]!r} is none of {', '.join(PLATFORMS)} (macOS is built from source: cargo build --release)")
        chosen = [PLATFORMS[rid] for rid in arguments.platforms or PLATFORMS]
        install_tools(chosen, with_packages=not arguments.platforms)
        output = arguments.output.resolve()
        output.mkdir(parents=True, exist_ok=True)
        notices = third_party_licences()
        for platform in chosen:
            started = time.monotonic()
            folder = lay_out(platform, build(platform), notices, output)
            if platform.relay_triple:
                lay_out_relay(build_relay(platform), folder / "relay")
            print(f"{platform.rid}: {sizes(folder)}, {time.monotonic() - started:.0f} s")
        if not arguments.platforms:
            build_packages(output)
        write_sums(output)
    except (Failed, OSError) as failure:
        print(f"dist.py: {failure}", file=sys.stderr)
        return 1
    return 0


# ---------------------------------------------------------------- tools


def install_tools(platforms, with_packages):
    """Installs missing tools with scripts/install-tools.sh, which names any tool that it cannot install."""
    wanted = ["cargo-about", "zig"]
    systems = {platform.rid.split("-")[0] for platform in platforms}
    if "win" in systems:
        wanted += ["mingw", "lld-link"]
    triples = [triple for platform in platforms for triple in (platform.triple, platform.relay_triple) if triple]
    if not all(map(has_standard_library, triples)):
        wanted += ["rust-src"]
    script = ROOT / "scripts" / "install-tools.sh"
    # Packages also need the hosts' tools: Mono's compiler.
    run([script, *wanted, "python-packages"] if with_packages else [script, "--only", *wanted])


def has_standard_library(triple):
    """Whether the Rust that builds everything else can also build for it."""
    found = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", triple], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    return found.returncode == 0 and any(Path(found.stdout.strip()).glob("libstd-*.rlib"))


def run(command, **options):
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, cwd=ROOT, **options)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is missing") from None
    if done.returncode != 0:
        printed = f":\n{done.stdout}" if done.stdout else ""
        raise Failed(f"`{' '.join(command)}` failed{printed}")
    return done.stdout


def output_of(command):
    """The output of a command."""
    return run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


# ---------------------------------------------------------------- the library


def build(platform):
    """Compiles the library; returns the folder of cargo's output."""
    target = platform.triple if "windows" in platform.triple else f"{platform.triple}.{GLIBC[0]}.{GLIBC[1]}"
    # Without the other crate types: rustc applies LTO only if there is no rlib among them.
    return compile_for(platform, platform.triple, target, ["--lib", "--crate-type", "cdylib"])


def compile_for(platform, triple, target, what):
    environment = dict(os.environ)
    cargo, options, link = "cargo", [], []
    sources = {Path(environment.get("CARGO_HOME") or Path.home() / ".cargo") / "registry" / "src": "crates", ROOT: NAME}
    if not has_standard_library(triple):
        # Debian's compiler, beside rustup's: by full names, and with the unstable option of its version.
        cargo = "/usr/bin/cargo"
        environment.update(RUSTC="/usr/bin/rustc", RUSTC_BOOTSTRAP="1")
        options = ["-Zbuild-std=std,panic_unwind"]
        if "musl" in triple:
            # Debian has no copy of musl for the compiler; zig links its own.
            link = ["--", "-Clink-self-contained=no"]
        sources[Path(output_of(["/usr/bin/rustc", "--print", "sysroot"]).strip()) / "lib/rustlib/src/rust"] = "rust"
    # Messages of panics contain paths of sources, which must not reveal the build machine.
    environment["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(f"--remap-path-prefix={path}={name}" for path, name in sources.items())
    if "windows" not in triple:
        zig = TOOLS / "zig" / "bin"
        environment["PATH"] = f"{zig}{os.pathsep}{environment['PATH']}"
        environment["CARGO_ZIGBUILD_ZIG_PATH"] = str(zig / "python-zig")
        environment["CARGO"] = cargo
        cargo = zig / "cargo-zigbuild"
    folder = ROOT / "target" / "cross" / platform.rid
    profile = ["--profile", "dist", "--target", target, "--target-dir", folder]
    run([cargo, "rustc", *what, *profile, *options, *link], env=environment)
    return folder / triple / "dist"


# ---------------------------------------------------------------- the relay


def make_relay(rids):
    """Builds the relay alone, without the licences of its crates, into target/relay."""
    machine = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}.get(os.uname().machine)
    platform = PLATFORMS.get(rids[0] if rids else machine)
    if len(rids) > 1 or not platform or not platform.relay_triple:
        raise Failed("the relay is built for linux-x64 or linux-arm64; elsewhere: cargo build --release -p mmn_relay")
    wanted = ["zig"] if has_standard_library(platform.relay_triple) else ["zig", "rust-src"]
    run([ROOT / "scripts" / "install-tools.sh", "--only", *wanted])
    folder = ROOT / "target" / "relay"
    put_relay(build_relay(platform), folder)
    print(f"{folder / 'mmn-relay'}: {(folder / 'mmn-relay').stat().st_size / 1e6:.1f} MB, static")


def build_relay(platform):
    """Compiles the relay; returns the program."""
    what = ["--package", "mmn_relay", "--bin", "mmn-relay"]
    program = compile_for(platform, platform.relay_triple, platform.relay_triple, what) / "mmn-relay"
    check_static(program)
    return program


def put_relay(program, folder):
    """The program with what starts it, in a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(program, folder)
    for path in sorted((ROOT / "packaging" / "relay").iterdir()):
        shutil.copyfile(path, folder / path.name)
    shutil.copyfile(ROOT / "crates" / "relay" / "README.md", folder / "README.md")


def lay_out_relay(program, folder):
    put_relay(program, folder)
    for path in ROOT.glob("LICENSE-*"):
        shutil.copyfile(path, folder / path.name)
    notices = third_party_licences(ROOT / "crates" / "relay" / "Cargo.toml", "RELAY-THIRD-PARTY-LICENSES.txt")
    (folder / "THIRD-PARTY-LICENSES.txt").write_text(notices, "utf-8")


def check_static(program):
    """Fails if the program loads anything, the dynamic linker included."""
    headers = output_of(["readelf", "--dynamic", "--program-headers", "--wide", program])
    if "NEEDED" in headers or "INTERP" in headers:
        raise Failed(f"{program} is not static")


# ---------------------------------------------------------------- the library's folder


def lay_out(platform, built, notices, output):
    """Puts the library, its link libraries, the headers and the licences into the platform's folder."""
    folder = output / platform.rid
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    library = folder / platform.library
    shutil.copyfile(built / platform.library, library)
    options = []
    if platform.rid == "win-x64":
        check_imports(library)
        for implib in import_libraries(library, built, folder):
            options += ["--implib", implib]
    else:
        check_glibc(library)
    (folder / "THIRD-PARTY-LICENSES.txt").write_text(notices, "utf-8")
    output_of(
        [sys.executable, ROOT / "scripts/install.py", "--prefix", folder, "--flat", "--platform", platform.rid]
        + ["--library", library, *options]
    )
    return folder


def functions():
    lines = (ROOT / "tests/abi/exports.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def import_libraries(library, built, folder):
    """The libraries that programs link: MinGW's from the linker that made the DLL, MSVC's from the list of functions."""
    names = output_of([MINGW + "objdump", "-p", library]).partition("[Ordinal/Name Pointer] Table")[2]
    exported = set(re.findall(r"^\s+\[ *\d+\] (?:\+base\[ *\d+\] +[0-9a-f]+ )?(\w+)$", names, re.MULTILINE))
    expected = set(functions())
    if exported != expected:
        raise Failed(f"{library.name} exports {sorted(exported ^ expected)} where tests/abi/exports.txt differs")
    mingw = folder / f"lib{NAME}.dll.a"
    shutil.copyfile(built / mingw.name, mingw)
    msvc = folder / f"{NAME}.lib"
    definitions = built / f"{NAME}.def"
    definitions.write_text("\n".join([f"LIBRARY {library.name}", "EXPORTS", *functions()]) + "\n", "ascii")
    # LLVM's tool, a part of zig.
    output_of([TOOLS / "zig/bin/python-zig", "dlltool", "-m", "i386:x86-64", "-d", definitions, "-D", library.name, "-l", msvc])
    check_link(msvc, built)
    return [msvc, mingw]


def check_link(implib, folder):
    """Links a program that takes the address of every function, as Visual Studio's linker would."""
    source, program = folder / "link.c", folder / "link.exe"
    taken = ", ".join(f"(const void *){name}" for name in functions())
    source.write_text(f"#include <{NAME}.h>\nconst void *const all[] = {{{taken}}};\nint start(void) {{ return all[0] == 0; }}\n", "ascii")
    compiled = source.with_suffix(".obj")
    output_of([MINGW + "gcc", "-std=c11", f"-I{ROOT / 'include'}", "-c", source, "-o", compiled])
    # Without a C library, because the program calls none of it.
    output_of(["lld-link", "/entry:start", "/nodefaultlib", "/subsystem:console", f"/out:{program}", compiled, implib])
    imported = output_of([MINGW + "objdump", "-p", program])
    if f"DLL Name: {NAME}.dll" not in imported:
        raise Failed(f"a program that was linked with {implib.name} does not load {NAME}.dll")


MINGW = "x86_64-w64-mingw32-"


def check_imports(library):
    """Fails if the library needs a DLL that a player would have to install beside it."""
    needed = {name.lower() for name in re.findall(r"DLL Name: (\S+)", output_of([MINGW + "objdump", "-p", library]))}
    if extra := needed - WINDOWS_DLLS:
        raise Failed(f"{library.name} needs {sorted(extra)}, which Windows 10 does not bring")


def check_glibc(library):
    versions = re.findall(r"\bGLIBC_([\d.]+)", output_of(["readelf", "--version-info", "--wide", library]))
    newest = max(tuple(int(part) for part in version.split(".")) for version in versions)
    if newest > GLIBC:
        raise Failed(f"{library} needs glibc {'.'.join(map(str, newest))}; the limit is {'.'.join(map(str, GLIBC))}")


def third_party_licences(manifest=ROOT / "Cargo.toml", name="THIRD-PARTY-LICENSES.txt"):
    """The licences of the crates linked into what the manifest describes, on every platform."""
    about = ROOT / "packaging" / "licences"
    kept = ROOT / "target" / "cross" / name
    sources = [*about.iterdir(), ROOT / "Cargo.lock", manifest]
    if kept.exists() and kept.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return kept.read_text("utf-8")
    text = run(
        [TOOLS / "bin" / "cargo-about", "generate", "-m", manifest, "-c", about / "about.toml", about / "about.hbs"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(text, "utf-8")
    return text


# ---------------------------------------------------------------- packages


def build_packages(output):
    packages = output / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir()
    run([sys.executable, ROOT / "packaging/csharp/packages.py", "--natives", output, "--out", packages])
    run([sys.executable, ROOT / "scripts/python_wheels.py", "--natives", output, "--out", packages])


def write_sums(output):
    """Writes the checksums in the format of `sha256sum --check`."""
    sums = output / "SHA256SUMS"
    files = sorted(path for path in output.rglob("*") if path.is_file() and path != sums and ours(path, output))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(output).as_posix()}\n" for path in files]
    sums.write_text("".join(lines), "utf-8")
    print(f"{sums}: {len(lines)} files")


def ours(path, output):
    return path.relative_to(output).parts[0] in {*PLATFORMS, "packages"}


def sizes(folder):
    libraries = [path for path in folder.iterdir() if path.suffix in (".dll", ".so")]
    return ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in libraries)


if __name__ == "__main__":
    sys.exit(main())
