"""Rooms of many processes of member.c, controlled by lines. For sixteen.py and soak.py."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class Failed(Exception):
    """An expected event that is missing, in one line."""


def build(folder):
    """Compiles member.c into `folder` and returns the program's path. The library is that of `make build` unless MMN_LIBRARY
    names one.
    """
    os.environ.setdefault("MMN_LIBRARY", str(ROOT / "target" / "release" / "libmeta_mystia_network.so"))
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "member"
    source = Path(__file__).resolve().parent / "member.c"
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", source, "-o", program, "-ldl"]
    subprocess.run([str(part) for part in command], check=True)
    return program


class Member:
    """One process of member.c. Its fields hold its last reports; `room.changed` guards them."""

    def __init__(self, room, name, contact=None):
        self.room = room
        self.name = name
        self.address = None
        self.ready_at = None
        self.peers = 0
        self.leader = None
        self.view_at = None  # time of the last change of peers and leader
        self.dialled_at = time.monotonic()
        self.received = None
        self.paused = False
        command = [str(room.program), "--id", name, "--session", room.session]
        if room.talk_ms:
            command += ["--talk", str(room.talk_ms)]
        if contact:
            command += ["--connect", contact.address]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            what, at, *rest = line.split()
            with self.room.changed:
                if what == "ready":
                    self.ready_at, self.address = float(at), rest[0]
                elif what == "view":
                    # A leader's name is one word here: the rooms of these tests use only such names.
                    self.view_at, self.peers, self.leader = float(at), int(rest[0]), rest[1]
                elif what == "received":
                    self.received = int(rest[0])
                self.room.changed.notify_all()
        with self.room.changed:
            self.room.changed.notify_all()

    def send_line(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def connect(self, contact):
        self.dialled_at = time.monotonic()
        self.send_line("connect " + contact.address)

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def leave(self, seconds=15):
        """Leaves the room; the process must end with 0."""
        self.send_line("leave")
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} did not leave within {seconds} s") from None
        if code != 0:
            raise Failed(f"{self.name} left with exit code {code}")
        self.process.stdin.close()

    def pause(self):
        self.paused = True
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def usage(self):
        """(resident memory in KiB, threads, descriptors) of the process."""
        fields = {}
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            key, _, value = line.partition(":")
            fields[key] = value
        descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        return int(fields["VmRSS"].split()[0]), int(fields["Threads"]), descriptors


class Room:
    """The members of one room. Leaving the `with` ends every remaining process."""

    def __init__(self, program, session, talk_ms=0):
        self.program = program
        self.session = f"{session}-{os.getpid()}"
        self.talk_ms = talk_ms
        self.changed = threading.Condition()
        self.members = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            if member.alive():
                member.process.kill()
        for member in self.members:
            member.process.wait()

    def start(self, name, contact=None):
        member = Member(self, name, contact)
        self.members.append(member)
        return member

    def wait(self, seconds, missing):
        """Waits until `missing` returns None; its other result is the line of the failure."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while (lack := missing()) is not None:
                for member in self.members:
                    if not member.alive():
                        raise Failed(f"{member.name} ended with {member.process.returncode}; {lack}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Failed(f"{lack}, within {seconds} s")
                self.changed.wait(min(left, 0.2))

    def remove(self, member):
        self.members.remove(member)

    def wait_until_ready(self, seconds):
        def missing():
            late = [member.name for member in self.members if member.ready_at is None]
            return f"not started: {' '.join(late)}" if late else None

        self.wait(seconds, missing)

    def wait_until_meshed(self, seconds):
        """Waits until all members are linked to all others under one living leader; returns the time of that."""
        self.wait(seconds, self.not_meshed)
        with self.changed:
            return max(member.view_at for member in self.members)

    def not_meshed(self):
        others = len(self.members) - 1
        names = {member.name for member in self.members}
        for member in self.members:
            if member.peers != others:
                return f"{member.name} has {member.peers} peers and not {others}"
            if member.leader not in names:
                return f"{member.name} names the leader {member.leader}, which is no living member"
            if member.leader != self.members[0].leader:
                return f"{member.name} names {member.leader}, but {self.members[0].name} names {self.members[0].leader}"
        return None


def run(main):
    """Runs `main`, with failures as one line and exit code 1. A SIGTERM still ends all members."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except Failed as failure:
        print(f"FAILED: {failure}", flush=True)
        sys.exit(1)


def seeded():
    """A random source whose seed is printed, and taken from MMN_SEED."""
    seed = int(os.environ.get("MMN_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed} (MMN_SEED={seed} repeats the choices)", flush=True)
    return random.Random(seed)
