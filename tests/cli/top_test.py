# SPDX-License-Identifier: Apache-2.0
"""tally top on a pseudo-terminal: keys, sizes, signals; it always leaves the terminal as it was."""
import os
import signal
import subprocess
import sys
import time

from screen import ENTER, Screen

build = os.environ["TALLY_BUILD"]
top = [build + "/bin/tally", "top", "-i", "0.1"]
SHORT = "_Z6vectorPKfiPf"
LONG = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_"


def client(priority, name, state, *more):
    p = subprocess.Popen([build + "/tests/tally_test_client", str(priority), name, state, *more],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"joined\n"
    return p


def selected(name):
    return lambda s: any(line.startswith(">") and name in line for line in s.lines)


server = client(100, "server", "active", "40", SHORT)
trainer = client(0, "trainer", "active", "5", LONG, SHORT)

# What it shows on 80x24, every line within it.
s = Screen(top)
s.wait("tally top")
s.wait(selected("server"))
s.wait(f"held by {server.pid}")
s.wait(lambda s: "q leave" in s.lines[23])
s.wait("vector")
assert "higher priorities" not in s.text()
s.keys("j")
s.wait(selected("trainer"))
s.wait("higher priorities go first")
s.wait("vectorized")
for part in "sliced 128", "64x2", "1.0ms":
    s.wait(part)
s.wait(lambda s: any(us in s.text() for us in ("19us", "20us", "21us")))
s.keys("k")
s.wait(selected("server"))
s.keys("\x1b[B")
s.wait(selected("trainer"))
s.keys("\x1b[A")
s.wait(selected("server"))
s.keys("\x1b[Z\x1b[13;2~x")  # unknown keys do nothing
s.keys("\x1b[F")
s.wait(selected("trainer"))
s.keys("t")
s.wait("[totals]")
s.wait(lambda s: any("trainer" in line and " 5 " in line for line in s.lines[:8]))
s.keys("t")
s.wait(lambda s: "[totals]" not in s.text())
for order in "time", "launches", "stops", "name":
    s.keys("s")
    s.wait("sort: " + order)
s.keys("?")
s.wait("page up/down")
s.keys("?")
s.wait(lambda s: "page up/down" not in s.text())

# Paused, nothing moves but what the user moves.
s.keys("p")
s.wait("[paused]")
s.settle()
trainer.stdin.write(b"+ 1000\n")
trainer.stdin.flush()
s.settle()
frame = s.text()
s.feed(0.5)
assert s.text() == frame
s.keys("p")
s.wait(lambda s: "[paused]" not in s.text())

# Any size; too small ones as well.
for columns, rows in (132, 50), (40, 10), (20, 3), (1, 1), (80, 24):
    s.size(columns, rows)
    s.wait(lambda s: s.fits and (rows == 1 or s.lines[rows - 1].strip() != "" and "tally top"[:columns] in s.lines[0]))

# Programs come and go; the selected one too.
third = client(7, "third", "idle")
s.wait("third")
third.stdin.close()
third.wait()
s.wait(lambda s: "third" not in s.text())

# Stopped and continued; the shell in between has its terminal.
os.kill(s.pid, signal.SIGTSTP)
s.wait(lambda s: os.waitpid(s.pid, os.WNOHANG | os.WUNTRACED)[1] & 0xFF == 0x7F)
assert s.restored()
entered = s.raw.count(ENTER)
os.kill(s.pid, signal.SIGCONT)
s.wait(lambda s: s.raw.count(ENTER) == entered + 1)
s.wait("trainer")
s.keys("q")
assert s.status() == 0
assert s.restored()

# Whatever ends it.
for how in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV, signal.SIGQUIT:
    s = Screen(top)
    s.wait("trainer")
    os.kill(s.pid, how)
    assert s.status() == -how, how
    assert s.restored(), how
s = Screen(top)
s.wait("trainer")
s.keys("\x03")
assert s.status() == -signal.SIGINT
assert s.restored()

# Colours, but not where they are not wanted; a locale without UTF-8 gets none.
for variables, coloured in ({}, True), ({"NO_COLOR": "1"}, False):
    s = Screen(top, **variables)
    s.wait("trainer")
    s.keys("q")
    assert s.status() == 0
    assert (b"\x1b[33m" in s.raw) == coloured
s = Screen(top, columns=60, LC_ALL="C")
s.keys("j")
s.wait(selected("trainer"))
s.keys("q")
assert s.status() == 0
assert all(byte < 0x80 for byte in s.raw), s.text()

# -n ends by itself; no terminal is an error that names the way out.
s = Screen(top + ["-n", "3"])
assert s.status() == 0
assert s.restored()
s = Screen(top)
s.wait("trainer")

# The daemon dies and another comes: the view says so and goes on.
pid = int(subprocess.run("$TALLY_BUILD/bin/tally status --json | python3 -c "
                         "'import json, sys; print(json.load(sys.stdin)[\"daemon\"][\"pid\"])'",
                         shell=True, capture_output=True, check=True).stdout)
os.kill(pid, signal.SIGKILL)
s.wait("no tallyd runs")
while "no tallyd runs" in subprocess.run([top[0], "status"], capture_output=True, text=True).stdout:
    subprocess.run([build + "/bin/tallyd", "--idle-timeout", "60"], stderr=subprocess.DEVNULL)
fourth = client(3, "fourth", "active")
s.wait("fourth")
s.keys("q")
assert s.status() == 0
for p in server, trainer, fourth:
    p.stdin.close()
    p.wait()
print("ok")
