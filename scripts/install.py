#!/usr/bin/env python3
"""Installs the library for C and C++: headers, library, CMake and pkg-config files, licences.

    scripts/install.py --prefix /usr/local
    scripts/install.py --prefix target/dist/win-x64 --flat --platform win-x64 --library meta_mystia_network.dll \\
        --implib meta_mystia_network.lib --implib libmeta_mystia_network.dll.a

`--flat` puts the library into the prefix itself, like the folders of a release. `--uninstall` removes the files that an
installation with equal options creates, and the folders that are empty then.
"""

import argparse
import os
import platform
import re
import sys
import tempfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "meta_mystia_network"
# The name of the library, CMake's name of the system, the name by which programs look for the library, and the
# libraries to link with it.
PLATFORMS = {
    "linux": ("libmeta_mystia_network.so", "Linux", "libmeta_mystia_network.so", " -pthread -ldl"),
    "osx": ("libmeta_mystia_network.dylib", "Darwin", "@rpath/libmeta_mystia_network.dylib", ""),
    "win": ("meta_mystia_network.dll", "Windows", "", ""),
}
# Where other packages install, too.
SYSTEM_PREFIXES = ("/usr", "/usr/local")
RIDS = ("linux-x64", "linux-arm64", "osx-x64", "osx-arm64", "win-x64")


class Refused(Exception):
    """The options do not describe an installation; the text names the reason."""


def main():
    arguments = parse()
    try:
        files = plan(arguments)
        if arguments.uninstall:
            uninstall(files, arguments)
        else:
            install(files, arguments)
    except (Refused, OSError) as error:
        print(f"install.py: {error}", file=sys.stderr)
        return 1
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--prefix", default="/usr/local", help="the folder to install into (/usr/local)")
    parser.add_argument("--destdir", default="", help="a folder to put in front of the prefix, for those who build packages")
    parser.add_argument("--libdir", default="lib", help="the library's folder: in the prefix, or an absolute path below it (lib)")
    parser.add_argument("--platform", choices=RIDS, default=this_platform(), help="what the library is for (this machine)")
    parser.add_argument("--library", type=Path, help="the shared library (that of `make build`)")
    parser.add_argument("--implib", type=Path, action="append", default=[], help="an import library of Windows; may be repeated")
    parser.add_argument("--flat", action="store_true", help="put the library into the prefix itself")
    parser.add_argument("--uninstall", action="store_true", help="remove the files instead")
    return parser.parse_args()


def this_platform():
    system = {"Linux": "linux", "Darwin": "osx", "Windows": "win"}.get(platform.system())
    machine = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine())
    rid = f"{system}-{machine}"
    return rid if rid in RIDS else None


# ---------------------------------------------------------------- places of the files


def plan(arguments):
    """Every file as its path in the prefix, with its source: a file, or the text itself."""
    if arguments.platform is None:
        raise Refused(f"there is no name for this machine; give --platform, one of {', '.join(RIDS)}")
    system = arguments.platform.split("-")[0]
    name, cmake_system, soname, system_libraries = PLATFORMS[system]
    library = arguments.library or ROOT / "target" / "release" / name
    if not arguments.uninstall:
        for path in (library, *arguments.implib):
            if not path.is_file():
                raise Refused(f"{path} is missing; build the library first (make build), or name it with --library")

    support = PurePosixPath("lib") if arguments.flat else library_folder(arguments)
    libraries = PurePosixPath(".") if arguments.flat else support
    # Windows searches DLLs beside programs.
    runtime = PurePosixPath("bin") if system == "win" and not arguments.flat else libraries
    cmake, pkgconfig = support / "cmake" / PACKAGE, support / "pkgconfig"
    licences = PurePosixPath(".") if arguments.flat else PurePosixPath("share/doc") / PACKAGE

    version, description = package("version"), package("description")
    values = {
        "VERSION": version,
        "VERSION_MAJOR": version.split(".")[0],
        "DESCRIPTION": description,
        "SYSTEM": cmake_system,
        "SONAME": soname,
        "SYSTEM_LIBRARIES": system_libraries,
        "LIBRARY_FOLDER": str(libraries),
        "RUNTIME_FILE": str(runtime / name),
        "CMAKE_TO_PREFIX": up_from(cmake),
        "PKGCONFIG_TO_PREFIX": up_from(pkgconfig),
    }
    files = {
        PurePosixPath("include") / f"{PACKAGE}.h": ROOT / "include" / f"{PACKAGE}.h",
        PurePosixPath("include") / f"{PACKAGE}.hpp": ROOT / "bindings" / "cpp" / f"{PACKAGE}.hpp",
        runtime / name: library,
        **{libraries / implib.name: implib for implib in import_libraries(arguments, system)},
        cmake / f"{PACKAGE}-config.cmake": filled(f"cmake/{PACKAGE}-config.cmake.in", values),
        cmake / f"{PACKAGE}-config-version.cmake": filled(f"cmake/{PACKAGE}-config-version.cmake.in", values),
        pkgconfig / f"{PACKAGE}.pc": filled(f"pkgconfig/{PACKAGE}.pc.in", values),
        **{licences / licence.name: licence for licence in sorted(ROOT.glob("LICENSE-*"))},
    }
    # The licences of the dependencies are beside the library of a release; an uninstallation knows only the installed
    # ones.
    theirs = target(arguments) / licences if arguments.uninstall else library.parent
    files.update({licences / licence.name: licence for licence in theirs.glob("THIRD-PARTY-LICENSES*")})
    return files


def library_folder(arguments):
    """--libdir relative to the prefix. A directory outside of it could not move with it."""
    prefix, libdir = (PurePosixPath(Path(path).as_posix()) for path in (arguments.prefix, arguments.libdir))
    if libdir.is_absolute():
        try:
            libdir = libdir.relative_to(prefix)
        except ValueError:
            raise Refused(f"the library's folder {libdir} is not below the prefix {prefix}") from None
    if ".." in libdir.parts:
        raise Refused(f"the library's folder {libdir} leaves the prefix")
    return libdir


def import_libraries(arguments, system):
    known = ("meta_mystia_network.lib", "libmeta_mystia_network.dll.a")
    if system != "win":
        if arguments.implib:
            raise Refused(f"{arguments.implib[0]}: {arguments.platform} has no import libraries")
        return []
    if arguments.uninstall:
        return [Path(name) for name in known]
    if not arguments.implib:
        raise Refused(f"{arguments.platform} needs an import library: --implib, named {' (MSVC) or '.join(known)} (MinGW)")
    for implib in arguments.implib:
        if implib.name not in known:
            raise Refused(f"{implib}: an import library is named {' (MSVC) or '.join(known)} (MinGW)")
    return arguments.implib


def up_from(folder):
    return "/".join([".."] * len(folder.parts))


def package(key):
    """A value of [package] in Cargo.toml; Python has a parser of TOML only since 3.11."""
    section = re.search(r"^\[package\]\n(.*?)(?=^\[)", (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return re.search(rf'^{key} = "(.*)"$', section[1], re.MULTILINE)[1]


def filled(template, values):
    text = (ROOT / "packaging" / template).read_text("utf-8")
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)


# ---------------------------------------------------------------- installation


def target(arguments):
    prefix = Path(arguments.prefix).absolute()
    return Path(arguments.destdir).absolute() / prefix.relative_to(prefix.anchor) if arguments.destdir else prefix


def install(files, arguments):
    folder = target(arguments)
    for path, source in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, Path) and place.exists() and place.samefile(source):
            continue  # a flat tree may contain its sources
        # A running program keeps the library that it has mapped: the new one is a separate file.
        descriptor, partial = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(source.read_bytes() if isinstance(source, Path) else source.encode("utf-8"))
            os.chmod(partial, 0o755 if place.suffix in (".so", ".dylib", ".dll") else 0o644)
            os.replace(partial, place)
        except BaseException:
            os.unlink(partial)
            raise
    print(f"installed in {folder}: {len(files)} files")


def uninstall(files, arguments):
    folder = target(arguments)
    removed = 0
    for path in files:
        place = folder / path
        if place.is_file():
            place.unlink()
            removed += 1
        remove_empty(place.parent, folder, arguments.prefix)
    print(f"removed from {folder}: {removed} files")


def remove_empty(place, folder, prefix):
    """Removes a folder and those above it that are empty, below `folder`. The system's prefixes have folders for all packages."""
    while place != folder and place.is_dir() and not any(place.iterdir()):
        if prefix.rstrip("/") in SYSTEM_PREFIXES and place.name != PACKAGE:
            return
        place.rmdir()
        place = place.parent


if __name__ == "__main__":
    sys.exit(main())
