"""Machines on an internet, some of them behind real NATs: nftables and conntrack in network namespaces (`docs/lab.md`).

    with Internet() as internet:
        internet.host("r")
        home = internet.router("home a", Nat("symmetric"))
        internet.host("a", behind=home)

Namespaces have no name: file descriptors of this process alone hold them, so they vanish with it. No packet leaves them.
"""

import ctypes
import functools
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from typing import NamedTuple

from network import CannotRun, Machine, new_namespace

KINDS = ("full-cone", "restricted", "port-restricted", "linux", "remap", "symmetric")
"""`Router.rules` has the mapping and the filter of each. All but symmetric give a socket one outer port for all destinations."""
FIRST_PORT = 40001
"""The machines bind ports from here on: static rules can name them."""
CLONE_NEWNET = 0x40000000
REMAPPED, REBOUND = 11000, 13000
"""Static rules add this to a port: before and after a rebinding."""


@functools.cache
def check():
    """Raises CannotRun if this machine cannot have NATs in namespaces."""
    if not sys.platform.startswith("linux"):
        raise CannotRun("needs Linux, for network namespaces")
    if os.geteuid() != 0:
        raise CannotRun("needs root, for network namespaces")
    for tool in ("ip", "nsenter", "unshare", "sysctl", "nft", "conntrack"):
        if shutil.which(tool) is None:
            raise CannotRun(f"needs the program {tool} (Debian: iproute2, util-linux, procps, nftables, conntrack)")
    probe = "nft add table ip nat && nft add chain ip nat out '{ type nat hook postrouting priority srcnat; }' && conntrack -F"
    done = subprocess.run(["unshare", "--net", "sh", "-c", probe], capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotRun(f"needs namespaces with nftables' NAT: {done.stderr.strip()}")


class Nat(NamedTuple):
    """Properties of a router."""

    kind: str
    """One of KINDS."""
    hairpin: bool = False
    """Whether a machine reaches another one behind the same router by its outer address."""
    mtu: int = 1500
    """Of the line to the outside. The other end of the line drops longer packets and reports nothing."""
    mapping_seconds: int = 0
    """Lifetime of a mapping that carries nothing; 0 is that of the kernel (30 s, and 120 s once both directions were used)."""
    blocks_udp: bool = False
    forwards_ports: bool = False
    """Whether it lets in what other tables of rules forward."""


class Internet:
    """One bridge, by default 203.0.113.0/24, with machines and routers. `ipv6` adds 2001:db8::/32, without any address translation."""

    def __init__(self, ipv6=False, network="203.0.113"):
        self.ipv6 = ipv6
        self.network = network
        self.namespaces = []
        self.nodes = {}
        self.next_port = FIRST_PORT

    def __enter__(self):
        check()
        try:
            self.backbone = Node(self, "backbone")
            self.backbone.ip("link add lan type bridge", "link set lan mtu 1500 up", f"address add {self.network}.254/24 dev lan")
            if self.ipv6:
                self.backbone.ip("address add 2001:db8::fe/64 dev lan nodad")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for namespace in self.namespaces:
            os.close(namespace)
        self.namespaces.clear()

    def host(self, name, behind=None):
        """A machine: behind that router, else with an address of its own."""
        return Host(self, name, behind or self)

    def router(self, name, nat, behind=None, is_carrier=False):
        """A router, perhaps behind a carrier's."""
        return Router(self, name, nat, behind or self, is_carrier)

    def addresses(self):
        """All addresses of machines, and those of routers to the outside."""
        return {address for node in self.nodes.values() for address in (node.address, node.address6) if address}

    # An Internet and a Router both have machines behind them: `attach`.

    def attach(self, node, device, mtu=1500):
        number = 1 + sum(other.upstream is self for other in self.nodes.values())
        node.plug(self.backbone, device, f"{self.network}.{number}", 24, f"{self.network}.254", mtu)
        if self.ipv6:
            node.plug6(device, f"2001:db8::{number}", "2001:db8::fe")
        return number


class Node(Machine):
    """A machine or a router."""

    def __init__(self, internet, name):
        super().__init__(name, new_namespace())
        self.internet = internet
        internet.namespaces.append(self.namespace)
        self.upstream = None
        self.address = self.address6 = ""
        self.cables = 0
        off = int(not internet.ipv6)
        settings = [f"net.ipv6.conf.{which}.disable_ipv6={off}" for which in ("all", "default")]
        settings += ["net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.default.send_redirects=0"]
        # Without duplicate address detection, which takes a second.
        settings += ["net.ipv6.conf.all.forwarding=1", "net.ipv6.conf.default.accept_dad=0"] if internet.ipv6 else []
        self.run("sysctl", "-qw", *settings)
        self.ip("link set lo up")

    def plug(self, bridge, device, address, length, gateway, mtu):
        """A cable to a bridge named "lan" in another namespace."""
        bridge.cables += 1
        port = f"port{bridge.cables}"
        line = f"link add {port} mtu {mtu} type veth peer name {device} mtu {mtu} netns /proc/self/fd/{self.namespace}"
        bridge.ip(line, f"link set {port} master lan up", more=[self.namespace])
        self.ip(f"link set {device} up", f"address add {address}/{length} dev {device}", f"route add default via {gateway}")
        self.address = address

    def plug6(self, device, address, gateway):
        self.ip(f"address add {address}/64 dev {device} nodad", f"route add default via {gateway}")
        self.address6 = address

    def nft(self, *lines):
        """Rules in nft's own syntax, a line each: all of them apply, or none."""
        self.run("nft", "-f", "-", text="\n".join(lines) + "\n")


class Host(Node):
    """A machine that runs members. Its own firewall counts what it sends, by destination."""

    def __init__(self, internet, name, upstream):
        super().__init__(internet, name)
        self.port = internet.next_port
        internet.next_port += 1
        upstream.attach(self, "eth0")
        self.upstream = upstream
        internet.nodes[name] = self
        if isinstance(upstream, Router):
            upstream.serve(self.address, self.port)
        self.nft(
            "table inet capture {",
            "  set sent { type ipv4_addr . inet_proto; flags dynamic; counter; size 1024; }",
            "  set sent6 { type ipv6_addr . inet_proto; flags dynamic; counter; size 1024; }",
            "  chain output {",
            "    type filter hook output priority filter",
            # Neighbour discovery and multicast listeners are the kernel's, as ARP is.
            '    oifname "lo" accept',
            "    meta l4proto ipv6-icmp accept",
            "    update @sent { ip daddr . meta l4proto }",
            "    update @sent6 { ip6 daddr . meta l4proto }",
            "  }",
            "}",
        )

    def sent(self):
        """Number of packets that this machine has sent, by destination address."""
        packets = {}
        for name in ("sent", "sent6"):
            listed = json.loads(self.run("nft", "-j", "list", "set", "inet", "capture", name))
            (elements,) = [one["set"].get("elem", []) for one in listed["nftables"] if "set" in one]
            for element in elements:
                address, _ = element["elem"]["val"]["concat"]
                packets[address] = packets.get(address, 0) + element["elem"]["counter"]["packets"]
        return packets

    def drop(self, *directions, other=None):
        """From now on the packets of these directions, "input" and "output", vanish; with `other`, only those from and to it, as
        this machine sees it. Without directions all pass again.
        """
        end = {"input": "saddr", "output": "daddr"}
        which = lambda way: f"ip {end[way]} {outermost(other).address} " if other else ""
        drops = {way: f"{which(way)}meta l4proto udp drop" for way in directions}
        lines = [_chain(way, f"filter hook {way} priority filter", [drop]) for way, drop in drops.items()]
        # Whether the table exists or not.
        self.nft("table ip dead { }", "delete table ip dead", "table ip dead {", *sum(lines, []), "}")

    def third_addresses(self):
        """Destinations of packets that belong to no machine of this internet."""
        return {address: count for address, count in self.sent().items() if address not in self.internet.addresses()}

    def foreign_addresses(self):
        """Destinations of packets that belong to machines in private networks behind another address of the internet: machines
        with one address may be in one network.
        """
        private = [node for node in self.internet.nodes.values() if isinstance(node.upstream, Router)]
        foreign = {node.address for node in private if outermost(node) is not outermost(self)}
        return {address: count for address, count in self.sent().items() if address in foreign}

    def forge(self, source, port, receiver):
        """From now on, every twentieth packet of this machine's socket to `receiver` has that source."""
        every_twentieth = f"ip daddr {receiver} udp sport {self.port} numgen inc mod 20 0"
        forge = f"{every_twentieth} counter ip saddr set {source} udp sport set {port}"
        self.nft("table ip forged {", *_chain("postrouting", "filter hook postrouting priority srcnat + 10", [forge]), "}")

    def forged(self):
        """Number of packets with a forged source."""
        _, _, counted = self.run("nft", "list", "table", "ip", "forged").partition("counter packets ")
        return int(counted.split()[0])

    def socket(self, ipv6=False):
        """A UDP socket of this machine, on its port, for this process. Only the thread that makes it enters the namespace."""
        made = []
        family, address = (socket.AF_INET6, "::") if ipv6 else (socket.AF_INET, "0.0.0.0")

        def make():
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(self.namespace, CLONE_NEWNET) == 0:
                made.append(socket.socket(family, socket.SOCK_DGRAM))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        assert made, f"{self.name}: setns failed"
        made[0].bind((address, self.port))
        return made[0]


def outermost(node):
    """The router with a machine's address of the internet, or the machine itself."""
    while isinstance(node.upstream, Router):
        node = node.upstream
    return node


class Router(Node):
    """Machines behind it use "lan"; it goes out by "wan"."""

    def __init__(self, internet, name, nat, upstream, is_carrier):
        super().__init__(internet, name)
        self.nat = nat
        self.offset = REMAPPED if nat.kind == "remap" else 0
        # (address, port) of the sockets behind it that static rules name.
        self.served = []
        number = upstream.attach(self, "wan", nat.mtu)
        self.upstream = upstream
        self.number = sum(isinstance(node, Router) for node in internet.nodes.values()) + 1
        self.network = ipaddress.ip_network("100.64.0.0/24" if is_carrier else f"192.168.{self.number}.0/24")
        internet.nodes[name] = self
        self.ip("link add lan type bridge", "link set lan mtu 1500 up", f"address add {self.network[254]}/24 dev lan")
        if internet.ipv6 and not is_carrier:
            # Without address translation, the backbone needs a route.
            self.network6 = f"2001:db8:{self.number}:"
            self.ip(f"address add {self.network6}:fe/64 dev lan nodad")
            internet.backbone.ip(f"route add {self.network6}:/64 via 2001:db8::{number}")
        if nat.mapping_seconds:
            timeouts = [f"net.netfilter.nf_conntrack_udp_timeout{which}={nat.mapping_seconds}" for which in ("", "_stream")]
            self.run("sysctl", "-qw", *timeouts)
        self.apply()

    def attach(self, node, device, mtu=1500):
        number = 1 + sum(other.upstream is self for other in self.internet.nodes.values())
        node.plug(self, device, str(self.network[number]), 24, str(self.network[254]), mtu)
        if self.internet.ipv6:
            node.plug6(device, f"{self.network6}:{number}", f"{self.network6}:fe")
        return number

    def serve(self, address, port):
        """A socket behind this router exists: here, and as seen from the carrier's router."""
        self.served.append((address, port))
        self.apply()
        if isinstance(self.upstream, Router):
            self.upstream.serve(self.address, port + self.offset)

    def wall(self, *addresses):
        """Drops all that machines behind this router send to these addresses, until the next call."""
        drop = [f"ip daddr {{ {', '.join(addresses)} }} drop"] if addresses else []
        # Whether the table exists or not.
        self.nft(
            "table ip wall { }",
            "delete table ip wall",
            "table ip wall {",
            *_chain("forward", "filter hook forward priority filter - 1", drop),
            "}",
        )

    def rebind(self):
        """All mappings get other ports, as after a restart of the router or of its line."""
        self.offset = REBOUND
        self.apply()
        # After the rules: a packet between the two would bring the old mapping back.
        self.run("conntrack", "-F")

    def apply(self):
        # Beside a wall.
        self.nft("table ip nat { }", "delete table ip nat", "table ip6 firewall { }", "delete table ip6 firewall", *self.rules())

    def rules(self):
        """A mapping kept in `mapped` (or static) is what makes the first three kinds independent of the destination; the filter
        is the second half of each.
        """
        kind, hairpin, seconds = self.nat.kind, self.nat.hairpin, self.nat.mapping_seconds or 300
        inwards, outwards, hairpins, passes = [], [], [], []
        # A dynamic map keeps ports; only rules that name sockets change them.
        has_map = kind in ("full-cone", "restricted", "port-restricted") and not self.offset
        came = f"ip daddr {self.address}" if hairpin else 'iifname "wan"'
        if has_map:
            inwards = [f"{came} meta l4proto udp dnat to udp dport map @mapped"]
            passes = ['oifname "wan" meta l4proto udp update @mapped { udp sport timeout %ds : ip saddr . udp sport }' % seconds]
        elif self.offset and kind != "symmetric":
            for address, port in self.served:
                inwards.append(f"{came} udp dport {port + self.offset} dnat to {address}:{port}")
                outwards.append(f'oifname "wan" ip saddr {address} udp sport {port} snat to {self.address}:{port + self.offset}')
                hairpins.append(f"ip saddr {address} udp sport {port} ct status dnat snat to {self.address}:{port + self.offset}")
        hairpins.append(f"ip saddr {self.network} ct status dnat meta l4proto udp snat to {self.address}")
        outwards.append(
            'oifname "wan" '
            + {"symmetric": "masquerade random", "linux": "masquerade"}.get(kind, f"snat to {self.address}")
        )
        if hairpin:
            outwards += [f'oifname "lan" {line}' for line in hairpins]
        if self.nat.blocks_udp:
            passes.append("meta l4proto udp drop")
        if kind == "restricted":
            passes.append(f'oifname "wan" update @contacted {{ ip daddr timeout {seconds}s }}')
            passes.append('iifname "wan" ip saddr @contacted accept')
        passes.append('iifname "wan" ct state established,related accept')
        if self.nat.forwards_ports:
            passes.append('iifname "wan" ct status dnat accept')
        if kind != "full-cone":
            passes.append('iifname "wan" drop')
        # A packet that arrives before anything was sent to its source must not become a connection to the router: the kernel
        # would then give the port to that, and another one to the machine behind.
        closed = ['iifname "wan" ct state new drop']
        lines = [
            "table ip nat {",
            "  map mapped { type inet_service : ipv4_addr . inet_service; flags dynamic,timeout; size 65536; }",
            "  set contacted { type ipv4_addr; flags dynamic,timeout; size 65536; }",
            *_chain("prerouting", "nat hook prerouting priority dstnat", inwards),
            *_chain("postrouting", "nat hook postrouting priority srcnat", outwards),
            *_chain("forward", "filter hook forward priority filter", passes),
            *_chain("input", "filter hook input priority filter", closed),
            "}",
        ]
        if self.internet.ipv6:
            firewall = ['iifname "wan" ct state established,related accept', 'iifname "wan" drop']
            lines += [
                "table ip6 firewall {",
                *_chain("forward", "filter hook forward priority filter", firewall),
                *_chain("input", "filter hook input priority filter", closed),
                "}",
            ]
        return lines


def _chain(name, hook, rules):
    return [f"  chain {name} {{", f"    type {hook}", *(f"    {rule}" for rule in rules), "  }"]
