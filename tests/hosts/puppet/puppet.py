"""A remote-controlled host: one room over the C ABI, commanded by JSON lines on standard input. `room.py` commands it.

A command is one line, {"id": 1, "call": "SendToPeer", "args": ["bob", "hello", 256, 0]} or {"id": 2, "do": "inflow", ...} (the
methods `do_*` of Puppet), with "thread": NAME to run on a thread of that name, and "at" to start at that moment of
CLOCK_MONOTONIC. A function whose first argument is a room gets the default room. Each command is answered by one line with its
id, its result and, after a failed call, the thread's last error. Every callback becomes a line too: {"event": "PeerStatus",
"args": [...], "at": CLOCK_MONOTONIC in seconds, "thread": ...}. Commands inside a callback are set before it (`do_react`).

Messages of a type from STREAM_TYPES on are numbered streams: sent, counted and digested in here, so that no test measures JSON.
The end of standard input ends the process without a leave. MMN_LIBRARY names the library.
"""

import ctypes
import hashlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bindings/python"))
import meta_mystia_network as mmn  # noqa: E402

STREAM_TYPES = 0x0200
OK, SEND_QUEUE_FULL = 0, -7

# An argument given as one text: pointer and length.
BYTES = object()


def commanded(arguments):
    """The arguments of a function as a command gives them; None for a callback or a struct."""
    kinds = list(arguments)
    while mmn._BYTES in kinds:
        place = kinds.index(mmn._BYTES)
        kinds[place : place + 2] = [BYTES]
    simple = all(kind is BYTES or issubclass(kind, ctypes._SimpleCData) for kind in kinds)
    return kinds if simple else None


# Name: (result, arguments).
FUNCTIONS = {
    name: (result, commanded(arguments))
    for name, (result, arguments) in mmn.FUNCTIONS.items()
    if commanded(arguments) is not None
}

# Name: arguments, of the callbacks with a registering function of their own.
CALLBACKS = {
    name.removeprefix("Register").removesuffix("Callback"): arguments[0]._argtypes_
    for name, (_, arguments) in mmn.FUNCTIONS.items()
    if name.endswith("Callback") and len(arguments) == 1
}

# The classic struct with the classic defaults, a second copy on purpose: it never changes.
CONFIG = [
    ("reconnect_max_ms", ctypes.c_uint32, 30000),
    ("compression_threshold", ctypes.c_uint32, 512),
    ("max_message_size", ctypes.c_uint32, 262144),
    ("heartbeat_interval_ms", ctypes.c_uint16, 500),
    ("election_timeout_min_ms", ctypes.c_uint16, 1500),
    ("election_timeout_max_ms", ctypes.c_uint16, 3000),
    ("reconnect_initial_ms", ctypes.c_uint16, 1000),
    ("handshake_timeout_ms", ctypes.c_uint16, 5000),
    ("write_timeout_ms", ctypes.c_uint16, 5000),
    ("send_queue_capacity", ctypes.c_uint16, 128),
    ("incoming_queue_capacity", ctypes.c_uint16, 256),
    ("max_connections", ctypes.c_uint16, 64),
    ("keepalive_time_secs", ctypes.c_uint16, 60),
    ("keepalive_interval_secs", ctypes.c_uint16, 10),
    ("mdns_port", ctypes.c_uint16, 15353),
    ("heartbeat_timeout_multiplier", ctypes.c_uint8, 3),
    ("keepalive_retries", ctypes.c_uint8, 3),
    ("centralized_auto_forward", ctypes.c_uint8, 1),
    ("auto_election_enabled", ctypes.c_uint8, 1),
    ("manual_override_recovery", ctypes.c_uint8, 0),
    ("tcp_nodelay", ctypes.c_uint8, 1),
    ("auto_reconnect_enabled", ctypes.c_uint8, 1),
    ("reconnect_max_retries", ctypes.c_uint8, 0),
]


# Fields of the classic struct that options have under another name.
RENAMED = {"auto_election_enabled": "auto_election", "auto_reconnect_enabled": "auto_reconnect"}


def fill(struct, fields):
    for name, value in fields.items():
        assert hasattr(struct, name), f"no such field: {name}"
        setattr(struct, name, value.encode() if isinstance(value, str) else value)


class Config(ctypes.Structure):
    _fields_ = [(name, kind) for name, kind, _ in CONFIG]


class Inflow:
    """The result of one stream."""

    def __init__(self):
        self.count = 0
        self.missing = 0  # numbers that are missing
        self.disorder = 0  # numbers that came after a later one
        self.digest = hashlib.sha256()
        self.watched = None

    def take(self, payload):
        skipped = int.from_bytes(payload[:8], "little") - self.count - self.missing
        if skipped < 0:
            self.disorder += 1
        else:
            self.missing += skipped
        self.count += 1
        self.digest.update(payload)

    def report(self):
        return {"count": self.count, "missing": self.missing, "disorder": self.disorder, "digest": self.digest.hexdigest()}


class Puppet:
    def __init__(self):
        self.native = ctypes.CDLL(os.environ["MMN_LIBRARY"])
        self.output = threading.Lock()
        self.threads = {}
        self.reactions = {}
        self.inflows = {}
        self.inflows_lock = threading.Lock()
        self.halted = set()
        self.callbacks = {name: self.callback(name, *types) for name, types in CALLBACKS.items()}
        for name, (result, arguments) in FUNCTIONS.items():
            # A function that this library lacks fails only the test that calls it.
            if function := getattr(self.native, name, None):
                function.restype = result
                function.argtypes = [
                    kind
                    for argument in arguments
                    for kind in ((mmn._BYTES, ctypes.c_int32) if argument is BYTES else (argument,))
                ]

    def serve(self):
        for line in sys.stdin:
            command = json.loads(line)
            if name := command.get("thread"):
                self.thread(name).put(command)
            else:
                self.answer(command)

    def thread(self, name):
        if name not in self.threads:
            commands = self.threads[name] = queue.SimpleQueue()

            def work():
                while True:
                    self.answer(commands.get())

            threading.Thread(target=work, daemon=True).start()
        return self.threads[name]

    def answer(self, command):
        while time.monotonic() < command.get("at", 0):
            pass  # a sleep would end a little later in one process than in another
        began = time.monotonic()
        try:
            outcome = self.carry_out(command)
        except Exception:
            outcome = {"fault": traceback.format_exc()}
        self.send({"id": command["id"], "began": began, **outcome})

    def carry_out(self, command):
        if "call" in command:
            return self.call(command["call"], *command.get("args", ()))
        options = {key: value for key, value in command.items() if key not in ("id", "do", "thread", "at")}
        return {"result": getattr(self, "do_" + command["do"])(**options)}

    def call(self, name, *arguments):
        native = []
        for argument in arguments:
            native.append(argument.encode() if isinstance(argument, str) else argument)
        _, kinds = FUNCTIONS[name]
        if kinds and kinds[0] is ctypes.c_uint64:  # a room
            native.insert(0, self.native.mmn_default_room())
        for place, kind in reversed(list(enumerate(kinds))):
            if kind is BYTES:
                native.insert(place + 1, len(native[place] or b""))
        return self.outcome(getattr(self.native, name)(*native))

    def outcome(self, result):
        """A call's result, with the thread's last error where it failed."""
        if isinstance(result, bytes):
            result = result.decode()
        outcome = {"result": result}
        if result is None or isinstance(result, int) and result < 0:
            outcome["error"] = self.native.GetLastErrorCode()
            outcome["sentence"] = (self.native.GetLastErrorMessage() or b"").decode()
        return outcome

    def send(self, line):
        text = json.dumps(line) + "\n"
        with self.output:
            sys.stdout.write(text)
            sys.stdout.flush()

    def event(self, name, *arguments, **more):
        at, thread = time.monotonic(), threading.get_native_id()
        self.send({"event": name, "args": arguments, "at": at, "thread": thread, **more})

    def callback(self, name, *types):
        handler = getattr(self, "on_" + name.lower(), lambda *arguments: self.event(name, *arguments))

        def called(*arguments):
            try:
                handler(*(value.decode() if isinstance(value, bytes) else value for value in arguments))
                self.react(name)
            except BaseException:
                # ctypes would only print it, and the test would not notice.
                self.event("Fault", traceback.format_exc())

        return ctypes.CFUNCTYPE(None, *types)(called)

    def on_receive(self, peer, data, length, kind, flags):
        payload = ctypes.string_at(data, length) if length else b""
        if kind < STREAM_TYPES:
            self.event("Receive", peer, payload.decode("utf-8", "backslashreplace"), kind, flags)
            return
        with self.inflows_lock:
            inflow = self.inflow(peer, kind)
            inflow.take(payload)
            reached = inflow.count == inflow.watched
        if reached:
            self.event("Inflow", peer, kind, inflow.count)

    def inflow(self, peer, kind):
        return self.inflows.setdefault((peer, kind), Inflow())

    def react(self, name):
        reaction = self.reactions.get(name)
        if reaction is None or reaction["times"] == 0:
            return
        reaction["times"] -= 1
        results = [self.carry_out(command) for command in reaction["commands"]]
        if any(result != {"result": None} for result in results):
            self.event("Reaction", name, results)

    # -- commands

    def do_open(self, peer, session, config=None, options=None):
        """Enters the room and registers every callback. With `options`, also the event handler. It reports each change of the
        leader as the event Leader: leader, previous leader, term, epoch, reason; each gain or loss of its own leadership as
        Leadership: 1 or 0; each result of a dial as Result: code, data; each state of a member as MemberState: member, state,
        version; each return as Returned: member, number of this host's messages that it will not get, number of its messages;
        and the end of the room as Ended: reason. In `options`, `seeded` are the fields of MmnSeededOptions and its profile.
        """
        if options is not None:
            outcome = self.open_with(peer, session, config, options)
        elif config is None:
            outcome = self.call("InitializeNetwork", peer, session)
        else:
            values = {name: default for name, _, default in CONFIG}
            assert set(config) <= set(values), f"no such fields: {set(config) - set(values)}"
            values.update(config)
            outcome = self.outcome(
                self.native.InitializeNetworkWithConfig(
                    peer.encode(), session.encode(), ctypes.byref(Config(**values))
                )
            )
        if options is not None and outcome["result"] != OK:
            return outcome
        assert outcome["result"] == OK, outcome
        for name, callback in self.callbacks.items():
            register = getattr(self.native, f"Register{name}Callback", None)
            assert register is None or register(callback) == OK, name

    def open_with(self, peer, session, config, options):
        settings = self.defaults(mmn._MmnOptions, "mmn_default_options")
        # The functions without a room act on it.
        settings.is_default = 1
        self.on_event = settings.on_event = mmn.MmnEventCallback(self.event_handler)
        fields = {RENAMED.get(name, name): value for name, value in (config or {}).items()}
        fields.update(options)
        if (seeded := fields.pop("seeded", None)) is not None:
            self.seeded = self.defaults(mmn._MmnSeededOptions, "mmn_default_seeded_options", seeded["profile"])
            fill(self.seeded, {name: value for name, value in seeded.items() if name != "profile"})
            settings.seeded = ctypes.pointer(self.seeded)
        fill(settings, fields)
        room = ctypes.byref(ctypes.c_uint64())
        return self.outcome(self.native.mmn_open(peer.encode(), session.encode(), ctypes.byref(settings), room))

    def defaults(self, struct, function, *before):
        made = struct(struct_size=ctypes.sizeof(struct))
        assert getattr(self.native, function)(*before, ctypes.byref(made)) == OK
        return made

    def event_handler(self, _, pointer):
        event = pointer.contents
        if event.kind == mmn.EVENT_LEADER_CHANGED:
            who = event.peer.decode(), event.other.decode()
            self.event("Leader", *who, event.term, event.epoch, event.reason)
        elif event.kind in (mmn.EVENT_LEADERSHIP_GAINED, mmn.EVENT_LEADERSHIP_LOST):
            self.event("Leadership", int(event.kind == mmn.EVENT_LEADERSHIP_GAINED))
        elif event.kind == mmn.EVENT_MEMBER_STATE:
            self.event("MemberState", event.peer.decode(), event.reason, event.term)
        elif event.kind == mmn.EVENT_RETURNED:
            self.event("Returned", event.peer.decode(), event.count, event.missed)
        elif event.kind == mmn.EVENT_ROOM_ENDED:
            self.event("Ended", event.reason)
        elif event.kind == mmn.EVENT_CONNECTION_RESULT:
            why = ctypes.string_at(event.data, event.length) if event.length else b""
            self.event("Result", event.code, why.decode())

    def do_react(self, on, commands, times=-1):
        """Carries out the commands inside each of the next `times` callbacks of that name (-1: all), after reporting it."""
        self.reactions[on] = {"commands": commands, "times": times}

    def do_sleep(self, seconds):
        time.sleep(seconds)

    def do_wall_clock(self):
        return time.time()

    def do_stream(self, kind, to=None, count=None, attempts=None, size=32, retry=(SEND_QUEUE_FULL,), per_second=None):
        """Sends numbered messages from a thread of its own: to one peer, or to all. Ends with the event Streamed.

        Either until `count` were accepted (without it: until `halt`), and each is tried again while the answer is in `retry`; or
        exactly `attempts` times, without repeating a refused one. Only accepted messages advance the number: the receiver must
        see every number once, in order.
        """
        data_only = "BroadcastMessage" if to is None else "SendToPeer"
        function = getattr(self.native, data_only)
        peer = () if to is None else (to.encode(),)

        def run():
            accepted, tried, refused, failed = 0, 0, {}, None
            digest = hashlib.sha256()
            noise = os.urandom(size + 1000)  # incompressible
            began = time.monotonic()
            while failed is None and accepted != count and tried != attempts and kind not in self.halted:
                if per_second:
                    time.sleep(max(0.0, began + tried / per_second - time.monotonic()))
                start = accepted % 1000
                payload = accepted.to_bytes(8, "little") + noise[start : start + size - 8]
                code = function(*peer, payload, len(payload), kind, 0)
                tried += 1
                if code == OK:
                    accepted += 1
                    digest.update(payload)
                elif code in retry:
                    refused[code] = refused.get(code, 0) + 1
                    if attempts is None and not per_second:
                        time.sleep(0.001)
                else:
                    failed = self.outcome(code)
            took = time.monotonic() - began
            self.event(
                "Streamed", kind, accepted=accepted, refused=refused, failed=failed, digest=digest.hexdigest(), took=took
            )

        threading.Thread(target=run, daemon=True).start()

    def do_halt(self, kind):
        self.halted.add(kind)

    def do_inflow(self, peer, kind, watch=None):
        """The result of that stream; with `watch` the event Inflow comes once this many have arrived, now or later."""
        with self.inflows_lock:
            inflow = self.inflow(peer, kind)
            inflow.watched = watch
            if watch is not None and inflow.count >= watch:
                self.event("Inflow", peer, kind, watch)
            return inflow.report()

    def do_strings(self, functions, threads, seconds):
        """From many threads: keeps the pointer that a function returned while the others call, then reads it once more.

        Returns the number of reads, and how many of them had changed.
        """
        raw = {}
        for name in functions:
            # A second handle of the function: the first one copies its string before any thread can change it.
            raw[name] = ctypes.CFUNCTYPE(ctypes.c_void_p)((name, self.native))
        counts, lock = {"read": 0, "changed": 0}, threading.Lock()
        ends = time.monotonic() + seconds
        barrier = threading.Barrier(threads)

        def work(first):
            read = changed = 0
            barrier.wait()
            while time.monotonic() < ends:
                pointer = raw[functions[(first + read) % len(functions)]]()
                before = ctypes.string_at(pointer)
                time.sleep(0)  # the others call now
                changed += ctypes.string_at(pointer) != before
                read += 1
            with lock:
                counts["read"] += read
                counts["changed"] += changed

        workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return counts


def main():
    # A killed test cannot end a process that it stopped with SIGSTOP: PR_SET_PDEATHSIG can.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    puppet = Puppet()
    puppet.send({"event": "Ready", "args": [], "at": time.monotonic()})
    puppet.serve()
    # Without a leave, and without waiting.
    os._exit(0)


if __name__ == "__main__":
    main()
