#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what must not break under Tally: one line PASS, FAIL or SKIP for each step of steps.py.

With an NVIDIA GPU everything; with --device cpu what the CPU device can do, which is part of CI. Results are appended as JSON
lines as they come; a later call leaves out what has passed. table.py makes docs/compatibility.md of them.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench", "gpu"))

import scenes
from house import House
from scenes import Wrong, expect
from steps import STEPS, Same

CUDART = "libcudart.so.13"
Ended = namedtuple("Ended", "status text result last")


def results_in(text):
    return [line for line in text.splitlines() if line.startswith("result ")]


class Program:
    """A program under way; what it prints goes to a file, both streams in one."""

    def __init__(self, command, environment, title):
        self.title, self.file = title, tempfile.TemporaryFile()
        # A session of its own, so that whatever it has started can be ended with it.
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=self.file, stderr=subprocess.STDOUT, start_new_session=True)

    def text(self):
        return os.pread(self.file.fileno(), 1 << 20, 0).decode(errors="replace")

    def first_result(self, seconds):
        deadline = time.monotonic() + seconds
        while not (found := results_in(self.text())):
            expect(self.process.poll() is None or results_in(self.text()), "%s ended early: %s" % (self.title, last_line(self.text())))
            expect(time.monotonic() < deadline, "%s has no result after %d s" % (self.title, seconds))
            time.sleep(0.02)
        return found[0]

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "(nothing printed)"


class Stage:
    """Where a step plays: one House, and the programs that are under way in it."""

    def __init__(self, options, house):
        self.device, self.build, self.house = options.device, options.build, house
        self.programs, self.results = [], {}
        self.words = {
            "python": sys.executable,
            "here": HERE,
            "gpu": os.path.join(options.build, "gpu"),
            "work": os.path.join(options.build, "gpu", "work" if options.device == "cpu" else "work_static"),
            "blocks": "8" if options.device == "cpu" else "20000",
        }

    def work(self, *arguments):
        """Launches of 2 ms or so on a large GPU, of less than 1 ms on the CPU device."""
        size = ["--blocks", "16", "--turns", "400"] if self.device == "cpu" else ["--blocks", "20000", "--turns", "4000"]
        return [self.words["work"]] + size + list(arguments)

    def launches(self, n):
        """The argument for so many launches; a CPU does a quarter."""
        return ("--launches", str(n if self.device == "cuda" else n // 4))

    def start(self, command, priority, name, mps=False):
        environment = dict(self.house.environment)
        if self.device == "cuda" and command[0] == "{gpu}/work":
            environment["LD_LIBRARY_PATH"] = cudart_folder() or ""
        command = [word.format(**self.words) for word in command]
        if mps:
            environment.update(self.house.mps)
        if priority:
            command = self.house.run(priority, name, self.device, mps) + command
        elif self.device == "cpu":
            environment["LD_LIBRARY_PATH"] = os.path.join(self.build, "lib")
        program = Program(command, environment, name)
        self.programs.append(program)
        return program

    def end(self, program, seconds):
        """Waits for its end; what it printed."""
        try:
            status = program.process.wait(seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            raise Wrong("%s did not end within %d s: %s" % (program.title, seconds, last_line(program.text())))
        text = program.text()
        found = results_in(text)
        return Ended(status, text, found[0] if found else None, last_line(text))

    def alone(self, arguments):
        """The result of work with `arguments` without Tally."""
        if arguments not in self.results:
            ended = self.end(self.start(self.work(*arguments), None, "work alone"), 60)
            expect(ended.status == 0 and ended.result, "work alone ended with status %s: %s" % (ended.status, ended.last))
            self.results[arguments] = ended.result
        return self.results[arguments]

    def clear(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.kill()
            program.file.close()
        self.programs = []


def same(stage, step):
    """The three ways at the same time: the results are those of the run without Tally."""
    ways = {"without Tally": None, "high": "high", "best-effort": "best-effort"}
    running = {way: stage.start(step.command, priority, "%s, %s" % (step.name, way)) for way, priority in ways.items()}
    deadline = time.monotonic() + step.timeout
    ended = {way: stage.end(program, max(1, deadline - time.monotonic())) for way, program in running.items()}
    for way, end in ended.items():
        expect(end.status == 0, "%s: status %s: %s" % (way, end.status, end.last))
        found = results_in(end.text)
        expect(found, "%s: no result: %s" % (way, end.last))
        expect(found == results_in(ended["without Tally"].text), "%s: %s, without Tally %s" % (way, found, results_in(ended["without Tally"].text)))
    return "same results at both priorities, beside each other"


def cudart_folder():
    """Where NVIDIA's shared runtime library is, or None."""
    places = ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"]
    nvidia = importlib.util.find_spec("nvidia")
    places += [os.path.join(place, "cu13", "lib") for place in (nvidia.submodule_search_locations if nvidia else [])]
    return next((place for place in places if os.path.exists(os.path.join(place, CUDART))), None)


def gpus():
    try:
        done = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, timeout=30)
        return done.stdout.decode().count("GPU ")
    except (OSError, subprocess.TimeoutExpired):
        return 0


def lacking(step, options, house):
    """Why a step can't run here, or None."""
    if options.device == "cpu" and step.cpu is not True:
        return "needs an NVIDIA GPU"
    if isinstance(step, Same) and not os.path.exists(program := step.command[0].format(**Stage(options, house).words)):
        return "no %s" % os.path.relpath(program, ROOT)
    for need in step.needs:
        if need == "gpu" or (need == CUDART and options.device == "cpu"):
            continue
        if need == "2 GPUs":
            if gpus() < 2:
                return "there is one GPU"
        elif need == "MPS":
            if not house.mps:
                return "nvidia-cuda-mps-control could not be started"
        elif need == CUDART:
            if not cudart_folder():
                return "no " + CUDART
        elif not (importlib.util.find_spec(need) or shutil.which(need)):
            return "no %s" % need
    return None


def perform(step, options, log):
    """(verdict, detail) of one step, in a House of its own."""
    house = House(options.build, log, mps="MPS" in step.needs)
    stage = Stage(options, house)
    # Compiled kernels are kept from step to step: a step is about what the program does, not about the compiler.
    house.environment["TALLY_CACHE_DIR"] = options.cache
    house.environment.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(options.cache, "inductor"))
    try:
        reason = lacking(step, options, house)
        if reason:
            return "SKIP", reason
        return "PASS", same(stage, step) if isinstance(step, Same) else getattr(scenes, step.function)(stage)
    except Wrong as wrong:
        return "FAIL", str(wrong)
    except Exception as problem:  # a fault of the step itself; the others go on
        return "FAIL", repr(problem)
    finally:
        printed = ["\n== %s: %s\n%s" % (step.name, program.title, program.text()[-4000:]) for program in stage.programs]
        log.write("".join(printed).encode())
        stage.clear()
        house.close()


def report(options, step, verdict, detail, took):
    """Says and writes down what came of a step; whether it failed."""
    print("%s %s: %s (%.1f s)" % (verdict, step.name, detail, took), flush=True)
    if options.output and verdict != "LATE":
        row = {"name": step.name, "device": options.device, "verdict": verdict, "detail": detail, "seconds": round(took, 1), "time": time.strftime("%FT%TZ", time.gmtime())}
        with open(options.output, "a") as file:
            file.write(json.dumps(row) + "\n")
    return verdict == "FAIL"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda what: parser.exit(1, "tests/gpu/run.py: error: %s (see --help)\n" % what)
    parser.add_argument("--build", default=os.environ.get("TALLY_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", metavar="NAMES", help="these alone, with commas: " + ", ".join(step.name for step in STEPS))
    parser.add_argument("--output", help="results so far, and to come, as JSON lines")
    parser.add_argument("--jobs", type=int, help="steps side by side, of those that can be (4 on a GPU, else 1)")
    parser.add_argument("--slice", type=float, metavar="SECONDS", help="begin no step after this time")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.jobs = options.jobs or (4 if options.device == "cuda" else 1)
    chosen = options.only.split(",") if options.only else [step.name for step in STEPS]
    for name in chosen:
        if name not in [step.name for step in STEPS]:
            parser.error("--only: no step \"%s\"" % name)
    passed = set()
    if options.output and os.path.exists(options.output):
        rows = [json.loads(line) for line in open(options.output) if line.endswith("}\n")]
        passed = {row["name"] for row in rows if row["verdict"] == "PASS" and row["device"] == options.device}
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as options.cache, open(options.output + ".log" if options.output else os.devnull, "ab", buffering=0) as log:
        def one(step):
            if options.slice and time.monotonic() - began > options.slice:
                return step, "LATE", "time was up", 0
            start = time.monotonic()
            return (step,) + perform(step, options, log) + (time.monotonic() - start,)

        left = [step for step in STEPS if step.name in chosen and step.name not in passed]
        # Programs that only have to be right go side by side; what is about the moment comes alone.
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            side_by_side = [pool.submit(one, step) for step in left if isinstance(step, Same)]
            ended = (done.result() for done in concurrent.futures.as_completed(side_by_side))
            failed = sum([report(options, *result) for result in ended])
        failed += sum([report(options, *one(step)) for step in left if not isinstance(step, Same)])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
