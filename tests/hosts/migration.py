"""The samples' shared state while its leaders die: members in C# and Python, one room, constant commands.

`migration.py NAME LOBBY_EXE` runs one story. Run by `tests/hosts`; MMN_LIBRARY names the library.

Every command adds this member's unit to the counter, so that the counter shows the number of applied commands of each member. A
command is "confirmed" when the lobby has printed it.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).with_name("puppet"))]

import demo
import lab

UNITS = {"ann": 1, "bob": 1_000, "cid": 1_000_000}
LIMIT = 999  # commands of each member, so that the counter can be read
LANGUAGES = {"ann": "csharp", "bob": "python", "cid": "csharp"}
KILLS = 3
PROGRESS = 8  # confirmed commands of each member between two events
PAUSE_SECONDS = 0.08
TIMEOUT_SECONDS = 60.0
STOPPED_SECONDS = 4.0


class Member(demo.Host):
    """A process; one name may have several, one after the other."""

    def __init__(self, *arguments, machine=None):
        super().__init__(*arguments)
        self.machine = machine
        if machine:
            self.command = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{machine.namespace}"] + self.command
        self.typed = 0
        self.chat = []

    def understand(self, text, now):
        super().understand(text, now)
        prefix = f"[{self.name}] chat "
        if text.startswith(prefix):
            self.chat.append(text[len(prefix) :])

    def crash(self):
        self.kill()
        # Its output before its death counts.
        self._reader.join(TIMEOUT_SECONDS)


class Story(demo.Room):
    """A room, and a thread that gives all its members commands."""

    def __init__(self, lobby, machines=None):
        super().__init__({}, demo.Screen(), f"migration-{os.getpid()}")
        library = Path(os.environ["MMN_LIBRARY"]).resolve()
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
        self.commands = {
            "csharp": ["mono", lobby],
            "python": [sys.executable, str(ROOT / "examples" / "python" / "lobby.py")],
        }
        self.machines = machines or {}
        self.hosts = [self.member(name) for name in UNITS]
        self.gone = []
        self.streaming = threading.Event()
        self.ended = threading.Event()
        self.lines = 0
        self.stream = threading.Thread(target=self.talk, daemon=True)

    def member(self, name):
        command = self.commands[LANGUAGES[name]]
        machine = self.machines.get(name)
        return Member(name, command, self.environment, self.screen, self.changed, machine=machine)

    def talk(self):
        while not self.ended.wait(PAUSE_SECONDS):
            if not self.streaming.is_set():
                continue
            with self.changed:
                for host in self.hosts:
                    if host.alive() and self.typed(host.name) < LIMIT:
                        host.typed += 1
                        host.type(f"/add {UNITS[host.name]}")

    def of(self, name):
        return [host for host in self.hosts + self.gone if host.name == name]

    def typed(self, name):
        return sum(host.typed for host in self.of(name))

    def confirmed(self, name):
        return sum(confirmed(host) for host in self.of(name))

    def applied(self):
        """Number of commands of each member in the counter."""
        counter = self.hosts[0].state.counter
        return {name: counter // unit % (LIMIT + 1) for name, unit in UNITS.items()}

    def open(self):
        self.start(TIMEOUT_SECONDS)
        self.stream.start()
        self.streaming.set()
        self.agree(self.hosts)

    def agree(self, hosts):
        """Waits for one leader among these; each of them must get commands confirmed under it."""
        names = {host.name for host in hosts}

        def lack():
            leaders = [host.leader for host in hosts]
            if len(set(leaders)) != 1 or leaders[0] not in names:
                return f"no agreement on a leader: {leaders}"
            return None

        self.wait(hosts, TIMEOUT_SECONDS, lack)
        with self.changed:
            before = {host.name: confirmed(host) for host in hosts}

        def idle():
            slow = [host.name for host in hosts if confirmed(host) < before[host.name] + PROGRESS]
            return lack() or (f"no progress of {slow}" if slow else None)

        self.wait(hosts, TIMEOUT_SECONDS, idle)
        return self.by_name(hosts[0].leader)

    def settle(self):
        """Waits until every command is confirmed and all replicas are the same."""
        self.streaming.clear()
        settled_at = time.monotonic()

        def lack():
            for host in self.hosts:
                if host.members_at <= settled_at or host.state is None or host.state.unconfirmed:
                    return f"{host.name} has {host.state}"
                if confirmed(host) != host.typed:
                    return f"{host.name}: {confirmed(host)} of {host.typed} commands are confirmed"
            if len({host.state.digest for host in self.hosts}) != 1:
                return f"the replicas differ: {[host.state for host in self.hosts]}"
            return None

        self.wait(self.hosts, TIMEOUT_SECONDS, lack)

    def __exit__(self, *details):
        self.ended.set()
        super().__exit__(*details)


def confirmed(host):
    return sum(command.startswith("add ") for command in host.confirmed)


def nothing_that_was_confirmed_is_lost_when_three_leaders_are_killed(lobby):
    with Story(lobby) as room:
        room.open()
        for number in range(KILLS):
            victim = room.agree(room.hosts)
            with room.changed:
                room.hosts.remove(victim)
                room.gone.append(victim)
            victim.crash()
            room.screen.note(f"killed {victim.name}, the leader, with {confirmed(victim)} of {victim.typed} confirmed")
            room.agree(room.hosts)

            again = room.member(victim.name)
            contact = room.hosts[0].address
            again.start(room.session, contact)
            with room.changed:
                room.hosts.append(again)
            room.agree(room.hosts)
        room.settle()

        applied = room.applied()
        for name in UNITS:
            in_doubt = sum(host.typed - confirmed(host) for host in room.gone if host.name == name)
            room.screen.note(f"{name}: {room.confirmed(name)} confirmed, {in_doubt} in doubt, {applied[name]} applied")
            assert room.confirmed(name) <= applied[name], f"commands of {name} are lost"
            assert applied[name] <= room.confirmed(name) + in_doubt, f"commands of {name} were applied twice"
        room.leave(room.hosts)


def a_leader_that_was_stopped_does_not_overwrite_the_state(lobby):
    with Story(lobby) as room:
        room.open()
        stale = room.agree(room.hosts)
        others = [host for host in room.hosts if host is not stale]
        for host in room.hosts:
            host.type(f"{host.name} before")
        stale.process.send_signal(signal.SIGSTOP)
        try:
            stopped_at = time.monotonic()
            fresh = room.agree(others)
            # Commands for the stopped process wait in its standard input: it will apply them as if it still led.
            stale.type("a word of the old leader")
            time.sleep(max(0.0, stopped_at + STOPPED_SECONDS - time.monotonic()))
        finally:
            stale.process.send_signal(signal.SIGCONT)
        assert room.agree(room.hosts) is fresh, "the leader that was stopped leads again"
        room.settle()

        # No member died: each command was applied exactly once.
        typed = {name: room.typed(name) for name in UNITS}
        assert room.applied() == typed, f"{room.applied()} were applied of {typed}"
        for host in others:
            assert host.chat.count(f"{stale.name}: a word of the old leader") == 1, f"{host.name} saw {host.chat}"
        room.leave(room.hosts)


def a_leader_that_was_cut_off_is_refused_when_it_comes_back(lobby):
    """It leads on for a while, and its updates wait for the others in its library, under its old stamp."""
    with lab.Lab(*UNITS) as machines, Story(lobby, machines.hosts) as room:
        room.open()
        stale = room.agree(room.hosts)
        others = [host for host in room.hosts if host is not stale]
        stale.machine.cut()
        stale.type("a word of the old leader")
        own = f"{stale.name}: a word of the old leader"
        room.wait([stale], TIMEOUT_SECONDS, lambda: None if own in stale.chat else f"{stale.name} did not apply it")
        fresh = room.agree(others)
        room.wait(
            others,
            TIMEOUT_SECONDS,
            lambda: None if fresh.state.position[0] > stale.state.position[0] else "no new leadership",
        )
        stale.machine.join()
        assert room.agree(room.hosts) is fresh, "the leader that was cut off leads again"
        room.settle()
        typed = {name: room.typed(name) for name in UNITS}
        assert room.applied() == typed, f"{room.applied()} were applied of {typed}"
        # Applied twice at the old leader, where the first time did not count; once at every other member.
        for host in others:
            assert host.chat.count(own) == 1, f"{host.name} saw {host.chat}"
        assert stale.chat.count(own) <= 2, stale.chat
        room.leave(room.hosts)


def main():
    name, lobby = sys.argv[1:]
    started = time.monotonic()
    try:
        globals()[name](lobby)
    except demo.DemoFailed as failure:
        print(f"FAILED {name}: {failure}", file=sys.stderr)
        return 1
    print(f"ok {name} {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
