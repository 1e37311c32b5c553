"""The samples of the room's state (examples/*/state.*, csharp-sample/state) in four languages, as the members of one room.

`samples_of_state.py STORY C_PROGRAM CPP_PROGRAM CSHARP_PROGRAM`. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import demo
import stories

TIMEOUT_SECONDS = 40.0
ROUNDS = 20
PYTHON = [sys.executable, str(ROOT / "examples" / "python" / "state.py")]
PROGRAMS = {"c": sys.argv[2:3], "cpp": sys.argv[3:4], "csharp": ["mono", *sys.argv[4:5]], "python": PYTHON}
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=str(Path(os.environ["MMN_LIBRARY"]).resolve().parent))


class Host(demo.Host):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.lines = []

    def arguments(self, session, contact):
        return [self.name, session]

    def understand(self, text, now):
        self.lines.append(text)
        if text.startswith("leader "):
            self.leader = text[len("leader ") :]

    def actions(self):
        return [line for line in self.lines if line.startswith(("counter ", "chat "))]

    def chat(self):
        return [line[len("chat ") :] for line in self.lines if line.startswith("chat ")]

    def claims(self):
        return [line for line in self.lines if line.startswith("claim ")]


class Room(demo.Room):
    def __init__(self, *names):
        super().__init__({}, demo.Screen(), f"state-{os.getpid()}")
        self.hosts = [self.host(name, PROGRAMS[name]) for name in names]

    def host(self, name, command):
        return Host(name, command, ENVIRONMENT, self.screen, self.changed)

    def wait_for_actions(self, hosts, count):
        """Each has received `count` actions, in one order; none comes twice."""

        def lack():
            short = [f"{host.name} has {len(host.actions())}" for host in hosts if len(host.actions()) < count]
            return f"not {count} actions: {', '.join(short)}" if short else None

        self.wait(hosts, TIMEOUT_SECONDS, lack)
        for host in hosts:
            assert host.actions() == hosts[0].actions(), f"{host.name}: {host.actions()}\n{hosts[0].name}: {hosts[0].actions()}"
        assert len(hosts[0].actions()) == count, hosts[0].actions()

    def wait_for_line(self, hosts, line):
        absent = lambda: [host.name for host in hosts if line not in host.lines]
        self.wait(hosts, TIMEOUT_SECONDS, lambda: f"{absent()} did not print {line!r}" if absent() else None)


def a_leader_in_c_is_killed():
    the_leader_is_killed("c", "cpp", "python", "csharp")


def a_leader_in_cpp_is_killed():
    the_leader_is_killed("cpp", "csharp", "python", "c")


def a_leader_in_python_is_killed():
    the_leader_is_killed("python", "c", "csharp", "cpp")


def a_leader_in_csharp_is_killed():
    the_leader_is_killed("csharp", "cpp", "python", "c")


def the_leader_is_killed(*names):
    with Room(*names) as room:
        leader, *others = room.hosts
        leader.start(room.session)
        room.wait_for_line([leader], f"leader {leader.name}")
        for line in ("1", "hello", "/map forest"):
            leader.type(line)
        room.wait_for_line([leader], "map is forest")
        for host in others:
            host.start(room.session)
        room.wait_for_line(room.hosts, "map is forest")
        room.wait_for_line(others, f"leader {leader.name}")
        room.wait_for_actions(room.hosts, 2)

        for number in range(ROUNDS):
            for host in room.hosts:
                host.type("1")
                host.type(f"line {number}")
        count = 2 + 2 * ROUNDS * len(names)
        room.wait_for_actions(room.hosts, count)
        room.wait_for_line(room.hosts, f"counter {1 + ROUNDS * len(names)}")

        # One claim wins. The sample in C prints nothing for the others.
        for host in room.hosts:
            host.type("/claim ball")
        speaking = [host for host in room.hosts if host.name != "c"]
        room.wait(room.hosts, TIMEOUT_SECONDS, lambda: None if all(host.claims() for host in speaking) else "a claim has no result")
        for host in room.hosts:
            host.type("claimed")
        count += len(names)
        room.wait_for_actions(room.hosts, count)
        results = [result for host in room.hosts for result in host.claims()]
        assert results.count("claim won") == 1, results

        # The others go on at once, while no member leads.
        leader.kill()
        for number in range(ROUNDS):
            for host in others:
                host.type("1")
                host.type(f"later {number}")
        others[0].type("/map caves")
        count += 2 * ROUNDS * len(others)
        room.wait_for_actions(others, count)
        room.wait_for_line(others, "map is caves")

        late = room.host("late", PYTHON)
        room.hosts.append(late)
        late.start(room.session)
        everyone = [*others, late]
        room.wait_for_line([late], "map is caves")
        room.wait_for_actions(everyone, count)
        late.type("bye")
        room.wait_for_actions(everyone, count + 1)
        total = 1 + ROUNDS * len(names) + ROUNDS * len(others)
        expected = [f"{leader.name}: hello", "late: bye"]
        expected += [f"{name}: line {number}" for name in names for number in range(ROUNDS)]
        expected += [f"{name}: claimed" for name in names]
        expected += [f"{host.name}: later {number}" for host in others for number in range(ROUNDS)]
        for host in everyone:
            assert sorted(host.chat()) == sorted(expected), host.chat()
            assert [line for line in host.lines if line.startswith("counter ")][-1] == f"counter {total}", host.lines
        for host in everyone:
            host.quit()
        for host in everyone:
            assert host.exit_code(TIMEOUT_SECONDS) == 0, f"{host.name}: {host.process.returncode}, {host.lines[-5:]}"


if __name__ == "__main__":
    stories.main(globals())
