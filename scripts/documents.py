#!/usr/bin/env python3
"""Fails where the documents and the header disagree, or a link leads nowhere; `make lint` runs it.

- Each function that the library exports and each kind of event is in a page of docs/ or in README.md. A function with
  a room must be in another page than MIGRATION, whose tables only translate names.
- Each name of the ABI in these pages is in the header.
- Each relative link of a document leads to a file, and to a heading of it.
- No document has a marker of an unfinished merge.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "include/meta_mystia_network.h"
EXPORTS = "tests/abi/exports.txt"
MIGRATION = "docs/names.md"
# Environment variables and compiler symbols.
NOT_OF_THE_ABI = re.compile(r"MMN_(?:LIBRARY|SPAN|SIM_\w+)")
LINK = re.compile(r"\]\(([^()\s]+)\)")


def main():
    header, exports = read(HEADER), read(EXPORTS)
    pages = {page: read(page) for page in documents() if page.startswith(("docs/", "README"))}
    found = [*undocumented(header, exports, pages), *unknown(header, pages), *dead_links(), *unmerged()]
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


def undocumented(header, exports, pages):
    functions = {line for line in exports.splitlines() if not line.startswith("#")}
    functions |= set(re.findall(r"^  X\([^,]+, (\w+), ", header, re.MULTILINE))
    english = {page: words(text) for page, text in pages.items() if page != "README.zh-CN.md"}
    described = set().union(*(names for page, names in english.items() if page != MIGRATION))
    for function in sorted(functions - described):
        if function.startswith("mmn_"):
            yield f"{function} is in no page of docs/ but {MIGRATION}, nor in README.md: describe it where a host looks for it"
        elif function not in english[MIGRATION]:
            yield f"{function} is in no page of docs/, nor in README.md"
    for kind in re.findall(r"^#define MMN_EVENT_(\w+)", header, re.MULTILINE):
        if not described & {kind, f"MMN_EVENT_{kind}"}:
            yield f"MMN_EVENT_{kind} is in no page of docs/, nor in README.md"


def unknown(header, pages):
    known = words(header)
    for page, text in pages.items():
        known_here = known | ({"MMN_MAX_PRIORITY"} if page == MIGRATION else set())
        for number, line in enumerate(text.splitlines(), 1):
            for match in re.finditer(r"\b(?:mmn_[a-z]\w*|Mmn[A-Z]\w*|MMN_\w+)\b(?!\.\.\.)", line):
                if match[0] not in known_here and not NOT_OF_THE_ABI.fullmatch(match[0]):
                    yield f"{page}:{number}: {match[0]} is not in {HEADER}"


def dead_links():
    for page in documents():
        for number, line in lines_of_text(page):
            for target in LINK.findall(line):
                if not re.match(r"[a-z]+:", target) and not leads_somewhere(page, target):
                    yield f"{page}:{number}: {target} leads nowhere"


def unmerged():
    for page in documents():
        for number, line in enumerate(read(page).splitlines(), 1):
            if re.match(r"(?:<{7}|>{7}) |={7}$", line):
                yield f"{page}:{number}: a marker of an unfinished merge"


def leads_somewhere(page, target):
    path, _, heading = target.partition("#")
    file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    if not file.exists():
        return False
    return not heading or file.suffix != ".md" or heading in headings(file)


def headings(file):
    """The anchors that GitHub gives to the headings of a page."""
    lines = (line for _, line in lines_of_text(file.relative_to(ROOT)))
    titles = (re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()) for line in lines if re.match(r"#+ ", line))
    return {title.replace(" ", "-") for title in titles}


def lines_of_text(page):
    """The lines of a page outside of fences, numbered."""
    fenced = False
    for number, line in enumerate(read(page).splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def documents():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


def words(text):
    return set(re.findall(r"\w+", text))


def read(path):
    return (ROOT / path).read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())
