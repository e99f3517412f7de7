# SPDX-License-Identifier: Apache-2.0
"""A trace as `tally trace` writes it: read, and checked for what must hold in every one."""
import collections
import json
import subprocess


class Trace:
    def __init__(self, path):
        data = open(path, "rb").read()
        if path.endswith(".gz"):
            data = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True).stdout
        elif path.endswith(".zst"):
            data = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout
        whole = json.loads(data)
        self.events = whole["traceEvents"]
        self.about = whole["otherData"]
        self.end = (self.about["end_ns"] - self.about["begin_ns"]) / 1e3
        self.names, self.threads = {}, {}
        for e in self.events:
            if e["ph"] == "M" and e["name"] == "process_name":
                self.names[e["pid"]] = e["args"]["name"]
            if e["ph"] == "M" and e["name"] == "thread_name":
                self.threads[e["pid"], e["tid"]] = e["args"]["name"]
        self.check()

    def check(self):
        rows = collections.defaultdict(list)
        for e in self.events:
            assert e["ph"] in "MXiCstf", e
            assert 0 <= e["ts"] <= self.end + 1, e
            if e["ph"] == "X":
                assert e["dur"] >= 0 and e["ts"] + e["dur"] <= self.end + 1, e
                assert (e["pid"], e["tid"]) in self.threads, e
                rows[e["pid"], e["tid"]].append(e)
        # In a row slices come in the order of time, and none begins before the last one ended.
        for row, slices in rows.items():
            at = 0
            for e in slices:
                assert e["ts"] >= at - 0.002, (self.threads[row], e, at)
                at = e["ts"] + e["dur"]
        # Every arrow has a beginning, goes on, and ends, later and later.
        arrows = collections.defaultdict(list)
        for e in self.events:
            if e["ph"] in "stf":
                arrows[e["id"]].append(e)
        for arrow in arrows.values():
            assert [e["ph"] for e in arrow] == ["s", "t", "f"], arrow
            assert arrow[0]["ts"] <= arrow[1]["ts"] <= arrow[2]["ts"] + 0.002, arrow
            assert self.threads[arrow[0]["pid"], arrow[0]["tid"]] == "active"
            assert self.threads[arrow[1]["pid"], arrow[1]["tid"]] == "held"

    def pid(self, name):
        found = [pid for pid, text in self.names.items() if text.startswith(name + ",")]
        assert len(found) == 1, self.names
        return found[0]

    def row(self, name, thread):
        """The slices of one row of one program."""
        pid = self.pid(name)
        return [e for e in self.events if e["ph"] == "X" and e["pid"] == pid
                and self.threads[pid, e["tid"]] == thread]

    def slices(self, name, kind):
        """All slices of a program's rows whose name ends so."""
        pid = self.pid(name)
        return [e for e in self.events if e["ph"] == "X" and e["pid"] == pid
                and self.threads[pid, e["tid"]].endswith(kind)]

    def instants(self, name, what):
        pid = self.pid(name)
        return [e for e in self.events if e["ph"] == "i" and e["pid"] == pid and e["name"] == what]

    def program(self, name):
        return next(p for p in self.about["programs"] if p["name"] == name)
