#!/usr/bin/env python3
"""Ports that members ask their routers for: `ports.py [NAME...]` plays the tests whose name contains one of the arguments, by
default all. `docs/lab.md` describes them. `ports.py figures` measures what a port costs an idle member instead.

Routers run a real miniupnpd, with nftables, or a program that answers falsely. Members a and b are behind NATs that map a port anew
for each destination: without a port that a router forwards, they never link directly. Exits with 0, 1 or, on a machine that cannot
run them, 3.
"""

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import nat
import relays
from internet import Internet, Nat
from nat import Process
from network import CannotRun, run_tests

NETWORK = "198.20.0"
"""miniupnpd forwards no port of an address that is reserved for documents, as the other scenarios have them. No packet leaves."""
ROUTER = Nat("symmetric", forwards_ports=True)
MAPPED_SECONDS = 10.0
LINKED_SECONDS = 15.0
RESTART_SECONDS = 30.0
"""It asks again 15 s after the last time, at the earliest."""
CONNECTION_FAILED, TIMEOUT = -4, -19
IGMP = "224.0.0.22"
"""The system itself reports the groups that a socket joins."""
FOUND_OUT_SECONDS = 60.0
"""A member counts as unable to come through 20 s after it has got the address."""


class Miniupnpd:
    """A real one, on a router. It keeps no file of its ports: a restarted one knows none."""

    def __init__(self, router):
        if shutil.which("miniupnpd") is None:
            raise CannotRun("needs the program miniupnpd (Debian: miniupnpd-nftables)")
        self.router = router
        self.folder = tempfile.TemporaryDirectory()
        self.configuration = Path(self.folder.name) / "configuration"
        self.configuration.write_text(
            "\n".join(
                [
                    "ext_ifname=wan",
                    "listening_ip=lan",
                    "enable_natpmp=yes",
                    "enable_upnp=yes",
                    "secure_mode=yes",
                    "min_lifetime=120",
                    "max_lifetime=86400",
                    "upnp_table_name=upnp",
                    "upnp_nat_table_name=upnp",
                    "upnp_forward_chain=forwards",
                    "upnp_nat_chain=inwards",
                    "upnp_nat_postrouting_chain=outwards",
                    "uuid=00000000-0000-0000-0000-000000000000",
                    "allow 1024-65535 0.0.0.0/0 1024-65535",
                    "deny 0-65535 0.0.0.0/0 0-65535",
                ]
            )
            + "\n"
        )
        self.start()

    def start(self):
        self.router.nft(
            "table inet upnp { }",
            "delete table inet upnp",
            "table inet upnp {",
            "  chain forwards { }",
            "  chain inwards { }",
            "  chain outwards { }",
            "  chain forward { type filter hook forward priority filter + 1; jump forwards; }",
            "  chain prerouting { type nat hook prerouting priority dstnat - 1; jump inwards; }",
            "  chain postrouting { type nat hook postrouting priority srcnat - 1; jump outwards; }",
            "}",
        )
        pid = Path(self.folder.name) / "pid"
        self.process = self.router.start(["miniupnpd", "-d", "-f", self.configuration, "-P", pid])
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def ports(self):
        """The ports that it forwards: outer port to (address, port)."""
        listed = json.loads(self.router.run("nft", "-j", "list", "chain", "inet", "upnp", "inwards"))
        found = {}
        for rule in (one["rule"] for one in listed["nftables"] if "rule" in one):
            outer = target = None
            for part in rule["expr"]:
                if "match" in part and part["match"]["left"].get("payload", {}).get("field") == "dport":
                    outer = part["match"]["right"]
                if "dnat" in part:
                    target = (part["dnat"]["addr"], part["dnat"]["port"])
            found[outer] = target
        return found

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()


class Members(dict):
    """By name. They end with the block."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        nat.end(self)

    def open(self, host, entry="join", **options):
        self[host.name] = Process(host, entry, options=options)
        return self[host.name]


def mapped(member, code=0, number=1, seconds=MAPPED_SECONDS):
    line = member.wait("mapping", seconds=seconds, more=lambda line: line["code"] == code, number=number)
    assert line is not None, f"{member.name}: no report with code {code}: {member.all('mapping')}"
    return line


def ends_direct(a, b, seconds=LINKED_SECONDS):
    is_direct = lambda line: line["path"] == "direct"
    assert a.wait("path", b.name, seconds, is_direct), f"{a.name}: {a.changes(b.name)}"
    assert b.wait("path", a.name, seconds, is_direct), f"{b.name}: {b.changes(a.name)}"


def waits_for(seconds, is_so):
    deadline = time.monotonic() + seconds
    while not (found := is_so()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def a_port_links_members_behind_symmetric_nats():
    """Of a and b only a asks its router. It gives the port back when it closes the room."""
    with Internet(network=NETWORK) as net:
        home = net.router("home a", ROUTER)
        r, a = net.host("r"), net.host("a", behind=home)
        b = net.host("b", behind=net.router("home b", Nat("symmetric")))
        with Miniupnpd(home) as router:
            with Members() as members:
                members.open(r, "create")
                one, other = members.open(a, port_mapping=1), members.open(b)
                line = mapped(one)
                assert line["data"] == line["public"] == f"{home.address}:{a.port}", line
                assert router.ports() == {a.port: (a.address, a.port)}, router.ports()
                for member in (one, other):
                    member.do("connect", f"{r.address}:{r.port}")
                ends_direct(one, other)
                assert other.report()["addresses"]["a"] == line["data"], other.report()
                assert len(one.all("mapping")) == 1, one.all("mapping")
            assert router.ports() == {}, f"not given back: {router.ports()}"
            assert not other.all("mapping"), "b did not ask"


def a_port_takes_over_from_a_relay():
    """a and b know a code and a relay alone. The relay sees a at its router's address, so b gets the port."""
    with Internet(network=NETWORK) as net:
        home = net.router("home a", ROUTER)
        r, a = net.host("r"), net.host("a", behind=home)
        b = net.host("b", behind=net.router("home b", Nat("symmetric")))
        with Miniupnpd(home), relays.Relay(r) as relay, relays.Room(relay) as room:
            one, _ = room.open(a, port_mapping=1)
            line = mapped(one)
            other, _ = room.open(b)
            ends_direct(one, other)
            assert other.report()["addresses"]["a"] == line["data"], other.report()


def two_members_behind_one_router_get_a_port_each():
    """Both bind the same port, so one of them gets another outer one. c, elsewhere, links directly to both."""
    with Internet(network=NETWORK) as net:
        home = net.router("home", ROUTER)
        r, a, b = net.host("r"), net.host("a", behind=home), net.host("b", behind=home)
        c = net.host("c", behind=net.router("home c", Nat("symmetric")))
        b.port = a.port
        with Miniupnpd(home) as router:
            with Members() as members:
                members.open(r, "create")
                one, other = (members.open(host, port_mapping=1) for host in (a, b))
                ports = {mapped(one)["data"], mapped(other)["data"]}
                assert len(ports) == 2, ports
                assert sorted(router.ports().values()) == [(a.address, a.port), (b.address, a.port)], router.ports()
                third = members.open(c)
                for member in (one, other, third):
                    member.do("connect", f"{r.address}:{r.port}")
                ends_direct(one, third)
                ends_direct(other, third)
                found = third.report()["addresses"]
                assert {found["a"], found["b"]} == ports, (found, ports)
            assert router.ports() == {}, f"not given back: {router.ports()}"


def a_router_that_restarts_forwards_again():
    """It has forgotten its ports, and announces its start. Then a member that enters comes through."""
    with Internet(network=NETWORK) as net:
        home = net.router("home a", ROUTER)
        r, a = net.host("r"), net.host("a", behind=home)
        b = net.host("b", behind=net.router("home b", Nat("symmetric")))
        with Miniupnpd(home) as router, Members() as members:
            members.open(r, "create")
            one = members.open(a, port_mapping=1)
            mapped(one)
            # A second within which it asks no more often than allowed.
            time.sleep(1)
            router.kill()
            router.start()
            assert router.ports() == {}, "it has kept its ports"
            assert waits_for(RESTART_SECONDS, router.ports) == {a.port: (a.address, a.port)}, router.ports()
            one.do("connect", f"{r.address}:{r.port}")
            one.wait("joined", "r")
            other = members.open(b)
            other.do("connect", f"{r.address}:{r.port}")
            ends_direct(one, other)


class Liar:
    """A router's program that answers every request for a port, and forwards none."""

    PROGRAM = r"""
import socket, struct, sys
outer = socket.inet_aton(sys.argv[1])
made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
made.bind(("0.0.0.0", 5351))
print("ready", flush=True)
while True:
    asked, asker = made.recvfrom(1100)
    if asked[0] == 2:
        frees = asked[4:8] == bytes(4)
        port = bytes(2) if frees else asked[42:44]
        answer = struct.pack("!BBHII12x", 2, 0x81, 0, 0 if frees else 3600, 1000)
        made.sendto(answer + asked[24:42] + port + bytes(10) + b"\xff\xff" + outer, asker)
"""

    def __init__(self, router, outer):
        self.process = router.start([sys.executable, "-c", self.PROGRAM, outer])
        assert self.process.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def a_router_that_claims_a_port_and_has_none_is_found_out():
    """b and c have the address, and cannot come through it."""
    with Internet(network=NETWORK) as net:
        home = net.router("home a", ROUTER)
        r, a = net.host("r"), net.host("a", behind=home)
        b, c = (net.host(name, behind=net.router(f"home {name}", Nat("symmetric"))) for name in "bc")
        with Liar(home, home.address), Members() as members:
            members.open(r, "create")
            one = members.open(a, port_mapping=1)
            others = members.open(b), members.open(c)
            claimed = mapped(one)["data"]
            for member in (one, *others):
                member.do("connect", f"{r.address}:{r.port}")
            line = mapped(one, code=CONNECTION_FAILED, seconds=FOUND_OUT_SECONDS)
            assert "could not come through" in line["data"], line
            assert line["public"] != claimed, line
            for other in others:
                assert one.path(other.name) == other.path("a") == "carried", other.changes("a")


def a_router_that_names_another_address_is_found_out():
    """Others see a at another address: b never learns the claimed one, and no packet goes there."""
    with Internet(network=NETWORK) as net:
        home = net.router("home a", ROUTER)
        r, a, victim = net.host("r"), net.host("a", behind=home), net.host("victim")
        b = net.host("b", behind=net.router("home b", Nat("symmetric")))
        with victim.socket(), Liar(home, victim.address), Members() as members:
            members.open(r, "create")
            one, other = members.open(a, port_mapping=1), members.open(b)
            mapped(one)
            one.do("connect", f"{r.address}:{r.port}")
            line = mapped(one, code=CONNECTION_FAILED)
            assert "at another address" in line["data"], line
            assert line["public"].startswith(home.address), line
            other.do("connect", f"{r.address}:{r.port}")
            assert other.wait("joined", "a"), other.lines
            time.sleep(5)
            assert victim.address not in b.sent() and victim.address not in r.sent(), (b.sent(), r.sent())


def without_the_option_no_router_is_asked():
    """And with it, none but the gateway."""
    with Internet(network=NETWORK) as net:
        home = net.router("home a", ROUTER)
        a, b = (net.host(name, behind=home) for name in "ab")
        with Members() as members:
            members.open(a), members.open(b, port_mapping=1)
            line = mapped(members["b"], code=TIMEOUT, seconds=3 * MAPPED_SECONDS)
            assert "does not answer" in line["data"], line
            assert a.sent() == {}, a.sent()
            gateway = str(home.network[254])
            assert set(b.sent()) <= {gateway, IGMP} and 0 < b.sent()[gateway] <= 12, b.sent()


IDLE_SECONDS = 400.0
"""A port is renewed after 225 to 300 s."""


class Use(NamedTuple):
    """Of a member so far: what the library's threads used, and packets sent."""

    cpu_ms: float
    wakeups: int
    resident_kib: int
    packets: int
    to_router: int

    @classmethod
    def of(cls, member, host):
        """The program's own thread polls, and does not count."""
        process = Path("/proc") / str(member.process.pid)
        threads = [thread for thread in (process / "task").iterdir() if thread.name != process.name]
        ticks = sum(sum(map(int, (thread / "stat").read_text().rsplit(")", 1)[1].split()[11:13])) for thread in threads)
        status = lambda path, name: int(re.search(rf"^{name}:\s+(\d+)", (path / "status").read_text(), re.MULTILINE)[1])
        wakeups = sum(status(thread, "voluntary_ctxt_switches") for thread in threads)
        sent = host.sent()
        to_router = sent.get(str(host.upstream.network[254]), 0)
        cpu_ms = ticks * 1000 / os.sysconf("SC_CLK_TCK")
        return cls(cpu_ms, wakeups, status(process, "VmRSS"), sum(sent.values()), to_router)


def figures():
    """Two rooms of two at the same time. One member of each is behind a router with a real miniupnpd, and asks it for a port, or not."""
    with Internet(network=NETWORK) as net, contextlib.ExitStack() as ends, Members() as members:
        measured = {}
        for number, name in enumerate(("off", "on")):
            home = net.router(f"home {name}", ROUTER)
            peer, host = net.host(f"peer {name}"), net.host(name, behind=home)
            ends.enter_context(Miniupnpd(home))
            members.open(peer, "create", session=name)
            one = members.open(host, session=name, port_mapping=number)
            one.do("connect", f"{peer.address}:{peer.port}")
            assert one.wait("joined", peer.name), one.lines
            if number:
                mapped(one)
            for member in (one, members[peer.name]):
                member.do("quiet", True)
            measured[name] = one, host
        time.sleep(10)
        before = {name: Use.of(*one) for name, one in measured.items()}
        time.sleep(IDLE_SECONDS)
        print(f"idle for {IDLE_SECONDS:.0f} s; load {os.getloadavg()[0]:.1f}")
        print("| port mapping | CPU | wakeups | packets sent | of these to the router | before | resident |\n|---|---|---|---|---|---|---|")
        for name, one in measured.items():
            was, use = before[name], Use.of(*one)
            spent = [f"{use.cpu_ms - was.cpu_ms:.0f} ms", *(str(now - then) for now, then in zip(use[1:], was[1:]))]
            print(f"| {name} | {spent[0]} | {spent[1]} | {spent[3]} | {spent[4]} | {was.to_router} | {use.resident_kib / 1024:.1f} MiB |")


TESTS = [
    a_port_links_members_behind_symmetric_nats,
    a_port_takes_over_from_a_relay,
    two_members_behind_one_router_get_a_port_each,
    a_router_that_restarts_forwards_again,
    a_router_that_claims_a_port_and_has_none_is_found_out,
    a_router_that_names_another_address_is_found_out,
    without_the_option_no_router_is_asked,
]


if __name__ == "__main__":
    sys.exit(figures() if sys.argv[1:] == ["figures"] else run_tests(TESTS, sys.argv[1:]))
