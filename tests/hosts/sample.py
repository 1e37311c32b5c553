"""The C# sample as a process: its commands, its exit code, and how it leaves a room, on purpose or not.

`sample.py STORY COMMAND...`, where COMMAND starts the lobby. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import demo
import stories
from terminal import Terminal

WIDE = "米斯蒂娅"
COMMAND = sys.argv[2:]
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=str(Path(os.environ["MMN_LIBRARY"]).resolve().parent))
SESSION = f"sample-{os.getpid()}"
TIMEOUT_SECONDS = 40.0


class Host(demo.Host):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.lines = []

    def understand(self, text, now):
        super().understand(text, now)
        self.lines.append(text)


class Room(demo.Room):
    """A room of samples, open and with a leader."""

    def __init__(self, *names):
        super().__init__({}, demo.Screen(), SESSION)
        self.hosts = [Host(name, COMMAND, ENVIRONMENT, self.screen, self.changed) for name in names]

    def __enter__(self):
        self.start(TIMEOUT_SECONDS)
        self.wait_for_agreement(self.hosts, TIMEOUT_SECONDS)
        return self

    def leader_first(self):
        leader = self.by_name(self.hosts[0].leader)
        return [leader] + [host for host in self.hosts if host is not leader]

    def wait_for_line(self, host, text):
        line = f"[{host.name}] {text}"
        self.wait([host], TIMEOUT_SECONDS, lambda: None if line in host.lines else f"{host.name} did not print {text!r}")

    def wait_for_leader(self, leader):
        wrong = lambda: [host.name for host in self.hosts if host.leader != leader.name]
        self.wait(self.hosts, TIMEOUT_SECONDS, lambda: f"{leader.name} does not lead for {wrong()}" if wrong() else None)


# ---------------------------------------------------------------- stories


def two_lobbies_chat_transfer_and_kick():
    with Room("alice", WIDE) as room:
        first, second = room.leader_first()
        second.type("茶 is ready")
        for host in (first, second):
            room.wait_for_line(host, f"chat {second.name}: 茶 is ready")
        # The library refuses, and its sentence reaches the player.
        for command in (f"/transfer {first.name}", "/yield", f"/kick {first.name}"):
            second.type(command)
        room.wait([second], TIMEOUT_SECONDS, lambda: None if refusals(second) == 3 else f"{refusals(second)} of 3 refusals")
        first.type(f"/transfer {second.name}")
        room.wait_for_leader(second)
        second.type("/yield")
        room.wait_for_leader(first)
        first.type(f"/kick {second.name}")
        ends(second, 0, "the room is over for me: kicked", "closed")
        room.wait_for_line(first, f"peer {second.name} left")
        first.type("/quit")
        ends(first, 0, "closed")


def a_killed_leader_is_replaced():
    with Room("alice", "bob", "cid") as room:
        for number, host in enumerate(room.hosts, 1):
            host.type(f"/add {number}")
            host.type(f"{host.name} was here")
        room.wait_for_state(room.hosts, counter=6, lines=3)
        leader = room.leader_first()[0]
        killed_at = leader.kill()
        room.hosts.remove(leader)
        room.wait_for_agreement(room.hosts, TIMEOUT_SECONDS, since=killed_at)
        room.hosts[0].type("/add 10")
        room.wait_for_state(room.hosts, counter=16, lines=3)
        room.leave(room.hosts)


def a_lost_member_is_shown_until_it_is_back():
    with Room("alice", "bob") as room:
        alice, bob = room.hosts
        bob.process.send_signal(signal.SIGSTOP)
        room.wait_for_line(alice, "peer bob is lost and dialled again")
        bob.process.send_signal(signal.SIGCONT)
        room.wait_for_line(alice, "peer bob is back")
        room.wait_for_agreement(room.hosts, TIMEOUT_SECONDS)
        room.leave(room.hosts)


def text_of_others_cannot_move_the_cursor():
    with Room("alice", "bob") as room:
        alice, bob = room.hosts
        bob.type("\u009b2Jboo\u202e!")
        for host in room.hosts:
            room.wait_for_line(host, "chat bob: \ufffd2Jboo\ufffd!")
        room.leave(room.hosts)


def a_panel_shows_the_links_and_the_rooms_around():
    with Room("alice", "bob", "cid") as room:
        first, second, third = room.leader_first()
        third.type("/panel")
        room.wait_for_line(third, f"panel: 3 members, leader: {first.name}")
        direct = re.compile(rf"\[{third.name}\] panel: {second.name}: \d+\.\d ms, loss \d+\.\d %, direct, in [\d.]+ K?B/s, out [\d.]+ K?B/s")
        room.wait([third], TIMEOUT_SECONDS, lambda: None if any(map(direct.fullmatch, third.lines)) else "no line of the link")
        killed_at = first.kill()
        room.hosts.remove(first)
        room.wait_for_agreement(room.hosts, TIMEOUT_SECONDS, since=killed_at)
        expected = [f"[{third.name}] panel: {line}" for line in (f"3 members, leader: {third.leader}", f"{first.name}: lost, dialled again")]

        def lacks():
            third.type("/panel")  # again and again: the lines may be a second old
            return [line for line in expected if line not in third.lines] or None

        room.wait([third], TIMEOUT_SECONDS, lacks)
        shown = [*COMMAND, "--id", "dora", "--session", f"{SESSION}-shown", "--card", "Tea"]
        with Terminal(shown, ENVIRONMENT):
            third.type("/rooms")
            room.wait_for_line(third, "found room: Tea, 1 here")
            third.type("/rooms")
            room.wait_for_line(third, "panel: 1 room in the local network")
            listed = re.compile(rf"\[{third.name}\] panel: Tea: 1 player, at [\d.]+:\d+")
            room.wait([third], TIMEOUT_SECONDS, lambda: None if any(map(listed.fullmatch, third.lines)) else "no line of the room")
        room.leave(room.hosts)


def a_failed_dial_ends_it_with_the_librarys_sentence():
    command = [*COMMAND, "--id", "alice", "--session", SESSION, "--connect", "nonsense"]
    done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS, text=True)
    assert done.returncode == 1, done
    assert re.fullmatch(r"\[alice\] error: .*nonsense.* \(-\d+\)\n", done.stderr), done
    assert "closed" not in done.stdout, done


def ctrl_c_leaves_the_room():
    with Room("alice") as room:
        (alice,) = room.hosts
        bob = [*COMMAND, "--id", "bob", "--session", SESSION, "--connect", alice.address]
        with Terminal(bob, {**ENVIRONMENT, "TERM": "xterm-256color"}) as terminal:
            terminal.wait("a leader", lambda lines: any("leader: " in line for line in lines))
            room.wait_for_line(alice, "peer bob connected")
            terminal.type("tea?\n")
            room.wait_for_line(alice, "chat bob: tea?")
            terminal.type("\x03")
            assert terminal.exit_code() == 0, terminal.text()
            # Mono queries the cursor's place before the line.
            assert "[bob] closed\n" in terminal.text(), terminal.text()
        sees_it_leave(room, alice, "bob")
        room.leave([alice])


def a_termination_leaves_the_room():
    """On CoreCLR. Mono ends at once, like every program that does not handle the signal."""
    with Room("alice", "bob") as room:
        alice, bob = room.hosts
        bob.process.send_signal(signal.SIGTERM)
        ends(bob, 128 + signal.SIGTERM)
        sees_it_leave(room, alice, "bob")
        room.leave([alice])


# ---------------------------------------------------------------- what a member printed


def refusals(host):
    return sum(re.fullmatch(r"\[.*\] error: .*only the leader .*\(-6\)", line) is not None for line in host.lines)


def ends(host, code, *last):
    ended = host.exit_code(TIMEOUT_SECONDS)
    lines = [f"[{host.name}] {line}" for line in last]
    printed = host.lines[len(host.lines) - len(lines) :]
    assert ended == code and printed == lines, f"exit code {ended}, not {code}, or not {lines}: {host.lines[-5:]}"


def sees_it_leave(room, host, peer):
    room.wait_for_line(host, f"peer {peer} left")
    assert f"[{host.name}] peer {peer} is lost and dialled again" not in host.lines, host.lines


if __name__ == "__main__":
    stories.main(globals())
