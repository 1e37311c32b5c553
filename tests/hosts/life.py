"""The sessions of a peer, over the C ABI, with real processes: lost, reconnecting, back, left, replaced.

`life.py NAME [KEY=NUMBER...]` runs one function, as `promises.py` does. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("puppet")))

from lab import Lab
from promises import DUPLICATE, PEER_NOT_FOUND, STREAM, TEXT, main
from room import CONNECTED, DISCONNECTED, GAVE_UP, LOST, RECONNECTING, RETURNED, Room, side_by_side

UNKNOWN = -1
BACK_SECONDS = 15.0
"""From the end of a cut: a reconnection tries at least every 2 s, and each try may take the handshake's 5 s."""


def links(puppet, peer):
    """PeerStatus and Reconnect events of that peer, in one order: ("link", 0 or 1) and ("reconnect", 0, 1 or 2)."""
    names = {"PeerStatus": "link", "Reconnect": "reconnect"}
    return [
        (names[event["event"]], event["args"][1])
        for event in puppet.events
        if event["event"] in names and event["args"][0] == peer
    ]


UP, DOWN = ("link", CONNECTED), ("link", DISCONNECTED)
RETRYING, BACK, OVER = ("reconnect", LOST), ("reconnect", RETURNED), ("reconnect", GAVE_UP)
ONE_LOSS = [UP, DOWN, RETRYING, UP, BACK]


def a_cut_of(seconds):
    """Streams both ways through a cut that neither side notices at once: one session, every accepted message once, in order."""
    with Lab("left", "right") as lab, Room() as room:
        left = lab.host("left")
        ann, bob = room.form("ann", "bob", hosts={"ann": left, "bob": lab.host("right")})
        ways = [(ann, bob), (bob, ann)]
        for sender, receiver in ways:
            # While the peer is away a send may be refused, as full or unknown; an accepted message must arrive.
            retry = [-7, PEER_NOT_FOUND]
            sender.do("stream", kind=STREAM, to=receiver.peer, size=200, retry=retry, per_second=500)
            receiver.do("inflow", peer=sender.peer, kind=STREAM, watch=100)
        for sender, receiver in ways:
            room.wait("the stream runs", lambda: receiver.reported("Inflow", sender.peer, STREAM))
        left.cut()
        ends = time.monotonic() + seconds
        for one, other in ways:
            room.wait("the loss", lambda: links(one, other.peer) == [UP, DOWN, RETRYING])
            assert one.call("GetPeerStatus", other.peer) == RECONNECTING
            assert one.call("GetPeerCount") == 0 and one.call("GetPeerList") == ""
        apart(ends)
        left.join()
        for one, other in ways:
            room.wait("the return", lambda: links(one, other.peer) == ONE_LOSS, BACK_SECONDS)
            assert one.call("GetPeerStatus", other.peer) == CONNECTED
        for sender, receiver in ways:
            sender.do("halt", kind=STREAM)
            receiver.took_all(sender, sender.streamed(STREAM))
        for one, other in ways:
            assert links(one, other.peer) == ONE_LOSS


def apart(ends):
    time.sleep(max(0.0, ends - time.monotonic()))


def a_session_survives_a_cut():
    side_by_side(lambda: a_cut_of(3), lambda: a_cut_of(5))


def messages_accepted_before_a_loss_arrive_after_it():
    """No message is sent during or after the cut: the sender's queue repeats the packets that the dead line lost."""
    with Lab("left", "right") as lab, Room() as room:
        left = lab.host("left")
        ann, bob = room.form("ann", "bob", hosts={"ann": left, "bob": lab.host("right")})
        left.cut()
        for sender, receiver in [(ann, bob), (bob, ann)]:
            sender.do("stream", kind=STREAM, to=receiver.peer, count=500, size=200)
        events = [member.streamed(STREAM) for member in (ann, bob)]
        for one, other in [(ann, bob), (bob, ann)]:
            room.wait("the loss", lambda: DOWN in links(one, other.peer))
        left.join()
        bob.took_all(ann, events[0])
        ann.took_all(bob, events[1])
        assert links(ann, "bob") == links(bob, "ann") == ONE_LOSS


def a_pulled_cable_is_survived():
    """Three hosts; one loses its cable for 5 s. All links to it return by themselves, the other links stay."""
    with Lab("one", "two", "three") as lab, Room() as room:
        hosts = {"ann": lab.host("one"), "bob": lab.host("two"), "cid": lab.host("three")}
        ann, bob, cid = members = room.form(*hosts, hosts=hosts)
        room.agreed(*members)
        cid.host.pull()
        ends = time.monotonic() + 5
        for one, other in [(ann, cid), (bob, cid), (cid, ann), (cid, bob)]:
            room.wait("the loss", lambda: links(one, other.peer) == [UP, DOWN, RETRYING])
        apart(ends)
        cid.host.plug()
        for one, other in [(ann, cid), (bob, cid), (cid, ann), (cid, bob)]:
            room.wait("the return", lambda: links(one, other.peer) == ONE_LOSS, BACK_SECONDS)
        assert links(ann, "bob") == links(bob, "ann") == [UP]
        leader = room.agreed(*members)
        # Messages pass again, under one leader.
        for member in members:
            member.ok("SendToLeader", f"{member.peer} is here", TEXT, 0)
        expected = {(member.peer, f"{member.peer} is here") for member in members}
        room.wait("everyone's message", lambda: set(leader.received()) == expected)


def a_pause_of(seconds, of_leader):
    """A process sleeps and returns by itself: one loss, one return, one leader."""
    with Room() as room:
        members = room.form("ann", "bob", "cid")
        leader = room.agreed(*members)
        sleeper = leader if of_leader else next(member for member in members if member is not leader)
        awake = [member for member in members if member is not sleeper]
        sleeper.pause()
        ends = time.monotonic() + seconds
        for member in awake:
            room.wait("the loss", lambda: links(member, sleeper.peer) == [UP, DOWN, RETRYING])
            assert member.call("GetPeerStatus", sleeper.peer) == RECONNECTING
        room.agreed(*awake)
        apart(ends)
        sleeper.resume()
        for member in awake:
            room.wait("the return", lambda: links(member, sleeper.peer) == ONE_LOSS, BACK_SECONDS)
            # The sleeper may have noticed nothing; its events come in pairs.
            room.wait("it sees all", lambda: links(sleeper, member.peer) in ([UP], ONE_LOSS), BACK_SECONDS)
        room.meshed(*members)
        room.agreed(*members)
        for member in awake:
            others = [other for other in awake if other is not member]
            assert all(links(member, other.peer) == [UP] for other in others), "the members that stayed awake lost no peer"
        sleeper.ok("BroadcastMessage", "good morning", TEXT, 0)
        for member in awake:
            room.wait("a message", lambda: (sleeper.peer, "good morning") in member.received())
            assert links(member, sleeper.peer) == ONE_LOSS


def a_paused_process_is_back_by_itself(seconds=4):
    side_by_side(lambda: a_pause_of(seconds, of_leader=False), lambda: a_pause_of(seconds, of_leader=True))


def both_lead_during_a_cut(first, second):
    """Two players, cut for 5 s: each leads its side, and afterwards the earlier leader leads both."""
    with Lab("left", "right") as lab, Room() as room:
        left = lab.host("left")
        ann = room.puppet(first, host=left)
        room.agreed(ann)
        bob = room.puppet(second, host=lab.host("right"))
        bob.dial(ann)
        room.wait(f"{second} follows", lambda: bob.leader == first)
        left.cut()
        ends = time.monotonic() + 5
        room.wait(f"{second} leads its side", lambda: bob.leader == second)
        assert ann.call("IsLeader") == bob.call("IsLeader") == 1
        apart(ends)
        left.join()
        room.meshed(ann, bob, seconds=BACK_SECONDS)
        room.wait(f"{second} follows again", lambda: bob.leader == first)
        room.never("a change", lambda: bob.leader != first or ann.leader != first, 3)
        assert set(ann.leaders()) == {first}, f"{first} was deposed: {ann.leaders()}"
        assert [member.call("GetCurrentLeader") for member in (ann, bob)] == [first] * 2


def the_first_leader_stays_after_a_cut():
    side_by_side(lambda: both_lead_during_a_cut("ann", "zoe"), lambda: both_lead_during_a_cut("zoe", "ann"))


def a_member_that_leaves_has_left_at_once():
    with Room() as room:
        ann, bob, cid = room.form("ann", "bob", "cid")
        bob.ok("SendToPeer", "ann", "goodbye", TEXT, 0)
        began = time.monotonic()
        bob.leave()
        for member in (ann, cid):
            room.wait("the leave", lambda: links(member, "bob") == [UP, DOWN])
            left_at = [event["at"] for event in member.events if event["event"] == "PeerStatus"][-1]
            assert left_at - began < 2.0, f"{left_at - began:.3f} s"
            assert member.call("GetPeerStatus", "bob") == UNKNOWN
        # Its last message arrived before its leave, and its name is free at once.
        order = [event["event"] for event in ann.events if event["args"][:1] == ["bob"]]
        assert order == ["PeerStatus", "Receive", "PeerStatus"], order
        again = room.puppet("bob")
        again.dial(ann)
        room.meshed(ann, again, cid)
        assert all(links(member, "bob") == [UP, DOWN, UP] for member in (ann, cid))


def a_killed_process_enters_again_under_its_id():
    """Its new process has a new key: before its peers have missed the old process, and while they wait for it."""
    with Room() as room:
        ann, bob, first = room.form("ann", "bob", "cid")
        first.kill()
        second = room.puppet("cid")
        second.dial(ann)
        room.meshed(ann, bob, second)
        for member in (ann, bob):
            room.wait("the replacement", lambda: member.statuses("cid") == [CONNECTED, DISCONNECTED, CONNECTED])
        second.kill()
        for member in (ann, bob):
            room.wait("the loss", lambda: member.statuses("cid")[3:] == [DISCONNECTED])
        third = room.puppet("cid")
        third.dial(bob)
        room.meshed(ann, bob, third)
        third.ok("BroadcastMessage", "third", TEXT, 0)
        for member in (ann, bob):
            room.wait("a message", lambda: member.received() == [("cid", "third")])
            assert member.statuses("cid") == [CONNECTED, DISCONNECTED] * 2 + [CONNECTED]
        # A fourth is refused: its name belongs to a living member.
        room.puppet("cid").dial(ann, DUPLICATE)
        assert third.call("GetPeerList") == "ann\nbob"


def a_disconnected_member_stays_away_until_a_dial_by_hand():
    with Room() as room:
        ann, bob, cid = room.form("ann", "bob", "cid")
        ann.ok("DisconnectPeer", "bob")
        for one, other in [(ann, bob), (bob, ann)]:
            room.wait("the end of the link", lambda: links(one, other.peer) == [UP, DOWN])
            assert one.call("GetPeerStatus", other.peer) == UNKNOWN
        # Longer than the first retries, and than cid's introductions would take.
        room.never("they meet again", lambda: "bob" in ann.linked or "ann" in bob.linked, 5)
        assert links(cid, "ann") == links(cid, "bob") == [UP]
        bob.dial(ann)
        room.meshed(ann, bob, cid)
        ann.ok("DisconnectPeer", "bob")
        room.wait("the end of the second link", lambda: "ann" not in bob.linked and "bob" not in ann.linked)
        ann.dial(bob)
        room.meshed(ann, bob, cid)
        assert links(ann, "bob") == links(bob, "ann") == [UP, DOWN, UP, DOWN, UP]


def auto_reconnect_off_makes_a_loss_final():
    def before_the_loss():
        with Room() as room:
            ann, bob = room.form("ann", "bob")
            assert ann.call("IsAutoReconnectEnabled") == 1
            ann.ok("SetAutoReconnect", 0)
            assert ann.call("IsAutoReconnectEnabled") == 0
            bob.kill()
            room.wait("the loss", lambda: links(ann, "bob") == [UP, DOWN])
            assert ann.call("GetPeerStatus", "bob") == UNKNOWN
            room.never("more of it", lambda: links(ann, "bob") != [UP, DOWN], 2)

    def during_the_retries():
        with Room() as room:
            ann, bob = room.form("ann", "bob")
            bob.kill()
            room.wait("the loss", lambda: links(ann, "bob") == [UP, DOWN, RETRYING])
            assert ann.call("GetPeerStatus", "bob") == RECONNECTING
            ann.ok("SetAutoReconnect", 0)
            room.wait("the end of the retries", lambda: links(ann, "bob") == [UP, DOWN, RETRYING, OVER])
            assert ann.call("GetPeerStatus", "bob") == UNKNOWN

    def after_the_last_retry():
        with Room() as room:
            config = {"reconnect_max_retries": 2, "reconnect_initial_ms": 100, "handshake_timeout_ms": 1000}
            ann, bob = room.form("ann", "bob", config=config)
            bob.kill()
            room.wait("giving up", lambda: links(ann, "bob") == [UP, DOWN, RETRYING, OVER])
            assert ann.call("GetPeerStatus", "bob") == UNKNOWN

    side_by_side(before_the_loss, during_the_retries, after_the_last_retry)


OFF, HOST, GUEST = 0, 1, 2
HOST_LEFT, HOST_LOST, HOST_DISCONNECTED = 1, 2, 3


def fixed_host(room, peer, **options):
    """The fixed host of a room, which does not campaign by itself; it may call the leader's functions at once."""
    host = room.puppet(peer, config={"auto_election_enabled": 0}, options={"host_mode": HOST, **options})
    assert host.call("IsLeader") == 1 and host.call("GetCurrentLeader") == peer
    host.ok("mmn_set_max_peers", 8)
    host.ok("SendFromLeader", "no member is here yet", TEXT, 0)
    return host


def hosted(room, *peers):
    """A fixed host and its guests, linked to each other."""
    host, *guests = members = [
        fixed_host(room, peer) if peer == peers[0] else room.puppet(peer, options={"host_mode": GUEST}) for peer in peers
    ]
    for guest in guests:
        guest.dial(host)
    room.meshed(*members)
    room.agreed(*members)
    return members


def a_fixed_host_that_is_killed_and_started_anew_leads_on():
    """No guest receives another leader: whether or not they have missed the old process, and while they wait for it."""
    with Room() as room:
        host, ann, bob = hosted(room, "max", "ann", "bob")
        for guest, missed in [(ann, False), (bob, True), (ann, True)]:
            host.kill()
            if missed:
                room.wait("the loss", lambda: ann.leader == bob.leader == "")
            before = [len(ann.leaders()), len(bob.leaders())]
            host = fixed_host(room, "max")
            host.dial(guest)
            room.meshed(host, ann, bob)
            room.agreed(host, ann, bob)
            assert host.leaders() == ["max"], host.leaders()
            if missed:
                assert [ann.leaders()[before[0] :], bob.leaders()[before[1] :]] == [["max"]] * 2
        for guest in (ann, bob):
            reported = guest.leaders()
            # A guest that did not miss the first process sees its leader all the time.
            assert reported in [["max"] + ["", "max"] * losses for losses in (2, 3)], reported
            terms = [term for who, _, term, _, _ in guest.reported("Leader") if who]
            assert terms == sorted(terms), terms
            assert not guest.reported("Ended")
        host.ok("SendFromLeader", "still here", TEXT, 0)
        for guest in (ann, bob):
            room.wait("a message", lambda: ("max", "still here") in guest.received())


def a_guest_receives_the_reason_when_its_room_ends():
    def by_farewell():
        with Room() as room:
            host, ann = hosted(room, "max", "ann")
            host.leave()
            room.wait("the end", lambda: ann.reported("Ended") == [[HOST_LEFT]])

    def by_disconnect_peer():
        with Room() as room:
            host, ann, bob, cid = hosted(room, "max", "ann", "bob", "cid")
            host.ok("DisconnectPeer", "ann")
            bob.ok("DisconnectPeer", "max")
            for guest in (ann, bob):
                room.wait("the end", lambda: guest.reported("Ended") == [[HOST_DISCONNECTED]])
            assert not cid.reported("Ended") and cid.leader == "max"

    def by_loss():
        with Room() as room:
            host = fixed_host(room, "max")
            ann = room.puppet("ann", options={"host_mode": GUEST, "member_hold_ms": 2500})
            ann.dial(host)
            room.agreed(host, ann)
            host.kill()
            room.wait("the end", lambda: ann.reported("Ended") == [[HOST_LOST]])
            assert ann.leaders() == ["max", ""]

    side_by_side(by_farewell, by_disconnect_peer, by_loss)


if __name__ == "__main__":
    main(globals(), sys.argv[1:])
