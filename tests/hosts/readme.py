"""The programs in the READMEs work as written: extracted, built by the READMEs' own commands, run on terminals; each receives the
hello of all others.

`readme.py STORY`. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bindings" / "python")]

import demo
import stories
import meta_mystia_network as mmn
from terminal import Terminal

ENGLISH, CHINESE, CSHARP = ("README.md", "hello"), ("README.zh-CN.md", "大家好"), ("bindings/csharp/README.md", "hello")
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+:\d+")


# ---------------------------------------------------------------- stories


def the_programs_of_the_readme_greet_each_other():
    meet(*ENGLISH)


def the_programs_of_the_chinese_readme_greet_each_other():
    meet(*CHINESE)


def the_console_program_in_csharp_greets_another_of_its_kind():
    with Workplace(*CSHARP) as place:
        (program,) = place.programs()
        place.room([program, program.renamed("bob")], dial=True)


def the_programs_discover_each_other_without_an_address():
    with Workplace(*ENGLISH) as place:
        place.room(place.programs(), dial=False)


def the_plugin_for_bepinex_compiles():
    """It has no using directives; an editor adds them."""
    usings = "using System; using BepInEx; using BepInEx.Unity.IL2CPP; using MetaMystia.Network;\n"
    with Workplace(*CSHARP) as place:
        (plugin,) = [fence for fence in place.fences if ": BasePlugin" in fence.text]
        (place.path / "Plugin.cs").write_text(usings + plugin.text, "utf-8")
        stub = ROOT / "tests" / "hosts" / "readme" / "BepInEx.cs"
        place.call(f"mcs -langversion:7 -warnaserror -target:library Plugin.cs {stub} bindings/csharp/*.cs")


def the_unity_script_leaves_with_its_scene():
    ends_without_a_room("destroy")


def the_unity_script_leaves_before_its_scripts_are_reloaded():
    ends_without_a_room("reload")


def ends_without_a_room(end):
    """The script has left its room after the messages that Unity sends at this end."""
    with Workplace(*ENGLISH) as place:
        alice, bob = place.programs()[:2]
        alice.run = alice.run.replace(" quit", f" {end}")
        place.room([alice, bob], dial=True)


# Each dials the previous one, in both orders: so each is dialled, and each dials.
def meet(document, greeting):
    with Workplace(document, greeting) as place:
        programs = place.programs()
        assert [program.language for program in programs] == ["csharp", "cpp", "python", "c"], programs
        place.room(programs, dial=True)
        place.room(programs[::-1], dial=True)


# ---------------------------------------------------------------- the text of a README


class Fence:
    """A fenced block: its language, its text, and the name that the text above it gives to the file ("as `hello.c`")."""

    def __init__(self, language, text, file):
        self.language, self.text, self.file = language, text, file


def fences(markdown):
    found, end = [], 0
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL):
        names = re.findall(r"`(\w+\.(?:c|cpp|py|cs))`", markdown[end : match.start()])
        found.append(Fence(match[1], match[2], names[-1] if names else None))
        end = match.end()
    return found


# ---------------------------------------------------------------- building and running it


class Program:
    """A program of a README, built; `run` is the script that starts it, to which an address may be appended."""

    def __init__(self, language, name, run):
        self.language, self.name, self.run = language, name, run

    def renamed(self, name):
        assert self.run.endswith(" " + self.name), self.run
        return Program(self.language, name, self.run.removesuffix(self.name) + name)

    def __repr__(self):
        return f"{self.name} ({self.language})"


class Workplace:
    """The READMEs' root of the repository: a directory with its headers, bindings and library, and the programs."""

    def __init__(self, document, greeting):
        self.greeting = greeting
        self.fences = fences((ROOT / document).read_text("utf-8"))

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name)
        for name in ("include", "bindings"):
            (self.path / name).symlink_to(ROOT / name)
        (self.path / "target" / "release").mkdir(parents=True)
        (self.path / "target" / "release" / demo.LIBRARY_NAME).symlink_to(Path(os.environ["MMN_LIBRARY"]).resolve())
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def programs(self):
        """Writes and builds the programs of the README, in its order."""
        found = []
        for fence, following in zip(self.fences, self.fences[1:]):
            if ": MonoBehaviour" in fence.text:
                found.append(self._unity(fence))
            elif fence.file and fence.language != "sh":
                assert following.language == "sh", f"no command follows {fence.file}"
                (self.path / fence.file).write_text(fence.text, "utf-8")
                found.append(self._commands(fence.language, following.text))
        return found

    def _commands(self, language, script):
        *before, last = script.strip().split("\n")
        # The library exists already. Exports count for the last command, too.
        exports = [line for line in before if line.startswith("export ")]
        self.call("\n".join(line for line in before if not line.startswith("cargo build")))
        return Program(language, last.split()[-1], "\n".join(exports + [last]))

    def _unity(self, fence):
        (self.path / "Script.cs").write_text(fence.text, "utf-8")
        stub = ROOT / "tests" / "hosts" / "readme" / "Unity.cs"
        self.call(f"mcs -langversion:7 -warnaserror -out:Unity.exe Script.cs {stub} bindings/csharp/*.cs")
        name = re.search(r'string id = "(\w+)"', fence.text)[1]
        return Program(fence.language, name, "LD_LIBRARY_PATH=target/release mono Unity.exe quit")

    def call(self, script):
        done = subprocess.run(["sh", "-ec", script], cwd=self.path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and not done.stdout, f"{script}\n{done.stdout.decode()}"

    def room(self, programs, dial):
        """One room of these programs: each greets each other one, and Enter ends each with 0."""
        with contextlib.ExitStack() as ended:
            terminals, address = {}, None
            for program in programs:
                script = f"{program.run} {address}" if address else program.run
                terminal = Terminal(["sh", "-ec", script], environment(), self.path)
                terminals[program] = ended.enter_context(terminal)
                printed = terminal.wait(f"{program} prints its address", lambda lines: ADDRESS.search("\n".join(lines)))
                if address:
                    # Discovery may be faster than the dial, which is a success as well.
                    results = tuple(f"{address}: {mmn.describe_error(code)}" for code in (mmn.OK, mmn.ALREADY_CONNECTED))
                    shown = lambda lines: any(line.endswith(results) for line in lines)
                    terminal.wait(f"{program} shows the result of its dial", shown)
                address = printed[0] if dial else None
            for program, terminal in terminals.items():
                for other in programs:
                    if other is not program:
                        hello = f"{other.name}: {self.greeting}"
                        terminal.wait(f"{program} shows {hello!r}", lambda lines: hello in lines)
                terminal.wait(f"{program} shows the leader", lambda lines: any("leader" in line for line in lines))
            for program, terminal in terminals.items():
                terminal.type("\n")
                code = terminal.exit_code()
                text = terminal.text().rstrip()
                assert code == 0, f"{program} ended with {code}:\n{text}"
                assert "error" not in text and "xception" not in text, f"{program}:\n{text}"
                print(f"{program}: " + text.replace("\n", " | "))


def environment():
    """Without variables that would help a program to find the library in another way than its README describes.

    The terminal is one that cannot move its cursor: Mono would otherwise mix its control sequences into the lines.
    """
    ours = ("MMN_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH")
    return {**{name: value for name, value in os.environ.items() if name not in ours}, "TERM": "dumb"}


if __name__ == "__main__":
    stories.main(globals())
