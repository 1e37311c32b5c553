"""Runs a story: a function of the file, named by the first argument, in a network with nothing but loopback."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))
import demo  # noqa: E402


def main(stories):
    name = sys.argv[1]
    demo.isolate()
    stories[name]()
    print(f"ok {name}")
