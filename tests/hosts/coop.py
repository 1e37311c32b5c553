"""The network use of a co-operative mod: a host and its guests at 60 frames a second, one process each.

`coop.py NAME` runs one function below. `coop.py player NAME ROLE` is one player: it reads commands and prints its events, one
JSON value a line. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bindings" / "python")]

import demo
import meta_mystia_network as mmn

SESSION = "a co-operative mod"
TIMEOUT_SECONDS = 40.0
FRAME_SECONDS = 1 / 60
ACTION, MOVE = 0x0100, 0x0101
LOST_FOR_SECONDS = 2.2
CHEATS, FULL_OF_THEM = b"I bring my own items", 7


# ---------------------------------------------------------------- one player


class Player:
    """A game. Each frame sends every player an action, which must arrive, and a position, which may be lost."""

    def __init__(self, name, role):
        self.actions, self.sent = {}, 0
        mmn.set_log(lambda level, text: self.logged.append(text))
        self.logged = []
        host_mode = mmn.HOST_MODE_HOST if role == "host" else mmn.HOST_MODE_GUEST
        self.room = mmn.Room(name, SESSION, options=mmn.NetworkOptions(host_mode=host_mode), on_event=self.on_event)
        self.is_over = False

    def on_event(self, event):
        if isinstance(event, mmn.Message):
            if event.type == ACTION:
                self.take(event.sender, int.from_bytes(event.data, "little"))
        elif isinstance(event, mmn.PeerJoined):
            # Number of the last action of each player; the first may have any number.
            self.actions[event.peer] = None
            say("joined", event.peer, address=self.room.address(event.peer))
        elif isinstance(event, mmn.PeerReturned):
            say("returned", event.peer, count=event.undelivered, missed=event.missed)
        elif isinstance(event, mmn.PeerLeft):
            say("left", event.peer, reason=event.reason, code=event.code, data=event.data.decode())
        elif isinstance(event, mmn.PeerReconnecting):
            say("lost", event.peer)
        elif isinstance(event, mmn.JoinRequest):
            say("asks", event.peer)
            if event.payload == CHEATS:
                self.room.reject_join(event.request, FULL_OF_THEM, b"no items of your own")
            else:
                self.room.accept_join(event.request)
        elif isinstance(event, mmn.ConnectionResult):
            say("result", event.peer or "", code=event.code, reason=event.reason, data=event.data.decode())
        elif isinstance(event, mmn.RoomEnded):
            self.is_over = True
            say("ended", "", reason=event.reason, code=event.code, data=event.data.decode())

    def take(self, peer, number):
        before = self.actions.get(peer)
        if before is not None and number != before + 1:
            say("disorder", peer, expected=before + 1, number=number)
        self.actions[peer] = number

    def frame(self):
        self.room.poll()
        if self.is_over:
            return
        self.sent += 1
        self.room.broadcast(self.sent.to_bytes(8, "little"), ACTION)
        position = mmn.SendOptions(delivery=mmn.DELIVERY_SEQUENCED, key=1)
        self.room.broadcast(b"position", MOVE, options=position)

    def do(self, what, *arguments):
        if what == "cut":
            self.room.simulate_network(loss_permille=1000)
        elif what == "join":
            self.room.simulate_network()
        elif what == "report":
            say("report", "", sent=self.sent, actions=self.actions, logged=len(self.logged), members=self.room.members)
        elif what == "payload":
            self.room.set_join_payload(CHEATS)
        elif what == "kick":
            name, ban = arguments
            self.room.kick(name, 5, b"be nice", ban=ban)
        else:
            getattr(self.room, what)(*arguments)

    def play(self):
        commands = queue.SimpleQueue()

        def read():
            for line in sys.stdin:
                commands.put(json.loads(line))
            commands.put(["quit"])

        threading.Thread(target=read, daemon=True).start()
        say("ready", "", address=self.room.local_address)
        following = time.monotonic()
        while True:
            while not commands.empty():
                command = commands.get()
                if command == ["quit"]:
                    return self.room.close()
                self.do(*command)
            self.frame()
            following += FRAME_SECONDS
            time.sleep(max(0.0, following - time.monotonic()))


def say(event, peer, **more):
    print(json.dumps({"event": event, "peer": peer, **more}), flush=True)


# ---------------------------------------------------------------- the players of a story


class Process:
    def __init__(self, name, role):
        self.name = name
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, __file__, "player", name, role], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.address = self.wait("ready")["address"]

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(json.loads(line))
                self.changed.notify_all()

    def do(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def wait(self, event, peer="", times=1):
        """The event of that kind and peer, the one of that number."""
        with self.changed:
            found = lambda: [one for one in self.lines if one["event"] == event and one["peer"] == peer]
            came = self.changed.wait_for(lambda: len(found()) >= times, TIMEOUT_SECONDS)
            assert came, f"{self.name}: no {event} {peer} {times} in {self.lines[-20:]}"
            assert not (disorder := [one for one in self.lines if one["event"] == "disorder"]), disorder
            return found()[times - 1]

    def report(self):
        seen = sum(one["event"] == "report" for one in self.lines)
        self.do("report")
        return self.wait("report", times=seen + 1)

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            assert self.process.wait(TIMEOUT_SECONDS) == 0, self.name


class Game:
    def __init__(self, *guests):
        self.host = Process("host", "host")
        self.players = {"host": self.host}
        self.host.do("enable_join_requests")
        for guest in guests:
            self.enter(guest)

    def enter(self, name):
        player = Process(name, "guest")
        player.do("connect", self.host.address)
        assert player.wait("result", "host")["code"] == mmn.OK
        for other in self.players.values():
            player.wait("joined", other.name)
            other.wait("joined", name)
        self.players[name] = player
        return player

    def flap(self, name, times):
        """Drops everything that the player sends for a while, again and again; the others play on."""
        player = self.players[name]
        others = [other for other in self.players.values() if other is not player]
        before = {other.name: sum(one["event"] == "returned" and one["peer"] == name for one in other.lines) for other in others}
        for time_of in range(1, times + 1):
            began = time.monotonic()
            player.do("cut")
            for other in others:
                other.wait("lost", name, before[other.name] + time_of)
            time.sleep(max(0.0, began + LOST_FOR_SECONDS - time.monotonic()))
            player.do("join")
            for other in others:
                returned = other.wait("returned", name, before[other.name] + time_of)
                assert (returned["count"], returned["missed"]) == (0, 0), returned

    def settle(self):
        """Waits until each player has everything that the others have sent."""
        sent = {name: player.report()["sent"] for name, player in self.players.items()}
        deadline = time.monotonic() + TIMEOUT_SECONDS
        for name, player in self.players.items():
            while any((player.report()["actions"].get(other) or 0) < sent[other] for other in sent if other != name):
                assert time.monotonic() < deadline, (name, player.report(), sent)
        return sent

    def end(self):
        for player in self.players.values():
            player.end()


# ---------------------------------------------------------------- stories


def links_that_flap_lose_nothing_and_keep_the_order():
    game = Game("ann", "bob")
    began = game.settle()
    game.flap("ann", 3)
    game.flap("host", 2)
    game.flap("bob", 1)
    sent = game.settle()
    print({name: sent[name] - began[name] for name in sent})
    for name, player in game.players.items():
        report = player.report()
        assert report["logged"] > 0, "the log is empty"
        assert sorted(report["members"]) == sorted(game.players.keys() - {name})
        for event in ("left", "ended"):
            assert not [one for one in player.lines if one["event"] == event], player.lines
    game.end()


def the_host_decides_who_plays():
    game = Game("ann")
    # A player whose messages break the game's rules.
    cheat = Process("cheat", "guest")
    cheat.do("payload")
    cheat.do("connect", game.host.address)
    result = cheat.wait("result")
    assert (result["code"], result["reason"], result["data"]) == (mmn.REJECTED, FULL_OF_THEM, "no items of your own"), result
    cheat.end()
    # The limit changes during play.
    game.host.do("set_max_peers", 1)
    late = Process("late", "guest")
    late.do("connect", game.host.address)
    assert late.wait("result")["code"] == mmn.MAX_CONNECTIONS_REACHED
    game.host.do("set_max_peers", 0)
    late.end()
    bob = game.enter("bob")
    # A kick without a ban, and one with a ban.
    for ban in (False, True):
        game.host.do("kick", "bob", ban)
        ended = bob.wait("ended")
        assert (ended["reason"], ended["code"], ended["data"]) == (mmn.END_KICKED, 5, "be nice"), ended
        game.players.pop("bob")
        bob.end()
        if not ban:
            for other in game.players.values():
                assert other.wait("left", "bob")["code"] == 5
                other.lines = [one for one in other.lines if one["peer"] != "bob"]
            bob = game.enter("bob")
    again = Process("bob", "guest")
    again.do("connect", game.host.address)
    assert again.wait("result")["code"] == mmn.REJECTED
    again.end()
    game.host.do("unban", "bob")
    for other in game.players.values():
        other.lines = [one for one in other.lines if one["peer"] != "bob"]
    game.enter("bob")
    game.settle()
    game.end()


def main():
    if sys.argv[1] == "player":
        return Player(*sys.argv[2:]).play()
    demo.isolate()
    globals()[sys.argv[1]]()
    print(f"ok {sys.argv[1]}")


if __name__ == "__main__":
    main()
