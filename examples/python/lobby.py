#!/usr/bin/env python3
"""A lobby on the console: members, round-trip times, the leader and a little chat.

    python3 examples/python/lobby.py --id alice --session tea
    python3 examples/python/lobby.py --id bob --session tea --connect ADDRESS_OF_ALICE

The samples in the other languages (csharp-sample, examples/c, examples/cpp) take the same arguments and print the same lines.
"""

import argparse
import os
import queue
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import meta_mystia_network as mmn  # noqa: E402  (the path above makes it importable from the source tree)

CHAT = mmn.FIRST_USER_TYPE
END_OF_INPUT = None


def main():
    parser = argparse.ArgumentParser(
        description="A lobby. Standard input, on a terminal or with --interactive: text is chat, /leader NAME, /quit."
    )
    parser.add_argument("--id", required=True)
    parser.add_argument("--session", required=True)
    parser.add_argument("--connect", metavar="ADDR")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--interactive", action="store_true")
    arguments = parser.parse_args()
    # Names may be in any script, whatever the locale says.
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stderr.reconfigure(encoding="utf-8")

    lines = queue.Queue()
    if arguments.interactive or sys.stdin.isatty():
        threading.Thread(target=read_input, args=(lines,), daemon=True).start()
    try:
        with mmn.Room(arguments.id, arguments.session) as room:
            Lobby(room, arguments.id).run(arguments.connect, arguments.seconds, lines)
    except mmn.NetworkError as error:
        fail(arguments.id, error)
        return 1
    say(arguments.id, "closed")
    return 0


class Lobby:
    def __init__(self, room, own_id):
        self.room = room
        self.id = own_id

    def run(self, address, seconds, lines):
        room = self.room
        say(self.id, f"listening on {room.local_address}")
        room.on_leader(lambda leader: say(self.id, f"leader is {leader}" if leader else "no leader"))
        room.on_peer(self.peer_changed)
        room.on_message(self.message)
        room.on_connection(self.dialled)
        if address:
            room.connect(address)

        start = time.monotonic()
        beat = 0
        while True:
            beat += 1
            while (left := min(beat, seconds) - (time.monotonic() - start)) > 0:
                try:
                    line = lines.get(timeout=left)
                except queue.Empty:
                    continue
                if line is END_OF_INPUT or line == "/quit":
                    return
                self.obey(line)
            if time.monotonic() - start >= seconds:
                return
            self.attempt(lambda: room.broadcast(f"hello {beat} from {self.id}".encode(), CHAT))
            say(self.id, self.members())

    def peer_changed(self, peer, status):
        say(self.id, f"peer {peer} " + ("connected" if status == mmn.STATUS_CONNECTED else "left"))

    def message(self, message):
        if message.type == CHAT:
            say(self.id, f"from {message.sender}: {message.data.decode('utf-8', 'replace')}")

    def dialled(self, result):
        outcome = "ok" if result.success else f"error {result.code} {mmn.describe_error(result.code)}"
        say(self.id, f"dialled {result.address}: {outcome}")

    def obey(self, line):
        if line.startswith("/leader "):
            self.attempt(lambda: self.room.set_leader(line[len("/leader ") :].strip()))
        elif line:
            self.attempt(lambda: self.room.broadcast(line.encode(), CHAT))

    def members(self):
        parts = []
        for name in sorted(self.room.peers + [self.id], key=str.encode):
            rtt = 0 if name == self.id else self.room.rtt_ms(name)
            parts.append(f"{name}({'-' if rtt is None else rtt} ms)")
        leader = self.room.leader
        return f"members: {' '.join(parts)}; " + (f"leader: {leader}" if leader else "no leader")

    def attempt(self, call):
        """A refused call is worth a line, not the end of the program: the room goes on."""
        try:
            call()
        except mmn.NetworkError as error:
            fail(self.id, error)


def say(own_id, text):
    # One write per line: the library's thread and the main thread both print.
    sys.stdout.write(f"[{own_id}] {text}\n")
    sys.stdout.flush()


def fail(own_id, error):
    sys.stderr.write(f"[{own_id}] error: {error} ({error.code})\n")
    sys.stderr.flush()


def read_input(lines):
    # os.read and not sys.stdin: a thread that waits inside sys.stdin holds a lock that the interpreter needs to exit.
    pending = b""
    while chunk := os.read(0, 4096):
        *complete, pending = (pending + chunk).split(b"\n")
        for line in complete:
            lines.put(line.decode("utf-8", "replace").rstrip("\r"))
    lines.put(END_OF_INPUT)


if __name__ == "__main__":
    sys.exit(main())
