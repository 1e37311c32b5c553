#!/usr/bin/env python3
"""Hosts for Windows, under Wine, in rooms with processes of Linux on the same loopback (`make test-windows`).

They load the DLL of target/dist/win-x64, and link its import library of MinGW. C# runs on Windows' CoreCLR. Arguments name
stories (the functions `story_*`); without any, all run. Exits with 0 only if everything happened.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "hosts")]
from demo import PHASE_SECONDS, DemoFailed, Host, Room, Screen, isolate, run_tool  # noqa: E402
import packages_c  # noqa: E402
import packages_csharp  # noqa: E402

WINE = "/usr/lib/wine/wine64"
WINESERVER = "/usr/lib/wine/wineserver64"
MINGW = "x86_64-w64-mingw32-"
DOTNET = ROOT / "target/tools/dotnetcore2-windows/bin/dotnet.exe"
DLL = "meta_mystia_network.dll"
SO = ROOT / "target/release/libmeta_mystia_network.so"
LIMIT = 2 * PHASE_SECONDS  # Wine starts slowly


class Programs:
    """The hosts, built into a folder of their own, and the command that starts each."""

    def __init__(self, shipped, folder, prefix):
        self.shipped = shipped
        self.folder = folder
        self.prefix = {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "DISPLAY": ""}
        self.wine = {**os.environ, **self.prefix, "MMN_LIBRARY": DLL}
        self.linux = dict(os.environ, MMN_LIBRARY=str(SO), LD_LIBRARY_PATH=str(SO.parent))

    def build(self):
        include = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'bindings/cpp'}"]
        strict = ["-O1", "-Wall", "-Wextra", "-Werror"]
        shutil.copy(self.shipped / DLL, self.folder)
        implib = self.shipped / f"lib{DLL}.a"
        voter = ["-Wno-unused-function", ROOT / "tests/dist/voter.c"]  # it uses only a part of examples/c/platform.h
        gcc, gxx = MINGW + "gcc-posix", MINGW + "g++-posix"
        out = self.folder
        run_tool([gcc, "-std=gnu11", *strict, *include, ROOT / "examples/c/lobby.c", "-o", out / "lobby-c.exe"])
        run_tool([gcc, "-std=gnu11", *strict, *include, *voter, implib, "-o", out / "voter.exe"])
        # At run time only our DLL must be in reach, not MinGW's.
        run_tool(
            [gxx, "-std=c++17", *strict, *include, "-static", ROOT / "examples/cpp/lobby.cpp", implib, "-o", out / "lobby-cpp.exe"]
        )
        sources = [*(ROOT / "csharp-sample").glob("*.cs"), *(ROOT / "bindings/csharp").glob("*.cs")]
        packages_csharp.coreclr(out / "Lobby.dll", sorted(sources), [])
        run_tool(
            ["gcc", "-std=gnu11", *strict, *include, *voter]
            + ["-o", out / "voter", "-pthread", f"-L{SO.parent}", "-lmeta_mystia_network"]
        )

    def start_wine(self):
        """Makes the folder of Wine's drive C, with the DLL that versions before 8.13 lack."""
        done = subprocess.run([WINE, "wineboot", "--init"], env=self.wine, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180)
        if done.returncode != 0:
            raise DemoFailed(f"wineboot failed: {done.stdout.decode('utf-8', 'replace')}")
        shim = Path(self.prefix["WINEPREFIX"]) / "drive_c/windows/system32/bcryptprimitives.dll"
        if not shim.exists():
            run_tool([MINGW + "gcc-posix", "-shared", "-o", shim, ROOT / "tests/dist/bcryptprimitives.c", "-ladvapi32"])

    def end_wine(self):
        """Ends its server, and every process in it."""
        subprocess.run([WINESERVER, "--kill"], env=self.wine, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def windows(self, program, *arguments):
        return [WINE, str(self.folder / program), *map(str, arguments)], self.wine

    def csharp(self):
        return self.windows(DOTNET, self.folder / "Lobby.dll")

    def python(self):
        return [sys.executable, str(ROOT / "examples/python/lobby.py")], self.linux


def story_lobby(programs, screen):
    """Two hosts in C#, one in C, one in C++ and a process of Linux; the leader is killed, on Windows and then on Linux."""
    commands = {
        "linux": programs.python(),
        "csharp": programs.csharp(),
        "мod": programs.csharp(),
        "c": programs.windows("lobby-c.exe"),
        "cpp": programs.windows("lobby-cpp.exe"),
    }
    with Room(commands, screen) as room:
        room.start(LIMIT)
        room.wait_for_agreement(room.hosts, LIMIT)
        for number, host in enumerate(room.hosts, 1):
            host.type(f"/add {number}")
            host.type(f"{host.name} was here")
        state = room.wait_for_state(room.hosts, counter=1 + 2 + 3 + 4 + 5, lines=5, timeout=LIMIT)
        room.wait_for_movement(room.hosts, LIMIT)
        screen.note("five hosts in one room agree, exchange messages and share their state", good=True)

        for number, name in enumerate(["csharp", "linux"], 1):
            hand_over(room, name)
            victim = room.by_name(name)
            killed_at = victim.kill()
            room.hosts.remove(victim)
            leader = room.wait_for_agreement(room.hosts, LIMIT, since=killed_at)
            for host in room.hosts:
                host.type(f"/add {10 * number}")
            state = room.wait_for_state(room.hosts, state.counter + 10 * number * len(room.hosts), state.lines, timeout=LIMIT)
            room.wait_for_movement(room.hosts, LIMIT)
            screen.note(f"{name} was killed; {leader} leads, messages go both ways, and the state is whole", good=True)
        room.leave(room.hosts)


def hand_over(room, name):
    """Makes that host the leader, by a transfer: an assigned leader has no successor."""
    if room.hosts[0].leader != name:
        room.by_name(room.hosts[0].leader).type(f"/transfer {name}")

    def others():
        wrong = [host.name for host in room.hosts if host.leader != name]
        return f"{name} does not lead for {wrong}" if wrong else None

    room.wait(room.hosts, LIMIT, others)


def story_quorum(programs, screen):
    """A static quorum: a killed voter returns with the votes and the key of its file, and no other member gets them."""
    voters = "alpha,beta,linux"
    with tempfile.TemporaryDirectory() as states:
        for name in voters.split(","):
            (Path(states) / name).mkdir()

        def command(name, roster=voters):
            started = [str(programs.folder / "voter")] if name == "linux" else programs.windows("voter.exe")[0]
            return started + [name, "quorum", str(Path(states) / name), roster], programs.linux if name == "linux" else programs.wine

        class Voter(Host):
            def arguments(self, _, contact):
                return [contact] if contact else []

        with Room({}, screen) as room:
            room.hosts = [Voter(name, *command(name), screen, room.changed) for name in voters.split(",")]
            room.start(LIMIT)
            leader = room.wait_for_agreement(room.hosts, LIMIT)
            screen.note(f"a static quorum of two Windows hosts and one of Linux; {leader} leads", good=True)

            victim = room.by_name("alpha" if leader == "linux" else leader)
            refused = prints(command(victim.name), "error -11")
            screen.note(f"its state is locked: {refused}", good=True)
            killed_at = victim.kill()
            room.hosts.remove(victim)
            room.wait_for_agreement(room.hosts, LIMIT, since=killed_at)
            files = sorted(path.name for path in (Path(states) / victim.name).iterdir())
            screen.note(f"{victim.name} was killed; what is left of it: {files}", good=True)
            refused = prints(command(victim.name, roster=f"{voters},gamma"), "error -3")
            screen.note(f"with another roster: {refused}", good=True)

            back = Voter(victim.name, *command(victim.name), screen, room.changed)
            back.start(room.session, room.hosts[0].address)
            room.hosts.append(back)
            room.wait_for_agreement(room.hosts, LIMIT, since=killed_at)
            screen.note(f"{victim.name} is back with its key and its votes", good=True)
            room.leave(room.hosts)


def story_packages(programs, screen):
    """The C# packages with this DLL, installed into empty projects, and Room.LoadNative."""
    built = programs.folder / "packages"
    run_tool([sys.executable, ROOT / "packaging/csharp/packages.py", "--natives", programs.shipped.parent, "--out", built])
    os.environ["MMN_PACKAGES"] = str(built)
    windows = packages_csharp.Runtime([WINE, str(DOTNET)], "win-x64", DLL, programs.shipped / DLL, programs.prefix, drive="Z:")
    play = [
        packages_csharp.a_program_with_the_nuget_package_greets_another_under_coreclr,
        packages_csharp.a_plugin_with_the_bepinex_package_plays_under_coreclr,
        packages_csharp.a_library_is_loaded_from_a_path_under_coreclr,
    ]
    for story in play:
        checked(screen, story, windows)


def story_c(programs, screen):
    """The headers in Windows' compilers, and a CMake project that finds the folder of `make dist` and runs."""
    checked(screen, packages_c.the_cpp_header_takes_little_of_windows)
    checked(screen, packages_c.the_headers_compile_for_windows)
    checked(screen, packages_c.a_cmake_project_links_for_windows)
    checked(screen, a_project_of_cmake_runs, programs)


def a_project_of_cmake_runs(programs):
    build = packages_c.build_project_for_windows(programs.shipped, programs.folder / "cmake")
    packages_c.meet([WINE, build / "hello_c.exe"], [WINE, build / "hello_cpp.exe"], programs.wine)


def checked(screen, story, *arguments):
    try:
        story(*arguments)
    except AssertionError as error:
        raise DemoFailed(f"{story.__name__}: {error}") from None
    screen.note(story.__name__.replace("_", " "), good=True)


def prints(started, expected):
    """The last line of a host that must be refused."""
    command, environment = started
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    if done.returncode != 1 or not lines or expected not in lines[-1]:
        raise DemoFailed(f"{expected!r} expected, exit code 1; it was {done.returncode}: {lines}")
    return lines[-1]


STORIES = {name.removeprefix("story_"): function for name, function in globals().items() if name.startswith("story_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stories", nargs="*", metavar="STORY", help=f"of {', '.join(STORIES)}")
    parser.add_argument("--shipped", type=Path, default=ROOT / "target/dist/win-x64", help="where the DLL and its import library are")
    arguments = parser.parse_args()
    if unknown := set(arguments.stories) - set(STORIES):
        parser.error(f"{sorted(unknown)} are none of {', '.join(STORIES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    screen = Screen()
    os.environ["MMN_LIBRARY"] = str(SO)  # for the stories of packages, which need one
    try:
        for file in (arguments.shipped / DLL, SO, DOTNET, Path(WINE)):
            if not file.exists():
                raise DemoFailed(f"{file} is missing; `make test-windows` builds or installs it")
        screen.note(isolate())
        with contextlib.ExitStack() as held:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
            (folder / "hosts").mkdir()
            programs = Programs(arguments.shipped.resolve(), folder / "hosts", folder / "wine")
            screen.note("building the hosts")
            programs.build()
            held.callback(programs.end_wine)
            programs.start_wine()
            for name in arguments.stories or STORIES:
                STORIES[name](programs, screen)
    except DemoFailed as failure:
        screen.note(f"FAILED: {failure}", bad=True)
        return 1
    screen.note("OK", good=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
