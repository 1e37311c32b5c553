"""Programs in C of the lab, built when a test first needs them."""

import functools
import subprocess

from network import ROOT


@functools.cache
def compile_c(name, source):
    """The path of the program, warnings as errors."""
    folder = ROOT / "target/lab"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    done = subprocess.run(["gcc", *flags, source, "-o", program, "-ldl"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program
