#!/usr/bin/env python3
"""Two homes behind routers, a relay, and a code.

Builds an internet of network namespaces on this machine: two homes, each behind a router that admits only answers, and a machine
with an address of its own, which runs a relay. A lobby in C++ is in the one home and one in Python in the other; each gets the
relay's address and the room's code, and nothing else. Waits until the relay links them, until the link is a direct one, and shows
that neither lost a message over the change. Then kills the relay, and shows that the two notice nothing. Exits with 0 only if all
of that happened.

The library and the relay must have been built (target/release). Needs root, nftables and conntrack.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import demo
from demo import PHASE_SECONDS, ROOT, DemoFailed, Host, Screen, build_hosts

sys.path.insert(0, str(ROOT / "tests/lab"))
from internet import Internet, Nat, check  # noqa: E402
from network import CannotRun, inside  # noqa: E402

RELAY_PORT = 7843
APART_SECONDS = 4.0
"""How long the two routers let nothing pass between the homes, so that the relay's part is seen."""
WITHOUT_RELAY_SECONDS = 5.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=Path, default=ROOT / "target" / "release" / demo.LIBRARY_NAME)
    parser.add_argument("--relay", type=Path, default=ROOT / "target" / "release" / "mmn-relay", help="the relay's program")
    parser.add_argument("--include", type=Path, default=ROOT / "include", help="the folder of the C header")
    parser.add_argument("--output", type=Path, default=ROOT / "target" / "demo", help="where the hosts are built")
    arguments = parser.parse_args()
    screen = Screen()
    try:
        check()
        if not arguments.relay.exists():
            raise DemoFailed(f"{arguments.relay} does not exist; build the relay first (make demo-internet does)")
        screen.note("building the hosts")
        commands = build_hosts(arguments.library, arguments.include, arguments.output)
        with Internet() as net, tempfile.TemporaryDirectory() as folder:
            seconds = play(net, Path(folder), commands, arguments.relay, screen)
    except CannotRun as reason:
        screen.note(f"FAILED: this machine cannot run it: it {reason}", bad=True)
        return 1
    except DemoFailed as failure:
        screen.note(f"FAILED: {failure}", bad=True)
        return 1
    except KeyboardInterrupt:
        return 130
    linked, direct = seconds
    screen.note(
        f"OK: two players at home met by a code. The relay linked them {linked:.1f} s after the second one opened the room, their "
        f"link became a direct one {direct:.1f} s after their routers allowed it, and they play on without the relay",
        good=True,
    )
    return 0


def play(net, folder, commands, program, screen):
    """The demo itself: (seconds until the relay's link, and until the direct one), or DemoFailed."""
    machine = net.host("relay")
    routers = {name: net.router(f"router of {name}", Nat("port-restricted")) for name in ("cpp", "python")}
    homes = {name: net.host(name, behind=router) for name, router in routers.items()}
    wall(routers, True)
    room = demo.Room({}, screen, session=room_code())
    for name, home in homes.items():
        command, environment = commands[name]
        reaches = ["--relays", f"{machine.address}:{RELAY_PORT}"]
        host = Host(name, inside(home.namespace) + command + reaches, environment, screen, room.changed)
        host.pass_fds = (home.namespace,)
        room.hosts.append(host)
    relay = start_relay(machine, folder, program, screen)
    try:
        with room:
            return play_room(room, relay, routers, screen)
    finally:
        relay.kill()
        relay.wait()


def play_room(room, relay, routers, screen):
    first, second = room.hosts
    screen.note(f"{first.name} makes a room code, {room.session}, and opens the room; the relay is its only address")
    first.start(room.session)
    room.wait([first], PHASE_SECONDS, lambda: None if first.address else f"{first.name} did not open the room")
    screen.note(f"{second.name} types the code; both are behind routers that admit nobody")
    second.start(room.session)
    room.wait([second], PHASE_SECONDS, lambda: None if second.address else f"{second.name} did not open the room")
    opened = time.monotonic()
    first_contact(room)
    linked = min(host.received_at[other.name] for host, other in pairs(room)) - opened
    leader = room.wait_for_agreement(room.hosts, PHASE_SECONDS)
    wait_for_path(room, "over a relay")
    screen.note(f"both are in one room over the relay, exchange messages and agree on one leader: {leader}", good=True)
    first.type("/add 1")
    second.type("/add 2")
    room.wait_for_state(room.hosts, counter=3, lines=0)

    time.sleep(APART_SECONDS)
    screen.note("the routers let packets between the two homes pass from now on, as most do")
    opened = time.monotonic()
    wall(routers, False)
    wait_for_path(room, "direct")
    direct = time.monotonic() - opened
    screen.note("the link is a direct one now: no packet between the two passes through the relay any more", good=True)
    first.type("/add 10")
    second.type("/add 20")
    room.wait_for_state(room.hosts, counter=33, lines=0)

    screen.note(f"killing the relay (process {relay.pid}) with SIGKILL")
    relay.kill()
    killed = time.monotonic()
    time.sleep(WITHOUT_RELAY_SECONDS)
    if room.wait_for_agreement(room.hosts, PHASE_SECONDS, since=killed) != leader:
        raise DemoFailed("the death of the relay changed the leader")
    first.type("/add 100")
    second.type("/add 200")
    room.wait_for_state(room.hosts, counter=333, lines=0)
    room.wait_for_movement(room.hosts)
    screen.note("the two play on without the relay: the same leader, and nothing was lost", good=True)
    room.leave(room.hosts)
    return linked, direct


def pairs(room):
    one, other = room.hosts
    return (one, other), (other, one)


def first_contact(room):
    def silence():
        silent = [f"{host.name} received nothing of {other.name}" for host, other in pairs(room) if other.name not in host.received_at]
        return "; ".join(silent) or None

    room.wait(room.hosts, PHASE_SECONDS, silence)


def wait_for_path(room, path):
    def other_path():
        for host, other in pairs(room):
            if host.paths.get(other.name) != path:
                return f"{host.name} reaches {other.name} {host.paths.get(other.name, 'not at all')}, and not {path}"
        return None

    room.wait(room.hosts, PHASE_SECONDS, other_path)


def wall(routers, stands):
    """Whether the routers drop what goes to each other."""
    one, other = routers.values()
    one.wall(*[other.address] if stands else [])
    other.wall(*[one.address] if stands else [])


def start_relay(machine, folder, program, screen):
    """Starts it on its machine, and shows what it prints."""
    process = machine.start([program, "--listen", f"0.0.0.0:{RELAY_PORT}", "--key-file", folder / "key"], stderr=subprocess.STDOUT)
    first = process.stdout.readline()
    if not first:
        raise DemoFailed("the relay did not start")
    screen.line("relay", first.rstrip())

    def show():
        for line in process.stdout:
            screen.line("relay", line.rstrip())

    threading.Thread(target=show, daemon=True).start()
    return process


def room_code():
    sys.path.insert(0, str(ROOT / "bindings/python"))
    os.environ.setdefault("MMN_LIBRARY", str(ROOT / "target" / "release" / demo.LIBRARY_NAME))
    import meta_mystia_network as mmn

    return mmn.generate_room_code()


if __name__ == "__main__":
    sys.exit(main())
