# SPDX-License-Identifier: Apache-2.0
"""A private place for programs that share a GPU: a tallyd of its own, a folder, and a server of MPS where asked."""
import json
import os
import shutil
import subprocess
import tempfile
import time

MPS = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY", "CUDA_MPS_CLIENT_PRIORITY")


class House:
    """`log` is a file that takes what daemons say. `mps` holds the environment of MPS's clients, or None."""

    def __init__(self, build, log, mps=True, daemon_cpus=None):
        self.build, self.log = build, log
        self.folder = tempfile.mkdtemp(prefix="tally-house-")
        self.environment = dict(os.environ, PYTHONUNBUFFERED="1")
        for name in MPS + ("LD_PRELOAD", "TALLY_PRIORITY"):
            self.environment.pop(name, None)
        self.environment["TALLY_SOCKET"] = os.path.join(self.folder, "tallyd.sock")
        self.environment["TALLY_CACHE_DIR"] = os.path.join(self.folder, "cache")
        self.daemon_cpus, self.tallyd, self.mps = daemon_cpus, None, None
        if mps:
            self.start_mps()
        self.run_help = self.output([self.tally, "run", "--help"])
        if os.path.exists(self.tally):
            self.start_tallyd()

    @property
    def tally(self):
        return os.path.join(self.build, "bin", "tally")

    def output(self, command, **more):
        """What a short command of ours prints; nothing where it fails."""
        try:
            done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=self.log, timeout=20, **more)
            return done.stdout.decode(errors="replace")
        except (OSError, subprocess.TimeoutExpired):
            return ""

    def start_mps(self):
        if not shutil.which("nvidia-cuda-mps-control"):
            return
        pipe, logs = os.path.join(self.folder, "mps"), os.path.join(self.folder, "mps-log")
        os.makedirs(pipe)
        os.makedirs(logs)
        mps = {"CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": logs}
        everything = dict(self.environment, **mps)
        try:
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env=everything, timeout=20, check=True, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        except (OSError, subprocess.SubprocessError):
            return
        self.mps = mps
        time.sleep(1)

    def start_tallyd(self):
        pin = (lambda: os.sched_setaffinity(0, self.daemon_cpus)) if self.daemon_cpus else None
        command = [os.path.join(self.build, "bin", "tallyd"), "--foreground", "--idle-timeout", "0"]
        self.tallyd = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=pin)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not self.serving():
            time.sleep(0.05)

    def run(self, priority, name, device="cuda", mps=False, more=()):
        """The words before a program that is to run under Tally. Which MPS there is, the environment says."""
        options = ["--device", device, "--priority", priority, "--name", name, *more]
        if "--mps" in self.run_help and not mps:
            options += ["--mps", "off"]
        return [self.tally, "run"] + options + ["--"]

    def status(self):
        """`tally status --json`, or {}."""
        try:
            return json.loads(self.output([self.tally, "status", "--json"]))
        except ValueError:
            return {}

    def serving(self):
        return self.status().get("daemon", {}).get("running", False)

    def program(self, name):
        """Tally's counters of the running program of that name, or {}."""
        return next((p for p in self.status().get("programs", []) if p.get("name") == name), {})

    def close(self):
        if self.tallyd:
            self.tallyd.terminate()
            try:
                self.tallyd.wait(5)
            except subprocess.TimeoutExpired:
                self.tallyd.kill()
                self.tallyd.wait()
        if self.mps:
            self.environment.update(self.mps)
            self.output(["nvidia-cuda-mps-control"], input=b"quit\n")
        shutil.rmtree(self.folder, ignore_errors=True)
