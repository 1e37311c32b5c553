#!/usr/bin/env python3
"""The programs for Linux in target/dist: a room of hosts for x64 and for ARM, the latter under qemu (`make test-dist`), and the
relay of both.

The C sample loads each. A member for ARM leads and is killed; the others follow a new leader, and messages go both ways. Exits
with 0 only if all of that happened, and the relays started, answered and ended as asked.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from demo import PHASE_SECONDS, DemoFailed, Room, Screen, isolate, run_tool  # noqa: E402

LIMIT = 2 * PHASE_SECONDS  # qemu is slow
COMPILERS = {"linux-x64": "gcc", "linux-arm64": "aarch64-linux-gnu-gcc"}
# The folder has the C library that the compiler's programs load.
QEMU = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]


def lobby(shipped, rid, folder):
    """The C sample, compiled against that platform's headers; returns the command that starts it."""
    program = folder / f"lobby-{rid}"
    run_tool(
        [COMPILERS[rid], "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{shipped / rid / 'include'}"]
        + [ROOT / "examples/c/lobby.c", "-o", program, "-ldl"]
    )
    environment = dict(os.environ, MMN_LIBRARY=str(shipped / rid / "libmeta_mystia_network.so"))
    return ([] if rid == "linux-x64" else QEMU) + [str(program)], environment


def check_relay(name, command):
    """Starts a relay twice, with a command that names a key file, and ends it as a system does."""
    keys = []
    for _ in range(2):
        relay = subprocess.Popen([*map(str, command), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            line = relay.stdout.readline()
            address, key = line.split() if len(line.split()) == 2 else ["", f"no line but {line!r}"]
            keys.append(key)
            if address and not answers(address):
                raise DemoFailed(f"the relay {name} does not answer at {address}")
            relay.terminate()
            if relay.wait(LIMIT) != 0:
                raise DemoFailed(f"the relay {name} ended with {relay.returncode}")
        finally:
            relay.kill()
            relay.wait()
    if keys[0] != keys[1] or not re.fullmatch("key=[0-9a-f]{64}", keys[0]):
        raise DemoFailed(f"the relay {name} showed {keys[0]}, then {keys[1]}")


def answers(address):
    """Whether QUIC answers there: a server names its versions to a client with an unknown one (RFC 9000, 6)."""
    host, _, port = address.rpartition(":")
    theirs, ours = b"a server", b"a client"
    greeting = b"\xc0\x1a\x2a\x3a\x4a" + bytes([len(theirs)]) + theirs + bytes([len(ours)]) + ours
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(LIMIT)
        client.sendto(greeting.ljust(1200, b"\0"), (host, int(port)))
        try:
            answer = client.recv(2048)
        except OSError:
            return False
    return answer[1:5] == bytes(4) and answer[6 : 6 + len(ours)] == ours


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shipped", type=Path, default=ROOT / "target/dist")
    shipped = parser.parse_args().shipped.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    screen = Screen()
    try:
        for rid in COMPILERS:
            if not (shipped / rid).is_dir():
                raise DemoFailed(f"{shipped / rid} is missing; `make dist` builds it")
        screen.note(isolate())
        with tempfile.TemporaryDirectory() as folder:
            for rid in COMPILERS:
                qemu = [] if rid == "linux-x64" else QEMU[:1]
                check_relay(f"for {rid}", [*qemu, shipped / rid / "relay" / "mmn-relay", "--key-file", Path(folder) / f"key-{rid}"])
            screen.note("the relays for x64 and ARM started, answered, kept their keys and ended", good=True)
            x64, arm64 = (lobby(shipped, rid, Path(folder)) for rid in COMPILERS)
            with Room({"x64": x64, "arm": arm64, "other-arm": arm64}, screen) as room:
                room.start(LIMIT)
                leader = room.wait_for_agreement(room.hosts, LIMIT)
                if leader != "arm":
                    room.by_name(leader).type("/transfer arm")
                room.wait(room.hosts, LIMIT, lambda: None if all(host.leader == "arm" for host in room.hosts) else "arm does not lead")
                victim = room.by_name("arm")
                killed_at = victim.kill()
                room.hosts.remove(victim)
                leader = room.wait_for_agreement(room.hosts, LIMIT, since=killed_at)
                screen.note(f"arm was killed; {leader} leads, and messages go both ways", good=True)
                room.leave(room.hosts)
    except DemoFailed as failure:
        screen.note(f"FAILED: {failure}", bad=True)
        return 1
    screen.note("OK", good=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
