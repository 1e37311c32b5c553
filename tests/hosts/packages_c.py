"""The files of `make install` and of the packages for C and C++: programs find them, compile against them and run.

`packages_c.py STORY`. Run by `tests/hosts`; MMN_LIBRARY names the library. MMN_PACKAGES names the folder of packages of an
existing release (`make test-dist`). Stories whose name ends with "for_windows" need MinGW.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import greeting
import stories

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = ROOT / "tests" / "packages" / "cmake"
INSTALL = ROOT / "scripts" / "install.py"
PORT = ROOT / "packaging" / "vcpkg" / "ports" / "meta-mystia-network"
C, CPP = "hello from C", "hello from C++"
MINGW = "x86_64-w64-mingw32-"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
HEADERS = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'bindings' / 'cpp'}"]


# ---------------------------------------------------------------- stories


def a_cmake_project_uses_the_installed_library():
    """From a tree that was moved after its installation."""
    with folder() as place:
        install(place / "first")
        (place / "first").rename(place / "moved here")
        build = configure(place / "build", place / "moved here")
        call("cmake", "--build", build)
        # They find the library by the path that CMake wrote into them.
        meet([build / "hello_c"], [build / "hello_cpp"])


def compilers_use_the_flags_of_pkg_config():
    """Installed as distributions do: into a staging folder before the prefix, with a library folder for the architecture."""
    with folder() as place:
        install(Path("/usr"), "--libdir", "/usr/lib/x86_64-linux-gnu", "--destdir", place / "files")
        libraries = place / "files" / "usr" / "lib" / "x86_64-linux-gnu"
        environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "LD_LIBRARY_PATH": str(libraries)}
        version = call("pkg-config", "--modversion", "meta_mystia_network", environment=environment)
        assert version == package_version(), version
        flags = shlex.split(call("pkg-config", "--cflags", "--libs", "meta_mystia_network", environment=environment))
        assert f"-L{libraries}" in [os.path.normpath(flag) for flag in flags], flags
        call("gcc", "-std=c11", *WARNINGS, PROJECT / "hello.c", "-o", place / "hello_c", *flags)
        call("g++", "-std=c++17", *WARNINGS, PROJECT / "hello.cpp", "-o", place / "hello_cpp", *flags)
        meet([place / "hello_c"], [place / "hello_cpp"], environment)


def a_release_folder_is_used_as_it_is():
    """The library lies in its top folder; CMake and pkg-config find it there."""
    with folder() as place:
        release = place / "linux-x64"
        if built := os.environ.get("MMN_PACKAGES"):
            release = Path(built).parent / "linux-x64"
        else:
            release.mkdir()
            shipped = release / "libmeta_mystia_network.so"
            shipped.write_bytes(Path(os.environ["MMN_LIBRARY"]).read_bytes())
            # Like scripts that lay out a release: from the library that is in the folder already.
            call(sys.executable, INSTALL, "--flat", "--platform", "linux-x64", "--prefix", release, "--library", shipped)
        build = configure(place / "build", release)
        call("cmake", "--build", build)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(release / "lib" / "pkgconfig"), "LD_LIBRARY_PATH": str(release)}
        flags = shlex.split(call("pkg-config", "--cflags", "--libs", "meta_mystia_network", environment=environment))
        call("gcc", PROJECT / "hello.c", "-o", place / "hello_c", *flags)
        meet([place / "hello_c"], [build / "hello_cpp"], environment)


def cmake_refuses_what_does_not_fit():
    with folder() as place:
        install(place / "tree")
        major, minor, patch = package_version().split(".")
        configure(place / "older", place / "tree", f"-DWANTED_VERSION={major}.{minor}")
        configure(place / "range", place / "tree", f"-DWANTED_VERSION={major}.{minor}...{int(major) + 1}")
        # Most functions of 0.1 are gone.
        for wanted in ["0.1", f"{major}.{minor}.{int(patch) + 1}", f"{int(major) + 1}.0"]:
            refused = configure(place / f"asks-for-{wanted}", place / "tree", f"-DWANTED_VERSION={wanted}", fails=True)
            assert wanted in refused and f"version: {package_version()}" in refused, refused
        library = place / "tree" / "lib" / "libmeta_mystia_network.so"
        library.unlink()
        refused = unwrapped(configure(place / "broken", place / "tree", fails=True))
        assert f"{library} is missing" in refused, refused


def make_installs_and_uninstalls():
    """Other files in the folders stay."""
    with folder() as place:
        library = place / "libmeta_mystia_network.so"
        library.write_bytes(Path(os.environ["MMN_LIBRARY"]).read_bytes())
        (place / "THIRD-PARTY-LICENSES.html").write_text("theirs")
        variables = [f"PREFIX={place / 'prefix'}", "LIBDIR=lib64", f"LIBRARY={library}"]
        other = place / "prefix" / "include" / "other.h"
        other.parent.mkdir(parents=True)
        other.write_text("")
        assert "cargo" not in call("make", "-n", "-C", ROOT, "install", *variables), "LIBRARY builds nothing"
        call("make", "-s", "-C", ROOT, "install", *variables)
        found = files_in(place / "prefix")
        assert found == {
            "include/other.h",
            "include/meta_mystia_network.h",
            "include/meta_mystia_network.hpp",
            "lib64/libmeta_mystia_network.so",
            "lib64/cmake/meta_mystia_network/meta_mystia_network-config.cmake",
            "lib64/cmake/meta_mystia_network/meta_mystia_network-config-version.cmake",
            "lib64/pkgconfig/meta_mystia_network.pc",
            "share/doc/meta_mystia_network/LICENSE-APACHE",
            "share/doc/meta_mystia_network/LICENSE-MIT",
            "share/doc/meta_mystia_network/THIRD-PARTY-LICENSES.html",
        }, found
        for path in found:
            # No placeholder of a template is left.
            assert path.endswith(".so") or not re.search(r"@[A-Z_]+@", (place / "prefix" / path).read_text("utf-8")), path
        call("make", "-s", "-C", ROOT, "uninstall", *variables)
        assert files_in(place / "prefix") == {"include/other.h"}, files_in(place / "prefix")
        folders = {path.name for path in (place / "prefix").rglob("*") if path.is_dir()}
        assert folders == {"include"}, f"empty folders are left: {folders}"


def a_bad_installation_is_refused_in_words():
    with folder() as place:
        library = ["--library", os.environ["MMN_LIBRARY"]]
        windows = [*library, "--platform", "win-x64"]
        for options, printed in [
            (["--library", place / "none.so"], f"{place / 'none.so'} is missing"),
            ([*library, "--libdir", "/elsewhere/lib"], f"/elsewhere/lib is not below the prefix {place / 'tree'}"),
            ([*library, "--libdir", "../lib"], "../lib leaves the prefix"),
            (windows, "win-x64 needs an import library"),
            ([*windows, "--implib", __file__], "packages_c.py: an import library is named meta_mystia_network.lib"),
            ([*library, "--platform", "linux-x64", "--implib", __file__], "linux-x64 has no import libraries"),
        ]:
            refused = call(sys.executable, INSTALL, "--prefix", place / "tree", *options, fails=True)
            assert printed in refused and "Traceback" not in refused, f"{options}: {refused}"
        assert not (place / "tree").exists()


def the_vcpkg_port_lays_out_a_package():
    """A stub replaces vcpkg: tests/packages/vcpkg.cmake has the functions that the port calls. CMake then finds the result."""
    manifest = json.loads((PORT / "vcpkg.json").read_text("utf-8"))
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["name"]) and manifest["name"] == PORT.name, manifest
    assert manifest["version"] == package_version(), "packaging/vcpkg: the version is not that of Cargo.toml"
    with folder() as place:
        release = place / "dist" / "linux-x64"
        install(release, "--flat", "--platform", "linux-x64")
        installed = vcpkg(place, "x64-linux", place / "dist")
        assert {"lib/libmeta_mystia_network.so", "debug/lib/libmeta_mystia_network.so"} <= files_in(installed), files_in(installed)
        build = configure(place / "build", installed)
        call("cmake", "--build", build)
        meet([build / "hello_c"], [build / "hello_cpp"])
        refused = unwrapped(vcpkg(place, "arm64-linux", place / "dist", fails=True))
        assert f"{place / 'dist' / 'linux-arm64'} is missing" in refused, refused


def the_cpp_header_takes_little_of_windows():
    """The header defines neither macros that exclude winsock2.h nor min and max; a program that has defined them keeps them.
    Shown with a reduced <windows.h>, because MinGW's standard library includes the real one in its own way.
    """
    with folder() as place:
        (place / "windows.h").write_text(
            "#pragma once\n#ifndef WIN32_LEAN_AND_MEAN\n#define HAS_WINSOCK\n#endif\n"
            "#ifndef NOMINMAX\n#define min(a, b) ((a) < (b) ? (a) : (b))\n#define max(a, b) ((a) < (b) ? (b) : (a))\n#endif\n"
            'using HMODULE = void*;\nextern "C" {\nHMODULE LoadLibraryA(const char*);\nint FreeLibrary(HMODULE);\n'
            "unsigned long GetLastError();\nvoid (*GetProcAddress(HMODULE, const char*))();\n}\n"
        )
        program = place / "program.cpp"
        # Included before, the standard library leaves the macros alone.
        header = (ROOT / "bindings" / "cpp" / "meta_mystia_network.hpp").read_text("utf-8")
        standard = "".join(f"#include <{name}>\n" for name in re.findall(r"^#include <([a-z_]+)>$", header, re.MULTILINE))
        for before, after in [
            ("", "#if defined(HAS_WINSOCK) || defined(min) || defined(NOMINMAX) || defined(WIN32_LEAN_AND_MEAN)"),
            (f"{standard}#include <windows.h>", "#if !defined(HAS_WINSOCK) || !defined(min)"),
            ("#define NOMINMAX\n#define WIN32_LEAN_AND_MEAN", "#if !defined(NOMINMAX) || !defined(WIN32_LEAN_AND_MEAN)"),
        ]:
            program.write_text(
                f"{before}\n#include <meta_mystia_network.hpp>\n{after}\n#error not what the program has chosen\n#endif\n"
                'int main() { mmn::Library library("x"); mmn::Room room(library.api(), "a", "b"); return (int)room.peers().size(); }\n'
            )
            options = ["-std=c++17", "-D_WIN32", *WARNINGS, "-isystem", place, *HEADERS]
            call("g++", *options, "-fsyntax-only", program)


def the_headers_compile_for_windows():
    """Before and after <windows.h>, and before <winsock2.h>; so do the C hosts."""
    with folder() as place:
        c, cpp = place / "program.c", place / "program.cpp"
        first = "#ifdef WINDOWS_FIRST\n#include <windows.h>\n#endif\n"
        c.write_text(first + "#include <meta_mystia_network.h>\nint main(void) { return (int)mmn_abi_version(); }\n")
        cpp.write_text(
            first + "#include <meta_mystia_network.hpp>\n#include <winsock2.h>\n#include <ws2tcpip.h>\n#include <windows.h>\n"
            'int main() { mmn::Library library("x"); mmn::Room room(library.api(), "a", "b"); return (int)room.peers().size(); }\n'
        )
        for options in [
            [],
            ["-DWINDOWS_FIRST", "-DWIN32_LEAN_AND_MEAN"],
            ["-DWINDOWS_FIRST", "-DNOMINMAX", "-DWIN32_LEAN_AND_MEAN", "-DUNICODE"],
        ]:
            call(f"{MINGW}gcc-posix", "-std=c11", *WARNINGS, *HEADERS, *options, "-fsyntax-only", c)
            call(f"{MINGW}g++-posix", "-std=c++17", *WARNINGS, *HEADERS, *options, "-fsyntax-only", cpp)
        build_hosts_for_windows(place)


def a_cmake_project_links_for_windows():
    """An installed tree, a folder of a release and the vcpkg port, each with an import library of the exports."""
    with folder() as place:
        lines = (ROOT / "tests" / "abi" / "exports.txt").read_text("utf-8").splitlines()
        exports = [line for line in lines if not line.startswith("#")]
        (place / "exports.def").write_text("LIBRARY meta_mystia_network.dll\nEXPORTS\n" + "\n".join(exports) + "\n")
        implib, dll = place / "libmeta_mystia_network.dll.a", place / "meta_mystia_network.dll"
        call(f"{MINGW}dlltool", "-d", place / "exports.def", "-l", implib)
        dll.write_bytes(b"")
        options = ["--platform", "win-x64", "--library", dll, "--implib", implib]
        call(sys.executable, INSTALL, "--prefix", place / "installed", *options)
        call(sys.executable, INSTALL, "--prefix", place / "dist" / "win-x64", "--flat", *options)
        port = vcpkg(place, "x64-mingw-dynamic", place / "dist")
        for number, tree in enumerate([place / "installed", place / "dist" / "win-x64", port]):
            build = build_project_for_windows(tree, place / f"build{number}")
            for program, function in (("hello_c.exe", "SendToPeer"), ("hello_cpp.exe", "mmn_open")):
                imported = call(f"{MINGW}objdump", "-p", build / program)
                names = set(re.findall(r"DLL Name: (\S+)", imported))
                assert "meta_mystia_network.dll" in names and function in imported, imported
                # No runtime DLL of MinGW, which players would not have.
                assert names <= {"meta_mystia_network.dll", "KERNEL32.dll", "msvcrt.dll"}, names
                assert (build / "meta_mystia_network.dll").is_file(), "the DLL is not beside the program"


# ---------------------------------------------------------------- for Windows


def build_project_for_windows(prefix, build):
    """Cross-compiles the project against a win-x64 tree; the folder with hello_c.exe, hello_cpp.exe and the DLL."""
    configure(build, prefix, f"-DCMAKE_TOOLCHAIN_FILE={PROJECT / 'mingw-w64.cmake'}")
    call("cmake", "--build", build)
    return build


def build_hosts_for_windows(output):
    """The C and C++ samples and the member of the tests. The lobby in C and the member load the DLL of MMN_LIBRARY; the other samples
    link it, so that only their main files are compiled here."""
    common = ["-O2", "-Wall", "-Wextra", "-Werror", *HEADERS]
    call(f"{MINGW}gcc-posix", "-std=gnu11", *common, ROOT / "examples/c/lobby.c", "-o", output / "lobby.exe")
    member = ROOT / "tests/hosts/member/member.c"
    call(f"{MINGW}gcc-posix", "-std=gnu11", *common, "-pthread", "-static", member, "-o", output / "member.exe")
    call(f"{MINGW}gcc-posix", "-std=gnu11", *common, "-c", ROOT / "examples/c/state.c", "-o", output / "state_c.o")
    for sample in ("lobby", "state"):
        call(f"{MINGW}g++-posix", "-std=c++17", *common, "-c", ROOT / f"examples/cpp/{sample}.cpp", "-o", output / f"{sample}.o")


# ---------------------------------------------------------------- helpers


def folder():
    return Folder()


class Folder(tempfile.TemporaryDirectory):
    """A temporary folder, as a path without links in it."""

    def __enter__(self):
        return Path(super().__enter__()).resolve()


def install(prefix, *options):
    call(sys.executable, INSTALL, "--library", os.environ["MMN_LIBRARY"], "--prefix", prefix, *options)


def configure(build, prefix, *options, fails=False):
    """The build's folder, or, if it must fail, CMake's output."""
    command = ["cmake", "-S", PROJECT, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", *options]
    # CMake must find the tree by its path, and no other.
    printed = call(*command, "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", fails=fails)
    return printed if fails else build


def vcpkg(place, triplet, dist, fails=False):
    """Runs the port. Returns the package's folder, or the output if it must fail."""
    package = place / "packages" / triplet
    options = [f"-DPACKAGE={package}", f"-DPORT_DIRECTORY={PORT}", f"-DTRIPLET={triplet}"]
    environment = {**os.environ, "META_MYSTIA_NETWORK_DIST": str(dist)}
    script = ROOT / "tests" / "packages" / "vcpkg.cmake"
    printed = call("cmake", *options, "-P", script, environment=environment, fails=fails)
    return printed if fails else package


def unwrapped(text):
    """CMake breaks its messages into lines."""
    return " ".join(text.split())


def plain():
    """Without the folders in which cargo looks for libraries: a program searches its own path only after them."""
    return {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}


def meet(c_command, cpp_command, environment=None):
    environment = environment or plain()
    greeting.greet_each_other(("carol", c_command, C), ("dave", cpp_command, CPP), environment)
    greeting.greet_each_other(("dave", cpp_command, CPP), ("carol", c_command, C), environment)


def call(*command, environment=None, fails=False):
    """The program's output. It must end with 0, or, with `fails`, with an error."""
    command = [str(part) for part in command]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    assert (done.returncode != 0) == fails, f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout.strip()


def files_in(tree):
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


def package_version():
    return re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE)[1]


if __name__ == "__main__":
    stories.main(globals())
