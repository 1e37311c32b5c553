"""Hosts that send streams of messages through the library and measure them (`bench_host.c`)."""

import itertools
import json
import os
import queue
import sys
import threading
import time

from network import ROOT
from programs import compile_c

LIBRARY = os.environ.get("MMN_LIBRARY") or str(ROOT / "target/release/libmeta_mystia_network.so")

_sessions = itertools.count(1)


class Bench:
    """`with Bench(network, "ann", "bob") as bench:`; the others dial the first host, which is the centre of a star. The room of
    a `leader` is a mesh that this member has created. With the address of a `relay` the members know this address alone. With
    `state_bytes` the room keeps a state, of which each host provides snapshots of that size.
    """

    def __init__(self, network, *names, environment=None, star=False, leader=None, relay=None, state_bytes=None):
        self.network = network
        self.relay = relay
        self.roles = [None] * len(names)
        if star:
            self.roles = ["host", *(["guest"] * len(names))]
        elif leader:
            self.roles = ["create" if name == leader else "join" for name in names]
        elif relay:
            self.roles = [f"relay={relay}"] * len(names)
        elif state_bytes:
            self.roles = [f"state={state_bytes}"] * len(names)
        self.names = names
        self.session = None
        self.address = None
        self.environment = {**os.environ, "MMN_LIBRARY": LIBRARY, **(environment or {})}
        self.hosts = {}

    def __enter__(self):
        self.session = room_code() if self.relay else f"bench-{os.getpid()}-{next(_sessions)}"
        try:
            for name, role in zip(self.names, self.roles):
                self._start(name, role)
            first, *others = self.hosts.values()
            self.address = first.wait("ready")["address"]
            for other in others if not self.relay else []:
                self._connect(other)
            # Every host was introduced to the last one.
            for host in self.hosts.values():
                host.wait("view", lambda view: view["peers"] == len(others))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in self.hosts.values():
            host.end()

    def host(self, name):
        return self.hosts[name]

    def add(self, name):
        """One more member of a room with a state, which dials the first one."""
        self._start(name, self.roles[0])
        self._connect(self.hosts[name])
        return self.hosts[name]

    def _start(self, name, role):
        self.hosts[name] = BenchHost(self.network.host(name), self.session, role, self.environment)

    def _connect(self, host):
        host.send_line(f"connect {self.address}")


def room_code():
    """A new one, from the library."""
    sys.path.insert(0, str(ROOT / "bindings/python"))
    os.environ.setdefault("MMN_LIBRARY", LIBRARY)
    import meta_mystia_network as mmn

    return mmn.generate_room_code()


class BenchHost:
    """One process."""

    def __init__(self, host, session, role, environment):
        self.host = host
        self.lines = queue.SimpleQueue()
        command = [compile_c("bench_host", "tests/lab/bench_host.c"), host.name, session, *([role] if role else [])]
        self.process = host.start(command, env=environment)
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, stream, peer, *, hz=0, size, count, options=()):
        """Starts a stream. `options` are delivery, channel, priority, ttl_ms and key, for mmn_send."""
        self.send_line(" ".join(str(word) for word in ("send", stream, peer, hz, size, count, *options)))

    def submit(self, *, hz=0, size, count):
        """Submits actions to the room's state."""
        self.send_line(f"submit {hz} {size} {count}")

    def transfer(self, peer, size):
        """Starts a transfer, which the peer takes."""
        self.send_line(f"transfer {peer} {size}")

    def sent(self, stream, seconds=120):
        """Waits until the library has accepted all of a stream."""
        return self.wait("sent", lambda sent: sent["stream"] == stream, seconds)

    def report(self):
        """Messages since the last report, by stream."""
        return self.whole_report()[0]

    def whole_report(self):
        """Messages since the last report, by stream, and the count of the actions."""
        self.send_line("report")
        report = self.wait("report")
        return {one["stream"]: one for one in report["streams"]}, report["actions"]

    def send_line(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait(self, event, condition=lambda _: True, seconds=60):
        """The first line of that kind that fulfils the condition. Later calls skip it and all lines before it."""
        deadline = time.monotonic() + seconds
        while True:
            line = self.lines.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line is not None, f"{self.host.name} has ended"
            if line["event"] == event and condition(line):
                return line

    def end(self):
        self.process.kill()
        self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)
