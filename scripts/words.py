#!/usr/bin/env python3
"""Fails where the documents, the header or comments use words that CONTRIBUTING.md ("Language") replaces; `make lint` runs it.

    scripts/words.py                     checks DOCUMENTS, and the comments and docstrings in SOURCES
    scripts/words.py --count FOLDER...   prints the number of hits in the comments of each folder, and never fails

Code in backticks and between fences does not count, nor the tables of that section.
"""

import argparse
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "docs/start/*.md",
    "bindings/*/README.md",
    "examples/*/README.md",
    "crates/*/README.md",
    "include/meta_mystia_network.h",
]
# Rows of scenarios.md name tests, and rows of other projects' suites. The old host's files are frozen.
LEFT_OUT = {"docs/scenarios.md"}
FROZEN = "tests/abi/old_host"
# Sources whose comments follow the rule: files, and folders with their subfolders.
SOURCES = [
    "build.rs",
    "src",
    "crates",
    "tests",
    "fuzz/fuzz_targets",
    "bindings",
    "csharp-sample",
    "examples",
    "benches",
    "packaging",
    "scripts",
]
# (file, line of a comment without its sign): the reason why its word is right.
ALLOWED = {}
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
# A comment names its subject first.
BEGINNING = re.compile(r"[\s/!*#\"]*(?:<\w+>)?((?:The same|That|Those|What|Who|Such)\b)")
# Strings come first, because they may contain the sign of a comment.
C_LIKE = re.compile(
    r"""\b[bc]?r(#*)".*?"\1|@"[^"]*"|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'|(?P<comment>//[^\n]*|/\*.*?\*/)""", re.DOTALL
)
SHELL = re.compile(r"(?:^|\s)(?P<comment># [^\n]*)", re.MULTILINE)
SUFFIXES = {".rs", ".cs", ".c", ".h", ".cpp", ".hpp", ".py", ".sh"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", nargs="+", metavar="FOLDER")
    folders = parser.parse_args().count
    if folders:
        for folder in folders:
            print(f"{sum(1 for path in files([folder]) for _ in hits_in_comments(path)):6} {folder}")
        return 0
    found = [hit for path in files(DOCUMENTS) if name(path) not in LEFT_OUT for hit in hits(path, prose(path.read_text()))]
    found += [hit for path in files(SOURCES) for hit in hits_in_comments(path)]
    for hit in found:
        print(hit, file=sys.stderr)
    return 1 if found else 0


def files(patterns):
    for place in (place for pattern in patterns for place in sorted(ROOT.glob(pattern))):
        inside = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.suffix in SUFFIXES)
        yield from (path for path in inside if path != Path(__file__).resolve() and not name(path).startswith(FROZEN))


def name(path):
    return str(path.relative_to(ROOT))


def hits(path, lines):
    for number, line in lines:
        for match in PATTERN.finditer(line):
            yield f"{name(path)}:{number}: \"{match[0]}\": {better(match[0])}"


def hits_in_comments(path):
    before = 0
    for number, line in comments(path):
        if (name(path), line.strip(" /!*#\"")) not in ALLOWED:
            beginning = number != before + 1 and BEGINNING.match(line)
            if beginning:
                yield f"{name(path)}:{number}: begins with \"{beginning[1]}\": name the subject first"
            yield from hits(path, [(number, line)])
        before = number


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


def comments(path):
    """The lines of the comments and docstrings of a source, numbered, without code in backticks."""
    for number, text in blocks(path.suffix, path.read_text()):
        for offset, line in enumerate(text.splitlines()):
            yield number + offset, re.sub(r"`[^`]*`", "", line)


def blocks(suffix, text):
    """(number of the first line, text) of each comment and docstring."""
    if suffix == ".py":
        before = tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            starts = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            if token.type == tokenize.COMMENT or token.type == tokenize.STRING and starts:
                yield token.start[0], token.string
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                before = token.type
        return
    for match in (SHELL if suffix == ".sh" else C_LIKE).finditer(text):
        if match["comment"]:
            yield text.count("\n", 0, match.start("comment")) + 1, match["comment"]


def better(word):
    return next(better for pattern, better in WORDS.items() if re.fullmatch(pattern, word, re.IGNORECASE))


if __name__ == "__main__":
    sys.exit(main())
