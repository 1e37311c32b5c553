"""Transfers of 64 MiB between processes in C, C# and Python, and what one end learns when the other is killed.

`transfers.py NAME PROGRAM ASSEMBLY` runs one function below; these are `transfers/transfers.c` and `transfers/Transfers.cs`. `transfers.py end ROLE NAME SESSION SIZE
[ADDRESS]` is one end in Python, which prints what the program in C prints. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bindings" / "python"))

import meta_mystia_network as mmn

SIZE = 64 << 20
TIMEOUT_SECONDS = 120.0
COMPLETE, PEER_LEFT = int(mmn.TransferOutcome.COMPLETE), int(mmn.TransferOutcome.PEER_LEFT)


# ---------------------------------------------------------------- one end


def content(size):
    """As the program in C makes it: it repeats every 1 MiB, as a byte does."""
    block = bytes((place * 167 + (place >> 12) * 13) & 0xFF for place in range(min(size, 1 << 20)))
    return (block * (size // len(block) + 1))[:size]


class End:
    def __init__(self, role, name, session, size):
        self.role, self.size, self.arrived, self.moves = role, size, 0, False
        self.content, self.buffer = content(size), bytearray(size)
        options = mmn.NetworkOptions(dispatch_mode=mmn.DISPATCH_THREAD, member_hold_ms=5000)
        self.room = mmn.Room(name, session, options, on_event=self.on_event)

    def on_event(self, event):
        try:
            self.take(event)
        except Exception as error:
            print("FAILED", repr(error), flush=True)

    def take(self, event):
        if isinstance(event, mmn.PeerJoined) and self.role == "send":
            self.room.send_transfer(event.peer, self.content, b"map")
            print("begun", flush=True)
        elif isinstance(event, mmn.TransferOffered):
            assert (event.tag, event.size) == (b"map", self.size), event
            if self.role == "buffer":
                self.room.accept_transfer(event.sender, event.transfer, self.buffer)
            else:
                self.room.accept_transfer_in_parts(event.sender, event.transfer)
            print("begun", flush=True)
        elif isinstance(event, mmn.TransferProgress):
            if not self.moves:
                print("moving", flush=True)
            self.moves = True
        elif isinstance(event, mmn.TransferPart):
            assert event.offset == self.arrived, event.offset
            self.arrived += len(event.data)
            assert event.data == self.content[event.offset : self.arrived], "a byte differs"
        elif isinstance(event, mmn.TransferResult):
            if event.success and self.role == "buffer":
                assert self.buffer == self.content, "a byte differs"
            if event.success and self.role == "parts":
                assert self.arrived == self.size, "parts are missing"
            print("result", int(event.reason), event.done, flush=True)


def run_end(role, name, session, size, address=None):
    end = End(role, name, session, int(size))
    print("address", end.room.local_address, flush=True)
    if address:
        end.room.connect(address)
    sys.stdin.read()
    end.room.close()


# ---------------------------------------------------------------- the processes


class Process:
    def __init__(self, command, *arguments):
        self.lines, self.seen = queue.Queue(), []
        self.child = subprocess.Popen([*command, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line.split())
        self.lines.put(["ENDED"])

    def wait(self, first):
        """The next line that begins with this word."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line {first!r} after {self.seen}") from None
            self.seen.append(line)
            assert line[0] not in ("FAILED", "ENDED"), (line, self.seen)
            if line[0] == first:
                return line[1:]

    def kill(self):
        self.child.kill()
        self.child.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


PYTHON = [sys.executable, __file__, "end"]


def pair(sender, receiver, role, size=SIZE):
    """Both ends, linked."""
    session = f"transfers {os.getpid()}"
    taker = Process(receiver, role, "taker", session, size)
    (address,) = taker.wait("address")
    return Process(sender, "send", "sender", session, size, address), taker


def all_arrives(sender, receiver, role):
    source, taker = pair(sender, receiver, role)
    with source, taker:
        began = time.monotonic()
        assert taker.wait("result") == [str(COMPLETE), str(SIZE)]
        assert source.wait("result") == [str(COMPLETE), str(SIZE)]
        print(f"{SIZE >> 20} MiB in {time.monotonic() - began:.1f} s")
        for end in (source, taker):
            end.child.stdin.close()
            assert end.child.wait(TIMEOUT_SECONDS) == 0
        for end in (source, taker):
            assert end.seen.count(["moving"]) == 1, end.seen


def c_sends_64_mib_to_a_buffer_of_python(program, _):
    all_arrives([program], PYTHON, "buffer")


def python_sends_64_mib_to_c_in_parts(program, _):
    all_arrives(PYTHON, [program], "parts")


def c_sends_64_mib_to_a_buffer_of_csharp(program, assembly):
    all_arrives([program], ["mono", assembly], "buffer")


def csharp_sends_64_mib_to_a_buffer_of_c(program, assembly):
    all_arrives(["mono", assembly], [program], "buffer")


def python_sends_64_mib_to_csharp_in_parts(_, assembly):
    all_arrives(PYTHON, ["mono", assembly], "parts")


def a_killed_receiver_is_a_result_at_the_sender(program, _):
    source, taker = pair(PYTHON, [program], "buffer")
    with source, taker:
        source.wait("moving")
        taker.kill()
        reason, done = source.wait("result")
        assert int(reason) == PEER_LEFT and int(done) < SIZE, (reason, done)


def a_killed_sender_is_a_result_at_the_receiver(program, _):
    source, taker = pair([program], PYTHON, "parts")
    with source, taker:
        taker.wait("moving")
        source.kill()
        reason, done = taker.wait("result")
        assert int(reason) == PEER_LEFT and 0 < int(done) < SIZE, (reason, done)


if __name__ == "__main__":
    if sys.argv[1] == "end":
        run_end(*sys.argv[2:])
    else:
        globals()[sys.argv[1]](*sys.argv[2:])
        print("ok", sys.argv[1])
