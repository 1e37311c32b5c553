#!/usr/bin/env python3
"""Draws a real room: three processes on this machine, of which the one that leads is killed. It needs `make build`.

    scripts/picture_of_a_room.py OUT.html
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 60
MEMBERS = ("anna", "ben", "cleo")


def main():
    if len(sys.argv) == 4:
        member(*sys.argv[1:])
        return
    with tempfile.TemporaryDirectory() as folder:
        traces = room(Path(folder))
        draw = ["cargo", "run", "--quiet", "--release", "--example", "simulate", "--", "--trace", *traces, "--out", sys.argv[1]]
        subprocess.run(draw, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def room(folder):
    processes = {}
    try:
        address = ""
        for name in MEMBERS:
            command = [sys.executable, __file__, name, address, str(folder / f"{name}.jsonl")]
            processes[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            address = address or processes[name].stdout.readline().strip()
        leader = agreed(processes)
        # The picture shows a while of peace.
        time.sleep(2)
        processes.pop(leader).kill()
        agreed(processes, without=leader)
        time.sleep(2)
    finally:
        for process in processes.values():
            process.stdin.close()
            process.wait(TIMEOUT_SECONDS)
    return [str(folder / f"{name}.jsonl") for name in MEMBERS]


def agreed(processes, without=None):
    """Waits until all name one leader, another than `without`."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < end:
        for process in processes.values():
            process.stdin.write(f"{without or ''}\n")
            process.stdin.flush()
        named = {process.stdout.readline().strip() for process in processes.values()}
        if len(named) == 1:
            return named.pop()
    raise TimeoutError(f"the members name {named}")


def member(name, address, trace):
    """A member. It prints its address if it dials none; for each line, with a name or empty, the leader that is not this one."""
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    os.environ.setdefault("MMN_LIBRARY", str(ROOT / "target/release/libmeta_mystia_network.so"))
    import meta_mystia_network as mmn

    options = mmn.NetworkOptions(dispatch_mode=mmn.DISPATCH_THREAD, bind_address="127.0.0.1", trace_path=trace)
    with mmn.Room(name, "a picture", options=options) as room:
        room.connect(address) if address else print(room.local_address, flush=True)
        for line in sys.stdin:
            end = time.monotonic() + TIMEOUT_SECONDS
            while len(room.peers) < (1 if line.strip() else 2) or room.leader in (None, "", line.strip()):
                assert time.monotonic() < end, "no leader in time"
                time.sleep(0.02)
            print(room.leader, flush=True)


if __name__ == "__main__":
    main()
