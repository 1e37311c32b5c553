"""A member for `nat.py` and `relays.py`: `nat_member.py NAME PORT ENTRY PER_SECOND OPTIONS`; OPTIONS is JSON, for
`NetworkOptions`, and may name the session. MMN_LIBRARY names the library, and MMN_BINDINGS the folder of its Python package, if
that is not the one of this source tree.

Reads commands, a JSON list a line: ["connect", ADDRESS], ["turn", SERVERS], ["transfer", PEER, BYTES], ["quiet", YES], ["mark"],
["report"], ["quit"]. Prints what happens, a JSON object a line, with the time of a clock that all processes of the machine share.
"""

import collections
import json
import os
import queue
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, os.environ.get("MMN_BINDINGS") or str(Path(__file__).resolve().parents[2] / "bindings/python"))
import meta_mystia_network as mmn  # noqa: E402

SESSION = "a room across the internet"
ENTRIES = {"any": mmn.ENTRY_ANY, "create": mmn.ENTRY_CREATE, "join": mmn.ENTRY_JOIN}
INTERVAL_SECONDS = 0.02
NUMBERED = mmn.MIN_MESSAGE_TYPE
NUMBER_AND_TIME = struct.Struct("<Qd")
PATH_CHANGED = getattr(mmn, "PathChanged", ())
"""Libraries without this event are asked for the path again and again."""
RELAY_CHANGED = getattr(mmn, "RelayChanged", ())
PORT_MAPPING_CHANGED = getattr(mmn, "PortMappingChanged", ())
TURN_CHANGED = getattr(mmn, "TurnChanged", ())
TRANSFER_OFFERED = getattr(mmn, "TransferOffered", ())
TRANSFER_RESULT = getattr(mmn, "TransferResult", ())
PATHS = {mmn.PATH_DIRECT: "direct", getattr(mmn, "PATH_THROUGH_RELAY", None): "relayed", getattr(mmn, "PATH_THROUGH_TURN", None): "turn"}


class Member:
    """Sends every peer that many numbered, reliable messages a second, and checks what it receives."""

    def __init__(self, name, port, entry, per_second, options):
        session = options.pop("session", SESSION)
        options = mmn.NetworkOptions(
            bind_port=port, entry=ENTRIES[entry], discovery_mode=mmn.DISCOVERY_OFF, mdns_port=0, **options
        )
        self.per_second = per_second
        self.peers, self.paths = {}, {}
        self.is_quiet = False
        report("opens")
        self.room = mmn.Room(name, session, options=options, on_event=self.on_event)

    def on_event(self, event):
        if isinstance(event, mmn.Message):
            self.peers[event.sender].receive(*NUMBER_AND_TIME.unpack(event.data))
        elif isinstance(event, mmn.PeerJoined):
            self.peers.setdefault(event.peer, Peer())
            self.look_at(event.peer)
            report("joined", event.peer, address=self.room.address(event.peer))
        elif isinstance(event, mmn.PeerLeft):
            report("left", event.peer, reason=event.reason)
        elif isinstance(event, mmn.PeerReconnecting):
            report("reconnecting", event.peer)
        elif isinstance(event, mmn.PeerReturned):
            self.look_at(event.peer)
            report("returned", event.peer, undelivered=event.undelivered, missed=event.missed)
        elif isinstance(event, PATH_CHANGED):
            self.look_at(event.peer)
        elif isinstance(event, PORT_MAPPING_CHANGED):
            report("mapping", code=int(event.code), data=event.data.decode(), public=self.room.public_address)
        elif isinstance(event, TURN_CHANGED):
            report("turn", code=int(event.code), server=event.server, data=event.data.decode())
        elif isinstance(event, TRANSFER_OFFERED):
            self.room.accept_transfer(event.sender, event.transfer, bytearray(event.size))
        elif isinstance(event, TRANSFER_RESULT):
            report("transferred", event.peer, done=event.done, success=event.success)
        elif isinstance(event, RELAY_CHANGED):
            report("relay", code=int(event.code), relay=event.relay, data=event.data.decode())
        elif isinstance(event, mmn.LeaderChanged):
            report("leader", event.leader or "")
        elif isinstance(event, mmn.ConnectionResult):
            report("result", event.peer or "", code=int(event.code), data=event.data.decode())

    def play(self):
        commands = queue.SimpleQueue()

        def read():
            for line in sys.stdin:
                commands.put(json.loads(line))
            commands.put(["quit"])

        threading.Thread(target=read, daemon=True).start()
        report("ready")
        due = time.monotonic()
        while True:
            while not commands.empty():
                what, *arguments = commands.get()
                if what == "quit":
                    return self.room.close()
                getattr(self, what)(*arguments)
            self.room.poll()
            if not PATH_CHANGED:
                for peer in self.room.peers:
                    self.look_at(peer)
            while due <= time.monotonic():
                if not self.is_quiet:
                    self.send()
                due += 1 / self.per_second
            time.sleep(INTERVAL_SECONDS)

    def connect(self, address):
        report("dials")
        self.room.connect(address)

    def turn(self, servers):
        self.room.set_turn(servers)

    def transfer(self, peer, size):
        self.room.send_transfer(peer, bytes(size))

    def quiet(self, yes):
        self.is_quiet = yes

    def mark(self):
        """From now on each peer's latencies and longest pause count anew."""
        self.room.poll()
        for peer in self.peers.values():
            peer.latencies_ms.clear()
            peer.slowest_ms = peer.pause_ms = 0

    def report(self):
        self.room.poll()
        peers = {name: peer.counts() for name, peer in self.peers.items()}
        paths = {name: self.path(name) for name in self.room.peers}
        addresses = {name: self.room.address(name) for name in paths}
        report("report", peers=peers, leader=self.room.leader, paths=paths, addresses=addresses)

    def look_at(self, peer):
        path = self.path(peer)
        if path not in (None, self.paths.get(peer)):
            self.paths[peer] = path
            report("path", peer, path=path)

    def path(self, peer):
        try:
            return PATHS.get(self.room.stats(peer).path, "carried")
        except mmn.NetworkError:
            return None

    def send(self):
        for name in self.room.members:
            peer = self.peers.setdefault(name, Peer())
            try:
                self.room.send(name, NUMBER_AND_TIME.pack(peer.sent + 1, time.monotonic()), NUMBERED)
            except mmn.NetworkError:
                continue
            peer.sent += 1


class Peer:
    """Messages to and from a peer: accepted ones, and by their numbers what became of the peer's."""

    def __init__(self):
        self.sent = self.received = self.last = 0
        self.lost = self.duplicated = 0
        self.slowest_ms = 0
        self.arrived = None
        self.pause_ms = 0
        """The longest time between two messages that arrived."""
        self.latencies_ms = collections.Counter()

    def counts(self):
        """All but the latencies, of which it has the median and the 99th percentile."""
        values = {name: value for name, value in vars(self).items() if name != "latencies_ms"}
        ordered = sorted(self.latencies_ms.elements()) or [0]
        at = lambda part: ordered[min(len(ordered) - 1, int(part * len(ordered)))]
        return {**values, "p50_ms": at(0.5), "p99_ms": at(0.99)}

    def receive(self, number, sent_at):
        self.received += 1
        # In order, so that a number that comes late counts as a duplicate, and as lost before.
        self.lost += max(0, number - self.last - 1)
        self.duplicated += number <= self.last
        self.last = max(self.last, number)
        now = time.monotonic()
        latency_ms = round((now - sent_at) * 1000)
        self.latencies_ms[latency_ms] += 1
        self.slowest_ms = max(self.slowest_ms, latency_ms)
        self.pause_ms = max(self.pause_ms, round((now - (self.arrived or now)) * 1000))
        self.arrived = now


def report(event, peer="", **more):
    print(json.dumps({"at": time.monotonic(), "event": event, "peer": peer, **more}), flush=True)


if __name__ == "__main__":
    name, port, entry, per_second, options = sys.argv[1:]
    Member(name, int(port), entry, int(per_second), json.loads(options)).play()
