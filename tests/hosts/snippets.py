"""The code in the documents compiles: whole programs, and parts of them inside a function with the names that they use.

`snippets.py STORY`. Run by `tests/hosts`; MMN_LIBRARY names the library. `snippets/` has those names; a part that needs another one
fails.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bindings" / "python")]

import stories

HERE = Path(__file__).resolve().parent
FENCE = re.compile(r"^( *)```(csharp|cpp|c|python)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
STUBS = {"UnityEngine": "readme/Unity.cs", "using Godot": "readme/Godot.cs"}
# Plugins for BepInEx are compiled with its stand-ins by readme.py; tests/lab has the names of lab.md.
LEFT_OUT = {"csharp": "BasePlugin", "python": "Network("}


# ---------------------------------------------------------------- stories


def c_compiles():
    parts = [part for part in fences("c") if "int main(" not in part.text]
    source = '#include "names.h"\n' + "".join(placed(part, "static void on_event", "void {0}(void)\n{{\n{1}}}\n") for part in parts)
    warnings = "-Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-function -Wno-missing-prototypes".split()
    compile_text(["gcc", "-std=c11", *warnings, "-fsyntax-only", "-xc"], source, "-I", HERE / "snippets", "-I", ROOT / "include")
    reference = ROOT / "docs/examples/reference.c"
    call("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", ROOT / "include", reference)
    for whole in (part for part in fences("c") if "int main(" in part.text):
        compile_text(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fsyntax-only", "-xc"], whole.text, "-I", ROOT / "include")


def cpp_compiles():
    parts = [part for part in fences("cpp") if "int main(" not in part.text]
    source = '#include "names.hpp"\n' + "".join(placed(part, None, "void {0}()\n{{\n{1}}}\n") for part in parts)
    flags = "-std=c++17 -Wall -Wextra -Werror -Wno-unused-variable -fsyntax-only -xc++".split()
    folders = ["-I", HERE / "snippets", "-I", ROOT / "include", "-I", ROOT / "bindings/cpp"]
    compile_text(["g++", *flags], source, *folders)
    for whole in (part for part in fences("cpp") if "int main(" in part.text):
        compile_text(["g++", *flags], whole.text, *folders)


def csharp_compiles():
    with tempfile.TemporaryDirectory() as folder:
        binding = f"{folder}/binding.dll"
        call("mcs", "-langversion:7", "-target:library", f"-out:{binding}", *(ROOT / "bindings/csharp").glob("*.cs"))
        library = ["mcs", "-langversion:7", "-target:library", f"-out:{folder}/it.dll", f"-r:{binding}"]
        call(*library, "-warnaserror", ROOT / "docs/examples/Reference.cs")
        found = fences("csharp")
        wholes = [part for part in found if re.search(r"^[\w ]*\bclass ", part.text, re.MULTILINE)]
        parts = [part for part in found if part not in wholes]
        body = "internal sealed class {0} : Names\n{{\n    private async System.Threading.Tasks.Task Run()\n    {{\n{1}    }}\n}}\n"
        members = "internal sealed class {0} : Names\n{{\n{1}}}\n"
        text = "".join(placed(part, r"^void \w+\(", body, members) for part in parts)
        (Path(folder) / "parts.cs").write_text(USINGS + text, "utf-8")
        # An async method without an await, a result that nothing awaits, a local that nothing reads, a field that nothing sets.
        call(*library, "-warnaserror", "-nowarn:1998,4014,219,168,649", f"{folder}/parts.cs", HERE / "snippets/Names.cs")
        for whole in wholes:
            (Path(folder) / "whole.cs").write_text(whole.text, "utf-8")
            stubs = [HERE / stub for name, stub in STUBS.items() if name in whole.text]
            # Unity's stand-in looks into the binding's assembly.
            sources = [*stubs, *(ROOT / "bindings/csharp").glob("*.cs")] if stubs else []
            call(*[one for one in library if not sources or not one.startswith("-r:")], "-warnaserror", f"{folder}/whole.cs", *sources)


def python_has_the_names():
    """Every `mmn.name` and `aio.name` in the documents exists."""
    import meta_mystia_network as mmn
    from meta_mystia_network import aio

    modules = {"mmn": mmn, "aio": aio}
    found = 0
    for part in fences("python"):
        for node in ast.walk(ast.parse(part.text, filename=str(part))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                assert hasattr(modules[node.value.id], node.attr), f"{part}: {node.value.id}.{node.attr} does not exist"
                found += 1
    assert found > 50, found


# ---------------------------------------------------------------- the documents

USINGS = "".join(f"using {name};\n" for name in ("System", "System.Collections.Generic", "System.IO", "System.Text", "MetaMystia.Network"))


class Part:
    """A block of code of a document."""

    def __init__(self, page, line, text):
        self.page, self.line, self.text = page, line, text
        self.name = re.sub(r"\W", "_", f"{page}_{line}")

    def __repr__(self):
        return f"{self.page}:{self.line}"


def fences(language):
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    found = []
    for page in listed.stdout.splitlines():
        text = (ROOT / page).read_text("utf-8")
        for match in FENCE.finditer(text):
            code = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
            if match[2] == language and LEFT_OUT.get(language, "\0") not in code:
                found.append(Part(page, text.count("\n", 0, match.start(3)) + 1, code))
    assert found
    return found


def placed(part, of_its_own, inside, around="{1}"):
    """The part inside a function, or as it is if it begins a function `of_its_own`; the compiler's messages name its page and line."""
    own = of_its_own and re.search(of_its_own, part.text, re.MULTILINE)
    marked = f'#line {part.line} "{part.page}"\n{part.text}'
    return (around if own else inside).format(part.name, marked)


def compile_text(command, text, *options):
    done = subprocess.run([*command, *map(str, options), "-"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def call(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command[-1]}:\n{done.stdout}"


if __name__ == "__main__":
    os.environ.setdefault("MMN_LIBRARY", str(ROOT / "target/release/libmeta_mystia_network.so"))
    stories.main(globals())
