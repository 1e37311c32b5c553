#!/usr/bin/env python3
"""A member for the tests of the bindings: `guest.py SESSION ADDRESS`. It dials until it is admitted, sends one message, and
prints its outcomes, a line each: "rejected CODE BYTES", "joined", "ended REASON CODE BYTES". Ends when the room ends."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import meta_mystia_network as mmn  # noqa: E402


def main():
    session, address = sys.argv[1:]
    deadline = time.monotonic() + 50
    ended = []

    with mmn.Room("guest", session, options=mmn.NetworkOptions(secret=b"tea")) as room:

        def happened(event):
            if isinstance(event, mmn.ConnectionResult) and not event.success:
                print("rejected", event.reason, event.data.decode(), flush=True)
                room.set_join_payload(b"please")
                room.connect(address)
            elif isinstance(event, mmn.ConnectionResult):
                print("joined", flush=True)
                room.send(event.peer, b"hello", 0x0123, 2)
            elif isinstance(event, mmn.RoomEnded):
                print("ended", event.reason, event.code, event.data.decode(), flush=True)
                ended.append(True)

        room.on_event(happened)
        room.set_join_payload(b"let me in")
        room.connect(address)
        while not ended and time.monotonic() < deadline:
            room.poll()
            time.sleep(0.01)
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
