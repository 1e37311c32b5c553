#!/usr/bin/env python3
"""A room of sixteen processes forms from one contact, forms again after the contact died, and admits a newcomer.

    sixteen.py PROGRAM [LIMIT_SECONDS]

PROGRAM is the built member.c, or "build". Prints the time of each step in milliseconds; the limit is for each step.
"""

import sys
import time

from members import ROOT, Room, build, run

SIZE = 16


def main():
    program = sys.argv[1] if sys.argv[1:2] not in ([], ["build"]) else build(ROOT / "target" / "hosts")
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else 30.0
    with Room(program, "sixteen") as room:
        contact = room.start("m00")
        room.wait_until_ready(limit)
        # Started one after the other; each knows the first only.
        for number in range(1, SIZE):
            room.start(f"m{number:02}", contact)
        room.wait_until_ready(limit)
        started_at = max(member.ready_at for member in room.members)
        figure("room_of_16_formed_ms", room.wait_until_meshed(limit) - started_at)

        killed_at = time.monotonic()
        contact.kill()
        room.remove(contact)
        figure("after_the_contact_died_ms", room.wait_until_meshed(limit) - killed_at)

        newcomer = room.start("m16", room.members[SIZE // 2])
        room.wait_until_ready(limit)
        figure("newcomer_through_another_ms", room.wait_until_meshed(limit) - newcomer.ready_at)
        for member in room.members:
            member.send_line("leave")
        for member in room.members:
            if member.process.wait(limit) != 0:
                sys.exit(f"{member.name} left with exit code {member.process.returncode}")
    print("ok")


def figure(name, seconds):
    print(f"{name} {seconds * 1000:.0f}", flush=True)


if __name__ == "__main__":
    run(main)
