#!/usr/bin/env python3
"""Writes the reference of the site from the header, the sources and the documents: `scripts/site.py` does, for `make docs`.

    scripts/reference.py FOLDER

Functions are grouped by their file in src/ffi, whose first line is the title. The examples are the functions of EXAMPLES. What to
do about a code comes from the tables of the documents: their rows that begin with its number.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "include/meta_mystia_network.h"
EXAMPLES = {"C": ("c", "docs/examples/reference.c"), "C#": ("csharp", "docs/examples/Reference.cs")}
DECLARED = re.compile(
    r"/\*\*\n(?P<doc>(?:(?!\*/).)*?) \*/\n"
    r"(?P<code>#define (?P<constant>MMN_\w+) (?P<value>\S.*?)\n"
    r"|typedef struct (?P<struct>\w+) \{\n(?P<fields>.*?)\n\} \w+;"
    r"|typedef [^{;]*?\(\*(?P<callback>\w+)\)[^;]*;"
    r"|[\w ]+[ *](?P<function>\w+)\((?P<parameters>[^;]*)\);)",
    re.DOTALL,
)
FIELD = re.compile(r"  /\*\*\n(?P<doc>(?:(?!\*/).)*?)   \*/\n  (?P<code>[^;]*);", re.DOTALL)
NAME = re.compile(r"`?\b(mmn_[a-z]\w*|MMN_[A-Z]\w*)\b`?")
# Tables of these pages whose first column is a code: (page, heading above the table, what the rows are about).
REMEDIES = [
    ("docs/troubleshooting.md", "By code", "in general"),
    ("docs/entering.md", "Codes, and what to do", "result of a dial"),
    ("docs/messages.md", "What a send promises", "a send"),
    ("docs/state.md", "What a host calls", "a request of the state"),
    ("docs/internet.md", "What the host sees", "a relay"),
]


def main():
    folder = Path(sys.argv[1])
    for path, text in pages().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")


def pages():
    """Every page of the reference: its path in the folder `reference`, and its text."""
    header = Header()
    written = {f"{group}.md": functions(header, group) for group in header.groups}
    written["event-kinds.md"] = events(header)
    written["codes.md"] = codes(header)
    written["structs.md"] = structs(header)
    written["values.md"] = values(header)
    written["limits.md"] = limits(header)
    written["index.md"] = index(header)
    return written


class Declared:
    """A declaration of the header: its text without the signs of the comment, and its code."""

    def __init__(self, match):
        self.doc = "\n".join(line.removeprefix(" *").removeprefix(" ") for line in match["doc"].splitlines())
        self.code = match["code"].strip()
        self.value, self.fields = match["value"], match["fields"]

    @property
    def first(self):
        return self.doc.split("\n\n")[0].replace("\n", " ")


class Header:
    """Declarations by name, and the groups of functions: a file of src/ffi, its title, its functions."""

    def __init__(self):
        text = read(HEADER)
        found = list(DECLARED.finditer(text))
        self.constants = {match["constant"]: Declared(match) for match in found if match["constant"]}
        self.structs = {match["struct"]: Declared(match) for match in found if match["struct"]}
        self.callbacks = {match["callback"]: Declared(match) for match in found if match["callback"]}
        self.functions = {match["function"]: Declared(match) for match in found if match["function"]}
        self.codes = {name: int(one.value.strip("()")) for name, one in self.constants.items() if is_code(name, one)}
        self.groups = {}
        for path in sorted((ROOT / "src/ffi").rglob("*.rs"), key=str):
            source = path.read_text("utf-8")
            names = [name for name in re.findall(r'pub (?:unsafe )?extern "C" fn (\w+)', source) if name in self.functions]
            if names:
                group = path.relative_to(ROOT / "src/ffi").parts[0].removesuffix(".rs")
                title, found = self.groups.get(group, (first_sentence(source), []))
                self.groups[group] = (title, found + names)
        order = list(self.functions)
        for title, names in self.groups.values():
            names.sort(key=order.index)
        first = {group: order.index(names[0]) for group, (_, names) in self.groups.items()}
        self.groups = dict(sorted(self.groups.items(), key=lambda one: first[one[0]]))
        self.group_of = {name: group for group, (_, names) in self.groups.items() for name in names}

    def page_of(self, name):
        """The page and the anchor of a name, or None."""
        if name in self.group_of:
            return f"{self.group_of[name]}.md#{name.lower()}"
        if name.startswith("MMN_EVENT_") and name in self.constants:
            return f"event-kinds.md#{name.lower()}"
        if name in self.codes:
            return f"codes.md#{name.lower()}"
        if name in self.constants:
            return f"values.md#{name.lower()}"
        return None


def first_sentence(source):
    """The first sentence of a module's documentation."""
    text = re.match(r"(?://!.*\n)+", source)[0]
    return re.sub(r"\n?//! ?", " ", text).strip().split(". ")[0].rstrip(".")


def is_code(name, declared):
    return name == "MMN_OK" or re.fullmatch(r"\(-\d+\)", declared.value) is not None and not name.startswith("MMN_PRIORITY")


# ---------------------------------------------------------------- pages


def functions(header, group):
    title, names = header.groups[group]
    lines = [f"# {title}", "", "Generated from the header. " + " · ".join(f"[`{name}`](#{name.lower()})" for name in names), ""]
    examples = {language: sections(path) for language, (_, path) in EXAMPLES.items()}
    for name in names:
        declared = header.functions[name]
        lines += [f"## {name}", "", *fence("c", declared.code), "", linked(header, declared.doc, name), ""]
        for language, (syntax, _) in EXAMPLES.items():
            if name in examples[language]:
                lines += [f'=== "{language}"', "", *indented(fence(syntax, examples[language][name])), ""]
    return "\n".join(lines)


def events(header):
    lines = ["# Events", "", "Generated from `src/ffi/events.rs`. Each kind of event, with the fields that it sets. Every", "kind also sets"]
    lines += ["`struct_size`, `kind` and `room`; `length` comes with `data`, and `peer_index` with `peer`. All other", "fields are 0 or \"\".", ""]
    source, classes = read("src/ffi/events.rs"), csharp_events()
    for match in re.finditer(r"((?:^/// ?.*\n)+)pub const (MMN_EVENT_\w+): \w+ = (\d+);", source, re.MULTILINE):
        text = "\n".join(line.removeprefix("///").removeprefix(" ") for line in match[1].splitlines())
        prose, _, rest = text.partition("\n- ")
        name, number = match[2], match[3]
        text = linked(header, prose.strip().removeprefix("MmnEvent.kind: "), name)
        lines += [f"## {name}", "", f"Kind {number}: {text}", ""]
        if rest:
            lines += ["| field of `MmnEvent` | in the bindings | meaning |", "|---|---|---|"]
            for one in re.split(r"\n- ", rest):
                field, meaning = one.replace("\n", " ").split(": ", 1) if ": " in one.replace("\n", " ") else (one, "")
                binding = re.search(r"\((\w+)(?: or none)?\)", field)
                own = re.match(r"\w+", field)[0]
                other = binding[1] if binding and binding[1] != "or" else own
                none = ' ("" if there is none)' if "or none" in field else ""
                lines.append(f"| `{own}` | `{other}` | {linked(header, meaning, name)}{none} |")
            lines.append("")
        kind = pascal(name.removeprefix("MMN_EVENT_"))
        if kind in classes:
            lines += [f"In C#: `{classes[kind][0]}`" + (", with " + ", ".join(f"`{one}`" for one in classes[kind][1]) if classes[kind][1] else "") + ".", ""]
    return "\n".join(lines)


def codes(header):
    lines = ["# Codes", "", "Generated from the header and the tables of the documents. Functions return them, events have them in",
             "`code`, and `mmn_describe_error` has their text. `mmn_last_error_message` names the argument, its value", "and its limit.", ""]
    remedies = [(where, page, heading, rows(page, heading)) for page, heading, where in REMEDIES]
    for name, number in header.codes.items():
        lines += [f"## {name}", "", f"**{number}.** {linked(header, header.constants[name].doc.strip(), name)}", ""]
        found = [(where, page, heading, row) for where, page, heading, table in remedies for row in table.get(str(number), []) + table.get(name, [])]
        if found:
            lines += ["| | cause | what to do |", "|---|---|---|"]
            lines += [f"| [{where}](../{page}#{slug(heading)}) | {relinked(page, row[0])} | {relinked(page, row[1])} |" for where, page, heading, row in found]
            lines.append("")
        returned = [one for one, declared in header.functions.items() if re.search(rf"\b{name}\b", declared.doc)]
        if returned and number:
            lines += ["Named by " + ", ".join(f"[`{one}`]({header.page_of(one)})" for one in returned) + ".", ""]
    return "\n".join(lines)


def structs(header):
    lines = ["# Structs and callbacks", "", "Generated from the header. The default of a field is in brackets.", ""]
    for name, declared in header.structs.items():
        lines += [f"## {name}", "", linked(header, declared.doc, name), ""]
        for match in FIELD.finditer(declared.fields + "\n"):
            code = re.sub(r"\s+", " ", match["code"].strip())
            field = re.search(r"(\w+)(?:\[[^\]]*\])?$", code) or re.search(r"\(\*(\w+)\)", code)
            text = "\n".join(line.strip().removeprefix("*").removeprefix(" ") for line in match["doc"].splitlines())
            lines += [f"### {name}.{field[1]}", "", *fence("c", code + ";"), "", linked(header, text, name), ""]
    for name, declared in header.callbacks.items():
        lines += [f"## {name}", "", *fence("c", declared.code), "", linked(header, declared.doc, name), ""]
    return "\n".join(lines)


def values(header):
    lines = ["# Values", "", "Generated from the header: the constants beside [events](event-kinds.md) and [codes](codes.md).", ""]
    for name, declared in header.constants.items():
        if not name.startswith("MMN_EVENT_") and name not in header.codes:
            lines += [f"## {name}", "", f"`{declared.value}`: {linked(header, declared.doc, name)}", ""]
    return "\n".join(lines)


def limits(header):
    version, rust = (re.search(rf'^{key} = "(.*)"', read("Cargo.toml"), re.MULTILINE)[1] for key in ("version", "rust-version"))
    protocol = re.search(r"mmn/\d+", read("docs/protocol.md"))[0]
    python = re.search(r'requires-python = ">=(.*)"', read("bindings/python/pyproject.toml"))[1]
    csharp = re.search(r"<LangVersion>(.*)<", read("bindings/csharp/MetaMystiaNetwork.csproj"))[1]
    lines = ["# Limits and versions", "", "Generated from the sources.", "", "## Versions", "", "| | |", "|---|---|",
             f"| library | {version} |", f"| C ABI ([what may change](../docs/abi.md)) | {header.constants['MMN_ABI_VERSION'].value} |",
             f"| protocol between members ([on the wire](../docs/protocol.md)) | `{protocol}` |",
             f"| Rust, to build it | {rust} or newer |", f"| C# | {csharp} or newer |", "| C++ | 17 |", f"| Python | {python} or newer |",
             "", "Platforms: [where it was tested](../README.md#where-it-was-tested), [packages](../docs/packages.md).",
             "", "## Limits of the interface", "", "| constant | value | |", "|---|---|---|"]
    for name, declared in header.constants.items():
        if re.match(r"MMN_(MAX|MIN|ROOM_CODE|IDENTITY)", name) and name not in header.codes:
            lines.append(f"| [`{name}`](values.md#{name.lower()}) | {declared.value} | {linked(header, declared.first, name)} |")
    lines += ["", "## More limits", "",
              "- [links, newcomers and guesses](../docs/entering.md#limits)", "- [messages and queues](../docs/messages.md#sends)",
              "- [a room's state](../docs/state.md#limits)", "- [a relay](../crates/relay/README.md#limits)",
              "- [a room's options](structs.md#mmnoptions), each with its range", ""]
    return "\n".join(lines)


def index(header):
    lines = ["# Reference", "", "| page | functions |", "|---|---|"]
    for group, (title, names) in header.groups.items():
        lines.append(f"| [{title}]({group}.md) | " + ", ".join(f"[`{name}`]({group}.md#{name.lower()})" for name in names) + " |")
    lines += ["", "[Events](event-kinds.md) · [codes](codes.md) · [structs and callbacks](structs.md) · [values](values.md) · [limits and versions](limits.md)", ""]
    lines += ["## For every function", "", *for_every_function(), ""]
    return "\n".join(lines)


# ---------------------------------------------------------------- parts


def for_every_function():
    text = re.search(r"^ \* For every function:\n(.*?)^ \*\n \* Licence", read(HEADER), re.MULTILINE | re.DOTALL)[1]
    return [line.removeprefix(" *").removeprefix(" ") for line in text.splitlines()]


def sections(path):
    """The bodies of the functions of a file of examples, by the names in the line above each."""
    found = {}
    for match in re.finditer(r"^ *//: ([^\n]*)\n.*?^( *)\{\n(.*?)^\2\}$", read(path), re.MULTILINE | re.DOTALL):
        body = [line.removeprefix(match[2] + "    ") for line in match[3].rstrip().splitlines()]
        for name in match[1].split():
            found[name] = "\n".join(body)
    return found


def csharp_events():
    """The class and its properties for each kind of event in C#."""
    found = {}
    for match in re.finditer(r"class (\w+) : RoomEvent\n(.*?)\n    \}", read("bindings/csharp/RoomEvents.cs"), re.DOTALL):
        kind = re.search(r"EventKind\.(\w+)", match[2])[1]
        found[kind] = (match[1], re.findall(r"public [\w\[\]?]+ (\w+) \{ get; internal", match[2]))
    return found


def rows(page, heading):
    """The rows with codes below a heading: number or name -> [(cause, what to do)]."""
    if not (ROOT / page).exists():
        return {}
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", read(page), re.MULTILINE | re.DOTALL)
    found = {}
    for line in section[1].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        code = re.match(r"`?(-?\d+|MMN_\w+)\b", cells[0]) if len(cells) > 1 else None
        if code:
            found.setdefault(code[1], []).append((cells[-2], cells[-1]) if len(cells) > 2 else (cells[1], ""))
    return found


def relinked(page, text):
    """A cell of a page with its links as seen from the reference."""
    folder = Path(page).parent

    def moved(match):
        target = match[1]
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = page if target.startswith("#") else str(folder / target.split("#")[0])
        heading = "#" + target.split("#")[1] if "#" in target else ""
        return f"](../{path}{heading})"

    return re.sub(r"\]\(([^()\s]+)\)", moved, text)


def linked(header, text, own):
    """The text of a comment as Markdown, its names linked; code, indented by four or fenced, stays as it is."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        lines.append(line if fenced or line.startswith(("    ", "```")) else linked_line(header, line, own))
    return "\n".join(lines)


def linked_line(header, line, own):
    def link(match):
        page = header.page_of(match[1]) if match[1] != own else None
        return f"[`{match[1]}`]({page})" if page else f"`{match[1]}`"

    bullet = "- " if line.startswith("- ") else ""
    # Brackets around defaults are no links, and a product is no emphasis. Code stays as it is.
    parts = re.split(r"(`[^`]*`)", line.removeprefix(bullet))
    return bullet + "".join(NAME.sub(link, part if number % 2 else re.sub(r"([*<\[\]])", r"\\\1", part)) for number, part in enumerate(parts))


def fence(language, code):
    return [f"```{language}", *code.splitlines(), "```"]


def indented(lines):
    return ["    " + line if line else "" for line in lines]


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def pascal(name):
    return "".join(word.capitalize() for word in name.split("_"))


def read(path):
    return (ROOT / path).read_text("utf-8")


if __name__ == "__main__":
    main()
