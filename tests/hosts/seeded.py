"""The seeded strategy over the C ABI, with real processes: rows of docs/scenarios.md, and the results of its functions.

`seeded.py NAME [KEY=NUMBER...]` runs one function, as `promises.py` does. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import contextlib
import socket
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("puppet")))

from promises import main
from room import QUICK, Room

NOT_SUPPORTED, POLICY_MISMATCH = -16, -20
SEEDED = 2
STRICT_START, NEVER_ALONE = 1, 2
LAN = 1
INIT, JOINING, ACTIVE, UNREACHABLE, LEAVING, REMOVED = range(6)

# The LAN profile, in seconds.
PROBE, HEARTBEAT, HEARTBEAT_TIMEOUT, TTL, RETRY = 0.05, 0.2, 0.6, 1.5, 0.25
FAILOVER_SECONDS = TTL + 8 * RETRY
"""Another member leads within this time, as docs/elections.md describes."""
SILENCE_SECONDS = HEARTBEAT_TIMEOUT + 2 * PROBE
"""A leader without a majority resigns within this time, counted from the last keep-alive that came: at most an interval later."""
SLACK_SECONDS = 1.5
"""For a busy machine."""

NEXT = {
    INIT: {JOINING},
    JOINING: {ACTIVE, UNREACHABLE, LEAVING},
    ACTIVE: {UNREACHABLE, LEAVING},
    UNREACHABLE: {ACTIVE, LEAVING},
    LEAVING: {REMOVED},
    REMOVED: {JOINING},
}
"""The states that may follow one."""


def free_ports(count):
    """Unused ports: seeds need theirs before they open. Nothing else runs in this network."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Cluster:
    """Options of its processes: the first two voters are its seeds, and each has its state directory."""

    def __init__(self, room, voters, directory, flags=NEVER_ALONE, seeds=None):
        self.room = room
        self.voters = voters
        self.directory = Path(directory)
        self.flags = flags
        self.ports = dict(zip(voters[:2], free_ports(2)))
        self.seeds = seeds or "\n".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def options(self, peer, **fields):
        directory = self.directory / peer
        directory.mkdir(exist_ok=True)
        return {
            "strategy": SEEDED,
            "strategy_flags": self.flags,
            "bind_address": "127.0.0.1",
            "bind_port": self.ports.get(peer, 0),
            "quorum_roster": "\n".join(self.voters),
            "state_directory": str(directory),
            "seeded": {"profile": LAN, "is_seed": int(peer in self.ports), "seeds": self.seeds, **fields},
        }

    def start(self, peer, **fields):
        return self.room.puppet(peer, config=QUICK, options=self.options(peer, **fields))

    def form(self):
        members = [self.start(peer) for peer in self.voters]
        self.agreed(*members)
        return members

    def agreed(self, *members, but=None, seconds=30.0):
        """Waits until these follow one of them, and until each knows all others as active."""
        names = {member.peer for member in members}

        def agreement():
            leaders = {member.leader for member in members}
            return len(leaders) == 1 and leaders <= names - {but}

        self.room.wait(f"one leader of {sorted(names)}", agreement, seconds)
        for member in members:
            for other in members:
                self.room.wait(
                    f"{member.peer} knows that {other.peer} is active",
                    lambda: [state for _, state, _ in states(member, other.peer)][-1:] == [ACTIVE],
                    seconds,
                )
                assert member.call("mmn_member_state", other.peer) == ACTIVE
        return next(member for member in members if member.peer == members[0].leader)


def states(member, peer):
    return member.reported("MemberState", peer)


def told_at(member, event, count):
    """Time of the event after the first `count` ones."""
    return [one["at"] for one in member.events if one["event"] == event][count]


def in_order(*members):
    """Checks each one's events of leaders and member states: each step once, in order, with growing versions."""
    for member in members:
        reported = member.leaderships()
        assert reported == [1, 0] * (len(reported) // 2) + [1] * (len(reported) % 2), f"{member.peer}: {reported}"
        before, newest = "", 0
        for who, old, term, epoch, _ in member.reported("Leader"):
            assert old == before and who != old and epoch == 0, f"{member.peer} received {member.reported('Leader')}"
            assert term >= newest or not who, f"{member.peer}: a version decreased: {member.reported('Leader')}"
            before, newest = who, max(newest, term)
        present, newest = {}, 0
        for peer, state, version in member.reported("MemberState"):
            if (peer, state, version) == (member.peer, INIT, 0):
                # It left its cluster, and dropped its knowledge of the others.
                present, newest = {}, 0
                continue
            was = present.get(peer, INIT)
            assert state in NEXT[was], f"{member.peer}: {peer} went from {was} to {state}: {states(member, peer)}"
            assert version >= newest, f"{member.peer}: a version decreased: {member.reported('MemberState')}"
            present[peer], newest = state, version


def nobody_leads(room, *members):
    room.wait("no member leads", lambda: {member.leader for member in members} == {""})
    for member in members:
        room.wait(f"{member.peer}'s event", lambda: [who for who, *_ in member.reported("Leader")][-1:] == [""])
        assert member.call("GetCurrentLeader") == "" and member.call("IsLeader") == 0


def t14_five_processes_elect_while_three_of_them_live():
    """Five processes. The leader and another one are killed, and three elect. A third one is killed, and all report in time that
    there is no leader. A seed returns from its state directory, and there is a leader again.
    """
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        cluster = Cluster(room, ["ann", "bob", "cid", "dan", "eve"], directory)
        members = cluster.form()
        leader = cluster.agreed(*members)
        version = leader.call("mmn_cluster_version")
        assert {member.call("mmn_cluster_version") for member in members} == {version}
        first, second = leader, next(member for member in members if member is not leader)
        rest = [member for member in members if member not in (first, second)]
        counts = {member: len(member.reported("LeaderChanged")) for member in rest}
        killed = time.monotonic()
        first.kill()
        second.kill()
        new = cluster.agreed(*rest)
        # The first change is the loss, the second one the election.
        took = max(told_at(member, "LeaderChanged", counts[member] + 1) for member in rest) - killed
        print(f"failover {took:.2f} s, TTL {TTL} s, at most {FAILOVER_SECONDS:.2f} s")
        assert took < FAILOVER_SECONDS + SLACK_SECONDS, f"{took:.2f} s"
        assert {member.call("mmn_cluster_version") for member in rest} == {version + 1}
        assert {member.call("mmn_leader_term") for member in rest} == {version + 1}
        for gone in (first, second):
            for member in rest:
                room.wait(f"{member.peer} knows that {gone.peer} is removed", lambda: states(member, gone.peer)[-1][1] == REMOVED)
                steps = [state for _, state, _ in states(member, gone.peer)]
                expected = ([JOINING, ACTIVE, LEAVING, REMOVED], [JOINING, ACTIVE, UNREACHABLE, LEAVING, REMOVED])
                assert steps in expected, f"{member.peer}: {states(member, gone.peer)}"
                assert member.call("mmn_member_state", gone.peer) == INIT

        third = next(member for member in rest if member is not new)
        two = [member for member in rest if member is not third]
        counts = {member: len(member.reported("LeaderChanged")) for member in two}
        killed = time.monotonic()
        third.kill()
        nobody_leads(room, *two)
        took = max(told_at(member, "LeaderChanged", counts[member]) for member in two) - killed
        limit = HEARTBEAT + SILENCE_SECONDS
        print(f"no member leads after {took:.2f} s, at most {limit:.2f} s")
        assert took < limit + SLACK_SECONDS, f"{took:.2f} s"
        room.never("somebody leads without a majority", lambda: any(member.leader for member in two), 4 * TTL)

        # A seed, which others can reach: their knowledge of each other's addresses is out of date.
        seed = next(peer for peer in cluster.ports if peer not in {member.peer for member in two})
        began = time.monotonic()
        again = cluster.start(seed)
        cluster.agreed(again, *two)
        print(f"a leader again {time.monotonic() - began:.2f} s after the start of {seed}")
        assert {member.call("mmn_cluster_version") for member in (again, *two)} == {version + 2}
        in_order(again, *two)


def t21_a_process_that_was_killed_returns_from_its_state_directory():
    """A follower is killed and started at once, before the leader has removed it: the leader admits its next incarnation."""
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        cluster = Cluster(room, ["ann", "bob", "cid"], directory)
        members = cluster.form()
        leader = cluster.agreed(*members)
        version = leader.call("mmn_cluster_version")
        gone, other = [member for member in members if member is not leader]
        gone.kill()
        again = cluster.start(gone.peer)
        for member in (leader, other):
            room.wait(f"{member.peer} knows that it came back", lambda: len(states(member, gone.peer)) > 2)
        cluster.agreed(again, leader, other)
        assert again.leader == leader.peer
        assert {member.call("mmn_cluster_version") for member in (again, leader, other)} == {version}
        in_order(again, leader, other)


def members_without_a_vote_follow_and_hosts_ask_seeds_by_name():
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        cluster = Cluster(room, ["ann", "bob", "cid"], directory)
        members = cluster.form()
        cluster.seeds = "\n".join(f"  localhost:{port}  " for port in cluster.ports.values())
        guest = cluster.start("zoe")
        leader = cluster.agreed(*members, guest)
        version = leader.call("mmn_cluster_version")
        leader.leave()
        rest = [member for member in (*members, guest) if member is not leader]
        new = cluster.agreed(*rest, but="zoe")
        assert guest.call("IsLeader") == 0 and new.call("mmn_cluster_version") == version + 1
        for member in rest:
            room.wait("its removal", lambda: states(member, leader.peer)[-1][1] == REMOVED)
        in_order(*rest)


def functions_of_other_strategies_are_refused():
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        ann = Cluster(room, ["ann"], directory, flags=0).start("ann")
        room.wait("it leads", lambda: ann.leader == "ann")
        assert ann.call("mmn_strategy") == SEEDED and ann.call("mmn_cluster_version") == 1
        for name, *arguments in (
            ("SetLeader", "ann"),
            ("mmn_transfer_leadership", "ann"),
            ("mmn_yield_leadership",),
            ("EnableAutoLeaderElection", 1),
            ("mmn_set_priority", 1),
            ("mmn_set_eligible", 0),
        ):
            assert "seeded" in ann.refused(NOT_SUPPORTED, name, *arguments)
        room.wait("its own states", lambda: states(ann, "ann") == [["ann", JOINING, 1], ["ann", ACTIVE, 1]])
        assert ann.leaderships() == [1]
        in_order(ann)


def members_with_other_intervals_do_not_link():
    with tempfile.TemporaryDirectory() as directory, Room() as room:
        cluster = Cluster(room, ["ann", "bob"], directory, flags=STRICT_START)
        ann, bob = cluster.start("ann"), cluster.start("bob", ttl_timeout_ms=1600)
        bob.dial(ann, code=POLICY_MISMATCH)
        room.wait("the event", lambda: bob.reported("Result"))
        code, sentence = bob.reported("Result")[-1]
        assert code == POLICY_MISMATCH and "1500" in sentence and "1600" in sentence, sentence
        assert [member.call("GetPeerCount") for member in (ann, bob)] == [0, 0]
        assert [member.call("mmn_cluster_version") for member in (ann, bob)] == [0, 0]


if __name__ == "__main__":
    main(globals(), sys.argv[1:])
