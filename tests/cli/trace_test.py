# SPDX-License-Identifier: Apache-2.0
"""tally trace: what programs say that they did comes out as it happened, whoever ends when."""
import json
import os
import signal
import subprocess
import sys

from trace_check import Trace

build, work = os.environ["TALLY_BUILD"], sys.argv[1]
tally = build + "/bin/tally"


def client(priority, name, state, *more):
    p = subprocess.Popen([build + "/tests/tally_test_client", str(priority), name, state, *more],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"joined\n"
    return p


def say(p, *lines):
    for line in lines:
        p.stdin.write(line.encode() + b"\n")
        p.stdin.flush()


def traced(*programs):
    for p in programs:
        say(p, "wait")
        assert p.stdout.readline() == b"traced\n"


def done(*programs):
    """What they were told before has been done."""
    for p in programs:
        say(p, "ping")
        assert p.stdout.readline() == b"pong\n"


def end(p):
    p.stdin.close()
    assert p.wait() == 0


def daemon():
    status = subprocess.run([tally, "status", "--json"], capture_output=True, check=True).stdout
    return json.loads(status)["daemon"].get("pid")


def trace(path, *more):
    p = subprocess.Popen([tally, "trace", "-o", path, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if "--" not in more:
        assert p.stderr.readline() == b"tally trace: recording until Ctrl-C\n"
    return p


def finish(p, how=signal.SIGINT):
    p.send_signal(how)
    text = p.stderr.read().decode()
    assert p.wait() == 0, text
    return text


# Two that are there before; a third that comes, does something and goes; a fourth of another device
# would hold nobody.
server = client(100, 'ser"ver', "idle", "0", "_Z4headi")
trainer = client(0, "trainer", "active", "0", "_Z6vectorPKfiPf", "_Z4tailv")
path = work + "/t.json"
t = trace(path)
traced(server, trainer)
for line in ("launch 3 1 0", "start 3 1 128", "launch 3 2 0", "start 3 2 64", "end 3 1 0"):
    say(trainer, line)
done(trainer)  # so that one comes after the other, whoever is scheduled when
say(server, "active 0 0 0")
done(server)
say(trainer, "gate-closed 0 0 0", "stop 3 2 7000000")
done(trainer)
say(server, "launch 1 1 0", "start 1 1 1", "end 1 1 1000", "idle 0 0 0")
done(server)
say(trainer, "gate-open 0 0 1000", "resume 3 2 10", "end 3 2 0", "launch 3 1 0", "start 3 1 128")
short = client(7, "short", "idle", "0", "_Z4shrtv")
say(short, "launch 1 1 0", "start 1 1 5", "end 1 1 500")
end(short)
done(trainer, server)
text = finish(t)
assert ": 3 programs, " in text and " 0 lost" in text, text
g = Trace(path)
assert g.names[g.pid("trainer")].startswith("trainer, priority 0, pid"), g.names
stop, = g.instants("trainer", "stop")
active, = g.row('ser"ver', "active")
assert active["ts"] <= stop["args"]["asked_us"] <= stop["ts"] <= active["ts"] + active["dur"]
assert stop["args"]["by"] == server.pid and stop["args"]["latency_us"] == 7000, stop
held, = g.row("trainer", "held")
assert held["args"]["by"] == 'ser"ver' and held["ts"] <= stop["ts"] <= held["ts"] + held["dur"]
ran = g.row("trainer", "stream 3")
assert [e["name"] for e in ran] == ["vector", "tail", "tail", "vector"], ran
assert [e["args"]["end"] for e in ran] == ["seen", "stopped", "seen", "unknown"], ran
assert ran[0]["args"]["grid"] == [64, 2, 1] and ran[0]["args"]["runs_as"] == "sliced 128"
resume, = g.instants("trainer", "resume")
assert resume["args"]["first_block"] == 10
assert ran[1]["ts"] + ran[1]["dur"] <= held["ts"] + held["dur"] <= resume["ts"] <= ran[2]["ts"] + 0.002
assert len(g.row("trainer", "stream 3: launch calls")) == 3
assert [e["ph"] for e in g.events if e.get("cat") == "stop"] == ["s", "t", "f"]
flight = [e["args"]["value"] for e in g.events if e["ph"] == "C" and e["name"] == "in flight"
          and e["pid"] == g.pid("trainer")]
assert flight == [1, 2, 1, 0, 1], flight
assert [e["args"]["value"] for e in g.events if e["name"] == "stop latency (us)"] == [7000]
measured, = g.row("short", "stream 1")
assert measured["dur"] <= 0.5 and measured["args"]["end"] == "measured"
assert g.program("short")["lost"] == 0

# Nobody records any more some time after the recorder was killed; what was in its file stays there.
t = trace(path)
traced(server, trainer)
t.kill()
t.wait()
say(trainer, "end-of-trace")
assert trainer.stdout.readline() == b"untraced\n"
assert Trace(path).program("trainer") == g.program("trainer")

# More than a ring holds between two looks, or than is wanted: it says how many are missing.
for name, more, least in (("a.json.gz", ["--events", "10"], 90), ("b.json.zst", [], 0)):
    t = trace(work + "/" + name, *more)
    traced(trainer)
    for i in range(100):
        say(trainer, f"launch {i % 3 + 1} 1 0")
    done(trainer)
    text = finish(t, signal.SIGTERM)
    g = Trace(work + "/" + name)
    p = g.program("trainer")
    assert p["events"] + p["lost"] >= 100 and p["lost"] >= least, p
    assert f" {p['lost']} lost" in text, text
t = trace(work + "/c.json")
traced(trainer)
t.send_signal(signal.SIGSTOP)
say(trainer, "launch 1 1 0 70000")  # soon over: programs record for two seconds at most after it asked
done(trainer)
t.send_signal(signal.SIGCONT)
text = finish(t)
p = Trace(work + "/c.json").program("trainer")
assert p["lost"] >= 70000 - 65536 and p["events"] + p["lost"] >= 70000, p

# A command: from its first event on, its status and its signals are its own.
script = f'exec 3<&0; (echo "launch 1 1 0"; echo "start 1 1 2") | {build}/tests/tally_test_client 5 child idle 0 _Z1kv; exit 7'
r = subprocess.run([tally, "trace", "-o", work + "/d.json", "--", "sh", "-c", script],
                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
assert r.returncode == 7, r
g = Trace(work + "/d.json")
assert len(g.row("child", "stream 1")) == 1 and len(g.row("child", "stream 1: launch calls")) == 1
assert subprocess.run([tally, "trace", "-o", work + "/e.json", "/nonexistent"],
                      stderr=subprocess.PIPE).returncode == 127
t = trace(work + "/e.json", "--", "sh", "-c", "trap 'exit 9' TERM; echo; while :; do sleep 0.05; done")
assert t.stdout.readline() == b"\n"  # its trap is set
t.send_signal(signal.SIGTERM)
t.stderr.read()
assert t.wait() == 9

# The daemon is killed meanwhile, and programs join the next one.
t = trace(work + "/f.json")
traced(server, trainer)
old = daemon()
os.kill(old, signal.SIGKILL)
while daemon() in (None, old):  # its lock ends with it, and that may take a moment
    subprocess.run([build + "/bin/tallyd", "--idle-timeout", "60"], stderr=subprocess.DEVNULL)
late = client(1, "late", "idle", "0", "_Z4latev")
traced(late)
say(late, "launch 1 1 0", "start 1 1 1", "end 1 1 1")
for p in server, trainer, late:
    end(p)
text = finish(t)
assert ": 3 programs" in text, text
assert len(Trace(work + "/f.json").row("late", "stream 1")) == 1
print("ok")
