#!/usr/bin/env python3
"""Rooms over a relay: `relays.py [NAME...]` plays the scenarios whose name contains one of the arguments, by default all, and prints
what happened. `docs/lab.md` describes them.

In each, machine `r` runs a relay and no member, and members know nothing but the room's code and the relay's address. The scenarios
with two members have the NATs of `nat.py`: a and b must be linked over the relay, and directly soon after where plain UDP passes.
Exits with 0 when all ended so, with 1 when one did not, and with 3 on a machine that cannot run them.
"""

import argparse
import contextlib
import functools
import itertools
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import internet
import nat
from bench import room_code
from internet import Internet, Nat
from nat import AFTER_SECONDS, DIRECT_SECONDS, WATCH_SECONDS, Play, Process
from network import CANNOT_RUN, ROOT, CannotRun

RELAY_PORT = 7843
RESTART_SECONDS = 0.5
"""From the end of a relay's process to the start of the next one."""
DEAD_SECONDS = 12.0
"""Without a relay, where it carries nothing."""
IDLE_SECONDS = 60.0
MANY_SECONDS = 30.0
LINKED_SECONDS = 1.0
"""From the start of the second member to the link over the relay, at most, on an idle machine: most of it is the derivation of the
locator from the code. With more work than cores it takes longer in proportion."""
TAKES_OVER_SECONDS = 1.5
"""From the link over the relay to the direct one, at most. On an idle machine it takes 0.1 to 0.9 s."""
ROOM = 8
FELT_MS = 200
"""Shortest pause of most messages when their relay goes; a few links may use the other one."""
SILENT_SECONDS = 6.0
"""For longer than a room waits for a relay."""
MOVED_MS = 1500
"""Longest pause of messages when one of two relays goes, on an idle machine: the shortest time after which a member is lost."""


class Relay:
    """A relay's process on a machine. A restarted one has the same key."""

    def __init__(self, host, *options):
        self.host = host
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self.start()

    def start(self):
        program = os.environ.get("MMN_RELAY", str(ROOT / "target/release/mmn-relay"))
        key = Path(self.folder.name) / "key"
        listen = f"[::]:{RELAY_PORT}" if getattr(self.host, "address6", "") else f"0.0.0.0:{RELAY_PORT}"
        self.process = self.host.start([program, "--listen", listen, "--key-file", key, *self.options])
        assert self.process.stdout.readline(), "the relay did not start; its message is above"
        # Its log is not read, but must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self, after=RESTART_SECONDS):
        self.kill()
        time.sleep(after)
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()


class Room:
    """Members that know the code and the relay alone, or both relays."""

    def __init__(self, *relays, heartbeat_ms=0):
        self.relays = relays
        self.code = room_code()
        self.members = {}
        self.options = {}
        if heartbeat_ms:
            timeouts = {"election_timeout_min_ms": 3 * heartbeat_ms, "election_timeout_max_ms": 6 * heartbeat_ms}
            self.options = {"heartbeat_interval_ms": heartbeat_ms, **timeouts}

    def open(self, host, per_second=50, family=4, code=None, **options):
        """Returns the member's process, and when it opened the room."""
        at = [f"[{relay.host.address6}]" if family == 6 else relay.host.address for relay in self.relays]
        relays = "\n".join(f"{one}:{RELAY_PORT}" for one in at)
        options = {"session": code or self.code, "relays": relays, **self.options, **options}
        member = Process(host, "any", per_second, options)
        self.members[host.name] = member
        return member, member.all("opens")[0]["at"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        nat.end(self.members)

    def paths(self):
        return {(one, other): self.members[one].path(other) for one, other in itertools.permutations(self.members, 2)}

    def wait_for(self, seconds, is_right):
        """The seconds until `is_right(paths)`, or None if it is not within the time."""
        began = time.monotonic()
        while not is_right(self.paths()):
            if time.monotonic() > began + seconds:
                return None
            time.sleep(0.02)
        return time.monotonic() - began

    def count(self, event):
        return sum(len(member.all(event)) for member in self.members.values())

    def leaders(self):
        return {member.report()["leader"] for member in self.members.values()}

    def wait_for_leader(self, seconds):
        """The leader that all name."""
        deadline = time.monotonic() + seconds
        while len(leaders := self.leaders()) > 1 or None in leaders:
            assert time.monotonic() < deadline, f"no common leader: {leaders}"
            time.sleep(0.1)
        return leaders.pop()


def play(scenario, watch_seconds):
    """Plays one of nat.py's scenarios over a relay, up to three times while nothing but a late link is wrong: other work of the
    machine only adds to that time.
    """
    for _ in range(3):
        result = play_once(scenario, watch_seconds)
        if failures(scenario, result) != lateness(scenario, result) or not lateness(scenario, result):
            break
    return result


def play_once(scenario, watch_seconds):
    with Internet(ipv6=scenario.ipv6) as net:
        hosts = nat.build(scenario, net)
        with Relay(hosts["r"]) as relay, Room(relay, heartbeat_ms=scenario.heartbeat_ms) as room:
            return observe(scenario, watch_seconds, hosts, room)


def observe(scenario, watch_seconds, hosts, room):
    if scenario.then == "cross":
        nat.wall(hosts, True)
    a, _ = room.open(hosts["a"], scenario.per_second, scenario.family)
    a.wait("relay")
    b, began = room.open(hosts["b"], scenario.per_second, scenario.family)
    deadline = time.monotonic() + watch_seconds
    left = lambda: deadline - time.monotonic()
    is_direct = lambda line: line["path"] == "direct"
    after = lambda lines: max(line["at"] for line in lines) - began if all(lines) else None
    linked = after([a.wait("joined", "b", left()), b.wait("joined", "a", left())])
    disturbances = []
    if scenario.then == "cross":
        nat.cross(hosts, room.members, disturbances, without="relayed")
        deadline = time.monotonic()
    direct = after([a.wait("path", "b", left(), is_direct), b.wait("path", "a", left(), is_direct)])
    if scenario.then or direct is not None:
        time.sleep(DIRECT_SECONDS)
    if scenario.then not in ("", "cross"):
        nat.disturb(scenario.then, hosts, room.members, disturbances)
    is_alone = not a.all("joined", "b") and not b.all("joined", "a")
    return nat.result(room.members, hosts, began, is_alone, linked, direct, disturbances)


def plan(scenario, watch_seconds):
    return Play(
        scenario.name,
        None,
        functools.partial(play, scenario, watch_seconds),
        functools.partial(failures, scenario),
    )


def failures(scenario, result):
    """Sentences on faults of the result."""
    goal = nat.expectations()[scenario.name].goal
    wanted = "relayed" if goal == "carried" else goal
    found = nat.faults(result, [wanted]) + nat.faults_of_this_version(scenario, result)
    return [f"{scenario.name}: {text}" for text in found] + lateness(scenario, result)


def lateness(scenario, result):
    """Sentences on links that came late. In "path changes" a wall is in the way of the direct one at first."""
    found = []
    limit = LINKED_SECONDS * max(1.0, os.getloadavg()[0] / os.cpu_count())
    if (linked := result.linked_after) is not None and linked > limit:
        found.append(f"{scenario.name}: linked {linked:.1f} s after the start of b, expected {limit:.1f} s at most")
    if scenario.then != "cross" and result.direct_after is not None:
        took = result.direct_after - linked
        if took > TAKES_OVER_SECONDS:
            found.append(f"{scenario.name}: the direct link came {took:.1f} s after the one over the relay")
    return found


# -- rooms that only a relay connects


def all_arrives_once(room):
    """Members stop sending, and every message over a link that stands must have arrived once; returns the tally."""
    tally, _ = nat.settle(room.members)
    assert not tally.faults(), tally.faults()
    return tally


def behind_symmetric_nats(count, per_second=20, members=True, **options):
    """A room whose members do not reach each other directly. See behind_nats."""
    return behind_nats("symmetric", count, "relayed", per_second, members, **options)


@contextlib.contextmanager
def behind_nats(kind, count, path, per_second=20, members=True, flags=(), **options):
    """A room of that many members, each behind a NAT of its own, whose links have that path: (net, relay, room, hosts). `flags`
    are the relay's.
    """
    with Internet() as net:
        r = net.host("r")
        hosts = {}
        for number in range(count):
            home = net.router(f"home {number}", Nat(kind))
            hosts[f"m{number}"] = net.host(f"m{number}", behind=home)
        with Relay(r, *flags) as relay, Room(relay) as room:
            if members:
                for host in hosts.values():
                    room.open(host, per_second, **options)
                took = room.wait_for(MANY_SECONDS, lambda paths: set(paths.values()) == {path})
                assert took is not None, f"not all links are {path}: {room.paths()}"
            yield net, relay, room, hosts


def a_restarted_relay_elects_nobody_and_loses_no_message():
    with behind_symmetric_nats(ROOM, per_second=5) as (_, relay, room, _):
        leader = room.wait_for_leader(MANY_SECONDS)
        time.sleep(DIRECT_SECONDS)
        before = room.count("leader")
        for _ in range(2):
            relay.restart()
            time.sleep(AFTER_SECONDS / 2)
            took = room.wait_for(MANY_SECONDS, lambda paths: set(paths.values()) == {"relayed"})
            assert took is not None, f"not all are linked again: {room.paths()}"
        events = {name: member.all("leader") + member.all("relay") for name, member in room.members.items()}
        assert room.leaders() == {leader} and room.count("leader") == before, f"another leader: {events}"
        assert room.count("left") == 0, "a member left"
        tally = all_arrives_once(room)
        print(f"  {ROOM} members, {tally.received} messages, {room.count('reconnecting')} links lost, slowest {tally.slowest_ms} ms")


def overloaded_links_lose_no_member():
    """Each member sends the two others several times what the relay lets pass on a link."""
    with behind_symmetric_nats(3, per_second=3000, flags=("--rate", "32K")) as (_, relay, room, _):
        leader = room.wait_for_leader(MANY_SECONDS)
        before = room.count("leader")
        time.sleep(AFTER_SECONDS)
        reports = {name: member.report()["peers"] for name, member in room.members.items()}
        waiting = min(
            peer["sent"] - reports[other][one]["last"] for one, peers in reports.items() for other, peer in peers.items()
        )
        print(f"  at least {waiting} messages of each link wait")
        assert waiting > 3000, "no link is overloaded"
        assert set(room.paths().values()) == {"relayed"}, room.paths()
        assert room.count("reconnecting") == 0 and room.count("left") == 0, "a link was lost"
        assert room.leaders() == {leader} and room.count("leader") == before, "another leader"


def direct_links_outlive_the_relay():
    with behind_nats("port-restricted", 3, "direct") as (_, relay, room, _):
        time.sleep(DIRECT_SECONDS)
        before = room.count("leader")
        relay.kill()
        time.sleep(DEAD_SECONDS)
        assert set(room.paths().values()) == {"direct"}, room.paths()
        noticed = {name: member.all("reconnecting") + member.all("leader")[1:] for name, member in room.members.items()}
        assert room.count("reconnecting") == 0 and room.count("leader") == before, f"the death was noticed: {noticed}"
        tally = all_arrives_once(room)
        print(f"  the relay is dead for {DEAD_SECONDS:.0f} s; slowest message {tally.slowest_ms} ms")
        relay.start()


@contextlib.contextmanager
def beside_two_relays(count, per_second=50):
    """A room whose members reach each other over two relays alone: (net, relays, room, hosts)."""
    with Internet() as net:
        machines = [net.host("r"), net.host("r2")]
        hosts = [net.host(f"m{number}", behind=net.router(f"home {number}", Nat("symmetric"))) for number in range(count)]
        with Relay(machines[0]) as first, Relay(machines[1]) as second, Room(first, second) as room:
            for host in hosts:
                room.open(host, per_second)
            took = room.wait_for(MANY_SECONDS, is_relayed)
            assert took is not None, room.paths()
            yield net, (first, second), room, hosts


def is_relayed(paths):
    return set(paths.values()) == {"relayed"}


def a_second_relay_carries_on_at_once():
    with beside_two_relays(4, per_second=10) as (_, relays, room, _):
        leader = room.wait_for_leader(MANY_SECONDS)
        time.sleep(DIRECT_SECONDS)
        before = room.count("leader")
        # Each of them goes for longer than a room waits for a relay.
        for relay in relays:
            relay.kill()
            time.sleep(DEAD_SECONDS)
            assert is_relayed(room.paths()), room.paths()
            relay.start()
            time.sleep(DEAD_SECONDS)
        assert room.leaders() == {leader} and room.count("leader") == before, "another leader"
        assert room.count("left") == 0 and room.count("reconnecting") == 0, "a link was lost"
        tally = all_arrives_once(room)
        print(f"  each of two relays was dead for {DEAD_SECONDS:.0f} s; slowest message {tally.slowest_ms} ms")


class Death(NamedTuple):
    """How a relay goes."""

    name: str
    drops: tuple
    """Directions in which the relay's machine drops packets; without any, its process is killed."""


DEATHS = (
    Death("its process is killed", ()),
    Death("its machine vanishes", ("input", "output")),
    Death("it receives nothing", ("input",)),
    Death("it sends nothing", ("output",)),
)


def the_other_relay_takes_over_before_a_member_is_lost():
    for count, per_second in ((2, 50), (ROOM, 20)):
        with beside_two_relays(count, per_second) as (_, relays, room, _):
            leader = room.wait_for_leader(MANY_SECONDS)
            time.sleep(DIRECT_SECONDS)
            before = room.count("leader")
            for death in DEATHS:
                pauses = pauses_by(death, relays, room)
                worst = f"{pauses[len(pauses) // 2]} ms, {pauses[-1]} ms at most"
                print(f"  {count} members, {death.name}: a pause of {worst}; load {os.getloadavg()[0]:.1f}", flush=True)
                lost = {name: member.all("reconnecting") + member.all("left") for name, member in room.members.items()}
                assert not any(lost.values()), f"{death.name}: {lost}"
                assert is_relayed(room.paths()), f"{death.name}: {room.paths()}"
                limit = MOVED_MS * max(1.0, os.getloadavg()[0] / os.cpu_count())
                assert pauses[len(pauses) // 2] >= FELT_MS, f"{death.name}: most links have used another relay: {pauses}"
                assert pauses[-1] <= limit, f"{death.name}: a pause of {pauses[-1]} ms, expected {limit:.0f} ms at most"
            assert room.leaders() == {leader} and room.count("leader") == before, "another leader"
            all_arrives_once(room)


def a_member_that_alone_loses_its_relay_is_not_lost(deaths=DEATHS[1:], victims=2):
    """Each death for the leader alone first, then for others."""
    with beside_two_relays(3) as (_, relays, room, hosts):
        leader = room.wait_for_leader(MANY_SECONDS)
        time.sleep(DIRECT_SECONDS)
        before = room.count("leader")
        hosts.sort(key=lambda host: host.name != leader)
        for host, death in itertools.product(hosts[:victims], deaths):
            pauses = pauses_by(death, relays, room, host)
            who = "the leader" if host.name == leader else "another member"
            print(f"  for {who} alone, {death.name}: pauses of {pauses} ms; load {os.getloadavg()[0]:.1f}", flush=True)
            lost = {name: member.all("reconnecting") + member.all("left") for name, member in room.members.items()}
            assert not any(lost.values()), f"{death.name} for {who} alone: {lost}"
            limit = MOVED_MS * max(1.0, os.getloadavg()[0] / os.cpu_count())
            assert FELT_MS <= pauses[-1] <= limit, f"{death.name} for {who} alone: pauses of {pauses} ms, at most {limit:.0f}"
        assert room.leaders() == {leader} and room.count("leader") == before, "another leader"
        all_arrives_once(room)


def pauses_by(death, relays, room, alone=None):
    """The longest pauses between all ordered pairs when the relay in use goes, in milliseconds, sorted: those with the machine
    `alone`, if it alone loses it. The relay is back afterwards.
    """
    relay = busiest(relays, alone)
    for member in room.members.values():
        member.do("mark")
    if death.drops:
        relay.host.drop(*death.drops, other=alone)
    else:
        relay.kill()
    time.sleep(SILENT_SECONDS)
    reports = {name: member.report()["peers"] for name, member in room.members.items()}
    if death.drops:
        relay.host.drop()
    else:
        relay.start()
    # The members enter it again.
    time.sleep(DEAD_SECONDS)
    pairs = [(one, other, peer) for one, peers in reports.items() for other, peer in peers.items()]
    return sorted(peer["pause_ms"] for one, other, peer in pairs if alone is None or alone.name in (one, other))


def busiest(relays, to=None):
    """The relay that sends the most packets, or the most to a machine."""
    sent = lambda relay: relay.host.sent()
    count = lambda relay: sum(sent(relay).values()) if to is None else sent(relay).get(internet.outermost(to).address, 0)
    counts = lambda: [count(relay) for relay in relays]
    before = counts()
    time.sleep(0.5)
    return max(zip(counts(), before, relays), key=lambda one: one[0] - one[1])[2]


def members_enter_while_one_of_two_relays_is_dead():
    for dead in (0, 1):
        with beside_two_relays(3) as (net, relays, room, _):
            leader = room.wait_for_leader(MANY_SECONDS)
            relays[dead].host.drop("input", "output")
            time.sleep(DIRECT_SECONDS)
            for name in ("late", "later"):
                _, began = room.open(net.host(name, behind=net.router(f"home {name}", Nat("symmetric"))))
                took = room.wait_for(MANY_SECONDS, is_relayed)
                assert took is not None, room.paths()
                print(f"  relay {dead + 1} is dead: linked with all {time.monotonic() - began:.1f} s after the start")
            relays[dead].host.drop()
            time.sleep(DEAD_SECONDS)
            # The one that has returned carries them all, too.
            relays[1 - dead].host.drop("input", "output")
            time.sleep(DEAD_SECONDS)
            assert is_relayed(room.paths()), room.paths()
            assert room.count("left") == 0 and room.count("reconnecting") == 0, "a link was lost"
            assert room.leaders() == {leader}, "another leader"
            all_arrives_once(room)


def a_member_without_a_relay_enters_by_an_address():
    """c has an address of its own and knows no relay; a, behind a router, dials it. b knows the relay alone."""
    with Internet() as net:
        r, c = net.host("r"), net.host("c")
        homes = {name: net.host(name, behind=net.router(f"home {name}", Nat("symmetric"))) for name in "ab"}
        with Relay(r) as relay, Room(relay) as room:
            for home in homes.values():
                room.open(home)
            room.open(c, relays=None)
            room.members["a"].do("connect", f"{c.address}:{c.port}")
            goal = lambda paths: all(path == ("direct" if "c" in pair else "relayed") for pair, path in paths.items())
            assert room.wait_for(MANY_SECONDS, goal) is not None, room.paths()
            room.wait_for_leader(MANY_SECONDS)
            time.sleep(DIRECT_SECONDS)
            all_arrives_once(room)


def a_hidden_member_sends_packets_to_the_relay_alone():
    with Internet() as net:
        r = net.host("r")
        hosts = {name: net.host(name, behind=net.router(f"home {name}", Nat("full-cone"))) for name in "abc"}
        with Relay(r) as relay, Room(relay) as room:
            room.open(hosts["a"], paths=1)
            for name in "bc":
                room.open(hosts[name])
            is_right = lambda paths: all(
                path == ("relayed" if "a" in pair else "direct") for pair, path in paths.items()
            )
            took = room.wait_for(MANY_SECONDS, is_right)
            assert took is not None, room.paths()
            time.sleep(AFTER_SECONDS)
            assert is_right(room.paths()), room.paths()
            sent = hosts["a"].sent()
            assert set(sent) == {r.address}, f"packets to {sent}"
            hidden = hosts["a"].upstream.address
            for name in "bc":
                assert hidden not in hosts[name].sent(), "packets to the hidden member's address"


def a_typed_code_that_is_another_one_meets_nobody():
    with Internet() as net:
        r = net.host("r")
        hosts = [net.host(name, behind=net.router(f"home {name}", Nat("port-restricted"))) for name in "ab"]
        with Relay(r) as relay, Room(relay) as room:
            room.open(hosts[0])
            room.open(hosts[1], code=room_code())
            time.sleep(DIRECT_SECONDS)
            assert room.count("joined") == 0
            assert all(member.all("relay")[0]["code"] == 0 for member in room.members.values())


def a_relay_sends_to_none_but_those_who_asked():
    with behind_symmetric_nats(3) as (net, relay, room, hosts):
        homes = {host.upstream.address for host in hosts.values()}
        relay.restart()
        time.sleep(AFTER_SECONDS / 2)
        assert set(relay.host.sent()) == homes, relay.host.sent()


def an_idle_member_pays_a_packet_each_way_in_ten_seconds():
    """Two members linked directly, with a relay beside."""
    with behind_nats("full-cone", 2, "direct", per_second=1) as (_, relay, room, hosts):
        for member in room.members.values():
            member.do("quiet", True)
        time.sleep(DIRECT_SECONDS)
        sent = lambda: [host.sent()[relay.host.address] for host in hosts.values()] + [sum(relay.host.sent().values())]
        before = sent()
        time.sleep(IDLE_SECONDS)
        rates = [(end - start) * 10 / IDLE_SECONDS for start, end in zip(before, sent())]
        print(f"  packets in 10 s: the members {rates[0]:.1f} and {rates[1]:.1f}, the relay to both {rates[2]:.1f}")
        assert rates[0] <= 1.5 and rates[1] <= 1.5 and rates[2] <= 3.0, rates


def a_star_over_a_relay():
    with behind_symmetric_nats(4, members=False) as (_, relay, room, hosts):
        names = list(hosts)
        for name in names:
            room.open(hosts[name], 20, topology=1, host_mode=1 if name == names[0] else 2)
        pairs = lambda paths: {path for pair, path in paths.items() if names[0] in pair}
        took = room.wait_for(MANY_SECONDS, lambda paths: pairs(paths) == {"relayed"})
        assert took is not None, room.paths()
        time.sleep(DIRECT_SECONDS)
        all_arrives_once(room)


def both_families_reach_one_relay():
    with Internet(ipv6=True) as net:
        r = net.host("r")
        hosts = [net.host(name, behind=net.router(f"home {name}", Nat("symmetric"))) for name in "ab"]
        with Relay(r) as relay, Room(relay) as room:
            room.open(hosts[0], family=4)
            room.open(hosts[1], family=6)
            took = room.wait_for(MANY_SECONDS, lambda paths: "unlinked" not in paths.values())
            assert took is not None, room.paths()


# -- tests of `run.py`


def rooms_over_a_relay_end_as_plain_udp_allows():
    found = nat.play_all([plan(scenario, WATCH_SECONDS) for scenario in nat.scenarios()], 3 * os.cpu_count())
    assert not found, "\n".join(found)


def ends_as_wanted(name, watch_seconds=8.0):
    """One scenario, for a test of its own."""
    nat.play_alone(plan(nat.named(name), watch_seconds))


TESTS = [
    a_restarted_relay_elects_nobody_and_loses_no_message,
    overloaded_links_lose_no_member,
    direct_links_outlive_the_relay,
    a_second_relay_carries_on_at_once,
    the_other_relay_takes_over_before_a_member_is_lost,
    a_member_that_alone_loses_its_relay_is_not_lost,
    members_enter_while_one_of_two_relays_is_dead,
    a_member_without_a_relay_enters_by_an_address,
    a_hidden_member_sends_packets_to_the_relay_alone,
    a_typed_code_that_is_another_one_meets_nobody,
    a_relay_sends_to_none_but_those_who_asked,
    an_idle_member_pays_a_packet_each_way_in_ten_seconds,
    a_star_over_a_relay,
    both_families_reach_one_relay,
    rooms_over_a_relay_end_as_plain_udp_allows,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=3 * os.cpu_count(), help="scenarios at a time")
    parser.add_argument("--seconds", type=float, default=WATCH_SECONDS, help="how long a and b have to connect")
    arguments = parser.parse_args()
    named = lambda name: not arguments.names or any(part in name for part in arguments.names)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    try:
        internet.check()
    except CannotRun as reason:
        print(f"relays: cannot run here: it {reason}", file=sys.stderr)
        return CANNOT_RUN
    os.environ.setdefault("MMN_LIBRARY", str(ROOT / "target/release/libmeta_mystia_network.so"))
    found = []
    for test in TESTS[:-1]:
        if named(test.__name__):
            print(f"--- {test.__name__}", flush=True)
            try:
                test()
            except AssertionError as error:
                found.append(f"{test.__name__}: {error}")
    chosen = [scenario for scenario in nat.scenarios() if named(scenario.name)]
    if chosen:
        found += nat.play_all([plan(scenario, arguments.seconds) for scenario in chosen], arguments.jobs)
    print("\n".join(found) or "all as expected")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
