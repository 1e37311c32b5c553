"""Rooms of real processes on bad lines, and disturbances of machines: pauses, pulled cables, other addresses, restarts.

Each disturbance happens LAB_TIMES times (1), and the room under loss lasts LAB_MINUTES (1).
"""

import itertools
import os
import time

from beside import BACK as OTHER_WAY
from beside import BULK, FILE_BYTES, FILE_LINE_BITS_PER_SECOND, LINE_BITS_PER_SECOND, LOOSE, PLAY, SEQUENCED
from beside import megabits, play_beside_a_snapshot, play_beside_a_transfer_over_a_carrier, play_beside_bulk_on_a_lossy_line
from beside import play_beside_a_file, quantiles
from beside import transfer_on_a_clean_line
from bench import Bench
from network import ROOT, Network

from life import BACK, DOWN, RETRYING, UP, links
from promises import DUPLICATE, PEER_NOT_FOUND, STREAM, TEXT
from room import Room, side_by_side

TIMES = int(os.environ.get("LAB_TIMES", "1"))
MINUTES = float(os.environ.get("LAB_MINUTES", "1"))
CONFIG = {"mdns_port": 0}
"""The defaults, without discovery: the tests decide on every dial."""
BACK_SECONDS = 20.0
"""From the end of a disturbance: a reconnection tries at least every 2 s, and each try may take the handshake's 5 s."""
LINE = {"delay_ms": 25, "loss": 0.01}
"""The lines of tests about other disturbances."""


def form(room, network, *names):
    return room.form(*names, config=CONFIG, hosts={name: network.host(name) for name in names})


class Streams:
    """Numbered messages between all of these, until `end`. While a peer is away a send may be refused; an accepted message must
    arrive.
    """

    kinds = itertools.count(STREAM)

    def __init__(self, *members, per_second=50):
        pairs = [(one, other) for one in members for other in members if one is not other]
        self.streams = [(sender, receiver, next(self.kinds)) for sender, receiver in pairs]
        for sender, receiver, kind in self.streams:
            retry = [-7, PEER_NOT_FOUND]
            sender.do("stream", kind=kind, to=receiver.peer, size=100, per_second=per_second, retry=retry)

    def end(self):
        """Every accepted message must have arrived, once and in order."""
        for sender, _, kind in self.streams:
            sender.do("halt", kind=kind)
        for sender, receiver, kind in self.streams:
            receiver.took_all(sender, sender.streamed(kind))


# -- loss


def eight_stay_together_under_loss_and_jitter():
    """5 % loss and up to 100 ms more delay in each direction: no member is lost, and the leader stays."""
    names = [f"peer{number}" for number in range(1, 9)]
    with Network(*names) as network, Room() as room:
        network.set("*", "*", delay_ms=10, jitter_ms=100, loss=0.05)
        members = form(room, network, *names)
        room.agreed(*members)
        # The last one to join may still change the leader, by the weight of the sides of a merge.
        time.sleep(5)
        leader = room.agreed(*members)
        seen = {member.peer: len(changes(member)) for member in members}
        new = lambda member: changes(member)[seen[member.peer] :]
        streams = Streams(*members[:3])
        room.never("a loss, or another leader", lambda: any(new(member) for member in members), MINUTES * 60)
        streams.end()
        print(f"  {MINUTES:g} minutes under {leader.peer}, {network.late()} frames late")


def changes(member):
    """Its events of links and leaders."""
    return member.reported("PeerStatus") + member.reported("LeaderChanged")


# -- pauses


def one_pause(room, members, seconds, of_leader, number):
    leader = room.agreed(*members)
    sleeper = leader if of_leader else next(member for member in members if member is not leader)
    awake = [member for member in members if member is not sleeper]
    seen = {member.peer: len(links(member, sleeper.peer)) for member in awake}
    new = lambda member: links(member, sleeper.peer)[seen[member.peer] :]
    began = time.monotonic()
    sleeper.pause()
    try:
        for member in awake:
            room.wait(f"{member.peer} sees the loss", lambda: new(member) == [DOWN, RETRYING])
        room.agreed(*awake)
        time.sleep(max(0.0, began + seconds - time.monotonic()))
    finally:
        sleeper.resume()
    resumed = time.monotonic()
    for member in awake:
        room.wait(f"{member.peer} sees the return", lambda: new(member) == [DOWN, RETRYING, UP, BACK], BACK_SECONDS)
    room.meshed(*members, seconds=BACK_SECONDS)
    room.agreed(*members, seconds=BACK_SECONDS)
    print(f"  {number}: {'leader' if of_leader else 'follower'} back {time.monotonic() - resumed:.1f} s after {seconds} s")
    text = f"good morning {number}"
    sleeper.ok("BroadcastMessage", text, TEXT, 0)
    for member in awake:
        room.wait("a message", lambda: (sleeper.peer, text) in member.received())
        assert new(member) == [DOWN, RETRYING, UP, BACK]


def pauses_of(seconds):
    def with_rooms(of_leader):
        with Network("ann", "bob", "cid") as network, Room() as room:
            network.set("*", "*", **LINE)
            members = form(room, network, "ann", "bob", "cid")
            for number in range(1, TIMES + 1):
                one_pause(room, members, seconds, of_leader, number)

    side_by_side(lambda: with_rooms(False), lambda: with_rooms(True))


def a_pause_of_4_s_is_survived():
    pauses_of(4)


def a_pause_of_30_s_is_survived():
    pauses_of(30)


# -- cables


def a_cable_pulled_for_30_s_is_survived():
    """A cable of the leader and of another member, with messages under way: one loss, one return, and every accepted message
    arrives.
    """

    def pulled(of_leader):
        with Network("ann", "bob", "cid") as network, Room() as room:
            network.set("*", "*", **LINE)
            members = form(room, network, "ann", "bob", "cid")
            for number in range(1, TIMES + 1):
                one_pull(room, members, of_leader, number)

    side_by_side(lambda: pulled(False), lambda: pulled(True))


def one_pull(room, members, of_leader, number):
    leader = room.agreed(*members)
    pulled = leader if of_leader else next(member for member in members if member is not leader)
    others = [member for member in members if member is not pulled]
    pairs = [pair for other in others for pair in ((pulled, other), (other, pulled))]
    seen = {(one.peer, other.peer): len(links(one, other.peer)) for one, other in pairs}
    new = lambda one, other: links(one, other.peer)[seen[one.peer, other.peer] :]
    streams = Streams(*members)
    began = time.monotonic()
    pulled.host.pull()
    try:
        for one, other in pairs:
            room.wait(f"{one.peer} loses {other.peer}", lambda: new(one, other) == [DOWN, RETRYING])
        time.sleep(max(0.0, began + 30 - time.monotonic()))
    finally:
        pulled.host.plug()
    plugged = time.monotonic()
    for one, other in pairs:
        room.wait(f"{one.peer} has {other.peer} again", lambda: new(one, other) == [DOWN, RETRYING, UP, BACK], BACK_SECONDS)
    room.agreed(*members, seconds=BACK_SECONDS)
    print(f"  {number}: {'leader' if of_leader else 'follower'} back {time.monotonic() - plugged:.1f} s after the cable")
    streams.end()


def both_ends_count_the_messages_that_a_flapping_member_misses():
    """Ten cuts of 2.2 s and one of 30 s, while all broadcast 30 times a second. With the default queues no message is missing,
    and with queues of 40 messages both ends count equal numbers.
    """
    default = lambda: flapping(CONFIG, is_exact=True)
    short = lambda: flapping({**CONFIG, "send_queue_capacity": 40}, is_exact=False)
    side_by_side(default, short)


def flapping(config, is_exact):
    with Network("ann", "bob", "cid") as network, Room() as room:
        network.set("*", "*", **LINE)
        names = ("ann", "bob", "cid")
        members = room.form(*names, config=config, options={}, hosts={name: network.host(name) for name in names})
        flapper = members[2]
        for number in range(1, TIMES + 1):
            cut_again_and_again(room, members, flapper, number, is_exact)


def cut_again_and_again(room, members, flapper, number, is_exact):
    room.agreed(*members, seconds=BACK_SECONDS)
    others = [member for member in members if member is not flapper]
    pairs = [pair for other in others for pair in ((flapper, other), (other, flapper))]
    before = {(one.peer, other.peer): returns(one, other) for one, other in pairs}
    kinds = {member.peer: next(Streams.kinds) for member in members}
    for member in members:
        # -7 while a queue is full after a return: a refused message is not sent.
        member.do("stream", kind=kinds[member.peer], size=100, per_second=30, retry=[-7])
    for seconds in [2.2] * 10 + [30]:
        flapper.host.pull()
        try:
            time.sleep(seconds)
        finally:
            flapper.host.plug()
        room.meshed(*members, seconds=BACK_SECONDS)
        room.agreed(*members, seconds=BACK_SECONDS)
    for member in members:
        member.do("halt", kind=kinds[member.peer])
    for sender, receiver in pairs:
        accepted = sender.streamed(kinds[sender.peer])["accepted"]
        inflow = lambda: receiver.do("inflow", peer=sender.peer, kind=kinds[sender.peer])
        new_returns = lambda one, other: tuple(now - then for now, then in zip(returns(one, other), before[one.peer, other.peer]))
        (undelivered, _), (_, missed) = new_returns(sender, receiver), new_returns(receiver, sender)
        assert undelivered == missed, f"{sender.peer} to {receiver.peer}: {undelivered}, but {receiver.peer} reports {missed}"
        assert not (is_exact and missed), f"{receiver.peer} missed {missed} of {sender.peer}"
        room.wait("all that is not missed", lambda: inflow()["count"] == accepted - missed)
        came = inflow()
        # The last missing messages have no later number after them that reveals the gap.
        assert came["missing"] <= missed and came["disorder"] == 0, (came, missed)
        print(f"  {number}: {sender.peer} to {receiver.peer}: {accepted} sent, {missed} missed")


def returns(one, other):
    """The sums of all returns of `other` at `one`: its own messages that are missing, and the other's."""
    returned = one.reported("Returned", other.peer)
    return sum(count for _, count, _ in returned), sum(missed for _, _, missed in returned)


# -- healing

FIVE = ("ann", "bob", "cid", "dan", "eve")


def back_after(room, members, apart, seconds, began, ended):
    """Disturbs the network for so long; returns the seconds from the end until all agree, and until all are linked."""
    room.meshed(*members, seconds=BACK_SECONDS)
    room.agreed(*members, seconds=BACK_SECONDS)
    time.sleep(3)  # the room is at rest
    start = time.monotonic()
    began()
    for one, other in apart:
        room.wait(f"{one.peer} loses {other.peer}", lambda: other.peer not in one.linked)
    time.sleep(max(0.0, start + seconds - time.monotonic()))
    ended()
    healed = time.monotonic()
    took = {}

    def whole():
        done = {"agreed": len({member.leader for member in members}) == 1 and members[0].leader != ""}
        done["meshed"] = all(other.peer in one.linked for one in members for other in members if other is not one)
        for name in done:
            # A leader that does not last is no agreement.
            took[name] = took.get(name, time.monotonic()) if done[name] else None
            if took[name] is None:
                del took[name]
        return all(done.values())

    room.wait("all agree and are linked", whole, BACK_SECONDS)
    return took["agreed"] - healed, took["meshed"] - healed


def heals(seconds, side, limits, pulls=False):
    """`side` is cut off the others for about so long, again and again: medians until all agree and until all are linked. A busy
    machine has twice the time that docs/figures.md promises.
    """
    with Network(*FIVE) as network, Room() as room:
        network.set("*", "*", delay_ms=1)
        members = quiet_room(room, network, *FIVE)
        one_side = [member for member in members if member.peer in side]
        others = [member for member in members if member.peer not in side]
        pairs = [(one, other) for one in one_side for other in others]
        apart = [pair for one, other in pairs for pair in ((one, other), (other, one))]
        cut = lambda value: [network.both(one.peer, other.peer, cut=value) for one, other in pairs]
        pulled = network.host(side[0])
        began, ended = (pulled.pull, pulled.plug) if pulls else (lambda: cut(1), lambda: cut(0))
        # The last dials before the end are not always equally near.
        lengths = [seconds * (0.8 + 0.1 * (number % 5)) for number in range(max(5, TIMES))]
        times = [back_after(room, members, apart, length, began, ended) for length in lengths]
    medians = []
    for name, limit, took in zip(("all agree", "all are linked"), limits, zip(*times)):
        took = sorted(round(seconds * 1000) for seconds in took)
        medians.append(took[len(took) // 2])
        print(f"  {name}: {medians[-1]} ms ({took[0]} to {took[-1]}), at most {limit} promised")
    assert all(median <= 2 * limit for median, limit in zip(medians, limits)), times


def a_split_of_three_and_two_heals_at_once():
    heals(10, FIVE[3:], (400, 400))


def an_isolated_member_is_back_at_once():
    heals(5, FIVE[4:], (400, 400))


def a_member_is_back_as_soon_as_its_cable():
    # Packets into a pulled cable would have the kernel wait a second before it asks again for the addresses of the network.
    heals(5, FIVE[4:], (250, 400), pulls=True)


# -- closed ports


def quiet_room(room, network, *names):
    """Members whose kernels ask for no address again: a kernel repeats that once a second, whatever the library does."""
    for name in names:
        network.host(name).run("sysctl", "-qw", "net.ipv4.neigh.eth0.base_reachable_time_ms=3600000")
    return form(room, network, *names)


def a_killed_leader_is_replaced_before_its_silence_is_noticed():
    """A process that was killed on another machine: that machine reports the closed port. Without the report the first of the others
    would lose the leader 1 s after the kill at the earliest, and all would agree after 1.3 s (median).
    """
    # Twice the time that docs/figures.md promises, for a busy machine.
    replaced_after_kills(delay_ms=1, most_ms=900)


def a_far_leader_that_is_killed_in_play_is_replaced_as_soon():
    """The machine of the dead leader reports six packets of each member at once, and one a second after that. In a round trip of
    100 ms each has sent more. Without reports all agree after 1.4 s.
    """
    replaced_after_kills(delay_ms=50, most_ms=1_000, per_second=60)


def replaced_after_kills(delay_ms, most_ms, per_second=0):
    """Kills the leader of five again and again; `per_second`: messages of each other member to it."""
    took = []
    for _ in range(max(5, TIMES)):
        with Network(*FIVE) as network, Room() as room:
            network.set("*", "*", delay_ms=delay_ms)
            members = quiet_room(room, network, *FIVE)
            leader = room.agreed(*members)
            time.sleep(2)  # the room is at rest
            others = [member for member in members if member is not leader]
            for other in others if per_second else []:
                kind = next(Streams.kinds)
                other.do("stream", kind=kind, to=leader.peer, size=100, per_second=per_second, retry=[-7, PEER_NOT_FOUND])
                leader.do("inflow", peer=other.peer, kind=kind, watch=per_second)
                room.wait("the messages", lambda: leader.reported("Inflow", other.peer, kind))
            killed = time.monotonic()
            leader.kill()
            room.wait("another leader", lambda: {other.leader for other in others} <= {other.peer for other in others})
            room.agreed(*others)
            took.append(round((time.monotonic() - killed) * 1000))
    took.sort()
    print(f"  all agree after {took[len(took) // 2]} ms ({took[0]} to {took[-1]})")
    assert took[len(took) // 2] <= most_ms, took


def unreachables(host):
    """Reports of unreachable destinations that the kernel of this machine has received."""
    lines = [line.split() for line in host.run("cat", "/proc/net/snmp").splitlines() if line.startswith("Icmp:")]
    return int(lines[1][lines[0].index("InDestUnreachs")])


def forged_reports_of_a_closed_port_depose_no_leader():
    """A router near one member answers each of its packets to the leader under the leader's address, and routers near all others under
    their own, for half a minute. No host sees anything of it, and the leader's real end is noticed as without.
    """
    with Network(*FIVE, "router") as network, Room() as room:
        network.set("*", "*", delay_ms=1)
        members = quiet_room(room, network, *FIVE)
        leader = room.agreed(*members)
        others = [member for member in members if member is not leader]
        seen = {member.peer: len(changes(member)) for member in members}
        address, router = leader.host.address, network.host("router").address
        forgers = []
        try:
            for number, member in enumerate(others):
                offender = address if number == 0 else router
                forgers.append(member.host.start(["python3", ROOT / "tests/lab/forger.py", address, offender]))
            for forger in forgers:
                assert forger.stdout.readline() == "ready\n"
            time.sleep(30)
            for member in members:
                assert changes(member)[seen[member.peer] :] == [], member.peer
            received = [unreachables(member.host) for member in others]
            leader.kill()
            room.agreed(*others)
        finally:
            answers = [int(forger.communicate()[0]) for forger in forgers]
        print(f"  {answers} forged reports, of which the kernels received {received} before the leader was killed")
        # A heartbeat and its acknowledgement every half second.
        assert all(count >= 60 for count in received), received


# -- addresses


def an_address_changes(of_dialling):
    with Network("ann", "bob") as network, Room() as room:
        network.set("*", "*", **LINE)
        # The second dials the first.
        ann, bob = form(room, network, "ann", "bob")
        room.agreed(ann, bob)
        moving = bob if of_dialling else ann
        which = "dialling" if of_dialling else "accepting"
        for number in range(1, TIMES + 1):
            seen = {one.peer: len(links(one, other.peer)) for one, other in [(ann, bob), (bob, ann)]}
            new = lambda one, other: links(one, other.peer)[seen[one.peer] :]
            streams = Streams(ann, bob)
            began = time.monotonic()
            moving.host.move(f"10.78.0.{100 + number}")
            # A message sent from now on arrives, over this link or the next one.
            for one, other in [(ann, bob), (bob, ann)]:
                text = f"from {one.peer} {number}"
                room.wait("it is accepted", lambda: one.call("SendToPeer", other.peer, text, TEXT, 0) == 0)
                room.wait("it arrives", lambda: (one.peer, text) in other.received(), BACK_SECONDS)
            print(f"  {number}: the {which} side: both ways after {time.monotonic() - began:.1f} s")
            streams.end()
            room.meshed(ann, bob, seconds=BACK_SECONDS)
            room.agreed(ann, bob, seconds=BACK_SECONDS)
            for one, other in [(ann, bob), (bob, ann)]:
                assert new(one, other) in ([], [DOWN, RETRYING, UP, BACK]), new(one, other)
            print(f"     {'the link stayed' if not new(ann, bob) + new(bob, ann) else 'by a new link'}")


def the_dialling_side_changes_its_address():
    an_address_changes(of_dialling=True)


def the_accepting_side_changes_its_address():
    an_address_changes(of_dialling=False)


# -- restarts


def a_process_restarts_under_its_id():
    """Killed and restarted at once: it is admitted, and all agree on one leader. Once for a follower and once for the leader."""
    for of_leader in (False, True):
        with Network("ann", "bob", "cid") as network, Room() as room:
            network.set("*", "*", **LINE)
            members = form(room, network, "ann", "bob", "cid")
            for number in range(1, TIMES + 1):
                leader = room.agreed(*members)
                old = leader if of_leader else next(member for member in members if member is not leader)
                others = [member for member in members if member is not old]
                began = time.monotonic()
                old.kill()
                again = room.puppet(old.peer, config=CONFIG, host=network.host(old.peer))
                for tries in range(1, 6):
                    result = again.dial_address(others[0].address())
                    if result != (0, DUPLICATE):
                        break
                assert result[0] == 1, f"{old.peer} was not let in again: {result} after {tries} dials"
                members = [again, *others]
                room.wait(
                    "all are linked",
                    lambda: all(again.peer in other.linked and other.peer in again.linked for other in others),
                    BACK_SECONDS,
                )
                room.agreed(*members, seconds=BACK_SECONDS)
                which = "leader" if of_leader else "follower"
                print(f"  {number}: {which} in again after {time.monotonic() - began:.1f} s, {tries} dials")
                again.ok("BroadcastMessage", f"here again {number}", TEXT, 0)
                for other in others:
                    room.wait("a message", lambda: (again.peer, f"here again {number}") in other.received())


# -- the game beside bulk


def no_slower(streams, limits):
    """The 99th percentiles of streams, in ms."""
    for stream, limit in limits.items():
        print(f"  {quantiles(streams[stream])}, stream {stream}")
        assert streams[stream]["p99"] <= limit, streams[stream]


def a_game_goes_on_beside_bulk_on_a_lossy_line():
    """25 ms and 2 % loss each way. No reliable message is lost, no sequenced message overtakes a newer one, and none waits for
    the bulk. A busy machine has twice the time that docs/lab.md promises.
    """
    streams = play_beside_bulk_on_a_lossy_line(int(MINUTES * 60))
    no_slower(streams, {PLAY: 236, LOOSE: 76, SEQUENCED: 76})


def a_game_goes_on_beside_a_transfer_that_fills_a_clean_line():
    rate, _, streams, _ = transfer_on_a_clean_line()
    print(f"  the transfer: {rate / LINE_BITS_PER_SECOND:.0%} of the line")
    assert rate >= 0.6 * LINE_BITS_PER_SECOND, streams[BULK]
    no_slower(streams, {PLAY: 70, LOOSE: 70, SEQUENCED: 70})


def a_game_goes_on_beside_a_transfer_over_a_carrier():
    """The 99th percentiles are at most one and a half times the percentiles of a direct link of the same length and rate. Other
    work of the machine only adds to them, so the better one of two rounds counts.
    """
    p99 = {}
    for _ in range(2):
        for name, streams in play_beside_a_transfer_over_a_carrier().items():
            print(f"  {name}: the transfer {megabits(streams[BULK]):.1f} Mbit/s")
            for stream in (PLAY, OTHER_WAY):
                print(f"    {quantiles(streams[stream])}, stream {stream}")
                p99.setdefault((name, stream), []).append(streams[stream]["p99"])
    ratios = [min(p99["carried", stream]) / min(p99["direct", stream]) for stream in (PLAY, OTHER_WAY)]
    print("  carried / direct: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))
    assert max(ratios) <= 1.5, p99


def a_game_goes_on_beside_a_snapshot():
    """A newcomer on a line of 2 Mbit/s receives a snapshot of 8 MiB, 120 actions a second, and messages. Their 99th percentiles
    are at most 25 ms longer than with a snapshot of 1 KiB: the line takes that long for six packets. With the line's queue full
    it is 65 ms, and more for reliable messages. Other work of the machine only adds to them, so the best of three rounds counts.
    """
    p99 = {}
    for _ in range(3):
        for size in (1 << 10, 8 << 20):
            streams, seconds = play_beside_a_snapshot(size)
            print(f"  {size >> 10} KiB after {seconds:.1f} s")
            for stream in (PLAY, LOOSE, SEQUENCED, OTHER_WAY):
                print(f"    {quantiles(streams[stream])}, stream {stream}")
                p99[size, stream] = min(streams[stream]["p99"], p99.get((size, stream), float("inf")))
        if all(p99[8 << 20, stream] <= p99[1 << 10, stream] + 25 for stream in (PLAY, LOOSE, SEQUENCED, OTHER_WAY)):
            return
    raise AssertionError(p99)


def a_game_goes_on_beside_a_file():
    """A transfer of 16 MiB on a line of 10 Mbit/s takes at least half of the line, and lets the game's messages pass: their 99th
    percentiles are at most 15 ms longer than without it: an idle machine adds four. With the line's queue full it is 60 ms, and
    more for reliable messages. Other work of the machine only adds to them, so the best of three rounds counts.
    """
    p99 = {}
    for _ in range(3):
        for size in (0, FILE_BYTES):
            streams, seconds = play_beside_a_file(size)
            print(f"  a file of {size >> 20} MiB after {seconds:.1f} s")
            assert size * 8 >= 0.5 * FILE_LINE_BITS_PER_SECOND * seconds, seconds
            for stream in (PLAY, LOOSE, SEQUENCED, OTHER_WAY):
                print(f"    {quantiles(streams[stream])}, stream {stream}")
                p99[size, stream] = min(streams[stream]["p99"], p99.get((size, stream), float("inf")))
        if all(p99[FILE_BYTES, stream] <= p99[0, stream] + 15 for stream in (PLAY, LOOSE, SEQUENCED, OTHER_WAY)):
            return
    raise AssertionError(p99)


# -- stars


def a_slow_guest_of_a_star_delays_no_other():
    """Eight around a host, all send each other 60 messages a second. One is on a line with a tenth of the rate that it is sent."""
    guests = [f"guest{number}" for number in range(1, 8)]
    slow, *others = guests
    seconds = 15
    took = {}
    for kilobits in (None, 100):
        with Network("host", *guests) as network:
            network.set("*", "*", delay_ms=10)
            with Bench(network, "host", *guests, star=True) as bench:
                if kilobits:
                    network.both(slow, "*", rate_kbit=kilobits, queue_bytes=20_000)
                for number, sender in enumerate(others):
                    receiver = others[(number + 1) % len(others)]
                    bench.host(sender).send(0, receiver, hz=60, size=200, count=60 * seconds)
                    if kilobits:
                        bench.host(sender).send(1, slow, hz=60, size=200, count=60 * seconds)
                for sender in others:
                    bench.host(sender).sent(0)
                time.sleep(1)
                streams = [bench.host(receiver).report()[0] for receiver in others]
                assert all(stream["count"] == 60 * seconds for stream in streams), streams
                took[kilobits] = {key: max(stream[key] for stream in streams) for key in ("p50", "p99", "p999")}
                print(f"  {quantiles(took[kilobits])}, the worst of six, {'beside a slow guest' if kilobits else 'alone'}")
    assert took[100]["p50"] <= took[None]["p50"] + 5, took
    # Slack of a busy machine.
    assert took[100]["p99"] <= took[None]["p99"] + 40, took


TESTS = [
    a_slow_guest_of_a_star_delays_no_other,
    a_game_goes_on_beside_bulk_on_a_lossy_line,
    a_game_goes_on_beside_a_transfer_that_fills_a_clean_line,
    a_game_goes_on_beside_a_transfer_over_a_carrier,
    a_game_goes_on_beside_a_snapshot,
    a_game_goes_on_beside_a_file,
    eight_stay_together_under_loss_and_jitter,
    a_pause_of_4_s_is_survived,
    a_pause_of_30_s_is_survived,
    a_cable_pulled_for_30_s_is_survived,
    both_ends_count_the_messages_that_a_flapping_member_misses,
    a_split_of_three_and_two_heals_at_once,
    an_isolated_member_is_back_at_once,
    a_member_is_back_as_soon_as_its_cable,
    a_killed_leader_is_replaced_before_its_silence_is_noticed,
    a_far_leader_that_is_killed_in_play_is_replaced_as_soon,
    forged_reports_of_a_closed_port_depose_no_leader,
    the_dialling_side_changes_its_address,
    the_accepting_side_changes_its_address,
    a_process_restarts_under_its_id,
]
