# SPDX-License-Identifier: Apache-2.0
"""A pseudo-terminal with a program in it, and what its screen shows."""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Screen:
    """Knows the few sequences that `tally top` is allowed to use, and fails on any other."""

    def __init__(self, command, columns=80, rows=24, **environment):
        self.master, self.slave = pty.openpty()
        self.raw, self.tail = b"", ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.size(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        variables = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in 0, 1, 2:
                os.dup2(self.slave, fd)
            os.close(self.master)
            os.execvpe(command[0], command, variables)

    def size(self, columns, rows):
        self.columns, self.rows = columns, rows
        # What is under way may be of the size before: what does not fit is no fault until a frame has fitted.
        self.fits, self.overflowed = False, True
        self.lines, self.x, self.y = [""] * rows, 0, 0
        self.styles, self.style = [""] * rows, ""
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def keys(self, text):
        os.write(self.master, text.encode())

    def feed(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            data = os.read(self.master, 65536)
            self.raw += data
            # A piece may end in the middle of a character or of a sequence.
            text = self.tail + self.decoder.decode(data)
            whole = re.sub(r"\x1b(\[[?0-9;]*)?$", "", text)
            self.tail = text[len(whole) :]
            self.draw(whole)
        return bool(ready)

    def settle(self):
        """Until nothing comes any more."""
        while self.feed(0.5):
            pass

    def draw(self, text):
        pieces = re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|[^\x1b]", text)
        assert "".join(pieces) == text, f"not understood: {text!r}"
        for piece in pieces:
            if piece == "\x1b[H":
                self.fits |= not self.overflowed
                self.overflowed = False
                self.x = self.y = 0
            elif self.overflowed:
                pass
            elif piece == "\x1b[K":
                self.lines[self.y] = self.lines[self.y][: self.x]
            elif re.fullmatch(r"\x1b\[[0-9;]*m", piece):
                self.style = piece[2:-1]
            elif piece[0] == "\x1b":
                assert re.fullmatch(r"\x1b\[\?(1049|25|7)[hl]", piece), repr(piece)
            elif piece == "\r":
                self.x = 0
            elif piece == "\n":
                self.y += 1
                self.overflow(self.y >= self.rows, "the screen scrolled")
            else:
                assert piece >= " ", repr(piece)
                if not self.x:
                    self.styles[self.y] = self.style  # one for each line is all that there is
                self.overflow(self.x >= self.columns, f"too long a line: {self.lines[self.y]!r}")
                if self.overflowed:
                    continue
                line = self.lines[self.y].ljust(self.x)
                self.lines[self.y] = line[: self.x] + piece + line[self.x + 1 :]
                self.x += 1

    def overflow(self, happens, how):
        assert not (happens and self.fits), how
        self.overflowed |= happens

    def wait(self, what, seconds=60):
        """Until what(screen) is true: a function, or a text that has to be there, wrapped or not."""
        test = what if callable(what) else lambda s: what in " ".join(s.text().split())
        end = time.monotonic() + seconds
        while not test(self):
            assert time.monotonic() < end, f"never: {what}; the screen:\n{self.text()}"
            self.feed(0.1)

    def text(self):
        return "\n".join(self.lines)

    def restored(self):
        """The terminal is what it was, and the last thing that it was told is to be so."""
        self.wait(lambda s: s.raw.count(ENTER) == s.raw.count(LEAVE))
        return termios.tcgetattr(self.slave) == self.before and self.raw.endswith(LEAVE)

    def status(self, seconds=60):
        """Its exit status, or minus the signal that ended it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            self.feed(0.05)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("it does not end")
