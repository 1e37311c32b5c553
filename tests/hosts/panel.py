"""The C# sample on terminals: its screen, its keys, and the terminal restored afterwards.

`panel.py STORY COMMAND...`, where COMMAND starts the lobby. Run by `tests/hosts`; MMN_LIBRARY names the library.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import stories
from terminal import Terminal, columns

WIDE = "米斯蒂娅"  # eight columns
COMMAND = sys.argv[2:]
ENVIRONMENT = dict(os.environ, TERM="xterm-256color", LD_LIBRARY_PATH=str(Path(os.environ["MMN_LIBRARY"]).resolve().parent))


# ---------------------------------------------------------------- stories


def two_lobbies_chat_transfer_and_kick():
    with lobby("alice") as alice, lobby(WIDE, rows=30, width=100, connect=alice) as other:
        for here, there in ((alice, WIDE), (other, "alice")):
            here.wait("the other's round trip", lambda screen: re.search(r"\d ms", row(screen, there)))
            here.wait("a leader", lambda screen: leader(screen))
        # With names of any width, the next column is aligned.
        table = alice.wait("roles", lambda screen: roles(screen) if len(roles(screen)) == 2 else None)
        assert len({place for place, _ in table.values()}) == 1, table

        other.type("茶 is ready", "enter")
        for here in (alice, other):
            here.wait("the chat", lambda screen: re.search(rf"\d\d:\d\d:\d\d  {WIDE}  茶 is ready", screen.text()))

        # One of them leads; the selection by arrow keys depends on that.
        leads = alice if leader(alice.screen) == "alice" else other
        follows, towards = (other, "down") if leads is alice else (alice, "up")
        first, second = names(leads), names(follows)
        follows.type("F2")
        follows.wait("who may hand over", f"only the leader can hand over, and that is {first}")
        follows.type("F3")
        follows.wait("who may yield", f"only the leader can yield, and that is {first}")
        follows.type("F4")
        follows.wait("who may kick", f"only the leader can kick, and that is {first}")
        # Typed commands reach the library, too, and its error sentence reaches the player.
        follows.type(f"/kick {first}", "enter")
        follows.wait("the library's refusal", lambda screen: re.search(r"KickPeer|only the leader .*-6", screen.text()))
        leads.type("F2")
        leads.wait("to whom", "hand over whom? Choose another member")
        leads.type(towards, "F2")
        for here in (leads, follows):
            here.wait("the new leader", lambda screen: leader(screen) == second)
        leads, follows = follows, leads
        leads.type("F3")
        for here in (leads, follows):
            here.wait("the leader before", lambda screen: leader(screen) == first)
        leads, follows = follows, leads

        leads.type("F4")
        leads.wait("a question", f"F4 again kicks {second}")
        leads.type("x", "F4")
        leads.wait("the question again", lambda screen: "› x" in screen.text() and f"F4 again kicks {second}" in screen.text())
        leads.type("F4")
        gives_back(follows, 0, f"[{second}] the room is over for me: kicked\n[{second}] closed")
        leads.wait("the member gone", lambda screen: not row(screen, second) and "1 member " in screen.text())
        leads.type("F10")
        gives_back(leads, 0, f"[{first}] closed")


def a_lost_member_is_shown_until_it_is_back():
    with lobby("alice") as alice, lobby("bob", connect=alice) as bob:
        for here, there in ((alice, "bob"), (bob, "alice")):
            here.wait("the other", lambda screen: row(screen, there))
        bob.process.send_signal(signal.SIGSTOP)
        alice.wait("the loss", lambda screen: "reconnecting" in row(screen, "bob") and "–" in row(screen, "bob"))
        bob.process.send_signal(signal.SIGCONT)
        alice.wait("the return", lambda screen: re.search(r"(member|leader) .*ms", row(screen, "bob")))
        bob.wait("the panel again", lambda screen: row(screen, "alice") and screen.alternate)
        for here in (alice, bob):
            here.type("ctrl-c")
            gives_back(here, 0, "closed")


def the_panel_follows_its_window_and_draws_what_changed():
    with lobby("alice", width=100) as alice, lobby("bob", connect=alice) as bob:
        alice.wait("all columns", lambda screen: row(screen, "bob") and screen.lines()[1].split()[-2:] == ["queue", "at"])
        for rows, width, last in ((24, 80, "queue"), (12, 50, "loss"), (6, 40, "rtt"), (3, 15, None), (40, 120, "at")):
            alice.resize(rows, width)
            fits = lambda screen: last is None or screen.lines()[1].endswith(last) and screen.lines()[1].split()[-1] == last
            alice.wait(f"a window of {width} columns", lambda screen: fits(screen) and screen.cursor_shown and "›" in screen.lines()[-2])
        for here in (alice, bob):
            here.wait("a leader", lambda screen: leader(screen))
        with alice.changed:
            drawn, clears = alice.screen.drawn, alice.screen.clears
        bob.type("a" * 200, "enter")
        alice.wait("the chat", "a" * 80)
        with alice.changed:
            assert alice.screen.clears == clears, "the screen was cleared"
            # Far fewer than the screen's 4800 cells, although rows move and round trips change meanwhile.
            assert alice.screen.drawn - drawn < 2400, f"{alice.screen.drawn - drawn} characters were drawn"
        for here in (alice, bob):
            here.type("ctrl-c")
            gives_back(here, 0, "closed")


def text_of_others_cannot_move_the_cursor():
    with lobby("alice") as alice:
        command = [*COMMAND, "--id", "bob", "--session", SESSION, "--connect", address(alice), "--interactive"]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
        with subprocess.Popen(command, **pipes) as bob:
            bob.stdin.write("\u009b2Jboo\u202e!\n".encode())
            bob.stdin.flush()
            alice.wait("the chat, disarmed", "bob  \ufffd2Jboo!")
            printed, _ = bob.communicate(b"/quit\n")
            assert bob.returncode == 0 and "chat bob: \ufffd2Jboo!" in printed.decode(), printed.decode()
        alice.type("ctrl-c")
        gives_back(alice, 0, "closed")


def a_failure_gives_the_terminal_back():
    with lobby("alice", more=["--connect", "nonsense"]) as alice:
        gives_back(alice, 1, '[alice] error: ')
        assert "nonsense" in alice.text(), alice.text()


def a_terminal_that_is_no_screen_gets_lines():
    with lobby("alice", environment={**ENVIRONMENT, "TERM": "dumb"}) as alice:
        alice.wait("lines", "[alice] members: alice(0 ms)")
        alice.type("tea?\n")
        alice.wait("the chat", "[alice] chat alice: tea?")
        assert not alice.screen.sequences, alice.screen.sequences
        alice.type("/quit\n")
        gives_back(alice, 0, "[alice] closed")
    with lobby("alice", more=["--plain"]) as alice:
        alice.wait("lines", "[alice] members: alice(0 ms)")
        assert not alice.screen.alternate
        alice.type("ctrl-c")
        gives_back(alice, 0, "[alice] closed")


def a_termination_gives_the_terminal_back():
    """On CoreCLR. Mono ends at once, like every program that does not handle the signal."""
    with lobby("alice") as alice:
        alice.wait("the panel", "alice (you)")
        alice.process.send_signal(signal.SIGTERM)
        gives_back(alice, 128 + signal.SIGTERM, "")


# ---------------------------------------------------------------- the contents of a screen

SESSION = f"panel-{os.getpid()}"


def lobby(name, rows=24, width=80, connect=None, more=(), environment=ENVIRONMENT):
    dial = ["--connect", address(connect)] if connect else []
    return Terminal([*COMMAND, "--id", name, "--session", SESSION, *dial, *more], rows, width, environment)


def address(terminal):
    # The keys are drawn last: everything above them is complete.
    return terminal.wait("its address", lambda screen: re.search(r"listening on (\S+:\d+).*F10", screen.text(), re.DOTALL))[1]


def names(terminal):
    return terminal.command[terminal.command.index("--id") + 1]


def row(screen, name):
    """A member's row of the table; "" when it has none."""
    if not screen.alternate:
        return ""
    return next((line for line in screen.lines()[2:] if re.match(rf"[ ▸]{{2}}[♛ ] {re.escape(name)}\s", line)), "")


def leader(screen):
    """The member with the crown; its role must agree."""
    found = [line for line in screen.lines()[1:] if re.match(r"[ ▸]{2}♛ ", line)]
    if screen.alternate and len(found) == 1 and re.search(r"\sleader\b", found[0]):
        return found[0][4:].split()[0]
    return None


def roles(screen):
    """By member: the column of its role, and the role."""
    found = {}
    for name in ("alice", WIDE):
        if match := re.search(r"\s(leader|member|observer|reconnecting)\b", row(screen, name)):
            before = row(screen, name)[: match.start(1)]
            found[name] = sum(columns(character) for character in before), match[1]
    return found


def gives_back(terminal, code, last):
    """The program ends with these last lines; the terminal is as before."""
    ended = terminal.exit_code()
    assert ended in (code, code - 256, 128 - code), f"exit code {ended}, not {code}\n{terminal.text()}"
    screen = terminal.screen
    assert not screen.alternate and screen.cursor_shown and screen.wraps, terminal.text()
    assert screen.style == (None, None, False, False), screen.style
    assert terminal.modes() == terminal.modes_before, "the modes of the terminal are others"
    assert last in terminal.text(), f"{last!r} is not in\n{terminal.text()}"


if __name__ == "__main__":
    stories.main(globals())
