#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Tally costs by itself, on an NVIDIA GPU: the same program without it and in the ways of being preloaded, in one run.

calls      one function of the driver API again and again: launches, copies, events, allocations ... (micro.c)
depth      the same with kernels of 10, 50 and 200 us as best effort, by TALLY_DEPTH, and how fast that stops
guarded    kernels whose blocks can be stopped beside plain ones (bench/guard.c)
torch      an eager step and a graph's replay in stock PyTorch
start      what is added to `import torch` and a first kernel, code cache warm
memory     GPU and host memory that a program has more
transform  tally-lower, whole process, for each kernel of the conformance suite
stop       how fast a best-effort program stops, by length of its blocks and number of its streams (stop.c)

Processes of all ways are alive together and take turns of a fraction of a second, on the same CPU; a ratio is taken within a
turn, and its median and quartiles over the turns are what is reported. Results are JSON lines, appended.
"""
import argparse
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

from house import House

# way: (preloaded, priority, environment). The first is what the others are compared with; `again` is the same, to see what
# noise is.
WAYS = {
    "without": (False, None, {}),
    "again": (False, None, {}),
    "preloaded": (True, None, {}),
    "high": (True, "high", {}),
    "best-effort": (True, "best-effort", {}),
}
DEPTHS = (1, 2, 4, 8)
DEPTH_WAYS = {"without": (False, None, {})}
DEPTH_WAYS.update({"%s, depth %d" % (level, depth): (True, "best-effort", {"TALLY_LEVEL": level, "TALLY_DEPTH": str(depth)}) for level in ("gate", "guard") for depth in DEPTHS})
CALLS = {
    "launch": 20000,
    "launch-and-wait": 2000,
    "graph-replay": 300,
    "copy": 3000,
    "copy-async": 3000,
    "event": 3000,
    "event-record": 3000,
    "synchronize": 20000,
    "allocate-and-free": 300,
    "current-context": 200000,
}
SPINS = {"spin-10us": 400, "spin-50us": 200, "spin-200us": 50}
STEPS = {"bert/eager": 60, "resnet50/eager": 60, "bert/graph": 150, "resnet50/graph": 300}
BLOCKS_US, STREAMS = (10, 50, 100), (1, 16)
FIRST_KERNEL = "import torch; x = torch.ones(1, device='cuda') + 1; torch.cuda.synchronize()"


def quartiles(values):
    return [round(q, 4) for q in statistics.quantiles(values, n=4)] if len(values) > 1 else [values[0]] * 3


def brief(row):
    """A result in one short line."""
    if not row["ok"]:
        return "FAILED: " + json.dumps(row)
    if "turns" in row:
        text = "%-18s %-12s %9.0f ns" % (row["name"], row["way"], row["ns"][1])
        over = [row[field + "_over"] for field in ("ns", "call_ns", "cpu_ns")]
        return text + "  over: elapsed %.3f %.3f %.3f, call %.3f %.3f %.3f, CPU %.3f %.3f %.3f" % tuple(sum(over, []))
    return json.dumps({k: v for k, v in row.items() if not (k in ("time", "ok") or isinstance(v, list) and len(v) > 3)})


class Micro:
    def __init__(self, options):
        self.options = options
        self.log = open(options.output + ".log" if options.output else os.devnull, "ab", buffering=0)
        self.house = House(options.build, self.log)
        self.began = time.monotonic()
        cpus = sorted(os.sched_getaffinity(0))
        # Our own work keeps off the CPUs of what is measured; libtally's own threads find one beside.
        self.cpus = set(cpus[1:5]) if len(cpus) > 8 else set(cpus)
        self.rest = set(cpus[8:]) if len(cpus) > 8 else set(cpus)
        os.sched_setaffinity(0, self.rest)

    def say(self, text):
        print("micro: %4.0f s: %s" % (time.monotonic() - self.began, text), file=sys.stderr, flush=True)

    def add(self, **row):
        row["time"] = time.strftime("%FT%TZ", time.gmtime())
        if self.options.output:
            with open(self.options.output, "a") as file:
                file.write(json.dumps(row) + "\n")
        self.say(brief(row))

    def command(self, way, command, ways):
        """(command line, environment) of a program in one of the ways."""
        preloaded, priority, more = ways[way]
        environment = dict(self.house.environment, **more)
        if self.options.device == "cpu":
            environment["LD_LIBRARY_PATH"] = os.path.join(self.options.build, "lib")
        if priority:
            return self.house.run(priority, way, self.options.device) + command, environment
        if preloaded:
            environment["LD_PRELOAD"] = os.path.join(self.options.build, "lib", "libtally.so")
        return command, environment

    def start(self, way, command, ways=WAYS):
        command, environment = self.command(way, command, ways)
        pin = lambda: os.sched_setaffinity(0, self.cpus)
        return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, preexec_fn=pin)

    def answer(self, process, seconds):
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise RuntimeError("no answer in %d s" % seconds)
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("ended with status %s" % process.wait())
        row = json.loads(line)
        if not row.pop("ok"):
            raise RuntimeError(row["error"])
        return row

    def ask(self, process, line, seconds=60):
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        return self.answer(process, seconds)

    def turns(self, kind, command, counts, turns, ways=WAYS):
        """Every way alive; each thing of `counts` in turns, ratios within a turn."""
        processes = {way: self.start(way, command, ways) for way in ways}
        try:
            for process in processes.values():
                self.answer(process, 120)
            for name, count in counts.items():
                try:
                    self.take_turns(kind, processes, name, count, turns)
                except (RuntimeError, OSError, ValueError) as problem:
                    self.add(kind=kind, name=name, ok=False, error=str(problem))
                if any(process.poll() is not None for process in processes.values()):
                    return
        finally:
            self.end(processes.values())

    def take_turns(self, kind, processes, name, count, turns):
        taken = {way: [] for way in processes}
        for turn in range(turns + 1):
            ways = list(processes)
            for way in ways[turn % len(ways) :] + ways[: turn % len(ways)]:
                row = self.ask(processes[way], "%s %d" % (name, count))
                if turn:  # the first warms up
                    taken[way].append(row)
        for way, rows in taken.items():
            result = {"kind": kind, "name": name, "way": way, "ok": True, "turns": turns, "each": count}
            for field in rows[0]:
                values = [row[field] for row in rows]
                result[field] = quartiles(values)
                result[field + "_over"] = quartiles([v / b[field] for v, b in zip(values, taken["without"]) if b[field]])
                result[field + "_all"] = [round(v, 1) for v in values]
            self.add(**result)

    def end(self, processes):
        for process in processes:
            process.stdin.close()
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def calls(self):
        self.turns("calls", [os.path.join(self.options.build, "gpu", "micro")], CALLS, self.options.turns)

    def depth(self):
        self.turns("depth", [os.path.join(self.options.build, "gpu", "micro")], SPINS, self.options.turns, DEPTH_WAYS)
        for level in ("gate", "guard"):
            for depth in DEPTHS:
                self.stop_class("time-slicing", level, 50, 1, 528 if self.options.device == "cuda" else 16, {"TALLY_DEPTH": str(depth)})

    def guarded(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(self.house.environment, GUARD_DEVICE=self.options.device, TALLY_BUILD=self.options.build, BENCH_OUT=folder)
            if self.options.device == "cpu":
                environment["LD_LIBRARY_PATH"] = os.path.join(self.options.build, "lib")
            subprocess.run([os.path.join(self.options.build, "gpu", "guard")], env=environment, stdout=self.log, stderr=self.log, timeout=120, check=True)
            with open(os.path.join(folder, "results.jsonl")) as file:
                for row in map(json.loads, file):
                    self.add(kind="guarded", ok=True, name=row["figure"], over=quartiles(row["samples"]), each=row["n"], beside=row.get("beside"))

    def torch(self):
        models = sorted({name.split("/")[0] for name in STEPS})
        self.turns("torch", [sys.executable, os.path.join(HERE, "torch_micro.py")] + models, STEPS, self.options.turns)

    def start_up(self):
        """Whole processes, one after another; the first of each way fills caches and is not counted."""
        micro = [os.path.join(self.options.build, "gpu", "micro")]
        self.starts("first launch (driver API)", micro, "launch 1\n", self.options.turns)
        if self.options.device == "cuda" and self.options.starts:
            self.starts("import torch; first kernel", [sys.executable, "-c", FIRST_KERNEL], "", self.options.starts)

    def starts(self, name, command, words, times):
        taken = {way: [] for way in ("without", "again", "high", "best-effort")}
        for turn in range(times + 1):
            ways = list(taken)
            for way in ways[turn % len(ways) :] + ways[: turn % len(ways)]:
                began = time.monotonic()
                process = self.start(way, command)
                try:
                    process.communicate(words.encode(), timeout=90)
                finally:
                    process.kill()
                if process.returncode:
                    raise RuntimeError("%s: status %d" % (way, process.returncode))
                if turn:
                    taken[way].append((time.monotonic() - began) * 1e3)
        for way, values in taken.items():
            added = [v - b for v, b in zip(values, taken["without"])]
            self.add(kind="start", name=name, way=way, ok=True, ms=quartiles(values), added_ms=quartiles(added), ms_all=[round(v, 1) for v in values])

    def memory(self):
        """An observer asks the GPU what is free, before and after a program of each way has come up."""
        program = [os.path.join(self.options.build, "gpu", "micro")]
        observer = self.start("without", program)
        self.answer(observer, 60)
        try:
            for way in list(WAYS) * 2:
                before = self.ask(observer, "free")["free"]
                process = self.start(way, program)
                try:
                    self.answer(process, 60)
                    self.ask(process, "launch 1000")
                    time.sleep(0.2)
                    after = self.ask(observer, "free")["free"]
                    with open("/proc/%d/smaps_rollup" % process.pid) as file:
                        host = {line.split(":")[0]: int(line.split()[1]) for line in file if line.endswith("kB\n")}
                finally:
                    self.end([process])
                time.sleep(0.5)
                self.add(kind="memory", way=way, ok=True, gpu_mib=round((before - after) / 2**20, 2), pss_mib=round(host["Pss"] / 1024, 2), private_mib=round((host["Private_Dirty"] + host["Private_Clean"]) / 1024, 2))
        finally:
            self.end([observer])

    def transform(self):
        folder = os.path.join(self.options.build, "conformance", "kernels")
        command = [os.path.join(self.options.build, "bin", "tally-lower"), "--target", "sm_90", "-o", "/dev/null"]
        kept = []
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".ptx"):
                continue
            path, times = os.path.join(folder, name), {}
            for title, more in (("plain", []), ("slice_guard", ["--transform", "slice,guard"])):
                best = None
                for _ in range(3):
                    began = time.monotonic()
                    done = subprocess.run(command + more + [path], stdout=subprocess.DEVNULL, stderr=self.log, timeout=60)
                    took = (time.monotonic() - began) * 1e3
                    best = took if best is None or took < best else best
                times[title + "_ms"] = round(best, 2) if done.returncode == 0 else None
            kept.append(dict(times, name=name[:-4], bytes=os.path.getsize(path)))
        both = [k for k in kept if k["plain_ms"] and k["slice_guard_ms"]]
        medians = {title: round(statistics.median(k[title] for k in both), 2) for title in ("plain_ms", "slice_guard_ms")}
        self.add(kind="transform", ok=True, kernels=kept, count=len(both), **medians)

    def stop(self):
        """Every launch guarded, or as Tally chooses; under MPS (with client priority), and time-slicing."""
        grid = 20000 if self.options.device == "cuda" else 64
        modes = [("time-slicing", "guard")]
        if self.house.mps:
            modes = [("mps", "guard"), ("mps", "auto")] + modes
        for mode, level in modes:
            for block in self.options.blocks_us or BLOCKS_US:
                for streams in STREAMS:
                    self.stop_class(mode, level, block, streams, grid, {})

    def stop_class(self, mode, level, block, streams, grid, more):
        environment = dict(self.house.environment, TALLY=self.house.tally, STOP_DEVICE=self.options.device, TALLY_LEVEL=level, **more)
        if streams > 4:  # what docs/manual.md recommends for so many
            more = dict(more, CUDA_DEVICE_MAX_CONNECTIONS="32")
            environment.update(more)
        if self.options.device == "cpu":
            environment["LD_LIBRARY_PATH"] = os.path.join(self.options.build, "lib")
        if mode == "mps":
            environment.update(self.house.mps, STOP_CLIENT_PRIORITY="1")
        elif "--mps" in self.house.run_help:
            environment["STOP_MPS"] = "off"
        command = [os.path.join(self.options.build, "gpu", "stop"), str(block), str(streams), str(self.options.stops), str(grid)]
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=self.log, timeout=40, preexec_fn=lambda: os.sched_setaffinity(0, self.rest | self.cpus))
            row = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError) as problem:
            row = {"ok": False, "error": str(problem)[:200], "block_us": block, "streams": streams}
        self.add(kind="stop", mode=mode, level=level, grid=grid, **more, **row)


PARTS = {"calls": Micro.calls, "depth": Micro.depth, "guarded": Micro.guarded, "torch": Micro.torch, "start": Micro.start_up, "memory": Micro.memory, "transform": Micro.transform, "stop": Micro.stop}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda what: parser.exit(1, "gpu/micro.py: error: %s (see --help)\n" % what)
    parser.add_argument("parts", nargs="*", metavar="PART", help="of " + ", ".join(PARTS) + " (default: all)")
    parser.add_argument("--build", default=os.environ.get("TALLY_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try the driver API's parts without a GPU")
    parser.add_argument("--output", help="results, appended as JSON lines")
    parser.add_argument("--turns", type=int, default=25, help="of every way (%(default)s)")
    parser.add_argument("--starts", type=int, default=5, help="of PyTorch, in every way (%(default)s)")
    parser.add_argument("--blocks-us", type=int, nargs="+", metavar="US", help="lengths of the blocks that are stopped (10 50 100)")
    parser.add_argument("--stops", type=int, default=200, help="of every kernel class (%(default)s)")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    for part in options.parts:
        if part not in PARTS:
            parser.error("no \"%s\" among %s" % (part, ", ".join(PARTS)))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    micro, failed = Micro(options), 0
    try:
        for part in options.parts or PARTS:
            micro.say("== " + part)
            try:
                PARTS[part](micro)
            except Exception as problem:  # a part that fails is no reason to leave out the others
                micro.add(kind=part, ok=False, error=repr(problem))
                failed += 1
    finally:
        micro.house.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
