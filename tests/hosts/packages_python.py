"""The Python wheels: their contents, their installation into an empty environment, and their types.

`packages_python.py STORY`. Run by `tests/hosts`; MMN_LIBRARY names the library. It needs the packages that
`scripts/install-tools.sh python-packages` installs. With MMN_PACKAGES, a folder, the wheel in it is installed (`make test-dist`).
"""

import base64
import csv
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import greeting
import stories

ROOT = Path(__file__).resolve().parent.parent.parent
WHEELS = ROOT / "scripts" / "python_wheels.py"
PROGRAMS = ROOT / "tests" / "packages" / "python"
TOOLS = ROOT / "target" / "tools" / "python" / "bin" / "python"
LIBRARY = "libmeta_mystia_network.so"


# ---------------------------------------------------------------- stories


def a_wheel_works_in_an_empty_environment():
    """With the library in the wheel: nothing else names one."""
    with tempfile.TemporaryDirectory() as folder:
        if built := os.environ.get("MMN_PACKAGES"):
            (wheel,) = Path(built).glob("*manylinux*_x86_64.whl")
        else:
            (wheel,) = build(Path(folder), {"linux-x64": {LIBRARY: library()}})
        python = environment_with(wheel, Path(folder) / "environment")
        found = call(python, "-c", "import meta_mystia_network as mmn; print(mmn.load_library()._name)", cwd=folder)
        assert Path(found).parent.is_relative_to(Path(folder).resolve() / "environment"), found
        program, text = [python, PROGRAMS / "hello.py"], "hello from asyncio"
        greeting.greet_each_other(("alice", program, text), ("bob", program, text), plain())


def wheels_are_for_their_platforms():
    """One wheel for each existing library, with the library, the types, the licences and a correct record. Equal files give equal
    bytes.
    """
    with tempfile.TemporaryDirectory() as folder:
        natives = {
            "linux-x64": {LIBRARY: b"old: GLIBC_2.2.5 GLIBC_2.14", "THIRD-PARTY-LICENSES.txt": b"theirs"},
            "linux-arm64": {LIBRARY: b"new: GLIBC_2.17 GLIBC_2.34"},
            "win-x64": {"meta_mystia_network.dll": b"MZ"},
            "packages": {"other.zip": b""},
        }
        wheels = build(Path(folder) / "first", natives)
        version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE)[1]
        tags = ["manylinux_2_17_x86_64", "manylinux_2_34_aarch64", "win_amd64"]
        assert [wheel.name for wheel in wheels] == [f"meta_mystia_network-{version}-py3-none-{tag}.whl" for tag in tags], wheels
        for wheel, (name, content) in zip(wheels, [(LIBRARY, b"old"), (LIBRARY, b"new"), ("meta_mystia_network.dll", b"MZ")]):
            with zipfile.ZipFile(wheel) as archive:
                names = set(archive.namelist())
                about = f"meta_mystia_network-{version}.dist-info"
                package = {f"meta_mystia_network/{part}" for part in ("__init__.py", "aio.py", "py.typed", name)}
                theirs = {f"{about}/licenses/THIRD-PARTY-LICENSES.txt"} if "manylinux_2_17" in wheel.name else set()
                metadata = {f"{about}/{part}" for part in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE-APACHE", "licenses/LICENSE-MIT")}
                assert names == package | metadata | theirs, names
                assert archive.read(f"meta_mystia_network/{name}").startswith(content)
                check_record(archive, f"{about}/RECORD")
                assert b"Root-Is-Purelib: false" in archive.read(f"{about}/WHEEL"), "a wheel with native code is no pure one"
        again = build(Path(folder) / "second", natives)
        assert [wheel.read_bytes() for wheel in wheels] == [wheel.read_bytes() for wheel in again], "the wheels differ"


def a_build_without_natives_is_refused_in_words():
    with tempfile.TemporaryDirectory() as folder:
        refused = call(sys.executable, WHEELS, "--natives", folder, fails=True)
        assert f"{folder} has none of the folders linux-x64, linux-arm64, win-x64" in refused, refused
        (Path(folder) / "win-x64").mkdir()
        refused = call(sys.executable, WHEELS, "--natives", folder, fails=True)
        assert f"{folder}/win-x64/meta_mystia_network.dll is missing" in refused, refused


def a_missing_library_is_named_with_the_folders():
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder).resolve() / "meta_mystia_network"
        package.mkdir()
        # Copied by hand, without the library.
        (package / "__init__.py").write_bytes((ROOT / "bindings/python/meta_mystia_network/__init__.py").read_bytes())
        load = "import meta_mystia_network as mmn; mmn.describe_error(0)"
        printed = call(sys.executable, "-c", load, cwd=folder, fails=True)
        for part in ("cannot find libmeta_mystia_network.so", "MMN_LIBRARY", str(package), "the folders of the system"):
            assert part in printed, f"{part!r} is not in {printed}"
        wrong = {**plain(), "MMN_LIBRARY": "/nowhere/library.so"}
        printed = call(sys.executable, "-c", load, cwd=folder, environment=wrong, fails=True)
        assert "cannot load /nowhere/library.so, the environment variable MMN_LIBRARY" in printed, printed


def a_library_that_does_not_fit_is_named_with_the_reason():
    """Of another platform, of another program, and of an older version."""
    load = "import meta_mystia_network as mmn; mmn.describe_error(0)"

    def refused(path):
        environment = {**plain(), "MMN_LIBRARY": str(path), "PYTHONPATH": str(ROOT / "bindings" / "python")}
        return call(sys.executable, "-c", load, environment=environment, fails=True)

    with tempfile.TemporaryDirectory() as folder:
        arm = Path(folder) / "arm.so"
        arm.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00" + bytes(44))
        windows = Path(folder) / "windows.dll"
        windows.write_bytes(b"MZ" + bytes(58) + b"\x40\x00\x00\x00" + b"PE\x00\x00\x64\x86")
        for path, platform in ((arm, "ELF files on ARM64"), (windows, "Windows on x86-64"), (__file__, "no library")):
            printed = refused(path)
            for part in (str(path), platform, "this process is for linux"):
                assert part in printed, f"{part!r} is not in {printed}"
        printed = refused("libm.so.6")
        assert "libm.so.6 has no function mmn_abi_version" in printed, printed
        old = Path(folder) / "old.so"
        source = "unsigned GetAbiVersion(void) { return 3; }"
        subprocess.run(["gcc", "-shared", "-x", "c", "-", "-o", old], input=source.encode(), check=True)
        needed = re.search(r"^ABI_VERSION = (\d+)$", (ROOT / "bindings/python/meta_mystia_network/__init__.py").read_text("utf-8"), re.MULTILINE)[1]
        assert f"has ABI version 3; this package needs {needed} or later" in refused(old), refused(old)


def type_checkers_know_the_package():
    """Strict checks of the package itself and of programs that use it as installed: a correct one and one full of mistakes."""
    with tempfile.TemporaryDirectory() as folder:
        mypy = [TOOLS, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", Path(folder) / "cache"]
        call(*mypy, ROOT / "bindings" / "python" / "meta_mystia_network")
        (wheel,) = build(Path(folder), {"linux-x64": {LIBRARY: b""}})
        python = environment_with(wheel, Path(folder) / "environment")
        mypy += ["--python-executable", python]
        call(*mypy, PROGRAMS / "hello.py", cwd=folder)
        found = call(*mypy, PROGRAMS / "wrong.py", cwd=folder, fails=True)
        lines = (PROGRAMS / "wrong.py").read_text("utf-8").splitlines()
        expected = {(number, line.split("# wrong: ")[1]) for number, line in enumerate(lines, 1) if "# wrong: " in line}
        errors = {(int(number), kind) for number, kind in re.findall(r"wrong\.py:(\d+): error: .*\[([a-z-]+)\]$", found, re.MULTILINE)}
        assert errors == expected, f"{sorted(errors ^ expected)}:\n{found}"


def rooms_for_asyncio_keep_their_promises():
    program = ROOT / "bindings" / "python" / "tests" / "asynchronous.py"
    print(call(sys.executable, program, environment={**plain(), "MMN_LIBRARY": os.environ["MMN_LIBRARY"]}))


# ---------------------------------------------------------------- helpers


def library():
    return Path(os.environ["MMN_LIBRARY"]).read_bytes()


def build(folder, natives):
    for rid, files in natives.items():
        (folder / rid).mkdir(parents=True)
        for name, content in files.items():
            (folder / rid / name).write_bytes(content)
    printed = call(sys.executable, WHEELS, "--natives", folder, "--out", folder / "wheels")
    return [Path(line) for line in printed.splitlines()]


def environment_with(wheel, folder):
    """A new virtual environment with the wheel and nothing else; its interpreter."""
    call(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    call(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps", wheel)
    return python


def check_record(archive, name):
    """Every file with its size and its hash, as an installer checks them."""
    record = {path: (digest, size) for path, digest, size in csv.reader(archive.read(name).decode("utf-8").splitlines())}
    assert set(record) == set(archive.namelist()), set(record) ^ set(archive.namelist())
    for path in set(record) - {name}:
        content = archive.read(path)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert record[path] == (f"sha256={digest}", str(len(content))), path


def plain():
    """Without variables that would help to find a library or a module."""
    ours = ("MMN_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name not in ours}


def call(*command, cwd=None, environment=None, fails=False):
    """The program's output. It must end with 0, or, with `fails`, with an error."""
    command = [str(part) for part in command]
    environment = environment or plain()
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    assert (done.returncode != 0) == fails, f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout.strip()


if __name__ == "__main__":
    stories.main(globals())
