#!/usr/bin/env python3
"""Members whose networks let no UDP out: `turn_servers.py [NAME...]` plays the tests whose name contains one of the arguments, by default
all. `docs/lab.md` describes them. `turn_servers.py figures` measures how late messages are instead.

Machine t runs a real coturn, for UDP and for TLS on port 443, with credentials that last an hour. Routers drop all UDP of the members
behind them, except where the test describes another router. Exits with 0, 1 or, on a machine that cannot run them, 3.
"""

import base64
import contextlib
import hashlib
import hmac
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import relays
from internet import Internet, Nat
from network import CannotRun, run_tests
from ports import Members, waits_for

BLOCKED = Nat("symmetric", blocks_udp=True)
SECRET = "the game's server and coturn know this"
TLS_PORT, UDP_PORT = 443, 3478
PORT_SECONDS = 8.0
LINKED_SECONDS = 30.0
ROUNDS_SECONDS = 90.0
"""The address at the server goes to members that four rounds of dials have not reached: 16 s, and the next rounds 30 s apart."""
NOTICED_SECONDS = 60.0
PLAYS_SECONDS = 5.0
FILE_BYTES = 8 << 20
FILE_SECONDS = 60.0
CONNECTION_FAILED, AUTHENTICATION_FAILED, TIMEOUT = -4, -17, -19


class Coturn:
    """A real one, on a machine."""

    def __init__(self, host, *options):
        for tool in ("turnserver", "openssl"):
            if shutil.which(tool) is None:
                raise CannotRun(f"needs the program {tool} (Debian: coturn, openssl)")
        self.host = host
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self.certificate, self.private = (Path(self.folder.name) / name for name in ("certificate", "private"))
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=turn.example",
                     "-keyout", self.private, "-out", self.certificate)  # fmt: skip
        public = self.openssl("x509", "-in", self.certificate, "-noout", "-pubkey")
        self.key = hashlib.sha256(self.openssl("pkey", "-pubin", "-outform", "der", text=public)).hexdigest()
        self.start()

    def openssl(self, *command, text=b""):
        return subprocess.run(["openssl", *map(str, command)], input=text, capture_output=True, check=True).stdout

    def start(self):
        listening = [f"--listening-ip={self.host.address}", f"--relay-ip={self.host.address}"]
        ports = [f"--listening-port={UDP_PORT}", f"--tls-listening-port={TLS_PORT}", "--min-port=50000", "--max-port=50999"]
        files = [f"--cert={self.certificate}", f"--pkey={self.private}", f"--pidfile={self.folder.name}/pid"]
        login = ["--realm=game", "--use-auth-secret", f"--static-auth-secret={SECRET}"]
        quiet = ["--no-cli", "--no-dtls", "--log-file=stdout", "--simple-log", f"--userdb={self.folder.name}/users"]
        self.process = self.host.start(
            ["turnserver", "-n", *listening, *ports, *files, *login, *quiet, *self.options], stderr=subprocess.STDOUT
        )
        self.log = []

        def read():
            for line in self.process.stdout:
                self.log.append(line)

        threading.Thread(target=read, daemon=True).start()
        has_begun = lambda: "LISTEN" in self.host.run("ss", "-Hltn", f"sport = {TLS_PORT}")
        assert waits_for(10.0, has_begun), "coturn did not start: " + "".join(self.log[-20:])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def line(self, url=None, seconds=3600, password=None, key=True):
        """A line of the option. `url` is that of TLS if it is None."""
        username = f"{int(time.time()) + seconds}:ann"
        made = base64.b64encode(hmac.digest(SECRET.encode(), username.encode(), "sha1")).decode()
        end = f" key={self.key}" if url is None and key else ""
        return f"{url or self.tls} username={username} password={password or made}{end}"

    @property
    def tls(self):
        return f"turns:{self.host.address}:{TLS_PORT}"

    @property
    def udp(self):
        return f"turn:{self.host.address}:{UDP_PORT}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()


def has_port(member, code=0, number=1, seconds=PORT_SECONDS):
    line = member.wait("turn", seconds=seconds, more=lambda line: line["code"] == code, number=number)
    assert line is not None, f"{member.name}: no report with code {code}: {member.all('turn')}"
    return line


def ends(member, other, path, seconds=LINKED_SECONDS):
    found = member.wait("path", other.name, seconds, lambda line: line["path"] == path)
    assert found, f"{member.name}: {member.changes(other.name)}"


def play(*members):
    """All messages arrive, both ways."""
    before = [member.report()["peers"] for member in members]
    time.sleep(PLAYS_SECONDS)
    for member, was in zip(members, before):
        for name, peer in member.report()["peers"].items():
            if name not in {other.name for other in members}:
                continue
            came = peer["received"] - was[name]["received"]
            assert came > 20 * PLAYS_SECONDS, f"{member.name} from {name}: {came} messages of {50 * PLAYS_SECONDS}"
            assert (peer["lost"], peer["duplicated"]) == (0, 0), (member.name, name, peer)


@contextlib.contextmanager
def world(blocked=BLOCKED, *options):
    """t with coturn, r, and a behind that router."""
    with Internet() as net:
        t, r = net.host("t"), net.host("r")
        a = net.host("a", behind=net.router("home a", blocked))
        with Coturn(t, *options) as server:
            yield net, server, r, a


def a_member_without_udp_plays_over_a_relay():
    """Through TLS on port 443. b, at home, has no TURN server."""
    with world() as (net, server, r, a):
        b = net.host("b", behind=net.router("home b", Nat("port-restricted")))
        with relays.Relay(r) as relay, relays.Room(relay) as room:
            one, _ = room.open(a, turn=server.line())
            assert has_port(one)["data"].startswith(f"{server.host.address}:"), one.all("turn")
            assert one.wait("relay", seconds=PORT_SECONDS, more=lambda line: line["code"] == 0), one.all("relay")
            other, _ = room.open(b)
            assert one.wait("joined", "b", LINKED_SECONDS) and other.wait("joined", "a", LINKED_SECONDS), one.lines
            play(one, other)
            assert one.path("b") in ("relayed", "turn"), one.changes("b")


def without_turn_such_a_member_is_alone():
    """It reports why."""
    with Internet() as net:
        r, a = net.host("r"), net.host("a", behind=net.router("home a", BLOCKED))
        with relays.Relay(r) as relay, relays.Room(relay) as room:
            one, _ = room.open(a)
            line = one.wait("relay", seconds=LINKED_SECONDS, more=lambda line: line["code"] == TIMEOUT)
            assert line and "may block UDP" in line["data"], one.all("relay")


def a_member_without_udp_dials_an_address():
    """r is reachable, and sees a at the server. a sees that its path leads through the server. b, behind another router, dials r too,
    and gets a link with a.
    """
    with world() as (net, server, r, a):
        b = net.host("b", behind=net.router("home b", Nat("port-restricted")))
        with Members() as members:
            host = members.open(r, "create")
            one, other = members.open(a, turn=server.line()), members.open(b)
            port = has_port(one)["data"]
            one.do("connect", f"{r.address}:{r.port}")
            ends(one, host, "turn")
            ends(host, one, "direct")
            assert host.report()["addresses"]["a"] == port, host.report()
            other.do("connect", f"{r.address}:{r.port}")
            assert other.wait("joined", "a", LINKED_SECONDS) and one.wait("joined", "b", LINKED_SECONDS), other.lines
            play(one, host, other)
            ends(one, other, "turn", ROUNDS_SECONDS)
            play(one, other)


def a_port_serves_members_that_no_other_path_links():
    """Neither UDP is blocked, but both routers map a port anew for each destination. After some rounds of dials b gets a's address at
    the server.
    """
    with world(Nat("symmetric")) as (net, server, r, a):
        b = net.host("b", behind=net.router("home b", Nat("symmetric")))
        with relays.Relay(r) as relay, relays.Room(relay) as room:
            one, _ = room.open(a, turn=server.line(server.udp))
            port = has_port(one)["data"]
            other, _ = room.open(b)
            ends(one, other, "turn", ROUNDS_SECONDS)
            ends(other, one, "direct")
            assert other.report()["addresses"]["a"] == port, other.report()
            play(one, other)


def members_whose_routers_let_them_through_need_no_port():
    """The path is direct at both ends, although both have ports at the server."""
    with world(Nat("port-restricted")) as (net, server, r, a):
        b = net.host("b", behind=net.router("home b", Nat("port-restricted")))
        with relays.Relay(r) as relay, relays.Room(relay) as room:
            one, _ = room.open(a, turn=server.line(server.udp))
            other, _ = room.open(b, turn=server.line())
            has_port(one), has_port(other)
            ends(one, other, "direct")
            ends(other, one, "direct")
            play(one, other)


def two_members_without_udp_link_through_one_server():
    """By TLS, from two networks: the server forwards from one port of its own to the other. One sends the other a file meanwhile."""
    with world() as (net, server, r, a):
        b = net.host("b", behind=net.router("home b", BLOCKED))
        with Members() as members:
            host = members.open(r, "create")
            both = [members.open(machine, turn=server.line()) for machine in (a, b)]
            assert len({has_port(member)["data"] for member in both}) == 2, [member.all("turn") for member in both]
            for member in both:
                member.do("connect", f"{r.address}:{r.port}")
                ends(member, host, "turn")
            for member, other in zip(both, reversed(both)):
                ends(member, other, "turn", ROUNDS_SECONDS)
            both[0].do("transfer", "b", FILE_BYTES)
            play(*both, host)
            for member, other in zip(both, reversed(both)):
                arrived = member.wait("transferred", other.name, FILE_SECONDS)
                assert arrived and arrived["success"] and arrived["done"] == FILE_BYTES, member.all("transferred")


def a_server_that_dies_is_reported_and_used_again(url=None):
    """b and c, which are linked otherwise, notice nothing. a comes back."""
    with world(BLOCKED if url is None else Nat("symmetric")) as (net, server, r, a):
        b, c = (net.host(name, behind=net.router(f"home {name}", Nat("port-restricted"))) for name in "bc")
        with relays.Relay(r) as relay, relays.Room(relay) as room:
            one, _ = room.open(a, turn=server.line(url and getattr(server, url)))
            has_port(one)
            others = [room.open(host)[0] for host in (b, c)]
            for other in others:
                assert other.wait("joined", "a", LINKED_SECONDS), other.lines
            ends(*others, "direct")
            server.kill()
            lost = lambda line: line["code"] in (CONNECTION_FAILED, TIMEOUT)
            assert one.wait("turn", seconds=NOTICED_SECONDS, more=lost), one.all("turn")
            play(*others)
            server.start()
            assert has_port(one, number=2, seconds=NOTICED_SECONDS)
            for other in others:
                is_back = lambda: other.path("a") != "unlinked" and one.path(other.name) != "unlinked"
                assert waits_for(LINKED_SECONDS, is_back), other.changes("a")
            play(*others)
            assert not others[0].all("left", "c") and not others[0].all("reconnecting", "c")


def a_server_over_udp_that_dies_is_reported_and_used_again():
    """No connection ends with it."""
    a_server_that_dies_is_reported_and_used_again("udp")


def a_server_that_is_restarted_at_once_is_noticed():
    """Over UDP it answers again before anyone notices, and has forgotten the port."""
    with world(Nat("symmetric")) as (net, server, r, a):
        with Members() as members:
            one = members.open(a, turn=server.line(server.udp))
            has_port(one)
            server.kill()
            server.start()
            lost = lambda line: line["code"] in (CONNECTION_FAILED, TIMEOUT)
            assert one.wait("turn", seconds=NOTICED_SECONDS, more=lost), one.all("turn")
            has_port(one, number=2, seconds=NOTICED_SECONDS)


def a_server_that_is_given_up_is_reported():
    with world() as (net, server, r, a):
        with Members() as members:
            one = members.open(a, turn=server.line())
            has_port(one)
            one.do("turn", None)
            assert "no more" in has_port(one, CONNECTION_FAILED)["data"], one.all("turn")


def credentials_that_the_server_refuses_are_reported_and_replaced():
    with world() as (net, server, r, a):
        with Members() as members:
            one = members.open(a, turn=server.line(password="wrong"))
            line = has_port(one, AUTHENTICATION_FAILED)
            assert "401" in line["data"], line
            one.do("turn", server.line(seconds=-10))
            has_port(one, AUTHENTICATION_FAILED, number=2)
            one.do("turn", server.line())
            has_port(one)


def a_certificate_that_the_system_does_not_trust_counts_by_its_key():
    """coturn's certificate is its own."""
    with world() as (net, server, r, a):
        with Members() as members:
            one = members.open(a, turn=server.line(key=False))
            line = has_port(one, AUTHENTICATION_FAILED)
            assert "certificate is not trusted" in line["data"], line
            one.do("turn", server.line(key=False) + " key=" + "0" * 64)
            has_port(one, AUTHENTICATION_FAILED, number=2)
            one.do("turn", server.line())
            has_port(one)


def without_the_option_no_server_is_asked():
    with world(Nat("port-restricted")) as (net, server, r, a):
        with Members() as members:
            members.open(r, "create")
            one = members.open(a)
            one.do("connect", f"{r.address}:{r.port}")
            ends(one, members["r"], "direct")
            assert set(a.sent()) == {r.address}, a.sent()
            assert not one.all("turn")


FIGURES_SECONDS = 60.0
LOSSES = (0, 1)
"""Per cent each way, at a's router. The lines have no delay."""


def figures():
    """One-way times of 50 reliable messages a second from a to b, and back, by how a reaches b."""
    print("| loss at a's router, each way | path | a to b: p50 / p99 / slowest | b to a: p50 / p99 / slowest |\n|---|---|---|---|")
    for per_cent in LOSSES:
        for path, blocks, url in (("relayed", False, None), ("turn", False, "udp"), ("turn", True, "tls")):
            with world(Nat("symmetric", blocks_udp=blocks)) as (net, server, r, a):
                b = net.host("b", behind=net.router("home b", Nat("symmetric")))
                chain = "chain forward { type filter hook forward priority filter - 2; numgen random mod 100 < %d drop; }"
                a.upstream.nft("table ip losses {", chain % per_cent if per_cent else "", "}")
                with relays.Relay(r) as relay, relays.Room(relay) as room:
                    turn = {"turn": server.line(server.udp if url == "udp" else None)} if url else {}
                    one, _ = room.open(a, **turn)
                    other, _ = room.open(b)
                    ends(one, other, path, ROUNDS_SECONDS)
                    time.sleep(2)
                    one.do("mark"), other.do("mark")
                    time.sleep(FIGURES_SECONDS)
                    both = (other.report()["peers"]["a"], one.report()["peers"]["b"])
                    assert one.path("b") == path, one.changes("b")
                    shown = [f"{it['p50_ms']} / {it['p99_ms']} / {it['slowest_ms']} ms" for it in both]
                    how = {None: "the relay", "udp": "TURN over UDP", "tls": "TURN over TLS"}[url]
                    print(f"| {per_cent} % | {how} | {' | '.join(shown)} |", flush=True)


TESTS = [
    a_member_without_udp_plays_over_a_relay,
    without_turn_such_a_member_is_alone,
    a_member_without_udp_dials_an_address,
    two_members_without_udp_link_through_one_server,
    a_port_serves_members_that_no_other_path_links,
    members_whose_routers_let_them_through_need_no_port,
    a_server_that_dies_is_reported_and_used_again,
    a_server_over_udp_that_dies_is_reported_and_used_again,
    a_server_that_is_restarted_at_once_is_noticed,
    a_server_that_is_given_up_is_reported,
    credentials_that_the_server_refuses_are_reported_and_replaced,
    a_certificate_that_the_system_does_not_trust_counts_by_its_key,
    without_the_option_no_server_is_asked,
]


def main(names):
    if names == ["figures"]:
        figures()
        return 0
    return run_tests(TESTS, names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
