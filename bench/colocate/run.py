#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what sharing a GPU costs a high-priority server and gives a best-effort trainer, system by system.

Servers answer requests that come at a share (the load) of what they can serve alone; trainers run all the time.
Needs an NVIDIA GPU and stock PyTorch with torchvision. Every result is one line of JSON, appended as it comes: a later call
goes on where an earlier one ended. report.py makes the table and the pictures.
"""
import argparse
import importlib.util
import json
import os
import platform
import signal
import sys
import time

from arrivals import TRACES, arrivals
from matrix import PRESETS, SERVERS, SYSTEMS, TRAINERS, Cell, Solo, groups, key
from workers import SYSTEMS as SURROUNDINGS
from workers import Failed, Surroundings, Worker, title

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FEWEST, LONGEST = 300, 3  # requests of a cell, by making it longer; at most so many times longer
START_S, LOAD_S, LATE_S = 150, 90, 30  # what a program may take: to start, to build a model, beyond its time
TRIES = 2  # of a cell that fails
DEATHS = 3  # of a program, until it is not started again


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda what: parser.exit(1, "colocate: error: %s (see --help)\n" % what)
    comma = lambda kind: lambda text: [kind(part) for part in text.split(",") if part]
    parser.add_argument("--preset", choices=PRESETS, default="full", help="quick: what fits about 8 minutes (default: full)")
    parser.add_argument("--servers", type=comma(str), help="of " + ",".join(SERVERS))
    parser.add_argument("--trainers", type=comma(str), help="of " + ",".join(TRAINERS))
    parser.add_argument("--loads", type=comma(float), help="shares of what a server can do alone")
    parser.add_argument("--traces", type=comma(str), help="of " + ",".join(TRACES))
    parser.add_argument("--systems", type=comma(str), help="of " + ",".join(SURROUNDINGS))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--seconds", type=float, help="of a cell; longer where that would be under %d requests" % FEWEST)
    parser.add_argument("--slice", type=float, metavar="SECONDS", help="begin no group that would not end in this time")
    parser.add_argument("--build", default=os.environ.get("TALLY_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--output", default=os.path.join(ROOT, "bench/results/h200/colocate.jsonl"), help="results so far, and to come (default: %(default)s)")
    parser.add_argument("--log", help="what the programs print (default: beside the output)")
    parser.add_argument("--dry-run", action="store_true", help="list the cells that are left, run nothing")
    options = parser.parse_args()
    plan = dict(PRESETS[options.preset])
    for name in plan:
        if getattr(options, name) is not None:
            plan[name] = getattr(options, name)
    for name, known in (("servers", SERVERS), ("trainers", TRAINERS), ("traces", TRACES), ("systems", SURROUNDINGS)):
        for part in plan[name]:
            if part not in known:
                parser.error("--%s: no \"%s\" among %s" % (name, part, ", ".join(known)))
    return options, plan


class Results:
    """The file of results: what is there and how to add to it."""

    def __init__(self, path):
        self.path, self.done, self.tries, self.service = path, set(), {}, {}
        if os.path.exists(path):
            with open(path) as file:
                for line in file:
                    try:
                        self.take(json.loads(line))
                    except ValueError:
                        pass  # the last line of a run that was killed

    def take(self, row):
        if row["kind"] == "service":
            self.service[row["server"]] = row["service_s"]
        elif row["kind"] in ("cell", "solo"):
            if row["ok"]:
                self.done.add(row["key"])
            else:
                self.tries[row["key"]] = self.tries.get(row["key"], 0) + 1

    def add(self, **row):
        self.take(row)
        with open(self.path, "ab+") as file:
            if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                file.write(b"\n")
            file.write(json.dumps(row).encode() + b"\n")

    def left(self, item):
        return key(item) not in self.done and self.tries.get(key(item), 0) < TRIES


def quantile(ascending, q):
    return ascending[min(len(ascending) - 1, int(q * len(ascending)))]


def rate(finished, start, end):
    """Steps a second between two times; a step that crosses one counts with its part."""
    def position(t):
        for n in range(1, len(finished)):
            if finished[n] >= t:
                return n - 1 + (t - finished[n - 1]) / (finished[n] - finished[n - 1])
        return len(finished) - 1.0
    if len(finished) < 2:
        return 0.0
    start, end = max(start, finished[0]), end
    return (position(end) - position(start)) / (end - start) if end > start else 0.0


class Bench:
    def __init__(self, options, plan, results):
        self.options, self.plan, self.results = options, plan, results
        self.began = time.monotonic()
        self.house = Surroundings(options.build, options.log or os.path.splitext(options.output)[0] + ".log")
        self.workers, self.device, self.deaths = {}, None, {}

    def say(self, text):
        print("colocate: %4.0f s: %s" % (time.monotonic() - self.began, text), file=sys.stderr, flush=True)

    def start(self, items):
        """Starts every program that `items` need and has it build what they need, all at once."""
        wanted = {}
        for item in items:
            server, trainer = SURROUNDINGS[item.system]
            if isinstance(item, Cell):
                wanted.setdefault(("server", server), set()).add(item.server.split("/")[0])
            if isinstance(item, Solo) or trainer:
                wanted.setdefault(("trainer", trainer or server), set()).add(item.trainer)
        for who in wanted:
            if who not in self.workers:
                self.workers[who] = Worker(self.house, *who)
        self.say("starting " + ", ".join(worker.title for worker in self.workers.values()))
        for who in wanted:
            answer = self.each(who, lambda worker: worker.wait(START_S))
            self.device = answer["device"] if answer else self.device
        # A model at a time, in all programs at once.
        for n in range(max(map(len, wanted.values()), default=0)):
            building = {who: sorted(names)[n] for who, names in wanted.items() if len(names) > n}
            for who, name in building.items():
                self.each(who, lambda worker: worker.post(do="load", **{"model" if who[0] == "server" else "job": name}))
            for who, name in building.items():
                if self.each(who, lambda worker: worker.wait(LOAD_S)):
                    self.workers[who].loaded[name] = True
        self.say("ready")

    def each(self, who, action):
        """`action` with the program `who`; what goes wrong is said, and ends that alone."""
        try:
            if who not in self.workers:
                return None
            return action(self.workers[who]) or True
        except Failed as problem:
            self.say(str(problem))
            self.bury()
            return None

    def bury(self):
        for who in [who for who, worker in self.workers.items() if not worker.alive()]:
            self.deaths[who] = self.deaths.get(who, 0) + 1
            del self.workers[who]

    def program(self, role, surrounding, name):
        """The program, which has built `name`; started again when it died."""
        who = (role, surrounding)
        worker = self.workers.get(who)
        if not worker or not worker.alive():
            if self.deaths.get(who, 0) >= DEATHS:
                raise Failed("%s died %d times: given up" % (title(*who), DEATHS))
            worker = self.workers[who] = Worker(self.house, role, surrounding)
            worker.wait(START_S)
        if name not in worker.loaded:
            worker.ask(LOAD_S, do="load", **{"model" if role == "server" else "job": name})
            worker.loaded[name] = True
        return worker

    def service(self, server):
        """The server's time for one request, alone without Tally; measured once and kept in the results."""
        if server not in self.results.service:
            model, mode = server.split("/")
            answer = self.program("server", "plain", model).ask(LATE_S, do="service", model=model, mode=mode, seconds=1.0)
            self.results.add(kind="service", server=server, service_s=answer["service_s"], n=answer["n"])
        return self.results.service[server]

    def cell(self, cell):
        model, mode = cell.server.split("/")
        server_in, trainer_in = SURROUNDINGS[cell.system]
        per_second = cell.load / self.service(cell.server)
        seconds = min(max(self.plan["seconds"], FEWEST / per_second), LONGEST * self.plan["seconds"])
        times = arrivals(cell.trace, per_second, seconds, (cell.server, cell.load, cell.trace, cell.repeat))
        server = self.program("server", server_in, model)
        trainer = self.program("trainer", trainer_in, cell.trainer) if trainer_in else None
        before = self.house.program(title("trainer", trainer_in)) if trainer_in and "tally" in trainer_in else {}
        if trainer:
            trainer.ask(LATE_S, do="run", job=cell.trainer)
            time.sleep(0.3)
        try:
            limit = 2.5 * seconds
            answer = server.ask(limit + LATE_S, do="measure", model=model, mode=mode, arrivals=times, limit=limit)
        finally:
            finished = trainer.ask(LATE_S, do="pause")["finished"] if trainer and trainer.alive() else []
        after = self.house.program(title("trainer", trainer_in)) if before else {}
        latencies = sorted(answer["latencies_us"])
        return {
            "seconds": round(answer["end"] - answer["start"], 3),
            "n": len(latencies),
            "unserved": answer["unserved"],
            "p50_us": quantile(latencies, 0.5),
            "p99_us": quantile(latencies, 0.99),
            "max_us": latencies[-1],
            "mean_us": round(sum(latencies) / len(latencies), 1),
            "quantiles_us": [quantile(latencies, n / 100) for n in range(100)],
            "worst_us": latencies[-20:],
            "trainer_per_s": round(rate(finished, answer["start"], answer["end"]), 4) if trainer else None,
            "trainer_steps": len(finished),
            "tally": {name: after[name] - before.get(name, 0) for name in ("launches", "guarded", "stops", "resumes", "fences", "stopped_ns") if isinstance(after.get(name), int)},
            "stop_latency_max_ns": after.get("stop_latency_max_ns"),
        }

    def solo(self, solo):
        surrounding = SURROUNDINGS[solo.system][1] or "plain"
        trainer = self.program("trainer", surrounding, solo.trainer)
        trainer.ask(LATE_S, do="run", job=solo.trainer)
        time.sleep(0.3)
        start = time.monotonic()
        time.sleep(min(self.plan["seconds"], 3))
        end = time.monotonic()
        finished = trainer.ask(LATE_S, do="pause")["finished"]
        return {"seconds": round(end - start, 3), "trainer_per_s": round(rate(finished, start, end), 4), "trainer_steps": len(finished)}

    def measure(self, item):
        """Measures one cell and writes down what came of it."""
        kind = type(item).__name__.lower()
        row = dict(item._asdict(), kind=kind, key=key(item))
        began = time.monotonic()
        try:
            row.update(getattr(self, kind)(item), ok=True, took=round(time.monotonic() - began, 2))
        except Exception as problem:  # one cell is lost, not the run
            row.update(ok=False, error=str(problem) if isinstance(problem, Failed) else repr(problem))
            self.bury()
        self.results.add(**row)
        return row

    def close(self):
        for worker in self.workers.values():
            worker.process.stdin.close()
        for worker in self.workers.values():
            worker.close()
        self.house.close()


def describe(row):
    if not row["ok"]:
        return "FAILED: " + row["error"]
    text = "trainer %.2f steps/s" % row["trainer_per_s"] if row.get("trainer_per_s") is not None else ""
    if row["kind"] == "cell":
        text = "n %d p50 %d p99 %d max %d us " % (row["n"], row["p50_us"], row["p99_us"], row["max_us"]) + text
        if row["tally"]:
            text += " stops %d guarded %d of %d" % tuple(row["tally"].get(name, 0) for name in ("stops", "guarded", "launches"))
    return text


def check_machine():
    for module in "torch", "torchvision":
        if importlib.util.find_spec(module) is None:
            sys.exit("colocate: error: %s has no module %s: PyTorch and torchvision are needed" % (sys.executable, module))
    if not any(map(os.path.exists, ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"))):
        sys.exit("colocate: error: no NVIDIA driver is visible here")


def main():
    options, plan = parse()
    if not options.dry_run:
        check_machine()
    os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
    results = Results(options.output)
    todo = [left for group in groups(plan) if (left := [item for item in group if results.left(item)])]
    everything = sum(len(group) for group in groups(plan))
    left = sum(map(len, todo))
    if options.dry_run:
        for group in todo:
            print("\n".join(map(key, group)))
    if options.dry_run or not todo:
        print("%d of %d cells done" % (everything - left, everything))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = Bench(options, plan, results)
    try:
        for system in plan["systems"]:
            if reason := bench.house.missing(system):
                bench.say("%s is left out: %s" % (system, reason))
                todo = [[item for item in group if item.system != system] for group in todo]
        left = sum(map(len, todo))
        # Only what this call will come to, as far as it can be told.
        ahead = todo if not options.slice else todo[: max(1, int(options.slice / (plan["seconds"] * 4)))]
        bench.start([item for group in ahead for item in group])
        results.add(kind="session", time=time.strftime("%FT%TZ", time.gmtime()), device=bench.device, machine=platform.platform(), cpus={k: len(v) for k, v in bench.house.cpus.items()}, mps=bench.house.mps is not None, tally=bench.house.output([bench.house.tally, "--version"]).strip(), plan=plan)
        measured, measuring = 0, 0.0
        for group in todo:
            one = measuring / measured if measured else plan["seconds"] * 1.4
            if options.slice and time.monotonic() - bench.began + one * len(group) > options.slice:
                break
            for item in group:
                began = time.monotonic()
                row = bench.measure(item)
                measured, measuring, left = measured + 1, measuring + time.monotonic() - began, left - 1
                bench.say("%s: %s (%d left, about %.0f s)" % (key(item), describe(row), left, left * measuring / measured))
    finally:
        bench.close()
    left = sum(1 for group in groups(plan) for item in group if key(item) not in results.done)
    print("%d of %d cells done" % (everything - left, everything))


if __name__ == "__main__":
    main()
