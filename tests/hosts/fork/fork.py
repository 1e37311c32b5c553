#!/usr/bin/env python3
"""A Python host that forks while it has two rooms: multiprocessing, os.fork, and a server that forks its workers.

    MMN_LIBRARY=target/release/libmeta_mystia_network.so python3 tests/hosts/fork/fork.py

Prints "ok" when every promise was kept.
"""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bindings/python"))
import meta_mystia_network as mmn  # noqa: E402

SECONDS = 30  # timeout of every step
WORKERS = 4
SESSIONS = ("fork-python", "fork-python, another room")


def must(condition, text):
    if not condition:
        raise AssertionError(text)


def until(condition, text):
    deadline = time.monotonic() + SECONDS
    while not condition():
        must(time.monotonic() < deadline, f"{text}: not within {SECONDS} s")
        time.sleep(0.005)


def options():
    return mmn.NetworkOptions(bind_address="127.0.0.1", dispatch_mode=mmn.DISPATCH_THREAD)


def refused(call):
    try:
        call()
    except mmn.NetworkError as error:
        return error.code
    return 0


def open_rooms(name):
    return [mmn.Room(name, session, options=options()) for session in SESSIONS]


def worker(rooms, name, addresses, all_seen):
    """A child with its parent's room objects. It opens its own rooms."""
    for room in rooms:
        must(not room.is_open, "open in a child")
        must(refused(lambda: room.broadcast(b"x")) == mmn.NOT_INITIALIZED, "broadcast")
        must(refused(lambda: room.set_leader("main")) == mmn.NOT_INITIALIZED, "set_leader")
        must(refused(lambda: room.on_message(print)) == mmn.NOT_INITIALIZED, "on_message")
        must(refused(room.leave) == mmn.NOT_INITIALIZED, "leave")
    own_rooms = open_rooms(name)
    # The parent's objects change nothing about the child's rooms, closed or collected.
    rooms[0].close()
    del room
    rooms.clear()
    gc.collect()
    for own, address in zip(own_rooms, addresses):
        own.connect(address)
    for own in own_rooms:
        until(lambda: len(own.peers) == WORKERS, f"{name} sees all of {own.session_id}")
    all_seen.wait(SECONDS)
    for own in own_rooms:
        own.close()


def run_workers(rooms):
    context = multiprocessing.get_context("fork")
    all_seen = context.Barrier(WORKERS + 1)
    addresses = [room.local_address for room in rooms]
    children = [
        context.Process(target=worker, args=(rooms, f"worker-{number}", addresses, all_seen))
        for number in range(WORKERS)
    ]
    for child in children:
        child.start()
    for room in rooms:
        until(lambda: len(room.peers) == WORKERS, f"main sees all of {room.session_id}")
    all_seen.wait(SECONDS)
    for child in children:
        child.join(SECONDS)
        must(child.exitcode == 0, f"a worker ended with {child.exitcode}")
    for room in rooms:
        until(lambda: not room.peers, f"main is alone in {room.session_id}")


def ends_well(child):
    _, status = os.waitpid(child, 0)
    must(status == 0, f"a child ended with status {status}")


def exit_normally(room):
    """os.fork, and a child that ends normally: its exit handlers run, among them the rooms'."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        sys.exit(0)
    ends_well(child)
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        del room
        gc.collect()
        os._exit(0)
    ends_well(child)


def fork_in_a_handler(room):
    """A handler on the library's thread starts a process; the child never returns into the library."""
    context = multiprocessing.get_context("fork")
    ended = []
    forked = threading.Event()

    def on_message(_):
        child = context.Process(target=os.getpid)
        child.start()
        child.join(SECONDS)
        ended.append(child.exitcode)
        forked.set()

    room.on_message(on_message)
    room.send("main", b"x")
    must(forked.wait(SECONDS) and ended == [0], f"a child of a handler ended with {ended}")
    room.on_message(None)


def main():
    # Not a thread, which would be missing in a child.
    signal.alarm(4 * SECONDS)
    rooms = open_rooms("main")
    room, another = rooms
    logged = []
    mmn.set_log(lambda level, text: logged.append(text), mmn.LOG_DEBUG)
    run_workers(rooms)
    exit_normally(room)
    fork_in_a_handler(room)
    must(room.peer_id == "main" and refused(lambda: room.broadcast(b"x")) == 0, "the parent's room")
    room.close()
    must(refused(lambda: room.broadcast(b"x")) == mmn.NOT_INITIALIZED, "closed")
    must(another.is_open and refused(lambda: another.broadcast(b"x")) == 0, "the parent's other room")
    another.close()
    mmn.set_log(None)
    print("ok")


if __name__ == "__main__":
    main()
