"""The first pages work as pasted: the commands of docs/start in a fresh home, the programs on terminals, in the order of the page.

`first_pages.py STORY`. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts")]

import stories
from terminal import TIMEOUT_SECONDS, Terminal

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CTRL_C, ENTER = "\x03", "\n"


# ---------------------------------------------------------------- stories


def c_as_pasted():
    two_that_greet("docs/start/c.md", "hello")


def cpp_as_pasted():
    two_that_greet("docs/start/cpp.md", "hello")


def python_as_pasted():
    two_that_greet("docs/start/python.md", "hello")


def csharp_as_pasted():
    two_that_greet("docs/start/unity.md", "hello")


def chinese_pages_as_pasted():
    for page in ("c", "cpp", "python", "unity"):
        two_that_greet(f"docs/zh-CN/start/{page}.md", "大家好")


def server_as_pasted():
    with Page("docs/start/server.md") as page:
        page.prepare()
        server, guest = page.terminals()
        server.wait("the server prints its address", lambda lines: any(line.startswith("others dial") for line in lines))
        guest = guest()
        server.wait("the guest's greeting", lambda lines: "alice: hello" in lines)
        guest.wait("the server's greeting", lambda lines: "server: hello" in lines)
        page.end([guest, server])


def godot_script_greets_another():
    """It runs on stand-ins for Godot's classes."""
    with Page("docs/start/godot.md") as page:
        page.prepare()
        stub = ROOT / "tests/hosts/readme/Godot.cs"
        page.sh(f"mcs -langversion:7 -warnaserror -out:Game.exe Tea.cs {stub} network/*.cs")
        alice = page.start("mono Game.exe alice")
        bob = page.start("mono Game.exe bob")
        alice.wait("bob's greeting", lambda lines: "bob: hello" in lines)
        bob.wait("alice's greeting", lambda lines: "alice: hello" in lines)
        page.end([alice, bob])


def the_c_program_prints_into_a_pipe():
    """A program that buffers its lines would show nothing before its end."""
    with Page("docs/start/c.md") as page:
        page.prepare()
        with subprocess.Popen(["./hello", "alice"], cwd=page.folder(), env=page.environment, stdout=subprocess.PIPE, text=True) as process:
            with contextlib.closing(process.stdout):
                stopped = threading.Timer(TIMEOUT_SECONDS, process.kill)
                stopped.start()
                line = process.stdout.readline()
                stopped.cancel()
                running = process.poll() is None
                process.kill()
            assert running and line.startswith("others dial "), f"nothing within {TIMEOUT_SECONDS} s: {line!r}"


def two_that_greet(document, greeting):
    began = time.monotonic()
    with Page(document) as page:
        page.prepare()
        prepared = time.monotonic()
        first, second = page.terminals()
        second = second()
        first.wait("the greeting of the second", lambda lines: any(line.endswith(f"bob: {greeting}") for line in lines))
        second.wait("the greeting of the first", lambda lines: any(line.endswith(f"alice: {greeting}") for line in lines))
        for terminal in (first, second):
            terminal.wait("a leader with a name", lambda lines: any(re.search(r"leader.* (alice|bob)$", line) for line in lines))
        print(f"{document}: prepared in {prepared - began:.1f} s, greeted after {time.monotonic() - prepared:.1f} s")
        page.end([first, second])


# ---------------------------------------------------------------- a page


class Page:
    """A page's blocks, and a fresh home in which they are pasted. The first command runs in the root of the tree."""

    def __init__(self, document):
        self.document = document
        text = (ROOT / document).read_text("utf-8")
        before, heading, after = re.split(r"^## (Run it|运行)$", text, maxsplit=1, flags=re.MULTILINE)
        self.blocks = self._named(before)
        self.runs = [match[2].strip() for match in FENCE.finditer(after.split("\n## ")[0]) if match[1] == "sh"]

    @staticmethod
    def _named(text):
        """(language, text, name of the file): the name stands above the block in backticks, as in "As `hello.c`"."""
        found, end = [], 0
        for match in FENCE.finditer(text):
            names = re.findall(r"`([\w.]+\.(?:c|cpp|py|cs|txt))`", text[end : match.start()])
            found.append((match[1], match[2], names[-1] if names else None))
            end = match.end()
        return found

    def __enter__(self):
        self._ended = contextlib.ExitStack()
        self.home = Path(self._ended.enter_context(tempfile.TemporaryDirectory()))
        library = str(Path(os.environ["MMN_LIBRARY"]).resolve())
        others = ("MMN_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH", "PKG_CONFIG_PATH", "MAKEFLAGS", "MAKELEVEL")
        self.environment = {name: value for name, value in os.environ.items() if name not in others}
        # make takes LIBRARY from here: nothing is built again.
        self.environment |= {"HOME": str(self.home), "LIBRARY": library, "TERM": "dumb"}
        self.library = library
        return self

    def __exit__(self, *_):
        self._ended.close()

    def prepare(self):
        """All blocks above "Run it", in one shell, which then notes where it is and what it exports."""
        script = [f"cd {shlex.quote(str(ROOT))}"]
        for language, text, name in self.blocks:
            if language == "sh":
                # The library exists: it is the one under test.
                script.append(text.replace("make build\n", "").replace("target/release/libmeta_mystia_network.so", self.library))
            elif name:
                script.append(f"cat >{name} <<'END OF FILE'\n{text}END OF FILE")
        script.append(f"pwd >{self.home}/where")
        self.sh("\n".join(script), ROOT)

    def folder(self):
        return Path((self.home / "where").read_text().strip())

    def sh(self, script, folder=None):
        done = subprocess.run(["sh", "-ec", script], cwd=folder or self.folder(), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{self.document}:\n{script}\n{done.stdout}"

    def start(self, command):
        return self._ended.enter_context(Terminal(["sh", "-ec", f"exec {command}"], self.environment, self.folder()))

    def terminals(self):
        """The first command of "Run it", started; and how to start the second."""
        first, second = self.runs
        return self.start(first), lambda: self.start(second)

    def end(self, terminals):
        for terminal in terminals:
            terminal.type(ENTER if "mono" in terminal.command[-1] else CTRL_C)
            code = terminal.exit_code()
            text = terminal.text().rstrip()
            assert code == 0, f"{terminal.command} ended with {code}:\n{text}"
            assert "rror" not in text and "xception" not in text, text
            print(" | ".join(text.splitlines()))


if __name__ == "__main__":
    stories.main(globals())
