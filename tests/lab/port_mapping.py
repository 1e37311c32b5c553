#!/usr/bin/env python3
"""Ports that members ask their routers for: `port_mapping.py [NAME...]` plays the tests whose name contains one of the arguments, by
default all. `docs/lab.md` describes them.

Routers run a real miniupnpd, with nftables, or a program that answers falsely. Members a and b are behind NATs that map a port anew
for each destination: without a port that a router forwards, they never link directly. Exits with 0, 1 or, on a machine that cannot
run them, 3.
"""

import json
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import nat
from internet import Internet, Nat
from nat import Process
from network import CANNOT_RUN, CannotRun

NETWORK = "198.20.0"
"""miniupnpd forwards no port of an address that is reserved for documents, as the other scenarios have them. No packet leaves."""
ROUTER = Nat("symmetric", forwards_ports=True)
MAPPED_SECONDS = 10.0
LINKED_SECONDS = 15.0
FOUND_OUT_SECONDS = 60.0
"""A member counts as unable to come through 20 s after it has got the address."""


class Miniupnpd:
    """A real one, on a router. It keeps no file of its ports: a restarted one knows none."""

    def __init__(self, router, *lines):
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
                    *lines,
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


TESTS = [
    a_port_links_members_behind_symmetric_nats,
]


def main(names):
    found = [test for test in TESTS if not names or any(name in test.__name__ for name in names)]
    failed = 0
    for test in found:
        try:
            test()
        except CannotRun as error:
            print(error, file=sys.stderr)
            return CANNOT_RUN
        except AssertionError:
            failed += 1
            traceback.print_exc()
        else:
            print(f"ok {test.__name__}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
