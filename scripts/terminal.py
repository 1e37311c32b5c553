"""Programs on a terminal, and their screens as a person would see them: a pseudo-terminal and a small model of a screen.

The model supports the output of the samples and of the runtimes below them: text in any script, the cursor's movements, colours,
erasing, the alternate screen (ECMA-48, xterm's private modes). Used by tests/hosts/panel.py and scripts/screenshot.py.
"""

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
import typing
import unicodedata

TIMEOUT_SECONDS = 40.0
KEYS = {"up": "\x1bOA", "down": "\x1bOB", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS", "F10": "\x1b[21~"}
KEYS |= {"page up": "\x1b[5~", "page down": "\x1b[6~", "enter": "\r", "backspace": "\x7f", "ctrl-c": "\x03", "ctrl-u": "\x15"}


MARK = "\x1b]777;mark\x07"  # shows nothing


class Style(typing.NamedTuple):
    fore: object = None  # 0 to 255, or None: the terminal's own
    back: object = None
    bold: bool = False
    reverse: bool = False


def columns(character):
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """The contents of the screen: cells of (text, style); the right half of a wide character is ("", style)."""

    SEQUENCE = re.compile(r"\x1b(?:\[([?>]?)([\d;]*)([@-~])|\]([^\x07\x1b]*)(?:\x07|\x1b\\)|[=>78cM]|\([A-Z0-9])")

    def __init__(self, rows, width):
        self.rows, self.width = rows, width
        self.style = Style()
        self.row = self.column = 0
        self.cursor_shown = self.wraps = True
        self.alternate = False
        self._pages = {False: self._blank(), True: self._blank()}
        self._kept = (0, 0)  # the cursor of the main screen
        self._rest = ""
        self.answers = []  # answers of the terminal to the program
        self.drawn = 0  # number of characters written
        self.clears = 0  # number of times that all of it was erased
        self.sequences = []  # the last few control sequences received
        self.marks = 0  # number of MARKs received

    def _blank(self):
        return [[(" ", Style())] * self.width for _ in range(self.rows)]

    @property
    def cells(self):
        return self._pages[self.alternate]

    def lines(self):
        return ["".join(text for text, _ in row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())

    def resize(self, rows, width):
        self.rows, self.width = rows, width
        for page in self._pages.values():
            page[:] = [(row + [(" ", Style())] * width)[:width] for row in page[:rows]]
            page.extend([(" ", Style())] * width for _ in range(rows - len(page)))
        self.row, self.column = min(self.row, rows - 1), min(self.column, width - 1)

    def feed(self, text):
        text = self._rest + text
        self._rest = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = self.SEQUENCE.match(text, at)
                if not match:
                    assert len(text) - at < 64, f"the model does not know {text[at:at + 16]!r}"
                    self._rest = text[at:]
                    return
                if match[0] == MARK:
                    self.marks += 1
                else:
                    self.sequences = self.sequences[-9:] + [match[0]]
                if match[3]:
                    self._control(match[1], match[2], match[3])
                at = match.end()
            else:
                self._print(text[at])
                at += 1

    def _print(self, character):
        if character == "\n":
            self._line_feed()
        elif character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(self.column - 1, 0)
        elif character >= " ":
            wide = columns(character)
            if wide == 0:
                text, style = self.cells[self.row][max(self.column - 1, 0)]
                self.cells[self.row][max(self.column - 1, 0)] = (text + character, style)
                return
            if self.column + wide > self.width:
                if not self.wraps:
                    return
                self.column = 0
                self._line_feed()
            self.cells[self.row][self.column] = (character, self.style)
            if wide == 2:
                self.cells[self.row][self.column + 1] = ("", self.style)
            self.column += wide
            self.drawn += 1

    def _line_feed(self):
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.cells.append([(" ", Style())] * self.width)
            del self.cells[0]

    def _control(self, private, parameters, final):
        numbers = [int(number or 0) for number in parameters.split(";")]
        if private:
            if private == "?" and final in "hl":
                for mode in numbers:
                    self._mode(mode, final == "h")
        elif final == "H":
            row, column = (numbers + [1])[:2]
            self.row = min(max(row, 1), self.rows) - 1
            self.column = min(max(column, 1), self.width) - 1
        elif final == "J":
            first = 0 if numbers[0] == 2 else self.row + 1
            self.clears += first == 0
            for row in range(first, self.rows):
                self.cells[row][:] = [(" ", Style())] * self.width
            if first:
                self.cells[self.row][self.column :] = [(" ", Style())] * (self.width - self.column)
        elif final == "K":
            self.cells[self.row][self.column :] = [(" ", Style())] * (self.width - self.column)
        elif final == "m":
            self._colour(numbers)
        elif final == "n":
            self.answers.append(f"\x1b[{self.row + 1};{self.column + 1}R")
        else:
            raise AssertionError(f"the model does not know CSI {parameters} {final}")

    def _mode(self, mode, on):
        if mode == 25:
            self.cursor_shown = on
        elif mode == 7:
            self.wraps = on
        elif mode == 1049 and on != self.alternate:
            if on:
                self._kept = (self.row, self.column)
                self._pages[True] = self._blank()
            else:
                self.row, self.column = self._kept
            self.alternate = on

    def _colour(self, numbers):
        style, rest = self.style, list(numbers)
        while rest:
            number = rest.pop(0)
            if number == 0:
                style = Style()
            elif number == 1:
                style = style._replace(bold=True)
            elif number == 7:
                style = style._replace(reverse=True)
            elif 30 <= number <= 37:
                style = style._replace(fore=number - 30)
            elif 90 <= number <= 97:
                style = style._replace(fore=number - 90 + 8)
            elif number in (38, 48):
                assert rest.pop(0) == 5
                colour = rest.pop(0)
                style = style._replace(fore=colour) if number == 38 else style._replace(back=colour)
            elif number == 39:
                style = style._replace(fore=None)
            elif number == 49:
                style = style._replace(back=None)
            else:
                raise AssertionError(f"the model does not know the colour {number}")
        self.style = style


class Terminal:
    """A program that runs on a terminal of its own, as if a person had started it."""

    def __init__(self, command, rows=24, width=80, environment=None, cwd=None):
        self.command = command
        self.screen = Screen(rows, width)
        self.changed = threading.Condition()
        self._master, self._slave = pty.openpty()
        self._set_size()
        self.modes_before = termios.tcgetattr(self._slave)
        environment = environment or {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            # So that Ctrl-C, and a window that changes its size, become signals.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._slave)
        self._reader.join(TIMEOUT_SECONDS)

    def type(self, *keys):
        """Sends keys by their names (KEYS), and text."""
        for key in keys:
            os.write(self._master, KEYS.get(key, key).encode())

    def resize(self, rows, width):
        with self.changed:
            self.screen.resize(rows, width)
            self._set_size()

    def text(self):
        with self.changed:
            return self.screen.text()

    def wait(self, what, condition, timeout=TIMEOUT_SECONDS):
        """Waits until `condition`, a function of the screen or a text on it, holds; returns its result."""
        holds = condition if callable(condition) else lambda screen: condition in screen.text()
        deadline = time.monotonic() + timeout
        last = None  # number of marks at which all output of the program has been read
        with self.changed:
            while not (result := holds(self.screen)):
                left = deadline - time.monotonic()
                ended = last is not None and self.screen.marks >= last
                assert left > 0 and not ended, f"{self.command[-1]}: not within {timeout:g} s: {what}\n{self.screen.text()}"
                if last is None and self.process.poll() is not None:
                    last = self._mark()
                self.changed.wait(min(left, 0.5))
            return result

    def exit_code(self):
        """Waits until it has ended and all its output is on the screen; returns the exit code."""
        code = self.process.wait(TIMEOUT_SECONDS)
        with self.changed:
            last = self._mark()
        self.wait("the end of its output", lambda screen: screen.marks >= last)
        return code

    def _mark(self):
        os.write(self._slave, MARK.encode())
        return self.screen.marks + 1

    def modes(self):
        return termios.tcgetattr(self._slave)

    def _set_size(self):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", self.screen.rows, self.screen.width, 0, 0))

    def _read(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                chunk = os.read(self._master, 65536)
            except OSError:  # EIO: no process has it open any more
                chunk = b""
            if not chunk:
                os.close(self._master)
                return
            with self.changed:
                self.screen.feed(decoder.decode(chunk))
                for answer in self.screen.answers:
                    os.write(self._master, answer.encode())
                self.screen.answers.clear()
                self.changed.notify_all()
