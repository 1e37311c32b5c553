"""The gossip strategy over the C ABI, with real processes: rows of docs/scenarios.md, and the results of its functions.

`gossip.py NAME [KEY=NUMBER...]` runs one function, as `promises.py` does. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("puppet")))

from lab import Lab
from promises import INVALID, NOT_LEADER, TEXT, main
from room import QUICK, Room, side_by_side

NOT_SUPPORTED, POLICY_MISMATCH = -16, -20
RAFT, GOSSIP = 0, 1
STRICT_LOWEST = 1
ELECTED, FOUND, LOST, LEFT, RESIGNED = 1, 4, 5, 6, 7
REASONS = {"": {LOST, LEFT, RESIGNED}, "somebody": {ELECTED, FOUND}}

ALIVE_SECONDS = 0.5
WINDOWS = {
    "SetStartupGracePeriod": 500,
    "SetMembershipSampleInterval": 100,
    "SetLeaderAliveThreshold": 500,
    "SetLeaderElectionDuration": 500,
}
OVERLAPPING = {**WINDOWS, "SetLeaderElectionDuration": 1000}
"""An election lasts twice as long as a follower's window: all survivors propose themselves in the same election, on a busy
machine too.
"""


def gossiping(flags=0, **more):
    """Options of a puppet in such a room."""
    return {"options": {"strategy": GOSSIP, "strategy_flags": flags, **more}, "config": QUICK}


def group(room, *peers, flags=0, windows=WINDOWS, hosts=None):
    """A room of these, and its leader. A joining member proposes itself only once it knows the leader, so that the first leads."""
    first, *others = peers
    hosts = hosts or {}
    leader = room.puppet(first, before=windows, host=hosts.get(first), **gossiping(flags))
    room.wait(f"{first} leads", lambda: leader.leader == first)
    members = [leader]
    for peer in others:
        settings = gossiping(flags)
        settings["config"] = {**QUICK, "auto_election_enabled": 0}
        member = room.puppet(peer, before=windows, host=hosts.get(peer), **settings)
        member.dial(leader)
        members.append(member)
        room.meshed(*members)
        room.wait(f"{peer} follows {first}", lambda: member.leader == first)
        member.ok("EnableAutoLeaderElection", 1)
    assert all(member.leader == first for member in members), "a newcomer deposed the first"
    return members


def in_order(*members):
    """The leadership and leader events of each are consistent to the end."""
    for member in members:
        reported = member.leaderships()
        assert reported == [1, 0] * (len(reported) // 2) + [1] * (len(reported) % 2), f"{member.peer}: {reported}"
        before = ""
        for who, old, term, epoch, reason in member.reported("Leader"):
            assert (old, term, epoch) == (before, 0, 0) and who != old, f"{member.peer} received {member.reported('Leader')}"
            assert reason in REASONS[who and "somebody"], f"{member.peer} received {member.reported('Leader')}"
            before = who
        assert member.call("mmn_leader_term") == member.call("mmn_leader_epoch") == 0


def only_leader(room, leader, *members):
    """Waits until it leads them all, and each has every event of that."""
    room.wait(f"{leader.peer} leads", lambda: {member.leader for member in members} == {leader.peer})
    for member in members:
        room.wait(f"{member.peer}'s event", lambda: [who for who, *_ in member.reported("Leader")][-1:] == [leader.peer])
    room.wait(f"{leader.peer} is notified that it leads", lambda: leader.leaderships()[-1:] == [1])
    for member in members:
        expected = [[1]] if member is leader else [[], [0]]
        room.wait(f"{member.peer} is notified whether it leads", lambda: member.leaderships()[-1:] in expected)
        assert member.call("IsLeader") == (member is leader)
        assert member.call("GetCurrentLeader") == leader.peer
    in_order(*members)


def f5_two_groups_of_processes_that_merge_keep_the_lower_leader():
    with Room() as room:
        low = group(room, "p0", "p1", "p2", "p3")
        high = group(room, "p4", "p5", "p6", "p7")
        assert (low[0].leaderships(), high[0].leaderships()) == ([1], [1])
        high[3].dial(low[3])
        members = low + high
        room.meshed(*members)
        only_leader(room, low[0], *members)
        assert low[0].leaderships() == [1], "the lower leader was disturbed"
        assert high[0].leaderships() == [1, 0]
        # A member that never led received no event that ends its leadership.
        assert all(member.leaderships() == [] for member in members if member not in (low[0], high[0]))
        # The other side's leader existed before the sides merged.
        assert all(member.reported("Leader", "p0")[-1][-1] == FOUND for member in high)


def f6_when_the_first_process_is_killed_the_lowest_takes_over():
    def overlapping():
        takeover(0, OVERLAPPING)

    def strict():
        """Elections shorter than the window between two declarations: only the option makes them overlap.

        Round trips may differ by a quarter of the alive threshold: half a second, for a busy machine.
        """
        takeover(STRICT_LOWEST, {**WINDOWS, "SetLeaderAliveThreshold": 2000, "SetLeaderElectionDuration": 900})

    def takeover(flags, windows):
        with Room() as room:
            leader, *rest = group(room, "p5", "p4", "p3", "p2", flags=flags, windows=windows)
            leader.kill()
            only_leader(room, rest[-1], *rest)
            for member in rest:
                (_, old, _, _, lost), (who, _, _, _, reason) = member.reported("Leader")[-2:]
                assert (old, lost, who, reason) == ("p5", LOST, "p2", ELECTED), f"{member.peer}: {member.reported('Leader')}"
            assert [member.leaderships() for member in rest] == [[], [], [1]]

    side_by_side(overlapping, strict)


def f7_a_process_that_yields_is_notified_once_and_another_leads_for_good():
    with Room() as room:
        members = group(room, "p0", "p1", "p2", "p3", "p4", "p5")
        old, *others = members
        old.ok("mmn_yield_leadership")
        # The state has changed when the call returns.
        assert old.call("IsLeader") == 0 and old.call("GetCurrentLeader") in ("", *(member.peer for member in others))
        old.refused(NOT_LEADER, "mmn_yield_leadership")
        room.wait("another leader", lambda: {member.leader for member in members} < {member.peer for member in others})
        new = room.agreed(*members)
        only_leader(room, new, *members)
        room.never("p0 leads again", lambda: old.leaderships() != [1, 0], 2 * ALIVE_SECONDS)
        only_leader(room, new, *members)
        (_, _, _, _, gone), (_, _, _, _, came) = old.reported("Leader")[1:3]
        assert (gone, came) == (RESIGNED, ELECTED), old.reported("Leader")


def f10_every_part_of_a_cut_network_has_a_leader_and_one_is_left():
    names = [f"p{number}" for number in range(6)]
    with Lab(*names) as lab, Room() as room:
        members = group(room, *names, hosts=lab.hosts)
        first, *others = members
        for name in names:
            lab.host(name).cut()
        for member in members:
            room.wait(f"{member.peer} leads its part", lambda: member.leader == member.peer and not member.linked)
            assert member.call("GetPeerCount") == 0
        room.wait("six leaders", lambda: all(member.leaderships()[-1:] == [1] for member in members))
        assert first.leaderships() == [1], "the first leader lost what no member took"
        for name in names:
            lab.host(name).join()
        room.meshed(*members)
        only_leader(room, first, *members)
        assert first.leaderships() == [1]
        assert all(member.leaderships() == [1, 0] for member in others), [member.leaderships() for member in members]


def requests_that_need_votes_are_refused():
    with Room() as room:
        members = ann, bob = group(room, "ann", "bob")
        for member in members:
            assert member.call("mmn_strategy") == GOSSIP
            for name, argument in (("SetLeader", "bob"), ("mmn_transfer_leadership", "bob"), ("mmn_set_priority", 5)):
                sentence = member.refused(NOT_SUPPORTED, name, argument)
                assert "gossip" in sentence and "raft" in sentence, sentence
            # An invalid argument is reported first.
            member.refused(INVALID, "SetLeader", "")
        assert "not the leader" in bob.refused(NOT_LEADER, "mmn_yield_leadership")
        only_leader(room, ann, *members)
        assert ann.leaderships() == [1]
        # A leader with automatic election off keeps leading; a member that may not lead needs an explicit call.
        ann.ok("EnableAutoLeaderElection", 0)
        room.never("a change", lambda: len(bob.reported("Leader")) > 1, 2 * ALIVE_SECONDS)
        ann.ok("mmn_set_eligible", 0)
        only_leader(room, bob, *members)
        bob.kill()
        room.wait("the loss", lambda: ann.leader == "")
        room.never("an observer leads", lambda: ann.leader, 4 * ALIVE_SECONDS)
        ann.ok("mmn_set_eligible", 1)
        room.never("it proposes itself", lambda: ann.leader, 4 * ALIVE_SECONDS)
        ann.ok("EnableAutoLeaderElection", 1)
        room.wait("it leads again", lambda: ann.leader == "ann" and ann.leaderships() == [1, 0, 1])
        in_order(ann)


def f27_a_process_alone_that_yields_leads_again():
    with Room() as room:
        (ann,) = group(room, "ann")
        ann.ok("mmn_yield_leadership")
        room.wait("it is notified", lambda: ann.leaderships() == [1, 0] and ann.leader == "")
        assert ann.call("IsLeader") == 0 and ann.call("GetCurrentLeader") == ""
        room.wait("it leads again", lambda: ann.leaderships() == [1, 0, 1])
        _, stopped, again = [event["at"] for event in ann.events if event["event"] == "Leadership"]
        assert again - stopped > 6 * ALIVE_SECONDS - 0.1, f"after {again - stopped:.2f} s"
        in_order(ann)


def messages_find_the_next_leader_after_a_crash():
    with Room() as room:
        members = group(room, "ann", "bob", "cid", "dan", windows=OVERLAPPING)
        for member in members:
            member.ok("SetCentralizedMode", 1)
        speak(room, members, "before")
        members[0].kill()
        rest = members[1:]
        only_leader(room, rest[0], *rest)
        speak(room, rest, "after")
        rest[0].kill()
        only_leader(room, rest[1], *rest[1:])
        speak(room, rest[1:], "at the end")


def speak(room, members, word):
    """To the leader, which is the first of them; from it; and to all through it, with the original sender."""
    leader, *others = members
    for member in others:
        member.ok("SendToLeader", f"{word}: to the leader", TEXT, 0)
        room.wait("a message to the leader", lambda: (member.peer, f"{word}: to the leader") in leader.received())
        member.refused(NOT_LEADER, "SendFromLeader", "no", TEXT, 0)
    leader.ok("SendFromLeader", f"{word}: from the leader", TEXT, 0)
    for member in members:
        member.ok("BroadcastMessage", f"{word}: to all", TEXT, 0)
    for member in members:
        expected = {(other.peer, f"{word}: to all") for other in members if other is not member}
        expected |= {(leader.peer, f"{word}: from the leader")} if member is not leader else set()
        room.wait(f"{member.peer} receives all", lambda: expected <= set(member.received()))
        assert len(member.received()) == len(set(member.received())), f"twice: {member.received()}"


def windows_are_the_processs_and_hold_from_the_next_one_on():
    """Elections of this length would take longer than this test waits."""
    endless = {**WINDOWS, "SetLeaderElectionDuration": 300_000}
    with Room() as room:
        ann = room.puppet("ann", before=WINDOWS, **gossiping())
        room.wait("ann leads", lambda: ann.leader == "ann")
        settings = gossiping()
        settings["config"] = {**QUICK, "auto_election_enabled": 0}
        bob = room.puppet("bob", before=endless, **settings)
        bob.dial(ann)
        room.wait("bob follows ann", lambda: bob.leader == "ann")
        bob.ok("EnableAutoLeaderElection", 1)
        assert "SetLeaderElectionDuration takes 1 to" in bob.refused(INVALID, "SetLeaderElectionDuration", 0)
        assert bob.call("GetLeaderElectionDuration") == 300_000
        bob.ok("SetLeaderElectionDuration", 200)
        ann.kill()
        room.wait("bob leads", lambda: bob.leader == "bob")
        # The windows survive the room.
        bob.ok("ShutdownNetwork")
        assert bob.call("GetLeaderElectionDuration") == 200 and bob.call("GetLeaderAliveThreshold") == 500
        assert bob.do("open", peer="bob", session=room.session, **gossiping()) is None
        room.wait("bob leads again", lambda: bob.leaderships() == [1, 1])


def members_of_other_strategies_do_not_link():
    with Room() as room:
        plain = room.puppet("ann", before=WINDOWS, **gossiping())
        strict = room.puppet("bob", before=WINDOWS, **gossiping(STRICT_LOWEST))
        voting = room.puppet("cid", config=QUICK, options={"strategy": RAFT})
        members = {plain: "Gossip { strict_lowest: false }", strict: "Gossip { strict_lowest: true }", voting: "Raft"}
        for dialler, own in members.items():
            for other, theirs in members.items():
                if other is dialler:
                    continue
                count = len(dialler.reported("Result"))
                dialler.dial(other, code=POLICY_MISMATCH)
                room.wait("the event", lambda: len(dialler.reported("Result")) > count)
                code, sentence = dialler.reported("Result")[-1]
                assert code == POLICY_MISMATCH
                assert "strategy" in sentence and own in sentence and theirs in sentence, sentence
        assert [member.call("GetPeerCount") for member in members] == [0, 0, 0]
        # With a member of its own strategy each links.
        again = room.puppet("dan", before=WINDOWS, **gossiping(STRICT_LOWEST))
        again.dial(strict)


if __name__ == "__main__":
    main(globals(), sys.argv[1:])
