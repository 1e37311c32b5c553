"""Promises that the published library breaks and this one keeps: a function each, over the C ABI, with real processes.

`promises.py NAME [KEY=NUMBER...]` runs one; `life.py` has the sessions of a peer. Run by `tests/hosts`; MMN_LIBRARY names the
library, and MMN_WALL_CLOCK_SHIM the built puppet/wall_clock.c.
"""

import os
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("puppet")))

from lab import Lab
from room import CONNECTED, TIMEOUT_SECONDS, Room, side_by_side

TEXT, STREAM = 0x0100, 0x0200
WOULD_DEADLOCK, PEER_NOT_FOUND, NOT_LEADER, DUPLICATE, REJECTED, INVALID = -15, -5, -6, -11, -18, -3
HEARTBEAT_SECONDS = 0.5
LONG_SECONDS = 180.0
"""For steps that take up to half a minute on an idle machine."""
LONGEST_ELECTION_SECONDS = 3.0
"""election_timeout_max_ms of the default configuration: a member that would depose a leader has done so by then."""


def a_crashed_leader_is_replaced():
    with Room() as room:
        members = room.form("ann", "bob", "cid")
        first = room.agreed(*members)
        first.kill()
        rest = [member for member in members if member is not first]
        second = room.agreed(*rest)
        assert second.call("IsLeader") == 1
        assert [member.call("GetCurrentLeader") for member in rest] == [second.peer] * 2
        other = next(member for member in rest if member is not second)
        other.ok("SendToLeader", "you lead", TEXT, 0)
        room.wait("a message to the new leader", lambda: (other.peer, "you lead") in second.received())
        second.ok("SendFromLeader", "I lead", TEXT, 0)
        room.wait("a message of the new leader", lambda: (second.peer, "I lead") in other.received())


def messages_reported_as_sent_arrive():
    # A busy machine holds a process up for seconds. What is broadcast while a member is lost is not for that member.
    patient = {"heartbeat_timeout_multiplier": 120}

    def tight_loop():
        with Room() as room:
            members = room.form("ann", "bob", "cid", config=patient)
            members[0].do("stream", kind=STREAM, count=3000)
            arrived_everywhere(members, STREAM)

    def small_queues():
        """-7 must come, and be true: no member receives a refused broadcast."""
        with Room() as room:
            config = {"send_queue_capacity": 16, "incoming_queue_capacity": 16}
            members = room.form("ann", "bob", "cid", config=patient | config)
            members[2].do("react", on="Receive", commands=[{"do": "sleep", "seconds": 0.001}])
            members[0].do("stream", kind=STREAM, count=3000)
            event = arrived_everywhere(members, STREAM)
            assert "-7" in map(str, event["refused"]), f"no queue was ever full: {event}"

    def slow_callback():
        with Room() as room:
            members = room.form("ann", "bob", config=patient)
            members[1].do("react", on="Receive", commands=[{"do": "sleep", "seconds": 0.005}])
            members[0].do("stream", kind=STREAM, attempts=6000, per_second=1000)
            arrived_everywhere(members, STREAM)

    side_by_side(tight_loop, small_queues, slow_callback)


def arrived_everywhere(members, kind):
    sender, *receivers = members
    event = sender.streamed(kind, seconds=LONG_SECONDS)
    for receiver in receivers:
        receiver.took_all(sender, event, seconds=LONG_SECONDS)
    return event


def a_newcomer_never_deposes_the_host():
    """With any id, any term, and any contact."""

    def watch(room, host, newcomer, others=()):
        room.meshed(host, newcomer, *others)
        everyone = [host, newcomer, *others]
        room.wait("the newcomer follows", lambda: newcomer.leader == host.peer)
        deposed = lambda: any(member.leader != host.peer for member in everyone)
        room.never(f"{host.peer} is deposed", deposed, LONGEST_ELECTION_SECONDS)
        assert set(host.leaders()) == {host.peer}, host.leaders()
        assert all(member.call("GetCurrentLeader") == host.peer for member in everyone)

    def of_a_lone_host():
        with Room() as room:
            host = room.puppet("ann")
            room.agreed(host)
            newcomer = room.puppet("zoe")
            newcomer.dial(host)
            watch(room, host, newcomer)

    def that_led_alone_under_a_higher_term():
        with Room() as room:
            alone = {"mdns_port": 0}  # discovery would connect them
            host = room.puppet("ann", config=alone)
            room.agreed(host)
            # Each takes over from the previous one, in a term of its own.
            newcomer = room.puppet("yan", config=alone)
            room.agreed(newcomer)
            for name in ["yul", "zoe"]:
                before, newcomer = newcomer, room.puppet(name, config=alone)
                newcomer.dial(before)
                room.wait(f"{name} follows", lambda: newcomer.leader == before.peer)
                before.leave()
                room.wait(f"{name} leads", lambda: newcomer.leader == name)
            newcomer.dial(host)
            watch(room, host, newcomer)

    def through_a_follower():
        with Room() as room:
            members = room.form("ann", "bob")
            host = room.agreed(*members)
            follower = next(member for member in members if member is not host)
            newcomer = room.puppet("zoe")
            newcomer.dial(follower)
            watch(room, host, newcomer, [follower])

    side_by_side(of_a_lone_host, that_led_alone_under_a_higher_term, through_a_follower)


def concurrent_set_leaders_agree(rounds=3, slack_ms=1000):
    """All follow one of the two within two heartbeats and a round trip; `slack_ms` is for a busy machine."""
    with Room() as room:
        members = room.form("ann", "bob", "cid")
        room.agreed(*members)
        ann, bob, cid = members
        rtt = max(one.call("GetPeerRTT", other.peer) for one in members for other in members if other is not one) / 1000
        longest = 0.0
        limit = 2 * HEARTBEAT_SECONDS + rtt + slack_ms / 1000
        for number in range(rounds):
            first, second = [(ann, bob), (bob, cid), (cid, ann)][number % 3]
            # Each names itself, and each names the other.
            targets = [first.peer, second.peer] if number % 2 else [second.peer, first.peer]
            at = time.monotonic() + 0.05
            calls = [caller.begin("SetLeader", target, at=at) for caller, target in zip((first, second), targets)]
            began = max(first.finish(calls[0])["began"], second.finish(calls[1])["began"])
            leader = settled(room, members)
            assert leader.peer in targets, f"round {number}: {leader.peer} leads, and not one of {targets}"
            took = max(last_told(member) for member in members) - began
            assert took <= limit, f"round {number}: {took:.3f} s and not {limit:.3f} s"
            longest = max(longest, took)
        print(f"concurrent SetLeader: {rounds} of {rounds} agreed, the slowest after {longest * 1000:.0f} ms")


def settled(room, members):
    """The leader that these agree on, and still follow two heartbeats later."""
    while True:
        leader = room.agreed(*members)
        if not room.happens(lambda: any(member.leader != leader.peer for member in members), 2 * HEARTBEAT_SECONDS):
            assert all(member.call("GetCurrentLeader") == leader.peer for member in members)
            return leader


def last_told(member):
    return max(event["at"] for event in member.events if event["event"] == "LeaderChanged")


def set_leader_to_an_unknown_id_changes_nothing():
    with Room() as room:
        members = room.form("ann", "bob", "cid")
        leader = room.agreed(*members)
        before = [list(member.leaders()) for member in members]
        for member in members:
            assert "unknown" in member.refused(PEER_NOT_FOUND, "SetLeader", "unknown")
            assert member.call("GetCurrentLeader") == leader.peer
        moved = lambda: [member.leaders() for member in members] != before
        room.never("the leader changes", moved, 3 * HEARTBEAT_SECONDS)
        # The override ends with its leader: elections go on.
        leader.kill()
        rest = [member for member in members if member is not leader]
        room.agreed(*rest)


def a_duplicate_peer_id_is_refused_at_the_dialler():
    with Room() as room:
        ann, bob = room.form("ann", "bob")
        double = room.puppet("bob")
        double.dial(ann, DUPLICATE)  # a member has this name
        double.dial(bob, DUPLICATE)  # the dialled one has this name
        assert double.reported("PeerStatus") == [] and double.call("GetPeerCount") == 0
        # The refused member does not disturb the one with that name.
        bob.ok("SendToPeer", "ann", "still here", TEXT, 0)
        room.wait("the first bob", lambda: ("bob", "still here") in ann.received())
        assert ann.statuses("bob") == [CONNECTED] and bob.statuses("ann") == [CONNECTED]


def no_process_connects_to_itself():
    with Lab("left", "right") as lab, Room() as room:
        ann = room.puppet("ann", host=lab.host("left"))
        port = ann.address().rsplit(":", 1)[1]
        assert ann.address() == f"10.77.0.1:{port}", "the address on the LAN"
        for own in ["127.0.0.1", "10.77.0.1", "[::1]", "0.0.0.0"]:
            assert "own" in ann.refused(INVALID, "ConnectToPeer", f"{own}:{port}")
        for name in ["localhost", socket_name()]:
            answer = ann.finish(ann.begin("ConnectToPeer", f"{name}:{port}"))
            if answer["result"] == 0:
                room.wait(f"{name} is refused", lambda: ann.reported("ConnectionResult", f"{name}:{port}"))
                ((_, success, code),) = ann.reported("ConnectionResult", f"{name}:{port}")
                assert success == 0 and code == INVALID, f"{name}: {code}"
            else:
                assert answer["result"] == INVALID, answer
        results = len(ann.reported("ConnectionResult"))
        # Nothing goes on in the background either: no retries, no peer, no load.
        before = processor_seconds(ann)
        room.never("a peer of itself", lambda: ann.reported("PeerStatus") or len(ann.reported("ConnectionResult")) > results, 2)
        assert processor_seconds(ann) - before < 0.5
        bob = room.puppet("bob", host=lab.host("right"))
        bob.dial(ann)
        room.meshed(ann, bob)
        assert ann.reported("PeerStatus") == [["bob", CONNECTED]]


def socket_name():
    """This machine's name if it resolves, else localhost."""
    try:
        socket.getaddrinfo(socket.gethostname(), None)
        return socket.gethostname()
    except OSError:
        return "localhost"


def processor_seconds(puppet):
    fields = Path(f"/proc/{puppet.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shutdown_in_a_callback_is_refused():
    with Room() as room:
        ann, bob = room.form("ann", "bob")
        shutdown = [{"call": "ShutdownNetwork"}, {"call": "IsNetworkInitialized"}]
        for callback in ["Receive", "LeaderChanged", "PeerStatus", "ConnectionResult"]:
            ann.do("react", on=callback, commands=shutdown, times=1)
        # A friend whose dial, join and message each cause a callback.
        friend = room.puppet("friend")
        ann.dial(friend)
        room.meshed(ann, bob, friend)
        friend.ok("SendToPeer", "ann", "hello", TEXT, 0)
        leader = room.agreed(ann, bob, friend)
        other = next(member for member in (ann, bob, friend) if member is not leader)
        ann.ok("SetLeader", other.peer)
        room.wait("four reactions", lambda: len(ann.reported("Reaction")) == 4)
        for name, (refused, initialized) in ann.reported("Reaction"):
            assert refused["result"] == refused["error"] == WOULD_DEADLOCK, f"{name}: {refused}"
            assert initialized["result"] == 1, name
        # No state was torn down: the room goes on, both ways.
        assert ann.call("GetPeerList") == "bob\nfriend" and ann.call("GetLocalPeerId") == "ann"
        ann.ok("BroadcastMessage", "I am here", TEXT, 0)
        bob.ok("BroadcastMessage", "so am I", TEXT, 0)
        for member in (bob, friend):
            room.wait("ann's broadcast", lambda: ("ann", "I am here") in member.received())
            assert member.statuses("ann") == [CONNECTED]
        room.wait("bob's broadcast", lambda: ("bob", "so am I") in ann.received())
        ann.leave()


def order_is_kept_while_links_come_and_go():
    with Lab("left", "right") as lab, Room() as room:
        left, right = lab.host("left"), lab.host("right")
        ann, bob = room.form("ann", "bob", hosts={"ann": left, "bob": right})
        for sender, receiver in [(ann, bob), (bob, ann)]:
            # While the peer is away a send may be refused, as full or unknown; an accepted message must arrive.
            retry = [-7, PEER_NOT_FOUND]
            sender.do("stream", kind=STREAM, to=receiver.peer, size=200, retry=retry, per_second=500)
        # First too short for a loss, then long enough that both lose each other, then a process that sleeps.
        for away, back, seconds in [
            (left.cut, left.join, 0.7),
            (right.pull, right.plug, 3.0),
            (bob.pause, bob.resume, 3.0),
        ]:
            so_far = bob.do("inflow", peer="ann", kind=STREAM)["count"]
            bob.do("inflow", peer="ann", kind=STREAM, watch=so_far + 100)
            room.wait("the stream runs", lambda: bob.reported("Inflow", "ann", STREAM, so_far + 100))
            away()
            time.sleep(seconds)  # duration of the separation
            back()
            room.meshed(ann, bob)
        for sender, receiver in [(ann, bob), (bob, ann)]:
            sender.do("halt", kind=STREAM)
            receiver.took_all(sender, sender.streamed(STREAM))


def returned_strings_stay_valid_per_thread():
    functions = ["GetPeerList", "GetCurrentLeader", "GetLocalAddr", "GetLocalPeerId", "GetSessionId"]
    with Room() as room:
        ann, bob = room.form("ann", "bob")
        reading = ann.begin_to("strings", functions=functions, threads=8, seconds=2)
        # Results of the functions change meanwhile.
        for number in range(3):
            guest = room.puppet(f"guest-{number}")
            guest.dial(ann)
            room.meshed(ann, guest)
            guest.leave()
            room.wait("the guest left", lambda: guest.peer not in ann.linked)
        counts = ann.finish(reading)["result"]
        assert counts["read"] > 1000 and counts["changed"] == 0, counts
        # The last error, too, belongs to the thread of the failed call.
        sentences = {name: ann.refused(PEER_NOT_FOUND, "SendToPeer", name, "x", TEXT, 0, thread=name) for name in "pqr"}
        for name, sentence in sentences.items():
            assert ann.call("GetLastErrorMessage", thread=name) == sentence and f"{name}" in sentence
        assert (ann.call("GetLastErrorCode"), ann.call("GetLastErrorMessage")) == (0, "")


def heartbeats_do_not_queue_behind_bulk_data():
    """More than a megabyte each way over lines of 2 Mbit/s, from the leader and to it: no member is lost, and the leader stays."""
    with Lab("left", "right", "third") as lab, Room() as room:
        hosts = {"ann": lab.host("left"), "bob": lab.host("right"), "cid": lab.host("third")}
        ann, bob, cid = members = room.form("ann", "bob", "cid", hosts=hosts)
        leader = room.agreed(*members)
        follower = next(member for member in members if member is not leader)
        for member in (leader, follower):
            member.host.narrow(2_000_000)
        before = [list(member.leaders()) for member in members]
        # About 5 s of the line each way; the queues take it at once.
        leader.do("stream", kind=STREAM, count=12, size=100_000, to=follower.peer)
        follower.do("stream", kind=STREAM, count=12, size=100_000, to=leader.peer)
        for sender, receiver in [(leader, follower), (follower, leader)]:
            receiver.took_all(sender, sender.streamed(STREAM, seconds=LONG_SECONDS), seconds=LONG_SECONDS)
        for member, leaders in zip(members, before):
            assert member.leaders() == leaders, f"{member.peer}: the leader was lost: {member.leaders()}"
            assert all(
                member.statuses(other.peer) == [CONNECTED] for other in members if other is not member
            ), f"{member.peer}: a peer was lost: {member.reported('PeerStatus')}"


def round_trips_do_not_follow_the_wall_clock():
    """In hosts whose wall clock jumps by hours at every reading."""
    with Room() as room:
        members = ann, bob = room.form("ann", "bob", environment={"LD_PRELOAD": os.environ["MMN_WALL_CLOCK_SHIM"]})
        for member in members:
            # Not at every pair of readings: another thread may read between them.
            jumps = (member.do("wall_clock") - member.do("wall_clock") for _ in range(1000))
            assert any(abs(jump) > 9 * 3600 for jump in jumps), "the wall clock does not jump"
        measured = []
        ends = time.monotonic() + 6 * HEARTBEAT_SECONDS
        while time.monotonic() < ends:
            measured += [ann.call("GetPeerRTT", "bob"), bob.call("GetPeerRTT", "ann")]
            time.sleep(0.02)
        assert max(measured) < 10_000 and measured[-1] >= 0, f"round trips in ms: {measured}"
        # Nor do elections, heartbeats and links.
        leader = room.agreed(*members)
        assert ann.statuses("bob") == bob.statuses("ann") == [CONNECTED]
        assert ann.leaders() == bob.leaders() == [leader.peer]


def ids_in_other_scripts_cross_undamaged():
    # Composed and decomposed forms look equal, but are two members: ids are bytes.
    names = ["博麗霊夢", "Мария Ω", "مريم", "🦊" * 16, "Zo\u00eb", "Zoe\u0308"]
    with Room(session="東方 · ночь · 🌙") as room:
        members = room.form(*names)
        for member in members:
            others = sorted((name for name in names if name != member.peer), key=str.encode)
            assert member.call("GetLocalPeerId") == member.peer
            assert member.call("GetSessionId") == room.session
            assert member.call("GetPeerList") == "\n".join(others)
            assert sorted(member.reported("PeerStatus")) == sorted([name, CONNECTED] for name in others)
        first, *others = members
        for member in others:
            first.ok("SendToPeer", member.peer, f"for {member.peer}", TEXT, 0)
            member.ok("SendToPeer", first.peer, f"from {member.peer}", TEXT, 0)
        for member in others:
            room.wait("a message", lambda: member.received() == [(first.peer, f"for {member.peer}")])
            room.wait("an answer", lambda: (member.peer, f"from {member.peer}") in first.received())
        for leader in members[:2]:
            first.ok("SetLeader", leader.peer)
            room.wait(f"{leader.peer} leads", lambda: all(member.leader == leader.peer for member in members))
            assert all(member.call("GetCurrentLeader") == leader.peer for member in members)
        assert "Мария" in first.refused(PEER_NOT_FOUND, "SendToPeer", "Мария", "x", TEXT, 0)


def main(stories, arguments):
    """Runs the story that the first argument names, with the KEY=NUMBERs after it."""
    name, *options = arguments
    story = stories[name]
    values = {key: int(value) for key, value in (option.split("=") for option in options)}
    began = time.monotonic()
    story(**values)
    print(f"ok {name} {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(globals(), sys.argv[1:])
