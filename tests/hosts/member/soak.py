#!/usr/bin/env python3
"""One member stays in its room while others join, leave, crash, restart under the same id and pause.

    SOAK_SECONDS=900 soak.py [PROGRAM]

Its memory, threads and descriptors must stay flat, and it must never lose the room for good. At the end all living members must
be linked under one leader and leave with 0. Prints a table. PROGRAM is the built member.c; without it, soak.py builds it.
"""

import os
import statistics
import sys
import time

from members import ROOT, Failed, Room, build, run, seeded

OTHERS = ["m1", "m2", "m3", "m4"]
TALK_MS = 20
PAUSE_SECONDS = 4.0
HEAL_SECONDS = 60.0
START_SECONDS = 30.0
# A member without a peer or a contact dials again after this time, as a player would.
LONELY_SECONDS = 3.0
# Over the whole run after the warm-up: smaller growth is the allocator's noise, larger growth is a leak.
GROWTH_KIB = 4096
WEIGHTS = {"leave": 3, "kill": 3, "pause": 2, "join": 4}


class Soak:
    def __init__(self, room, chance, seconds):
        self.room = room
        self.chance = chance
        self.seconds = seconds
        self.counts = dict.fromkeys(["join", "leave", "kill", "pause"], 0)
        self.samples = []  # (seconds, KiB, threads, descriptors)
        self.resume_at = {}  # paused member: time to resume
        self.lonely_since = {}

    def play(self):
        room = self.room
        self.keeper = room.start("m0")
        room.wait_until_ready(START_SECONDS)
        for name in OTHERS:
            room.start(name, self.keeper)
        room.wait_until_ready(START_SECONDS)
        room.wait_until_meshed(HEAL_SECONDS)
        self.started_at = time.monotonic()
        print(f"{'s':>6} {'KiB':>8} {'threads':>8} {'files':>6} {'peers':>6} {'leader':>7}   joins leaves kills pauses received", flush=True)
        next_action = next_sample = next_row = 0.0
        while (now := self.now()) < self.seconds:
            self.look_after(now)
            if now >= next_sample:
                self.sample(now)
                next_sample = now + 0.5
            if now >= next_row:
                self.row(now)
                next_row = now + max(2.0, self.seconds / 45)
            if now >= next_action:
                self.act(now)
                next_action = now + self.chance.uniform(0.3, 1.7)
            time.sleep(0.1)
        self.heal()
        self.sample(self.now())
        self.row(self.now())
        for member in reversed(list(room.members)):
            member.leave()
        self.judge()

    def now(self):
        return time.monotonic() - self.started_at

    def look_after(self, now):
        """Resumes paused members, and lets lonely ones dial; a member that ended by itself fails the test."""
        for member, at in list(self.resume_at.items()):
            if now >= at:
                member.resume()
                del self.resume_at[member]
        for member in self.room.members:
            if not member.alive():
                raise Failed(f"{member.name} ended by itself with {member.process.returncode}")
            if member.paused or member.address is None or member.peers > 0:
                self.lonely_since.pop(member, None)
            elif now - self.lonely_since.setdefault(member, now) > LONELY_SECONDS:
                self.lonely_since[member] = now
                member.connect(self.contact(but=member))

    def contact(self, but=None):
        """The contact of a joiner: a member of the keeper's room. A process that has entered no room yet would found another
        room, and rooms whose members all have a peer do not merge.
        """
        known = [m for m in self.room.members if m is not but and m.address and not m.paused]
        if but is not self.keeper:
            leader = self.keeper.leader
            known = [m for m in known if m is self.keeper or (m.peers > 0 and m.leader == leader)]
        return self.chance.choice(known) if known else self.keeper

    def act(self, now):
        """One random step. It never touches the keeper, and always leaves two others present."""
        names = {member.name for member in self.room.members}
        missing = [name for name in OTHERS if name not in names]
        victims = [m for m in self.room.members if m is not self.keeper and not m.paused and m.address]
        # Every missing member returns sooner or later, always under an id that the room has known.
        possible = {kind: weight for kind, weight in WEIGHTS.items() if (missing if kind == "join" else len(victims) > 2)}
        if not possible:
            return
        kind = self.chance.choices(list(possible), list(possible.values()))[0]
        self.counts[kind] += 1
        if kind == "join":
            self.room.start(self.chance.choice(missing), self.contact())
            return
        victim = self.chance.choice(victims)
        if kind == "pause":
            victim.pause()
            self.resume_at[victim] = now + PAUSE_SECONDS
            return
        victim.leave() if kind == "leave" else victim.kill()
        self.room.remove(victim)
        if kind == "kill" and self.chance.random() < 0.5:
            # A player restarts a crashed game at once.
            self.counts["join"] += 1
            self.room.start(victim.name, self.contact())

    def heal(self):
        """Soon after the last disturbance all living members are linked under one leader."""
        for member in list(self.resume_at):
            member.resume()
        self.resume_at.clear()
        deadline = time.monotonic() + HEAL_SECONDS
        while (lack := self.room.not_meshed()) is not None:
            if time.monotonic() > deadline:
                raise Failed(f"not healed after {HEAL_SECONDS:.0f} s: {lack}")
            self.look_after(self.now())
            time.sleep(0.1)

    def sample(self, now):
        self.samples.append((now, *self.keeper.usage()))

    def row(self, now):
        keeper, counts = self.keeper, self.counts
        keeper.send_line("count")
        _, kib, threads, descriptors = self.samples[-1]
        print(
            f"{now:6.0f} {kib:8} {threads:8} {descriptors:6} {keeper.peers:6} {keeper.leader or '-':>7}   {counts['join']:5}"
            f" {counts['leave']:6} {counts['kill']:5} {counts['pause']:6} {keeper.received or 0:8}",
            flush=True,
        )

    def judge(self):
        """Flat means: a line through the samples after the warm-up rises by less than GROWTH_KIB, and the medians of threads and
        descriptors are equal early and late.
        """
        warm_up = min(60.0, self.seconds / 3)
        rows = [row for row in self.samples if row[0] >= warm_up]
        if len(rows) < 10:
            raise Failed(f"only {len(rows)} samples after the warm-up of {warm_up:.0f} s: SOAK_SECONDS is too small")
        times = [row[0] for row in rows]
        slope = statistics.linear_regression(times, [row[1] for row in rows]).slope
        growth = slope * (times[-1] - times[0])
        third = len(rows) // 3
        early, late = rows[:third], rows[-third:]
        print(f"memory {growth:+.0f} KiB over {times[-1] - times[0]:.0f} s ({slope * 60:+.1f} KiB a minute, {GROWTH_KIB} KiB in all allowed)")
        if growth > GROWTH_KIB:
            raise Failed(f"memory grew by {growth:.0f} KiB")
        for index, what in [(2, "threads"), (3, "descriptors")]:
            before = statistics.median(row[index] for row in early)
            after = statistics.median(row[index] for row in late)
            print(f"{what} {before:.0f} -> {after:.0f}, at most {max(row[index] for row in rows)}")
            if after > before:
                raise Failed(f"{what} grew from {before} to {after}")


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else build(ROOT / "target" / "hosts")
    seconds = float(os.environ.get("SOAK_SECONDS") or 900)
    with Room(program, "soak", talk_ms=TALK_MS) as room:
        Soak(room, seeded(), seconds).play()
    print("ok")


if __name__ == "__main__":
    run(main)
