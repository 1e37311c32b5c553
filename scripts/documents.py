#!/usr/bin/env python3
"""Fails where the documents and the header disagree, or a link leads nowhere; `make lint` runs it.

- Each function that the library exports and each kind of event is in a page of docs/ or in README.md. A function with
  a room must be in another page than MIGRATION, whose tables only translate names.
- Each name of the ABI in these pages is in the header.
- Each relative link of a document leads to a file, and to a heading of it.
- No document has a marker of an unfinished merge.
- Each target of make, script, test and example that a command in a document names exists.
- The reference has each function, constant and struct of the header.
- Each code is in the table of docs/troubleshooting.md, and each function has an example in C and in C# (docs/examples).
- Each Chinese page has the headings, the commands, the rows of tables and the programs of its English page, and each page is in the
  site.
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference

ROOT = Path(__file__).resolve().parent.parent
HEADER = "include/meta_mystia_network.h"
EXPORTS = "tests/abi/exports.txt"
MIGRATION = "docs/names.md"
# The Chinese pages and the English ones that they translate.
TRANSLATED = {"README.zh-CN.md": "README.md"}
CHINESE = "docs/zh-CN/"
SITE = "packaging/site/mkdocs.yml"
# Environment variables and compiler symbols.
NOT_OF_THE_ABI = re.compile(r"MMN_(?:LIBRARY|SPAN|SIM_\w+)")
LINK = re.compile(r"\]\(([^()\s]+)\)")


def main():
    header, exports = read(HEADER), read(EXPORTS)
    pages = {page: read(page) for page in documents() if page.startswith(("docs/", "README"))}
    found = [*undocumented(header, exports, pages), *unknown(header, pages), *dead_links(), *unmerged()]
    found += [*without_example(exports), *unreferenced(exports), *without_remedy(), *out_of_step(), *out_of_site(), *unknown_commands()]
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


def without_example(exports):
    functions = [line for line in exports.splitlines() if not line.startswith("#")]
    for _, path in reference.EXAMPLES.values():
        shown = reference.sections(path)
        for function in functions:
            if function not in shown:
                yield f"{path} has no example of {function}"
        for name in shown.keys() - set(functions):
            yield f"{path} has an example of {name}, which the library does not export"


def unreferenced(exports):
    header, written = reference.Header(), reference.pages()
    text = "\n".join(written.values())
    names = [line for line in exports.splitlines() if not line.startswith("#")] + list(header.constants) + list(header.structs)
    for name in names:
        if f"\n## {name}\n" not in text:
            yield f"scripts/reference.py writes nothing about {name}"


def without_remedy():
    header = reference.Header()
    page, heading, _ = reference.REMEDIES[0]
    remedies = reference.rows(page, heading)
    for name, number in header.codes.items():
        if str(number) not in remedies:
            yield f"{page}, {heading}: {name} ({number}) is missing"


def out_of_step():
    pairs = TRANSLATED | {page: "docs/" + page.removeprefix(CHINESE) for page in documents() if page.startswith(CHINESE)}
    for chinese, english in pairs.items():
        for what, one, other in zip(("headings", "blocks of code", "rows of tables"), outline(english), outline(chinese)):
            if chinese in TRANSLATED and what == "rows of tables":
                continue  # it has a table of documents of its own
            for number, (before, after) in enumerate(zip(one, other), 1):
                if before != after:
                    yield f"{chinese}: of the {what} number {number} is not that of {english}: {after!r}, not {before!r}"
                    break
            else:
                if len(one) != len(other):
                    yield f"{chinese} has {len(other)} {what}, {english} has {len(one)}"


def outline(page):
    """The parts that a translation keeps: the levels of the headings, the code without texts and comments, the first cells of tables' rows."""
    lines = [line for _, line in lines_of_text(page)]
    levels = [re.match(r"#+", line)[0] for line in lines if re.match(r"#+ ", line)]
    code = [bare(*match.groups()) for match in re.finditer(r"^```(\w+)\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL)]
    # Names and numbers stay as they are, words do not.
    rows = [" ".join(re.findall(r"`[^`]*`|MMN_\w+|-\d+", line.split("|")[1])) for line in lines if line.startswith("|")]
    return levels, code, rows


def bare(language, text):
    """The code without the parts that a translation changes: the texts, their sizes in bytes, the comments; commands stay."""
    if language in ("sh", "cmake", "ini"):
        return text
    code = re.sub(r'"[^"\n]*"(?:\.encode\(\))?', '""', text)
    code = re.sub(r"\bb\"\"", '""', code)
    code = re.sub(r'(""), \d+,', r"\1, N,", code)
    code = re.sub(r"/\*.*?\*/", "", code)
    return [line.rstrip() for line in re.sub(r"(//|#(?!include)).*", "", code).split("\n")]


def out_of_site():
    listed = set(re.findall(r": (\S+\.md)$", read(SITE), re.MULTILINE))
    for page in documents():
        if not page.startswith(("packaging/", "tests/")) and page not in listed:
            yield f"{page} is not in the nav of {SITE}"


def unknown_commands():
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    for page in documents():
        for match in re.finditer(r"^```sh\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL):
            for target in re.findall(r"^make ([a-z-]+)", match[1], re.MULTILINE):
                if target not in targets:
                    yield f"{page}: make {target}: the Makefile has no such target"
            for path in re.findall(r"(?<![\w./$-])(?:scripts|tests|examples|bindings|csharp-sample)/[\w./-]+\w", match[1]):
                if not (ROOT / path).exists():
                    yield f"{page}: {path} does not exist"
            for example in re.findall(r"--example (\w+)", match[1]):
                if not (ROOT / f"examples/{example}.rs").exists():
                    yield f"{page}: there is no example {example}"


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
