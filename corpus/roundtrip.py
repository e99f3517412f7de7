# SPDX-License-Identifier: Apache-2.0
"""roundtrip.py [--only WORD] [--transform LIST] [--times N] [--static]: each file of the corpus through tally-lower and ptxas, beside the
original through ptxas (with --transform the form that it makes; with --lower --lift also that through IR): lifted and assembled or not, registers, spills, stack, shared memory and SASS instructions of each kernel,
and the time that tally-lower takes beside ptxas's. Writes build/corpus/roundtrip.json and a page (--page FILE). With --static a line for
each kernel of what its code costs without a GPU (sass.py), those marked that lose more than 10 %; exit status 1 where there is one."""

import argparse
import concurrent.futures
import json
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from make import CUDA, ROOT
from resources import resources
from sass import block_sizes, costs, estimate, resident

LOWER = ROOT / "build/bin/tally-lower"
PTXAS = CUDA / "bin/ptxas"


def machine_of(path):
    machine = path.stem.rsplit("_sm", 1)[1]
    return "sm_90a" if machine == "90" and path.name.startswith("triton") else "sm_" + machine


def timed(command):
    """Return code, stderr, and the CPU seconds of the command: others' load on this machine is not in them."""
    read, write = os.pipe()
    child = os.posix_spawn(command[0], command, os.environ,
                           file_actions=[(os.POSIX_SPAWN_DUP2, write, 2), (os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_CLOSE, read)])
    os.close(write)
    with os.fdopen(read, errors="replace") as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def assemble(ptx, machine, cubin):
    return timed([str(PTXAS), f"-arch={machine}", "-v", str(ptx), "-o", str(cubin)])


def chip_of(machine):
    return int(re.sub(r"\D", "", machine))


def both_ways(was, code, is_, code_ours, threads, chip):
    """A kernel as it came and as it is now: what ptxas said and what the code costs."""
    sides = [used | (found or {"sass": None}) for used, found in ((was, code), (is_, code_ours))]
    for side in sides:
        if side["sass"]:
            side |= {"blocks": resident(side, threads, chip), "estimate": estimate(side, side, threads, chip)}
    return dict(zip(("original", "ours"), sides))


def round_trip(path, options, folder):
    machine = machine_of(path)
    ours, cubin, original = folder / path.name, folder / (path.stem + ".ours.cubin"), folder / (path.stem + ".original.cubin")
    row = {"file": path.name, "machine": machine, "size": path.stat().st_size, "kernels": {}}
    lower = [str(LOWER), str(path), "--target", machine, "-o", str(ours)] + options.lower.split()
    if options.transform:
        lower += ["--transform", options.transform, "--keep-going"]
    code, text, seconds, memory = timed(lower)
    row |= {"lifted": not code, "lower_s": [seconds], "lower_kib": memory}
    if code:
        return row | {"error": text.strip()[:300]}
    row["size_ours"] = ours.stat().st_size
    code, text, seconds, memory = assemble(ours, machine, cubin)
    row |= {"assembled": not code, "ptxas_ours_s": [seconds]}
    if code:
        return row | {"error": text.strip()[:300]}
    after = resources(text)
    code, text, seconds, memory = assemble(path, machine, original)
    row |= {"ptxas_s": [seconds], "ptxas_kib": memory}
    if code:
        return row | {"error": "the original: " + text.strip()[:300]}
    before = resources(text)
    code, code_ours, threads = costs(original), costs(cubin), block_sizes(path.read_text(errors="replace"))
    suffix = "$" + "_".join(w for w in ("slice", "guard") if w in options.transform.split(",")) if options.transform else ""
    for kernel, was in before.items():  # with --transform: the form that it makes; kernels that run whole have none
        if kernel + suffix in after:
            row["kernels"][kernel] = both_ways(was, code.get(kernel), after[kernel + suffix], code_ours.get(kernel + suffix),
                                               threads.get(kernel, 256), chip_of(machine))
    for _ in range(options.times - 1):
        row["lower_s"].append(timed(lower)[2])
        row["ptxas_s"].append(assemble(path, machine, original)[2])
    return row


def geometric(values):
    values = [v for v in values if v > 0]
    return math.exp(statistics.fmean(map(math.log, values))) if values else 0


def summary(rows):
    kernels = [k for r in rows for k in r["kernels"].values() if "registers" in k["ours"]]
    ratio = [statistics.median(r["lower_s"]) / statistics.median(r["ptxas_s"]) for r in rows if r.get("ptxas_s")]
    sass = [k["ours"]["sass"] / k["original"]["sass"] for k in kernels if k["original"]["sass"] and k["ours"]["sass"]]
    return {
        "files": len(rows), "lifted": sum(r["lifted"] for r in rows), "assembled": sum(r.get("assembled", False) for r in rows),
        "kernels": len(kernels), "sass_geometric": geometric(sass), "sass_median": statistics.median(sass), "sass_worst": max(sass),
        "registers_mean_difference": statistics.fmean(k["ours"]["registers"] - k["original"]["registers"] for k in kernels),
        "spilling_original": sum(k["original"]["spills"] > 0 for k in kernels), "spilling_ours": sum(k["ours"]["spills"] > 0 for k in kernels),
        "stack_more": sum(k["ours"]["stack"] > k["original"]["stack"] for k in kernels),
        "time_median": statistics.median(ratio), "time_worst": max(ratio),
    }


WORSE = 1.1


def losses(both):
    """What a kernel has lost more of than 10 %: the estimate as a whole, instructions of its innermost loops, and any spill."""
    was, is_ = both["original"], both["ours"]
    if not was["sass"] or not is_["sass"]:
        return []
    found = [f"estimate {is_['estimate'] / was['estimate']:.2f}"] if is_["estimate"] > WORSE * was["estimate"] else []
    if is_["issued"] > WORSE * was["issued"]:
        found.append(f"issued {is_['issued'] / was['issued']:.2f}")
    if is_["spills"] > was["spills"]:
        found.append(f"spills {was['spills']} -> {is_['spills']}")
    return found


def static(rows):
    """Prints a line a kernel; the number of those that lose."""
    every = [(row["file"], kernel, both) for row in rows for kernel, both in row["kernels"].items() if both["original"]["sass"] and both["ours"]["sass"]]
    bad = 0
    for file, kernel, both in every:
        cells = [f"{what} {both['original'][what]}" + (f"->{both['ours'][what]}" if both["ours"][what] != both["original"][what] else "")
                 for what in ("registers", "blocks", "spills", "sass", "inner", "issued", "alone", "memory", "hot")]
        lost = losses(both)
        bad += bool(lost)
        print(f"{'WORSE (' + ', '.join(lost) + ') ' if lost else ''}{file} {kernel}: {', '.join(cells)}")
    ratios = [{what: both["ours"][what] / both["original"][what] for what in ("estimate", "issued", "alone")} for _, _, both in every]
    means = ", ".join(f"{what} {geometric([r[what] for r in ratios]):.3f}" for what in ("estimate", "issued", "alone"))
    print(f"{len(every)} kernels, of the original's in the geometric mean: {means}; worst estimate {max(r['estimate'] for r in ratios):.2f}; {bad} worse by more than 10 %")
    return bad


def page(rows, total, transform):
    out = [f"{total['files']} files: {total['lifted']} lifted, {total['assembled']} accepted by ptxas. {total['kernels']} kernels: SASS instructions "
           f"{total['sass_geometric']:.3f} of the original's in the geometric mean (median {total['sass_median']:.3f}, worst {total['sass_worst']:.2f}); "
           f"registers {total['registers_mean_difference']:+.1f} in the mean; {total['spilling_original']} spill as they came, {total['spilling_ours']} after. "
           f"tally-lower's CPU time is {total['time_median']:.2f} of ptxas's in the median (worst {total['time_worst']:.2f}).", "",
           "| file | kernel | registers | spills (bytes) | stack | shared | SASS | tally-lower / ptxas (ms) |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        time = f"{statistics.median(row['lower_s']) * 1e3:.0f} / {statistics.median(row['ptxas_s']) * 1e3:.0f}" if row.get("ptxas_s") else row.get("error", "")
        for kernel, both in row["kernels"].items():
            cells = [f"{both['original'][w]} → {both['ours'].get(w, '-')}" if both["original"][w] != both["ours"].get(w) else str(both["original"][w])
                     for w in ("registers", "spills", "stack", "shared", "sass")]
            name = kernel if len(kernel) < 40 else kernel[:18] + "…" + kernel[-18:]
            out.append(f"| {row['file']} | {name} | " + " | ".join(cells) + f" | {time} |")
            time = ""
        if not row["kernels"]:
            out.append(f"| {row['file']} | | | | | | | {time} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.error = lambda what: parser.exit(1, "corpus/roundtrip.py: error: %s (see --help)\n" % what)
    parser.add_argument("--only", default="")
    parser.add_argument("--transform", default="")
    parser.add_argument("--lower", default="", help="more options for tally-lower")
    parser.add_argument("--times", type=int, default=1, help="how often to time")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--static", action="store_true", help="show what each kernel's code costs")
    parser.add_argument("--worst", type=int, default=15, help="show so many kernels")
    options = parser.parse_args()
    folder = ROOT / "build/corpus/roundtrip"
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted(p for p in (ROOT / "build/corpus/ptx").glob("*.ptx") if re.search(options.only, p.name))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda p: round_trip(p, options, folder), files))
    for row in rows:
        if "error" in row:
            print(f"{row['file']}: {row['error']}")
    total = summary(rows)
    (ROOT / "build/corpus/roundtrip.json").write_text(json.dumps({"total": total, "rows": rows}, indent=1))
    if options.page:
        options.page.write_text(page(rows, total, options.transform))
    if options.static:
        bad = static(rows)
        sys.exit(1 if bad or total["assembled"] < total["files"] else 0)
    every = [(b["ours"]["sass"] / b["original"]["sass"], r["file"], k, b) for r in rows for k, b in r["kernels"].items() if b["ours"].get("sass")]
    for ratio, file, kernel, both in sorted(every, key=lambda e: -e[0])[: options.worst]:
        print(f"{ratio:.3f} {file} {kernel[-40:]}: " + ", ".join(f"{w} {both['original'][w]}->{both['ours'].get(w)}" for w in ("registers", "spills", "sass", "inner", "issued", "alone")))
    print(json.dumps(total))
    sys.exit(0 if total["assembled"] == total["files"] else 1)


if __name__ == "__main__":
    main()
