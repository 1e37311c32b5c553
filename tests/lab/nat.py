#!/usr/bin/env python3
"""Rooms across NATs: `nat.py [NAME...]` plays the scenarios whose name contains one of the arguments, by default all, and prints
what happened. `docs/lab.md` describes them.

In each, members `a` and `b` reach member `r`, which has an address of its own. Then a and b connect to each other, or do not.
Exits with 0 when all ended as TABLE lists, with 1 when one did not, and with 3 on a machine that cannot run them.
"""

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple, Optional

from network import CANNOT_RUN, ROOT, CannotRun

import internet
from internet import KINDS, Internet, Nat

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

# How a and b are linked at the end: "direct", "carried" by another member, "unlinked", or "alone" if one has not reached r
# either; "or" separates outcomes that chance decides. The goal is direct where plain UDP passes, else carried.
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
home behind a carrier + home             | direct   | direct   | direct
home behind a symmetric carrier + home   | carried  | unlinked | carried
one carrier, no hairpin                  | carried  | unlinked | carried
one carrier, hairpin                     | direct   | direct   | direct
ipv6 firewalls, ipv4 dialled             | direct   | direct   | direct
ipv6 firewalls, ipv6 dialled             | direct   | direct   | direct
udp blocked                              | alone    | alone    | alone
mtu 1280, ports kept                     | direct   | direct   | direct
mtu 1280, symmetric                      | carried  | unlinked | carried
short mappings, ports kept               | direct   | direct   | direct
short mappings, symmetric                | carried  | unlinked | carried
rebinding of a, full-cone                | direct   | direct   | direct
rebinding of a, port-restricted          | carried  | unlinked | direct
rebinding of a, symmetric                | carried  | unlinked | carried
rebinding of b, full-cone                | direct   | direct   | direct
rebinding of b, port-restricted          | carried  | unlinked | direct
rebinding of b, symmetric                | carried  | unlinked | carried
"""


class Scenario(NamedTuple):
    """Machines and NATs, and what happens to them once a and b had their time to connect."""

    name: str
    a: Nat
    b: Nat
    carrier: Optional[Nat] = None
    """NAT of a carrier: in front of the home of a, or of both homes (`behind`)."""
    behind: str = "a"
    one_home: bool = False
    """Both a and b are in the home of a."""
    family: int = 4
    """Family of r's address that a and b dial."""
    ipv6: bool = False
    then: str = ""
    """"rebind a", "rebind b", or "quiet"."""


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
        Scenario("home behind a carrier + home", restricted, restricted, carrier=restricted),
        Scenario("home behind a symmetric carrier + home", restricted, restricted, carrier=symmetric),
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
    for end in "ab":
        found += [
            Scenario(f"rebinding of {end}, full-cone", cone, cone, then=f"rebind {end}"),
            Scenario(f"rebinding of {end}, port-restricted", restricted, restricted, then=f"rebind {end}"),
            Scenario(f"rebinding of {end}, symmetric", symmetric, symmetric, then=f"rebind {end}"),
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


class Result(NamedTuple):
    outcome: str
    linked_after: Optional[float]
    direct_after: Optional[float]
    leaders: list
    leader_changes: int
    losses: int
    """How often a and b lost each other."""
    sent: int
    received: int
    lost: int
    duplicated: int
    slowest_ms: int
    third_addresses: dict


class Process:
    """A member in a machine of the internet."""

    def __init__(self, host, entry):
        self.host = host
        self.name = host.name
        self.lines = []
        self.has_ended = False
        self.changed = threading.Condition()
        self.process = host.start([sys.executable, MEMBER, host.name, host.port, entry])
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
        with self.changed:
            changes = [line for line in self.lines if line["peer"] == peer]
        away = [line["event"] for line in changes if line["event"] in ("joined", "left", "reconnecting", "returned")]
        if not away or away[-1] in ("left", "reconnecting"):
            return "unlinked"
        paths = [line["path"] for line in changes if line["event"] == "path"]
        return "unlinked" if not paths else "direct" if paths[-1] == "direct" else "carried"

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


def play(scenario, leader="r", watch_seconds=WATCH_SECONDS):
    """Plays one scenario; `leader` is "r" or "b"."""
    with Internet(ipv6=scenario.ipv6) as net:
        hosts = build(scenario, net)
        processes = {}
        try:
            return observe(scenario, leader, watch_seconds, hosts, processes)
        finally:
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
        home = net.router("home b", scenario.b, behind=carrier if scenario.behind == "both" else None)
    hosts["b"] = net.host("b", behind=home)
    return hosts


def observe(scenario, leader, watch_seconds, hosts, members):
    r = hosts["r"]
    dialled = f"[{r.address6}]:{r.port}" if scenario.family == 6 else f"{r.address}:{r.port}"
    # The creator leads from the start, and stays: members that join look for its room.
    first, second = ("a", "b") if leader == "r" else ("b", "a")
    for name in ("r", first):
        members[name] = Process(hosts[name], "create" if name == leader else "join")
    members[first].do("connect", dialled)
    members[first].wait("result")
    members[first].wait("joined", "r", 1.0)
    members[second] = Process(hosts[second], "join")
    members[second].do("connect", dialled)
    a, b = members["a"], members["b"]
    began = members[second].wait("dials")["at"]
    deadline = time.monotonic() + watch_seconds
    is_direct = lambda line: line["path"] == "direct"
    left = lambda: deadline - time.monotonic()
    linked = [a.wait("joined", "b", left()), b.wait("joined", "a", left())]
    direct = [a.wait("path", "b", left(), is_direct), b.wait("path", "a", left(), is_direct)]
    after = lambda lines: max(line["at"] for line in lines) - began if all(lines) else None
    if scenario.then:
        time.sleep(DIRECT_SECONDS)
        disturb(scenario.then, hosts, members)
    elif all(direct):
        time.sleep(DIRECT_SECONDS)
    return result(members, hosts, after(linked), after(direct))


def disturb(what, hosts, members):
    if what == "quiet":
        for member in members.values():
            member.do("quiet", True)
        time.sleep(QUIET_SECONDS)
        for member in members.values():
            member.do("quiet", False)
        time.sleep(DIRECT_SECONDS)
    else:
        hosts[what[-1]].upstream.rebind()
        time.sleep(AFTER_SECONDS)


def result(members, hosts, linked_after, direct_after):
    a, b = members["a"], members["b"]
    paths = {a.path("b"), b.path("a")}
    reached = all(member.all("joined", "r") for member in (a, b))
    outcome = "alone" if not reached else "unlinked" if "unlinked" in paths else "carried" if "carried" in paths else "direct"
    for member in members.values():
        member.do("quiet", True)
    # Over a link that stands now, all accepted messages must arrive.
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        reports = {name: member.report() for name, member in members.items()}
        streams = [
            (reports[sender]["peers"][receiver]["sent"], reports[receiver]["peers"].get(sender))
            for sender in members
            for receiver in reports[sender]["peers"]
            if members[sender].path(receiver) != "unlinked" != members[receiver].path(sender)
        ]
        missing = sum(sent - (taken["last"] if taken else 0) for sent, taken in streams)
        if missing == 0 or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    took = [taken for _, taken in streams if taken]
    return Result(
        outcome,
        linked_after,
        direct_after,
        sorted({reports[name]["leader"] or "none" for name in members}),
        # Each member reports its first leader.
        sum(max(0, len(member.all("leader")) - 1) for member in members.values()),
        max(len(a.all("reconnecting", "b")), len(b.all("reconnecting", "a"))),
        sum(sent for sent, _ in streams),
        sum(taken["received"] for taken in took),
        missing + sum(taken["lost"] for taken in took),
        sum(taken["duplicated"] for taken in took),
        max((taken["slowest_ms"] for taken in took), default=0),
        {f"{name} to {address}": count for name, host in hosts.items() for address, count in host.third_addresses().items()},
    )


def failures(name, leader, result, wanted):
    """Sentences on what is not as expected; `wanted` may be several outcomes."""
    found = []
    if result.outcome not in wanted.split(" or "):
        found.append(f"{result.outcome}, expected {wanted}")
    if result.lost or result.duplicated:
        found.append(f"{result.lost} messages lost, {result.duplicated} received twice")
    if result.third_addresses:
        found.append(f"packets to other addresses: {result.third_addresses}")
    return [f"{name}, {leader} leads: {text}" for text in found]


HEAD = "scenario".ljust(40) + " leader  linked  direct  at the end messages  lost twice  slowest"


def line(name, leader, result):
    seconds = lambda value: "-" if value is None else f"{value:.1f} s"
    return (
        f"{name:40} {leader:6} {seconds(result.linked_after):>7} {seconds(result.direct_after):>7}  {result.outcome:10} "
        f"{result.received:8} {result.lost:5} {result.duplicated:5} {result.slowest_ms:5} ms"
        + (f"  links lost: {result.losses}" if result.losses else "")
        + (f"  leader changes: {result.leader_changes}" if result.leader_changes else "")
        + (f"  leaders: {', '.join(result.leaders)}" if result.leaders != [leader] else "")
    )


def play_all(wanted, leaders, jobs, watch_seconds, for_goal):
    """Plays scenarios side by side, prints a line for each, and returns the failures."""
    expected = expectations()
    found = []
    print(HEAD, flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        plans = [(scenario, leader) for scenario in wanted for leader in leaders]
        runs = [(plan[0].name, plan[1], pool.submit(play, *plan, watch_seconds)) for plan in plans]
        for name, leader, run in runs:
            try:
                result = run.result()
            except AssertionError as error:
                found.append(f"{name}, {leader} leads: {error}")
                continue
            print(line(name, leader, result), flush=True)
            row = expected.get(name)
            if row is None:
                found.append(f"{name}: not in the table")
            else:
                found += failures(name, leader, result, row.goal if for_goal else getattr(row, leader))
    return found


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


# -- tests of `run.py`


def rooms_across_nats_end_as_the_table_lists():
    found = play_all(scenarios(), ["r", "b"], 3 * os.cpu_count(), WATCH_SECONDS, for_goal=False)
    assert not found, "\n".join(found)


def ends_as_listed(name, leader="r", watch_seconds=8.0):
    """One scenario, for a test of its own."""
    (scenario,) = [one for one in scenarios() if one.name == name]
    outcome = play(scenario, leader, watch_seconds)
    print(f"{HEAD}\n{line(name, leader, outcome)}")
    found = failures(name, leader, outcome, getattr(expectations()[name], leader))
    assert not found, "\n".join(found)


TESTS = [
    plain_udp_passes_where_the_goal_is_direct,
    a_packet_to_a_third_address_is_counted,
    rooms_across_nats_end_as_the_table_lists,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--leader", choices=["r", "b"], help="only with this leader")
    parser.add_argument("--goal", action="store_true", help="compare with the goals instead of today's outcomes")
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
    leaders = [arguments.leader] if arguments.leader else ["r", "b"]
    found = play_all(wanted, leaders, arguments.jobs, arguments.seconds, arguments.goal)
    print("\n".join(found) or "all as expected")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
