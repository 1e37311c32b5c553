#!/usr/bin/env python3
"""Tests the room's state of the Python package.

Shows each promise with real rooms of this process over loopback. Prints "ok NAME" per promise and exits with 0 only when all hold.

    MMN_LIBRARY=target/release/libmeta_mystia_network.so python3 bindings/python/tests/state.py [NAME...]

NAME: see TESTS (default: all).
"""

import asyncio
import contextlib
import faulthandler
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import meta_mystia_network as mmn  # noqa: E402
from meta_mystia_network import aio  # noqa: E402

TEST_SECONDS = 55
WAIT_SECONDS = 30
ADD = mmn.FIRST_USER_TYPE
SHORT_TAIL = 256
ACTIONS = 200  # at a time: fewer than the open requests that a member may have


def must(condition, text):
    if not condition:
        raise AssertionError(text)


def refused_with(code, call):
    try:
        call()
    except mmn.NetworkError as error:
        must(error.code == code, f"{error.code!r} and not {code}: {error}")
        return str(error)
    raise AssertionError(f"not refused with {code}")


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def wait(text, holds):
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        must(time.monotonic() < deadline, f"not in time: {text}")
        time.sleep(0.005)


def enter(stack, name, session, first=None, mode=mmn.DISPATCH_THREAD, state=True):
    """A room without discovery. The first one creates it: two logs that merge would be another test."""
    entry = mmn.ENTRY_CREATE if first is None else mmn.ENTRY_JOIN
    options = mmn.NetworkOptions(discovery_mode=mmn.DISCOVERY_OFF, dispatch_mode=mode, entry=entry)
    room = stack.enter_context(mmn.Room(name, f"{session}-{os.getpid()}", options, state=state))
    if first is not None:
        room.connect(first.local_address)
    return room


class Sum:
    """A host with a sum of all actions."""

    def __init__(self, room):
        self.total, self.received, self.loaded = 0, [], []
        state = room.state
        state.on_action(self.add)
        state.load(self.load)
        state.save = lambda: str(self.total).encode()

    def add(self, action):
        self.total += int(action.text)
        self.received.append(action)

    def load(self, data):
        self.loaded.append(data)
        self.total = int(data or b"0")


def actions():
    """Handlers of a thread that are set later miss nothing; each action comes once, in one order."""
    with contextlib.ExitStack() as stack:
        ann = enter(stack, "ann", "actions")
        wait("a first opening", lambda: ann.state.info.members == 1)
        first = Sum(ann)
        ann.state.submit(ADD, b"1").result(WAIT_SECONDS)
        bob = enter(stack, "bob", "actions", ann)
        wait("a member of the state", lambda: bob.state.info.index > 1)
        must(bob.state.on_action(int) is int, "a decorator returns another function")
        second = Sum(bob)
        requests = [room.state.submit(ADD, str(number).encode()) for number in range(ACTIONS) for room in (ann, bob)]
        for request in requests:
            result = request.result(WAIT_SECONDS)
            must(result.request == request.number and result.index > 0, f"{result}")
        count = 1 + len(requests)
        wait("all actions", lambda: len(first.received) == len(second.received) == count)
        view = [(action.author, action.data, action.index, action.time_ms) for action in first.received]
        must(view == [(action.author, action.data, action.index, action.time_ms) for action in second.received], "two orders")
        must(first.loaded == second.loaded == [b""], f"{first.loaded} {second.loaded}")
        for name, host in (("ann", first), ("bob", second)):
            must(all(action.mine == (action.author == name) for action in host.received), f"mine, at {name}")
        caught = []
        ann.state.submit(ADD, b"0").add_done_callback(lambda _: caught.append(_code(lambda: ann.state.submit(ADD, b"0").result())))
        wait("a callback", lambda: caught)
        must(caught == [mmn.WOULD_DEADLOCK], f"{caught}")
        refused_with(mmn.MESSAGE_TOO_LARGE, lambda: ann.state.submit(ADD, bytes(16385)))
        refused_with(mmn.INVALID_ARGUMENT, lambda: ann.state.submit(1, b""))
        raises(TypeError, lambda: ann.state.submit(ADD, "text"))


def _code(call):
    try:
        call()
        return 0
    except mmn.NetworkError as error:
        return error.code


def snapshots():
    """A newcomer behind the tail begins with the bytes of another member's save."""
    options = mmn.StateOptions(tail_entries=SHORT_TAIL)
    with contextlib.ExitStack() as stack:
        ann = enter(stack, "ann", "snapshots", state=options)
        first = Sum(ann)
        for _ in range(4):
            for request in [ann.state.submit(ADD, b"1") for _ in range(ACTIONS)]:
                request.result(WAIT_SECONDS)
        bob = enter(stack, "bob", "snapshots", ann, state=options)
        second = Sum(bob)
        wait("the state", lambda: second.total == first.total == 4 * ACTIONS)
        must(any(second.loaded), f"no snapshot: {second.loaded}")
        # A member without save is passed over.
        ann.state.save = None
        cid = enter(stack, "cid", "snapshots", ann, state=options)
        third = Sum(cid)
        bob.connect(cid.local_address)
        wait("the state from bob", lambda: third.total == first.total)


def properties():
    with contextlib.ExitStack() as stack:
        ann = enter(stack, "ann", "properties")
        changes = []
        ann.state["map"] = b"forest"
        wait("the map", lambda: ann.state.get("map") == b"forest")
        ann.state.on_property(changes.append)
        must([change.key for change in changes] == ["map"], f"{changes}")
        bob = enter(stack, "bob", "properties", ann)
        wait("the map at bob", lambda: dict(bob.state) == {"map": b"forest"} and bob.state.info.members == 2)
        raises(KeyError, lambda: ann.state["none"])
        raises(KeyError, lambda: ann.state.__delitem__("none"))
        raises(TypeError, lambda: ann.state.set("map", "text"))
        raises(TypeError, lambda: ann.state.set(b"map", b""))
        raises(OverflowError, lambda: ann.state.set("map", b"", expected_version=-1))
        must("1 to 64" in refused_with(mmn.INVALID_ARGUMENT, lambda: ann.state.get("k" * 65)), "another sentence")
        refused_with(mmn.INVALID_ARGUMENT, lambda: ann.state.get("a\nb"))
        refused_with(mmn.INVALID_ARGUMENT, lambda: ann.state.set("", b""))

        # With versions, all or none.
        version = ann.state.find("map").version
        good, stale = mmn.PropertyChange("new", b"1", expected_version=0), mmn.PropertyChange("map", b"x", expected_version=version + 1)
        refused_with(mmn.CONFLICT, lambda: ann.state.set_properties([good, stale]).result(WAIT_SECONDS))
        must("new" not in ann.state, "a part of a set")
        ann.state.set_properties([good, mmn.PropertyChange("map", b"caves", expected_version=version)]).result(WAIT_SECONDS)
        wait("both", lambda: dict(bob.state) == {"map": b"caves", "new": b"1"})
        del bob.state["new"]
        wait("the removal", lambda: list(ann.state) == ["map"] and not changes[-1].exists and changes[-1].author == "bob")

        # A member's own ones.
        bob.state.me["ready"] = b"1"
        wait("ready", lambda: ann.state.of("bob").get("ready") == b"1" and dict(bob.state.me) == {"ready": b"1"})
        must(len(ann.state.of("ann")) == 0, "other own properties")
        refused_with(mmn.REJECTED, lambda: ann.state.set("@bob/ready", b"0").result(WAIT_SECONDS))
        must(ann.state.properties("bob")["@bob/ready"].flags == mmn.PROPERTY_OWNER_ONLY | mmn.PROPERTY_DIES_WITH_OWNER, "flags")
        bob.close()
        wait("its end", lambda: ann.state.of("bob").get("ready") is None)
        refused_with(mmn.NOT_INITIALIZED, lambda: bob.state.get("map"))
        refused_with(mmn.NOT_INITIALIZED, lambda: bob.state.submit(ADD, b"1"))


def claims():
    with contextlib.ExitStack() as stack:
        ann = enter(stack, "ann", "claims")
        bob = enter(stack, "bob", "claims", ann)
        wait("both", lambda: ann.state.info.members == bob.state.info.members == 2)
        for number in range(20):
            key = f"ball {number}"
            results = [request.result(WAIT_SECONDS) for request in [room.state.claim(key) for room in (bob, ann)]]
            must(sorted(results) == [False, True], f"{key}: {results}")
        owner, other = (ann, bob) if ann.state.find("ball 0").owner == "ann" else (bob, ann)
        wait("the owner at the other", lambda: other.state.find("ball 0").owner == owner.peer_id)
        must(owner.state.claim("ball 0").result(0) is True and other.state.claim("ball 0").result(0) is False, "a claim of an owned one")
        must(other.state.release("ball 0").result(0) is False, "a release of another's")
        must(owner.state.release("ball 0").result(WAIT_SECONDS) is True, "a release")
        wait("no owner", lambda: other.state.find("ball 0").owner is None)
        must(other.state.claim("ball 0").result(WAIT_SECONDS) is True, "a claim after a release")
        wait("the new owner", lambda: owner.state.find("ball 0").owner == other.peer_id)
        must(owner.state.claim("ball 0", take=True).result(WAIT_SECONDS) is True, "a claim that takes")
        bob.state.claim("bob's").result(WAIT_SECONDS)
        bob.close()
        wait("the leader has it", lambda: ann.state.find("bob's").owner == "ann")


def merges():
    """Two rooms of one session meet: one side's actions are undone, and its host submits its own again."""
    with contextlib.ExitStack() as stack:
        rooms = [enter(stack, name, "merges") for name in ("ann", "bob")]
        hosts = [Sum(room) for room in rooms]
        undone = []

        def again(room):
            def rolled_back(action):
                undone.append((room.peer_id, action.author, action.data, action.mine, action.time_ms))
                room.state.submit(action.type, action.data)

            return rolled_back

        for room in rooms:
            room.state.on_rolled_back(again(room))
            for number in range(3):
                room.state.submit(ADD, str(10 ** number).encode()).result(WAIT_SECONDS)
        must([host.total for host in hosts] == [111, 111], "two sides")
        rooms[0].connect(rooms[1].local_address)
        wait("one state", lambda: [host.total for host in hosts] == [222, 222])
        loser = undone[0][0]
        must(undone == [(loser, loser, str(10 ** number).encode(), True, 0) for number in range(3)], f"{undone}")
        must([len(host.loaded) for host in hosts] == ([2, 1] if loser == "ann" else [1, 2]), f"{[host.loaded for host in hosts]}")


def limits():
    """Without on_action and load, actions wait in a bounded number; then the handlers are refused."""
    with contextlib.ExitStack() as stack:
        ann = enter(stack, "ann", "limits")
        for _ in range(6):
            for request in [ann.state.submit(ADD, b"1") for _ in range(ACTIONS)]:
                request.result(WAIT_SECONDS)
        must("discarded" in refused_with(mmn.NOT_SUPPORTED, lambda: ann.state.on_action(print)), "another sentence")
        must(len(ann.state._held) == 0, "held")
        plain = enter(stack, "bob", "plain", state=False)
        must("state=True" in refused_with(mmn.NOT_SUPPORTED, lambda: plain.state), "another sentence")
        raises(TypeError, lambda: mmn.Room("cid", "wrong", state=3))
        poll = enter(stack, "cid", "poll", mode=mmn.DISPATCH_POLL)
        request = poll.state.submit(ADD, b"7")
        host = Sum(poll)
        wait("a poll", lambda: poll.poll() >= 0 and request.done())
        must(host.total == 7 and request.result(0).code == mmn.OK, "poll mode")
        late = poll.state.submit(ADD, b"7")
        poll.close()
        refused_with(mmn.NOT_INITIALIZED, lambda: late.result(0))


def asynchronous():
    async def play():
        options = mmn.NetworkOptions(discovery_mode=mmn.DISCOVERY_OFF)
        async with aio.Room("ann", f"asynchronous-{os.getpid()}", options, state=True) as room:
            host = Sum(room)
            for number in range(3):
                result = await room.state.submit(ADD, b"2")
                must(host.total == 2 * (number + 1) and result.code == mmn.OK, f"{host.total}")
            must(await room.state.claim("ball") is True, "a claim")
            must(host.loaded == [b""], f"{host.loaded}")
            late = room.state.submit(ADD, b"2")
        # It has its result, or the room was left before.
        with contextlib.suppress(mmn.NetworkError):
            await asyncio.wait_for(asyncio.wrap_future(late), WAIT_SECONDS)
        must(late.done(), "a request without an end")

    asyncio.run(play())


TESTS = [actions, snapshots, properties, claims, merges, limits, asynchronous]


def main():
    chosen = sys.argv[1:] or [test.__name__ for test in TESTS]
    for test in TESTS:
        if test.__name__ in chosen:
            faulthandler.dump_traceback_later(TEST_SECONDS, exit=True)
            test()
            print(f"ok {test.__name__}", flush=True)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
