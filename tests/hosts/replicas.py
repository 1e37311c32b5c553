"""The samples' shared state in all three languages.

`replicas.py STORY OUTPUT` builds the lobbies in the folder OUTPUT and runs one story. Run by `tests/hosts`; MMN_LIBRARY names the
library.
"""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bindings" / "python")]

import demo
import meta_mystia_network as mmn

# The messages of the samples.
COMMAND, UPDATE, SNAPSHOT, REPLICA, SUPERSEDED = (mmn.FIRST_USER_TYPE + number for number in (0x10, 0x11, 0x12, 0x13, 0x15))

TIMEOUT_SECONDS = 40.0
LANGUAGES = ["csharp", "cpp", "python"]
LEADERSHIPS = 3  # of the smaller side
COMMANDS = 20
SILENT = [sys.executable, str(ROOT / "tests" / "hosts" / "puppet" / "silent_leader.py")]


def the_side_that_stays_keeps_its_state_when_it_loses_its_leader_at_once(commands):
    for turn in range(len(LANGUAGES)):
        first, second, third = LANGUAGES[turn:] + LANGUAGES[:turn]
        # As a rule eve, the largest id, succeeds the leader.
        lose_the_leader_that_stays(commands, bob=third, cid=first, dan=second, eve=first)


def lose_the_leader_that_stays(commands, bob, cid, dan, eve):
    """The larger side has counted to 100 under its first leader, ann; the smaller one to 1 under its third."""
    _, environment = commands["python"]
    members = {"ann": (SILENT, environment), "bob": commands[bob], "cid": commands[cid], "dan": commands[dan], "eve": commands[eve]}
    with demo.Room(members, demo.Screen(), f"replicas-{os.getpid()}-{eve}") as room:
        larger, smaller = room.hosts[:3], room.hosts[3:]
        ann = larger[0]
        for side in (larger, smaller):
            open_side(room, side)
        for leadership in range(2, LEADERSHIPS + 1):
            leader = room.by_name(smaller[0].leader)
            leader.type("/yield")
            room.wait(smaller, TIMEOUT_SECONDS, lambda: lack_of_successor(smaller, leader.name, leadership))
        for _ in range(20):
            larger[1].type("/add 5")
        smaller[1].type("/add 1")
        newest = room.wait_for_state(larger, 100, 0, TIMEOUT_SECONDS)
        other = room.wait_for_state(smaller, 1, 0, TIMEOUT_SECONDS)
        assert other.position[0] > newest.position[0], f"{other} has not counted more leaderships than {newest}"

        ann.type(f"/dial {smaller[0].address}")
        assert room.wait_for_agreement(room.hosts, TIMEOUT_SECONDS) == ann.name, "the leader of the larger side did not stay"
        assert {host.state.counter for host in smaller} == {1}, "a snapshot has arrived"
        ann.kill()
        rest = larger[1:] + smaller
        successor = room.wait_for_agreement(rest, TIMEOUT_SECONDS)
        for host in rest:
            host.type("/add 1")
        after = room.wait_for_state(rest, 104, 0, TIMEOUT_SECONDS)
        assert after.position[0] > other.position[0], f"{after} repeats a leadership of {other}"
        room.screen.note(f"{successor} continued from the state of the side that stayed", good=True)
        room.leave(rest)


def open_side(room, side):
    """Opens a room; its first member leads it."""
    first, *others = side
    first.start(room.session)
    room.wait([first], TIMEOUT_SECONDS, lambda: None if first.address else f"{first.name} does not listen")
    room.wait([first], TIMEOUT_SECONDS, lambda: None if first.leader else f"{first.name} does not lead")
    for host in others:
        host.start(room.session, first.address)
    room.wait_for_agreement(side, TIMEOUT_SECONDS)


def lack_of_successor(hosts, yielded, leadership):
    """The missing condition for another leader and its snapshot at all hosts; None when nothing is missing."""
    for host in hosts:
        if host.leader in (yielded, None) or host.state.position[0] < leadership:
            return f"{host.name} names {host.leader} and has {host.state}, not of leadership {leadership}"
    return None


def a_command_that_follows_a_snapshot_is_not_sent_under_another_number(commands):
    for language in LANGUAGES:
        session = f"replicas-{os.getpid()}-{language}"
        with demo.Room({language: commands[language]}, demo.Screen(), session) as room, Leader(session) as leader:
            (member,) = room.hosts
            room.wait([], TIMEOUT_SECONDS, lambda: None if leader.room.is_leader else "the room has no leader")
            member.start(session, leader.room.local_address)
            for number in range(1, COMMANDS + 1):
                member.type(f"/add {number}")
                room.wait([member], TIMEOUT_SECONDS, lambda: None if len(member.confirmed) >= number else f"{number} is open")
            # A repetition would come within a frame.
            time.sleep(1)
            expected = {(number, str(number)) for number in range(1, COMMANDS + 1)}
            assert set(leader.received) == expected, f"{language} sent {leader.received}"
            room.leave([member])


class Leader:
    """Leads a room with one other member. It answers each command with a snapshot without it, and at once with its update, so
    that both arrive in one frame of the member."""

    def __init__(self, session):
        self.room = mmn.Room("ann", session)
        self.received = []  # number and text of each command
        self.numbers = {}
        self.version = 0
        self.room.on_event(self.happened)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.room.close()

    def happened(self, event):
        match event:
            case mmn.Message(author, data, kind) if kind == COMMAND:
                number, verb, text = data.decode().split("\t")
                self.received.append((int(number), text))
                if int(number) == self.numbers.get(author, 0) + 1:
                    self.announce()
                    self.version += 1
                    self.numbers[author] = int(number)
                    update = f"{self.version}\t{author}\t{number}\t{verb}\t{text}"
                    self.room.send_from_leader(update.encode(), UPDATE)
            case mmn.Message(_, _, kind) if kind in (REPLICA, SUPERSEDED):
                self.announce()

    def announce(self):
        lines = [f"1\t{self.version}\t0"] + [f"n\t{author}\t{number}" for author, number in self.numbers.items()]
        self.room.send_from_leader("\n".join(lines).encode(), SNAPSHOT)


def main():
    name, output = sys.argv[1:]
    demo.isolate()
    commands = demo.build_hosts(Path(os.environ["MMN_LIBRARY"]), ROOT / "include", Path(output))
    globals()[name](commands)
    print(f"ok {name}")


if __name__ == "__main__":
    main()
