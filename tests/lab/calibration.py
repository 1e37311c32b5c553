"""The lab itself: plain UDP measures the lines' settings."""

import math
import statistics
import time

from network import Network
from programs import compile_c

PORT = 7000


def probe(network, sender, receiver, hz, size, count, arrivals=None):
    """One-way delays in ms by number, of `count` datagrams, and the number of duplicates. `arrivals` receives the arrival times,
    in seconds.
    """
    program = compile_c("udp_probe", "tests/lab/udp_probe.c")
    listening = network.host(receiver).start([program, "receive", PORT])
    assert listening.stdout.readline() == "ready\n"
    address = network.host(receiver).address
    network.host(sender).run(str(program), "send", address, str(PORT), str(hz), str(size), str(count))
    # Datagrams under way arrive; the longest delay here is 250 ms.
    time.sleep(0.5)
    output, _ = listening.communicate(timeout=10)
    delays = {}
    copies = 0
    for line in output.splitlines():
        number, delay_ns, at_ns = map(int, line.split())
        if arrivals is not None:
            arrivals.append(at_ns / 1e9)
        copies += number in delays
        delays.setdefault(number, delay_ns / 1e6)
    return delays, copies


def warm(network):
    """Resolves addresses before a cut or a loss can hit the requests."""
    for one, other in [("ann", "bob"), ("bob", "ann")]:
        probe(network, one, other, 100, 64, 3)


def the_delay_is_the_one_asked_for():
    with Network("ann", "bob") as network:
        warm(network)
        network.set("ann", "bob", delay_ms=25)
        network.set("bob", "ann", delay_ms=60)
        for sender, receiver, asked in [("ann", "bob", 25), ("bob", "ann", 60)]:
            delays, _ = probe(network, sender, receiver, 200, 64, 400)
            p50 = statistics.median(delays.values())
            print(f"  {sender} to {receiver}: {asked} ms asked, p50 {p50:.2f} ms, least {min(delays.values()):.2f} ms")
            assert len(delays) == 400
            assert asked <= min(delays.values()) and p50 <= asked + 1


def jitter_is_uniform_and_reorders():
    with Network("ann", "bob") as network:
        warm(network)
        network.set("ann", "bob", delay_ms=10, jitter_ms=20)
        delays, _ = probe(network, "ann", "bob", 500, 64, 1000)
        quartiles = statistics.quantiles(delays.values(), n=4)
        print("  10 ms and up to 20 ms more: quartiles", *(f"{one:.1f}" for one in quartiles))
        for measured, expected in zip(quartiles, (15, 20, 25)):
            # 4 sigma of a quartile of 1,000 uniform values is 1.1 ms.
            assert abs(measured - expected) < 2.1
        assert list(delays) != sorted(delays), "frames overtake each other"


def losses_and_duplicates_are_as_frequent_as_asked():
    count = 5000
    with Network("ann", "bob", seed=7) as network:
        warm(network)
        network.set("ann", "bob", loss=0.05)
        network.set("bob", "ann", duplicate=0.02)
        for sender, receiver, loss, duplicate in [("ann", "bob", 0.05, 0), ("bob", "ann", 0, 0.02)]:
            delays, copies = probe(network, sender, receiver, 2500, 64, count)
            lost = count - len(delays)
            print(f"  {sender} to {receiver}: lost {lost}, twice {copies} of {count}")
            for happened, probability in [(lost, loss), (copies, duplicate)]:
                sigma = math.sqrt(count * probability * (1 - probability))
                assert abs(happened - count * probability) <= 4 * sigma


def one_seed_loses_the_same_frames():
    def lost(seed):
        with Network("ann", "bob", seed=seed) as network:
            warm(network)
            network.set("ann", "bob", loss=0.1)
            return set(range(500)) - probe(network, "ann", "bob", 1000, 64, 500)[0].keys()

    first = lost(3)
    assert first == lost(3) and first != lost(4)


def reordered_frames_overtake_others():
    with Network("ann", "bob") as network:
        warm(network)
        network.set("ann", "bob", delay_ms=20, reorder=0.1)
        delays, _ = probe(network, "ann", "bob", 500, 64, 1000)
        early = sum(delay < 10 for delay in delays.values())
        print(f"  {early} of 1000 came without the delay")
        assert abs(early - 100) <= 4 * math.sqrt(90) and len(delays) == 1000


def the_rate_is_the_one_asked_for():
    """Sends twice the line's rate: the queue is full, and the rest is dropped."""
    with Network("ann", "bob") as network:
        warm(network)
        for megabits, size in [(2, 1000), (50, 1400)]:
            frame = size + 42  # the headers of Ethernet, IP and UDP
            network.set("ann", "bob", rate_kbit=megabits * 1000, queue_bytes=int(megabits * 1e6 / 8 / 10))
            packets_per_second = megabits * 1e6 / 8 / frame
            seconds = 2
            sent = int(packets_per_second * 2 * seconds)
            arrivals = []
            delays, _ = probe(network, "ann", "bob", packets_per_second * 2, size, sent, arrivals)
            measured = (len(arrivals) - 1) / (arrivals[-1] - arrivals[0]) / packets_per_second * megabits
            # Long enough that it does not run dry while the sender waits for a processor.
            full = 100
            p50 = statistics.median(delays.values())
            print(f"  {megabits} Mbit/s asked, {measured:.2f} measured; full queue {full:.1f} ms, p50 {p50:.1f} ms")
            assert abs(measured / megabits - 1) <= 0.05
            assert abs(p50 - full) <= 0.1 * full
            count = network.count("ann", "bob")
            assert count["dropped"] > 0 and count["lost"] == 0
        # The other direction has no limit.
        delays, _ = probe(network, "bob", "ann", 2000, 1400, 2000)
        assert len(delays) == 2000


def fifty_megabits_at_15_ms_do_not_slow_the_switch():
    """Both directions at once, without a limit: the delay is the line's alone."""
    with Network("ann", "bob", "cid", "dan") as network:
        for one, other in [("ann", "bob"), ("cid", "dan")]:
            probe(network, one, other, 100, 64, 3)
        network.set("*", "*", delay_ms=15)
        hz, size, count = 4464, 1400, 4464 * 3
        delays, _ = probe(network, "ann", "bob", hz, size, count)
        p50, p99 = statistics.median(delays.values()), statistics.quantiles(delays.values(), n=100)[98]
        print(f"  50 Mbit/s at 15 ms: p50 {p50:.2f} ms, p99 {p99:.2f} ms, {network.late()} frames late")
        assert len(delays) == count and p50 <= 16


def nothing_passes_a_cut():
    with Network("ann", "bob", "cid") as network:
        warm(network)
        network.set("ann", "bob", cut=1)
        assert probe(network, "ann", "bob", 500, 64, 200)[0] == {}, "what is cut is cut"
        network.set("ann", "bob", cut=0)
        network.set("bob", "ann", cut=1)
        # No answer is needed: the addresses are known.
        assert len(probe(network, "ann", "bob", 500, 64, 200)[0]) == 200, "per direction"
        network.host("bob").join()
        network.host("bob").pull()
        assert probe(network, "ann", "bob", 500, 64, 200)[0] == {}, "without a carrier"
        assert "NO-CARRIER" in network.host("bob").run("ip", "link", "show", "eth0")
        network.host("bob").plug()
        warm(network)


def groups_are_flooded():
    """Packets of discovery (mDNS) reach every other host."""
    with Network("ann", "bob", "cid") as network:
        script = """
import socket, struct, sys
group = socket.inet_aton("224.0.0.251")
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
if sys.argv[1] == "send":
    udp.sendto(b"hello", ("224.0.0.251", 5353))
else:
    udp.bind(("", 5353))
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + socket.inet_aton(sys.argv[2]))
    udp.settimeout(10)
    print("ready", flush=True)
    print(udp.recv(100).decode())
"""
        receivers = []
        try:
            for name in ("bob", "cid"):
                host = network.host(name)
                receivers.append(host.start(["python3", "-c", script, "receive", host.address]))
                assert receivers[-1].stdout.readline() == "ready\n"
            network.host("ann").run("python3", "-c", script, "send")
            assert [receiver.stdout.readline() for receiver in receivers] == ["hello\n"] * 2
        finally:
            for receiver in receivers:
                receiver.kill()
                receiver.communicate()


TESTS = [
    the_delay_is_the_one_asked_for,
    jitter_is_uniform_and_reorders,
    losses_and_duplicates_are_as_frequent_as_asked,
    one_seed_loses_the_same_frames,
    reordered_frames_overtake_others,
    the_rate_is_the_one_asked_for,
    fifty_megabits_at_15_ms_do_not_slow_the_switch,
    nothing_passes_a_cut,
    groups_are_flooded,
]
