# SPDX-License-Identifier: Apache-2.0
"""The programs of the harness and the surroundings that make a system: environment, CPUs, MPS, tallyd.

Each program is started once for every surrounding that it is needed in and lives to the end; one that does not
do anything waits in a read and has no work on the device.
"""
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# system: (the server's surrounding, the trainer's). None: no trainer.
SYSTEMS = {
    "alone": ("plain", None),
    "time-slicing": ("plain", "plain"),
    "mps": ("mps", "mps"),
    "mps-priority": ("mps", "mps-low"),
    "tally-launch": ("tally", "tally-launch"),
    "tally": ("tally", "tally"),
    "tally-equal": ("tally", "tally-equal"),
    "tally-time-slicing": ("tally-plain", "tally-plain"),
}
# surrounding: under MPS, MPS client priority (0 normal, 1 below normal), under Tally, more environment.
# tally-launch has no compiler, so no kernel can be made stoppable: every launch waits whole.
SURROUNDINGS = {
    "plain": (False, 0, False, {}),
    "mps": (True, 0, False, {}),
    "mps-low": (True, 1, False, {}),
    "tally": (True, 1, True, {}),
    "tally-launch": (True, 1, True, {"TALLY_LOWER": "/bin/false"}),
    "tally-equal": (True, 0, True, {}),
    "tally-plain": (False, 0, True, {}),
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


class House:
    """A private folder with a tallyd and, where there is one to start, a server of MPS."""

    def __init__(self, build, log):
        self.build, self.log = build, open(log, "ab", buffering=0)
        self.cpus = share_cpus()
        self.folder = tempfile.mkdtemp(prefix="tally-colocate-")
        self.environment = dict(os.environ, PYTHONUNBUFFERED="1", OMP_NUM_THREADS="4", CUDA_MODULE_LOADING="LAZY")
        for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY", "CUDA_MPS_CLIENT_PRIORITY", "LD_PRELOAD"):
            self.environment.pop(name, None)
        self.environment["TALLY_SOCKET"] = os.path.join(self.folder, "tallyd.sock")
        self.environment["TALLY_CACHE_DIR"] = os.path.join(self.folder, "cache")
        self.processes = []
        self.mps = self.start_mps()
        self.run_help = self.output([self.tally, "run", "--help"])
        self.tallyd = self.start_tallyd()
        os.sched_setaffinity(0, self.cpus["rest"])

    @property
    def tally(self):
        return os.path.join(self.build, "bin", "tally")

    def output(self, command, **more):
        try:
            done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=self.log, timeout=20, **more)
            return done.stdout.decode(errors="replace")
        except (OSError, subprocess.TimeoutExpired):
            return ""

    def start_mps(self):
        """The environment of MPS's clients; None where there is no MPS to be had."""
        if not shutil.which("nvidia-cuda-mps-control"):
            return None
        pipe, logs = os.path.join(self.folder, "mps"), os.path.join(self.folder, "mps-log")
        os.makedirs(pipe)
        os.makedirs(logs)
        mps = {"CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": logs}
        try:
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env=dict(self.environment, **mps), timeout=20, check=True, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        except (OSError, subprocess.SubprocessError):
            return None
        time.sleep(1)
        return mps

    def start_tallyd(self):
        if not os.path.exists(self.tally):
            return None
        daemon = subprocess.Popen([os.path.join(self.build, "bin", "tallyd"), "--foreground", "--idle-timeout", "0"], env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=lambda: os.sched_setaffinity(0, self.cpus["rest"]))
        self.processes.append(daemon)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not os.path.exists(self.environment["TALLY_SOCKET"]):
            time.sleep(0.02)
        return daemon

    def surrounding(self, name):
        """What is nearest to surrounding `name` here: without MPS, Tally and all else share by time-slicing."""
        mps, low, tally, more = SURROUNDINGS[name]
        return (mps and self.mps is not None, low, tally, more)

    def missing(self, system):
        """Why a system can't be measured here, or None."""
        if self.mps is None and system.startswith("mps"):
            return "nvidia-cuda-mps-control could not be started"
        if self.tallyd is None and system.startswith("tally"):
            return "no %s" % self.tally
        return None

    def command(self, role, name):
        """(command line, environment) of a `role` (server or trainer) in surrounding `name`."""
        mps, low, tally, more = self.surrounding(name)
        environment = dict(self.environment, **more)
        command = [sys.executable, os.path.join(HERE, role + ".py")]
        if mps:
            environment.update(self.mps)
            if role == "trainer" and low:
                environment["CUDA_MPS_CLIENT_PRIORITY"] = "1"
        if tally:
            priority = "high" if role == "server" else "best-effort"
            options = ["--device", "cuda", "--priority", priority, "--name", "%s-%s" % (role, name)]
            if "--mps" in self.run_help and not mps:
                options += ["--mps", "off"]
            command = [self.tally, "run"] + options + ["--"] + command
        return command, environment

    def status(self, role, name):
        """Tally's counters of a program, or {}."""
        text = self.output([self.tally, "status", "--json"]) if self.tallyd else ""
        try:
            programs = json.loads(text)["programs"]
        except (ValueError, KeyError):
            return {}
        return next((p for p in programs if p.get("name") == "%s-%s" % (role, name)), {})

    def close(self):
        for process in self.processes:
            process.terminate()
        if self.mps:
            self.output(["nvidia-cuda-mps-control"], input=b"quit\n")
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


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
        if self.alive():
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
