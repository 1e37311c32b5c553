"""Leadership circulates among the sample programs in C and C#, each of which learns of it from its leadership events.

`transfer.py LOBBY_C LOBBY_EXE`. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import os
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import demo

TIMEOUT_SECONDS = 30.0
ROUNDS = 10
LEADS, LEADS_NO_LONGER = "I lead", "I lead no longer"


class Host(demo.Host):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.leaderships = []
        self.errors = []

    def understand(self, text, now):
        super().understand(text, now)
        text = text.removeprefix(f"[{self.name}] ")
        if text in (LEADS, LEADS_NO_LONGER):
            self.leaderships.append(text)
        if text.startswith("error"):
            self.errors.append(text)


def main():
    lobby_c, lobby_exe = sys.argv[1:]
    changed = threading.Condition()
    library = Path(os.environ["MMN_LIBRARY"]).resolve()
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library.parent))
    commands = {"c": [lobby_c], "sharp": ["mono", lobby_exe]}
    screen = demo.Screen()
    hosts = [Host(name, command, environment, screen, changed) for name, command in commands.items()]

    def wait(what, condition):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with changed:
            while not condition():
                assert time.monotonic() < deadline, f"not within {TIMEOUT_SECONDS:g} s: {what}"
                changed.wait(0.1)
                assert all(host.alive() for host in hosts if host.process) and not any(host.errors for host in hosts)

    def one_leader():
        leaders = {host.leader for host in hosts}
        return len(leaders) == 1 and leaders <= set(commands)

    session = f"transfer-{os.getpid()}"
    try:
        hosts[0].start(session)
        wait("the C program listens", lambda: hosts[0].address)
        hosts[1].start(session, hosts[0].address)
        wait("both are linked", lambda: all(len(host.members) == 2 for host in hosts))
        wait("one leader", one_leader)
        for number in range(ROUNDS):
            old = next(host for host in hosts if host.name == hosts[0].leader)
            new = next(host for host in hosts if host is not old)
            # By every function that makes a leader.
            line = [f"/transfer {new.name}", "/yield", f"/leader {new.name}"][number % 3]
            old.type(line)
            wait(f"{line} of {old.name}", lambda: all(host.leader == new.name for host in hosts))
            wait(f"{new.name} is notified that it leads", lambda: new.leaderships[-1:] == [LEADS])
            wait(f"{old.name} is notified that it leads no longer", lambda: old.leaderships[-1:] == [LEADS_NO_LONGER])
        with changed:
            for host in hosts:
                expected = [LEADS, LEADS_NO_LONGER] * len(host.leaderships)
                assert host.leaderships == expected[: len(host.leaderships)], f"{host.name}: {host.leaderships}"
                assert host.leaderships.count(LEADS) >= ROUNDS // 2, f"{host.name}: {host.leaderships}"
            for host in hosts:
                host.quit()
        for host in hosts:
            assert host.exit_code(TIMEOUT_SECONDS) == 0, host.name
    finally:
        for host in hosts:
            if host.alive():
                host.kill()
    print("ok")


if __name__ == "__main__":
    main()
