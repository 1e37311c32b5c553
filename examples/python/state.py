#!/usr/bin/env python3
"""A counter, a chat and a map that a room's members share, and that no leader takes with it. docs/state.md explains it.

    python3 examples/python/state.py alice tea

Lines of the standard input: a number adds to the counter, /map NAME, /claim ITEM, /quit; all others are chat.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import meta_mystia_network as mmn  # noqa: E402  (the path above makes it importable from the source tree)

ADD, SAY = mmn.FIRST_USER_TYPE, mmn.FIRST_USER_TYPE + 1
counter, chat = 0, []

sys.stdout.reconfigure(line_buffering=True)
with mmn.Room(sys.argv[1], sys.argv[2], state=True) as room:
    state = room.state
    room.on_leader(lambda leader: print(f"leader {leader or 'none'}"))

    @state.on_property
    def _(changed):
        if changed.owner is None:
            print(f"{changed.key} is {changed.value.decode()}")

    @state.on_action
    def _(action):
        global counter
        if action.type == ADD:
            counter += int(action.text)
            print(f"counter {counter}")
        elif action.type == SAY:
            chat.append(f"{action.author}: {action.text}")
            print(f"chat {chat[-1]}")

    state.save = lambda: "".join(f"{line}\n" for line in [counter, *chat]).encode()

    @state.load
    def _(data):
        global counter, chat
        first, *chat = (data or b"0\n").decode().split("\n")[:-1]
        counter = int(first)
        print(f"loaded {counter}, {len(chat)} lines")

    for line in (line.rstrip("\n") for line in sys.stdin):
        if line == "/quit":
            break
        if line.startswith("/map "):
            state["map"] = line[5:].encode()
        elif line.startswith("/claim "):
            print("claim won" if state.claim(line[7:]).result() else "claim lost")
        else:
            is_number = line.isascii() and line.isdigit() and len(line) < 7
            state.submit(ADD if is_number else SAY, line.encode())
