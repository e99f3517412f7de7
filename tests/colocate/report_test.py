# SPDX-License-Identifier: Apache-2.0
"""bench/colocate without a GPU: plan, arrivals, results that are read again, report. Figures are known beforehand."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ.get("TALLY_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(SOURCE, "bench", "colocate")
sys.path.insert(0, FOLDER)

import report
import run
from arrivals import TRACES, arrivals
from matrix import PRESETS, Cell, Solo, groups, key

SLOWER = {"alone": 1, "time-slicing": 3, "mps": 9, "mps-priority": 4, "tally-launch": 1.5, "tally": 1.25, "tally-opaque": 1.125}


def results(preset="quick"):
    """What run.py would have written had every system made a server slower by SLOWER."""
    for group in groups(PRESETS[preset]):
        for item in group:
            row = dict(item._asdict(), kind=type(item).__name__.lower(), key=key(item), ok=True, trainer_per_s=10.0)
            if isinstance(item, Cell):
                slower = SLOWER[item.system]
                row.update(seconds=4.0, n=400, unserved=int(item.system == "mps"), tally={"stops": 80} if item.system == "tally" else {})
                row.update(p50_us=100 * slower, p99_us=200 * slower, max_us=400 * slower, trainer_per_s=None if slower == 1 else 4.5)
            yield row


class Colocate(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.scratch.name, "colocate.jsonl")

    def tearDown(self):
        self.scratch.cleanup()

    def write(self, rows):
        with open(self.path, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def test_plan(self):
        for name, plan in PRESETS.items():
            cells = [item for group in groups(plan) for item in group]
            self.assertEqual(len(cells), len(set(map(key, cells))), "a key twice")
            combinations = 1
            for part in ("servers", "trainers", "loads", "traces", "systems"):
                combinations *= len(plan[part])
            self.assertEqual(sum(isinstance(c, Cell) for c in cells), combinations * plan["repeats"])
            for group in groups(plan):
                self.assertEqual(len({item[:4] if isinstance(item, Cell) else item[0] for item in group}), 1, "a group of two kinds")
            firsts = {group[0].system for group in groups(plan) if isinstance(group[0], Cell)}
            self.assertEqual(firsts, set(plan["systems"]), "the order of systems does not turn")

    def test_arrivals(self):
        spread = {}
        for trace in TRACES:
            self.assertEqual(arrivals(trace, 200, 5, 1), arrivals(trace, 200, 5, 1))
            self.assertNotEqual(arrivals(trace, 200, 5, 1), arrivals(trace, 200, 5, 2))
            gaps = []
            for seed in range(40):
                times = arrivals(trace, 200, 5, seed)
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[0], 0)
                gaps += [b - a for a, b in zip(times, times[1:])]
            self.assertAlmostEqual(1 / statistics.mean(gaps), 200, delta=10)
            spread[trace] = statistics.pstdev(gaps) / statistics.mean(gaps)
        self.assertAlmostEqual(spread["poisson"], 1, delta=0.1)
        self.assertGreater(spread["bursty"], 1.3)

    def test_rate(self):
        every = [n * 0.5 for n in range(20)]
        self.assertAlmostEqual(run.rate(every, 1.1, 3.3), 2)
        self.assertAlmostEqual(run.rate([0, 1, 5], 1, 5), 0.25)
        self.assertAlmostEqual(run.rate([0, 1, 2], 0, 4), 0.5)  # stood still from 2 on
        self.assertEqual(run.rate([3.0], 0, 1), 0)

    def test_resume(self):
        rows = list(results())
        rows[3]["ok"] = False
        self.write(rows[:10])
        with open(self.path, "a") as file:
            file.write('{"kind": "cell", "key": "torn')
        found = run.Results(self.path)
        self.assertEqual(len(found.done), 9)
        plan = [item for group in groups(PRESETS["quick"]) for item in group]
        self.assertEqual(len([item for item in plan if found.left(item)]), len(plan) - 9)
        found.add(**rows[3])  # fails a second time: given up
        self.assertFalse(found.left(next(item for item in plan if key(item) == rows[3]["key"])))
        found.add(**rows[10])
        again = run.Results(self.path)
        self.assertEqual(len(again.done), 10)
        self.assertEqual(again.tries, {rows[3]["key"]: 2})

    def test_report(self):
        self.write(results())
        table = report.pairs(report.read(self.path))
        self.assertEqual(len(table), 6)
        for system, figures in report.summary(table).items():
            half = figures["half"]
            for field in ("p50_mean", "p99_mean", "p99_max", "max_mean"):
                self.assertAlmostEqual(half[field], SLOWER[system])
            self.assertAlmostEqual(half["rate_mean"], 0.45)
            self.assertAlmostEqual(half["rate_of_left_mean"], 0.9)
            self.assertAlmostEqual(half["stops_per_s"], 20 if system == "tally" else 0)
            self.assertEqual(half["cells_unserved"], 6 if system == "mps" else 0)
        text = report.markdown(table, report.summary(table))
        self.assertIn("| tally | 1.25x | 1.25x | 1.25x | 1.25x | 0.45 | 0.90 | 20.00 | 0 |", text)
        self.assertIn("9.00x* / 0.45", text)

    def test_command(self):
        self.write(results())
        script = [sys.executable, "-B", os.path.join(FOLDER, "report.py"), self.path]
        done = subprocess.run(script, stdout=subprocess.PIPE, check=True)
        self.assertIn(b"| tally | 1.25x", done.stdout)
        files = os.listdir(self.scratch.name)
        self.assertEqual(sorted(files), ["colocate.json", "colocate.jsonl", "colocate.md", "colocate.svg"])
        elsewhere = os.path.join(self.scratch.name, "not", "there")
        subprocess.run(script + ["--output", elsewhere], stdout=subprocess.DEVNULL, check=True)
        self.assertEqual(sorted(os.listdir(elsewhere)), ["colocate.json", "colocate.md", "colocate.svg"])
        self.write([])
        done = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_programs_are_python(self):
        for name in ("models", "server", "trainer", "worker"):  # need PyTorch to run
            with open(os.path.join(FOLDER, name + ".py")) as file:
                compile(file.read(), name, "exec")


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(stream=sys.stderr))
