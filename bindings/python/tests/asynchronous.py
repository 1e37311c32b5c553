#!/usr/bin/env python3
"""Tests the promises of the room for asyncio.

Shows each with real rooms over loopback; the partner is a second process of this program. Prints "ok NAME" per promise and exits
with 0 only when all hold.

    MMN_LIBRARY=target/release/libmeta_mystia_network.so python3 bindings/python/tests/asynchronous.py [NAME...]

NAME: see TESTS (default: all).
"""

import asyncio
import contextlib
import faulthandler
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import meta_mystia_network as mmn  # noqa: E402
from meta_mystia_network import aio  # noqa: E402

TEST_SECONDS = 90  # limit of one test
MESSAGES = 5000  # more than the capacity of all queues together


def must(condition, text):
    if not condition:
        raise AssertionError(text)


def session(name):
    return f"asyncio-{name}-{os.getpid()}"


def quiet(**fields):
    """A room without discovery: each test has only the members that it starts."""
    return mmn.NetworkOptions(discovery_mode=mmn.DISCOVERY_OFF, **fields)


@contextlib.contextmanager
def closed_address():
    """An address that never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{silent.getsockname()[1]}"


@contextlib.contextmanager
def partner(room, count, dials=True):
    """A member in a process of its own, which dials the room and sends it numbered messages; returns its address."""
    command = [sys.executable, os.path.abspath(__file__), "--partner", room.session_id, room.local_address if dials else "", str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.wait()


def run_partner(session_id, address, count):
    """Sends the numbers from 0 to every member that joins, and leaves at the end of its input."""
    joined = []
    options = quiet(dispatch_mode=mmn.DISPATCH_THREAD)
    with mmn.Room("partner", session_id, options=options) as room:
        room.on_event(lambda event: joined.append(event.peer) if isinstance(event, mmn.PeerJoined) else None)
        print(room.local_address, flush=True)
        if address:
            room.connect(address)
        while count and not joined:
            time.sleep(0.01)
        for number in range(count):
            while True:
                try:
                    room.send(joined[0], str(number).encode())
                    break
                except mmn.NetworkError as error:
                    if error.code == mmn.PEER_NOT_FOUND:
                        return  # it has left
                    must(error.code == mmn.SEND_QUEUE_FULL, str(error))
                    time.sleep(0.001)
        sys.stdin.read()


async def test_messages(name):
    """All messages arrive, in order, in a loop that also does other work."""
    async with aio.Room("main", session(name), options=quiet()) as room:
        with partner(room, MESSAGES):
            numbers = []
            async for event in room.events():
                if isinstance(event, mmn.Message):
                    numbers.append(int(event.data))
                    if len(numbers) == MESSAGES:
                        break
            must(numbers == list(range(MESSAGES)), "not every number, or not in order")


async def test_leaving(name):
    """Ends iterations and dials; afterwards the process may enter a room again."""
    with closed_address() as address:
        async with aio.Room("main", session(name), options=quiet()) as room:

            async def read():
                return [event.kind async for event in room.events()]

            readers = [asyncio.create_task(read()) for _ in range(2)]
            dial = asyncio.create_task(room.connect(address))
            await asyncio.sleep(0)  # all of them have started
            await room.close()
            await room.close()
        await asyncio.gather(*readers)
        error = await raised(dial)
        must(isinstance(error, mmn.NetworkError) and error.code == mmn.NOT_INITIALIZED, f"the dial ended with {error!r}")
    async with aio.Room("again", session(name), options=quiet()) as room:
        must(room.peer_id == "again", room.peer_id)
        closing = asyncio.create_task(room.close())
        await asyncio.sleep(0)
        closing.cancel()
        must(isinstance(await raised(closing), asyncio.CancelledError), "a close() that was cancelled")
    async with aio.Room("third", session(name), options=quiet()) as third:
        await room.close()
        must(not room.is_open and third.is_open, "a cancelled close() did not go on, or another room was closed")


async def test_dials(name):
    """Each dial has its own result, whatever the outcome of the earlier ones."""
    with closed_address() as address:
        options = quiet(handshake_timeout_ms=500)
        async with aio.Room("main", session(name), options=options) as room:
            must(options.dispatch_mode == mmn.DISPATCH_POLL, "the options were changed")
            error = await raised(room.connect("no address"))
            must(isinstance(error, mmn.NetworkError) and error.code == mmn.INVALID_ARGUMENT, repr(error))
            cancelled = asyncio.create_task(room.connect(address))
            await asyncio.sleep(0)
            cancelled.cancel()
            error = await raised(room.connect(address))
            must(isinstance(error, mmn.NetworkError) and error.code != mmn.NOT_INITIALIZED and address in str(error), repr(error))
            results = [event for event in room._events if isinstance(event, mmn.ConnectionResult)]
            must(len(results) == 2, f"a dial got the result of another: {results}")
            must(all(event.address == address and event.code == error.code for event in results), str(results))
            await other_dials(room)


async def other_dials(room):
    """Dials a member that answers, and one that is already connected."""
    with partner(room, 0, dials=False) as address:
        for code in (mmn.OK, mmn.ALREADY_CONNECTED):
            result = await room.connect(address)
            must((result.address, result.success, result.code) == (address, True, code), f"instead of {code}: {result}")
            must(room.peers == ["partner"], f"{room.peers}")


async def test_cancelled_reads(name):
    """An iteration that is cancelled again and again misses no event."""
    async with aio.Room("main", session(name), options=quiet()) as room:
        with partner(room, MESSAGES):
            numbers, given_up = [], 0
            while len(numbers) < MESSAGES:
                read = asyncio.ensure_future(room.events().__anext__())
                # A number of turns of the loop that cancels it at every point.
                for _ in range(given_up % 4):
                    await asyncio.sleep(0)
                if not read.done():
                    read.cancel()
                    given_up += 1
                try:
                    event = await read
                except asyncio.CancelledError:
                    continue
                if isinstance(event, mmn.Message):
                    numbers.append(int(event.data))
            must(numbers == list(range(MESSAGES)), "not every number, or not in order")
            must(given_up > 0, "nothing was cancelled")


async def test_unread(name):
    """Unread events wait, and so does the sender; later all of them are there."""
    async with aio.Room("main", session(name), options=quiet()) as room:
        with partner(room, MESSAGES):
            await until(lambda: len(room._events) >= aio.MAX_WAITING_EVENTS, "the events wait")
            numbers = []
            async for event in room.events():
                must(len(room._events) <= aio.MAX_WAITING_EVENTS, f"{len(room._events)} events wait")
                if isinstance(event, mmn.Message):
                    numbers.append(int(event.data))
                    if len(numbers) == MESSAGES:
                        break
            must(numbers == list(range(MESSAGES)), "not every number, or not in order")
    async with aio.Room("main", session(name + "2"), options=quiet()) as room:
        with partner(room, MESSAGES):
            await until(lambda: len(room._events) >= aio.MAX_WAITING_EVENTS, "the events wait")
            # While the library's thread waits for a place.
            await room.close()
            left = len([event async for event in room.events()])
            must(left == aio.MAX_WAITING_EVENTS, f"{left} events had come before")


async def test_forgotten(name):
    """A program that neither leaves nor reads still ends."""
    command = [sys.executable, os.path.abspath(__file__), "--forgetful", session(name)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        _, errors = await asyncio.wait_for(process.communicate(), 60)
    except asyncio.TimeoutError:
        process.kill()
        raise AssertionError("it did not end within 60 s") from None
    must(process.returncode == 0 and not errors, f"ended with {process.returncode}: {errors.decode()}")


async def forget(session_id):
    room = aio.Room("main", session_id, options=quiet())
    command = [sys.executable, os.path.abspath(__file__), "--partner", room.session_id, room.local_address, str(MESSAGES)]
    # It ends when this process does, at the end of its input.
    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await until(lambda: len(room._events) >= aio.MAX_WAITING_EVENTS, "the events wait")


async def raised(awaitable):
    try:
        await awaitable
    except (Exception, asyncio.CancelledError) as error:
        return error
    return None


async def until(condition, text):
    """Waits for a state that no event reports."""
    deadline = time.monotonic() + 60
    while not condition():
        must(time.monotonic() < deadline, f"within 60 s: {text}")
        await asyncio.sleep(0.01)


TESTS = {
    "messages": test_messages,
    "leaving": test_leaving,
    "dials": test_dials,
    "cancelled_reads": test_cancelled_reads,
    "unread": test_unread,
    "forgotten": test_forgotten,
}


def main():
    if sys.argv[1:2] == ["--partner"]:
        return run_partner(*sys.argv[2:4], int(sys.argv[4]))
    if sys.argv[1:2] == ["--forgetful"]:
        return asyncio.run(forget(sys.argv[2]))
    for name in sys.argv[1:] or TESTS:
        # Works even when every Python thread is stuck inside the library.
        faulthandler.dump_traceback_later(TEST_SECONDS, exit=True)
        try:
            asyncio.run(TESTS[name](name))
        except (AssertionError, mmn.NetworkError) as error:
            print(f"FAILED {name}: {error}", file=sys.stderr, flush=True)
            return 1
        print(f"ok {name}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return 0


if __name__ == "__main__":
    sys.exit(main())
