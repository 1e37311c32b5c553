#!/usr/bin/env python3
"""Builds the site of the documents, in target/site/html, and checks it: `make docs` does.

    scripts/site.py [--without-pictures]

The pages are the documents of the tree, where they are. A link to another file of the tree leads to a page with its text, and a
name of the ABI in a page to the reference (scripts/reference.py). A line `<!-- picture: NAME.html ARGUMENTS -->` becomes the picture
that `cargo run --example simulate` draws with these arguments; with `real`, that of scripts/picture_of_a_room.py. The check fails
for a link that leads nowhere, and for anything that a page would load from another site.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target" / "site"
SOURCE, HTML = SITE / "source", SITE / "html"
CONFIG = "packaging/site/mkdocs.yml"
MKDOCS = ROOT / "target/tools/site/bin/mkdocs"
# Documents of packages, of frozen tests: no pages.
LEFT_OUT = ("packaging/", "tests/")
LINK = re.compile(r"(\]\()([^()\s]+)(\))")
PICTURE = re.compile(r"^<!-- picture: (\S+)((?: \S+)*) -->$", re.MULTILINE)
LANGUAGES = {".rs": "rust", ".cs": "csharp", ".c": "c", ".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".toml": "toml", ".sh": "sh", ".js": "js", ".mjs": "js", ".cjs": "js", ".java": "java", ".lua": "lua"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--without-pictures", action="store_true", help="leave the pictures out, which take the simulator")
    pictures = not parser.parse_args().without_pictures
    shutil.rmtree(SITE, ignore_errors=True)
    Source(pictures).write()
    built = subprocess.run([MKDOCS, "build", "--strict", "--config-file", SITE / "mkdocs.yml"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if built.returncode != 0:
        print(built.stdout, file=sys.stderr)
        return built.returncode
    # It names other pages as from the root of a server.
    (HTML / "404.html").unlink()
    faults = [*check(HTML), *search(HTML)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{sum(1 for _ in HTML.rglob('*.html'))} pages: {HTML.relative_to(ROOT)}/index.html")
    return 1 if faults else 0


# ---------------------------------------------------------------- the pages


class Source:
    """The folder that mkdocs reads."""

    def __init__(self, pictures):
        self.pictures = pictures
        self.header = reference.Header()
        self.pages = [page for page in documents() if not page.startswith(LEFT_OUT)]
        self.shown = set()  # files and folders of the tree with a page of their own

    def write(self):
        generated = reference.pages()
        for path, text in generated.items():
            self.put(f"reference/{path}", self.moved(text, f"reference/{path}"))
        for page in self.pages:
            text = (ROOT / page).read_text("utf-8")
            self.put(page, self.drawn(self.named(self.moved(text, page), page), page))
        for path in sorted(self.shown):
            self.put(f"source/{path}.md", shown(path))
        self.put("assets/iframe-worker.js", (ROOT / "packaging/site/iframe-worker.js").read_text("utf-8"))
        self.configure(generated)

    def put(self, path, text):
        (SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / path).write_text(text, "utf-8")

    def moved(self, text, page):
        """The text with its links to files that are no pages changed to the pages that show them."""
        return outside_fences(text, lambda line: LINK.sub(lambda match: match[1] + self.target(match[2], page) + match[3], line))

    def target(self, link, page):
        if re.match(r"[a-z]+:|#", link):
            return link
        path, _, heading = link.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if file in self.pages or file.startswith("reference/") or not (ROOT / file).exists():
            return link
        if f"{file}/README.md" in self.pages:
            other = f"{file}/README.md"
        else:
            self.shown.add(file)
            other = f"source/{file}.md"
        return os.path.relpath(other, os.path.dirname(page) or ".") + (f"#{heading}" if heading else "")

    def named(self, text, page):
        """The text with links from names of the ABI to the reference."""
        up = "../" * page.count("/")

        def link(match):
            place = self.header.page_of(match[1])
            return f"[`{match[1]}`]({up}reference/{place})" if place else match[0]

        def line_with_links(line):
            if line.startswith("#"):
                return line
            # A link cannot be inside another one.
            parts = re.split(r"(\[[^\]]*\]\([^()]*\))", line)
            return "".join(part if number % 2 else re.sub(r"`(mmn_[a-z]\w*|MMN_[A-Z]\w*)`", link, part) for number, part in enumerate(parts))

        return outside_fences(text, line_with_links)

    def drawn(self, text, page):
        return PICTURE.sub(lambda match: self.picture(match[1], match[2].split(), page), text)

    def picture(self, name, arguments, page):
        if not self.pictures:
            return "*(no pictures in this build)*"
        out = SOURCE / "pictures" / name
        out.parent.mkdir(parents=True, exist_ok=True)
        simulated = ["cargo", "run", "--quiet", "--release", "--example", "simulate", "--", *arguments, "--out", out]
        real = [sys.executable, ROOT / "scripts/picture_of_a_room.py", out]
        subprocess.run(real if arguments == ["real"] else simulated, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        place = "../" * page.count("/") + f"pictures/{name}"
        return f'<iframe src="{place}" title="{name}" width="100%" height="560" loading="lazy"></iframe>\n\n<a href="{place}">the picture alone</a>'

    def configure(self, generated):
        titles = {path: re.split(r"[:,]", text.split("\n")[0].removeprefix("# "))[0] for path, text in generated.items()}
        pages = ["reference/index.md"] + [f"{titles[path]}: reference/{path}" for path in generated if path != "index.md"]
        config = (ROOT / CONFIG).read_text("utf-8").replace("  - Reference: []\n", "  - Reference:\n" + "".join(f"      - {page}\n" for page in pages))
        shown_pages = "".join(f"  /source/{path}.md\n" for path in sorted(self.shown))
        (SITE / "mkdocs.yml").write_text(config + "not_in_nav: |\n" + shown_pages, "utf-8")


def shown(path):
    """A page with the text of a file of the tree, or with the names of a folder's files."""
    file = ROOT / path
    if file.is_dir():
        names = tracked(f"{path}/*")
        return f"# {path}\n\n" + "".join(f"- `{name}`\n" for name in names)
    text = file.read_text("utf-8").rstrip("\n")
    mark = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    return f"# {path}\n\n{mark}{LANGUAGES.get(file.suffix, 'text')}\n{text}\n{mark}\n"


def outside_fences(text, change):
    lines, fenced = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(line if fenced else change(line))
    return "\n".join(lines)


def documents():
    return tracked("*.md")


def tracked(pattern):
    """Files of the tree, new ones included."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern], cwd=ROOT, check=True, capture_output=True, text=True)
    return [line for line in sorted(set(listed.stdout.splitlines())) if (ROOT / line).exists()]


# ---------------------------------------------------------------- the check


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        # A relation between pages loads nothing.
        if tag in self.LOADS and found.get(self.LOADS[tag]) and found.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(found[self.LOADS[tag]])


def check(folder):
    pages = {file: Page(file.read_text("utf-8")) for file in folder.rglob("*.html")}
    for file, page in pages.items():
        for link in page.loads:
            if urlsplit(link).netloc:
                yield f"{file.relative_to(folder)} loads {link} from another site"
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{file.relative_to(folder)}: {link} leads nowhere"
            elif parts.fragment and target in pages and "pictures" not in target.parts and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{file.relative_to(folder)}: {link} has no such heading"


def search(folder):
    """Searches in a browser, on pages that are opened as files. Without a browser it does nothing."""
    browser = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if not browser:
        print("site.py: no chromium, so the search is not tried", file=sys.stderr)
        return
    for text, found in (("mmn_kick", "reference/members.html"), ("中继", "docs/zh-CN/internet.html")):
        page = f"file://{folder}/index.html?q={quote(text)}"
        shown = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=30000", "--dump-dom", page], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120)
        # Results mark the words on their page by this parameter.
        if f"{found}?h=" not in shown.stdout:
            yield f"the search for {text} does not show {found}"


if __name__ == "__main__":
    sys.exit(main())
