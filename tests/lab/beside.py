"""Small messages beside bulk: the effect of a transfer on a game.

`beside.py [--seconds N] [--one-lane] [--environment KEY=VALUE] [--queue BYTES] [--leader NAME]` prints the figures of
`docs/lab.md` for one library (MMN_LIBRARY). With --one-lane SendToPeer sends everything, the bulk too.
"""

import argparse
import contextlib
import statistics
import time

from bench import Bench
from calibration import probe
from network import Network
from relays import RELAY_PORT, Relay

PLAY_HZ, PLAY_BYTES = 60, 64
PLAY, BULK, BACK, LOOSE, SEQUENCED = range(5)
"""Streams: messages of the game, bulk in the same direction, messages of the game in the other; the game's messages that may be
lost.
"""
ONE_LANE = {PLAY: (), BULK: (), BACK: ()}
APART = {PLAY: (0, 1, 0, 0, 0), BULK: (0, 2, 0, 0, 0), BACK: (0, 1, 0, 0, 0), LOOSE: (2, 3, 0, 0, 0), SEQUENCED: (3, 4, 0, 0, 7)}
"""Options of each stream: delivery, channel, priority, time to live, key."""
TRANSFER_BYTES = 50_000_000
CHUNK_BYTES = 16_384
LINE_BITS_PER_SECOND = 50_000_000
RELAY_BYTES_PER_SECOND = 512 * 1024
"""A relay's limit for each member, without options."""
SNAPSHOT_QUEUE_BYTES = 15_000
"""60 ms of a line of 2 Mbit/s."""
ACTION_HZ = 120
FILE_BYTES = 16 << 20
FILE_LINE_BITS_PER_SECOND = 10_000_000
LINE_QUEUE_BYTES = 187_500
"""Bytes that the line of 50 Mbit/s carries in a round trip of 30 ms, like the queues of many routers."""


def quantiles(stream):
    return f"p50 {stream['p50']:6.1f}  p99 {stream['p99']:7.1f}  p99.9 {stream['p999']:7.1f} ms"


def megabits(stream):
    """A second."""
    return stream["bytes"] * 8 / stream["seconds"] / 1e6


@contextlib.contextmanager
def room_over(environment, **line):
    """A room of two over that line, both ways: the network and the hosts. The line has these settings from the start."""
    with Network("ann", "bob") as network:
        network.both("ann", "bob", **line)
        with Bench(network, "ann", "bob", environment=environment) as bench:
            yield network, bench.host("ann"), bench.host("bob")


def play(ann, bob, ways, seconds):
    """60 messages a second each way, of each kind; returns the counts of the reliable ones, by receiver."""
    count = PLAY_HZ * seconds
    for stream in ways.keys() - {BULK}:
        sender, receiver = (bob, ann) if stream == BACK else (ann, bob)
        sender.send(stream, receiver.host.name, hz=PLAY_HZ, size=PLAY_BYTES, count=count, options=ways[stream])
    return {PLAY: count}, {BACK: count}


def play_beside_bulk_on_a_lossy_line(seconds=60, environment=None, loss=0.02, ways=APART):
    """60 messages a second of a kind beside 2 Mbit/s of bulk, 25 ms and 2 % loss each way; the reports by stream."""
    with room_over(environment, delay_ms=25, loss=loss) as (network, ann, bob):
        bulk_bytes = 1200
        bulk_hz = 2_000_000 / 8 / bulk_bytes
        bulk_count = int(bulk_hz * seconds)
        ann.send(BULK, "bob", hz=bulk_hz, size=bulk_bytes, count=bulk_count, options=ways[BULK])
        forth, back = play(ann, bob, ways, seconds)
        for host, stream in [(bob, BACK), (ann, PLAY)]:
            host.sent(stream, seconds + 60)
        return {**wait_for(bob, forth | {BULK: bulk_count}), **wait_for(ann, back)}


def wait_for(host, counts):
    """The report, once all messages of these streams had time to arrive. Fails if a reliable one is missing."""
    time.sleep(3)
    report = host.report()
    for stream, count in counts.items():
        assert report[stream]["count"] == count and report[stream]["disorder"] == 0, report[stream]
    if SEQUENCED in report:
        assert report[SEQUENCED]["disorder"] == 0, report[SEQUENCED]
    return report


def transfer_on_a_lossy_line(seconds=20, environment=None, loss=0.02):
    """Throughput of a transfer at 25 ms and 2 % loss each way, without a rate limit: in bits a second."""
    with room_over(environment, delay_ms=25, loss=loss) as (network, ann, bob):
        ann.send(BULK, "bob", size=CHUNK_BYTES, count=1_000_000)
        time.sleep(seconds)
        stream = bob.report()[BULK]
        return stream["bytes"] * 8 / stream["seconds"]


def transfer_on_a_clean_line(environment=None, queue=LINE_QUEUE_BYTES, ways=APART):
    """50 MB over 50 Mbit/s at 15 ms: bits a second, delays of plain UDP on the line meanwhile (p50, p99 in ms), and the game's
    messages by stream.
    """
    with room_over(environment, delay_ms=15, rate_kbit=LINE_BITS_PER_SECOND // 1000, queue_bytes=queue) as (network, ann, bob):
        count = -(-TRANSFER_BYTES // CHUNK_BYTES)
        ann.send(BULK, "bob", size=CHUNK_BYTES, count=count, options=ways[BULK])
        forth, back = play(ann, bob, ways, 7)
        delays, _ = probe(network, "ann", "bob", 200, PLAY_BYTES, 200 * 7)
        ann.sent(BULK, 120)
        streams = {**wait_for(bob, forth | {BULK: count}), **wait_for(ann, back)}
        cuts = statistics.quantiles(delays.values(), n=100)
        dropped = network.count("ann", "bob")["dropped"]
        bits_per_second = streams[BULK]["bytes"] * 8 / streams[BULK]["seconds"]
        return bits_per_second, (cuts[49], cuts[98]), streams, dropped


def play_beside_a_snapshot(snapshot_bytes, environment=None):
    """The game's messages between a player and a newcomer, whose line carries 2 Mbit/s at 15 ms, while it receives a snapshot of
    that size and 120 actions a second: the streams, and the seconds until the newcomer's host had the snapshot.
    """
    seconds = 25
    with Network("ann", "bob") as network:
        network.both("ann", "bob", delay_ms=15, rate_kbit=2_000, queue_bytes=SNAPSHOT_QUEUE_BYTES)
        with Bench(network, "ann", environment=environment, state_bytes=snapshot_bytes) as bench:
            ann = bench.host("ann")
            ann.wait("reset")
            # More than all members keep: a newcomer needs a snapshot.
            ann.submit(size=64, count=5_000)
            ann.wait("submitted")
            ann.submit(hz=ACTION_HZ, size=64, count=ACTION_HZ * (seconds + 10))
            began = time.monotonic()
            bob = bench.add("bob")
            for host in (ann, bob):
                host.wait("view", lambda view: view["peers"] == 1)
            # The room's newest actions come first, before all messages. Then the snapshot follows.
            time.sleep(5)
            forth, back = play(ann, bob, APART, seconds)
            reset = bob.wait("reset", lambda reset: reset["bytes"], 120)
            assert (reset["bytes"], reset["code"]) == (snapshot_bytes, 0), reset
            arrived = reset["at"] - began
            ann.wait("submitted", seconds=seconds + 60)
            return {**wait_for(bob, forth), **wait_for(ann, back)}, arrived


def play_beside_a_file(file_bytes, seconds=30, environment=None):
    """The game's messages over 10 Mbit/s at 15 ms, beside an mmn_send_transfer of that size (0: none): the streams, and the seconds
    until the file's last byte.
    """
    with room_over(environment, delay_ms=15, rate_kbit=FILE_LINE_BITS_PER_SECOND // 1000, queue_bytes=75_000) as (_, ann, bob):
        began = time.monotonic()
        if file_bytes:
            ann.transfer("bob", file_bytes)
        forth, back = play(ann, bob, APART, seconds)
        took = 0.0
        if file_bytes:
            # Before the game ends: a wait skips earlier lines.
            results = [host.wait("transferred", seconds=seconds) for host in (ann, bob)]
            assert all((result["bytes"], result["reason"]) == (file_bytes, 0) for result in results), results
            took = max(result["at"] for result in results) - began
        for host, stream in [(bob, BACK), (ann, PLAY)]:
            host.sent(stream, seconds + 60)
        return {**wait_for(bob, forth), **wait_for(ann, back)}, took


def play_beside_a_transfer(a, b, seconds):
    """The game's messages between a and b beside a transfer from a to b as fast as it goes; the reports by stream."""
    a.send(BULK, "b", size=CHUNK_BYTES, count=1_000_000, options=APART[BULK])
    forth, back = play(a, b, APART, seconds)
    a.sent(PLAY, seconds + 60)
    b.sent(BACK, seconds + 60)
    return {**wait_for(b, forth), **wait_for(a, back)}


def play_beside_a_transfer_over_a_carrier(leader="r", seconds=20, environment=None):
    """The game's messages between a and b beside a transfer from a to b: first over a direct link, then with r as the carrier
    while a and b cannot reach each other. Returns the streams of "direct" and of "carried".

    Both ways take 20 ms: the direct line does, and each of the two lines over r takes 10 ms. All lines have the same rate and the
    same queue, so the first line of a is the bottleneck of both ways, as at home. Thus only the carrier makes a difference: its
    queues, the second encryption, and a congestion controller for each of the two lines below that of the link.
    """
    measured = {}
    for path in ("direct", "carried"):
        with Network("r", "a", "b") as network:
            network.set("*", "*", delay_ms=10, rate_kbit=20_000, queue_bytes=100_000)
            network.both("a", "b", delay_ms=20, cut=int(path == "carried"))
            with Bench(network, "r", "a", "b", environment=environment, leader=leader) as bench:
                measured[path] = play_beside_a_transfer(bench.host("a"), bench.host("b"), seconds)
    return measured


def play_beside_a_transfer_over_a_relay(seconds=20, environment=None):
    """The game's messages between a and b beside a transfer from a to b as fast as it goes: first over a direct line of 512 KiB/s,
    then over a relay with its usual limit, which is the same, on lines of 20 Mbit/s. Returns the streams of "direct" and of
    "relayed". Both ways take 20 ms.
    """
    measured = {}
    for path in ("direct", "relayed"):
        is_direct = path == "direct"
        with Network("r", "a", "b") as network:
            network.set("*", "*", delay_ms=10, rate_kbit=20_000, queue_bytes=100_000)
            line = {"rate_kbit": RELAY_BYTES_PER_SECOND * 8 // 1000, "queue_bytes": 100_000} if is_direct else {"cut": 1}
            network.both("a", "b", delay_ms=20, **line)
            with contextlib.ExitStack() as stack:
                r = network.host("r")
                if is_direct:
                    bench = Bench(network, "a", "b", environment=environment)
                else:
                    stack.enter_context(Relay(r))
                    bench = Bench(network, "a", "b", environment=environment, relay=f"{r.address}:{RELAY_PORT}")
                stack.enter_context(bench)
                measured[path] = play_beside_a_transfer(bench.host("a"), bench.host("b"), seconds)
    return measured


def print_streams(streams):
    names = {PLAY: "reliable", LOOSE: "unreliable", SEQUENCED: "sequenced", BACK: "other way"}
    for stream, name in names.items():
        if stream in streams:
            print(f"  {name:13} {quantiles(streams[stream])}  {streams[stream]['count']} messages")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--loss", type=float, default=0.02)
    parser.add_argument("--one-lane", action="store_true")
    parser.add_argument("--queue", type=int, default=LINE_QUEUE_BYTES)
    parser.add_argument("--leader", choices=["r", "b"], default="r", help="of the room with a carrier, which is r")
    parser.add_argument("--environment", action="append", default=[])
    arguments = parser.parse_args()
    environment = dict(one.split("=", 1) for one in arguments.environment)
    ways = ONE_LANE if arguments.one_lane else APART
    streams = play_beside_bulk_on_a_lossy_line(arguments.seconds, environment, arguments.loss, ways)
    print(f"25 ms, {arguments.loss:.0%} loss each way; 60/s of 64 B each way beside 2 Mbit/s, {arguments.seconds} s")
    print_streams(streams)
    print(f"  bulk          {megabits(streams[BULK]):.2f} Mbit/s")
    print(f"  transfer alone {transfer_on_a_lossy_line(environment=environment, loss=arguments.loss) / 1e6:.1f} Mbit/s", flush=True)
    rate, (p50, p99), streams, dropped = transfer_on_a_clean_line(environment, arguments.queue, ways)
    print(f"50 Mbit/s, 15 ms, queue {arguments.queue} bytes; a transfer of 50 MB")
    print(f"  transfer      {rate / 1e6:.1f} Mbit/s, {rate / LINE_BITS_PER_SECOND:.0%} of the line; {dropped} frames dropped")
    print(f"  plain UDP     p50 {p50:.1f}  p99 {p99:.1f} ms")
    print_streams(streams)
    for path, streams in play_beside_a_transfer_over_a_carrier(arguments.leader, environment=environment).items():
        print(f"20 Mbit/s, 20 ms, {path}; a transfer of {megabits(streams[BULK]):.1f} Mbit/s")
        print_streams(streams)
    over = play_beside_a_transfer_over_a_relay(environment=environment)
    for path, streams in over.items():
        print(f"512 KiB/s, 20 ms, {path}; a transfer of {streams[BULK]['bytes'] / streams[BULK]['seconds'] / 1024:.0f} KiB/s")
        print_streams(streams)
    ratio = over["relayed"][PLAY]["p99"] / over["direct"][PLAY]["p99"]
    print(f"p99 of the game's messages over the relay, in times of that on the line: {ratio:.2f}")


if __name__ == "__main__":
    main()
