#!/usr/bin/env python3
"""A lobby on the console: members, round-trip times, the players' positions, and a counter, a chat and a map that survive any
leader (docs/host-migration.md).

    python3 examples/python/lobby.py --id alice --session tea
    python3 examples/python/lobby.py --id bob --session tea --connect ADDRESS_OF_ALICE

Players at home meet at a relay (docs/internet.md). The first one passes no session, and the lobby prints a new code:

    python3 examples/python/lobby.py --id alice --relays relay.example.org
    python3 examples/python/lobby.py --id bob --relays relay.example.org --session CODE_OF_ALICE

In one local network a player lists the rooms that show a card (docs/discovery.md), and enters one by its number in the list:

    python3 examples/python/lobby.py --id alice --session tea --card "Alice's room"
    python3 examples/python/lobby.py --id bob --browse

Except for these two (csharp-sample has --card, and a command that lists the rooms), the samples in the other languages
(csharp-sample, examples/cpp, examples/c) accept the same arguments, print the same lines and share the state. The library is used in poll mode, as a game with frames does.
"""

import argparse
import os
import queue
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
import meta_mystia_network as mmn  # noqa: E402  (the path above makes it importable from the source tree)

GAME = "meta_mystia_network lobby"
HELLO = mmn.FIRST_USER_TYPE
POSITION = mmn.FIRST_USER_TYPE + 1
# Types of actions. Each member ignores illegal ones, in whatever program their author runs.
ADD, SAY = mmn.FIRST_USER_TYPE, mmn.FIRST_USER_TYPE + 1
LEGAL = {ADD: re.compile(rb"-?[0-9]{1,9}"), SAY: re.compile(rb"[^\n]+")}
CHAT_LINES = 50
PLAYER_KEY = 1  # each member's own: it moves one thing, its player
POSITION_CHANNEL = 1
ROW_LENGTH = 100
STRATEGIES = {"raft": mmn.STRATEGY_RAFT, "gossip": mmn.STRATEGY_GOSSIP, "seeded": mmn.STRATEGY_SEEDED}
END_OF_INPUT = None
FRAME_SECONDS = 1 / 60
STEP_SECONDS = 0.1


def main():
    parser = argparse.ArgumentParser(
        description="A lobby. Standard input, on a terminal or with --interactive: text is chat, /add N, /map NAME, "
        "/leader NAME, /transfer NAME, /yield, /quit."
    )
    parser.add_argument("--id", required=True)
    parser.add_argument("--session", help="the room; with --relays its code, and a new one by default")
    parser.add_argument("--relays", metavar="RELAY,...", help="where the members of the room meet")
    parser.add_argument("--connect", metavar="ADDR")
    parser.add_argument("--card", metavar="NAME", help="shows the room in the local network under this name")
    parser.add_argument("--browse", action="store_true", help="lists the rooms in the local network, and enters one")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--interactive", action="store_true")
    parser.add_argument("--strategy", choices=STRATEGIES, default="raft", help="how the room elects; the same for all members")
    parser.add_argument(
        "--alive-ms", type=int, metavar="N", help="gossip: how long a silent leader is believed in; the other times follow"
    )
    parser.add_argument("--voters", metavar="ID,...", help="seeded: the ids of all that vote; the same for all members")
    parser.add_argument("--seeds", metavar="ADDR,...", help="seeded: where the seeds are; the library dials them")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="seeded: this member is a seed, at this port")
    parser.add_argument("--state", metavar="DIRECTORY", help="seeded: keeps this member's votes")
    arguments = parser.parse_args()
    if not (arguments.session or arguments.relays or arguments.browse):
        parser.error("give --session, --relays or --browse")
    # Names may be in any script, whatever the locale.
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stderr.reconfigure(encoding="utf-8")

    lines = queue.Queue()
    if arguments.interactive or arguments.browse or sys.stdin.isatty():
        threading.Thread(target=read_input, args=(lines,), daemon=True).start()
    try:
        if arguments.browse:
            chosen = choose(arguments.id, lines)
            arguments.session, arguments.connect = chosen.session_id, chosen.address
            # Every member shows the card: the room stays in the lists when its leader goes.
            arguments.card = chosen.name
        options = mmn.NetworkOptions(strategy=STRATEGIES[arguments.strategy])
        if arguments.strategy == "seeded":
            options = cluster(arguments)
        elif arguments.alive_ms:
            # For one local network: all members start at about the same time, and receive the others' messages at once.
            alive = arguments.alive_ms
            options.startup_grace_ms = options.alive_threshold_ms = alive
            options.sample_interval_ms, options.election_duration_ms = max(alive // 5, 1), max(alive // 2, 1)
        if arguments.relays:
            options.relays = arguments.relays.split(",")
        with mmn.Room(arguments.id, arguments.session or mmn.generate_room_code(), options=options, state=True) as room:
            if arguments.card:
                room.show_card(mmn.RoomCard(GAME, arguments.card, is_open=True))
            Lobby(room, arguments.id).run(arguments.connect, arguments.seconds, lines, bool(arguments.relays))
    except mmn.NetworkError as error:
        fail(arguments.id, error)
        return 1
    say(arguments.id, "closed")
    return 0


def choose(own_id, lines):
    """The room that the player chooses from those in the local network, by its number."""
    with mmn.Browser(GAME, lambda room: say(own_id, f"{room.change.name.lower()} {room.id}: {room.name}, {room.players} here")) as browser:
        say(own_id, "type the number of a room")
        for line in iter(lines.get, END_OF_INPUT):
            for room in browser.rooms:
                if line.strip() == str(room.id) and room.session_id:
                    return room
            say(own_id, "no open room has that number")
    raise SystemExit("no room was chosen")


def cluster(arguments):
    """The options of a member of a group that never splits, with the times of one local network."""
    seeds = arguments.seeds.split(",")
    return mmn.NetworkOptions(
        strategy=mmn.STRATEGY_SEEDED,
        bind_port=arguments.port,
        quorum_roster=arguments.voters.split(","),
        state_directory=arguments.state,
        seeded=mmn.SeededOptions(seeds, profile=mmn.SEEDED_PROFILE_LAN, is_seed=arguments.port > 0),
    )


class Lobby:
    def __init__(self, room, own_id):
        self.room = room
        self.id = own_id
        self.positions = {}
        self.counter, self.chat = 0, []
        # The counter and the chat change in the first two alone: each member does the same in the same order.
        room.state.on_action(self.acted)
        room.state.load(self.loaded)
        room.state.save = self.saved
        room.state.on_rolled_back(self.rolled_back)

    def run(self, address, seconds, lines, has_code):
        room = self.room
        say(self.id, f"listening on {room.local_address}")
        if has_code:
            say(self.id, f"the room's code is {room.session_id}")
        room.on_event(self.happened)
        if address:
            room.connect(address)

        start = time.monotonic()
        beat = step = 1
        while (now := time.monotonic() - start) < seconds:
            # A frame of a game: it handles events here, on this thread and at this moment.
            room.poll()
            while not lines.empty():
                line = lines.get()
                if line is END_OF_INPUT or line == "/quit":
                    return
                self.obey(line)
            if now >= step * STEP_SECONDS:
                self.walk(step)
                step += 1
            if now >= beat:
                self.attempt(lambda: room.broadcast(f"hello {beat} from {self.id}".encode(), HELLO))
                say(self.id, self.members())
                say(self.id, self.shared())
                beat += 1
            time.sleep(FRAME_SECONDS)

    def walk(self, step):
        """Moves along a row, and on in the next one. A lost position is not sent again: the next one replaces it."""
        place = f"{step % ROW_LENGTH},{step // ROW_LENGTH}"
        self.positions[self.id] = place
        sequenced = mmn.SendOptions(mmn.DELIVERY_SEQUENCED, channel=POSITION_CHANNEL, key=PLAYER_KEY)
        self.attempt(lambda: self.room.broadcast(place.encode(), POSITION, options=sequenced))

    def happened(self, event):
        match event:
            case mmn.LeaderChanged(leader):
                say(self.id, f"{f'leader is {leader}' if leader else 'no leader'} ({event.reason.words})")
            case mmn.MemberStateChanged(peer, state, version):
                say(self.id, f"member {peer} is {state.words}, version {version}")
            case mmn.PeerJoined(peer):
                say(self.id, f"peer {peer} connected")
            case mmn.PeerReconnecting(peer):
                say(self.id, f"peer {peer} is lost and dialled again")
            case mmn.PeerReturned(peer):
                say(self.id, f"peer {peer} is back")
            case mmn.PeerLeft(peer):
                say(self.id, f"peer {peer} left")
            case mmn.Message(sender, data, kind) if kind == HELLO:
                say(self.id, f"from {sender}: {data.decode('utf-8', 'replace')}")
            case mmn.Message(sender, data, kind) if kind == POSITION:
                self.positions[sender] = data.decode("utf-8", "replace")
            case mmn.PropertyChanged(key, value):
                say(self.id, f"{key} is {value.decode('utf-8', 'replace')}")
            case mmn.StateOpened(None):
                say(self.id, "the state waits for a leader")
            case mmn.StateOpened(leader, exclusive):
                say(self.id, f"the state {'goes on' if exclusive else 'forks'} under {leader}")
            case mmn.ActionResult(_, _, code) if code != mmn.OK:
                say(self.id, f"not confirmed: error {code} {mmn.describe_error(code)}")
            case mmn.RelayChanged(relay, success, _, data):
                say(self.id, f"relay {relay}: {'entered' if success else data.decode()}")
            case mmn.ConnectionResult(address, success, code):
                outcome = "ok" if success else f"error {code} {mmn.describe_error(code)}"
                say(self.id, f"dialled {address}: {outcome}")

    def obey(self, line):
        if line.startswith("/leader "):
            self.attempt(lambda: self.room.set_leader(line[len("/leader ") :].strip()))
        elif line.startswith("/transfer "):
            self.attempt(lambda: self.room.transfer_leadership(line[len("/transfer ") :].strip()))
        elif line == "/yield":
            self.attempt(self.room.yield_leadership)
        elif line.startswith("/map "):
            self.attempt(lambda: self.room.state.set("map", line[len("/map ") :].encode()))
        elif line.startswith("/add "):
            self.submit(ADD, line[len("/add ") :].encode())
        elif line:
            self.submit(SAY, line.encode())

    def submit(self, kind, data):
        if LEGAL[kind].fullmatch(data):
            self.attempt(lambda: self.room.state.submit(kind, data))
        else:
            sys.stderr.write(f"[{self.id}] error: not taken: {data.decode()}\n")

    def acted(self, action):
        if action.type not in LEGAL or not LEGAL[action.type].fullmatch(action.data):
            return
        if action.type == ADD:
            self.counter += int(action.data)
        else:
            self.chat = [*self.chat, f"{action.author}: ".encode() + action.data][-CHAT_LINES:]
            say(self.id, f"chat {action.author}: {action.text}")
        if action.mine:
            say(self.id, f"confirmed {command(action)}")

    def saved(self):
        return b"".join(line + b"\n" for line in [b"%d" % self.counter, *self.chat])

    def loaded(self, snapshot):
        counter, *self.chat = (snapshot or b"0\n").split(b"\n")[:-1]
        self.counter = int(counter)
        say(self.id, f"loaded {self.counter}, {len(self.chat)} lines")

    def rolled_back(self, action):
        say(self.id, f"rolled back {action.author}: {command(action)}")
        if action.mine and action.type == SAY:  # a line may come twice; a number must not
            self.submit(SAY, action.data)

    def shared(self):
        digest = 0x811C9DC5  # FNV-1a: equal at every member, in every language
        for byte in self.saved():
            digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
        info, place = self.room.state.info, self.room.state.get("map", b"-").decode("utf-8", "replace")
        return (
            f"state: {self.counter}, {len(self.chat)} lines, map {place}, index {info.index}, digest {digest:08x}, "
            f"{info.pending} unconfirmed"
        )

    def members(self):
        parts = []
        for name in sorted(self.room.peers + [self.id], key=str.encode):
            if name == self.id:
                link = "0 ms"
            else:
                rtt = self.room.rtt_ms(name)
                link = f"{'-' if rtt is None else rtt} ms, {self.path_to(name)}"
            place = f" at {self.positions[name]}" if name in self.positions else ""
            parts.append(f"{name}({link}){place}")
        leader = self.room.leader
        return f"members: {' '.join(parts)}; " + (f"leader: {leader}" if leader else "no leader")

    def path_to(self, name):
        path, carrier = self.room.path(name), self.room.carrier(name)
        if path == mmn.LinkPath.THROUGH_RELAY:
            return "over a relay"
        if path == mmn.LinkPath.THROUGH_TURN:
            return "through a TURN server"
        if carrier is None:
            return "direct"
        return f"through {carrier}" + (" (leader)" if path == mmn.LinkPath.THROUGH_LEADER else "")

    def attempt(self, call):
        """Prints a refused call: the program and its room continue."""
        try:
            call()
        except mmn.NetworkError as error:
            fail(self.id, error)


def command(action):
    return f"{'add' if action.type == ADD else 'say'} {action.text}"


def say(own_id, text):
    sys.stdout.write(f"[{own_id}] {text}\n")
    sys.stdout.flush()


def fail(own_id, error):
    sys.stderr.write(f"[{own_id}] error: {error} ({error.code})\n")
    sys.stderr.flush()


def read_input(lines):
    # os.read and not sys.stdin: a thread that waits inside sys.stdin holds a lock that the interpreter needs to exit.
    pending = b""
    while chunk := os.read(0, 4096):
        *complete, pending = (pending + chunk).split(b"\n")
        for line in complete:
            lines.put(line.decode("utf-8", "replace").rstrip("\r"))
    lines.put(END_OF_INPUT)


if __name__ == "__main__":
    sys.exit(main())
