"""A member for `nat.py`: `nat_member.py NAME PORT ENTRY`. MMN_LIBRARY names the library.

Reads commands, a JSON list a line: ["connect", ADDRESS], ["quiet", YES], ["report"], ["quit"]. Prints what happens, a JSON object
a line, with the time of a clock that all processes of the machine share.
"""

import json
import queue
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings/python"))
import meta_mystia_network as mmn  # noqa: E402

SESSION = "a room across the internet"
ENTRIES = {"create": mmn.ENTRY_CREATE, "join": mmn.ENTRY_JOIN}
INTERVAL_SECONDS = 0.02
NUMBERED = mmn.MIN_MESSAGE_TYPE
NUMBER_AND_TIME = struct.Struct("<Qd")


class Member:
    """Sends every peer 50 numbered, reliable messages a second, and checks what it receives."""

    def __init__(self, name, port, entry):
        options = mmn.NetworkOptions(
            bind_port=port, entry=ENTRIES[entry], discovery_mode=mmn.DISCOVERY_OFF, mdns_port=0
        )
        self.peers, self.paths = {}, {}
        self.is_quiet = False
        self.room = mmn.Room(name, SESSION, options=options, on_event=self.on_event)

    def on_event(self, event):
        if isinstance(event, mmn.Message):
            self.peers[event.sender].receive(*NUMBER_AND_TIME.unpack(event.data))
        elif isinstance(event, mmn.PeerJoined):
            self.peers.setdefault(event.peer, Peer())
            report("joined", event.peer, address=self.room.address(event.peer))
        elif isinstance(event, mmn.PeerLeft):
            report("left", event.peer, reason=event.reason)
        elif isinstance(event, mmn.PeerReconnecting):
            report("reconnecting", event.peer)
        elif isinstance(event, mmn.PeerReturned):
            report("returned", event.peer, undelivered=event.undelivered, missed=event.missed)
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
        while True:
            while not commands.empty():
                what, *arguments = commands.get()
                if what == "quit":
                    return self.room.close()
                getattr(self, what)(*arguments)
            self.room.poll()
            for peer in self.room.peers:
                self.look_at(peer)
            if not self.is_quiet:
                self.send()
            time.sleep(INTERVAL_SECONDS)

    def connect(self, address):
        report("dials")
        self.room.connect(address)

    def quiet(self, yes):
        self.is_quiet = yes

    def report(self):
        report("report", peers={name: vars(peer) for name, peer in self.peers.items()}, leader=self.room.leader)

    def look_at(self, peer):
        try:
            path = mmn.LinkPath(self.room.stats(peer).path).name.lower().replace("_", " ")
        except mmn.NetworkError:
            return
        if self.paths.get(peer) != path:
            self.paths[peer] = path
            report("path", peer, path=path)

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

    def receive(self, number, sent_at):
        self.received += 1
        # In order, so that a number that comes late counts as a duplicate, and as lost before.
        self.lost += max(0, number - self.last - 1)
        self.duplicated += number <= self.last
        self.last = max(self.last, number)
        self.slowest_ms = max(self.slowest_ms, round((time.monotonic() - sent_at) * 1000))


def report(event, peer="", **more):
    print(json.dumps({"at": time.monotonic(), "event": event, "peer": peer, **more}), flush=True)


if __name__ == "__main__":
    Member(sys.argv[1], int(sys.argv[2]), sys.argv[3]).play()
