# SPDX-License-Identifier: Apache-2.0
"""The programs of the harness and the surroundings that make a system: environment, CPUs, MPS, tallyd.

Each program is started once for every surrounding that it is needed in and lives to the end; one that does not
do anything waits in a read and has no work on the device.
"""
import json
import os
import select
import subprocess
import sys
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))

from house import House

# system: (the server's surrounding, the trainer's). None: no trainer.
SYSTEMS = {
    "alone": ("plain", None),
    "time-slicing": ("plain", "plain"),
    "mps": ("mps", "mps"),
    "mps-priority": ("mps", "mps-low"),
    "tally-launch": ("tally", "tally-launch"),
    "tally": ("tally", "tally"),
    "tally-opaque": ("tally", "tally-opaque"),
    "tally-no-grace": ("tally-no-grace", "tally-opaque"),
    "tally-no-ahead": ("tally", "tally-no-ahead"),
    "tally-slo": ("tally-slo", "tally"),
    "tally-equal": ("tally", "tally-equal"),
    "tally-time-slicing": ("tally-plain", "tally-plain"),
}

# under MPS; the trainer's MPS client priority (0 normal, 1 below normal: what `tally run` sets by itself); under Tally;
# more environment; more options of the server's `tally run`.
Surrounding = namedtuple("Surrounding", "mps low tally environment options", defaults=({}, ()))
SURROUNDINGS = {
    "plain": Surrounding(False, 0, False),
    "mps": Surrounding(True, 0, False),
    "mps-low": Surrounding(True, 1, False),
    "tally": Surrounding(True, 1, True),
    # No kernel is stopped inside: nothing is compiled, every launch waits as a whole.
    "tally-launch": Surrounding(True, 1, True, {"TALLY_LEVEL": "gate", "TALLY_LOWER": "/bin/false"}),
    # The machine code of NVIDIA's closed libraries is made stoppable too.
    "tally-opaque": Surrounding(True, 1, True, {"TALLY_OPAQUE": "all"}),
    "tally-no-grace": Surrounding(True, 1, True, {"TALLY_GRACE_US": "0"}),
    # The trainer's own thread waits for room on the device.
    "tally-no-ahead": Surrounding(True, 1, True, {"TALLY_OPAQUE": "all", "TALLY_AHEAD": "0"}),
    "tally-slo": Surrounding(True, 1, True, {}, ("--slo", "1.05")),
    "tally-equal": Surrounding(True, 0, True),
    "tally-plain": Surrounding(False, 0, True),
}


class Failed(Exception):
    """A program that did not answer, or answered that it could not."""


def share_cpus():
    """Disjoint sets of CPUs: server, trainer, everything else."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 4:
        return {name: set(cpus) for name in ("server", "trainer", "rest")}
    quarter = len(cpus) // 4
    return {"server": set(cpus[:quarter]), "trainer": set(cpus[quarter : 3 * quarter]), "rest": set(cpus[3 * quarter :])}


class Surroundings(House):
    """Everything that a program can be started in, and its CPUs."""

    def __init__(self, build, log):
        self.cpus = share_cpus()
        super().__init__(build, open(log, "ab", buffering=0), daemon_cpus=self.cpus["rest"])
        self.environment["OMP_NUM_THREADS"] = "4"
        os.sched_setaffinity(0, self.cpus["rest"])

    def missing(self, system):
        """Why a system can't be measured here, or None. Without MPS, Tally shares by time-slicing."""
        if self.mps is None and system.startswith("mps"):
            return "nvidia-cuda-mps-control could not be started"
        if self.tallyd is None and system.startswith("tally"):
            return "no %s" % self.tally
        if system == "tally-slo" and "--slo" not in self.run_help:
            return "tally run has no --slo"
        return None

    def command(self, role, name):
        """(command line, environment) of a `role` (server or trainer) in surrounding `name`."""
        around = SURROUNDINGS[name]
        environment = dict(self.environment, **around.environment)
        command = [sys.executable, os.path.join(HERE, role + ".py")]
        mps = around.mps and self.mps is not None
        if mps:
            environment.update(self.mps)
            if role == "trainer":
                environment["CUDA_MPS_CLIENT_PRIORITY"] = str(around.low)
        if around.tally:
            server = role == "server"
            command = self.run("high" if server else "best-effort", title(role, name), mps=mps, more=around.options if server else ()) + command
        return command, environment


def title(role, name):
    """What a program is called in `tally status`."""
    return "%s-%s" % (role, name)


class Worker:
    """One server or trainer. post() and wait() take turns."""

    def __init__(self, house, role, name):
        command, environment = house.command(role, name)
        self.title, self.loaded, self.buffer = "%s (%s)" % (role, name), {}, b""
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=house.log, preexec_fn=lambda: os.sched_setaffinity(0, house.cpus[role]))

    def post(self, **command):
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Failed("%s is gone" % self.title)

    def wait(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.kill()
                raise Failed("%s did not answer within %.0f s" % (self.title, seconds))
            part = os.read(self.process.stdout.fileno(), 1 << 20)
            if not part:
                raise Failed("%s ended with status %s" % (self.title, self.process.wait()))
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\n", 1)
        answer = json.loads(line)
        if not answer["ok"]:
            raise Failed("%s: %s" % (self.title, answer["error"]))
        return answer

    def ask(self, limit, /, **command):
        self.post(**command)
        return self.wait(limit)

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        """Waits for its end; it ends when its stdin does."""
        if self.alive():
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
