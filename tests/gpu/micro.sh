#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/gpu/micro.py and its programs, on the CPU device: every part that needs no PyTorch answers in every way.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -B "$TALLY_SOURCE/bench/gpu/micro.py" calls depth start memory stop --build "$TALLY_BUILD" --device cpu --turns 2 --stops 2 --blocks-us 10 \
	--output "$scratch/micro.jsonl" 2>"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
python3 - "$scratch/micro.jsonl" <<'END'
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[1])]
failed = [row for row in rows if not row["ok"]]
if failed:
    sys.exit("FAILED: %s" % failed)
ways = {row["way"] for row in rows if row["kind"] == "calls"}
names = {row["name"] for row in rows if row["kind"] == "calls"}
stops = [row for row in rows if row["kind"] == "stop"]
if ways != {"without", "again", "preloaded", "high", "best-effort"} or len(names) != 10:
    sys.exit("FAILED: calls: ways %s, names %s" % (ways, names))
depths = {row["way"] for row in rows if row["kind"] == "depth"}
if len([r for r in rows if r["kind"] == "start"]) != 4:
    sys.exit("FAILED: start")
if len(depths) != 9:
    sys.exit("FAILED: depth: ways %s" % depths)
if len(stops) != 2 + 8 or [s for s in stops if sum(s.get("histogram_us", {}).values()) != len(s["latencies_us"])] or len([r for r in rows if r["kind"] == "memory"]) != 10:
    sys.exit("FAILED: stops: %s" % stops)
END
