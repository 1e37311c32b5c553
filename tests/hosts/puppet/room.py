"""Rooms of puppets for tests: starts them as processes, waits for their events, pauses and kills them."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import lab

PUPPET = Path(__file__).with_name("puppet.py")
TIMEOUT_SECONDS = 30.0
"""For events that should come at once: this machine may be busy."""

OK, ALREADY_CONNECTED = 0, -14
CONNECTED, DISCONNECTED, RECONNECTING = 0, 1, 2
LOST, RETURNED, GAVE_UP = 0, 1, 2

_sessions = itertools.count(1)
QUICK = {
    "heartbeat_interval_ms": 100,
    "heartbeat_timeout_multiplier": 5,
    "election_timeout_min_ms": 500,
    "election_timeout_max_ms": 1000,
    "reconnect_initial_ms": 200,
}
"""A configuration with timers that make elections quick on loopback."""


class Room:
    """Puppets of one session. Leaving the `with` ends their processes; after a failure it first prints each one's events."""

    def __init__(self, session=None):
        self.session = session or f"promises-{os.getpid()}-{next(_sessions)}"
        self.changed = threading.Condition()
        self.puppets = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            # In one piece: other rooms may fail at the same time.
            print("\n".join([f"=== {self.session}", *(puppet.story() for puppet in self.puppets)]), file=sys.stderr)
        for puppet in self.puppets:
            puppet.kill()

    def puppet(self, peer, *, session=None, config=None, options=None, host=None, environment=None, before=None):
        """Another process, in the room. `host` is a host of a Lab. `options` are fields of MmnOptions. `before` are calls
        before the room opens, by name, with one argument each.
        """
        puppet = Puppet(self, peer, host, environment)
        self.puppets.append(puppet)
        self.wait(f"{peer} starts", lambda: puppet.reported("Ready"))
        for name, argument in (before or {}).items():
            puppet.ok(name, argument)
        refused = puppet.do("open", peer=peer, session=session or self.session, config=config, options=options)
        assert refused is None, f"{peer}: {refused}"
        return puppet

    def form(self, *peers, config=None, options=None, hosts=None, environment=None, before=None):
        """Puppets that each dialled the first one, once all are linked to all."""
        hosts = hosts or {}
        members = [
            self.puppet(
                peer, config=config, options=options, host=hosts.get(peer), environment=environment, before=before
            )
            for peer in peers
        ]
        for member in members[1:]:
            member.dial(members[0])
        self.meshed(*members)
        return members

    def meshed(self, *members, seconds=TIMEOUT_SECONDS):
        """Waits until each of these has the events of its links to all others."""
        self.wait(
            f"{[member.peer for member in members]} are linked",
            lambda: all(other.peer in one.linked for one in members for other in members if other is not one),
            seconds,
        )

    def agreed(self, *members, seconds=TIMEOUT_SECONDS):
        """Waits until these report one leader, which is one of them; returns the leader's puppet."""
        names = {member.peer for member in members}

        def agreement():
            leaders = {member.leader for member in members}
            return len(leaders) == 1 and leaders <= names

        self.wait(f"one leader of {sorted(names)}", agreement, seconds)
        return next(member for member in members if member.peer == members[0].leader)

    def wait(self, what, condition, seconds=TIMEOUT_SECONDS):
        """Waits until the condition holds, and checks it after every line of a puppet; returns its value."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not (value := condition()):
                left = deadline - time.monotonic()
                assert left > 0, f"not within {seconds:g} s: {what}"
                self.changed.wait(left)
                self._check()
        return value

    def never(self, what, condition, seconds):
        """Watches for this long, and fails as soon as the condition holds."""
        assert not self.happens(condition, seconds), f"it happened: {what}"

    def happens(self, condition, seconds):
        """Whether the condition holds within this time."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.changed.wait(left)
                self._check()
        return True

    def _check(self):
        for puppet in self.puppets:
            assert not puppet.fault, f"{puppet.peer}: {puppet.fault}"


class Puppet:
    """One process. Its events are in `events`, in order; `linked` and `leader` follow from them."""

    def __init__(self, room, peer, host, environment):
        self.room = room
        self.peer = peer
        self.host = host
        self.events = []
        self.linked = set()
        self.leader = None
        self.fault = None
        self.may_end = False
        self._answers = {}
        self._ids = itertools.count(1)
        command = [sys.executable, str(PUPPET)]
        if host is not None:
            command = lab.inside(host.namespace) + command
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **(environment or {})},
            pass_fds=[host.namespace] if host else [],
        )
        threading.Thread(target=self._read, daemon=True).start()

    # -- commands

    def call(self, name, *arguments, thread=None):
        """The result of a call of the C ABI."""
        return self.finish(self.begin(name, *arguments, thread=thread))["result"]

    def refused(self, code, name, *arguments, thread=None):
        """The error sentence of a call that must return that code."""
        answer = self.finish(self.begin(name, *arguments, thread=thread))
        assert (answer["result"], answer.get("error")) == (code, code), f"{self.peer}: {name}{arguments} gave {answer}"
        return answer["sentence"]

    def ok(self, name, *arguments):
        answer = self.finish(self.begin(name, *arguments))
        assert answer["result"] == 0, f"{self.peer}: {name}{arguments} gave {answer}"

    def begin(self, name, *arguments, thread=None, at=0):
        """Starts a call without waiting for it, at that time.monotonic(); `finish` takes the result of this."""
        return self._send({"call": name, "args": arguments, "thread": thread, "at": at})

    def begin_to(self, action, **options):
        """Like `begin`, for an action of the puppet itself."""
        return self._send({"do": action, **options})

    def do(self, action, *, thread=None, seconds=TIMEOUT_SECONDS, **options):
        return self.finish(self.begin_to(action, thread=thread, **options), seconds)["result"]

    def finish(self, number, seconds=TIMEOUT_SECONDS):
        """The whole answer to that command: result, began, and error and sentence of a failed call."""
        self.room.wait(f"{self.peer} answers", lambda: number in self._answers, seconds)
        answer = self._answers.pop(number)
        assert "fault" not in answer, f"{self.peer}: {answer['fault']}"
        return answer

    def address(self):
        """Its address for others."""
        return self.call("GetLocalAddr")

    def dial(self, other, code=OK):
        """Dials another puppet, which must end with that code; OK also stands for a faster discovery."""
        result = self.dial_address(other.address())
        expected = [(1, OK), (1, ALREADY_CONNECTED)] if code == OK else [(0, code)]
        assert result in expected, f"{self.peer} dialled {other.peer}: {result} is none of {expected}"

    def dial_address(self, address):
        """Dials; the ConnectionResult as (success, code)."""
        count = len(self.reported("ConnectionResult"))
        self.ok("ConnectToPeer", address)
        self.room.wait(f"{self.peer}'s result of dialling {address}", lambda: len(self.reported("ConnectionResult")) > count)
        dialled, success, code = self.reported("ConnectionResult")[count]
        assert dialled == address, f"{self.peer} dialled {address} and was notified of {dialled}"
        return success, code

    def leave(self):
        """ShutdownNetwork, and the end of the process."""
        self.ok("ShutdownNetwork")
        self.may_end = True
        self.process.stdin.close()
        self.process.wait(TIMEOUT_SECONDS)

    # -- its events

    def reported(self, event, *first):
        """The arguments of all events of that name that begin with `first`."""
        return [one["args"] for one in self.events if one["event"] == event and one["args"][: len(first)] == list(first)]

    def statuses(self, peer):
        return [status for _, status in self.reported("PeerStatus", peer)]

    def reconnects(self, peer):
        return [status for _, status in self.reported("Reconnect", peer)]

    def leaders(self):
        return [leader for (leader,) in self.reported("LeaderChanged")]

    def leaderships(self):
        return [leads for (leads,) in self.reported("Leadership")]

    def received(self):
        return [tuple(message[:2]) for message in self.reported("Receive")]

    def streamed(self, kind, seconds=TIMEOUT_SECONDS):
        """Waits for the end of a stream that it sends; returns the event."""
        found = lambda: [event for event in self.events if event["event"] == "Streamed" and event["args"] == [kind]]
        (event,) = self.room.wait(f"{self.peer}'s stream {kind:#x} ends", found, seconds)
        assert event["failed"] is None, f"{self.peer}: {event}"
        return event

    def took_all(self, sender, event, seconds=TIMEOUT_SECONDS):
        """Waits until it has everything that the ended stream sent, and compares number, order and content."""
        (kind,), count = event["args"], event["accepted"]
        self.do("inflow", peer=sender.peer, kind=kind, watch=count)
        # The assertions below report what is missing, in numbers.
        with contextlib.suppress(AssertionError):
            self.room.wait("all of it", lambda: self.reported("Inflow", sender.peer, kind, count), seconds)
        came = self.do("inflow", peer=sender.peer, kind=kind)
        expected = {"count": count, "missing": 0, "disorder": 0, "digest": event["digest"]}
        assert came == expected, f"{self.peer} from {sender.peer}: {came}, but {event} was sent"

    # -- actions on it

    def kill(self):
        """SIGKILL, as a crash is."""
        self.may_end = True
        self.process.kill()
        self.process.wait()

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def story(self):
        """Its events, for people."""
        lines = [f"--- {self.peer} (process {self.process.pid})"]
        for event in self.events:
            more = {key: value for key, value in event.items() if key not in ("event", "args", "at", "thread")}
            lines.append(f"{event['at']:12.3f} {event['event']} {event['args']} {more or ''}".rstrip())
        return "\n".join(lines)

    # -- inside

    def _send(self, command):
        number = next(self._ids)
        self.process.stdin.write(json.dumps({"id": number, **command}) + "\n")
        self.process.stdin.flush()
        return number

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.room.changed:
                self._take(message)
                self.room.changed.notify_all()
        code = self.process.wait()
        with self.room.changed:
            if not self.may_end:
                self.fault = f"ended by itself with {code}"
            self.room.changed.notify_all()

    def _take(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
            return
        self.events.append(message)
        match message["event"], message["args"]:
            case "PeerStatus", [peer, 0]:
                self.linked.add(peer)
            case "PeerStatus", [peer, _]:
                self.linked.discard(peer)
            case "LeaderChanged", [leader]:
                self.leader = leader
            case "Fault", [trace]:
                self.fault = trace


def side_by_side(*stories):
    """Runs the stories at once, each with its own rooms; fails with all that failed."""
    failures = []

    def run(story):
        try:
            story()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(story,)) for story in stories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(failures) == 1:
        raise failures[0]
    assert not failures, "\n".join(map(str, failures))
