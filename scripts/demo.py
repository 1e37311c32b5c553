#!/usr/bin/env python3
"""One room, four hosts, four languages; then the leader is killed.

Starts one room of four processes (C# under Mono, C++, Python, C) on this machine and shows their output. Waits until all four see
each other with round-trip times, name one leader and have received each other's messages, until the counter, the chat and the map
that they share are equal at all four, and until all see each other's players move. Then ends the leader's process with SIGKILL. The
survivors go on at once: waits until they name one new leader and still exchange messages, have all that was shared and what they
added since, and still see each other's players move. The host that was killed starts anew, and gets everything. Exits with 0 only if
all of that happened.

The library must have been built (target/release). The parts are importable, for tests: build_hosts, Host, Room, isolate.
"""

import argparse
import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY_NAME = "libmeta_mystia_network.so"
PHASE_SECONDS = 30.0
LEAVE_SECONDS = 10.0
MAP = "a tea house"
COLOURS = {"csharp": "36", "cpp": "33", "python": "35", "c": "32"}


class DemoFailed(Exception):
    """The missing event, in one line."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=Path, default=ROOT / "target" / "release" / LIBRARY_NAME)
    parser.add_argument("--include", type=Path, default=ROOT / "include", help="the folder of the C header")
    parser.add_argument("--output", type=Path, default=ROOT / "target" / "demo", help="where the hosts are built")
    parser.add_argument("--no-isolation", action="store_true", help="use this machine's network as it is")
    parser.add_argument("--strategy", choices=["raft", "gossip", "seeded"], default="raft", help="how the room elects its leader")
    parser.add_argument(
        "--alive-ms", type=int, default=500, help="gossip: how long a silent leader is believed in (the library's own: 10000)"
    )
    arguments = parser.parse_args()

    screen = Screen()
    started = time.monotonic()
    # A terminal's Ctrl-C and a test's SIGTERM must both pass through the `finally` that ends the hosts.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        screen.note("building the hosts")
        commands = build_hosts(arguments.library, arguments.include, arguments.output)
        if arguments.strategy == "gossip":
            screen.note(f"electing by gossip; a leader that is silent for {arguments.alive_ms} ms is believed to be lost")
            election = ["--strategy", arguments.strategy, "--alive-ms", str(arguments.alive_ms)]
            commands = {name: (command + election, environment) for name, (command, environment) in commands.items()}
        if arguments.no_isolation:
            screen.note("using this machine's network as it is")
        else:
            screen.note(isolate())
        with tempfile.TemporaryDirectory() as states:
            if arguments.strategy == "seeded":
                screen.note("a group that never splits: all four are seeds, and any three of them elect")
                commands = as_seeds(commands, Path(states))
            failover_seconds, victim, leader = play(commands, screen, dials=arguments.strategy != "seeded")
    except DemoFailed as failure:
        screen.note(f"FAILED: {failure}", bad=True)
        return 1
    except KeyboardInterrupt:
        return 130
    screen.note(
        f"OK: four hosts in four languages met in one room; leader {victim} was killed, "
        f"and the survivors named {leader} after {failover_seconds:.2f} s and carried on with all that the four had "
        f"({time.monotonic() - started:.1f} s in all)",
        good=True,
    )
    return 0


def as_seeds(commands, states):
    """The commands of the hosts as seeds of one cluster, which the library dials; each keeps its votes in a directory of its own."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in commands]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    everybody = ["--voters", ",".join(commands), "--seeds", ",".join(f"127.0.0.1:{port}" for port in ports)]
    seeds = {}
    for (name, (command, environment)), port in zip(commands.items(), ports):
        (states / name).mkdir()
        own = ["--strategy", "seeded", "--port", str(port), "--state", str(states / name)]
        seeds[name] = (command + own + everybody, environment)
    return seeds


def play(commands, screen, dials=True):
    """The demo itself: (seconds of the failover, the killed leader, the new one), or DemoFailed."""
    with Room(commands, screen) as room:
        room.start(dials=dials)
        leader = room.wait_for_agreement(room.hosts, PHASE_SECONDS)
        screen.note(f"all four are in one room, exchange messages and agree on one leader: {leader}", good=True)
        for number, host in enumerate(room.hosts, 1):
            host.type(f"/add {number}")
            host.type(f"{host.name} was here")
        room.hosts[0].type(f"/map {MAP}")
        before = room.wait_for_state(room.hosts, counter=1 + 2 + 3 + 4, lines=4, place=MAP)
        screen.note(f"a counter at {before.counter}, {before.lines} lines of chat and the map are the same at all four", good=True)

        room.wait_for_movement(room.hosts)
        screen.note("all four see each other's players move", good=True)

        victim = room.by_name(leader)
        room.hosts.remove(victim)
        survivors = list(room.hosts)
        screen.note(f"killing {leader} (process {victim.process.pid}) with SIGKILL")
        killed_at = victim.kill()
        for host in survivors:
            host.type("/add 10")
            host.type(f"{host.name} carries on without {leader}")
        new_leader = room.wait_for_agreement(survivors, PHASE_SECONDS, since=killed_at)
        failover_seconds = max(host.named_at(new_leader) for host in survivors) - killed_at
        screen.note(f"the survivors agree on the new leader {new_leader} and still exchange messages", good=True)
        after = room.wait_for_state(survivors, before.counter + 30, before.lines + 3, place=MAP)
        screen.note(f"nothing was lost: counter {before.counter} became {after.counter}, {after.lines} lines of chat", good=True)
        room.wait_for_movement(survivors)
        screen.note("the survivors still see each other's players move", good=True)

        again = room.restart(victim, survivors[0].address if dials else None)
        room.wait_for_state(room.hosts, after.counter, after.lines, place=MAP)
        again.type("/add 100")
        room.wait_for_state(room.hosts, after.counter + 100, after.lines, place=MAP)
        screen.note(f"{again.name} started anew, has everything and continues it", good=True)

        room.leave(room.hosts)
        return failover_seconds, leader, new_leader


def build_hosts(library, include, output):
    """Builds the hosts that need it; {name: (command, environment)} of all four."""
    if not library.exists():
        raise DemoFailed(f"{library} does not exist; build the library first (cargo build --release)")
    if not (include / "meta_mystia_network.h").exists():
        raise DemoFailed(f"{include}/meta_mystia_network.h does not exist; build the library first (cargo build --release)")
    library = library.resolve()
    output.mkdir(parents=True, exist_ok=True)
    c, cpp, csharp = output / "lobby-c", output / "lobby-cpp", output / "Lobby.exe"
    sources = ROOT / "bindings" / "csharp"
    run_tool(
        ["mcs", "-langversion:7", "-warnaserror", f"-out:{csharp}"]
        + sorted((ROOT / "csharp-sample").glob("*.cs"))
        + sorted(sources.glob("*.cs"))
    )
    run_tool(
        ["g++", "-std=c++17", "-O1", "-pthread", f"-I{include}", f"-I{ROOT / 'bindings' / 'cpp'}"]
        + [ROOT / "examples" / "cpp" / "lobby.cpp", "-o", cpp, f"-L{library.parent}", "-lmeta_mystia_network"]
    )
    run_tool(["gcc", "-std=gnu11", "-O1", "-pthread", f"-I{include}", ROOT / "examples" / "c" / "lobby.c", "-o", c, "-ldl"])
    environment = dict(os.environ)
    environment["MMN_LIBRARY"] = str(library)
    search = [str(library.parent)] + [part for part in [os.environ.get("LD_LIBRARY_PATH")] if part]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(search)
    return {
        "csharp": (["mono", str(csharp)], environment),
        "cpp": ([str(cpp)], environment),
        "python": ([sys.executable, str(ROOT / "examples" / "python" / "lobby.py")], environment),
        "c": ([str(c)], environment),
    }


def run_tool(command):
    command = [str(part) for part in command]
    if shutil.which(command[0]) is None:
        raise DemoFailed(f"{command[0]} is not installed; scripts/install-tools.sh installs it or explains how")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise DemoFailed(f"`{' '.join(command)}` failed:\n{done.stdout}")


def isolate():
    """Moves this process, and its future children, to a network with nothing but loopback; returns a sentence about it.

    The library listens on all addresses, and neither a demo nor a test should be reachable from outside.
    """
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        clone_newnet = 0x40000000
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "unshare"):
            return "no isolation on this system: using this machine's network as it is"
        if libc.unshare(clone_newnet) != 0:
            reason = os.strerror(ctypes.get_errno())
            return f"a network of its own needs root ({reason}): using this machine's network as it is"
    siocgifflags, siocsifflags, iff_up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(control, siocgifflags, request))[1]
        if not flags & iff_up:
            fcntl.ioctl(control, siocsifflags, struct.pack("16sH22x", b"lo", flags | iff_up))
    return "running in a network of its own, where only loopback exists"


class State(typing.NamedTuple):
    """The shared state of a host, from its last line about it."""

    counter: int
    lines: int
    map: str
    index: int
    digest: str
    unconfirmed: int


class Screen:
    """Prints whole lines from several threads, in colour on a terminal."""

    def __init__(self, stream=sys.stdout):
        self._stream = stream
        self._lock = threading.Lock()
        self._colour = stream.isatty()

    def line(self, name, text):
        self._print(f"{self._paint(COLOURS.get(name, '37'), f'{name:>7} |')} {text}")

    def note(self, text, good=False, bad=False):
        code = "1;32" if good else "1;31" if bad else "1"
        self._print(self._paint(code, f"   demo | {text}"))

    def _paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self._colour else text

    def _print(self, text):
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._stream.write(text + "\n")
            self._stream.flush()


class Host:
    """One process in the room, and its output so far. Its fields are guarded by `changed`."""

    def __init__(self, name, command, environment, screen, changed):
        self.name = name
        self.command = command
        self.environment = environment
        self.screen = screen
        self.changed = changed
        self.process = None
        self.address = None
        self.closed = False
        self.leader = None  # from the last event
        self.leader_times = {}  # leader: when an event last named it
        self.members = {}  # member: round-trip time in ms, None while it is not measured
        self.paths = {}  # member: how it is reached, in words
        self.members_leader = None  # from the last list of members
        self.members_at = 0.0
        self.received_at = {}  # member: time of its last message
        self.places = {}  # member: its player's place in the lists of members, and the time of the list
        self.state = None
        self.confirmed = []  # its own actions in the present history, in order
        self.rolled_back = []  # actions of all, with their authors
        self._reader = None
        self.pass_fds = ()  # descriptors that the command needs

    def arguments(self, session, contact):
        """The arguments after the command."""
        return ["--id", self.name, "--session", session, "--interactive"] + (["--connect", contact] if contact else [])

    def start(self, session, contact=None):
        self.process = subprocess.Popen(
            self.command + self.arguments(session, contact),
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=self.pass_fds,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def kill(self):
        """Sends SIGKILL, like a crash; returns the time."""
        at = time.monotonic()
        self.process.kill()
        self.process.wait()
        return at

    def quit(self):
        self.type("/quit")

    def type(self, line):
        with contextlib.suppress(OSError):
            self.process.stdin.write(line.encode("utf-8") + b"\n")
            self.process.stdin.flush()

    def exit_code(self, timeout):
        """The exit code after all output was read; None when it did not end in time."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(timeout)
        return code

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def named_at(self, leader):
        with self.changed:
            return self.leader_times[leader]

    def _read(self):
        for raw in self.process.stdout:
            now = time.monotonic()
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            self.screen.line(self.name, text)
            with self.changed:
                self.understand(text, now)
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def understand(self, text, now):
        """Reads one line of a lobby's output. Lines without information about the room are only shown."""
        prefix = f"[{self.name}] "
        if not text.startswith(prefix):
            return
        text = text[len(prefix) :]
        if text == "closed":
            self.closed = True
        elif re.fullmatch(r"no leader(?: \(\w+\))?", text):
            self.leader = None
        elif match := re.fullmatch(r"listening on (\S+)", text):
            self.address = match[1]
        elif match := re.fullmatch(r"leader is (.+?)(?: \(\w+\))?", text):
            self.leader = match[1]
            self.leader_times[match[1]] = now
        elif match := re.fullmatch(r"from ([^:]+): .*", text):
            self.received_at[match[1]] = now
        elif match := re.fullmatch(
            r"state: (-?\d+), (\d+) lines, map (.*), index (\d+), digest (\w+), (\d+) unconfirmed", text
        ):
            self.state = State(int(match[1]), int(match[2]), match[3], int(match[4]), match[5], int(match[6]))
        elif match := re.fullmatch(r"confirmed (.*)", text):
            self.confirmed.append(match[1])
        elif match := re.fullmatch(r"rolled back (.+?): (.*)", text):
            self.rolled_back.append((match[1], match[2]))
        elif re.fullmatch(r"loaded -?\d+, \d+ lines", text):
            self.confirmed.clear()  # actions that the snapshot lacks come again
        elif match := re.fullmatch(r"members: (.*); (?:no leader|leader: (.+))", text):
            path = r"(?:, (direct|over a relay|through [^,()]+(?: \(leader\))?))?"
            found = re.findall(rf"(\S+)\((-|\d+) ms{path}\)(?: at (\d+,\d+))?", match[1])
            self.members = {name: None if rtt == "-" else int(rtt) for name, rtt, _, _ in found}
            self.paths = {name: path for name, _, path, _ in found if path}
            self.members_leader = match[2]
            self.members_at = now
            for name, _, _, place in found:
                if place:
                    self.places.setdefault(name, []).append((now, place))


class Room:
    """The hosts of one room. Leaving the `with` ends every process that still runs."""

    def __init__(self, commands, screen, session=None):
        self.changed = threading.Condition()
        self.screen = screen
        self.session = session or f"demo-{os.getpid()}"
        self.hosts = [Host(name, *command, screen, self.changed) for name, command in commands.items()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            if host.alive():
                host.kill()

    def by_name(self, name):
        return next(host for host in self.hosts if host.name == name)

    def start(self, timeout=PHASE_SECONDS, dials=True):
        """The first host listens; the others receive only its address or, without `dials`, nothing."""
        first, *others = self.hosts
        first.start(self.session)
        self.wait([first], timeout, lambda: None if first.address else f"{first.name} did not say where it listens")
        for host in others:
            host.start(self.session, first.address if dials else None)

    def wait_for_agreement(self, hosts, timeout, since=0.0):
        """Waits until the hosts form one room, by their output after `since`; returns their leader."""
        with self.changed:
            self.wait(hosts, timeout, lambda: disagreement(hosts, since))
            return hosts[0].leader

    def restart(self, host, contact=None, timeout=PHASE_SECONDS):
        """Starts another process of a host that has ended, a newcomer to the room, and waits until all agree."""
        started_at = time.monotonic()
        again = type(host)(host.name, host.command, host.environment, self.screen, self.changed)
        again.pass_fds = host.pass_fds
        again.start(self.session, contact)
        with self.changed:
            self.hosts.append(again)
        self.wait_for_agreement(self.hosts, timeout, since=started_at)
        return again

    def wait_for_state(self, hosts, counter, lines, timeout=PHASE_SECONDS, place="-"):
        """Waits until the state of all is equal, with this counter, number of chat lines and map, and nothing is under way."""

        def difference():
            for host in hosts:
                state = host.state
                if state is None or (state.counter, state.lines, state.map, state.unconfirmed) != (counter, lines, place, 0):
                    return f"{host.name} has {state}, and not a counter of {counter}, {lines} lines and the map {place}"
            if len({host.state.digest for host in hosts}) != 1:
                return f"the states differ: {[host.state for host in hosts]}"
            return None

        self.wait(hosts, timeout, difference)
        return hosts[0].state

    def wait_for_movement(self, hosts, timeout=PHASE_SECONDS):
        """Waits until each host shows every other one's player at one place and later at another."""
        since = time.monotonic()

        def standstill():
            for host in hosts:
                for other in hosts:
                    places = {place for at, place in host.places.get(other.name, []) if at > since}
                    if host is not other and len(places) < 2:
                        return f"{host.name} did not see the player of {other.name} move"
            return None

        self.wait(hosts, timeout, standstill)

    def wait(self, hosts, timeout, missing):
        """Waits until `missing` returns None; its last other result is the line of the failure."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while (lack := missing()) is not None:
                for host in hosts:
                    if not host.alive():
                        raise DemoFailed(f"{host.name} ended with exit code {host.process.returncode}; {lack}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DemoFailed(f"{lack}, within {timeout:.0f} s")
                # A process may also end without output: check that a few times a second.
                self.changed.wait(min(left, 0.2))

    def leave(self, hosts):
        """Ends the hosts regularly and checks their exit codes."""
        for host in hosts:
            host.quit()
        for host in hosts:
            code = host.exit_code(LEAVE_SECONDS)
            if code is None:
                raise DemoFailed(f"{host.name} did not leave within {LEAVE_SECONDS:.0f} s after /quit")
            if code != 0 or not host.closed:
                raise DemoFailed(f"{host.name} left with exit code {code}" + ("" if host.closed else " and without closing"))


def disagreement(hosts, since):
    """The missing conditions for one room of these hosts, in words; None when they form it.

    Only output after `since` counts for members and messages; messages must also be newer than the leader that they were sent under.
    A leader counts when it is one of the hosts, and therefore alive.
    """
    names = {host.name for host in hosts}
    for host in hosts:
        if host.members_at <= since:
            return f"{host.name} did not list its members"
        if set(host.members) != names:
            return f"{host.name} lists the members {sorted(host.members)} and not {sorted(names)}"
        for name, rtt in host.members.items():
            if rtt is None:
                return f"{host.name} has no round-trip time of {name}"
        if host.leader not in names:
            return f"{host.name} names the leader {host.leader}, which is none of {sorted(names)}"
        if host.members_leader != host.leader:
            return f"{host.name} was notified of leader {host.leader}, but its query returns {host.members_leader}"
        if host.leader != hosts[0].leader:
            return f"{host.name} names the leader {host.leader}, but {hosts[0].name} names {hosts[0].leader}"
        agreed_at = max(since, host.leader_times[host.leader])
        for other in names - {host.name}:
            if host.received_at.get(other, 0.0) <= agreed_at:
                return f"{host.name} received no message of {other} under the leader {host.leader}"
    return None


if __name__ == "__main__":
    sys.exit(main())
