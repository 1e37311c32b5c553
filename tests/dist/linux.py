#!/usr/bin/env python3
"""The programs for Linux in target/dist: a room of hosts for x64 and for ARM, the latter under qemu (`make test-dist`), and the
relay of both.

The C sample loads each. A member for ARM leads and is killed; the others follow a new leader, and messages go both ways. Exits
with 0 only if all of that happened, and the relays started and ended as asked.
"""

import argparse
import os
import re
import signal
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


def check_relay(shipped, rid, folder):
    """Starts a platform's relay twice with one key file, and ends it as a system does."""
    program = ([] if rid == "linux-x64" else QEMU[:1]) + [str(shipped / rid / "relay" / "mmn-relay")]
    lines = []
    for _ in range(2):
        relay = subprocess.Popen(
            [*program, "--listen", "127.0.0.1:0", "--key-file", folder / f"key-{rid}"], stdout=subprocess.PIPE, text=True
        )
        try:
            lines.append(relay.stdout.readline().split())
            relay.terminate()
            if relay.wait(LIMIT) != 0:
                raise DemoFailed(f"the relay for {rid} ended with {relay.returncode}")
        finally:
            relay.kill()
            relay.wait()
    (_, first), (_, second) = (line if len(line) == 2 else ["", f"no line but {line}"] for line in lines)
    if first != second or not re.fullmatch("key=[0-9a-f]{64}", first):
        raise DemoFailed(f"the relay for {rid} showed {first}, then {second}")


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
                check_relay(shipped, rid, Path(folder))
            screen.note("the relays for x64 and ARM started, kept their keys and ended", good=True)
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
