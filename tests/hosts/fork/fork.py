#!/usr/bin/env python3
"""A Python host that forks while it has a room: multiprocessing, os.fork, and a server that forks its workers.

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


def worker(room, name, address, all_seen):
    """A child with its parent's room object. It opens its own room."""
    must(not room.is_open, "open in a child")
    must(refused(lambda: room.broadcast(b"x")) == mmn.NOT_INITIALIZED, "broadcast")
    must(refused(lambda: room.set_leader("main")) == mmn.NOT_INITIALIZED, "set_leader")
    must(refused(lambda: room.on_message(print)) == mmn.NOT_INITIALIZED, "on_message")
    must(refused(room.leave) == mmn.NOT_INITIALIZED, "leave")
    with mmn.Room(name, "fork-python", options=options()) as own:
        # The parent's object changes nothing about the child's room, closed or collected.
        room.close()
        del room
        gc.collect()
        own.connect(address)
        until(lambda: len(own.peers) == WORKERS, f"{name} sees all")
        all_seen.wait(SECONDS)


def run_workers(room):
    context = multiprocessing.get_context("fork")
    all_seen = context.Barrier(WORKERS + 1)
    children = [
        context.Process(target=worker, args=(room, f"worker-{number}", room.local_address, all_seen))
        for number in range(WORKERS)
    ]
    for child in children:
        child.start()
    until(lambda: len(room.peers) == WORKERS, "main sees all")
    all_seen.wait(SECONDS)
    for child in children:
        child.join(SECONDS)
        must(child.exitcode == 0, f"a worker ended with {child.exitcode}")
    until(lambda: not room.peers, "main is alone")


def ends_well(child):
    _, status = os.waitpid(child, 0)
    must(status == 0, f"a child ended with status {status}")


def exit_normally(room):
    """os.fork, and a child that ends normally: its exit handlers run, among them the room's."""
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
    room = mmn.Room("main", "fork-python", options=options())
    logged = []
    mmn.set_log(lambda level, text: logged.append(text), mmn.LOG_DEBUG)
    run_workers(room)
    exit_normally(room)
    fork_in_a_handler(room)
    must(room.peer_id == "main" and refused(lambda: room.broadcast(b"x")) == 0, "the parent's room")
    room.close()
    must(refused(lambda: room.broadcast(b"x")) == mmn.NOT_INITIALIZED, "closed")
    mmn.set_log(None)
    print("ok")


if __name__ == "__main__":
    main()
