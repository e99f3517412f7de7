#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the README's table, a summary in JSON and the pictures out of run.py's results; needs no GPU.

A cell's latency is divided by that of `alone` of the same group and repeat (measured within a minute), a trainer's
rate by its own alone; then medians over the repeats, then means and maxima over cells. A cell that left requests
unserved has at least the latency that is shown.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from matrix import SYSTEMS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RATIOS = ("p50", "p99", "max")
HALF = 0.5  # the load up to which the promise of the README counts


def read(path):
    """Rows of finished cells; of two with one key the later one counts."""
    rows = {}
    with open(path) as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # a run that was killed while it wrote
            if row.get("ok"):
                rows[row["key"]] = row
    return list(rows.values())


def pairs(rows):
    """[(server, trainer, load, trace)] -> system -> medians over the repeats."""
    alone, solo, cells = {}, {}, {}
    for row in rows:
        if row["kind"] == "solo" and row["system"] == "alone":
            solo.setdefault(row["trainer"], []).append(row["trainer_per_s"])
        if row["kind"] == "cell" and row["system"] == "alone":
            alone[row["server"], row["trainer"], row["load"], row["trace"], row["repeat"]] = row
    for row in rows:
        if row["kind"] != "cell" or row["system"] == "alone":
            continue
        name = (row["server"], row["trainer"], row["load"], row["trace"])
        base = alone.get(name + (row["repeat"],))
        if not base:
            continue
        ratios = {r: row[r + "_us"] / max(1, base[r + "_us"]) for r in RATIOS}
        rate = statistics.median(solo[row["trainer"]]) if solo.get(row["trainer"]) else None
        ratios["rate"] = row["trainer_per_s"] / rate if rate else None
        ratios["stops"] = row["tally"].get("stops", 0) / row["seconds"]
        ratios["unserved"] = row["unserved"] / row["n"]
        ratios["n"] = row["n"]
        cells.setdefault(name, {}).setdefault(row["system"], []).append(ratios)
    return {name: {system: median(list_) for system, list_ in by.items()} for name, by in sorted(cells.items())}


def median(measured):
    result = {"repeats": len(measured)}
    for field in measured[0]:
        values = [m[field] for m in measured if m[field] is not None]
        result[field] = statistics.median(values) if values else None
    result["p99_spread"] = [min(m["p99"] for m in measured), max(m["p99"] for m in measured)]
    return result


def mean(values):
    values = [v for v in values if v is not None]
    return statistics.fmean(values) if values else None


def summary(table):
    """system -> figures over the cells at a load of HALF and less, and over all."""
    result = {}
    for system in systems(table):
        for label, keep in (("half", lambda load: load <= HALF), ("all", lambda load: True)):
            cells = [(name[2], by[system]) for name, by in table.items() if system in by and keep(name[2])]
            if not cells:
                continue
            result.setdefault(system, {})[label] = {
                "cells": len(cells),
                "p50_mean": mean(c["p50"] for _, c in cells),
                "p99_mean": mean(c["p99"] for _, c in cells),
                "p99_max": max(c["p99"] for _, c in cells),
                "max_mean": mean(c["max"] for _, c in cells),
                "rate_mean": mean(c["rate"] for _, c in cells),
                "rate_of_left_mean": mean(c["rate"] / (1 - load) if c["rate"] is not None else None for load, c in cells),
                "stops_per_s": mean(c["stops"] for _, c in cells),
                "cells_unserved": sum(c["unserved"] > 0 for _, c in cells),
            }
    return result


def systems(table):
    found = {system for by in table.values() for system in by}
    return [s for s in SYSTEMS if s in found] + sorted(found - set(SYSTEMS))


def number(value, unit=""):
    return "-" if value is None else ("%.2f" % value if value < 100 else "%.0f" % value) + unit


def line(*fields):
    return "| " + " | ".join(fields) + " |"


def markdown(table, figures):
    half = [figures[s]["half"] for s in figures if "half" in figures[s]]
    out = ["Means over %d cells (server x trainer x load x trace) at a load of %g and less; latency over the same server alone." % (max((f["cells"] for f in half), default=0), HALF), ""]
    out += [line("system", "p50", "p99", "p99, worst cell", "max", "trainer, of alone", "of what the load leaves", "stops/s", "cells that left requests"), line(*["---"] * 9)]
    for system, by in figures.items():
        if "half" in by:
            f = by["half"]
            out.append(line(system, *(number(f[k], "x") for k in ("p50_mean", "p99_mean", "p99_max", "max_mean")), *(number(f[k]) for k in ("rate_mean", "rate_of_left_mean", "stops_per_s")), str(f["cells_unserved"])))
    out += ["", "p99 over alone / trainer's rate over alone, cell by cell (median of the repeats; * some requests were not served in 2.5 times the time):", ""]
    out += [line("server", "trainer", "load", "trace", *systems(table)), line(*["---"] * (4 + len(systems(table))))]
    for (server, trainer, load, trace), by in table.items():
        cells = [number(by[s]["p99"], "x") + ("*" if by[s]["unserved"] else "") + " / " + number(by[s]["rate"]) if s in by else "-" for s in systems(table)]
        out.append(line(server, trainer, "%g" % load, trace, *cells))
    return "\n".join(out) + "\n"


MOST = 24  # clusters of bars in the picture


def clusters(table):
    """title -> system -> (p99, rate): cell by cell, or where those are too many, means for each pair of programs."""
    grouped = {}
    for (server, trainer, load, trace), by in table.items():
        title = (server, trainer) if len(table) > MOST else (server, trainer, "%g %s" % (load, trace))
        for system, cell in by.items():
            grouped.setdefault(title, {}).setdefault(system, []).append((cell["p99"], cell["rate"]))
    return {title: {s: [mean(column) for column in zip(*cells)] for s, cells in by.items()} for title, by in grouped.items()}


def picture(table, folder):
    """colocate.svg: p99 and the trainer's rate. False where there is no gnuplot."""
    data = os.path.join(folder, "colocate.dat")
    names = systems(table)
    bars = clusters(table)
    with open(data, "w") as file:
        for title, by in bars.items():
            values = [by.get(s, (None, None))[n] for n in (0, 1) for s in names]
            file.write('"%s" %s\n' % ("\\n".join(title), " ".join("?" if v is None else "%.4f" % v for v in values)))
    script = "out='%s'; data='%s'; names='%s'; cells=%d" % (os.path.join(folder, "colocate.svg"), data, " ".join(names), len(bars))
    try:
        done = subprocess.run(["gnuplot", "-e", script, os.path.join(HERE, "plot.gp")], timeout=60)
    except FileNotFoundError:
        return False
    finally:
        os.remove(data)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda what: parser.exit(1, "colocate/report.py: error: %s (see --help)\n" % what)
    parser.add_argument("results", nargs="?", default=os.path.join(ROOT, "bench/results/h200/colocate.jsonl"))
    parser.add_argument("--output", help="folder of colocate.md, .json and .svg (default: the results')")
    options = parser.parse_args()
    folder = options.output or os.path.dirname(os.path.abspath(options.results))
    table = pairs(read(options.results))
    if not table:
        sys.exit("report: error: %s: no cell has been measured both alone and beside a trainer" % options.results)
    figures = summary(table)
    text = markdown(table, figures)
    print(text, end="")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "colocate.md"), "w") as file:
        file.write(text)
    cells = [dict(zip(("server", "trainer", "load", "trace"), name), systems=by) for name, by in table.items()]
    with open(os.path.join(folder, "colocate.json"), "w") as file:
        json.dump({"summary": figures, "cells": cells}, file, indent=1)
        file.write("\n")
    if not picture(table, folder):
        print("report: no picture: gnuplot failed or is missing", file=sys.stderr)


if __name__ == "__main__":
    main()
