# SPDX-License-Identifier: Apache-2.0
"""big_ptx.py FOLDER [MB]: the memory that tally-lower takes for a PTX file of 50 MB, whole or with variants, over the file's size. Prints it
and appends it to FOLDER/results.csv and results.jsonl of bench/run.sh."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOUND = 10  # times the input, beside what LLVM needs for a small kernel


def peak(*command):
    """KiB of the largest process that it is or starts; those of parts share the file with it."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    return int(subprocess.run([sys.executable, "-c", code, *map(str, command)], check=True, capture_output=True, text=True).stdout)


def main():
    folder, size = Path(sys.argv[1]), int(sys.argv[2] if len(sys.argv) > 2 else 50) * 1000000
    lower = ROOT / "build/bin/tally-lower"
    with tempfile.TemporaryDirectory() as scratch:
        source, output = Path(scratch) / "big.ptx", Path(scratch) / "out.ptx"
        with open(source, "w") as file:
            subprocess.run([sys.executable, ROOT / "tests/lower/big_ptx.py", str(size)], check=True, stdout=file)
        floor = peak(lower, ROOT / "tests/lower/vector_order.ptx", "--target", "sm_80", "-o", output)
        for transform in ("none", "slice,guard"):
            kib = peak(lower, source, "--target", "sm_80", "--transform", transform, "--jobs", "2", "-o", output)
            value = (kib - floor) * 1024 / source.stat().st_size
            verdict = "ok" if value <= BOUND else "MISS"
            name = f"memory over input; {transform.replace(',', ' and ')}"
            print(f"  {name:<36} {value:8.2f}x  at most {BOUND}x    {verdict:<5} {kib >> 10} MiB for {source.stat().st_size / 1e6:.0f} MB of PTX; "
                  f"a small kernel takes {floor >> 10}")
            with open(folder / "results.csv", "a") as file:
                file.write(f"roundtrip,{name},{value:.6g},x,{BOUND},{verdict},1\n")
            with open(folder / "results.jsonl", "a") as file:
                json.dump({"bench": "roundtrip", "figure": name, "value": value, "unit": "x", "bound": BOUND, "verdict": verdict, "n": 1,
                           "samples": [value]}, file)
                file.write("\n")


main()
