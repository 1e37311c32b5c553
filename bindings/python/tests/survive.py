#!/usr/bin/env python3
"""Tests that a Python host survives the usual actions of hosts.

Shows each promise with real rooms over loopback and a second process of this program as the partner. Prints "ok NAME" per
promise and exits with 0 only when all hold.

    MMN_LIBRARY=target/release/libmeta_mystia_network.so python3 bindings/python/tests/survive.py [--rounds N] [NAME...]

NAME: unregister, shutdown, restart, reentry, exceptions, interrupts, clock, rooms, paths, late, ranges, poll, seeded, etcd (default: all), and layout, which
compares the structs with the lines "struct.field offset" of the file that MMN_LAYOUT names. --rounds: number of shutdowns in `shutdown` (20).
"""

import argparse
import contextlib
import ctypes
import faulthandler
import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import meta_mystia_network as mmn  # noqa: E402

EVENT_SECONDS = 10  # limit for an event that must come
TEST_SECONDS = 55  # limit of one test
UNREGISTER_ROUNDS = 200
RESTART_ROUNDS = 50
INTERRUPT_ROUNDS = 200
WARM_UP_ROUNDS = 10  # until the allocator and the interpreter have allocated what they keep
# Over 50 rooms: enough to find a leak of 100 KiB per room, and above the allocator's noise.
ALLOWED_GROWTH_KIB = 4096


def must(condition, text):
    if not condition:
        raise AssertionError(text)


def code_of(call):
    """The code of a refused call; 0 if it was not refused."""
    try:
        call()
        return 0
    except mmn.NetworkError as error:
        must(str(error), "an error without a sentence")
        return error.code


class Violations:
    """Failures in handlers, kept for the main thread: handlers cannot raise through the library."""

    def __init__(self):
        self.found = []

    def add(self, text):
        self.found.append(text)

    def none(self):
        must(not self.found, f"{len(self.found)} times: {self.found[:1]}")


class Partner:
    """This program in a second process; ends with the `with`, and with its parent at the latest."""

    number = 0

    def __init__(self, floods):
        Partner.number += 1
        self.session = f"survive-python-{os.getpid()}-{Partner.number}"
        command = [sys.executable, os.path.abspath(__file__), "--partner", self.session] + (["--flood"] if floods else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        must(self.address, "the partner did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    @staticmethod
    def run(session, floods):
        def leash():
            while os.read(0, 1):
                pass
            os._exit(0)

        room = mmn.Room("partner", session, on_message=lambda message: None)
        threading.Thread(target=leash, daemon=True).start()
        print(room.local_address, flush=True)
        count = 0
        while True:
            if not floods:
                time.sleep(3600)
            count += 1
            # The queues must stay full; pauses leave the machine usable for the tested side.
            if not room.peers or code_of(lambda: room.broadcast(b"x" * 64)) or count % 32 == 0:
                time.sleep(0.001)


def wait_for_company(room):
    deadline = time.monotonic() + EVENT_SECONDS
    while not room.peers or not room.leader:
        must(time.monotonic() < deadline, f"no partner or no leader within {EVENT_SECONDS} s")
        time.sleep(0.001)


# Every callback that the library ever had stays alive, and some tests bypass the room's layer: a late call must find its own
# function, which the layer would have freed.
KEPT = []


def register(room, handler):
    callback = mmn.MmnEventCallback(handler) if handler else mmn.MmnEventCallback()
    KEPT.append(callback)
    code = mmn.load_library().mmn_set_event_handler(room._handle, callback, None, mmn.MmnDropCallback())
    must(code == 0, f"mmn_set_event_handler: {code}")
    must(mmn.load_library().mmn_take_messages(room._handle) == 0, "mmn_take_messages")


def test_unregister(_):
    violations = Violations()
    with Partner(True) as partner, mmn.Room("main", partner.session) as room:
        room.connect(partner.address)
        wait_for_company(room)
        turn = None
        # The last one replaces the room's own handler.
        for kind in (room.on_message, room.on_leader, room.on_peer, room.on_connection, room.on_event, lambda h: register(room, h)):
            for number in range(UNREGISTER_ROUNDS):
                arrived = threading.Event()

                def handler(*_, mine=(kind, number), arrived=arrived):
                    if turn != mine:
                        violations.add("a function ran after it was unregistered")
                    arrived.set()

                turn = (kind, number)
                kind(handler)
                if kind == room.on_connection:
                    # Messages arrive by themselves, and every new function receives the present state; connection
                    # results need a call.
                    room.connect(partner.address)
                    room.connect(partner.address)
                # Every fourth round at once, else as soon as events arrive.
                if number % 4 != 3:
                    must(arrived.wait(EVENT_SECONDS), f"no event within {EVENT_SECONDS} s")
                kind(None)
                turn = None
                violations.none()


def test_shutdown(rounds):
    violations = Violations()
    with Partner(True) as partner:
        for number in range(rounds):
            state = {"open": True, "received": 0}
            flowing = threading.Event()

            def receive(_, event, state=state, flowing=flowing):
                if not state["open"]:
                    violations.add("a callback ran after the room was closed")
                state["received"] += event.contents.kind == mmn.EVENT_MESSAGE
                if state["received"] == 20:
                    flowing.set()

            room = mmn.Room(f"main-{number}", partner.session)
            register(room, receive)
            room.connect(partner.address)
            must(flowing.wait(EVENT_SECONDS), f"no messages within {EVENT_SECONDS} s")
            for _ in range(8):
                room.broadcast(b"bye")
            room.connect(partner.address)
            room.close()
            state["open"] = False
            # Time for a late callback to show itself.
            time.sleep(0.002)
            violations.none()
            must(not room.is_open, "still open after close()")


def usage():
    gc.collect()
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmRSS"].split()[0]), int(fields["Threads"]), len(os.listdir("/proc/self/fd"))


def test_restart(_):
    for number in range(WARM_UP_ROUNDS + RESTART_ROUNDS):
        if number == WARM_UP_ROUNDS:
            before = usage()
        with mmn.Room("main", "survive-alone", on_message=print, on_leader=lambda leader: None) as room:
            must(room.local_address, "no address")
    after = usage()
    deadline = time.monotonic() + 5
    # The kernel counts a joined thread for a moment longer.
    while after[1] > before[1] and time.monotonic() < deadline:
        time.sleep(0.01)
        after = usage()
    grown = [b - a for a, b in zip(before, after)]
    print(f"   memory {grown[0]:+} KiB (allowed {ALLOWED_GROWTH_KIB}), threads {grown[1]:+}, descriptors {grown[2]:+}")
    must(grown[0] <= ALLOWED_GROWTH_KIB, f"memory grew from {before[0]} to {after[0]} KiB")
    must(grown[1] <= 0, f"threads grew from {before[1]} to {after[1]}")
    must(grown[2] <= 0, f"descriptors grew from {before[2]} to {after[2]}")


def test_reentry(_):
    problems = Violations()
    native = mmn.load_library()
    others = []
    with Partner(True) as partner, mmn.Room("main", partner.session) as room:
        begun, done = set(), {kind: threading.Event() for kind in ("message", "leader", "peer", "connection")}

        def everything():
            must(code_of(room.close) == mmn.WOULD_DEADLOCK, "close() in a handler is not -15")
            must(native.mmn_close(room._handle) == mmn.WOULD_DEADLOCK, "mmn_close in a handler is not -15")
            must(native.mmn_last_error_code() == mmn.WOULD_DEADLOCK, "the last error is not -15")
            must(native.mmn_last_error_message(), "no last error sentence")
            must(room.is_open, "not open any more")
            other = mmn.Room("other", "another session", mmn.NetworkOptions())
            other.on_event(print)
            must(code_of(other.close) == mmn.WOULD_DEADLOCK, "close() of another room in a handler is not -15")
            other.leave()
            others.append(other)
            room.connect(partner.address)
            room.disconnect("unknown")
            must(room.local_address, "no address")
            must(room.peer_id == "main", "another peer id")
            must(room.session_id == partner.session, "another session id")
            must(isinstance(room.peers, list), "no list of peers")
            room.rtt_ms("partner")
            must(room.status("unknown") == mmn.STATUS_UNKNOWN, "a status of an unknown peer")
            room.set_leader("main")
            room.enable_auto_election()
            must(room.leader is None or room.leader, "the leader is an empty string")
            must(room.is_leader in (True, False), "is_leader")
            room.broadcast(b"x")
            # The partner fills this host's queue while the handler runs.
            code = code_of(lambda: room.send("main", b"x"))
            must(code in (0, mmn.SEND_QUEUE_FULL), f"send: {code}")
            code = code_of(lambda: room.send_to_leader(b"x"))
            must(code in (0, mmn.PEER_NOT_FOUND, mmn.NOT_LEADER, mmn.SEND_QUEUE_FULL), f"send_to_leader: {code}")
            code = code_of(lambda: room.send_from_leader(b"x"))
            must(code in (0, mmn.NOT_LEADER), f"send_from_leader: {code}")
            mmn.set_log_stderr(mmn.LOG_OFF)
            must(native.mmn_abi_version() >= mmn.ABI_VERSION, "mmn_abi_version")
            must(native.mmn_library_version(), "mmn_library_version")
            must(mmn.describe_error(mmn.WOULD_DEADLOCK), "describe_error")
            for unregister in (room.on_message, room.on_leader, room.on_peer, room.on_connection):
                unregister(None)
            set_handlers()

        def handler(kind):
            def call(*_):
                if kind in begun:
                    return
                begun.add(kind)
                try:
                    everything()
                except Exception as error:
                    problems.add(f"in a handler of {kind}: {error!r}")
                done[kind].set()

            return call

        def set_handlers():
            room.on_leader(handler("leader"))
            room.on_peer(handler("peer"))
            room.on_connection(handler("connection"))
            room.on_message(handler("message"))

        room.connect(partner.address)
        set_handlers()
        for kind, event in done.items():
            must(event.wait(EVENT_SECONDS), f"no event of kind {kind} within {EVENT_SECONDS} s; {problems.found}")
    problems.none()
    for other in others:
        must(not other.is_open and code_of(lambda other=other: other.broadcast(b"x")) == mmn.NOT_INITIALIZED, "left, and open")
        other.close()


def test_exceptions(_):
    came = []
    twice = threading.Event()

    def broken(message):
        came.append(message)
        if len(came) == 2:
            twice.set()
        raise SystemExit("from a handler")

    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), mmn.Room("mäin", "survive-alone", on_message=broken) as room:
        room.send("mäin", "grüße".encode(), 0x0123)
        room.send("mäin", b"")
        must(twice.wait(EVENT_SECONDS), "the second message did not come")
    must((came[0].sender, came[0].data, came[0].type) == ("mäin", "grüße".encode(), 0x0123), f"damaged: {came[0]}")
    must(came[1].data == b"", f"damaged: {came[1]}")
    must(printed.getvalue().count("SystemExit: from a handler") == 2, f"not printed: {printed.getvalue()!r}")
    must(code_of(lambda: mmn.Room("", "s")) == mmn.INVALID_ARGUMENT, "an empty id")
    with mmn.Room("main", "survive-alone", mmn.NetworkOptions(heartbeat_interval_ms=400)) as room:
        must(code_of(lambda: room.send("unknown", b"x")) == mmn.PEER_NOT_FOUND, "a message to an unknown peer")
        try:
            room.connect("a\0b:1")
            raise AssertionError("a NUL in an address was taken")
        except ValueError:
            pass


def test_interrupts(_):
    """Ctrl+C and sys.exit() in a handler end a program that polls: once, whenever they come."""
    came = []
    act = None

    def received(message):
        came.append(message.data)
        if message.data == b"1":
            act()

    def poll_two():
        """Polls until two messages have come, the first of which acts. The types of the exceptions of poll()."""
        came.clear()
        raised = []
        room.send("main", b"1")
        room.send("main", b"2")
        deadline = time.monotonic() + EVENT_SECONDS
        while len(came) < 2:
            must(time.monotonic() < deadline, f"{came} came, {raised}")
            try:
                room.poll()
            except (KeyboardInterrupt, SystemExit) as error:
                raised.append(type(error))
        return raised

    def stuck():
        interrupt()
        interrupt()
        raise AssertionError("the second Ctrl+C did not interrupt the handler")

    def interrupt():
        signal.raise_signal(signal.SIGINT)

    options = mmn.NetworkOptions(bind_address="127.0.0.1")
    with mmn.Room("main", "survive-alone", options=options, on_message=received) as room:
        until(lambda: room.poll() == 0 and room.is_leader, "a leader")
        for act, raised in ((sys.exit, SystemExit), (interrupt, KeyboardInterrupt), (stuck, KeyboardInterrupt)):
            printed = io.StringIO()
            with contextlib.redirect_stderr(printed):
                must(poll_two() == [raised], f"poll() did not raise {raised.__name__}")
            must(came == [b"1", b"2"] and not printed.getvalue(), f"{came}, {printed.getvalue()!r}")
            must(signal.getsignal(signal.SIGINT) is signal.default_int_handler, "poll() left a signal handler behind")
        act = int
        must(poll_two() == [] and came == [b"1", b"2"], f"{came} after an interrupt")

        others = []
        act = lambda: others.append(signal.getsignal(signal.SIGINT))  # noqa: E731
        mine = lambda *_: None  # noqa: E731
        before = signal.signal(signal.SIGINT, mine)
        must(poll_two() == [] and others == [mine], "poll() replaced the program's own signal handler")
        signal.signal(signal.SIGINT, before)

        thrown = []
        act = sys.exit
        thread = threading.Thread(target=lambda: thrown.extend(poll_two()))
        thread.start()
        thread.join()
        must(thrown == [SystemExit], f"poll() raised {thrown} on another thread")

        act = int
        for round in range(INTERRUPT_ROUNDS):
            timer = threading.Timer(0.002 + round * 1e-5, os.kill, (os.getpid(), signal.SIGINT))
            deadline = time.monotonic() + EVENT_SECONDS
            try:
                timer.start()
                while True:
                    must(time.monotonic() < deadline, f"Ctrl+C {round} had no effect")
                    room.send("main", b"x")
                    room.poll()
            except KeyboardInterrupt:
                timer.join()

    def greeted(_):
        interrupt()

    with mmn.Room("main", "survive-alone", options=alone()) as room:
        until(lambda: room.is_leader, "a leader in thread mode")
        try:
            room.on_leader(greeted)
            raise AssertionError("on_leader() dropped the Ctrl+C of the handler that it greets")
        except KeyboardInterrupt:
            pass


def until(condition, what):
    deadline = time.monotonic() + EVENT_SECONDS
    while not condition():
        must(time.monotonic() < deadline, f"not within {EVENT_SECONDS} s: {what}")
        time.sleep(0.002)


def alone(**fields):
    """Options for a room in thread mode that finds no others by itself."""
    return mmn.NetworkOptions(bind_address="127.0.0.1", dispatch_mode=mmn.DISPATCH_THREAD, **fields)


def test_clock(_):
    """Two rooms of different ages become one: its members share the older one's time, and keep it without the leader."""
    session = f"survive-python-{os.getpid()}-clock"
    older = mmn.Room("older", session, alone(heartbeat_interval_ms=100))
    until(lambda: older.time_ms > 1500, "the older room's age")
    rooms = {"older": older, "younger": mmn.Room("younger", session, alone(heartbeat_interval_ms=100))}
    must(0 <= rooms["younger"].time_ms < 1000, f"a new room's time is {rooms['younger'].time_ms}")
    last = {"older": 0, "younger": 0}

    def passes(condition):
        for name, room in rooms.items():
            now = room.time_ms
            must(now >= last[name], f"{name}: {now} ms after {last[name]} ms")
            last[name] = now
        return condition()

    def agree():
        error_us = max(room.room_stats().room_time_error_us for room in rooms.values())
        before, between, after = older.time_ms, rooms["younger"].time_ms, older.time_ms
        error_ms = error_us / 1000 + 1
        return error_us < 100_000 and before - error_ms <= between <= after + error_ms

    rooms["younger"].connect(older.local_address)
    until(lambda: passes(lambda: older.leader == rooms["younger"].leader is not None and agree()), "one time")
    now = rooms["younger"].time_ms
    must(now > 1500, f"the younger one's time is {now} ms")
    for _ in range(200):
        must(passes(agree), "the times differ by more than their error")
        time.sleep(0.005)
    leader = older.leader
    rooms.pop(leader).close()
    ((name, alone_now),) = rooms.items()
    until(lambda: passes(lambda: alone_now.is_leader), f"{name} leads")
    must(alone_now.room_stats().room_time_error_us == 0, "a leader's time has no error")
    alone_now.close()
    must(alone_now.time_ms == -1, "the time of a closed room")


def test_rooms(_):
    """Two players of one room and one of another, in one process; then calls on rooms that are closed."""
    session = f"survive-python-{os.getpid()}-rooms"
    came = {name: [] for name in ("one", "two", "three")}
    rooms = [
        mmn.Room(name, session + where, alone(secret="tea"), on_event=came[name].append)
        for name, where in (("one", "-a"), ("two", "-a"), ("three", "-b"))
    ]
    one, two, three = rooms
    two.connect(one.local_address)
    three.connect(one.local_address)
    until(lambda: one.peers == ["two"] and two.peers == ["one"] and one.leader == two.leader != None, "a room of two")  # noqa: E711
    until(lambda: any(isinstance(event, mmn.ConnectionResult) for event in came["three"]), "a result")
    must(three.peers == [] and three.leader == "three", f"{three.peers}")
    for room in rooms:
        room.broadcast(room.peer_id.encode())
    one.send("two", b"last")
    messages = lambda name: [(e.sender, e.data) for e in came[name] if isinstance(e, mmn.Message)]  # noqa: E731
    until(lambda: messages("two") == [("one", b"one"), ("one", b"last")], "messages to two")
    until(lambda: messages("one") == [("two", b"two")], "a message to one")
    must(messages("three") == [], f"{came}")
    two.close()
    until(lambda: any(isinstance(e, mmn.PeerLeft) and e.reason.words == "left" for e in came["one"]), "two has left")
    must(one.is_open and three.is_open and not two.is_open, "another room was closed")
    before = len(came["two"])
    calls = (
        lambda room: room.broadcast(b"x"),
        lambda room: room.send("one", b"x"),
        lambda room: room.connect("127.0.0.1:9"),
        lambda room: room.peers,
        lambda room: room.leader,
        lambda room: room.poll(),
        lambda room: room.leave(),
        lambda room: room.on_message(print),
        lambda room: room.gossip_windows,
        lambda room: room.room_stats(),
        lambda room: room.path("one"),
    )
    codes = [code_of(lambda call=call: call(two)) for call in calls]
    must(codes == [mmn.NOT_INITIALIZED] * len(calls), f"{codes}")
    must((two.is_leader, two.status("one"), two.address("one"), two.index("one")) == (False, -1, None, 0), "answers without a room")
    must((two.carrier("one"), two.public_address) == (None, None), "texts without a room")
    two.close()
    must(len(came["two"]) == before, "an event after close()")
    # Closing many takes the time of one.
    begun = time.monotonic()
    more = [mmn.Room(f"m{number}", session, alone()) for number in range(8)]
    for room in more + [one, three]:
        room.leave()
    for room in more + [one, three]:
        room.close()
    must(time.monotonic() - begun < 8, "ten rooms did not leave together")


def test_paths(_):
    """The guests of a star reach each other through its host."""
    session = f"survive-python-{os.getpid()}-paths"
    with contextlib.ExitStack() as rooms:

        def join(name, host_mode):
            options = alone(topology=mmn.TOPOLOGY_STAR, host_mode=host_mode)
            return rooms.enter_context(mmn.Room(name, session, options))

        host = join("host", mmn.HOST_MODE_HOST)
        ann, bob = (join(name, mmn.HOST_MODE_GUEST) for name in ("ann", "bob"))
        for guest in (ann, bob):
            guest.connect(host.local_address)
        until(lambda: all(len(room.peers) == 2 for room in (host, ann, bob)), "three members")
        for guest, other in ((ann, "bob"), (bob, "ann")):
            path, carrier = guest.path(other), guest.carrier(other)
            must((path, carrier) == (mmn.LinkPath.THROUGH_LEADER, "host"), f"the path to {other} is {path!r}, {carrier}")
            must(guest.stats(other).path == mmn.PATH_THROUGH_LEADER, "another path in the statistics")
            must((guest.path("host"), guest.carrier("host")) == (mmn.LinkPath.DIRECT, None), "the path to the host")
        must((ann.path("nobody"), ann.carrier("nobody"), ann.path("ann")) == (None, None, None), "paths without a link")
        must(code_of(lambda: ann.path("")) == mmn.INVALID_ARGUMENT, "a path to no id")
        must(ann.public_address is None, "loopback is not the internet")


def test_late(_):
    """A handler that is set late first receives the present state, and the messages that had no handler yet."""
    session = f"survive-python-{os.getpid()}-late"
    with mmn.Room("one", session, alone()) as one, mmn.Room("two", session, alone()) as two:
        two.connect(one.local_address)
        until(lambda: one.leader and two.leader and one.peers and two.peers, "a room of two")
        two.send("one", b"early")
        # Time for it to arrive.
        time.sleep(0.3)
        peers, leaders, leads, messages, events = [], [], [], [], []
        one.on_peer(lambda *peer: peers.append(peer))
        one.on_leader(leaders.append)
        one.on_leadership(leads.append)
        one.on_message(messages.append)
        until(lambda: messages, "the early message")
        until(lambda: peers and leaders, "the present state")
        one.on_event(events.append)
        kinds = [type(event) for event in events]
        expected = [mmn.LeaderChanged] + [mmn.LeadershipGained] * one.is_leader + [mmn.PeerJoined]
        must(kinds == expected, f"{kinds}")
        must(peers == [("two", mmn.PEER_CONNECTED)] and leaders == [one.leader], f"{peers}, {leaders}")
        must(leads == [True] * one.is_leader and [m.data for m in messages] == [b"early"], f"{leads}, {messages}")
        # In a handler: after the event, and on its thread.
        threads = {}
        nested = threading.Event()

        def first(message):
            threads["first"] = threading.get_ident()
            one.on_peer(lambda *_: (threads.update(second=threading.get_ident()), nested.set()))
            threads["before"] = "second" not in threads

        one.on_message(first)
        two.send("one", b"again")
        must(nested.wait(EVENT_SECONDS), "no present state for a handler that was set in a handler")
        must(threads["before"] and threads["first"] == threads["second"], f"{threads}")
    held_in_a_queue(session)


def held_in_a_queue(session):
    """In poll mode: more messages than a queue holds wait for their first handler, and none runs after the room."""
    count, came = 5000, []
    options = mmn.NetworkOptions(bind_address="127.0.0.1")
    sender = alone(send_queue_capacity=2 * count)
    with mmn.Room("one", session + "-held", options, on_leader=lambda _: None) as one, mmn.Room("two", session + "-held", sender) as two:

        def polled(condition):
            one.poll()
            return condition()

        two.connect(one.local_address)
        until(lambda: polled(lambda: two.peers), "a room of two")
        for number in range(count):
            two.send("one", str(number).encode())
        # Time for those to arrive for which there is room.
        arrived = time.monotonic() + 0.3
        until(lambda: polled(lambda: time.monotonic() > arrived), "some time")
        one.on_message(came.append)
        until(lambda: polled(lambda: len(came) == count), "every message")
        must([int(message.data) for message in came] == list(range(count)), "the messages are not in order")
        two.send("one", b"late")
        until(lambda: one.stats("two").messages_received > count, "the last message")
        one.close()
        must(code_of(one.poll) == mmn.NOT_INITIALIZED and len(came) == count, "a message after close()")


def test_codes(_):
    """Codes, and a room that is to meet others at a relay."""
    code = mmn.generate_room_code()
    must(len(code) == mmn.ROOM_CODE_BYTES - 1 and code[4] == code[9] == "-" and code != mmn.generate_room_code(), f"a code: {code}")
    typed = f" {code.lower().replace('-', '  ')}\n"
    must(mmn.normalize_room_code(typed) == code, f"another code than {code}")
    must(mmn.normalize_room_code("Ｋ７ＱＭ—3xp9 trwf") == "K7QM-3XP9-TRWF", "a code in full width")
    must(code_of(lambda: mmn.normalize_room_code("K7QM-3XP9-TRWG")) == mmn.INVALID_ARGUMENT, "a typo")
    relays = ["127.0.0.1:9", "[::1]:9 token=000g40r40m30e209185gr38e1w"]
    options = mmn.NetworkOptions(bind_address="127.0.0.1", relays=relays, paths=mmn.PATHS_RELAYED)
    must(code_of(lambda: mmn.Room("ann", "tea", options)) == mmn.INVALID_ARGUMENT, "a session id that is no code")
    with mmn.Room("ann", typed, options) as room:
        must(room.session_id == code, f"another session: {room.session_id}")
        must(code_of(lambda: room.connect("127.0.0.1:9")) == mmn.NOT_SUPPORTED, "a dial that shows the address")
    options.port_mapping = mmn.PORT_MAPPING_ON
    must(code_of(lambda: mmn.Room("ann", code, options)) == mmn.INVALID_ARGUMENT, "relayed paths with a port of the router")
    options.port_mapping = mmn.PORT_MAPPING_OFF
    options.turn = ["turn:127.0.0.1:9 username=u"]
    must(code_of(lambda: mmn.Room("ann", code, options)) == mmn.INVALID_ARGUMENT, "a TURN server without a password")
    options.turn = None
    options.relays = None
    must(code_of(lambda: mmn.Room("ann", code, options)) == mmn.INVALID_ARGUMENT, "relayed paths without a relay")


def test_browse(_):
    """A browser lists a room by its card; its handler may fail, and may not close the browser."""
    game = f"survive-python-{os.getpid()}"
    seen, refused = [], []
    browsers = []

    def listed(room):
        refused.append(code_of(browsers[0].close))
        seen.append(room)
        raise ValueError("intended by the test")

    must(code_of(lambda: mmn.Browser("")) == mmn.INVALID_ARGUMENT, "a game without a name")
    with mmn.Room("ann", game, alone(entry=mmn.ENTRY_CREATE)) as room, mmn.Browser(game, listed, polls=True) as browser:
        browsers.append(browser)
        must(code_of(lambda: room.show_card(mmn.RoomCard(game, "bell\7"))) == mmn.INVALID_ARGUMENT, "a control character")
        must(code_of(lambda: room.show_card(mmn.RoomCard(game, "room", data=b"x" * 401))) == mmn.INVALID_ARGUMENT, "401 bytes")
        room.show_card(mmn.RoomCard(game, "Ann's room", data=b"\0map", is_open=True, max_players=4))
        until(lambda: browser.poll() and seen, "the room is listed")
        (found,) = browser.rooms
        must((found.name, found.session_id, found.data, found.players) == ("Ann's room", game, b"\0map", 1), f"{found}")
        must((found.max_players, found.needs_secret) == (4, False) and found.fingerprint == room.identity_fingerprint, f"{found}")
        must(refused == [mmn.WOULD_DEADLOCK], f"closed inside its handler: {refused}")
        room.show_card(None)
        until(lambda: browser.poll() and seen[-1].change is mmn.ListChange.GONE, "the room is gone")
        must(browser.rooms == [], f"{browser.rooms}")
    must(code_of(browser.poll) == mmn.NOT_INITIALIZED, "a closed browser")


def test_ranges(_):
    """Arguments that ctypes would wrap or misunderstand are refused, with their name, their value and the limit."""
    options = mmn.NetworkOptions

    def refused(kind, parts, call):
        try:
            call()
        except kind as error:
            must(all(part in str(error) for part in parts), f"{parts} are not in {error}")
            return
        raise AssertionError(f"accepted: {parts}")

    refused(OverflowError, ("bind_port", "80000", "65535"), lambda: options(bind_port=80000))
    refused(OverflowError, ("bind_port", "-1"), lambda: options(bind_port=-1))
    refused(OverflowError, ("eligible", "256"), lambda: options(eligible=256))
    refused(TypeError, ("priority", "high"), lambda: options(priority="high"))
    refused(TypeError, ("bind_address", "5"), lambda: options(bind_address=5))
    refused(TypeError, ("no field", "bind_prot"), lambda: options(bind_prot=1))
    refused(TypeError, ("no field", "bind_prot"), lambda: setattr(options(), "bind_prot", 1))
    refused(OverflowError, ("max_peers", "-1"), lambda: setattr(options(), "max_peers", -1))
    refused(TypeError, ("seeded", "SeededOptions"), lambda: options(seeded={}))
    refused(OverflowError, ("delivery", "300", "255"), lambda: mmn.SendOptions(300))
    refused(OverflowError, ("ttl_ms", "-1"), lambda: mmn.SendOptions(ttl_ms=-1))
    refused(TypeError, ("peer_id", "5"), lambda: mmn.Room(5, "tea"))
    refused(TypeError, ("options", "dict"), lambda: mmn.Room("main", "tea", {}))
    with mmn.Room("main", "survive-alone", alone(secret=b"tea")) as room:
        refused(OverflowError, ("type", "70000", "65535"), lambda: room.send("main", b"x", 70000))
        refused(OverflowError, ("flags", "256", "255"), lambda: room.send("main", b"x", flags=256))
        refused(TypeError, ("data", "str"), lambda: room.broadcast("x"))
        refused(TypeError, ("peer_id", "None"), lambda: room.send(None, b"x"))
        refused(TypeError, ("options", "int"), lambda: room.broadcast(b"x", options=1))
        refused(OverflowError, ("code", str(1 << 31)), lambda: room.kick("guest", 1 << 31))
        refused(OverflowError, ("timeout_ms", "-1"), lambda: room.acquire_lock("door", -1))
        refused(mmn.NetworkError, ("msg_type", "5", "256"), lambda: room.send("main", b"x", 5))
        refused(mmn.NetworkError, ("options.priority", "3"), lambda: room.broadcast(b"x", options=mmn.SendOptions(priority=3)))
        refused(mmn.NetworkError, ("dispatch_mode 1 (poll)",), room.poll)
        refused(mmn.NetworkError, ("main", "close it"), lambda: room.disconnect("main"))


def test_poll(_):
    """Poll mode and every safe function, with guest.py: rejected, admitted, removed."""
    came, threads, logged = [], set(), []
    mmn.set_log(lambda level, text: logged.append(text), mmn.LOG_DEBUG)
    session = f"survive-python-{os.getpid()}-poll"
    options = mmn.NetworkOptions(bind_address="127.0.0.1", secret=b"tea", member_hold_ms=5000)
    with mmn.Room("main", session, options=options) as room:

        def happened(event):
            threads.add(threading.get_ident())
            came.append(event)
            if isinstance(event, mmn.JoinRequest) and event.payload == b"let me in":
                room.reject_join(event.request, 7, "später".encode())
            elif isinstance(event, mmn.JoinRequest):
                room.accept_join(event.request)
            elif isinstance(event, mmn.Message):
                must(code_of(room.poll) == mmn.WOULD_DEADLOCK, "poll() in a handler is not -15")

        def until(kind):
            deadline = time.monotonic() + 3 * EVENT_SECONDS
            while True:
                for event in came:
                    if isinstance(event, kind):
                        return event
                must(time.monotonic() < deadline, f"no {kind.__name__}; came: {came}")
                room.poll(1)
                time.sleep(0.002)

        room.on_event(happened)
        must(until(mmn.LeadershipGained).leader == "main", "another leader")
        room.enable_join_requests()
        room.set_max_peers(3)
        room.auto_reconnect = True
        must(room.auto_reconnect, "auto_reconnect")
        room.centralized = room.centralized_auto_forward = True
        must(room.centralized and room.centralized_auto_forward and not room.discovering, "switches")
        room.set_compression_threshold(64)
        room.set_leader_eligible(True)
        must(room.gossip_windows == (15000, 1000, 10000, 5000), f"{room.gossip_windows}")
        room.gossip_windows = mmn.GossipWindows(501, 502, 503, 504)
        must(room.gossip_windows == (501, 502, 503, 504), f"{room.gossip_windows}")
        broken = room.gossip_windows._replace(alive_threshold_ms=0)
        must(code_of(lambda: setattr(room, "gossip_windows", broken)) == mmn.INVALID_ARGUMENT, "a window of 0 ms")
        must(room.election_strategy == mmn.STRATEGY_RAFT, "another strategy")
        must(code_of(lambda: room.accept_join(12345)) == mmn.PEER_NOT_FOUND, "accept_join of no request")
        must(code_of(lambda: room.stats("guest")) == mmn.PEER_NOT_FOUND, "stats of an unknown peer")
        command = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest.py")]
        guest = subprocess.Popen(command + [session, room.local_address], stdout=subprocess.PIPE, text=True)
        try:
            must(until(mmn.PeerJoined).peer == "guest", "another guest")
            message = until(mmn.Message)
            must((message.sender, message.data, message.type, message.flags) == ("guest", b"hello", 0x0123, 2), f"{message}")
            must(room.stats("guest").messages_received == 1, "stats")
            must((room.index("guest"), room.peer_at(1), message.peer_index) == (1, "guest", 1), "the guest's number")
            must(room.members == room.peers == ["guest"], f"{room.members}")
            must(room.address("guest") and len(room.fingerprint("guest")) == 64, "the guest's address and key")
            must(len(room.identity_fingerprint) == 64 and room.identity_fingerprint != room.fingerprint("guest"), "this host's key")
            unknown = (room.index("unknown"), room.peer_at(0), room.address("unknown"), room.fingerprint("unknown"))
            must(unknown == (0, None, None, None), f"{unknown}")
            keys = [mmn.generate_identity_key() for _ in range(2)]
            must(len(keys[0]) == mmn.IDENTITY_KEY_BYTES and keys[0] != keys[1], "new keys")
            room.forward("main", "guest", b"x" * 1000)
            room.set_leader("main")
            result = until(mmn.SetLeaderResult)
            must(result.success and result.code == mmn.OK, f"{result}")
            room.kick("guest", 9, "tschüss".encode(), ban=True)
            left = until(mmn.PeerLeft)
            must((left.peer, left.reason, left.code, left.data) == ("guest", mmn.LEFT_KICKED, 9, "tschüss".encode()), f"{left}")
            room.unban("guest")
            must(code_of(lambda: room.unban("guest")) == mmn.PEER_NOT_FOUND, "unban of an unknown peer")
            must(code_of(lambda: room.kick("guest")) == mmn.PEER_NOT_FOUND, "kick of an unknown peer")
            room.disconnect("guest", 3, "tschüss".encode())  # an unknown member is no error
            printed = guest.communicate(timeout=3 * EVENT_SECONDS)[0].splitlines()
            must(printed == ["rejected 7 später", "joined", f"ended {mmn.END_KICKED} 9 tschüss"], f"{printed}")
        finally:
            guest.kill()
            guest.wait()
    must(threads == {threading.get_ident()}, "a handler ran on another thread")
    must(logged, "no log")
    mmn.set_log(None)


def test_seeded(_):
    """A seed alone: its options, queries about its cluster, and a handler for one type of messages."""
    with tempfile.TemporaryDirectory() as directory:
        seeded = mmn.SeededOptions(["localhost:9", "[::1]:9"], profile=mmn.SEEDED_PROFILE_LAN, is_seed=True, ttl_timeout_ms=1600)
        must((seeded.heartbeat_timeout_ms, seeded.ttl_timeout_ms) == (600, 1600), "the intervals of the profile")
        must(code_of(lambda: mmn.SeededOptions(profile=2)) == mmn.INVALID_ARGUMENT, "a profile that is none")
        options = mmn.NetworkOptions(
            bind_address="127.0.0.1",
            strategy=mmn.STRATEGY_SEEDED,
            state_directory=directory,
            quorum_roster=["main"],
            seeded=seeded,
        )
        session = f"survive-python-{os.getpid()}-seeded"
        must(code_of(lambda: mmn.Room("other", session, options=options)) == mmn.INVALID_ARGUMENT, "a seed without a vote")
        came, messages, typed = [], [], []
        with mmn.Room("main", session, options=options, on_event=came.append, on_message=messages.append) as room:
            room.on_type(0x0123, typed.append)
            must(room.election_strategy == mmn.STRATEGY_SEEDED, "another strategy")
            deadline = time.monotonic() + EVENT_SECONDS

            def until(holds, what):
                while not holds():
                    must(time.monotonic() < deadline, f"not in time: {what}; came: {came}")
                    room.poll()
                    time.sleep(0.002)

            until(lambda: room.is_leader, "a seed that is alone leads")
            states = lambda: [(e.peer, e.state, e.version) for e in came if isinstance(e, mmn.MemberStateChanged)]  # noqa: E731
            until(lambda: states() == [("main", mmn.MEMBER_JOINING, 1), ("main", mmn.MEMBER_ACTIVE, 1)], "its states")
            must(room.member_state("main") == mmn.MEMBER_ACTIVE and room.cluster_version == 1, "its own state")
            must(room.member_state("unknown") == mmn.MEMBER_INIT, "the state of an unknown peer")
            must(mmn.describe_member_state(mmn.MEMBER_UNREACHABLE) == "unreachable", "states in words")
            must(code_of(lambda: room.set_leader("main")) == mmn.NOT_SUPPORTED, "set_leader")
            room.send("main", b"one", 0x0123)
            room.send("main", b"two", 0x0124)
            until(lambda: messages, "a message of another type")
            must([m.data for m in typed] == [b"one"] and [m.data for m in messages] == [b"two"], f"{typed}, {messages}")
            room.on_message(None)
            room.send("main", b"three", 0x0123)
            until(lambda: len(typed) == 2, "a message of the type without another handler")
            room.on_message(messages.append)
            room.on_type(0x0123, None)
            room.send("main", b"four", 0x0123)
            until(lambda: len(messages) == 2, "a message of the type without its handler")
            must([m.data for m in typed] == [b"one", b"three"], f"{typed}")
            try:
                room.on_type(0x00FF, typed.append)
                raise AssertionError("a type of the library's was taken")
            except ValueError:
                pass
        must(os.listdir(directory), "no state file")


def test_etcd(_):
    """The options of the etcd strategy, with endpoints without a server, in builds that have it; and its calls in a room without it."""
    session = f"survive-python-{os.getpid()}-etcd"
    with mmn.Room("main", session, options=mmn.NetworkOptions(bind_address="127.0.0.1")) as room:
        must(room.fencing_token == -1, "a token without etcd")
        must(code_of(lambda: room.proclaim("here")) == mmn.NOT_SUPPORTED, "proclaim")
        must(code_of(lambda: room.acquire_lock("door", 100)) == mmn.NOT_SUPPORTED, "acquire_lock")
        must(code_of(lambda: room.try_lock("")) == mmn.INVALID_ARGUMENT, "try_lock")
        must(code_of(lambda: room.release_lock("door")) == mmn.NOT_SUPPORTED, "release_lock")

    def options(prefix):
        etcd = mmn.EtcdOptions(["http://127.0.0.1:9", "http://[::1]:9"], prefix, address="play.example.org:4433")
        must(etcd.ttl_seconds == 10, "the default time to live")
        return mmn.NetworkOptions(bind_address="127.0.0.1", strategy=mmn.STRATEGY_ETCD, etcd=etcd)

    try:
        with mmn.Room("main", session, options=options("rooms/lobby")) as room:
            must(room.election_strategy == mmn.STRATEGY_ETCD, "another strategy")
            must(room.fencing_token == 0 and not room.is_leader, "a leader without etcd")
            first = room.try_lock("door")
            must(0 < first < room.acquire_lock("window", 100), "the numbers of lock calls")
            room.release_lock("window")
    except mmn.NetworkError as error:
        must(error.code == mmn.NOT_SUPPORTED, str(error))
        return
    must(code_of(lambda: mmn.Room("main", session, options=options("rooms/"))) == mmn.INVALID_ARGUMENT, "a slash at the end")


def test_layout(_):
    structs = {
        {"_NetworkConfig": "NetworkConfigFFI"}.get(name, name[1:]): struct
        for name, struct in vars(mmn).items()
        if name.startswith("_") and isinstance(struct, type) and issubclass(struct, ctypes.Structure)
    }
    own = set()
    for name, struct in structs.items():
        own.add(f"{name} {ctypes.sizeof(struct)}")
        own.update(f"{name}.{field} {getattr(struct, field).offset}" for field, _ in struct._fields_)
    with open(os.environ["MMN_LAYOUT"]) as header:
        must(own == set(header.read().splitlines()), f"the structs are not those of the header: {sorted(own)}")


TESTS = {
    "unregister": test_unregister,
    "shutdown": test_shutdown,
    "restart": test_restart,
    "reentry": test_reentry,
    "exceptions": test_exceptions,
    "interrupts": test_interrupts,
    "clock": test_clock,
    "rooms": test_rooms,
    "paths": test_paths,
    "codes": test_codes,
    "browse": test_browse,
    "late": test_late,
    "ranges": test_ranges,
    "poll": test_poll,
    "seeded": test_seeded,
    "etcd": test_etcd,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--partner", metavar="SESSION")
    parser.add_argument("--flood", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.partner:
        return Partner.run(arguments.partner, arguments.flood)
    for name in arguments.names or TESTS:
        # Works even when every Python thread is stuck inside the library.
        faulthandler.dump_traceback_later(TEST_SECONDS, exit=True)
        try:
            (TESTS | {"layout": test_layout})[name](arguments.rounds)
        except (AssertionError, mmn.NetworkError) as error:
            print(f"FAILED {name}: {error}", file=sys.stderr, flush=True)
            return 1
        print(f"ok {name}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return 0


if __name__ == "__main__":
    sys.exit(main())
