"""Elections over the C ABI, with real processes: leadership transfer, preferences, static quorums.

`elections.py NAME [KEY=NUMBER...]` runs one function, as `promises.py` does. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("puppet")))

from promises import DUPLICATE, INVALID, NOT_LEADER, PEER_NOT_FOUND, REJECTED, main
from room import Puppet, Room, side_by_side

RAFT = 0
TRANSFERRED, LOST, RESIGNED = 3, 5, 7
STATIC = 1
NAMES = ("ann", "bob", "cid")
QUICK = {
    "heartbeat_interval_ms": 100,
    "heartbeat_timeout_multiplier": 5,
    "election_timeout_min_ms": 500,
    "election_timeout_max_ms": 1000,
}
LONG_ENOUGH_SECONDS = 4.0
"""Four times the longest election timeout of these rooms: every member that campaigns has begun by then."""


def named(room, member, leader):
    """Waits until its event handler, which is called after the LeaderChanged callback, has received that leader."""
    room.wait(f"{member.peer} follows {leader.peer}", lambda: [who for who, *_ in member.reported("Leader")][-1:] == [leader.peer])


def transferred(room, members, old, new, began):
    """Waits until all follow the new leader, and compares the events of each since `began`."""
    for member in members:
        named(room, member, new)
    room.wait(f"{new.peer} is notified", lambda: new.leaderships()[-1:] == [1])
    room.wait(f"{old.peer} is notified", lambda: old.leaderships()[-1:] == [0])
    for member, before in zip(members, began):
        reported = member.reported("Leader")[before:]
        who, _, _, epoch, reason = reported[-1]
        assert (who, epoch, reason) == (new.peer, 0, TRANSFERRED), f"{member.peer} received {reported}"
        # The old leader yields to the candidate before its election; no other member sees a room without a leader.
        between = [(who, reason) for who, _, _, _, reason in reported[:-1]]
        assert between in ([], [("", RESIGNED)] if member is old else []), f"{member.peer} received {reported}"
    assert len({member.call("mmn_leader_term") for member in members}) == 1
    assert all(member.call("mmn_leader_epoch") == 0 for member in members)


def a_leader_transfers_and_yields():
    with Room() as room:
        members = room.form(*NAMES, config=QUICK, options={})
        for turn in range(4):
            old = room.agreed(*members)
            for member in members:
                named(room, member, old)
            assert old.call("mmn_strategy") == RAFT
            others = [member for member in members if member is not old]
            for other in others:
                assert "not the leader" in other.refused(NOT_LEADER, "mmn_yield_leadership")
                assert "not the leader" in other.refused(NOT_LEADER, "mmn_transfer_leadership", "unknown")
            assert '"unknown" is neither' in old.refused(PEER_NOT_FOUND, "mmn_transfer_leadership", "unknown")
            old.refused(INVALID, "mmn_transfer_leadership", "")
            before = old.call("mmn_leader_term")
            began = [len(member.reported("Leader")) for member in members]
            if turn % 2:
                new = max(others, key=lambda member: member.peer)
                old.ok("mmn_yield_leadership")
            else:
                new = min(others, key=lambda member: member.peer)
                old.ok("mmn_transfer_leadership", new.peer)
            transferred(room, members, old, new, began)
            assert new.call("mmn_leader_term") == before + 1
        leader = room.agreed(*members)
        observer = room.puppet("dan", config=QUICK, options={"eligible": 0})
        observer.dial(leader)
        room.meshed(*members, observer)
        assert "may not lead" in leader.refused(REJECTED, "mmn_transfer_leadership", observer.peer)
        for member in members:
            reported = member.leaderships()
            assert reported == [1, 0] * (len(reported) // 2) + [1] * (len(reported) % 2), f"{member.peer}: {reported}"


def the_preferred_member_follows_a_leader_that_crashed(rounds=3):
    """Of equal members the largest id becomes leader. A member with a higher priority campaigns first, by as little as 40 ms: a
    busy machine may reverse that, but not twice in three times.
    """
    winners = []

    def crash():
        with Room() as room:
            members = room.form(*NAMES, config=QUICK)
            ann, bob, _ = members
            ann.ok("mmn_set_priority", 10)
            leader = room.agreed(*members)
            if leader is ann:
                leader.ok("mmn_transfer_leadership", "bob")
                room.wait("bob leads", lambda: all(member.leader == "bob" for member in members))
                leader = bob
            leader.kill()
            winners.append(room.agreed(*(member for member in members if member is not leader)).peer)

    side_by_side(*[crash] * rounds)
    assert winners.count("ann") * 2 > rounds, winners


def static(directory):
    return {"quorum_policy": STATIC, "quorum_roster": "\n".join(NAMES), "state_directory": str(directory)}


def opening(room, peer, options):
    """A process that tries to open the room, and its error; None if it opened."""
    puppet = Puppet(room, peer, None, None)
    room.puppets.append(puppet)
    room.wait(f"{peer} starts", lambda: puppet.reported("Ready"))
    return puppet.do("open", peer=peer, session=room.session, config=QUICK, options=options)


def a_static_quorum_has_a_leader_only_while_a_majority_is_there():
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        options = static(directory)
        ann = room.puppet("ann", config=QUICK, options=options)
        room.never("one of three leads", lambda: ann.leader or ann.leaderships(), LONG_ENOUGH_SECONDS)
        assert ann.call("GetCurrentLeader") == "" and ann.call("IsLeader") == 0
        bob = room.puppet("bob", config=QUICK, options=options)
        bob.dial(ann)
        room.agreed(ann, bob)
        cid = room.puppet("cid", config=QUICK, options=options)
        cid.dial(ann)
        members = [ann, bob, cid]
        room.meshed(*members)
        leader = room.agreed(*members)
        term = leader.call("mmn_leader_term")
        # A second process is not that member.
        answer = opening(room, "ann", options)
        assert answer["result"] == DUPLICATE and ".lock" in answer["sentence"], answer

        survivor = next(member for member in members if member is not leader)
        dead = [member for member in members if member is not survivor]
        for member in dead:
            member.kill()
        room.wait("the loss of the leader", lambda: not survivor.leader)
        room.never("one of three leads", lambda: survivor.leader, LONG_ENOUGH_SECONDS)
        assert survivor.call("GetCurrentLeader") == ""

        again = room.puppet(dead[0].peer, config=QUICK, options=options)
        # It knows the term from its file, before it is linked to a peer.
        assert again.call("mmn_leader_term") >= term, f"{again.call('mmn_leader_term')} after {term}"
        again.dial(survivor)
        leader = room.agreed(again, survivor)
        assert leader.call("mmn_leader_term") > term


def a_damaged_state_is_refused_by_name():
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        ann = room.puppet("ann", config=QUICK, options=static(directory))
        ann.leave()
        (path,) = Path(directory).glob("*.state")
        whole = path.read_bytes()
        for damage in (b"", whole[:-1], whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]):
            path.write_bytes(damage)
            answer = opening(room, "ann", static(directory))
            assert answer["result"] == INVALID and str(path) in answer["sentence"] and "damaged" in answer["sentence"], answer
            assert path.read_bytes() == damage, "the file was touched"
        path.write_bytes(whole)
        assert opening(room, "ann", static(directory)) is None
        answer = opening(room, "bob", static(Path(directory) / "missing"))
        assert answer["result"] == INVALID and "state_directory" in answer["sentence"], answer


def rooms_of_other_quorums_do_not_link():
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        ann = room.puppet("ann", config=QUICK, options=static(directory))
        bob = room.puppet("bob", config=QUICK, options={})
        cid = room.puppet("cid", config=QUICK, options={**static(directory), "quorum_roster": "ann\nbob\ncid\ndan\neve"})
        for other in (bob, cid):
            other.dial(ann, code=-20)
        assert ann.call("GetPeerCount") == 0


if __name__ == "__main__":
    main(globals(), sys.argv[1:])
