"""Dials by name without a name server that answers, against the built library: a host calls the C ABI, and the system's own
resolver hangs.
Run by `tests/hosts` as root; MMN_LIBRARY names the library. Arguments name the tests; without any, all run.

Each test has its own process, network and /etc/resolv.conf, in which three name servers take questions and never answer.
"""

import _ctypes
import collections
import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
SERVERS = ("127.0.0.53", "127.0.0.54", "127.0.0.55")
# Longest ShutdownNetwork, default handshake_timeout_ms, and the slack of a busy machine for each.
CLOSE_SECONDS, DIAL_SECONDS, SLACK_SECONDS = 2, 5, 1
LOOKUPS = 16
RESULT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_int32)


def without_name_servers(seconds):
    """Moves this process to a network where lookups hang; returns an object that keeps its name servers there."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise SystemExit(f"unshare: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    with tempfile.NamedTemporaryFile("w", delete=False) as conf:
        conf.write("".join(f"nameserver {server}\n" for server in SERVERS))
        conf.write(f"options timeout:{seconds} attempts:1\n")
    subprocess.run(["mount", "--bind", conf.name, "/etc/resolv.conf"], check=True)
    os.unlink(conf.name)
    silent = []
    for server in SERVERS:
        silent.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        silent[-1].bind((server, 53))
    return silent


class Host:
    """A host in thread mode, with the results of its dials."""

    def __init__(self):
        self.lib = ctypes.CDLL(os.environ["MMN_LIBRARY"])
        self.lib.GetLastErrorMessage.restype = ctypes.c_char_p
        self.results = collections.Counter()
        self.changed = threading.Condition()
        self._callback = RESULT(self._ended)
        self.check(self.lib.InitializeNetwork(b"a", b"names"))
        self.lib.RegisterConnectionResultCallback(self._callback)

    def _ended(self, address, success, code):
        with self.changed:
            self.results[address] += 1
            assert not success and code < 0, (address, success, code)
            self.changed.notify_all()

    def check(self, code):
        assert code == 0, f"{code}: {self.lib.GetLastErrorMessage().decode()}"

    def dial(self, prefix, count):
        addresses = [f"{prefix}{number}.example:9".encode() for number in range(count)]
        for address in addresses:
            self.check(self.lib.ConnectToPeer(address))
        return addresses

    def wait_for_results(self, addresses, seconds):
        with self.changed:
            everything = lambda: all(self.results[address] for address in addresses)
            assert self.changed.wait_for(everything, seconds), self.results

    def close(self):
        began = time.monotonic()
        self.check(self.lib.ShutdownNetwork())
        return time.monotonic() - began


def lookups():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as comm:
                names.append(comm.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile
    return names.count("mmn-name")


def until(condition, seconds, what):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


def unload(lib):
    """Whether the library is gone from memory."""
    path = os.path.realpath(os.environ["MMN_LIBRARY"])
    _ctypes.dlclose(lib._handle)
    with open("/proc/self/maps") as maps:
        return path not in maps.read()


def on_a_thread(function):
    """A thread that ends leaves nothing of the library behind; the main thread would keep it until its end."""
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    # Python joins it before the system has ended it, and what it keeps of the library goes only then.
    until(lambda: str(thread.native_id) not in os.listdir("/proc/self/task"), 60, "the end of the thread")
    assert result, "the thread failed"
    return result[0]


def test_close():
    servers = without_name_servers(5)

    def room():
        host = Host()
        host.dial("close", 40)
        until(lambda: lookups() == LOOKUPS, 5, "lookups")
        time.sleep(0.2)  # time in which more lookups would begin
        assert lookups() == LOOKUPS, lookups()
        took = host.close()
        assert took < CLOSE_SECONDS + SLACK_SECONDS, took
        assert lookups() == LOOKUPS, "they were waited for"
        # No host receives the queued results.
        assert sum(host.results.values()) == 0
        return host

    host = on_a_thread(room)
    assert not unload(host.lib), "its code is gone while threads of it run"
    until(lambda: lookups() == 0, 60, "the end of the threads")
    return len(servers)


def test_results():
    servers = without_name_servers(10)
    host = Host()
    began = time.monotonic()
    addresses = host.dial("result", 40)
    host.wait_for_results(addresses, DIAL_SECONDS + SLACK_SECONDS)
    assert time.monotonic() - began > DIAL_SECONDS - SLACK_SECONDS
    # The hanging lookups go on; others wait for their turn, and end in time without it.
    assert lookups() == LOOKUPS, lookups()
    addresses += host.dial("again", 40)
    host.wait_for_results(addresses, DIAL_SECONDS + SLACK_SECONDS)
    assert lookups() <= LOOKUPS, lookups()
    took = host.close()
    assert took < CLOSE_SECONDS + SLACK_SECONDS, took
    assert set(host.results) == set(addresses) and set(host.results.values()) == {1}, host.results
    return len(servers)


def test_unload():
    def room():
        host = Host()
        address = host.dial("unload", 1)
        host.wait_for_results(address, DIAL_SECONDS + SLACK_SECONDS)
        until(lambda: lookups() == 0, 60, "the end of the lookup")
        host.close()
        return host

    servers = without_name_servers(1)
    host = on_a_thread(room)
    assert unload(host.lib), "without a lookup it can be unloaded"
    return len(servers)


TESTS = {name[len("test_"):]: function for name, function in globals().items() if name.startswith("test_")}


def main():
    if sys.argv[1:2] == ["inside"]:
        TESTS[sys.argv[2]]()
        # A lookup may go on.
        sys.stdout.flush()
        os._exit(0)
    for name in sys.argv[1:] or TESTS:
        began = time.monotonic()
        subprocess.run([sys.executable, __file__, "inside", name], check=True, timeout=120)
        print(f"ok {name} {time.monotonic() - began:.1f}s", flush=True)


if __name__ == "__main__":
    main()
