"""Browsers of the local network, against the built library: each host is a process. Run by `tests/hosts` where only loopback
exists; MMN_LIBRARY names the library. Arguments name the tests; without any, all run.

A host reads commands from its standard input, one JSON list a line, and answers each with one line (see `host`).
"""

import contextlib
import ctypes
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bindings/python"))
import meta_mystia_network as mmn  # noqa: E402

LIMIT_SECONDS = 60
GROUP, PORT = "224.0.0.251", mmn.DEFAULT_CARD_PORT
GAME = "browse test"
CLONE_NEWNET = 0x40000000
GONE_SECONDS = 15
"""A room whose process was killed is gone after this."""


class Host:
    """The host's process: rooms by number, and one browser."""

    def __init__(self):
        self.rooms, self.browser, self.reports, self.left = {}, None, [], 0

    def open(self, peer, session, options=None):
        number = len(self.rooms)
        self.rooms[number] = mmn.Room(peer, session, mmn.NetworkOptions(dispatch_mode=mmn.DISPATCH_THREAD, **(options or {})))
        return number

    def show(self, number, name, fields=None):
        fields = fields or {}
        fields["data"] = fields.get("data", "").encode("latin-1")
        self.rooms[number].show_card(mmn.RoomCard(fields.pop("game", GAME), name, **fields))

    def hide(self, number):
        self.rooms[number].show_card(None)

    def connect(self, number, address):
        self.rooms[number].connect(address)

    def peers(self, number):
        return self.rooms[number].peers

    def leads(self, number):
        return self.rooms[number].is_leader

    def fingerprint(self, number):
        return self.rooms[number].identity_fingerprint

    def close(self, number):
        self.rooms[number].close()

    def browse(self, polls=False, game=GAME):
        self.browser = mmn.Browser(game, self.reports.append, polls=polls)

    def poll(self, most):
        return self.browser.poll(most)

    def stop(self):
        self.browser.close()

    def news(self):
        """The reports since the last such call."""
        news, self.left = self.reports[self.left :], len(self.reports)
        return [{**vars(room), "change": room.change.name, "data": room.data.decode("latin-1")} for room in news]

    def listed(self):
        return [room.name for room in self.browser.rooms]

    def unshare(self):
        """Moves the process to a machine of its own, which has no cable yet."""
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        self.run("ip link set lo up")
        return os.getpid()

    def run(self, command):
        subprocess.run(command.split(), check=True)

    def memory(self):
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def host():
    served = Host()
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        print(json.dumps(getattr(served, command)(*arguments)), flush=True)
    os._exit(0)


class Process:
    """A host's process as seen by the test: its methods are the host's."""

    alive = []

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        Process.alive.append(self)

    def __getattr__(self, name):
        def ask(*arguments):
            self.process.stdin.write(json.dumps([name, *arguments]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            assert line, f"{name} ended the process: {self.process.wait()}"
            return json.loads(line)

        return ask

    def kill(self):
        self.process.kill()
        self.process.wait()
        Process.alive.remove(self)


def eventually(what, condition, seconds=LIMIT_SECONDS):
    """The condition's value, once it holds."""
    limit = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < limit, f"it never came about: {what}"
        time.sleep(0.02)
    return value


class Watch:
    """A browser in a process."""

    def __init__(self, process=None, polls=False, game=GAME):
        self.process = process or Process()
        self.process.browse(polls, game)
        self.seen = []

    def look(self):
        self.seen += self.process.news()
        return self.seen

    def wait(self, change, name, seconds=LIMIT_SECONDS, **fields):
        """The next report of that kind."""

        def found():
            self.look()
            for place, room in enumerate(self.seen):
                if (room["change"], room["name"]) == (change, name) and all(room[key] == value for key, value in fields.items()):
                    return self.seen.pop(place)
            return None

        return eventually(f"{change} {name} {fields}; there was {self.seen}", found, seconds)


def creator(name, session, card=True, options=None, **fields):
    """A process that has created a room and shows its card."""
    process = Process()
    number = process.open(name, session, {"entry": mmn.ENTRY_CREATE, **(options or {})})
    eventually(f"{name} leads", lambda: process.leads(number))
    if card:
        process.show(number, f"{name}'s room", fields)
    return process


def test_list():
    """A browser finds a room, sees it grow, joins it by what its card holds, and sees it end."""
    watch = Watch()
    hidden = creator("hidden", "nobody lists this", card=False)
    ann = creator("ann", "tea", is_open=True, max_players=8, data="map\x00\x01\xff")
    room = watch.wait("FOUND", "ann's room")
    assert (room["session_id"], room["players"], room["max_players"], room["needs_secret"]) == ("tea", 1, 8, False), room
    assert room["data"] == "map\x00\x01\xff" and room["fingerprint"] == ann.fingerprint(0), room
    joined = watch.process.open("bob", room["session_id"], {"entry": mmn.ENTRY_JOIN})
    watch.process.connect(joined, room["address"])
    grown = watch.wait("CHANGED", "ann's room", players=2)
    assert grown["id"] == room["id"] and watch.process.peers(joined) == ["ann"], grown
    ann.show(0, "ann's room", {"is_open": False, "max_players": 4})
    changed = watch.wait("CHANGED", "ann's room", max_players=4)
    assert (changed["session_id"], changed["data"]) == (None, ""), changed
    watch.process.close(joined)
    watch.wait("CHANGED", "ann's room", players=1)
    ann.close(0)
    gone = watch.wait("GONE", "ann's room")
    assert gone["id"] == room["id"], gone
    assert not watch.look(), watch.seen
    assert hidden.leads(0)


def test_secret():
    """A card shows that a secret is needed, and holds no session id unless the host asks for that."""
    watch = Watch()
    creator("ann", "tea", options={"secret": "sesame"})
    room = watch.wait("FOUND", "ann's room")
    assert room["needs_secret"] and room["session_id"] is None, room


def test_hide():
    """A card that is taken down, or shown for another game, is gone from the list; another game's browser never has it."""
    watch, other = Watch(), Watch(game="another game")
    ann = creator("ann", "tea")
    first = watch.wait("FOUND", "ann's room")
    bob = Process()
    bob.open("bob", "tea", {"entry": mmn.ENTRY_JOIN})
    bob.connect(0, first["address"])
    watch.wait("CHANGED", "ann's room", players=2)
    # The browser waits for no successor then.
    ann.hide(0)
    began = time.monotonic()
    watch.wait("GONE", "ann's room")
    assert time.monotonic() - began < 4
    ann.show(0, "ann's room")
    again = watch.wait("FOUND", "ann's room")
    assert again["id"] != first["id"]
    assert not other.look(), other.seen
    ann.show(0, "ann's room", {"game": "another game"})
    watch.wait("GONE", "ann's room")
    other.wait("FOUND", "ann's room")


def test_killed():
    """A room whose process dies is gone within a bounded time."""
    watch = Watch()
    ann = creator("ann", "tea")
    watch.wait("FOUND", "ann's room")
    ann.kill()
    began = time.monotonic()
    watch.wait("GONE", "ann's room")
    took = time.monotonic() - began
    assert 2 < took < GONE_SECONDS, took
    print(f"gone after {took:.1f} s")


def test_successor():
    """When the leader dies, and when it leaves, the room stays in the list under the next leader, with its number."""
    watch = Watch()
    members = [creator("ann", "tea", is_open=True)]
    room = watch.wait("FOUND", "ann's room")
    for name in ("bob", "cai"):
        process = Process()
        members.append(process)
        process.open(name, "tea", {"entry": mmn.ENTRY_JOIN})
        process.connect(0, room["address"])
        process.show(0, f"{name}'s room", {"is_open": True})
    watch.wait("CHANGED", "ann's room", players=3)
    for kill in (True, False):
        leader = next(one for one in members if one.leads(0))
        members.remove(leader)
        leader.kill() if kill else leader.close(0)
        eventually("another leads", lambda: any(one.leads(0) for one in members))
        fingerprint = next(one for one in members if one.leads(0)).fingerprint(0)

        def taken_over():
            return [seen for seen in watch.look() if seen["fingerprint"] == fingerprint]

        seen = eventually("the next leader's card is listed", taken_over)
        assert {(one["id"], one["change"]) for one in seen} == {(room["id"], "CHANGED")}, watch.seen
        assert not [one for one in watch.seen if one["change"] != "CHANGED"], watch.seen


def test_lan():
    """Two machines on a cable that is plugged in late, pulled, and plugged in again."""
    ann, watcher = Process(), Process()
    machines = [ann.unshare(), watcher.unshare()]
    ann.open("ann", "tea", {"entry": mmn.ENTRY_CREATE})
    ann.show(0, "ann's room", {"is_open": True})
    watch = Watch(process=watcher)
    subprocess.run("ip link add mmn-a type veth peer name mmn-b".split(), check=True)
    for number, (machine, one) in enumerate(zip(machines, (ann, watcher)), 1):
        device = "mmn-" + "_ab"[number]
        subprocess.run(["ip", "link", "set", device, "netns", str(machine)], check=True)
        one.run(f"ip addr add 10.99.0.{number}/24 dev {device}")
        one.run(f"ip link set {device} up")
    room = watch.wait("FOUND", "ann's room")
    assert room["address"].startswith("10.99.0.1:"), room
    watcher.open("bob", room["session_id"], {"entry": mmn.ENTRY_JOIN})
    watcher.connect(0, room["address"])
    watch.wait("CHANGED", "ann's room", players=2)
    ann.run("ip link set mmn-a down")
    watch.wait("GONE", "ann's room")
    ann.run("ip link set mmn-a up")
    watch.wait("FOUND", "ann's room")


def test_poll():
    """In poll mode nothing runs before poll(), and one report for each room waits: the newest."""
    watch = Watch(polls=True)
    ann = creator("ann", "tea", max_players=1)
    for number in range(2, 5):
        time.sleep(0.6)
        assert not watch.look()
        ann.show(0, "ann's room", {"max_players": number})
    eventually("a report", lambda: watch.process.poll(1))
    (room,) = watch.look()
    assert room["change"] == "FOUND" and room["max_players"] > 1, room
    ann.show(0, "ann's room", {"max_players": 9})

    def last():
        watch.process.poll(9)
        return watch.look()[-1]["max_players"] == 9

    eventually("the last card", last)
    assert len(watch.seen) <= 3, watch.seen
    watch.process.stop()


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def answer(question, to, key, number, rank=(0, 1), successors=b"", shown=None):
    """An answer as src/net/cards/packet.rs writes it, with a signature of chance."""
    body = question + socket.inet_aton(to[0]) + varint(to[1]) + key + varint(number) + varint(rank[0]) + varint(rank[1])
    body += varint(len(successors)) + successors
    if shown is None:
        body += b"\0"
    else:
        port, name, data = shown
        body += b"\1" + varint(port) + varint(1) + varint(0) + b"\0\0" + varint(len(name)) + name + varint(len(data)) + data
    return b"mmnc\x01\x02" + body + os.urandom(64)


def listening():
    """A socket that receives the questions of browsers."""
    questions = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    questions.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    questions.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    questions.bind(("", PORT))
    member = socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1")
    questions.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    questions.settimeout(LIMIT_SECONDS)
    return questions


def keys_of(browser):
    """The keys of the rooms, as a browser of the liar's learns them, and their answers to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.2", 0))
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        own.settimeout(1)
        answers = {}
        for _ in range(3):
            own.sendto(b"mmnc\x01\x01" + browser, (GROUP, PORT))
            with contextlib.suppress(TimeoutError):
                while True:
                    packet, _ = own.recvfrom(2000)
                    after = 6 + 16 + 4
                    # The port of the receiver has up to three bytes.
                    while packet[after] & 0x80:
                        after += 1
                    answers[packet[after + 1 : after + 33]] = packet
        return answers


def lie(seconds):
    """Floods every browser that asks with what it must not believe; prints the number of packets."""
    questions = listening()
    packet, browser = questions.recvfrom(2000)
    question = packet[6:22]
    answers = keys_of(question)
    keys = list(answers)
    sockets = []
    for place in range(2, 32):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((f"127.0.0.{place}", 0))
        sockets.append(one)
    until, sent, chance = time.monotonic() + float(seconds), 0, random.Random(1)
    while time.monotonic() < until:
        key = chance.choice(keys)
        kind = sent % 7
        forged = (
            answer(question, browser, key, 1 << 60),
            answer(question, browser, key, 1 << 60, (99, 99), shown=(9, b"liar's", b"")),
            answer(question, browser, os.urandom(32), 1, shown=(9, b"fake", os.urandom(400))),
            answer(question, browser, os.urandom(32), 1, shown=(9, b"n" * 65, b"")),
            answer(question, browser, key, 1, shown=(9, b"\xff\xfe", os.urandom(4000))),
            answers[key],
            os.urandom(chance.randrange(1, 1400)),
        )[kind]
        with contextlib.suppress(OSError):
            chance.choice(sockets).sendto(forged, browser)
        sent += 1
    print(json.dumps([sent, len(keys)]))


def test_liar():
    """Fifty rooms stay listed while others forge their ends and cards, flood the browser and show more rooms than fit."""
    crowd = Process()
    for number in range(50):
        crowd.open(f"real {number}", f"session {number}", {"entry": mmn.ENTRY_CREATE, "bind_address": "127.0.0.1"})
        crowd.show(number, f"real {number}")
    watch = Watch()
    eventually("fifty rooms are listed", lambda: len(watch.process.listed()) == 50)
    before = watch.process.memory()
    watch.look()
    watch.seen.clear()
    # Rooms that are there, and shown by the rules.
    others = Process()
    for number in range(80):
        others.open(f"other {number}", f"another {number}", {"entry": mmn.ENTRY_CREATE, "bind_address": "127.0.0.40"})
        others.show(number, f"other {number}")
    forger = subprocess.Popen([sys.executable, __file__, "lie", "20"], stdout=subprocess.PIPE, text=True)
    printed, _ = forger.communicate(timeout=LIMIT_SECONDS * 2)
    sent, keys = json.loads(printed)
    assert keys >= 50 and sent > 20_000, (sent, keys)
    eventually("as many others as fit are listed", lambda: len(watch.process.listed()) == 50 + 64)
    reports = watch.look()
    listed = watch.process.listed()
    grown = watch.process.memory() - before
    real = [name for name in listed if name.startswith("real")]
    assert len(set(real)) == 50 and len(listed) == 50 + 64, listed
    assert not [one for one in reports if one["change"] != "FOUND" or not one["name"].startswith("other")], reports
    assert grown < 8 << 20, grown
    print(f"{sent} forged packets; {grown >> 10} KiB more")


def packets(seconds, port=None):
    """Numbers of UDP packets on loopback in that time: (questions, other packets)."""
    ip, udp = 0x0800, 17
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ip)) as sniffer:
        sniffer.settimeout(0.1)
        asked, other = 0, 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                packet, (_, _, kind, _, _) = sniffer.recvfrom(4000)
            except TimeoutError:
                continue
            if kind == socket.PACKET_OUTGOING or packet[9] != udp:
                continue
            to = struct.unpack_from("!H", packet, 22)[0]
            payload = packet[28:]
            if to == PORT:
                asked += 1
            elif payload.startswith(b"mmnc"):
                other += 1
        return asked, other


def test_silent():
    """A room without a card answers no browser, and a card costs no packet without a browser."""
    silent = creator("silent", "nobody lists this", card=False)
    ann = creator("ann", "tea")
    assert packets(5) == (0, 0)
    ann.kill()
    watch = Watch()
    asked, answered = packets(10)
    assert asked >= 3 and answered == 0, (asked, answered)
    assert silent.leads(0) and not watch.look()


def idle(seconds):
    """Prints the packets of a room and a browser that do nothing."""
    creator("ann", "tea", data="x" * 400, is_open=True)
    seconds = float(seconds)
    print("nobody browses:", packets(seconds))
    watch = Watch()
    watch.wait("FOUND", "ann's room")
    time.sleep(3)
    print("one browser:", packets(seconds), "in", seconds, "s")


def main():
    if sys.argv[1:2] == ["host"]:
        return host()
    if sys.argv[1:2] == ["lie"]:
        return lie(sys.argv[2])
    tests = {name[5:]: test for name, test in globals().items() if name.startswith("test_")}
    try:
        if sys.argv[1:2] == ["idle"]:
            return idle(sys.argv[2])
        for name in sys.argv[1:] or tests:
            began = time.monotonic()
            tests[name]()
            for one in list(Process.alive):
                one.kill()
            print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
    finally:
        for one in Process.alive:
            one.process.kill()


if __name__ == "__main__":
    main()
