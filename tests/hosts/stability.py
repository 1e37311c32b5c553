"""Disturbances that do not change a room's leader, over the C ABI, with real processes and the default timers.

`stability.py NAME [KEY=NUMBER...]` runs one function, as `promises.py` does. Run by `tests/hosts`, and with more rounds by `make
figures`; MMN_LIBRARY names the library.

In each round one member disturbs a room of three. The two others must never receive another leader, or none, and the disturbing
member must follow theirs at the end.
"""

import random
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("puppet")))

from lab import Lab
from promises import main
from room import Room

NAMES = ("ann", "bob", "cid")
BACK_SECONDS = 20.0
"""A reconnection tries at least every 2 s, and each try may take the handshake's 5 s."""
AFTER_SECONDS = 4.0
"""Time of watching after the last disturbance: longer than the longest election timeout."""


def disturbed(room, members, disturb):
    """Runs `disturb(follower)` in a settled room and compares the others' events."""
    leader = room.agreed(*members)
    follower = next(member for member in members if member is not leader)
    others = [member for member in members if member is not follower]
    before = [member.leaders() for member in others]
    newcomers = disturb(follower) or []
    room.meshed(*members, *newcomers, seconds=BACK_SECONDS)
    for member in [follower, *newcomers]:
        room.wait(f"{member.peer} follows {leader.peer}", lambda: member.leader == leader.peer, BACK_SECONDS)
    others += newcomers
    before += [member.leaders() for member in newcomers]
    changed = lambda: [member.leaders() for member in others] != before
    room.never("another leader", changed, AFTER_SECONDS)
    assert follower.leader == leader.peer and follower.call("GetCurrentLeader") == leader.peer
    assert all(newcomer.leaders() == [leader.peer] for newcomer in newcomers), "a newcomer was notified of another leader"


def stopped(number):
    def disturb(follower):
        follower.pause()
        time.sleep(5)
        follower.resume()

    with Room() as room:
        disturbed(room, room.form(*NAMES), disturb)


def flapping(number, seconds):
    """Stopped and continued, or its cable cut and mended, each time for up to 4 s; every third round both in turn. In another
    third the stops take about as long as the heartbeat timeout, so that its peers disagree on the loss.
    """
    chance = random.Random(number)
    with Lab(*NAMES) as lab, Room() as room:
        hosts = {name: lab.host(name) for name in NAMES}

        def disturb(follower):
            stops = [(follower.pause, follower.resume)], [(follower.host.cut, follower.host.join)]
            ways = (stops[0] + stops[1], stops[0], stops[1])[number % 3]
            shortest, longest = (1.2, 1.9) if number % 3 == 1 else (0.5, 4)
            ends = time.monotonic() + seconds
            turn = 0
            while time.monotonic() < ends:
                begin, end = ways[turn % len(ways)]
                turn += 1
                begin()
                time.sleep(chance.uniform(shortest, longest))
                end()
                time.sleep(chance.uniform(0.5, 4))

        disturbed(room, room.form(*NAMES, hosts=hosts), disturb)


def joining(number):
    """With the largest id, through the follower; it receives this leader and no other."""
    with Room() as room:
        members = room.form(*NAMES)

        def disturb(follower):
            newcomer = room.puppet("zzz")
            newcomer.dial(follower)
            return [newcomer]

        disturbed(room, members, disturb)


def many(story, rounds, at_once):
    """Runs `rounds` rounds, this many at a time; fails with every failure."""
    numbers, failures, lock = iter(range(rounds)), [], threading.Lock()

    def work():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                story(number)
            except BaseException as failure:
                with lock:
                    failures.append(f"round {number}: {failure!r}")

    workers = [threading.Thread(target=work) for _ in range(at_once)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return failures


def disturbances_do_not_change_a_rooms_leader(rounds=3, at_once=0, seconds=60):
    """All three kinds, side by side: the flapping ones take a minute, and the others run meanwhile."""
    stories = {
        "stopped for 5 s": stopped,
        f"flapping for {seconds} s": lambda number: flapping(number, seconds),
        "joining with the largest id": joining,
    }
    results = {}

    def run(name, story):
        results[name] = many(story, rounds, at_once or rounds)

    if at_once:
        # Few rooms at a time: one kind after the other.
        for name, story in stories.items():
            run(name, story)
    else:
        threads = [threading.Thread(target=run, args=pair) for pair in stories.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name, failures in results.items():
        print(f"{name}: the leader stayed in {rounds - len(failures)} of {rounds} rooms")
    failures = [f"{name}, {failure}" for name, all_of in results.items() for failure in all_of]
    assert not failures, "\n".join(failures)


if __name__ == "__main__":
    main(globals(), sys.argv[1:])
