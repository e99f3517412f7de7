# SPDX-License-Identifier: Apache-2.0
"""Reads the results that run.sh left in build/demo/runs; prints the table, writes demo.csv, demo.json and
demo.png, and says which expectation failed. Usage: report.py BUILD/demo PLOT.gp"""

import glob
import json
import os
import statistics
import subprocess
import sys

# What a user is promised (README): the server's tail with and without Tally, and the trainer's share.
PLAIN_P99_AT_LEAST = 3.0
TALLY_P99_AT_MOST = 2.0
TRAINER_SHARE_AT_LEAST = 0.6

MODES = [
    ("server", "server alone"),
    ("trainer", "trainer alone"),
    ("plain", "both, without Tally"),
    ("tally", "both, under Tally"),
]


def read(folder, mode, program):
    """The results of all runs of a mode, in order."""
    files = sorted(glob.glob(os.path.join(folder, f"{mode}-*-{program}.json")))
    return [json.load(open(f)) for f in files]


def median(results, key):
    return statistics.median(r[key] for r in results) if results else None


def summarise(runs):
    # What a request costs, measured back to back; see run.sh.
    services = [json.load(open(f)) for f in glob.glob(os.path.join(runs, "service-*.json"))]
    service_ms = min(service["p50_ms"] for service in services)
    modes = {}
    for mode, title in MODES:
        servers, trainers = read(runs, mode, "server"), read(runs, mode, "trainer")
        modes[mode] = {
            "title": title,
            "p50_ms": median(servers, "p50_ms"),
            "p99_ms": median(servers, "p99_ms"),
            "steps_per_second": median(trainers, "steps_per_second"),
            "servers": servers,
            "trainers": trainers,
        }
    alone = modes["server"]
    busy = statistics.median(1e-3 * r["requests"] * service_ms / r["seconds"] for r in alone["servers"])
    idle_rate = modes["trainer"]["steps_per_second"] * (1 - busy)
    for mode in modes.values():
        mode["p99_ratio"] = mode["p99_ms"] / alone["p99_ms"] if mode["p99_ms"] else None
        mode["share"] = mode["steps_per_second"] / idle_rate if mode["steps_per_second"] else None
    finished = [
        program
        for status in read(runs, "tally", "status")
        for program in status["finished"] + status["programs"]
        if program["name"] == "trainer"
    ]
    # Each status repeats the runs before it: one entry a process.
    trainers = {program["pid"]: program for program in finished}.values()
    return {
        "service_ms": service_ms,
        "server_busy": busy,
        "idle_steps_per_second": idle_rate,
        "stopped": sum(p["stops"] for p in trainers),
        "resumed": sum(p["resumes"] for p in trainers),
        "checksums": sorted({t["checksum"] for m in modes.values() for t in m["trainers"]}),
        "modes": modes,
    }


def show(summary):
    def cell(value, form):
        return form.format(value) if value is not None else "-"

    columns = "{:<21}{:>10}{:>10}{:>10}{:>10}{:>10}{:>9}{:>9}"
    print()
    print(columns.format("", "p50 ms", "p99 ms", "p99 vs", "steps/s", "of what", "stopped", "resumed"))
    print(columns.format("", "", "", "alone", "", "is idle", "", ""))
    for key, mode in summary["modes"].items():
        print(
            columns.format(
                mode["title"],
                cell(mode["p50_ms"], "{:.2f}"),
                cell(mode["p99_ms"], "{:.2f}"),
                cell(mode["p99_ratio"], "{:.2f}x"),
                cell(mode["steps_per_second"], "{:.2f}"),
                cell(mode["share"] if key != "trainer" else None, "{:.0%}"),
                summary["stopped"] if key == "tally" else "-",
                summary["resumed"] if key == "tally" else "-",
            )
        )
    print()
    equal = len(summary["checksums"]) == 1
    print(
        "medians of {} runs; a request takes {:.2f} ms, the server needs {:.0%} of the device; "
        "checksums {}".format(
            len(summary["modes"]["server"]["servers"]),
            summary["service_ms"],
            summary["server_busy"],
            f"equal ({summary['checksums'][0]})" if equal else "DIFFER: " + ", ".join(summary["checksums"]),
        )
    )


def failures(summary):
    modes = summary["modes"]
    if modes["plain"]["p99_ratio"] < PLAIN_P99_AT_LEAST:
        yield f"without Tally p99 rose only {modes['plain']['p99_ratio']:.2f}x (expected {PLAIN_P99_AT_LEAST}x or more)"
    if modes["tally"]["p99_ratio"] > TALLY_P99_AT_MOST:
        yield f"with Tally p99 rose {modes['tally']['p99_ratio']:.2f}x (expected {TALLY_P99_AT_MOST}x or less)"
    if modes["tally"]["share"] < TRAINER_SHARE_AT_LEAST:
        yield (
            f"with Tally the trainer kept {modes['tally']['share']:.0%} of what the server leaves idle "
            f"(expected {TRAINER_SHARE_AT_LEAST:.0%} or more)"
        )
    if len(summary["checksums"]) != 1:
        yield "the trainer's checksums differ"
    if summary["stopped"] == 0:
        yield "with Tally no launch of the trainer was stopped: it did not work"


def write_files(folder, summary):
    with open(os.path.join(folder, "demo.json"), "w") as out:
        json.dump(summary, out, indent=1)
    with open(os.path.join(folder, "demo.csv"), "w") as out:
        out.write("mode,run,latency_ms\n")
        for key, mode in summary["modes"].items():
            for run, server in enumerate(mode["servers"], 1):
                out.writelines(f"{key},{run},{latency}\n" for latency in server["latency_ms"])
    # For the plot: one distribution a mode, and the trainer's bars.
    for key in ("server", "plain", "tally"):
        pooled = sorted(l for s in summary["modes"][key]["servers"] for l in s["latency_ms"])
        with open(os.path.join(folder, "runs", f"{key}.cdf"), "w") as out:
            out.writelines(f"{l} {100 * (i + 1) / len(pooled)}\n" for i, l in enumerate(pooled))
    with open(os.path.join(folder, "runs", "bars.dat"), "w") as out:
        labels = {"trainer": "alone", "plain": "with the server,\\nno Tally", "tally": "with the server,\\nTally"}
        for i, (key, label) in enumerate(labels.items()):
            rates = [t["steps_per_second"] for t in summary["modes"][key]["trainers"]]
            out.write(f'{i} {summary["modes"][key]["steps_per_second"]} {min(rates)} {max(rates)} "{label}"\n')


def draw(folder, summary, script):
    modes = summary["modes"]
    variables = {
        "out": os.path.join(folder, "demo.png"),
        "runs": os.path.join(folder, "runs"),
        "p99_alone": modes["server"]["p99_ms"],
        "p99_plain": modes["plain"]["p99_ms"],
        "p99_tally": modes["tally"]["p99_ms"],
        "idle": summary["idle_steps_per_second"],
        "busy": 100 * summary["server_busy"],
    }
    setup = "; ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in variables.items())
    subprocess.run(["gnuplot", "-e", setup, script], check=True)


def main():
    folder, script = sys.argv[1:3]
    summary = summarise(os.path.join(folder, "runs"))
    show(summary)
    write_files(folder, summary)
    draw(folder, summary, script)
    print(f"picture: {os.path.join(folder, 'demo.png')}")
    failed = list(failures(summary))
    for line in failed:
        print(f"demo: FAILED: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
