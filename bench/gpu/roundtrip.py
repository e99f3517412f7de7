# SPDX-License-Identifier: Apache-2.0
"""roundtrip.py FOLDER [OUTPUT]: on a machine with an NVIDIA GPU, compares the corpus as it came with what tally-lower made of it:
results bit for bit, and speed. FOLDER is what corpus/gpu.py made. Kernels run in turns inside one process, the whole programs as
processes in turns. Writes OUTPUT/roundtrip.jsonl and prints a summary; fails where results differ."""

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 3


def kernels(folder):
    """One process a file: what an illegal address leaves of a context is of no use to the next kernel."""
    rows = []
    lines = [line for plan in sorted(folder.glob("*.launches")) for line in plan.read_text().splitlines() if line]
    for file in dict.fromkeys(line.split()[0] for line in lines):
        try:
            done = subprocess.run([folder / "gpu_roundtrip", folder, file + " "], capture_output=True, text=True, timeout=60)
            rows += [json.loads(line) for line in done.stdout.splitlines()]
            if done.returncode and not any("error" in row for row in rows):
                rows.append({"kernel": file, "error": f"status {done.returncode}: {done.stderr.strip()}"})
        except subprocess.TimeoutExpired:
            rows.append({"kernel": file, "error": "does not end"})
    return rows


def programs(folder):
    rows = []
    for original in sorted(folder.glob("*.original")):
        times, hashes, failed = {}, {}, ""
        for _ in range(ROUNDS):
            for way in ("original", "ours"):
                done = subprocess.run([original.with_suffix("." + way)], capture_output=True, text=True, timeout=120)
                failed = failed or done.stderr.strip()
                for line in map(json.loads, done.stdout.splitlines()):
                    times.setdefault(line["name"], {}).setdefault(way, []).append(line["us"])
                    hashes.setdefault(line["name"], {}).setdefault(way, set()).add(line["hash"])
        if failed:
            rows.append({"kernel": original.stem, "error": failed})
        for name, both in times.items():
            if set(both) == {"original", "ours"}:
                us = [statistics.median(both[way]) for way in ("original", "ours")]
                results = hashes[name]
                rows.append({"file": original.stem, "kernel": name, "equal": len(set.union(*results.values())) == 1,
                             "repeats": len(results["original"]) == 1, "wrote": True, "us": us, "speed": us[0] / us[1]})
            else:
                rows.append({"kernel": f"{original.stem} {name}", "error": "did not run both ways"})
    return rows


def main():
    folder = Path(sys.argv[1]).resolve()
    output = Path(sys.argv[2] if len(sys.argv) > 2 else folder)
    output.mkdir(parents=True, exist_ok=True)
    rows = kernels(folder) + programs(folder)
    (output / "roundtrip.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    good = [r for r in rows if "error" not in r]
    restless = [r for r in good if not r["repeats"]]  # the original differs from itself: no other way can be held to it
    wrong = [r for r in good if not r["equal"] and r["repeats"]]
    for row in [r for r in rows if "error" in r] + wrong:
        print("FAILED", json.dumps(row))
    for row in sorted(good, key=lambda r: r["speed"])[:25]:
        print(f"{row['speed']:.3f} {row['us'][0]:10.2f} -> {row['us'][1]:10.2f} us  {row.get('registers', '')} {row['file']} {row['kernel']}")
    speeds = [r["speed"] for r in good]
    print(json.dumps({"kernels": len(rows), "errors": len(rows) - len(good), "unequal": len(wrong), "differ_from_themselves": [f"{r['file']} {r['kernel']}" for r in restless],
                      "wrote_nothing": sum(not r["wrote"] for r in good),
                      "speed_geometric": math.exp(statistics.fmean(map(math.log, speeds))), "worst": min(speeds), "below_0.97": sum(s < 0.97 for s in speeds),
                      "below_0.90": sum(s < 0.90 for s in speeds)}))
    sys.exit(1 if wrong or len(good) < len(rows) else 0)


main()
