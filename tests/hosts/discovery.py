"""Discovery in the local network, against the built library: each member is a process. Run by `tests/hosts` where only loopback
exists; MMN_LIBRARY names the library. Arguments name the tests; without any, all run.

A member reads commands from its standard input and answers each with one line (see `member`).
"""

import ctypes
import hashlib
import hmac
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bindings/python"))
import meta_mystia_network as mmn  # noqa: E402

LIMIT_SECONDS = 60
GROUP, PORT = "224.0.0.251", 15353
OFF, REPORT, CONNECT = 0, 1, 2
CLONE_NEWNET = 0x40000000

def check(lib, code):
    if code != 0:
        raise SystemExit(f"{code}: {lib.GetLastErrorMessage().decode()}")


def initialize(lib, name, session, mode, more):
    """Without a mode, as classic hosts start discovery."""
    if mode == "classic":
        return check(lib, lib.InitializeNetwork(name, session))
    options = mmn._MmnOptions(struct_size=ctypes.sizeof(mmn._MmnOptions))
    check(lib, lib.mmn_default_options(ctypes.byref(options)))
    options.is_default = 1
    options.discovery_mode = int(mode)
    for field, value in more.items():
        if field == "secret":
            options.secret, options.secret_length = ctypes.cast(value.encode(), ctypes.c_void_p), len(value)
        else:
            setattr(options, field, value.encode() if field == "bind_address" else int(value))
    check(lib, lib.mmn_open(name, session, ctypes.byref(options), ctypes.byref(ctypes.c_uint64())))


def member(name, session, mode, *more):
    """The member process: reads commands, answers each with a line."""
    lib = ctypes.CDLL(os.environ["MMN_LIBRARY"])
    for function in ("GetLastErrorMessage", "GetLocalAddr", "GetPeerList"):
        getattr(lib, function).restype = ctypes.c_char_p
    lib.IsMdnsActive.restype = ctypes.c_uint8
    if "unshare" in more:
        if lib_c().unshare(CLONE_NEWNET) != 0:
            raise SystemExit(f"unshare: {os.strerror(ctypes.get_errno())}")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        print("unshared", flush=True)
        for line in iter(sys.stdin.readline, "\n"):
            subprocess.run(line.split(), check=True)
    lib.EnableLogging(1)
    initialize(lib, name.encode(), session.encode(), mode, dict(pair.split("=", 1) for pair in more if "=" in pair))
    print("open", flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "peers":
            answer = ",".join(lib.GetPeerList().decode().split())
        elif command == "active":
            answer = lib.IsMdnsActive()
        elif command == "address":
            answer = lib.GetLocalAddr().decode()
        elif command == "connect":
            answer = lib.ConnectToPeer(arguments[0].encode())
        elif command == "disconnect":
            answer = lib.DisconnectPeer(arguments[0].encode())
        elif command == "threads":
            answer = len(os.listdir("/proc/self/task"))
        elif command == "close":
            began = time.monotonic()
            check(lib, lib.ShutdownNetwork())
            answer = round((time.monotonic() - began) * 1000)
        print(answer, flush=True)
    os._exit(0)


def lib_c():
    return ctypes.CDLL(None, use_errno=True)


class Member:
    """A member process as seen by the test."""

    alive = []

    def __init__(self, name, session, mode="classic", *more):
        self.name, self.log = name, []
        self.process = subprocess.Popen(
            [sys.executable, __file__, "member", name, session, str(mode), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        Member.alive.append(self)
        threading.Thread(target=self._read_log, daemon=True).start()
        if "unshare" not in more:
            assert self._answer() == "open", self.log

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip())

    def _answer(self):
        line = self.process.stdout.readline().strip()
        if not line and self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}: {self.log[-5:]}")
        return line

    def ask(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def peers(self):
        return set(self.ask("peers").split(",")) - {""}

    def logged(self, text):
        return [line for line in self.log if text in line]

    def kill(self):
        self.process.kill()
        self.process.wait()
        Member.alive.remove(self)

    def close(self):
        took = int(self.ask("close"))
        self.process.stdin.close()
        self.process.wait(LIMIT_SECONDS)
        Member.alive.remove(self)
        return took


def eventually(what, condition):
    limit = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > limit:
            logs = {one.name: one.log[-20:] for one in Member.alive}
            raise AssertionError(f"it never came about: {what}; {logs}")
        time.sleep(0.05)


def linked(*members):
    names = {one.name for one in members}
    eventually(f"a room of {sorted(names)}", lambda: all(one.peers() == names - {one.name} for one in members))


def stays_so(seconds, what, condition):
    """For an event that must not happen."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert condition(), f"{what}; {[(one.name, one.log[-20:]) for one in Member.alive]}"
        time.sleep(0.1)


def tag(session):
    return hmac.new(session.encode(), b"mmn mdns", hashlib.sha256).hexdigest()[:4]


def sessions_of_one_tag():
    seen = {}
    for number in range(100_000):
        session = f"discovery {number}"
        other = seen.setdefault(tag(session), session)
        if other != session:
            return other, session
    raise AssertionError("no collision of 16 bits in 100,000 names")


def test_connect():
    """Two members of a room connect without a call of their hosts, and leave quickly."""
    a, b = Member("a", "found"), Member("b", "found")
    linked(a, b)
    eventually("both are announced", lambda: a.ask("active") == b.ask("active") == "1")
    threads = int(a.ask("threads"))
    assert threads >= 4, threads
    for one in (a, b):
        took = one.close()
        assert took < 2500, f"{one.name} took {took} ms to leave"


def test_return():
    """A member that crashes and returns under its id, with another key and port, is discovered again."""
    a, b = Member("a", "returns"), Member("b", "returns")
    linked(a, b)
    b.kill()
    eventually("b is gone", lambda: not a.peers())
    b = Member("b", "returns")
    linked(a, b)
    third = Member("c", "returns")
    linked(a, b, third)
    for one in (a, b, third):
        one.close()


def test_rooms():
    """Rooms on one network stay apart: with different tags, with equal tags, and with different secrets."""
    one, other = sessions_of_one_tag()
    rooms = [
        [Member("a", "first room", CONNECT), Member("b", "first room", CONNECT)],
        [Member("a", one, CONNECT), Member("b", one, CONNECT)],
        [Member("a", other, CONNECT), Member("b", other, CONNECT)],
        [Member("a", "secrets", CONNECT, "secret=tea"), Member("b", "secrets", CONNECT, "secret=tea")],
        [Member("c", "secrets", CONNECT, "secret=coffee"), Member("d", "secrets", CONNECT, "secret=coffee")],
    ]
    for room in rooms:
        linked(*room)

    def apart():
        return all(len(one.peers()) == 1 for room in rooms for one in room)

    # Members with equal tags have tried to connect within seconds.
    stays_so(5, "every member has its one mate", apart)
    for room in rooms:
        linked(*room)
        for one in room:
            one.close()


def test_crowd():
    """32 processes on one address all connect: many links do not count as wrong guesses."""
    members = [Member(f"p{number:02}", "crowd", CONNECT) for number in range(32)]
    linked(*members)
    for one in members:
        assert not one.logged("wrong guesses") and not one.logged("may be guessing"), one.log
    for one in members:
        one.close()


def test_report():
    """A member that only reports passes every discovered address to its host and dials none; its host's call does."""
    a, b = Member("a", "reports", REPORT), Member("b", "reports", REPORT)
    stranger = Member("x", "another room", REPORT)
    port = b.ask("address").rsplit(":", 1)[1]
    found = f"127.0.0.1:{port}"
    eventually(f"a finds {found}", lambda: [line for line in a.logged("discovered") if found in line])
    eventually("b finds a", lambda: b.logged("discovered"))
    stays_so(4, "no peer is linked", lambda: not a.peers() and not b.peers())
    assert len([line for line in a.logged("discovered") if found in line]) == 1, a.log
    assert not stranger.logged("discovered"), stranger.log
    assert a.ask("connect", found) == "0"
    linked(a, b)
    for one in (a, b, stranger):
        one.close()


def test_off():
    """A member without discovery sends nothing to the group and is not discovered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as group:
        group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        group.bind(("", PORT))
        membership = socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1")
        group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        group.settimeout(3)
        off = Member("a", "silent", OFF)
        assert off.ask("active") == "0"
        try:
            packet = group.recv(9000)
        except socket.timeout:
            packet = b""
        assert not packet, packet
        # The listener works, and the packets that it receives name neither the room, nor the member, nor the secret.
        group.settimeout(LIMIT_SECONDS)
        loud = Member("loud", "silent", CONNECT, "secret=whisper")
        until = time.monotonic() + 3
        received = group.recv(9000)
        while time.monotonic() < until:
            group.settimeout(0.5)
            try:
                received += group.recv(9000)
            except socket.timeout:
                pass
    assert b"_meta-mystia" in received and f"t={tag('silent')}".encode() in received, received
    for secret in (b"silent", b"loud", b"whisper"):
        assert secret not in received, (secret, received)
    assert not off.peers() and not loud.peers()
    off.close()
    loud.close()


def test_twins():
    """Two pairs of one room discover each other, and both have a member called player: three form a room, and the fourth receives
    the reason.
    """
    for number in range(3):
        session = f"twins {number}"
        one, ann = Member("player", session), Member("ann", session)
        other, cid = Member("player", session), Member("cid", session)

        def is_one_room():
            room = ann.peers() == {"player", "cid"} and cid.peers() == {"player", "ann"}
            return room and sorted(sorted(player.peers()) for player in (one, other)) == [[], ["ann", "cid"]]

        eventually("a room of three", is_one_room)
        stays_so(3, "it stays", is_one_room)
        left = other if one.peers() else one
        reasons = left.logged("DuplicatePeerId") + left.logged("DuplicateId")
        assert reasons, left.log
        for member in (one, ann, other, cid):
            member.kill()


def test_taken():
    """While another program has the port exclusively, one log line names the port and the remedy. Afterwards members connect."""
    warning = "another program has its UDP port for itself"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("", PORT))
        a, b = Member("a", "taken"), Member("b", "taken")
        eventually("both log it", lambda: a.logged(warning) and b.logged(warning))
        # Discovery tries the port every five seconds.
        stays_so(7, "nothing is announced", lambda: not a.peers() and a.ask("active") == "0")
        for one in (a, b):
            [line] = one.logged(warning)
            assert str(PORT) in line and "mdns_port" in line, line
    linked(a, b)
    eventually("both are announced", lambda: a.ask("active") == b.ask("active") == "1")
    a.close()
    b.close()


def test_disconnect():
    """Discovery does not bring back a member that was disconnected by hand; a dial by hand does."""
    a, b = Member("a", "by hand"), Member("b", "by hand")
    linked(a, b)
    assert a.ask("disconnect", "b") == "0"
    eventually("b is gone", lambda: not a.peers() and not b.peers())
    stays_so(8, "they stay apart", lambda: not a.peers() and not b.peers())
    # Nor as another incarnation.
    b.close()
    b = Member("b", "by hand")
    stays_so(5, "they stay apart", lambda: not a.peers() and not b.peers())
    assert b.ask("connect", a.ask("address")) == "0"
    linked(a, b)
    a.close()
    b.close()


def test_lan():
    """Two machines on one network, by IPv4 and by IPv6: two network namespaces with a cable between them."""
    a = Member("a", "cable", CONNECT, "unshare")
    b = Member("b", "cable", CONNECT, "unshare")
    for one in (a, b):
        assert one._answer() == "unshared", one.log

    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    ip("link", "add", "mmn-a", "type", "veth", "peer", "name", "mmn-b")
    for one, device, number in ((a, "mmn-a", 1), (b, "mmn-b", 2)):
        ip("link", "set", device, "netns", str(one.process.pid))
        for line in (
            f"ip addr add 10.99.0.{number}/24 dev {device}",
            f"ip -6 addr add fd00:99::{number}/64 dev {device} nodad",
            f"ip link set {device} up",
            "",
        ):
            one.process.stdin.write(line + "\n")
        one.process.stdin.flush()
    for one in (a, b):
        assert one._answer() == "open", one.log
    linked(a, b)
    assert a.ask("address").startswith("10.99.0.1:"), a.ask("address")
    found = [line for one in (a, b) for line in one.logged("found a member")]
    assert not [line for line in found if "127.0.0.1" in line], found
    eventually("IPv6 was found as well", lambda: a.logged("[fd00:99::2]") and b.logged("[fd00:99::1]"))
    a.close()
    b.close()


def test_alone():
    """Without a network interface that is up, a room opens and closes as usual, and announces nothing."""
    a = Member("a", "alone", CONNECT, "unshare")
    assert a._answer() == "unshared"
    a.process.stdin.write("ip link set lo down\n\n")
    a.process.stdin.flush()
    assert a._answer() == "open", a.log
    stays_so(1, "nothing is announced", lambda: a.ask("active") == "0")
    took = int(a.ask("close"))
    assert took < 1500, took
    # The kernel counts a joined thread until it has reaped it.
    eventually("the host's own thread is the only one", lambda: a.ask("threads") == "1")
    a.process.stdin.close()
    a.process.wait(LIMIT_SECONDS)
    Member.alive.remove(a)


def main():
    if sys.argv[1:2] == ["member"]:
        return member(*sys.argv[2:])
    tests = {name[5:]: test for name, test in globals().items() if name.startswith("test_")}
    try:
        for name in sys.argv[1:] or tests:
            began = time.monotonic()
            tests[name]()
            print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
    finally:
        for one in Member.alive:
            one.process.kill()


if __name__ == "__main__":
    main()
