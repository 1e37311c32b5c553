"""The lobby in four languages as one room, whose state outlives kills, pauses, cuts and transfers of its leader.

`migration.py STORY OUTPUT` builds the lobbies in the folder OUTPUT and runs one story. Run by `tests/hosts`; MMN_LIBRARY names the
library.

All the time each member adds its unit to the counter and submits numbered lines. So the counter shows the number of additions of each
member, and the chat each line.
"""

import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).with_name("puppet"))]

import demo
import lab
import stories

LIMIT = 998  # additions of each member, so that the counter can be read
UNITS = {"csharp": 1, "cpp": LIMIT + 1, "python": (LIMIT + 1) ** 2, "c": (LIMIT + 1) ** 3}
PROGRESS = 8  # confirmed additions of each member between two events
PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 60.0
TAIL_ENTRIES = 4096  # that a member keeps, by default
BURST = 128  # lines at a time; a member may have 256 open requests
CHAT_LINES = 50


class Member(demo.Host):
    """A process; one name may have several, one after the other."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.typed = 0
        self.chat = []
        self.forked = False
        self.linked = set()

    def understand(self, text, now):
        super().understand(text, now)
        if match := re.fullmatch(r"\[.+?\] chat (.*)", text):
            self.chat.append(match[1])
        if re.fullmatch(r"\[.+?\] loaded .*", text):
            self.chat.clear()  # actions that the snapshot lacks come again
        if match := re.fullmatch(r"\[.+?\] the state (forks|goes on) under .*", text):
            self.forked = match[1] == "forks"
        if match := re.fullmatch(r"\[.+?\] peer (\S+) (connected|is back|left|is lost and dialled again)", text):
            (self.linked.add if match[2] in ("connected", "is back") else self.linked.discard)(match[1])

    def crash(self):
        self.kill()
        # Its output before its death counts.
        self._reader.join(TIMEOUT_SECONDS)

    def added(self):
        return sum(command.startswith("add ") for command in self.confirmed)

    def undone(self):
        return self.rolled_back.count((self.name, f"add {UNITS[self.name]}"))


class Story(demo.Room):
    """A room, and a thread that makes all its members act."""

    def __init__(self, machines=None):
        super().__init__({}, demo.Screen(), f"migration-{os.getpid()}")
        commands = demo.build_hosts(Path(os.environ["MMN_LIBRARY"]), ROOT / "include", Path(sys.argv[2]))
        self.hosts = [Member(name, *commands[name], self.screen, self.changed) for name in UNITS]
        for host in self.hosts:
            if machines:
                host.machine = machines[host.name]
                host.command = lab.inside(host.machine.namespace) + host.command
                host.pass_fds = [host.machine.namespace]
        self.gone = []
        self.streaming = threading.Event()
        self.ended = threading.Event()
        self.stream = threading.Thread(target=self.talk, daemon=True)

    def __enter__(self):
        self.start(TIMEOUT_SECONDS)
        self.stream.start()
        self.streaming.set()
        self.agree(self.hosts)
        return self

    def __exit__(self, *details):
        self.ended.set()
        super().__exit__(*details)

    def talk(self):
        while not self.ended.wait(PAUSE_SECONDS):
            with self.changed:
                for host in self.hosts if self.streaming.is_set() else []:
                    if host.alive() and self.typed(host.name) < LIMIT:
                        host.typed += 1
                        host.type(f"/add {UNITS[host.name]}")
                        host.type(f"line {self.typed(host.name)}")

    def typed(self, name):
        return sum(host.typed for host in self.hosts + self.gone if host.name == name)

    def kill(self, host):
        with self.changed:
            self.hosts.remove(host)
            self.gone.append(host)
        host.crash()
        self.screen.note(f"killed {host.name}, with {host.added()} of {host.typed} additions confirmed")

    def agree(self, hosts):
        """Waits for one leader among these, which gets additions of each of them confirmed."""
        names = {host.name for host in hosts}

        def lack():
            leaders = [host.leader for host in hosts]
            if len(set(leaders)) != 1 or leaders[0] not in names:
                return f"no agreement on a leader: {leaders}"
            return None

        self.wait(hosts, TIMEOUT_SECONDS, lack)
        with self.changed:
            before = {host: host.typed for host in hosts}

        def idle():
            slow = [host.name for host in hosts if host.added() + host.undone() < before[host] + PROGRESS]
            return lack() or (f"no progress of {slow}" if slow else None)

        self.wait(hosts, TIMEOUT_SECONDS, idle)
        return self.by_name(hosts[0].leader)

    def transfer_to(self, host):
        if self.hosts[0].leader != host.name:
            self.by_name(self.hosts[0].leader).type(f"/transfer {host.name}")
        wrong = lambda: [other.name for other in self.hosts if other.leader != host.name]
        self.wait(self.hosts, TIMEOUT_SECONDS, lambda: f"{host.name} does not lead for {wrong()}" if wrong() else None)

    def map_is(self, hosts, name):
        other = lambda: [(host.name, host.state) for host in hosts if not host.state or host.state.map != name]
        self.wait(hosts, TIMEOUT_SECONDS, lambda: f"the map is not {name}: {other()}" if other() else None)

    def settle(self):
        """Waits until all that was typed is confirmed, and perhaps undone by a merge, and the state of all is equal."""
        self.streaming.clear()
        settled_at = time.monotonic()

        def lack():
            for host in self.hosts:
                if host.members_at <= settled_at or host.state.unconfirmed:
                    return f"{host.name} has {host.state}"
                if host.added() + host.undone() != host.typed:
                    return f"{host.name}: of {host.typed} additions {host.added()} are confirmed, {host.undone()} undone"
            if len({(host.state.counter, host.state.digest, host.state.map) for host in self.hosts}) != 1:
                return f"the states differ: {[host.state for host in self.hosts]}"
            return None

        self.wait(self.hosts, TIMEOUT_SECONDS, lack)

    def check(self, undone=()):
        """Compares the counter and the chat with what was confirmed. A merge may have undone something at members in `undone`, which
        were alone: their own actions, and at no other member."""
        for name, unit in UNITS.items():
            applied = self.hosts[0].state.counter // unit % (LIMIT + 1)
            confirmed = sum(host.added() for host in self.hosts + self.gone if host.name == name)
            in_doubt = sum(host.typed - host.added() for host in self.gone if host.name == name)
            self.screen.note(f"{name}: {confirmed} confirmed, {in_doubt} in doubt, {applied} applied")
            assert confirmed <= applied, f"additions of {name} are lost"
            assert applied <= confirmed + in_doubt, f"additions of {name} were applied twice"
        said = {f"{host.name}: {text[4:]}" for host in self.hosts + self.gone for text in host.confirmed if text.startswith("say ")}
        for host in self.hosts:
            assert {author for author, _ in host.rolled_back} <= {host.name} & set(undone), f"{host.name}: {host.rolled_back}"
            assert len(host.chat) == len(set(host.chat)), f"{host.name} received lines twice: {Counter(host.chat).most_common(3)}"
            assert said <= set(host.chat), f"{host.name} lacks {sorted(said - set(host.chat))}"


# ---------------------------------------------------------------- stories


def nothing_that_was_confirmed_is_lost_when_each_leader_is_killed():
    with Story() as room:
        for name in UNITS:
            victim = room.by_name(name)
            room.transfer_to(victim)
            room.kill(victim)
            room.hosts[0].type(f"/map without {name}")
            room.agree(room.hosts)
            room.restart(victim, room.hosts[0].address, TIMEOUT_SECONDS)
            room.agree(room.hosts)
            room.map_is(room.hosts, f"without {name}")
        room.settle()
        room.check()
        room.leave(room.hosts)


def nothing_is_lost_or_repeated_when_the_leadership_is_transferred():
    with Story() as room:
        for name in UNITS:
            leader = room.by_name(name)
            room.transfer_to(leader)
            leader.type(f"/map of {name}")
            room.map_is(room.hosts, f"of {name}")
            leader.type("/yield")
            room.wait(room.hosts, TIMEOUT_SECONDS, lambda: None if leader.leader != name else f"{name} did not yield")
            room.agree(room.hosts)
        room.settle()
        room.check()
        room.leave(room.hosts)


def a_leader_that_was_stopped_undoes_nothing():
    with Story() as room:
        for name in UNITS:
            stale = room.by_name(name)
            room.transfer_to(stale)
            others = [host for host in room.hosts if host is not stale]
            stale.process.send_signal(signal.SIGSTOP)
            try:
                fresh = room.agree(others)
                # It reads this when it runs again, before it knows that others went on.
                stale.type(f"{name} was away")
                fresh.type(f"/map without {name}")
                room.map_is(others, f"without {name}")
            finally:
                stale.process.send_signal(signal.SIGCONT)
            assert room.agree(room.hosts) is fresh, f"{name} leads again"
        room.settle()
        room.check()
        for host in room.hosts:
            assert {f"{name}: {name} was away" for name in UNITS} <= set(host.chat), host.chat
        room.leave(room.hosts)


def a_leader_that_was_cut_off_reports_what_the_merge_undid():
    """It forks and goes on alone. The others are the majority: their state stays."""
    with lab.Lab(*UNITS) as machines, Story(machines.hosts) as room:
        for name in UNITS:
            stale = room.by_name(name)
            room.transfer_to(stale)
            others = [host for host in room.hosts if host is not stale]
            fork(room, stale)
            fresh = room.agree(others)
            fresh.type(f"/map without {name}")
            room.map_is(others, f"without {name}")
            stale.machine.join()
            assert room.agree(room.hosts) is fresh, f"{name} leads again"
            room.map_is(room.hosts, f"without {name}")
        room.settle()
        room.check(undone=UNITS)
        resubmitted(room, *UNITS)
        room.leave(room.hosts)


def the_majority_keeps_its_state_when_it_loses_its_leader_at_the_merge():
    """The leader that is killed has just linked the member that was cut off."""
    with lab.Lab(*UNITS) as machines, Story(machines.hosts) as room:
        leader, stale = room.by_name("csharp"), room.by_name("c")
        room.transfer_to(leader)
        others = [host for host in room.hosts if host not in (leader, stale)]
        fork(room, stale)
        leader.type("/map of the majority")
        room.agree([leader, *others])
        room.map_is(others, "of the majority")
        assert stale.name not in leader.linked
        stale.machine.join()
        room.wait([leader], TIMEOUT_SECONDS, lambda: None if stale.name in leader.linked else f"{stale.name} is not back")
        room.kill(leader)
        room.agree(room.hosts)
        room.map_is(room.hosts, "of the majority")
        room.settle()
        room.check(undone=[stale.name])
        resubmitted(room, stale.name)
        room.leave(room.hosts)


def a_newcomer_receives_what_no_log_has_any_more():
    """Each program in turn is the newcomer, and each leads once, whose snapshot a newcomer gets."""
    with Story() as room:
        room.settle()
        for number in range(1, TAIL_ENTRIES // len(UNITS) // BURST + 2):
            for host in room.hosts:
                for _ in range(BURST):
                    host.type(f"{host.name} says more")
            few = lambda: [host.name for host in room.hosts if host.chat.count(f"{host.name}: {host.name} says more") < number * BURST]
            room.wait(room.hosts, TIMEOUT_SECONDS, lambda: f"lines of {few()} are missing" if few() else None)
        room.hosts[0].type("/map of old")
        room.map_is(room.hosts, "of old")
        names = list(UNITS)
        for name, provider in zip(names, names[1:] + names[:1]):
            room.transfer_to(room.by_name(provider))
            room.kill(room.by_name(name))
            counter = room.hosts[0].state.counter
            again = room.restart(room.gone[-1], room.hosts[0].address, TIMEOUT_SECONDS)
            room.wait_for_state(room.hosts, counter, CHAT_LINES, TIMEOUT_SECONDS, place="of old")
            assert not again.chat, f"{name} received its lines as actions: {again.chat[:3]}"
        room.leave(room.hosts)


# ---------------------------------------------------------------- helpers


def fork(room, stale):
    """Cuts the member off, and waits until it has gone on alone."""
    stale.machine.cut()
    room.wait([stale], TIMEOUT_SECONDS, lambda: None if stale.forked else f"{stale.name} has not forked")
    stale.type(f"{stale.name} is alone")
    stale.type(f"/map of {stale.name} alone")
    room.map_is([stale], f"of {stale.name} alone")
    room.agree([stale])


def resubmitted(room, *names):
    """These report what they had done alone, and all have received the lines that they said then."""
    for name in names:
        member = room.by_name(name)
        assert (name, f"say {name} is alone") in member.rolled_back and member.undone() >= PROGRESS, member.rolled_back
        assert all(f"{name}: {name} is alone" in host.chat for host in room.hosts), f"the line of {name} was not said again"


if __name__ == "__main__":
    stories.main(globals())
