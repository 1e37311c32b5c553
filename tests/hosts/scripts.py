"""Members in Lua, Node and Java beside members in Python, in one room: messages, a killed leader, errors, and the layout of structs."""

import os
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bindings/python"))
import greeting  # noqa: E402
import meta_mystia_network as mmn  # noqa: E402
import stories  # noqa: E402

SESSION = "scripts"
SECRET = b"a\0b"
# Letters of two, three and four bytes.
NAME = "Zoë·茶🍵"
# Every byte, and so zero bytes too.
EVERYTHING = bytes(range(256)) * 2
NODE = ROOT / "target/tools/node"
os.environ["NODE_PATH"] = str(NODE / "packages/node_modules")
JNA = "/usr/share/java/jna.jar"
TIMEOUT_SECONDS = greeting.TIMEOUT_SECONDS

LEADER = """
import time
import meta_mystia_network as mmn
room = mmn.Room("first", "scripts", mmn.NetworkOptions(entry=mmn.ENTRY_CREATE, secret=b"a\\0b"), state=True)
print(room.local_address, flush=True)
while True:
    room.poll()
    time.sleep(0.01)
"""


def lua(program):
    return ["luajit", f"{program}.lua"]


def node(program):
    return [NODE / "bin/node", next(program.parent.glob(f"{program.name}.*js"))]


def java(program):
    """The test has compiled all classes into a folder."""
    classes = f"{os.environ['CLASSES']}:{JNA}"
    return ["java", "-Dfile.encoding=UTF-8", "-cp", classes, program.name.capitalize()]


class Puppet(greeting.Member):
    """A member in another language, which takes commands."""

    def __init__(self, language):
        super().__init__(language.__name__, language(HERE / "scripts/puppet"))
        self.events = []

    def ask(self, *words):
        """The lines of the answer."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.line()) != ".":
            lines.append(line)
        return lines

    def do(self, *words):
        """The answer of a command that succeeds."""
        lines = self.ask(*words)
        assert not any(line.startswith("error") for line in lines), (words, lines)
        return lines

    def open(self, address=None):
        return self.do("open", NAME.encode().hex(), SESSION, *([address] if address else []))[0]

    def refused(self, *words):
        """The name and the text of the error that a command raises."""
        lines = self.ask(*words)
        assert len(lines) == 1 and lines[0].startswith("error\t"), (words, lines)
        return lines[0].split("\t")[1:]

    def poll(self):
        for line in self.do("poll"):
            name, who, data = (line.split("\t") + ["", ""])[:3]
            self.events.append((name, bytes.fromhex(who).decode(), bytes.fromhex(data)))


def until(is_true, *members):
    """Polls all members until it is true."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not is_true():
        assert time.monotonic() < end, [(member, getattr(member, "events", None)) for member in members]
        for member in members:
            member.poll()
        time.sleep(0.01)


def python_room(events, address=None):
    entry = mmn.ENTRY_JOIN if address else mmn.ENTRY_CREATE
    room = mmn.Room("bob", SESSION, mmn.NetworkOptions(entry=entry, secret=SECRET), on_event=events.append, state=True)
    if address:
        room.connect(address)
    return room


def has(events, kind, **fields):
    return any(isinstance(event, kind) and all(getattr(event, name) == value for name, value in fields.items()) for event in events)


def meets_and_survives(language):
    """Messages in both directions, then the leader is killed, and all agree on the next."""
    command = [sys.executable, "-c", LEADER]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python")}
    events = []
    with greeting.Member("first", command, environment) as first, Puppet(language) as member:
        address = first.line()
        member.open(address)
        until(lambda: ("LeaderChanged", "first", b"") in member.events, member)
        with python_room(events, address) as room:
            until(lambda: NAME in room.peers and "first" in room.peers and room.leader == "first", member, room)
            until(lambda: ("PeerJoined", "bob", b"") in member.events, member, room)
            member.do("send", "bob".encode().hex(), EVERYTHING.hex())
            until(lambda: has(events, mmn.Message, sender=NAME, data=EVERYTHING), member, room)
            for data in (EVERYTHING, b"", b"\0"):
                room.send(NAME, data)
                until(lambda: ("Message", "bob", data) in member.events, member, room)

            first.process.kill()
            until(lambda: room.leader in ("bob", NAME) and member.do("leader") == [room.leader], member, room)
            until(lambda: ("LeaderChanged", room.leader, b"") in member.events, member, room)
            assert member.do("close") == ["false"]
            until(lambda: has(events, mmn.PeerLeft, peer=NAME, reason=mmn.LeftReason.LEFT), room)
        member.leave()


def names_errors(language):
    with Puppet(language) as member:
        member.open()
        for words, name, part in (
            (("send", "nobody".encode().hex(), "00"), "PEER_NOT_FOUND", "nobody"),
            (("send", "no\0body".encode().hex(), "00"), "INVALID_ARGUMENT", "zero byte"),
            (("large", 262145), "MESSAGE_TOO_LARGE", "262144"),
            (("typed", 65536), "INVALID_ARGUMENT", "65536"),
            (("typed", 255), "INVALID_ARGUMENT", "255"),
            (("option", "bind_port"), "INVALID_ARGUMENT", "bind_port"),
            # Java's compiler refuses it.
            *([] if language is java else [(("option", "no_such_option"), "INVALID_ARGUMENT", "no_such_option")]),
        ):
            found, text = member.refused(*words)
            assert found == name and part in text, (words, found, text)
        assert member.do("close") == ["false"]
        # A second time does nothing, and other calls are errors.
        assert member.do("close") == ["false"]
        assert member.refused("large", 1)[0] == "NOT_INITIALIZED"
        member.leave()


def has_the_whole_abi(language):
    """All functions and constants, and structs as C lays them out: the lines "struct size" and "struct.field offset" of MMN_LAYOUT."""
    functions = [line for line in (ROOT / "tests/abi/exports.txt").read_text().splitlines() if not line.startswith("#")]
    constants = re.findall(r"#define MMN_(\w+) \(?(-?\d+)\)?$", (ROOT / "include/meta_mystia_network.h").read_text(), re.MULTILINE)
    layout = [line.split() for line in Path(os.environ["MMN_LAYOUT"]).read_text().splitlines()]
    assert len(functions) >= 130 and len(constants) >= 150 and len(layout) >= 200, (len(functions), len(constants), len(layout))
    with Puppet(language) as member:
        for function in functions:
            assert member.do("function", function) == ["true"], function
        for name, value in constants:
            assert member.do("constant", name) == [value], name
        for name, number in layout:
            struct, _, field = name.partition(".")
            assert member.do(*(["offset", struct, field] if field else ["size", struct])) == [number], name
        member.leave()


def is_a_room(language):
    """The example: it greets, and names who comes, leads and goes."""
    events = []
    example = ROOT / "examples" / language.__name__ / "room"
    with greeting.Member("example", [*language(example), "alice", "3600"]) as alice:
        address = alice.line().removeprefix("others dial ")
        with mmn.Room("bob", "our secret tea party", mmn.NetworkOptions(), on_event=events.append) as room:
            room.connect(address)
            until(lambda: has(events, mmn.Message, sender="alice", data=b"alice greets all"), room)
            room.broadcast("grüße".encode())
            until(lambda: "bob: grüße" in alice.state(), room)
        for line in ("alice leads", "bob is here", "bob is gone"):
            alice.wait_for(line)
    with greeting.Member("example", [*language(example), "alice", "0"]) as alice:
        assert alice.process.wait(TIMEOUT_SECONDS) == 0, alice.state()


def lua_meets_python_and_survives_the_leader():
    meets_and_survives(lua)


def lua_names_errors():
    names_errors(lua)


def lua_has_the_whole_abi():
    has_the_whole_abi(lua)


def lua_example_of_a_room():
    is_a_room(lua)


def node_meets_python_and_survives_the_leader():
    meets_and_survives(node)


def node_names_errors():
    names_errors(node)


def node_has_the_whole_abi():
    has_the_whole_abi(node)


def node_example_of_a_room():
    is_a_room(node)


def java_meets_python_and_survives_the_leader():
    meets_and_survives(java)


def java_names_errors():
    names_errors(java)


def java_has_the_whole_abi():
    has_the_whole_abi(java)


def java_example_of_a_room():
    is_a_room(java)


if __name__ == "__main__":
    stories.main(globals())
