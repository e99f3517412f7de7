#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/compatibility.md: the steps of steps.py, with the last result that each has among the results.

--check: changes nothing, and fails where the table is not what it would write.
"""
import json
import os
import sys

from steps import STEPS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "docs", "compatibility.md")
RESULTS = os.path.join(ROOT, "bench", "results", "h200", "compat.jsonl")
BEGIN, END = "<!-- table: tests/gpu/table.py -->\n", "<!-- end of table -->\n"
VERDICTS = {"PASS": "works", "FAIL": "**fails**", "SKIP": "not run"}


def last_results():
    results = {}
    if os.path.exists(RESULTS):
        with open(RESULTS) as file:
            for line in file:
                row = json.loads(line)
                if row["device"] == "cuda":
                    results[row["name"]] = row
    return results


def table():
    results = last_results()
    lines = ["| step | what | on an H200 | without a GPU (CI) |", "|---|---|---|---|"]
    for step in STEPS:
        row = results.get(step.name)
        said = "not run yet" if not row else "%s: %s (%s)" % (VERDICTS[row["verdict"]], row["detail"].replace("|", "\\|"), row["time"][:10])
        cpu = "`gpu_cpu_device`" if step.cpu is True else "`%s`" % step.cpu if step.cpu and " " not in step.cpu else step.cpu or "needs a GPU"
        lines.append("| `%s` | %s | %s | %s |" % (step.name, step.what, said, cpu))
    return "\n".join(lines) + "\n"


def main():
    with open(PAGE) as file:
        page = file.read()
    before, rest = page.split(BEGIN)
    fresh = before + BEGIN + table() + END + rest.split(END)[1]
    if fresh == page:
        return
    if "--check" in sys.argv:
        sys.exit("docs/compatibility.md is not what its results say: run tests/gpu/table.py")
    with open(PAGE, "w") as file:
        file.write(fresh)


if __name__ == "__main__":
    main()
