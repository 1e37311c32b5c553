#!/usr/bin/env python3
"""Prints the notes of a release: the section of CHANGELOG.md for the version in Cargo.toml, or for the given one.

    scripts/release_notes.py [VERSION]
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    current = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE)[1]
    version = sys.argv[1] if len(sys.argv) > 1 else current
    try:
        changes = notes(version)
    except LookupError as error:
        print(f"release_notes.py: {error}", file=sys.stderr)
        return 1
    print(f"# meta_mystia_network {version}\n\n{changes}\n")
    print("Installation: docs/packages.md. Hosts of earlier versions: docs/names.md. SHA256SUMS has every file.")
    return 0


def notes(version):
    """The changes of a version, as the changelog has them."""
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changes, re.MULTILINE | re.DOTALL)
    if not section or not section[1].strip():
        raise LookupError(f"CHANGELOG.md has no changes for {version}")
    return section[1].strip()


if __name__ == "__main__":
    sys.exit(main())
