# SPDX-License-Identifier: Apache-2.0
"""gpu.py [--transform LIST]: what a GPU needs to compare the round trip with the original, in build/corpus/gpu: cubins of each
runnable file of sm_90 as it came and as tally-lower wrote it, how to launch them, and the whole programs (CUB's device-wide
algorithms, Thrust) built twice. bench/gpu/roundtrip.py runs it all."""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
from pathlib import Path

from make import CUDA, HERE, ROOT
from roundtrip import LOWER, PTXAS, machine_of

OUT = ROOT / "build/corpus/gpu"


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"corpus: {' '.join(map(str, command))[:300]}: {(done.stderr or done.stdout).strip()[:2000]}")
    return done.stdout + done.stderr


def both_cubins(path, lower):
    machine = machine_of(path)
    ours = OUT / path.name
    run([PTXAS, f"-arch={machine}", path, "-o", OUT / f"{path.stem}.original.cubin"])
    run([LOWER, path, "--target", machine, "-o", ours, *lower])
    run([PTXAS, f"-arch={machine}", ours, "-o", OUT / f"{path.stem}.ours.cubin"])
    ours.unlink()


def program(source, ours, lower):
    """nvcc's own steps, with tally-lower between cicc and ptxas in `ours`."""
    target = OUT / f"{source.stem}.{'ours' if ours else 'original'}"
    keep = ROOT / f"build/corpus/programs/{target.name}"
    keep.mkdir(parents=True, exist_ok=True)
    text = run([CUDA / "bin/nvcc", "-dryrun", "-keep", "-keep-dir", keep, "-std=c++17", "-O3", "-arch=sm_90", source, "-o", target], cwd=ROOT)
    script = ["set -e"]
    for line in re.findall(r"^#\$ (.*)$", text, re.M):
        if line.startswith("_SPACE_") or line.startswith("rm "):
            continue
        if line.startswith("ptxas ") and ours:
            ptx = f'"{keep}/{source.stem}.ptx"'
            script.append(f"{LOWER} {ptx} --target sm_90 -o {ptx}.ours {' '.join(lower)} && mv {ptx}.ours {ptx}")
        if line.startswith(("ptxas", "fatbinary")):
            line = re.sub(r'"--image3=kind=ptx,[^"]*"', "", line)
        if variable := re.match(r"([A-Z_]+)=\s*(.*?)\s*$", line):  # nvcc's own, of no use but for these two
            if variable[1] not in ("PATH", "CICC_PATH"):
                continue
            line = f'export {variable[1]}="{variable[2]}"'
        script.append(line)
    (keep / "steps.sh").write_text("\n".join(script) + "\n")
    run(["bash", keep / "steps.sh"], cwd=ROOT)
    subprocess.run(["strip", target])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.error = lambda what: parser.exit(1, "corpus/gpu.py: error: %s (see --help)\n" % what)
    parser.add_argument("--lower", default="", help="more options for tally-lower")
    parser.add_argument("--programs", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    lower = options.lower.split()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    ptx, files = ROOT / "build/corpus/ptx", []
    for launches in ptx.glob("*.launches"):
        lines = [line for line in launches.read_text().splitlines() if re.search(r"_sm90a?\.ptx ", line)]
        (OUT / launches.name).write_text("\n".join(lines) + "\n")
        files += {line.split()[0] for line in lines}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda f: both_cubins(ptx / f, lower), sorted(files)))
        if options.programs:
            list(pool.map(lambda job: program(*job, lower), [(s, o) for s in sorted((HERE / "programs").glob("*.cu")) for o in (False, True)]))
    shutil.copy(ROOT / "build/bin/gpu_roundtrip", OUT)


if __name__ == "__main__":
    main()
