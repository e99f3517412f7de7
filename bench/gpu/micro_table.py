#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""micro_table.py FILE...: what micro.py measured (JSON lines), as tables in Markdown."""
import json
import statistics
import sys


def table(title, head, rows):
    if rows:
        print("%s\n\n| %s |\n|%s" % (title, " | ".join(head), "---|" * len(head)))
        for row in rows:
            print("| %s |" % " | ".join(map(str, row)))
        print()


def ns(value):
    return "%.0f ns" % value if value < 10000 else "%.1f µs" % (value / 1000)


def turns(rows, kind, field, title):
    rows = [row for row in rows if row["kind"] == kind]
    ways = list(dict.fromkeys(row["way"] for row in rows))
    of = {(row["name"], row["way"]): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows):
        cells = [of.get((name, way)) for way in ways]
        base = of.get((name, ways[0]))
        lines.append([name] + [ns(base[field][1]) if cell is base else "%.3f (%+.0f ns)" % (cell[field + "_over"][1], cell[field][1] - base[field][1]) if cell else "-" for cell in cells])
    count = rows[0]["turns"] if rows else 0
    table(title % count, ["", *ways], lines)


def main():
    rows = [json.loads(line) for name in sys.argv[1:] for line in open(name)]
    failed = [row for row in rows if not row["ok"]]
    rows = [row for row in rows if row["ok"]]
    turns(rows, "calls", "call_ns", "Time in a call, and over it without Tally (and what is added), median of %d turns:")
    turns(rows, "depth", "ns", "Kernels one after another, elapsed time over it without Tally, median of %d turns:")
    turns(rows, "torch", "ns", "Steps of PyTorch, elapsed time over it without Tally, median of %d turns:")
    table("Kernels that can be stopped over plain ones (quartiles):", ["kernel", "25 %", "median", "75 %", "rounds"], [[row["name"], *row["over"], row["each"]] for row in rows if row["kind"] == "guarded"])
    table("Whole processes with a warm cache, ms:", ["", "way", "median", "added: 25 %", "median", "75 %", "times"], [[row.get("name", "import torch; first kernel"), row["way"], "%.0f" % row["ms"][1], *("%+.0f" % a for a in row["added_ms"]), len(row["ms_all"])] for row in rows if row["kind"] == "start"])
    memory = [row for row in rows if row["kind"] == "memory"]
    ways = list(dict.fromkeys(row["way"] for row in memory))
    median = lambda way, field: round(statistics.median(row[field] for row in memory if row["way"] == way), 2)
    table("Memory of a program, MiB (median):", ["", "GPU", "GPU, added", "host (PSS)", "host, added", "times"], [[way, median(way, "gpu_mib"), round(median(way, "gpu_mib") - median(ways[0], "gpu_mib"), 2), median(way, "pss_mib"), round(median(way, "pss_mib") - median(ways[0], "pss_mib"), 2), sum(row["way"] == way for row in memory)] for way in ways])
    table("tally-lower, whole process, median of the conformance suite's kernels:", ["kernels", "plain", "slice, guard"], [[row["count"], "%.1f ms" % row["plain_ms"], "%.1f ms" % row["slice_guard_ms"]] for row in rows if row["kind"] == "transform"])
    stop = []
    for row in rows:
        if row["kind"] == "stop" and "p50_us" in row:
            depth = ", ".join("%s %s" % (word, row[key]) for word, key in (("depth", "TALLY_DEPTH"), ("queues", "CUDA_DEVICE_MAX_CONNECTIONS")) if key in row)
            stop.append([row["mode"], row["level"], depth, "%d µs" % row["block_us"], row["grid"], row["streams"], row["p50_us"], row["p99_us"], row["max_us"], row["p50_over_us"], row["p99_over_us"], len(row["latencies_us"]), row["never_quiet"]])
    table("Until a best-effort program has no running block, µs; \"over\": less one block, which nobody can stop:", ["sharing", "level", "", "block", "blocks", "streams", "p50", "p99", "max", "p50 over", "p99 over", "stops", "never quiet"], stop)
    table("Failed:", ["what", "why"], [[" ".join(str(row.get(key, "")) for key in ("kind", "name", "mode", "level", "block_us", "streams")), row.get("error", "")] for row in failed])


if __name__ == "__main__":
    main()
