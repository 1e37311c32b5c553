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


def show(text):
    print(text, flush=True)


me, session = sys.argv[1:3]
with mmn.Room(me, session, state=True) as room:
    state = room.state

    @state.on_property
    def _(changed):
        if changed.key == "map":
            show(f"map {changed.value.decode()}")

    @state.on_action
    def _(action):
        global counter
        if action.type == ADD:
            counter += int(action.text)
            show(f"counter {counter}")
        elif action.type == SAY:
            chat.append(f"{action.author}: {action.text}")
            show(f"chat {chat[-1]}")

    state.save = lambda: "\n".join([str(counter), *chat]).encode()

    @state.load
    def _(data):
        global counter, chat
        first, *chat = (data or b"0").decode().split("\n")
        counter = int(first)
        show(f"loaded {counter}, {len(chat)} lines")

    for line in map(str.strip, sys.stdin):
        if line == "/quit":
            break
        if line.startswith("/map "):
            state["map"] = line[5:].encode()
        elif line.startswith("/claim "):
            show(f"claim {'won' if state.claim(line[7:]).result() else 'lost'}")
        else:
            state.submit(ADD if line.lstrip("-").isdigit() else SAY, line.encode())
