"""Programs on a pseudo-terminal, as if a person had started them."""

import codecs
import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import termios
import threading
import time

TIMEOUT_SECONDS = 40.0


class Terminal:
    """A program, and its output so far with the echo of its input."""

    def __init__(self, command, environment, cwd=None):
        self.command = command
        self._text = ""
        self._changed = threading.Condition()
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            # So that Ctrl-C becomes a signal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join(TIMEOUT_SECONDS)
        os.close(self._master)

    def type(self, text):
        os.write(self._master, text.encode())

    def text(self):
        with self._changed:
            return self._text

    def wait(self, what, condition):
        """Waits until `condition`, a function of the whole lines, holds; returns its result."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with self._changed:
            while not (result := condition(self._text.split("\n")[:-1])):
                left = deadline - time.monotonic()
                running = self._reader.is_alive()
                assert left > 0 and running, f"{self.command[-1]}: not within {TIMEOUT_SECONDS:g} s: {what}\n{self._text}"
                self._changed.wait(min(left, 0.5))
            return result

    def exit_code(self):
        """Waits until it has ended and all its output was read; returns the exit code."""
        try:
            code = self.process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{self.command[-1]}: not ended within {TIMEOUT_SECONDS:g} s:\n{self.text()}") from error
        self._reader.join(TIMEOUT_SECONDS)
        return code

    def _read(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with contextlib.suppress(OSError):  # EIO: no process has it open any more
            while chunk := os.read(self._master, 65536):
                with self._changed:
                    self._text += decoder.decode(chunk).replace("\r", "")
                    self._changed.notify_all()
