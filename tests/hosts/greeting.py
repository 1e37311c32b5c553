"""Programs that use an installed package: each prints its address, greets every other member, prints "MEMBER: TEXT" for each
message, and leaves at the end of its input.
"""

import queue
import subprocess
import threading

TIMEOUT_SECONDS = 60.0


class Member:
    """A running program; leaving the `with` ends it if it still runs."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.printed = []
        self._lines = queue.Queue()
        self.process = subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def line(self):
        """The next line that it prints."""
        try:
            line = self._lines.get(timeout=TIMEOUT_SECONDS)
        except queue.Empty:
            raise AssertionError(f"{self.name} printed nothing more within {TIMEOUT_SECONDS:.0f} s, after {self.printed}") from None
        assert line is not None, f"{self.name} ended with {self.process.wait()} after {self.printed}"
        self.printed.append(line)
        return line

    def state(self):
        """Its output so far, and whether it still runs."""
        while not self._lines.empty():
            self.printed.append(self._lines.get())
        code = self.process.poll()
        return f"{self.name} printed {self.printed} and " + ("still runs" if code is None else f"ended with {code}")

    def wait_for(self, wanted):
        while wanted not in self.printed:
            self.line()

    def leave(self):
        self.process.stdin.close()
        code = self.process.wait(TIMEOUT_SECONDS)
        assert code == 0, f"{self.name} left with {code}, after {self.printed}"

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\r\n"))
        self._lines.put(None)


def greet_each_other(first, second, environment=None):
    """Runs two programs, (name, command, its greeting) each; the second dials the first. Both get the other's greeting."""
    name, command, greeting = first
    with Member(name, [*command, name], environment) as one:
        address = one.line()
        other_name, other_command, other_greeting = second
        with Member(other_name, [*other_command, other_name, address], environment) as other:
            try:
                one.wait_for(f"{other_name}: {other_greeting}")
                other.wait_for(f"{name}: {greeting}")
            except AssertionError as error:
                raise AssertionError(f"{error}\n{one.state()}\n{other.state()}") from None
            one.leave()
            other.leave()
            print(f"{name}: {one.printed} | {other_name}: {other.printed}")
