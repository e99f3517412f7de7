# SPDX-License-Identifier: Apache-2.0
"""tally trace of real programs: a trainer that a rival stops again and again, and a server. What is in the
trace is what the counters say."""
import json
import os
import subprocess
import sys
import time

from trace_check import Trace

build, work = os.environ["TALLY_BUILD"], sys.argv[1]
tally = build + "/bin/tally"
STOPS = 5


def status():
    return json.loads(subprocess.run([tally, "status", "--json"], capture_output=True, check=True).stdout)


def wait(what, seconds=100):
    """The first true value of what()."""
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, "never"
        time.sleep(0.01)
    return value


def running(name):
    return next((p for p in status()["programs"] if p["name"] == name), None)


def finished(name):
    return wait(lambda: next((p for p in status()["finished"] if p["name"] == name), None))


def say(p, line):
    p.stdin.write(line + "\n")
    p.stdin.flush()


# From its first launch to its last, under a rival that is active until it sees a stop; for longer where a busy machine
# let the trainer end before that.
for seconds in 3, 10, 30, 90:
    name, path = f"trainer{seconds}", work + "/trainer.json"
    t = subprocess.Popen([tally, "trace", "-o", path, "--", tally, "run", "--device", "cpu", "--name", name, "--",
                          build + "/demo/trainer", "--size", "128", "--seconds", str(seconds)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    device = wait(lambda: running(name))["device"]
    # It joins while somebody records, and so records from the beginning.
    rival = subprocess.Popen([build + "/tests/tally_test_client", "100", "rival", "idle", "0", "_Z5rivalv"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "TEST_DEVICE": device})
    assert rival.stdout.readline() == "joined\n"
    stops = 0
    while stops < STOPS and (p := running(name)):
        say(rival, "active 0 0 0")
        # Where nothing was under way there is nothing to stop: then another time.
        until = time.monotonic() + 0.2
        while time.monotonic() < until and (q := running(name)) and q["stops"] == p["stops"]:
            time.sleep(0.005)
        stops += bool(q and q["stops"] > p["stops"])
        say(rival, "idle 0 0 0")
        time.sleep(0.02)
    rival.stdin.close()
    said = t.stderr.read()
    assert t.wait() == 0 and rival.wait() == 0, said
    counted = finished(name)
    g = Trace(path)
    noticed = [e for e in g.instants(name, "stop") if e["args"]["latency_us"]]
    if noticed:
        break
assert noticed, counted
assert g.program(name)["lost"] == 0
assert len(g.slices(name, "launch calls")) == counted["launches"], counted
found = g.instants(name, "stop")
assert len(found) == counted["stops"], (counted, found)
assert len(g.instants(name, "resume")) == counted["resumes"], counted
# Each stop that was noticed while it was asked for lies in a span of the rival's, and in one of its own.
spans, held = g.row("rival", "active"), g.row(name, "held")
inside = lambda at, rows: any(e["ts"] <= at <= e["ts"] + e["dur"] for e in rows)
for stop in noticed:
    assert inside(stop["args"]["asked_us"], spans) and inside(stop["args"]["asked_us"], held), stop
    assert inside(stop["ts"], held), stop
    assert stop["args"]["by"] == rival.pid, stop
arrows = [e for e in g.events if e["ph"] == "f"]
assert len(arrows) == len(found)
# What ran has names, and what was stopped says so.
ran = [e for e in g.slices(name, "") if "end" in e.get("args", {})]
assert {"matmul", "update"} <= {e["name"] for e in ran}, {e["name"] for e in ran}
assert sum(e["args"]["end"] == "stopped" for e in ran) >= 1
# Launches of which no times are known, one right after the other, are one slice of several names.
assert all(e["args"].get("runs_as") or len(e["args"]["kernels"]) > 0 for e in ran)

# A server, which is never stopped: its calls are counted all the same, and its activity is there.
path = work + "/server.json.zst"
subprocess.run([tally, "trace", "-o", path, "--", tally, "run", "--device", "cpu", "--priority", "high", "--name", "server",
                "--", build + "/demo/server", "--rate", "0", "--requests", "50"],
               check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
counted = finished("server")
g = Trace(path)
assert len(g.slices("server", "launch calls")) == counted["launches"] > 50, counted
assert len(g.row("server", "active")) == counted["bursts"], counted
assert {e["name"] for e in g.slices("server", "launch calls")} >= {"dense"}
print("ok")
