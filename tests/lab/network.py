"""Hosts in network namespaces, joined by the user-space switch (`lab_switch`): `docs/lab.md`.

    with Network("ann", "bob", seed=1) as network:
        network.set("ann", "bob", delay_ms=25, loss=0.02)

The namespaces have no name: file descriptors of this process alone hold them, and the switch ends with its standard input. So
nothing remains, whatever ends this process. All hosts of the lab end with their standard input, too.
"""

import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The modules that control hosts, and the tests of one machine.
sys.path[:0] = [str(ROOT / "tests/hosts/puppet"), str(ROOT / "tests/hosts")]

from lab import inside  # noqa: E402

SWITCH = ROOT / "target/release/lab_switch"
CANNOT_RUN = 3
"""The exit code on a machine that cannot run the lab, as in `lab_switch`."""


class CannotRun(Exception):
    """The missing requirement of this machine, in one line."""


def run_tests(tests, names):
    """Runs the tests whose names have one of these parts, or all, and returns the exit code."""
    found = [test for test in tests if any(name in test.__name__ for name in names)] if names else tests
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


def check():
    """Raises CannotRun if this machine cannot run the lab."""
    if not sys.platform.startswith("linux"):
        raise CannotRun("needs Linux, for network namespaces and TAP devices")
    if os.geteuid() != 0:
        raise CannotRun("needs root, for network namespaces and TAP devices")
    for tool in ("ip", "nsenter", "unshare", "gcc"):
        if shutil.which(tool) is None:
            raise CannotRun(f"needs the program {tool} (Debian: iproute2, util-linux, gcc)")
    if not os.path.exists("/dev/net/tun"):
        raise CannotRun("needs /dev/net/tun: the kernel has no TAP devices, or this container may not use them")
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        raise CannotRun(f"cannot open /dev/net/tun: {error.strerror}") from None
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        raise CannotRun(f"cannot create network namespaces: {probe.stderr.strip()}")
    if not SWITCH.exists():
        raise CannotRun(f"needs {SWITCH.relative_to(ROOT)}: run `make lab`, which builds it")


class Network:
    """Hosts by name, each with one cable to the switch. `seed` decides every loss, delay and duplicate."""

    def __init__(self, *names, seed=1):
        self.names = names
        self.seed = seed
        self.hosts = {}
        self.namespaces = []
        self.switch = None

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.switch is not None:
            self.switch.stdin.close()
            try:
                self.switch.wait(5)
            except subprocess.TimeoutExpired:
                self.switch.kill()
                self.switch.wait()
        for namespace in self.namespaces:
            os.close(namespace)
        self.namespaces.clear()

    def host(self, name):
        return self.hosts[name]

    def set(self, sender, receiver, **settings):
        """Changes the direction from `sender` to `receiver` ("*" is every host); settings that are not named stay."""
        self._command("set", sender, receiver, *(f"{key}={value}" for key, value in settings.items()))

    def both(self, one, other, **settings):
        """Changes both directions."""
        self.set(one, other, **settings)
        self.set(other, one, **settings)

    def clear(self, sender="*", receiver="*"):
        """Resets the direction to a perfect line."""
        self._command("clear", sender, receiver)

    def count(self, sender, receiver):
        """Counters of the frames of one direction so far."""
        (word,) = self._command("count", sender, receiver)
        _, counters = word.split(":")
        return {key: int(value) for key, value in (counter.split("=") for counter in counters.split(","))}

    def late(self):
        """Frames of all directions that the switch itself has delivered late."""
        return sum(int(word.rsplit("=", 1)[1]) for word in self._command("count", "*", "*"))

    def _build(self):
        for name in self.names:
            self.namespaces.append(new_namespace())
        places = [f"{name}=/proc/self/fd/{namespace}" for name, namespace in zip(self.names, self.namespaces)]
        self.switch = subprocess.Popen(
            [SWITCH, str(self.seed), *places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=self.namespaces,
        )
        if self.switch.stdout.readline() != "ready\n":
            raise CannotRun(f"the switch did not start (code {self.switch.wait()}); its message is above")
        for number, (name, namespace) in enumerate(zip(self.names, self.namespaces), 1):
            host = Host(self, name, namespace, f"10.78.0.{number}")
            # No IPv6: it sends frames of its own. Multicast needs a route (mDNS).
            host.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
            host.ip("link set lo up", f"address add {host.address}/24 dev eth0", "link set eth0 up")
            host.ip("route add 224.0.0.0/4 dev eth0")
            self.hosts[name] = host

    def _command(self, *words):
        self.switch.stdin.write(" ".join(map(str, words)) + "\n")
        self.switch.stdin.flush()
        answer = self.switch.stdout.readline().split()
        assert answer[:1] == ["ok"], f"{words}: {' '.join(answer) or 'the switch has ended'}"
        return answer[1:]


class Machine:
    """A network namespace, by the descriptor `namespace`."""

    def __init__(self, name, namespace):
        self.name = name
        self.namespace = namespace

    def start(self, command, **options):
        """A process in this namespace; the caller ends it."""
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("stdout", subprocess.PIPE)
        command = inside(self.namespace) + [str(word) for word in command]
        return subprocess.Popen(command, pass_fds=[self.namespace], text=True, **options)

    def run(self, *command, text="", more=()):
        """The output of a command that must succeed. It inherits the descriptors in `more`."""
        command = inside(self.namespace) + list(command)
        done = subprocess.run(command, pass_fds=[self.namespace, *more], input=text, capture_output=True, text=True)
        assert done.returncode == 0, f"{self.name}: {' '.join(command)}: {text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def ip(self, *lines, more=()):
        self.run("ip", "-batch", "-", text="\n".join(lines), more=more)


class Host(Machine):
    """One machine of the lab."""

    def __init__(self, network, name, namespace, address):
        super().__init__(name, namespace)
        self.network = network
        self.address = address

    def set(self, **settings):
        """Changes both directions between this host and every other."""
        self.network.both(self.name, "*", **settings)

    def cut(self):
        """Drops every packet; no host notices the cut at once."""
        self.set(cut=1)

    def join(self):
        """Ends a cut."""
        self.set(cut=0)

    def pull(self):
        """The cable is pulled: the host's interface loses its carrier."""
        # A TAP device accepts frames even without a carrier.
        self.cut()
        self.ip("link set eth0 carrier off")

    def plug(self):
        """Ends a pull."""
        self.ip("link set eth0 carrier on")
        self.join()

    def move(self, address):
        """Changes the host's address."""
        self.ip(f"address del {self.address}/24 dev eth0", f"address add {address}/24 dev eth0")
        self.ip("route replace 224.0.0.0/4 dev eth0")
        self.address = address


def new_namespace():
    """A descriptor of a new network namespace."""
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        if process.stdout.readline() != b"\n":
            raise CannotRun("cannot create network namespaces")
        return os.open(f"/proc/{process.pid}/ns/net", os.O_RDONLY)
