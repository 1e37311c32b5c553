"""delivery.c in Python.

    MMN_LIBRARY=... python3 tests/hosts/delivery/delivery.py ID SESSION [ADDRESS OF THE FIRST]
"""

import os
import select
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bindings" / "python"))
import meta_mystia_network as mmn

NUMBERED, ENOUGH, TOO_LONG = range(mmn.FIRST_USER_TYPE, mmn.FIRST_USER_TYPE + 3)
PEERS = 3
RELIABLE = 100
LOOSE = 20
KEYS = 2
LEAST_DATAGRAM = 1100
LAG_MS, JITTER_MS, LOSS_PERMILLE = 10, 100, 20
CHANNELS = {
    mmn.DELIVERY_RELIABLE_ORDERED: 1,
    mmn.DELIVERY_RELIABLE_UNORDERED: 128,
    mmn.DELIVERY_UNRELIABLE: 200,
    mmn.DELIVERY_SEQUENCED: 255,
}
LOOSE_EVERY_SECONDS = 0.02
TIMEOUT_SECONDS = 60


def fail(text):
    sys.stderr.write(f"FAILED {sys.argv[1]}: {text}\n")
    sys.stderr.flush()
    # A handler cannot raise through the library.
    os._exit(1)


class Peer:
    def __init__(self):
        self.seen = {delivery: set() for delivery in CHANNELS}
        self.newest = dict.fromkeys(range(KEYS), -1)  # of the sequenced messages
        self.answered = False  # knows that this member has received enough
        self.satisfied = False  # has received enough from this member

    def counts(self):
        return [len(seen) for seen in self.seen.values()]

    def enough(self):
        *reliable, unreliable, sequenced = self.counts()
        return reliable == [RELIABLE, RELIABLE] and unreliable >= LOOSE and sequenced >= LOOSE


def options_of(delivery, number=0):
    key = number % KEYS if delivery == mmn.DELIVERY_SEQUENCED else 0
    return mmn.SendOptions(delivery, CHANNELS[delivery], key=key)


def code_of(call):
    """The code of a refused call; 0 if it was accepted."""
    try:
        call()
        return 0
    except mmn.NetworkError as error:
        return error.code


class Member:
    def __init__(self, room):
        self.room = room
        self.peers = {}
        self.done = False
        room.on_event(self.on_event)

    def run(self):
        """Runs until the input ends."""
        start = time.monotonic()
        following = None
        number = 0
        while not (select.select([0], [], [], 0.005)[0] and not os.read(0, 1)):
            self.room.poll()
            now = time.monotonic()
            if following is None and len(self.peers) == PEERS:
                # From here on packets are lost and reordered.
                self.room.simulate_network(LAG_MS, JITTER_MS, LOSS_PERMILLE)
                self.send_reliable()
                self.refusals()
                following = now
            if following is not None and now >= following and not all(peer.satisfied for peer in self.peers.values()):
                self.send(mmn.DELIVERY_UNRELIABLE, number)
                self.send(mmn.DELIVERY_SEQUENCED, number)
                number += 1
                following = now + LOOSE_EVERY_SECONDS
            for name, peer in self.peers.items():
                if not peer.answered and peer.enough():
                    self.room.send(name, b"", ENOUGH)
                    peer.answered = True
            lack = self.lack()
            if lack is None and not self.done:
                self.done = True
                print("OK", flush=True)
            if lack and now > start + TIMEOUT_SECONDS:
                fail(f"not within {TIMEOUT_SECONDS} s: {lack}")

    def on_event(self, event):
        try:
            self.take(event)
        except Exception as error:
            fail(repr(error))

    def take(self, event):
        if isinstance(event, mmn.PeerJoined):
            self.peers[event.peer] = Peer()
            if len(self.peers) > PEERS:
                fail(f"{event.peer} is one member too many")
        elif isinstance(event, mmn.PeerLeft) and not self.done:
            fail(f"{event.peer} left too early")
        elif isinstance(event, mmn.Message) and event.type == NUMBERED:
            self.take_numbered(self.peers[event.sender], event)
        elif isinstance(event, mmn.Message) and event.type == ENOUGH:
            # A classic send.
            if (event.delivery, event.channel) != (mmn.DELIVERY_RELIABLE_ORDERED, 0):
                fail(f"a classic send of {event.sender} has delivery {event.delivery} and channel {event.channel}")
            self.peers[event.sender].satisfied = True
        elif isinstance(event, mmn.Message):
            fail(f"a message of type {event.type} from {event.sender}")

    @staticmethod
    def take_numbered(peer, message):
        what = f"{message.data.decode()} from {message.sender}"
        delivery, number = map(int, message.data.split())
        if message.delivery != delivery:
            fail(f"{what} has delivery {message.delivery}")
        if message.channel != CHANNELS[delivery]:
            fail(f"{what} came on channel {message.channel}")
        seen = peer.seen[delivery]
        if number in seen:
            fail(f"{what} came twice")
        if delivery == mmn.DELIVERY_RELIABLE_ORDERED and number != len(seen):
            fail(f"{what} came after {len(seen)} others")
        if delivery == mmn.DELIVERY_SEQUENCED:
            if number <= peer.newest[number % KEYS]:
                fail(f"{what} came after {peer.newest[number % KEYS]}")
            peer.newest[number % KEYS] = number
        seen.add(number)

    def send(self, delivery, number):
        data = f"{delivery} {number}".encode()
        if number % 2 == 0:
            self.room.broadcast(data, NUMBERED, options=options_of(delivery, number))
            return
        for name in self.peers:
            self.room.send(name, data, NUMBERED, options=options_of(delivery, number))

    def send_reliable(self):
        both = (mmn.DELIVERY_RELIABLE_ORDERED, mmn.DELIVERY_RELIABLE_UNORDERED)
        for number in range(RELIABLE - 1):
            for delivery in both:
                self.send(delivery, number)
        for delivery in both:
            data = f"{delivery} {RELIABLE - 1}".encode()
            took = self.room.broadcast_partial(data, NUMBERED, options=options_of(delivery))
            if took != PEERS:
                fail(f"a broadcast in part went to {took} members")

    def refusals(self):
        unreliable = options_of(mmn.DELIVERY_UNRELIABLE)
        self.too_long_is_refused(None, lambda data: self.room.broadcast(data, TOO_LONG, options=unreliable))
        for name in self.peers:
            self.too_long_is_refused(name, lambda data: self.room.send(name, data, TOO_LONG, options=unreliable))
        unknown = mmn.SendOptions(delivery=7)
        first = next(iter(self.peers))
        codes = [
            code_of(lambda: self.room.broadcast(b"?", TOO_LONG, options=unknown)),
            code_of(lambda: self.room.send(first, b"?", TOO_LONG, options=unknown)),
        ]
        if codes != [-3, -3]:
            fail(f"delivery 7 was answered {codes}")

    def too_long_is_refused(self, name, send):
        while True:
            size = self.room.max_datagram_size(name)
            if size < LEAST_DATAGRAM:
                fail(f"the longest datagram has {size} bytes")
            code = code_of(lambda: send(bytes(size + 1)))
            if code == -8:
                return
            # Path MTU discovery may have raised the link's limit meanwhile.
            if code != 0 or self.room.max_datagram_size(name) <= size:
                fail(f"a datagram that is too long was answered {code}")

    def lack(self):
        """The first thing that is missing; None when everything has arrived."""
        if len(self.peers) < PEERS:
            return "members are missing"
        for name, peer in self.peers.items():
            if not peer.enough() or not peer.satisfied:
                came = "{} ordered, {} unordered, {} unreliable, {} sequenced".format(*peer.counts())
                return f"from {name} came {came}; it has {'enough' if peer.satisfied else 'not enough'}"
        return None


def main():
    own_id, session, *address = sys.argv[1:]
    # A busy machine must not look like a lost link.
    options = mmn.NetworkOptions(discovery_mode=mmn.DISCOVERY_OFF, heartbeat_timeout_multiplier=20)
    try:
        with mmn.Room(own_id, session, options=options) as room:
            member = Member(room)
            print(f"address {room.local_address}", flush=True)
            if address:
                room.connect(address[0])
            member.run()
    except mmn.NetworkError as error:
        fail(f"{error} ({error.code})")
    return 0 if member.done else 1


if __name__ == "__main__":
    sys.exit(main())
