#!/usr/bin/env python3
"""Rooms across NATs: `nat.py [NAME...]` plays the scenarios whose name contains one of the arguments, by default all, and prints
what happened. `docs/lab.md` describes them.

In each, members `a` and `b` reach member `r`, which has an address of its own. Then a and b connect to each other, or do not.
Exits with 0 when all ended as TABLE lists, with 1 when one did not, and with 3 on a machine that cannot run them.
"""

import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from network import CANNOT_RUN, ROOT, CannotRun

import internet
from internet import KINDS, Host, Internet, Nat

MEMBER = Path(__file__).with_name("nat_member.py")
WATCH_SECONDS = 25.0
"""From the dial of the second member. A link through the leader stands after half a handshake timeout, 2.5 s; the library then
dials directly again after 2, 4 and 8 s more."""
DIRECT_SECONDS = 3.0
"""How much longer messages pass over a direct link before the scenario ends."""
SETTLE_SECONDS = 20.0
"""For the first member and r, and for the last messages."""
AFTER_SECONDS = 20.0
"""From a disturbance to the end."""
QUIET_SECONDS = 12.0
MAPPING_SECONDS = 3
CHANGE_SECONDS = 30.0
"""For one change of the path, in a scenario that waits for several."""
CROSSING_MESSAGES = 10_000
STILL_NOT = "still not"
MANY_SECONDS = 60.0
"""Until every pair of sixteen members has its best path."""
LYING_SECONDS = 30.0
MAX_PACKETS_TO_VICTIM = 20
"""From one member: a few rounds of dials to an address that never answers."""
LEADERS = ["r", "b"]
OUTCOMES = ["alone", "unlinked", "carried", "relayed", "direct"]
"""The later one is better."""

# How a and b are linked at the end: "direct", "carried" by another member, "unlinked", or "alone" if one has not reached r
# either. The goal is direct where plain UDP passes, else carried. The first two columns are the outcomes of version 0.1, with
# which --old compares. If a leads, it ends as if b did.
TABLE = """
scenario                                 | r leads  | b leads  | goal
full-cone + full-cone                    | direct   | direct   | direct
full-cone + restricted                   | direct   | direct   | direct
full-cone + port-restricted              | direct   | direct   | direct
full-cone + linux                        | direct   | direct   | direct
full-cone + remap                        | direct   | direct   | direct
full-cone + symmetric                    | direct   | direct   | direct
restricted + restricted                  | direct   | direct   | direct
restricted + port-restricted             | direct   | direct   | direct
restricted + linux                       | direct   | direct   | direct
restricted + remap                       | direct   | direct   | direct
restricted + symmetric                   | direct   | direct   | direct
port-restricted + port-restricted        | direct   | direct   | direct
port-restricted + linux                  | direct   | direct   | direct
port-restricted + remap                  | direct   | direct   | direct
port-restricted + symmetric              | carried  | unlinked | carried
linux + linux                            | direct   | direct   | direct
linux + remap                            | direct   | direct   | direct
linux + symmetric                        | carried  | unlinked | carried
remap + remap                            | direct   | direct   | direct
remap + symmetric                        | carried  | unlinked | carried
symmetric + symmetric                    | carried  | unlinked | carried
one home, no hairpin                     | direct   | direct   | direct
one home, hairpin                        | direct   | direct   | direct
one home, ports changed, hairpin         | direct   | direct   | direct
one home, symmetric                      | direct   | direct   | direct
home behind a carrier + home             | direct   | direct   | direct
home behind a symmetric carrier + home   | carried  | unlinked | carried
a carrier each                           | direct   | direct   | direct
a symmetric carrier each                 | carried  | unlinked | carried
one carrier, no hairpin                  | carried  | unlinked | carried
one carrier, hairpin                     | direct   | direct   | direct
ipv6 firewalls, ipv4 dialled             | direct   | direct   | direct
ipv6 firewalls, ipv6 dialled             | direct   | direct   | direct
udp blocked                              | alone    | alone    | alone
mtu 1280, ports kept                     | direct   | direct   | direct
mtu 1280, symmetric                      | carried  | unlinked | carried
short mappings, ports kept               | direct   | direct   | direct
short mappings, symmetric                | carried  | unlinked | carried
mappings expire, ports kept              | direct   | direct   | direct
mappings expire, symmetric               | carried  | unlinked | carried
rebinding of a, full-cone                | direct   | direct   | direct
rebinding of a, restricted               | direct   | direct   | direct
rebinding of a, port-restricted          | carried  | unlinked | direct
rebinding of a, symmetric                | carried  | unlinked | carried
rebinding of b, full-cone                | direct   | direct   | direct
rebinding of b, restricted               | direct   | direct   | direct
rebinding of b, port-restricted          | carried  | unlinked | direct
rebinding of b, symmetric                | carried  | unlinked | carried
rebinding of both, port-restricted       | carried  | unlinked | direct
rebinding of the carrier                 | carried  | unlinked | direct
ipv6 firewalls that restart              | direct   | direct   | direct
path changes                             | carried  | unlinked | direct
"""


class Scenario(NamedTuple):
    """Machines and NATs, and what happens to them once a and b had their time to connect."""

    name: str
    a: Nat
    b: Nat
    carrier: Optional[Nat] = None
    """NAT of a carrier: in front of the home of a, of "both" homes, or one in front of "each"."""
    behind: str = "a"
    one_home: bool = False
    """Both a and b are in the home of a."""
    family: int = 4
    """Family of r's address that a and b dial."""
    ipv6: bool = False
    heartbeat_ms: int = 0
    """0 is the library's interval."""
    per_second: int = 50
    """Messages from each member to each other one."""
    messages: int = 0
    """How many messages a and b must receive from each other."""
    then: str = ""
    """"quiet", "rebind" and the routers' names, or "cross"."""


def scenarios():
    pairs = [(one, other) for number, one in enumerate(KINDS) for other in KINDS[number:]]
    found = [Scenario(f"{one} + {other}", Nat(one), Nat(other)) for one, other in pairs]
    restricted = Nat("port-restricted")
    symmetric = Nat("symmetric")
    cone = Nat("full-cone")
    found += [
        Scenario("one home, no hairpin", restricted, restricted, one_home=True),
        Scenario("one home, hairpin", Nat("port-restricted", hairpin=True), restricted, one_home=True),
        Scenario("one home, ports changed, hairpin", Nat("remap", hairpin=True), restricted, one_home=True),
        Scenario("one home, symmetric", symmetric, symmetric, one_home=True),
        Scenario("home behind a carrier + home", restricted, restricted, carrier=restricted),
        Scenario("home behind a symmetric carrier + home", restricted, restricted, carrier=symmetric),
        Scenario("a carrier each", restricted, restricted, carrier=restricted, behind="each"),
        Scenario("a symmetric carrier each", restricted, restricted, carrier=symmetric, behind="each"),
        Scenario("one carrier, no hairpin", restricted, restricted, carrier=cone, behind="both"),
        Scenario("one carrier, hairpin", restricted, restricted, carrier=Nat("full-cone", hairpin=True), behind="both"),
        Scenario("ipv6 firewalls, ipv4 dialled", symmetric, symmetric, ipv6=True),
        Scenario("ipv6 firewalls, ipv6 dialled", symmetric, symmetric, ipv6=True, family=6),
        Scenario("udp blocked", restricted, Nat("port-restricted", blocks_udp=True)),
        Scenario("mtu 1280, ports kept", Nat("port-restricted", mtu=1280), Nat("port-restricted", mtu=1280)),
        Scenario("mtu 1280, symmetric", Nat("symmetric", mtu=1280), Nat("symmetric", mtu=1280)),
        Scenario("short mappings, ports kept", *[Nat("port-restricted", mapping_seconds=MAPPING_SECONDS)] * 2, then="quiet"),
        Scenario("short mappings, symmetric", *[Nat("symmetric", mapping_seconds=MAPPING_SECONDS)] * 2, then="quiet"),
    ]
    # Between two heartbeats all mappings vanish.
    silence = {"heartbeat_ms": 1500, "then": "quiet"}
    for name, kind in (("ports kept", "port-restricted"), ("symmetric", "symmetric")):
        found.append(Scenario(f"mappings expire, {name}", *[Nat(kind, mapping_seconds=1)] * 2, **silence))
    for end in "ab":
        for kind in ("full-cone", "restricted", "port-restricted", "symmetric"):
            found.append(Scenario(f"rebinding of {end}, {kind}", Nat(kind), Nat(kind), then=f"rebind {end}"))
    found += [
        Scenario("rebinding of both, port-restricted", restricted, restricted, then="rebind a b"),
        Scenario("rebinding of the carrier", restricted, restricted, carrier=restricted, then="rebind carrier"),
        Scenario("ipv6 firewalls that restart", symmetric, symmetric, ipv6=True, then="rebind a b"),
        Scenario("path changes", restricted, restricted, per_second=500, messages=CROSSING_MESSAGES, then="cross"),
    ]
    return found


class Expected(NamedTuple):
    """Outcomes of a scenario when r leads and when b leads, and the goal."""

    r: str
    b: str
    goal: str


def expectations():
    rows = [line.split("|") for line in TABLE.strip().splitlines()[1:]]
    return {name.strip(): Expected(*(cell.strip() for cell in cells)) for name, *cells in rows}


class Tally(NamedTuple):
    """Messages over links that stand at the end, of all members."""

    sent: int
    received: int
    lost: int
    duplicated: int
    slowest_ms: int

    def faults(self):
        """A sentence if not every message arrived once."""
        is_right = (self.lost, self.duplicated) == (0, 0)
        return [] if is_right else [f"{self.lost} messages lost, {self.duplicated} received twice"]


class Result(NamedTuple):
    outcome: str
    linked_after: Optional[float]
    direct_after: Optional[float]
    leaders: list
    leader_changes: int
    losses: int
    """How often a and b lost each other."""
    tally: Tally
    third_addresses: dict
    foreign_addresses: dict
    between: int
    """Messages that a received from b, or b from a, whichever are fewer."""
    changes: list
    """The paths between a and b as a saw them, and disturbances: (seconds, text)."""
    disagreements: list
    """Where the path has changed without an event."""


class Old(NamedTuple):
    """The version before, and the members that use it."""

    library: Path
    members: str

    def environment(self):
        """Its Python package lies beside it."""
        return {"MMN_LIBRARY": str(self.library), "MMN_BINDINGS": str(self.library.parent / "bindings/python")}


class Process:
    """A member in a machine of the internet."""

    def __init__(self, host, entry, per_second=50, options=None, old=None):
        self.host = host
        self.name = host.name
        self.lines = []
        self.has_ended = False
        self.changed = threading.Condition()
        environment = old.environment() if old and host.name in old.members else {}
        command = [sys.executable, MEMBER, host.name, host.port, entry, per_second, json.dumps(options or {})]
        self.process = host.start(command, env={**os.environ, **environment})
        threading.Thread(target=self._read, daemon=True).start()
        if self.wait("ready") is None:
            self.process.kill()
            raise AssertionError(f"{self.name} did not start; its message is above")

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.has_ended = True
            self.changed.notify_all()

    def do(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def all(self, event, peer=None):
        with self.changed:
            return [line for line in self.lines if line["event"] == event and peer in (None, line["peer"])]

    def wait(self, event, peer=None, seconds=SETTLE_SECONDS, more=lambda line: True, number=1):
        """The nth line of that kind, or None if it does not come in time."""
        found = lambda: [line for line in self.all(event, peer) if more(line)]
        with self.changed:
            self.changed.wait_for(lambda: len(found()) >= number or self.has_ended, max(0.0, seconds))
            return dict(enumerate(found(), 1)).get(number)

    def path(self, peer):
        """How the peer is linked now."""
        return self.changes(peer)[-1][1]

    def changes(self, peer):
        """How the peer was linked: (time, path)."""
        with self.changed:
            lines = [line for line in self.lines if line["peer"] == peer]
        found, path, is_linked = [(0.0, "unlinked")], None, False
        for line in lines:
            if line["event"] == "path":
                path = line["path"]
            elif line["event"] in ("joined", "returned", "left", "reconnecting"):
                is_linked = line["event"] in ("joined", "returned")
            now = path if is_linked and path else "unlinked"
            if now != found[-1][1]:
                found.append((line["at"], now))
        return found

    def report(self):
        number = len(self.all("report")) + 1
        self.do("report")
        line = self.wait("report", number=number)
        assert line is not None, f"{self.name}: no report: {self.lines[-10:]}"
        return line

    def quit(self):
        self.process.stdin.close()

    def end(self):
        try:
            self.process.wait(SETTLE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        assert self.process.wait() == 0, f"{self.name} ended with code {self.process.returncode}: {self.lines[-10:]}"


def play(scenario, leader="r", watch_seconds=WATCH_SECONDS, old=None):
    """Plays one scenario; `leader` is "r", "a" or "b"."""
    with Internet(ipv6=scenario.ipv6) as net:
        hosts = build(scenario, net)
        processes = {}
        try:
            return observe(scenario, leader, watch_seconds, hosts, processes, old)
        finally:
            end(processes)


def end(processes):
    # All at once, and before the first one is checked.
    for process in processes.values():
        process.quit()
    for process in processes.values():
        process.end()


def build(scenario, net):
    hosts = {"r": net.host("r")}
    carrier = net.router("carrier", scenario.carrier, is_carrier=True) if scenario.carrier else None
    home = net.router("home a", scenario.a, behind=carrier)
    hosts["a"] = net.host("a", behind=home)
    if not scenario.one_home:
        if scenario.behind == "each":
            carrier = net.router("carrier b", scenario.carrier, is_carrier=True)
        home = net.router("home b", scenario.b, behind=carrier if scenario.behind != "a" else None)
    hosts["b"] = net.host("b", behind=home)
    return hosts


def observe(scenario, leader, watch_seconds, hosts, members, old):
    r = hosts["r"]
    dialled = f"[{r.address6}]:{r.port}" if scenario.family == 6 else f"{r.address}:{r.port}"
    interval, options = scenario.heartbeat_ms, {}
    if interval:
        timeouts = {"election_timeout_min_ms": 3 * interval, "election_timeout_max_ms": 6 * interval}
        options = {"heartbeat_interval_ms": interval, **timeouts}

    def member(name):
        members[name] = Process(hosts[name], "create" if name == leader else "join", scenario.per_second, options, old)

    if scenario.then == "cross":
        wall(hosts, True)
    # The creator leads from the start, and stays: members that join look for its room.
    first, second = ("b", "a") if leader == "b" else ("a", "b")
    member("r")
    member(first)
    members[first].do("connect", dialled)
    members[first].wait("result")
    members[first].wait("joined", "r", 1.0)
    member(second)
    members[second].do("connect", dialled)
    a, b = members["a"], members["b"]
    began = members[second].wait("dials")["at"]
    deadline = time.monotonic() + watch_seconds
    is_direct = lambda line: line["path"] == "direct"
    left = lambda: deadline - time.monotonic()
    linked = [a.wait("joined", "b", left()), b.wait("joined", "a", left())]
    disturbances = []
    if scenario.then == "cross":
        cross(hosts, members, disturbances)
        deadline = time.monotonic()
    direct = [a.wait("path", "b", left(), is_direct), b.wait("path", "a", left(), is_direct)]
    after = lambda lines: max(line["at"] for line in lines) - began if all(lines) else None
    if scenario.then or all(direct):
        time.sleep(DIRECT_SECONDS)
    if scenario.then not in ("", "cross"):
        disturb(scenario.then, hosts, members, disturbances)
    is_alone = not all(member.all("joined", "r") for member in (a, b))
    return result(members, hosts, began, is_alone, after(linked), after(direct), disturbances)


def disturb(then, hosts, members, disturbances):
    """Appends to `disturbances` what it does: (time, text)."""
    what, *names = then.split()
    disturbances.append((time.monotonic(), then))
    if what == "quiet":
        for member in members.values():
            member.do("quiet", True)
        time.sleep(QUIET_SECONDS)
        for member in members.values():
            member.do("quiet", False)
        time.sleep(DIRECT_SECONDS)
    else:
        routers = {"a": hosts["a"].upstream, "b": hosts["b"].upstream, "carrier": hosts["a"].upstream.upstream}
        for name in names:
            routers[name].rebind()
        time.sleep(AFTER_SECONDS)


def wall(hosts, stands):
    """Whether the homes of a and b drop what goes to each other."""
    for one, other in (("a", "b"), ("b", "a")):
        hosts[one].upstream.wall(*[hosts[other].upstream.address] if stands else [])


def cross(hosts, members, disturbances, without="carried"):
    """The path changes from `without` to direct, and again after each end got other mappings, until enough messages came."""
    a, b = members["a"], members["b"]

    def change(text, path):
        disturbances.append((time.monotonic(), text))
        deadline = time.monotonic() + CHANGE_SECONDS
        while {a.path("b"), b.path("a")} != {path} and time.monotonic() < deadline:
            time.sleep(0.05)
        if {a.path("b"), b.path("a")} != {path}:
            disturbances.append((time.monotonic(), f"{STILL_NOT} {path}"))
        time.sleep(DIRECT_SECONDS)

    time.sleep(DIRECT_SECONDS)
    wall(hosts, False)
    change("wall falls", "direct")
    for name in "ba":
        wall(hosts, True)
        hosts[name].upstream.rebind()
        change(f"wall, rebind {name}", without)
        wall(hosts, False)
        change("wall falls", "direct")
    deadline = time.monotonic() + CHANGE_SECONDS
    while received_between(members) < CROSSING_MESSAGES and time.monotonic() < deadline:
        time.sleep(1)


def received_between(members):
    """Messages that a received from b, or b from a, whichever are fewer."""
    pairs = (("a", "b"), ("b", "a"))
    return min(members[one].report()["peers"].get(other, {"received": 0})["received"] for one, other in pairs)


def result(members, hosts, began, is_alone, linked_after, direct_after, disturbances):
    a, b = members["a"], members["b"]
    outcome = "alone" if is_alone else min(a.path("b"), b.path("a"), key=OUTCOMES.index)
    tally, reports = settle(members)
    paths = {(name, peer): path for name in members for peer, path in reports[name]["paths"].items()}
    return Result(
        outcome,
        linked_after,
        direct_after,
        sorted({reports[name]["leader"] or "none" for name in members}),
        # Each member reports its first leader.
        sum(max(0, len(member.all("leader")) - 1) for member in members.values()),
        max(len(a.all("reconnecting", "b")), len(b.all("reconnecting", "a"))),
        tally,
        by_sender(hosts, Host.third_addresses),
        by_sender(hosts, Host.foreign_addresses),
        received_between(members),
        sorted((at - began, text) for at, text in a.changes("b")[1:] + disturbances),
        [f"{name} to {peer}" for (name, peer), path in paths.items() if members[name].path(peer) not in (path, "unlinked")],
    )


def settle(members):
    """Members stop sending. Over a link that stands now, all accepted messages must arrive. Returns the tally, and the members'
    reports.
    """
    for member in members.values():
        member.do("quiet", True)
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        reports = {name: member.report() for name, member in members.items()}
        streams = [
            (sent["sent"], reports[receiver]["peers"].get(sender))
            for sender in members
            for receiver, sent in reports[sender]["peers"].items()
            if members[sender].path(receiver) != "unlinked" != members[receiver].path(sender)
        ]
        missing = sum(sent - (taken["last"] if taken else 0) for sent, taken in streams)
        if missing == 0 or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    took = [taken for _, taken in streams if taken]
    tally = Tally(
        sum(sent for sent, _ in streams),
        sum(taken["received"] for taken in took),
        missing + sum(taken["lost"] for taken in took),
        sum(taken["duplicated"] for taken in took),
        max((taken["slowest_ms"] for taken in took), default=0),
    )
    return tally, reports


def by_sender(hosts, addresses):
    return {f"{name} to {address}": count for name, host in hosts.items() for address, count in addresses(host).items()}


def failures(scenario, leader, result, old=None):
    """Sentences on faults of the result."""
    row = expectations().get(scenario.name)
    if row is None:
        return [f"{scenario.name}: not in the table"]
    if old:
        before = row.r if leader == "r" else row.b
        # A member of the version before may keep a and b from the goal, but makes nothing worse.
        found = faults(result, OUTCOMES[OUTCOMES.index(before) :])
    else:
        found = faults(result, [row.goal]) + faults_of_this_version(scenario, result)
    return [f"{title(scenario, old)}, {leader} leads: {text}" for text in found]


def faults(result, outcomes):
    found = []
    if result.outcome not in outcomes:
        found.append(f"{result.outcome}, expected {' or '.join(outcomes)}")
    found += result.tally.faults()
    if result.third_addresses:
        found.append(f"packets to other addresses: {result.third_addresses}")
    if result.disagreements:
        found.append(f"paths without an event: {', '.join(result.disagreements)}")
    return found


def faults_of_this_version(scenario, result):
    found = []
    if result.foreign_addresses:
        found.append(f"packets to private addresses of other networks: {result.foreign_addresses}")
    if result.between < scenario.messages:
        found.append(f"{result.between} messages between a and b, expected {scenario.messages}")
    return found + [text for _, text in result.changes if text.startswith(STILL_NOT)]


def title(scenario, old):
    return scenario.name + (f", old {old.members}" if old else "")


HEAD = "scenario".ljust(40) + " leader  linked  direct  at the end messages  lost twice  slowest  paths"


def line(name, leader, result):
    seconds = lambda value: "-" if value is None else f"{value:.1f} s"
    return (
        f"{name:40} {leader:6} {seconds(result.linked_after):>7} {seconds(result.direct_after):>7}  {result.outcome:10} "
        f"{result.tally.received:8} {result.tally.lost:5} {result.tally.duplicated:5} {result.tally.slowest_ms:5} ms  "
        + ", ".join(f"{text} {at:.1f}" for at, text in result.changes)
        + (f"  links lost: {result.losses}" if result.losses else "")
        + (f"  leader changes: {result.leader_changes}" if result.leader_changes else "")
        + (f"  leaders: {', '.join(result.leaders)}" if result.leaders != [leader] else "")
    )


class Play(NamedTuple):
    """One scenario, to be played beside others."""

    title: str
    leader: Optional[str]
    """The member that must lead; None is any."""
    run: Callable[[], Result]
    judge: Callable[[Result], list]
    """Sentences on faults of the result."""

    def line(self, result):
        return line(self.title, self.leader or result.leaders[0], result)


def play_all(plays, jobs):
    """Plays side by side, prints a line for each, and returns the failures."""
    found, results = [], []
    print(HEAD, flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for one, run in [(one, pool.submit(one.run)) for one in plays]:
            try:
                result = run.result()
            except AssertionError as error:
                found.append(f"{one.title}{f', {one.leader} leads' if one.leader else ''}: {error}")
                continue
            print(one.line(result), flush=True)
            results.append(result)
            found += one.judge(result)
    most = lambda values: max((value for value in values if value is not None), default=0)
    linked, direct = most(one.linked_after for one in results), most(one.direct_after for one in results)
    print(f"at most: linked {linked:.1f} s, direct {direct:.1f} s, a message {most(one.tally.slowest_ms for one in results)} ms")
    return found


def play_alone(one):
    """One scenario, for a test of its own."""
    outcome = one.run()
    print(f"{HEAD}\n{one.line(outcome)}")
    found = one.judge(outcome)
    assert not found, "\n".join(found)


def plan(scenario, leader, watch_seconds, old=None):
    return Play(
        title(scenario, old),
        leader,
        functools.partial(play, scenario, leader, watch_seconds, old),
        functools.partial(failures, scenario, leader, old=old),
    )


# -- the lab itself, with plain UDP


def punch(scenario):
    """How a and b could be linked, by UDP packets alone: both send to every known address of the other, and answer where they
    receive.
    """
    with Internet(ipv6=scenario.ipv6) as net:
        hosts = build(scenario, net)
        sockets = {name: host.socket(scenario.ipv6) for name, host in hosts.items()}
        try:
            return punch_through(scenario, hosts, sockets)
        finally:
            for made in sockets.values():
                made.close()


def punch_through(scenario, hosts, sockets):
    address = lambda host: (host.address6 if scenario.ipv6 else host.address, host.port)
    for made in sockets.values():
        made.setblocking(False)
    known = {"a": {address(hosts["b"])}, "b": {address(hosts["a"])}}
    for name, other in (("a", "b"), ("b", "a")):
        seen, tries = set(), 0
        while not seen and tries < 10:
            sockets[name].sendto(b"", address(hosts["r"]))
            time.sleep(0.05)
            seen, tries = receive(sockets["r"]), tries + 1
        if not seen:
            return "alone"
        known[other] |= seen
    received = set()
    for _ in range(10):
        for name in "ab":
            for destination in known[name]:
                try:
                    sockets[name].sendto(b"", destination)
                except OSError:
                    # An ICMP error of an earlier packet, or no route.
                    pass
        time.sleep(0.05)
        for name in "ab":
            seen = receive(sockets[name])
            received |= {name} if seen else set()
            known[name] |= seen
    return "direct" if received == {"a", "b"} else "carried"


def receive(made):
    """Sources of the packets that have arrived."""
    seen = set()
    while True:
        try:
            seen.add(made.recvfrom(64)[1][:2])
        except BlockingIOError:
            return seen
        except OSError:
            continue


def plain_udp_passes_where_the_goal_is_direct():
    expected = expectations()
    for scenario in scenarios():
        outcome = punch(scenario)
        assert outcome == expected[scenario.name].goal, f"{scenario.name}: plain UDP: {outcome}"


def a_packet_to_a_third_address_is_counted():
    with Internet() as net:
        home = net.router("home a", Nat("linux"))
        r, a = net.host("r"), net.host("a", behind=home)
        with a.socket() as made:
            for destination in (r.address, home.address, "203.0.113.99", "203.0.113.99", "224.0.0.251"):
                made.sendto(b"", (destination, 53))
        assert a.third_addresses() == {"203.0.113.99": 2, "224.0.0.251": 1}, a.sent()
        assert r.third_addresses() == {}, r.sent()


# -- many members


def a_forged_source_brings_a_victim_few_packets():
    """Sixteen members: r, a liar, and fourteen behind NATs of all kinds. Every pair is linked as plain UDP allows. Then a part of
    the liar's packets to r has the source address of a machine that is no member. r may answer it, as QUIC does; to the others it
    is an address that somebody has observed.
    """
    with Internet() as net:
        r, liar, victim = (net.host(name) for name in ("r", "liar", "victim"))
        kinds = {f"m{number}": KINDS[number % len(KINDS)] for number in range(14)}
        hosts = {"r": r, "liar": liar}
        hosts |= {name: net.host(name, behind=net.router(f"home {name}", Nat(kind))) for name, kind in kinds.items()}
        members = {}
        try:
            # It answers nothing: without a socket, its system would report the closed port.
            with victim.socket():
                for name, host in hosts.items():
                    members[name] = Process(host, "create" if name == "r" else "join", per_second=5)
                    if name != "r":
                        members[name].do("connect", f"{r.address}:{r.port}")
                all_pairs_are_linked_as_plain_udp_allows(members, kinds)
                liar.forge(victim.address, victim.port, r.address)
                time.sleep(LYING_SECONDS)
            packets = {name: host.sent().get(victim.address, 0) for name, host in hosts.items()}
            sent = ", ".join(f"{name} {count}" for name, count in packets.items() if count)
            print(f"  {liar.forged()} packets with the victim's address in {LYING_SECONDS:.0f} s; to the victim: {sent}")
            assert not any(host.third_addresses() for host in hosts.values()), "a packet to no machine"
            assert liar.forged() > 0, "nothing was forged"
            assert max(packets[name] for name in kinds) <= MAX_PACKETS_TO_VICTIM, packets
        finally:
            end(members)


def all_pairs_are_linked_as_plain_udp_allows(members, kinds):
    pairs = list(itertools.combinations(members, 2))
    expected = expectations()

    def wanted(pair):
        both = sorted((kinds[name] for name in pair if name in kinds), key=KINDS.index)
        return expected[" + ".join(both)].goal if len(both) == 2 else "direct"

    def reached(one, other):
        return min(members[one].path(other), members[other].path(one), key=OUTCOMES.index)

    began = time.monotonic()
    while True:
        wrong = {pair: reached(*pair) for pair in pairs if reached(*pair) != wanted(pair)}
        if not wrong or time.monotonic() > began + MANY_SECONDS:
            break
        time.sleep(0.5)
    carried = sum(wanted(pair) == "carried" for pair in pairs)
    print(f"  {len(members)} members: {len(pairs)} pairs, {carried} of them carried, after {time.monotonic() - began:.0f} s")
    assert not wrong, wrong


# -- tests of `run.py`


def rooms_across_nats_end_as_the_table_lists():
    plays = [plan(scenario, leader, WATCH_SECONDS) for scenario in scenarios() for leader in LEADERS]
    found = play_all(plays, 3 * os.cpu_count())
    assert not found, "\n".join(found)


def ends_as_listed(name, leader="r", watch_seconds=8.0):
    """One scenario, for a test of its own."""
    play_alone(plan(named(name), leader, watch_seconds))


def named(name):
    (scenario,) = [one for one in scenarios() if one.name == name]
    return scenario


TESTS = [
    plain_udp_passes_where_the_goal_is_direct,
    a_packet_to_a_third_address_is_counted,
    a_forged_source_brings_a_victim_few_packets,
    rooms_across_nats_end_as_the_table_lists,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--leader", choices=["r", "a", "b"], help=f"only with this leader; by default {' and '.join(LEADERS)}")
    parser.add_argument("--old", type=Path, help="a library of another version, beside its bindings/python, for some members")
    parser.add_argument("--old-members", action="append", help='which of them, as in "ra"; by default each one in turn')
    parser.add_argument("--jobs", type=int, default=3 * os.cpu_count(), help="scenarios at a time")
    parser.add_argument("--seconds", type=float, default=WATCH_SECONDS, help="how long a and b have to connect")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true", help="plays nothing: can this machine have NATs in namespaces?")
    arguments = parser.parse_args()
    wanted = [one for one in scenarios() if not arguments.names or any(name in one.name for name in arguments.names)]
    if arguments.list:
        print("\n".join(one.name for one in wanted))
        return 0
    if not wanted:
        print(f"nat: no scenario is named {' or '.join(arguments.names)}", file=sys.stderr)
        return 2
    # Members and namespaces end with this process.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    try:
        internet.check()
    except CannotRun as reason:
        print(f"nat: cannot run here: it {reason}", file=sys.stderr)
        return CANNOT_RUN
    if arguments.check:
        return 0
    library = os.environ.setdefault("MMN_LIBRARY", str(ROOT / "target/release/libmeta_mystia_network.so"))
    if not os.path.exists(library):
        print(f"nat: needs {library}: run `make build`, or name another library in MMN_LIBRARY", file=sys.stderr)
        return CANNOT_RUN
    leaders = [arguments.leader] if arguments.leader else LEADERS
    mixes = [Old(arguments.old, members) for members in arguments.old_members or "rab"] if arguments.old else [None]
    plays = [plan(scenario, leader, arguments.seconds, old) for scenario in wanted for leader in leaders for old in mixes]
    found = play_all(plays, arguments.jobs)
    print("\n".join(found) or "all as expected")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
