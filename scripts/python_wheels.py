#!/usr/bin/env python3
"""Builds the Python wheels: one for each platform whose library is in the folder of natives.

    scripts/python_wheels.py --natives target/dist --out target/dist/packages

Prints the path of each wheel. It needs hatchling, which `scripts/install-tools.sh python-packages` installs in target/tools.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "target" / "tools" / "python" / "bin" / "python"
SOURCE = Path("bindings") / "python"
# The library's name, and the wheel's platform; on Linux the version of glibc and the architecture follow.
PLATFORMS = {
    "linux-x64": ("libmeta_mystia_network.so", "x86_64"),
    "linux-arm64": ("libmeta_mystia_network.so", "aarch64"),
    "win-x64": ("meta_mystia_network.dll", "win_amd64"),
}
OLDEST_GLIBC = 17  # 2.17, below which there are no wheels of this kind


class Refused(Exception):
    """The input of the build is incomplete; the text names the missing part."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--natives", type=Path, default=ROOT / "target" / "dist", help="has a folder for each platform (target/dist)")
    parser.add_argument("--out", type=Path, help="where to put the wheels (packages in the folder of natives)")
    arguments = parser.parse_args()
    try:
        for wheel in build_all(arguments.natives, arguments.out or arguments.natives / "packages"):
            print(wheel)
    except Refused as error:
        print(f"python_wheels.py: {error}", file=sys.stderr)
        return 1
    return 0


def build_all(natives, out):
    found = {rid: natives / rid / name for rid, (name, _) in PLATFORMS.items() if (natives / rid).is_dir()}
    if not found:
        raise Refused(f"{natives} has none of the folders {', '.join(PLATFORMS)}; run `make dist`, or name another with --natives")
    for library in found.values():
        if not library.is_file():
            raise Refused(f"{library} is missing")
    out.mkdir(parents=True, exist_ok=True)
    return [build(rid, library, out) for rid, library in found.items()]


def build(rid, library, out):
    """Builds from a copy of the sources, so that a wheel has only its own files and the source tree stays unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / SOURCE
        shutil.copytree(ROOT / SOURCE, project, ignore=shutil.ignore_patterns("tests", "__pycache__", ".mypy_cache"))
        shutil.copy(ROOT / "Cargo.toml", folder)
        for licence in [*ROOT.glob("LICENSE-*"), *library.parent.glob("THIRD-PARTY-LICENSES*")]:
            shutil.copy(licence, project)
        shutil.copyfile(library, project / "meta_mystia_network" / library.name)
        command = [interpreter(), "-m", "hatchling", "build", "-t", "wheel", "-d", str(out.absolute())]
        environment = {**os.environ, "MMN_WHEEL_PLATFORM": platform(rid, library)}
        done = subprocess.run(command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        if done.returncode != 0:
            raise Refused(f"hatchling failed for {rid}:\n{done.stdout}")
        return out / Path(done.stdout.strip().splitlines()[-1]).name


def platform(rid, library):
    tag = PLATFORMS[rid][1]
    if not rid.startswith("linux"):
        return tag
    # The newest version that the library requires decides on which systems it loads.
    wanted = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())]
    return f"manylinux_2_{max([OLDEST_GLIBC, *wanted])}_{tag}"


def interpreter():
    if importlib.util.find_spec("hatchling"):
        return sys.executable
    if TOOLS.is_file():
        return str(TOOLS)
    raise Refused("hatchling is missing; `scripts/install-tools.sh python-packages` installs it in target/tools")


if __name__ == "__main__":
    sys.exit(main())
