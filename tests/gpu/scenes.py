# SPDX-License-Identifier: Apache-2.0
"""The steps that take more than one program; each is a function of a Stage (run.py) and returns what is worth saying.

A Stage starts programs: stage.start(COMMAND, priority, name) and stage.end(program, seconds) -> Ended; what is not as it
must be raises Wrong.
"""
import os
import signal
import time


class Wrong(Exception):
    """A step's failure, in one line."""


def expect(condition, text):
    if not condition:
        raise Wrong(text)


def wait_for(stage, what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < deadline, "%s did not come in %d s" % (what, seconds))
        time.sleep(0.01)


def right(stage, program, seconds=60, arguments=()):
    """The program ends well, with the result that it has without Tally."""
    ended = stage.end(program, seconds)
    expect(ended.status == 0, "%s ended with status %s: %s" % (program.title, ended.status, ended.last))
    alone = stage.alone(arguments)
    expect(ended.result == alone, "%s: result %s, alone %s" % (program.title, ended.result, alone))


def rivals(stage, long):
    """A high-priority program that leaves no pause, and a best-effort one with `long` launches that it stops."""
    best = stage.start(stage.work(*long), "best-effort", "best")
    wait_for(stage, "the best-effort program on the board", lambda: stage.house.program("best").get("launches", 0) > 3)
    high = stage.start(stage.work("--seconds", "60"), "high", "high")
    wait_for(stage, "a stop of the best-effort program", lambda: stage.house.program("best").get("state") == "held")
    return high, best


def kill_best_effort(stage):
    high, best = rivals(stage, ("--launches", "100", "--seconds", "60"))
    best.process.send_signal(signal.SIGKILL)
    wait_for(stage, "the dead program's end on the board", lambda: not stage.house.program("best"))
    again = stage.start(stage.work(), "best-effort", "again")
    time.sleep(0.5)
    expect(high.process.poll() is None, "the high-priority program ended")
    first = high.first_result(30)
    high.process.send_signal(signal.SIGKILL)
    expect(first == stage.alone(()), "the high-priority program: result %s" % first)
    right(stage, again)
    return "the high-priority program went on; a new best-effort program had the right result"


def kill_high(stage):
    long = stage.launches(3000)
    high, best = rivals(stage, long)
    stops = stage.house.program("best").get("stops")
    high.process.send_signal(signal.SIGKILL)
    began = time.monotonic()
    wait_for(stage, "the best-effort program's turn", lambda: stage.house.program("best").get("state") != "held" or best.process.poll() is not None)
    waited = time.monotonic() - began
    right(stage, best, arguments=long)
    return "went on within %.2f s (stopped inside a kernel %s times), right result" % (waited, stops)


def tallyd_killed(stage):
    many = stage.launches(1500)
    # For longer than all that follows takes, on a busy machine too.
    best = stage.start(stage.work(*many, "--seconds", "15"), "best-effort", "best")
    high = stage.start(stage.work("--pause-us", "2000", "--seconds", "15"), "high", "high")
    wait_for(stage, "both on the board", lambda: stage.house.program("best") and stage.house.program("high"))
    stage.house.tallyd.kill()
    stage.house.tallyd.wait()
    time.sleep(1.5)
    expect(best.process.poll() is None and high.process.poll() is None, "a program ended with tallyd")
    stage.house.start_tallyd()
    wait_for(stage, "both on the new board", lambda: stage.house.program("best") and stage.house.program("high"), 20)
    right(stage, high, arguments=("--pause-us", "2000"))
    right(stage, best, arguments=many)
    return "both went on, joined the new tallyd, right results"


def memory_filled(stage):
    for filler, other in (("best-effort", "high"), ("high", "best-effort")):
        working = stage.start(stage.work("--seconds", "8", "--pause-us", "20000"), other, "working")
        working.first_result(30)
        full = stage.start(stage.work("--too-much", "--fill"), filler, "filler")
        right(stage, full)
        expect(working.process.poll() is None, "the %s program did not last" % other)
        ended = stage.end(working, 60)
        expect(ended.status == 0, "the %s program ended with status %s: %s" % (other, ended.status, ended.last))
    return "the error reached the program that asked, both ways round; right results"


def tool(stage, name, words, wanted):
    """The static program under a tool, alone and at both priorities; `wanted` must be in what the tool says."""
    for priority in (None, "high", "best-effort"):
        program = stage.start(words + stage.work("--launches", "6", "--blocks", "64"), priority, "%s, %s" % (name, priority or "alone"))
        ended = stage.end(program, 100)
        expect(ended.status == 0 and wanted in ended.text, "%s: status %s: %s" % (program.title, ended.status, ended.last))
        expect(ended.result == stage.alone(("--launches", "6", "--blocks", "64")), "%s: result %s" % (program.title, ended.result))
    return "works at both priorities; right results"


def compute_sanitizer(stage):
    return tool(stage, "compute-sanitizer", ["compute-sanitizer", "--tool", "memcheck"], "ERROR SUMMARY: 0 errors")


def ncu(stage):
    words = ["ncu", "--clock-control", "none", "--launch-count", "3", "--metrics", "gpu__time_duration.sum"]
    return tool(stage, "ncu", words, "gpu__time_duration.sum")


def illegal(stage, mps):
    high = stage.start(stage.work("--pause-us", "1000", "--seconds", "5"), "high", "high", mps=mps)
    high.first_result(30)
    bad = stage.start(stage.work("--illegal"), "best-effort", "bad", mps=mps)
    ended = stage.end(bad, 60)
    expect(ended.status == 3 and "error" in ended.text, "the program with the illegal access ended with status %s: %s" % (ended.status, ended.last))
    return ended, stage.end(high, 60)


def illegal_access(stage):
    bad, high = illegal(stage, False)
    expect(high.status == 0, "the high-priority program ended with status %s: %s" % (high.status, high.last))
    fresh = stage.start(stage.work(), "best-effort", "fresh")
    right(stage, fresh)
    return "it was told \"%s\"; the high-priority program and a new one had right results" % bad.last


def illegal_access_mps(stage):
    bad, high = illegal(stage, True)
    if high.status == 0:
        return "the high-priority program went on; the other was told \"%s\"" % bad.last
    return "MPS ends both: the high-priority program was told \"%s\" too" % high.last
