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
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\].*\n(.*?)(?=^## \[|\Z)", changes, re.MULTILINE | re.DOTALL)
    if not section:
        print(f"release_notes.py: CHANGELOG.md has no section for {version}", file=sys.stderr)
        return 1
    print(f"# meta_mystia_network {version}\n\n{section[1].strip()}\n")
    print("Install it: docs/packages.md. Hosts of earlier versions: docs/names.md. Every file: SHA256SUMS.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
