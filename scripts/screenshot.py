#!/usr/bin/env python3
"""Writes docs/lobby.svg: the C# lobby of a real room, as one of its members sees it.

Five lobbies run on terminals of their own, in a network with only loopback; each simulates a line of its own kind, and one is
stopped before the end. The picture shows the first one's terminal, cell by cell. Needs mcs and mono (scripts/install-tools.sh),
root or a user that may make a network namespace, and the library (`make build`).
"""

import argparse
import contextlib
import os
import re
import signal
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

import demo
from terminal import Terminal, columns

ROOT = demo.ROOT
SESSION = "tea party"
ROWS, WIDTH = 24, 104
VIEWER = "alice"
# Lag and jitter in milliseconds, loss per thousand, and further arguments.
LINES = {
    "alice": (3, 4, 3, []),
    "bob": (9, 8, 5, []),
    "carol": (52, 50, 5, ["--observer"]),
    "米斯蒂娅": (115, 130, 5, []),
    "dan": (20, 10, 0, []),
}
CHAT = [
    ("bob", "ready when you are"),
    ("米斯蒂娅", "茶泡好了，点心也好了"),
    ("carol", "I only watch tonight"),
    ("alice", "then we open the shop ♪"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=Path, default=ROOT / "target" / "release" / demo.LIBRARY_NAME)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "lobby.svg")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as built:
        lobby = Path(built) / "Lobby.exe"
        sources = [*(ROOT / "csharp-sample").glob("*.cs"), *(ROOT / "bindings" / "csharp").glob("*.cs")]
        demo.run_tool(["mcs", "-langversion:7", "-warnaserror", f"-out:{lobby}", *sources])
        print(demo.isolate())
        environment = dict(os.environ, TERM="xterm-256color", LD_LIBRARY_PATH=str(arguments.library.resolve().parent))
        screen = run(["mono", str(lobby)], environment)
    print(screen.text())
    arguments.output.write_text(svg(screen), encoding="utf-8")
    print(f"wrote {arguments.output}, {arguments.output.stat().st_size} bytes")


def run(command, environment):
    with contextlib.ExitStack() as ended:
        terminals = {}
        for name, (lag, jitter, loss, more) in LINES.items():
            line = ["--lag", str(lag), "--jitter", str(jitter), "--loss", str(loss)]
            dial = ["--connect", address(terminals[VIEWER])] if terminals else []
            started = Terminal([*command, "--id", name, "--session", SESSION, *line, *dial, *more], ROWS, WIDTH, environment)
            terminals[name] = ended.enter_context(started)
            # Alone, the first one comes to lead.
            terminals[VIEWER].wait("a leader", "♛")
            terminals[VIEWER].wait(f"{name} in the room", lambda screen: name in screen.text())
        viewer = terminals[VIEWER]
        viewer.type("/add 7", "enter")
        for name, text in CHAT:
            terminals[name].type(text, "enter")
            viewer.wait("the chat", f"{name}  {text}")
        others = [name for name in LINES if name not in (VIEWER, "dan")]
        viewer.wait("the course of each link", lambda screen: all(len(re.findall("[▁-█]", row(screen, name))) == 20 for name in others))
        terminals["dan"].process.send_signal(signal.SIGSTOP)
        viewer.type("down")
        viewer.wait("a lost member", lambda screen: "reconnecting" in row(screen, "dan"))
        # All its columns again, and some samples of the loss.
        viewer.wait("samples of the loss", lambda screen: row(screen, "dan").count("·") >= 4)
        with viewer.changed:
            return viewer.screen


def address(terminal):
    # The keys are drawn last, so all rows above them are complete.
    return terminal.wait("its address", lambda screen: re.search(r"listening on (\S+:\d+).*F10", screen.text(), re.DOTALL))[1]


def row(screen, name):
    return next((line for line in screen.lines() if re.match(rf"[ ▸♛]{{4}}{name} ", line)), "")


# ---------------------------------------------------------------- the picture

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE, MARGIN, BAR = 8.4, 19, 14, 14, 30
FORE, BACK, FRAME = "#d5d9e0", "#14161b", "#24272e"
SIXTEEN = ["#3b4048", "#f0716b", "#7fcf7f", "#e6c15c", "#6ea8fe", "#c792ea", "#5fc9c9", "#d5d9e0"]
SIXTEEN += ["#7c8594", "#ff8f88", "#a3e0a3", "#f5d98a", "#9cc3ff", "#ddb3f5", "#8fe3e3", "#ffffff"]


def svg(screen):
    """The cells as text and rectangles at fixed places, so that the columns line up in any font."""
    width, height = 2 * MARGIN + screen.width * CELL_WIDTH, 2 * MARGIN + screen.rows * CELL_HEIGHT + BAR
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}">',
        "<title>The C# lobby: five members of one room, as one of them sees it</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="9" fill="{BACK}"/>',
        f'<path d="M0 {BAR}V9a9 9 0 0 1 9-9H{width - 9:g}a9 9 0 0 1 9 9V{BAR}z" fill="{FRAME}"/>',
        *(f'<circle cx="{20 + 18 * i}" cy="{BAR / 2:g}" r="5.5" fill="{colour}"/>' for i, colour in enumerate(("#f0716b", "#e6c15c", "#7fcf7f"))),
        '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        f'font-size="{FONT_SIZE}" transform="translate({MARGIN} {MARGIN + BAR})">',
    ]
    for number, cells in enumerate(screen.cells):
        for start, length, text, style in runs(cells):
            parts.extend(drawn(number, start, length, text, style))
    if screen.cursor_shown:
        x, y = screen.column * CELL_WIDTH, screen.row * CELL_HEIGHT
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="{FORE}" opacity=".6"/>')
    return "\n".join(parts) + "\n</g>\n</svg>\n"


def runs(cells):
    """Neighbours of one style: (first column, columns, text, style). Wide characters, and bars, stand alone."""
    found = []
    for column, (text, style) in enumerate(cells):
        if not text:
            continue
        alone = columns(text[0]) == 2 or "▁" <= text <= "█"
        if found and not alone and not found[-1][4] and found[-1][3] == style:
            start, length, before, _, _ = found[-1]
            found[-1] = (start, length + 1, before + text, style, False)
        else:
            found.append((column, columns(text[0]), text, style, alone))
    return [run[:4] for run in found]


def drawn(number, start, length, text, style):
    x, y, width = start * CELL_WIDTH, number * CELL_HEIGHT, length * CELL_WIDTH
    fore, back = colour(style.fore, FORE), colour(style.back, None)
    if style.reverse:
        fore, back = back or BACK, fore
    if back:
        # A little wider, so that no seam is visible.
        yield f'<rect x="{x:g}" y="{y:g}" width="{width + 0.3:.4g}" height="{CELL_HEIGHT}" fill="{back}"/>'
    if "▁" <= text <= "█":
        bar = (ord(text) - ord("▁") + 1) * (CELL_HEIGHT - 4) / 8
        yield f'<rect x="{x + 0.6:.5g}" y="{y + CELL_HEIGHT - 2 - bar:.5g}" width="{CELL_WIDTH - 1.2:.3g}" height="{bar:.4g}" fill="{fore}"/>'
    else:
        weight = ' font-weight="bold"' if style.bold else ""
        # Pictures may collapse several blanks into one.
        for word in re.finditer(r"\S+(?: \S+)*", text):
            at = x + word.start() * CELL_WIDTH
            long = sum(columns(character) for character in word[0]) * CELL_WIDTH
            yield f'<text x="{at:.5g}" y="{y + FONT_SIZE:g}" textLength="{long:.5g}" fill="{fore}"{weight}>{escape(word[0])}</text>'


def colour(number, default):
    """xterm's 256 colours; the first 16 are a matter of taste."""
    if number is None:
        return default
    if number < 16:
        return SIXTEEN[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    levels = [0, 95, 135, 175, 215, 255]
    number -= 16
    return f"#{levels[number // 36]:02x}{levels[number // 6 % 6]:02x}{levels[number % 6]:02x}"


if __name__ == "__main__":
    main()
