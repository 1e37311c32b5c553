"""Hosts with a network each, joined by a switch whose cables a test can pull, cut or narrow.

Every host, and the switch, is a network namespace without a name, held by a file descriptor alone: it vanishes with this process.
Needs root, iproute2 and util-linux.
"""

import os
import subprocess


class Lab:
    """`with Lab("left", "right") as lab:`; lab.host("left") goes to Room.puppet(host=...)."""

    def __init__(self, *names):
        if os.geteuid() != 0:
            raise RuntimeError("hosts with a network each need root: run this test as root")
        self.names = names
        self.namespaces = []

    def __enter__(self):
        self.switch = self._namespace()
        self._ip(self.switch, "link set lo up", "link add switch type bridge", "link set switch up")
        self.hosts = {}
        for number, name in enumerate(self.names, 1):
            namespace = self._namespace()
            host = Host(self, namespace, f"port{number}", f"10.77.0.{number}")
            self._ip(
                self.switch,
                f"link add {host.port} type veth peer name eth0 netns /proc/self/fd/{namespace}",
                f"link set {host.port} master switch up",
                more=[namespace],
            )
            self._ip(namespace, "link set lo up", f"address add {host.address}/24 dev eth0", "link set eth0 up")
            self.hosts[name] = host
        return self

    def __exit__(self, *_):
        for namespace in self.namespaces:
            os.close(namespace)
        self.namespaces.clear()

    def host(self, name):
        return self.hosts[name]

    def _namespace(self):
        """A descriptor of a new network namespace."""
        with subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout.readline() == b"\n", "unshare --net failed"
            namespace = os.open(f"/proc/{process.pid}/ns/net", os.O_RDONLY)
        self.namespaces.append(namespace)
        return namespace

    def _ip(self, namespace, *lines, more=()):
        self._run(namespace, ["ip", "-batch", "-"], "\n".join(lines), more)

    def _run(self, namespace, command, text="", more=()):
        done = subprocess.run(
            inside(namespace) + command,
            pass_fds=[namespace, *more],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {text}\n{done.stdout}"


class Host:
    """One machine of the lab, with one cable to the switch."""

    def __init__(self, lab, namespace, port, address):
        self.lab = lab
        self.namespace = namespace
        self.port = port
        self.address = address

    def cut(self):
        """Drops every packet; neither end notices the cut at once."""
        self.lab._ip(self.lab.switch, f"link set {self.port} nomaster")

    def join(self):
        """Ends a cut."""
        self.lab._ip(self.lab.switch, f"link set {self.port} master switch")

    def pull(self):
        """The cable is pulled: the host's interface loses its carrier."""
        self.lab._ip(self.lab.switch, f"link set {self.port} down")

    def plug(self):
        """Ends a pull."""
        self.lab._ip(self.lab.switch, f"link set {self.port} up")

    def narrow(self, bits_per_second):
        """Limits what the host sends to this rate, after a queue of at most 200 ms."""
        shape = f"qdisc replace dev eth0 root tbf rate {bits_per_second}bit burst 5kb latency 200ms"
        self.lab._run(self.namespace, ["tc", *shape.split()])


def inside(namespace):
    """The prefix that starts a command in that namespace; it needs the descriptor as `pass_fds`."""
    return ["nsenter", f"--net=/proc/self/fd/{namespace}"]
