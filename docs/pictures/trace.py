#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a stretch of a trace (of `tally trace`) as SVG: trace.py TRACE.json FROM_MS TO_MS >picture.svg"""
import html
import json
import sys
import zlib

WIDTH, LEFT, ROW, GAP, TOP = 1100, 190, 22, 14, 40
COLOURS = ["#4e79a7", "#59a14f", "#9c755f", "#76b7b2", "#edc948", "#b07aa1", "#86bcb6"]
FIXED = {"active": "#bab0ac", "held": "#f28e2b"}


def colour(name):
    return FIXED.get(name) or COLOURS[zlib.crc32(name.encode()) % len(COLOURS)]


def main():
    path, begin, end = sys.argv[1], float(sys.argv[2]) * 1e3, float(sys.argv[3]) * 1e3
    events = json.load(open(path))["traceEvents"]
    names, threads, order, rows, places = {}, {}, {}, {}, {}
    for e in events:
        if e["ph"] == "M" and e["name"] == "process_name":
            names[e["pid"]] = e["args"]["name"]
        elif e["ph"] == "M" and e["name"] == "process_sort_index":
            order[e["pid"]] = e["args"]["sort_index"]
        elif e["ph"] == "M" and e["name"] == "thread_name":
            threads[e["pid"], e["tid"]] = e["args"]["name"]
        elif e["ph"] == "X" and e["ts"] < end and e["ts"] + e["dur"] > begin:
            rows.setdefault((e["pid"], e["tid"]), []).append(e)
    out, y, last = [], TOP, None

    def x(ts):
        return LEFT + (min(max(ts, begin), end) - begin) / (end - begin) * (WIDTH - LEFT - 10)

    def text(at, y, words, more=""):
        out.append(f'<text x="{at:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>')

    for pid, tid in sorted(rows, key=lambda r: (order.get(r[0], 0), r)):
        if "launch calls" in threads[pid, tid]:
            continue
        if pid != last:
            y += GAP + (0 if last is None else GAP)
            text(8, y - 5, names[pid], 'font-weight="bold"')
            last = pid
        places[pid, tid] = y
        text(20, y + 15, threads[pid, tid])
        out.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - 10}" height="{ROW - 4}" fill="#f4f4f4"/>')
        for e in rows[pid, tid]:
            left, right = x(e["ts"]), x(e["ts"] + e["dur"])
            cut = e.get("args", {}).get("end") == "stopped"
            out.append(f'<rect x="{left:.2f}" y="{y}" width="{max(right - left, 0.6):.2f}" height="{ROW - 4}" '
                       f'fill="{colour(e["name"])}" stroke="{"#d62728" if cut else "white"}" stroke-width="{1.4 if cut else 0.4}">'
                       f'<title>{html.escape(e["name"])} {e["dur"]:.0f} us</title></rect>')
            if right - left > 7 * len(e["name"]):
                text(left + 4, y + 13, e["name"], 'fill="white" font-size="11"')
        y += ROW
    # Who made whom stop.
    arrows = {}
    for e in events:
        if e["ph"] in "stf":
            arrows.setdefault(e["id"], {})[e["ph"]] = e
    for a in arrows.values():
        points = [(x(a[p]["ts"]), places.get((a[p]["pid"], a[p]["tid"]))) for p in "stf"]
        if any(y is None for _, y in points) or not begin < a["t"]["ts"] < end or a["s"]["ts"] < begin:
            continue
        line = " ".join(f"{px:.1f},{py + ROW / 2 - 2:.1f}" for px, py in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="#d62728" stroke-width="1.2" marker-end="url(#head)"/>')
    for i in range(11):
        ts = begin + (end - begin) * i / 10
        out.append(f'<line x1="{x(ts):.1f}" y1="{TOP - 8}" x2="{x(ts):.1f}" y2="{y}" stroke="#ccc" stroke-width="0.5"/>')
        text(x(ts), TOP - 14, f"{ts / 1e3:.1f} ms", 'text-anchor="middle" font-size="11"')
    print(f'<!-- SPDX-License-Identifier: Apache-2.0 -->\n<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" '
          f'font-family="sans-serif" font-size="12"><defs><marker id="head" markerWidth="7" markerHeight="7" refX="6" refY="3" '
          f'orient="auto"><path d="M0,0 L7,3 L0,6 z" fill="#d62728"/></marker></defs>'
          f'<rect width="100%" height="100%" fill="white"/>' + "\n".join(out) + "</svg>")


main()
