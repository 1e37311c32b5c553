#!/usr/bin/env python3
"""Fails if modules import each other, directly or through others; `make lint` runs it.

A folder counts as one module of the level above it, and tests do not count. The levels are those whose arrows docs/architecture.md
shows.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Each crate, and the folders in it whose modules have an order of their own.
LEVELS = [("src", ""), ("src", "net"), ("src", "room"), ("crates/core/src", ""), ("crates/state/src", ""), ("crates/state/src", "replica"), ("crates/transport/src", ""), ("crates/relay/src", "")]
TESTS = re.compile(r"#\[cfg\((?:test|any\(test, feature = \"fuzzing\"\))\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod (\w+)( \{|;)")
USE = re.compile(r"\b(?:pub(?:\([^)]*\))? )?use ((?:crate|super|self)\b[^;]*);")
PATH = re.compile(r"\b((?:crate|super)(?:::\w+)+)")


def main():
    found = False
    for crate, folder in LEVELS:
        for circle in circles(imports(ROOT / crate, folder)):
            print(f"{crate}/{folder or '.'}: {' -> '.join(circle)}", file=sys.stderr)
            found = True
    return 1 if found else 0


def imports(root, folder):
    """{module: the modules of that level that it imports}. "mod" is the folder's own file."""
    level = tuple(folder.split("/")) if folder else ()
    places = root.joinpath(*level)
    modules = {path.stem for path in places.iterdir() if path.suffix == ".rs" or path.is_dir()} - {"mod", "lib"}
    arrows = {}
    for path in sorted(places.rglob("*.rs")):
        own = tuple(path.relative_to(root).with_suffix("").parts)
        own = own[:-1] if own[-1] in ("mod", "lib") else own
        name = own[len(level)] if len(own) > len(level) else "mod"
        if is_test(path, root) or name in modules and "tests" in own:
            continue
        for used in paths(path.read_text(), own):
            if used[: len(level)] != level or len(used) == len(level):
                continue
            target = used[len(level)] if used[len(level)] in modules else "mod"
            # A crate's own file declares and re-exports its modules; that is no import.
            if target != name and (name != "mod" or level):
                arrows.setdefault(name, set()).add(target)
    return arrows


def is_test(path, root):
    """Whether the file, or a folder that contains it, is declared for tests only."""
    while path != root:
        parent = path.parent
        for owner in (parent / "mod.rs", parent / "lib.rs", parent.with_suffix(".rs")):
            if owner.exists() and owner != path:
                if any(match[1] == path.stem for match in TESTS.finditer(owner.read_text())):
                    return True
        path = parent
    return False


def paths(text, own):
    """All paths to modules of this crate that the text names outside of its tests, from the crate's root."""
    for match in TESTS.finditer(text):
        if match[2] == " {":
            text = text[: match.start()]
            break
    text = re.sub(r"//[^\n]*", "", text)
    for match in USE.finditer(text):
        for path in flat(match[1]):
            yield absolute(path, own)
    for match in PATH.finditer(text):
        yield absolute(match[1].split("::"), own)


def flat(tree):
    """The paths of one `use`, without its braces."""
    tree = re.sub(r"\s+", " ", tree).strip()
    if "{" not in tree:
        return [tree.split(" as ")[0].split("::")]
    head, rest = tree.split("{", 1)
    parts, depth, start = [], 0, 0
    rest = rest.rsplit("}", 1)[0]
    for place, character in enumerate(rest + ","):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(rest[start:place].strip())
            start = place + 1
    prefix = [part for part in head.strip().split("::") if part]
    return [prefix + path for part in parts if part for path in flat(part)]


def absolute(path, own):
    path = [part.strip() for part in path]
    if path[0] == "crate":
        return tuple(path[1:])
    base = list(own)
    if path[0] == "self":
        path = path[1:]
    while path and path[0] == "super":
        base, path = base[:-1], path[1:]
    return tuple(base + path)


def circles(arrows):
    """The shortest circle through each module that is on one, each circle once."""
    seen = set()
    for start in sorted(arrows):
        lines, known = [[start]], {start}
        while lines:
            line = lines.pop(0)
            for following in sorted(arrows.get(line[-1], ())):
                if following == start:
                    if frozenset(line) not in seen:
                        seen.add(frozenset(line))
                        yield [*line, start]
                    lines = []
                    break
                if following not in known:
                    known.add(following)
                    lines.append([*line, following])
    return


if __name__ == "__main__":
    sys.exit(main())
