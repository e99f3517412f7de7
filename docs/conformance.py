#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/conformance.md from the runner's tables: conformance.py CPU-TABLE GPU-TABLE >conformance.md"""
import re
import sys

HEAD = """# Conformance: kernels x transforms x targets x devices

Made by `docs/conformance.py` from the tables of `build/bin/conformance`; a test fails when it is stale (`ninja conformance_page`
writes it anew after `ctest -R '^conformance$'`). What the runner does is in the [manual](manual.md#for-ci-conformance).

- **targets**: from PTX and from clang's bitcode, original and transformed kernels are lowered and accepted by the target's own tools (ptxas,
  llvm-readelf with its metadata).
- **transforms**: from `ptx`, from `bc` and as what NVIDIA's machines get of PTX, lowered once more (`text`: the stoppable form holds the original's text; `again`: both went through IR), the kernel ran whole, in pieces, stopped at block boundaries and while it ran; after each, every block ran once, and all
  results are equal, bit for bit, to the untransformed run and to the C reference (where the reference is exact; else within its tolerance).
- `yes` passed; `R` refused by name, and why stands below; `-` is no run: a transform that the kernel does not take.
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        text = [line.rstrip("\n") for line in file]
    text = [line for line in text if not line.startswith("device:")]
    columns = text[0].split()[1:]
    rows, reasons = {}, []
    where = 1
    while where < len(text) and text[where].strip():
        name, *cells = text[where].split()
        # Tables of older runners leave cells out that are no runs; those rows say nothing more.
        rows[name] = dict(zip(columns, cells)) if len(cells) == len(columns) else {}
        where += 1
    for line in text[where:]:
        match = re.match(r"(\S+), (\S+): (.*)", line)
        if match:
            reasons.append(match.groups())
    return columns, rows, reasons


def order(target):
    """NVIDIA's by number, then AMD's, whose numbers are hexadecimal."""
    amd = target.startswith("gfx")
    return (amd, int(re.sub(r"[^0-9a-f]", "", target[3:]), 16) if amd or target.startswith("sm_") else 0)


def cell(text):
    return {".": "yes", "~": "-", "": "-", None: "-"}.get(text, text)


def table(columns, rows):
    out = ["| kernel | " + " | ".join(f"`{c}`" for c in columns) + " |",
           "|---" * (len(columns) + 1) + "|"]
    for name, row in rows.items():
        out.append(f"| {name} | " + " | ".join(cell(row.get(c)) for c in columns) + " |")
    return "\n".join(out) + "\n"


def main():
    columns, rows, reasons = read(sys.argv[1])
    gpu_columns, gpu_rows, _ = read(sys.argv[2])
    targets = sorted((c for c in columns if re.match(r"sm_|gfx", c)), key=order)
    runs = [c for c in columns if c.startswith(("ptx", "bc", "text", "again"))]
    # Cases that share a kernel are lowered once.
    print(HEAD)
    print("## Targets\n")
    print(table(targets, {n: r for n, r in rows.items() if any(cell(r.get(t)) != "-" for t in targets)}))
    print("## On the CPU device\n")
    print(table(runs, {n: r for n, r in rows.items() if any(cell(r.get(c)) != "-" for c in runs)}))
    print("## On an NVIDIA H200\n")
    print("The last run on a machine with one (`bench/results/h200/conformance.txt`); CI has none.\n")
    print(table([c for c in gpu_columns if c != "compile"], gpu_rows))
    print("## Why not\n")
    merged = {}
    for name, column, why in reasons:
        why = re.sub(r"^(ptx|bc|text|again): ", "", why)
        why = re.sub(r"^tally-lower: error: ", "", why)
        why = re.sub(r"target (sm|gfx)\w+", "this target", why)
        why = re.sub(r"\S*/(\w+)\.(ptx|bc|cu):\d+:\d+: error: ", "", why)
        what = "x86-64" if column == "compile" else column
        merged.setdefault((name, why), []).append(what)
    names = list(rows)
    for (name, why), where in sorted(merged.items(), key=lambda item: (names.index(item[0][0]), item[0][1])):
        places = sorted(set(where), key=lambda place: (place == "x86-64", order(place)))
        print(f"- {name} ({', '.join(places)}): {why}")


main()
