"""State that a room shares and that survives its leader: a counter and a chat log. docs/state-by-hand.md explains it.

The leader is the authority: members send it commands, it applies them and sends every member the numbered updates. Every member
keeps a replica. A new leader asks for all replicas, continues from the freshest, and announces it. csharp-sample/SharedState.cs
and examples/cpp/shared_state.hpp implement it in other languages with the same messages, so that the leadership may pass between
them.
"""

import collections
import re
import time
import typing

import meta_mystia_network as mmn

COMMAND = mmn.FIRST_USER_TYPE + 0x10  # member to leader: number, verb, text
UPDATE = mmn.FIRST_USER_TYPE + 0x11  # leader to all: version, author, number, verb, text
SNAPSHOT = mmn.FIRST_USER_TYPE + 0x12  # leader to all: the state
REPLICA = mmn.FIRST_USER_TYPE + 0x13  # member to leader: "here is my state; send me yours"
HAVE = mmn.FIRST_USER_TYPE + 0x14  # member to leader: leadership and version of its replica
SUPERSEDED = mmn.FIRST_USER_TYPE + 0x15  # as REPLICA, from a side of the room whose leader did not stay

CHAT_LINES = 50
AUTHORS = 256  # number of authors whose last number is kept; more than a room has members
MAX_PENDING = 256
MAX_TEXT_BYTES = 400
GATHER_SECONDS = 3.0  # time for which a new leader waits for the replicas of connected members
ASK_SECONDS = 0.5
RESEND_SECONDS = 1.0


class Replica(typing.NamedTuple):
    """A replica that a new leader may continue from."""

    position: tuple  # leadership and version
    superseded: bool  # it belongs to a side of the room whose leader did not stay
    data: bytes | None  # None for the new leader's own


class Command:
    """A command of this member, until it is confirmed."""

    def __init__(self, verb, text):
        self.verb, self.text = verb, text
        self.number = 0  # assigned when it is first sent: one more than this member's last
        self.version = 0  # version of the state that contains it
        self.sent_at = None


def is_command(verb, text):
    """Whether the leader accepts the command; the other members accept the leader's updates."""
    if verb == "add":
        return re.fullmatch(r"-?[0-9]{1,9}", text) is not None
    has_controls = any(character < " " for character in text)
    return verb == "say" and 0 < len(text.encode("utf-8")) <= MAX_TEXT_BYTES and not has_controls


class SharedState:
    """Pass it every event of the room, and call tick() once per frame, after poll()."""

    def __init__(self, room, own_id, on_chat, on_confirmed):
        self.room, self.id = room, own_id
        self.on_chat, self.on_confirmed = on_chat, on_confirmed
        # The replica. It is fresher than another when its (leadership, version) is larger.
        self.leadership = self.version = self.counter = 0
        self.chat = collections.deque(maxlen=CHAT_LINES)  # (author, text)
        self.numbers = {}  # author: number of its last command; the author of the last command comes last
        self.source = None  # the leader whose state it is; None before the first one, and once another side's leader has stayed
        # This member's state.
        self.leader = None
        self.leads = False
        self.synced = False  # the replica is the present leader's state; at the leader: it has been announced
        self.asked_at = None
        self.reported = None  # (leadership, version) in the last HAVE
        self.pending = []
        self.lost = set()  # members that may come back
        # State of the leader.
        self.gathering = None  # end of the gathering; None when it is over
        self.awaited = set()  # members whose replica is still to come
        self.replicas = {}  # of all members, also this one's
        self.wanted = False  # a member asked for the state
        self.held = 0  # the newest version that another member also has

    def submit(self, verb, text):
        """Queues a command ("add" and a number, or "say" and a line); False if it is not a command, or too many are pending."""
        text = text.strip()
        if len(self.pending) >= MAX_PENDING or not is_command(verb, text):
            return False
        self.pending.append(Command(verb, text))
        return True

    def on_event(self, event):
        match event:
            case mmn.LeaderChanged(leader):
                if event.reason == mmn.LeaderReason.FOUND and leader != self.source:
                    self.source = None
                self.leader = leader
                self.leads = self.synced = False
                self.asked_at = self.gathering = None
            case mmn.LeadershipGained():
                self.leads, self.synced, self.wanted, self.held = True, False, True, 0
                self.gathering = time.monotonic() + GATHER_SECONDS
                self.awaited = set(self.room.peers)
                self.replicas = {self.id: Replica((self.leadership, self.version), self.source is None, None)}
            case mmn.PeerReconnecting(peer):
                self.lost.add(peer)
                self.awaited.discard(peer)
            case mmn.PeerJoined(peer) | mmn.PeerReturned(peer):
                self.lost.discard(peer)
            case mmn.PeerLeft(peer):
                self.lost.discard(peer)
                self.awaited.discard(peer)
                if peer == self.leader:
                    self.synced = False
            case mmn.Message(sender, data, kind):
                try:
                    self._message(sender, kind, data)
                except (ValueError, TypeError):
                    pass  # from another program, or from a newer version of this one

    def tick(self):
        now = time.monotonic()
        if self.leads:
            self._lead(now)
        elif self.leader:
            self._follow(now)
        if self.synced:
            self._settle()
            self._send_pending(now)

    # -- messages

    def _message(self, peer, kind, data):
        fields = data.decode("utf-8").split("\t")
        # SendFromLeader stamps these: those of a replaced leader do not arrive here.
        if peer == self.leader and not self.leads:
            if kind == SNAPSHOT:
                self._adopt(data)
                self.source = peer
                self._renumber()
            elif kind == UPDATE and self.synced:
                version, author, number, verb, text = fields
                if int(version) != self.version + 1:
                    self.synced = False  # an update is missing: ask again
                    return
                self._apply(author, int(number), verb, text)
        elif self.leads:
            if kind == COMMAND and self.synced:
                self._obey(peer, *fields)
            elif kind in (REPLICA, SUPERSEDED):
                self.wanted = True
                self.awaited.discard(peer)
                leadership, version = map(int, fields[:2])
                if self.gathering:
                    self.replicas[peer] = Replica((leadership, version), kind == SUPERSEDED, data)
            elif kind == HAVE and int(fields[0]) == self.leadership:
                self.held = max(self.held, int(fields[1]))

    def _obey(self, author, number, verb, text):
        # A command with an earlier number is a repetition; one with a later number comes again, behind the missing
        # ones.
        if int(number) != self.numbers.get(author, 0) + 1 or not is_command(verb, text):
            return
        update = f"{self.version + 1}\t{author}\t{number}\t{verb}\t{text}"
        # Sent first, then applied: a command that cannot be sent has no effect, and its author sends it again.
        if self._sent(self.room.send_from_leader, update, UPDATE):
            self._apply(author, int(number), verb, text)

    # -- once per frame

    def _lead(self, now):
        if self.gathering is not None:
            if self.awaited and now < self.gathering:
                return
            replicas = self.replicas.values()
            # A side that did not stay may have counted more leaderships than the one that did.
            limit = max((replica.position[0] for replica in replicas if not replica.superseded), default=float("inf"))
            eligible = (replica for replica in replicas if replica.position[0] <= limit)
            freshest = max(eligible, key=lambda replica: replica.position)
            if freshest.data is not None:
                self._adopt(freshest.data)
            self.leadership = max(replica.position[0] for replica in replicas) + 1
            self.gathering, self.replicas, self.source = None, {}, self.id
            self._renumber()
        if self.wanted and self._sent(self.room.send_from_leader, self.encode(), SNAPSHOT):
            self.wanted, self.synced = False, True

    def _follow(self, now):
        if not self.synced:
            if self.asked_at is None or now - self.asked_at >= ASK_SECONDS:
                self.asked_at = now
                self._sent(self.room.send_to_leader, self.encode(), REPLICA if self.source else SUPERSEDED)
        elif self.reported != (self.leadership, self.version):
            if self._sent(self.room.send_to_leader, f"{self.leadership}\t{self.version}", HAVE):
                self.reported = (self.leadership, self.version)

    def _send_pending(self, now):
        last = self.numbers.get(self.id, 0)
        for command in self.pending:
            command.number = command.number or last + 1
            if command.number > self.numbers.get(self.id, 0) and (
                command.sent_at is None or now - command.sent_at >= RESEND_SECONDS
            ):
                text = f"{command.number}\t{command.verb}\t{command.text}"
                if not self._sent(self.room.send_to_leader, text, COMMAND):
                    return
                command.sent_at = now
            last = command.number

    def _settle(self):
        """Confirms commands that are safe: a follower's are in its replica, the leader's in that of another member."""
        alone = not self.room.peers and not self.lost
        last, waiting = self.numbers.get(self.id, 0), []
        for command in self.pending:
            applied = 0 < command.number <= last
            if applied and not command.version:
                command.version = self.version
            if applied and (not self.leads or alone or command.version <= self.held):
                self.on_confirmed(command)
            else:
                waiting.append(command)
        self.pending = waiting

    # -- the state

    def _apply(self, author, number, verb, text):
        if verb == "add":
            self.counter += int(text)
        elif verb == "say":
            self.chat.append((author, text))
            self.on_chat(author, text)
        self.numbers.pop(author, None)
        self.numbers[author] = number
        while len(self.numbers) > AUTHORS:
            del self.numbers[next(iter(self.numbers))]
        self.version += 1

    def _adopt(self, data):
        head, *lines = data.decode("utf-8").split("\n")
        leadership, version, counter = map(int, head.split("\t"))
        rows = [line.split("\t") for line in lines]
        numbers = {author: int(number) for kind, author, number in rows if kind == "n"}
        chat = [(author, text) for kind, author, text in rows if kind == "c"]
        self.leadership, self.version, self.counter, self.numbers = leadership, version, counter, numbers
        self.chat = collections.deque(chat, CHAT_LINES)
        self.synced = not self.leads

    def _renumber(self):
        """Runs after another state replaced this one: sends the commands that it does not contain again, without a gap."""
        self._settle()
        last = applied = self.numbers.get(self.id, 0)
        for command in self.pending:
            if command.number > applied:
                # At once: the update with this command may be the next message.
                last += 1
                command.number, command.version, command.sent_at = last, 0, None

    def encode(self):
        lines = [f"{self.leadership}\t{self.version}\t{self.counter}"]
        lines += [f"n\t{author}\t{number}" for author, number in self.numbers.items()]
        lines += [f"c\t{author}\t{text}" for author, text in self.chat]
        return "\n".join(lines)

    def __str__(self):
        digest = 0x811C9DC5  # FNV-1a: equal at every member, in every language
        for byte in self.encode().encode("utf-8"):
            digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
        waiting = len(self.pending)
        return f"state: {self.counter}, {len(self.chat)} lines, version {self.leadership}.{self.version}, digest {digest:08x}, {waiting} unconfirmed"

    @staticmethod
    def _sent(send, text, kind):
        """False if the library refused: no leader, a full queue. Every such send is tried again."""
        try:
            send(text.encode("utf-8"), kind)
            return True
        except mmn.NetworkError:
            return False
