#!/usr/bin/env python3
"""Fails where the documents or the header use words that CONTRIBUTING.md ("Language") replaces; `make lint` runs it.

Code in backticks and between fences does not count, nor the tables of that section. The comments of the sources are not looked at.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "bindings/*/README.md",
    "examples/*/README.md",
    "include/meta_mystia_network.h",
]
# Its rows name tests, and rows of other projects' suites.
LEFT_OUT = {"docs/scenarios.md"}
WORDS = {
    r"told|tells?": "receives, is notified, shows",
    r"says": "describes, names, reports",
    r"hears": "receives, has a link with",
    r"nobody": "no member, no process, none",
    r"whoever": "the member that",
    r"farewell": "leave",
    r"those that": "the ones named by their noun",
    r"so many": "that number of, this many",
    r"the own": "its own",
    r"heirs?": "target of a transfer",
    r"reigns?": "term, leadership",
    r"handovers?": "leadership transfer",
    r"patience": "timeout",
    r"(?:goes|go|gone) by": "follows, adopts",
    r"looks away": "takes no events",
    r"in silence": "silently",
    r"find each other": "discover, connect",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"(?:{word})" for word in WORDS) + r")\b", re.IGNORECASE)


def main():
    paths = [path for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))]
    found = 0
    for path in paths:
        name = str(path.relative_to(ROOT))
        if name in LEFT_OUT:
            continue
        for number, line in prose(path.read_text()):
            for match in PATTERN.finditer(line):
                print(f"{name}:{number}: \"{match[0]}\": {better(match[0])}", file=sys.stderr)
                found += 1
    return 1 if found else 0


def prose(text):
    """The lines of a document, numbered, without code and without the rows of the section that shows the words."""
    fenced, section = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            section = line if line.startswith("## ") else section
            if section != "## Language" or not line.startswith("|"):
                yield number, re.sub(r"`[^`]*`", "", line)


def better(word):
    return next(better for pattern, better in WORDS.items() if re.fullmatch(pattern, word, re.IGNORECASE))


if __name__ == "__main__":
    sys.exit(main())
