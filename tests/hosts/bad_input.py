"""Invalid input over the C ABI, against the built library: each call returns its code and a sentence that names the mistake, and
the room's members notice nothing.
Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import ctypes
import os
import queue
import socket
import subprocess
import sys
import time

LIMIT_SECONDS = 30
SESSION = b"bad-input"
BAN = 1
FIELDS = [
    ("reconnect_max_ms", ctypes.c_uint32, 30000), ("compression_threshold", ctypes.c_uint32, 512),
    ("max_message_size", ctypes.c_uint32, 262144), ("heartbeat_interval_ms", ctypes.c_uint16, 500),
    ("election_timeout_min_ms", ctypes.c_uint16, 1500), ("election_timeout_max_ms", ctypes.c_uint16, 3000),
    ("reconnect_initial_ms", ctypes.c_uint16, 1000), ("handshake_timeout_ms", ctypes.c_uint16, 5000),
    ("write_timeout_ms", ctypes.c_uint16, 5000), ("send_queue_capacity", ctypes.c_uint16, 128),
    ("incoming_queue_capacity", ctypes.c_uint16, 256), ("max_connections", ctypes.c_uint16, 64),
    ("keepalive_time_secs", ctypes.c_uint16, 60), ("keepalive_interval_secs", ctypes.c_uint16, 10),
    ("mdns_port", ctypes.c_uint16, 15353), ("heartbeat_timeout_multiplier", ctypes.c_uint8, 3),
    ("keepalive_retries", ctypes.c_uint8, 3), ("centralized_auto_forward", ctypes.c_uint8, 1),
    ("auto_election_enabled", ctypes.c_uint8, 1), ("manual_override_recovery", ctypes.c_uint8, 0),
    ("tcp_nodelay", ctypes.c_uint8, 1), ("auto_reconnect_enabled", ctypes.c_uint8, 1),
    ("reconnect_max_retries", ctypes.c_uint8, 0),
]
MAY_BE_ZERO = {"compression_threshold", "mdns_port", "centralized_auto_forward", "auto_election_enabled",
               "manual_override_recovery", "tcp_nodelay", "auto_reconnect_enabled", "reconnect_max_retries"}


class Config(ctypes.Structure):
    _fields_ = [(name, kind) for name, kind, _ in FIELDS]


def config(**changes):
    values = {name: default for name, _, default in FIELDS}
    values.update(changes)
    return Config(**values)


def load():
    lib = ctypes.CDLL(os.environ["MMN_LIBRARY"])
    for name in ("GetLastErrorMessage", "GetLocalAddr", "GetPeerList", "GetCurrentLeader"):
        getattr(lib, name).restype = ctypes.c_char_p
    for name in ("IsNetworkInitialized", "IsLeader"):
        getattr(lib, name).restype = ctypes.c_uint8
    room, data = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_int32]
    lib.mmn_default_room.restype = room
    lib.mmn_kick.argtypes = [room, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int32, *data]
    lib.mmn_reject_join.argtypes = [room, ctypes.c_uint64, ctypes.c_int32, *data]
    lib.mmn_accept_join.argtypes = [room, ctypes.c_uint64]
    lib.mmn_set_join_payload.argtypes = [room, *data]
    lib.mmn_set_max_peers.argtypes = [room, ctypes.c_uint32]
    for name in ("SendToPeer", "BroadcastMessage", "SendToLeader", "SendFromLeader"):
        tail = [ctypes.c_char_p, ctypes.c_int32, ctypes.c_uint16, ctypes.c_uint8]
        getattr(lib, name).argtypes = ([ctypes.c_char_p] if name == "SendToPeer" else []) + tail
    return lib


lib = load()
RESULT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_int32)
STATUS = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int32)
RECEIVE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_int32, ctypes.c_uint16,
                           ctypes.c_uint8)
results, statuses, messages = queue.Queue(), queue.Queue(), queue.Queue()
on_result = RESULT(lambda address, success, code: results.put((address.decode(), success, code)))
on_status = STATUS(lambda peer, status: statuses.put((peer.decode(), status)))
on_receive = RECEIVE(lambda peer, data, length, kind, flags: messages.put((peer.decode(), bytes(data[:length]))))


def register():
    assert lib.RegisterConnectionResultCallback(on_result) == 0
    assert lib.RegisterPeerStatusCallback(on_status) == 0
    assert lib.RegisterReceiveCallback(on_receive) == 0


def refused(code, sentence, what, *arguments):
    """The call returns the code; its error sentence contains every word of `sentence`."""
    got = getattr(lib, what)(*arguments)
    text = lib.GetLastErrorMessage().decode()
    assert got == code, f"{what}{arguments} gave {got} ({text!r}), expected {code}"
    if code != -1 or sentence:
        assert lib.GetLastErrorCode() == code, f"{what}{arguments}: the last error is {lib.GetLastErrorCode()}"
    for word in sentence.split():
        assert word in text, f"{what}{arguments}: {word!r} is not in {text!r}"


def port():
    return lib.GetLocalAddr().decode().rsplit(":", 1)[1]


def until(what, condition):
    limit = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < limit, f"it never came about: {what}"
        time.sleep(0.01)


class Other:
    """A second process with a room of its own. It prints its port and ends with its standard input."""

    def __init__(self, peer, session=SESSION, **changes):
        arguments = [f"{name}={value}" for name, value in changes.items()]
        command = [sys.executable, __file__, "other", peer, session.decode(), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = self.process.stdout.readline().strip()
        assert self.port, f"{peer} did not start"

    def report(self):
        """Its events so far: statuses and connection results."""
        self.process.stdin.write("report\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(LIMIT_SECONDS) == 0

    def connect(self, address):
        """Its ConnectionResult for that address."""
        self.process.stdin.write(f"connect {address}\n")
        self.process.stdin.flush()
        success, code = self.process.stdout.readline().split()
        return int(success), int(code)


def other_main(peer, session, *changes):
    values = {name: int(value) for name, value in (change.split("=") for change in changes)}
    values = {"mdns_port": 0, **values}  # the test decides on every dial
    code = lib.InitializeNetworkWithConfig(peer.encode(), session.encode(), ctypes.byref(config(**values)))
    assert code == 0, lib.GetLastErrorMessage()
    register()
    print(port(), flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "connect":
            assert lib.ConnectToPeer(words[1].encode()) == 0, lib.GetLastErrorMessage()
            _, success, code = results.get(timeout=LIMIT_SECONDS)
            print(success, code, flush=True)
        else:
            print(list(statuses.queue), flush=True)
    assert lib.ShutdownNetwork() == 0


def ids():
    for bad, words in [(None, "NULL"), (b"", "empty"), (b"x" * 65, "65 64"), (b"a\nb", "control"), (b" a", "blank"),
                       (b"a\xff", "UTF-8")]:
        refused(-3, f"peer_id {words}", "InitializeNetwork", bad, SESSION)
    for bad, words in [(None, "NULL"), (b"", "empty"), (b"x" * 129, "129 128"), (b"a\x7f", "control")]:
        refused(-3, f"session_id {words}", "InitializeNetwork", b"a", bad)
    refused(-3, "config NULL", "InitializeNetworkWithConfig", b"a", SESSION, None)


def configs():
    for name, _, _ in FIELDS:
        if name in MAY_BE_ZERO:
            continue
        refused(-3, name, "InitializeNetworkWithConfig", b"a", SESSION, ctypes.byref(config(**{name: 0})))
    broken = [
        ({"election_timeout_min_ms": 500}, "election_timeout_min_ms heartbeat_interval_ms 500"),
        ({"election_timeout_min_ms": 3001}, "election_timeout_min_ms election_timeout_max_ms 3001 3000"),
        ({"reconnect_initial_ms": 40000}, "reconnect_initial_ms reconnect_max_ms 40000 30000"),
    ]
    for changes, words in broken:
        refused(-3, words, "InitializeNetworkWithConfig", b"a", SESSION, ctypes.byref(config(**changes)))
    assert lib.IsNetworkInitialized() == 0


def calls(friend):
    """With a room and a connected friend."""
    refused(-2, "", "InitializeNetwork", b"a", SESSION)
    refused(-3, "NULL", "ConnectToPeer", None)
    for bad in [b"", b"localhost", b"127.0.0.1", b"127.0.0.1:", b"127.0.0.1:0", b"127.0.0.1:65536", b"::1:5", b":5",
                b"a b:5", b"[::1:5", b"x" * 300 + b":5", b"127.0.0.1:\n5", b"127.0.0.1 :5", b"[fe80::1]:5", b"127.0.0.1:\xff"]:
        refused(-3, "", "ConnectToPeer", bad)
    for own in [b"127.0.0.1", b"[::1]", b"0.0.0.0"]:
        refused(-3, "own", "ConnectToPeer", own + b":" + port().encode())
    too_long = b"x" * 262145
    for name, peer in [("SendToPeer", [b"friend"]), ("BroadcastMessage", []), ("SendToLeader", []),
                       ("SendFromLeader", [])]:
        refused(-3, "length -1", name, *peer, b"x", -1, 256, 0)
        refused(-3, "NULL", name, *peer, None, 1, 256, 0)
        refused(-3, "255 256", name, *peer, b"x", 1, 255, 0)
        refused(-8, "262145 262144", name, *peer, too_long, len(too_long), 256, 0)
    refused(-5, "unknown", "SendToPeer", b"unknown", b"x", 1, 256, 0)
    refused(-3, "peer_id", "SendToPeer", b"x" * 65, b"x", 1, 256, 0)
    refused(-3, "peer_id NULL", "SendToPeer", None, b"x", 1, 256, 0)
    refused(-5, "unknown", "SetLeader", b"unknown")
    refused(-3, "", "SetLeader", b"")
    refused(-3, "main", "DisconnectPeer", b"main")
    assert lib.DisconnectPeer(b"unknown") == 0
    assert lib.GetPeerRTT(b"unknown") == -1 and lib.GetPeerStatus(b"unknown") == -1
    assert lib.SendToPeer(b"friend", None, 0, 256, 0) == 0
    # No leader yet, or one; the friend is never this process's name.
    if lib.GetCurrentLeader() == b"":
        refused(-6, "leader", "SendToLeader", b"x", 1, 256, 0)
    until("a leader", lambda: lib.GetCurrentLeader() != b"")
    if not lib.IsLeader():
        refused(-6, "leader", "SendFromLeader", b"x", 1, 256, 0)
    assert friend.report() == "[('main', 0)]"


def moderation():
    """Access to the room: invalid arguments first, then the leader's functions."""
    room = lib.mmn_default_room()
    refused(-3, "peer_id NULL", "mmn_kick", room, None, BAN, 0, None, 0)
    refused(-3, "peer_id", "mmn_kick", room, b"", BAN, 0, None, 0)
    refused(-3, "NULL", "mmn_kick", room, b"friend", BAN, 0, None, 1)
    refused(-3, "length -1", "mmn_kick", room, b"friend", BAN, 0, b"x", -1)
    refused(-3, "3073 3072", "mmn_kick", room, b"friend", BAN, 0, b"x" * 3073, 3073)
    refused(-3, "flags 2", "mmn_kick", room, b"friend", 2, 0, None, 0)
    refused(-3, "NULL", "mmn_set_join_payload", room, None, 1)
    refused(-3, "length -1", "mmn_set_join_payload", room, b"x", -1)
    refused(-3, "16385 16384", "mmn_set_join_payload", room, b"x" * 16385, 16385)
    assert lib.mmn_set_join_payload(room, b"x" * 16384, 16384) == 0 and lib.mmn_set_join_payload(room, None, 0) == 0
    refused(-5, "99", "mmn_accept_join", room, 99)
    refused(-5, "99", "mmn_reject_join", room, 99, 1, None, 0)
    refused(-3, "NULL", "mmn_reject_join", room, 99, 1, None, 1)
    refused(-3, "3073 3072", "mmn_reject_join", room, 99, 1, b"x" * 3073, 3073)
    if lib.IsLeader():
        refused(-5, "unknown", "mmn_kick", room, b"unknown", BAN, 0, None, 0)
        refused(-3, "main", "mmn_kick", room, b"main", BAN, 0, None, 0)
    else:
        refused(-6, "lead", "mmn_kick", room, b"friend", BAN, 0, None, 0)
        refused(-6, "lead", "mmn_set_max_peers", room, 1)


def dials(friend):
    """Reasons that the dialler receives; the friend stays connected throughout."""
    stranger = Other("stranger", b"another room")
    assert stranger.connect(f"127.0.0.1:{port()}") == (0, -10)
    stranger.end()
    double = Other("friend")
    assert double.connect(f"127.0.0.1:{port()}") == (0, -11), "the name of a member"
    double.end()
    double = Other("main")
    assert double.connect(f"127.0.0.1:{port()}") == (0, -11), "the name of the acceptor"
    double.end()
    assert lib.ConnectToPeer(f"127.0.0.1:{friend.port}".encode()) == 0
    assert results.get(timeout=LIMIT_SECONDS) == (f"127.0.0.1:{friend.port}", 1, -14)
    full = Other("full", max_connections=1)
    third = Other("third")
    assert third.connect(f"127.0.0.1:{full.port}") == (1, 0)
    late = Other("late", handshake_timeout_ms=1000)
    assert late.connect(f"127.0.0.1:{full.port}") == (0, -13)
    third.end()
    full.end()
    gone = Other("gone")
    closed = gone.port
    gone.end()
    assert late.connect(f"127.0.0.1:{closed}") == (0, -4), "no socket is there"
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    assert late.connect(f"127.0.0.1:{silent.getsockname()[1]}") == (0, -19), "an end that sends nothing"
    late.end()


def main():
    ids()
    configs()
    for room in (0, 1, 1 << 53):
        refused(-1, "", "mmn_kick", room, b"friend", BAN, 0, None, 0)
        refused(-1, "", "mmn_set_max_peers", room, 1)
        refused(-1, "", "mmn_set_join_payload", room, None, 0)
        refused(-1, "", "mmn_accept_join", room, 1)
        refused(-1, f"{room}" if room else "no room is open", "mmn_reject_join", room, 1, 0, None, 0)
    assert lib.InitializeNetwork(b"main", SESSION) == 0
    register()
    friend = Other("friend")
    assert lib.ConnectToPeer(f"127.0.0.1:{friend.port}".encode()) == 0
    assert results.get(timeout=LIMIT_SECONDS)[1:] == (1, 0)
    until("the friend", lambda: lib.GetPeerList() == b"friend")
    calls(friend)
    moderation()
    dials(friend)
    assert lib.GetPeerList() == b"friend"
    assert friend.report() == "[('main', 0)]"
    assert list(statuses.queue) == [("friend", 0)]
    friend.end()
    until("the friend's leave", lambda: list(statuses.queue) == [("friend", 0), ("friend", 1)])
    assert lib.ShutdownNetwork() == 0
    refused(-1, "", "ShutdownNetwork")
    print("ok")


if __name__ == "__main__":
    if sys.argv[1:2] == ["other"]:
        other_main(*sys.argv[2:])
    else:
        main()
