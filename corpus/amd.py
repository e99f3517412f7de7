# SPDX-License-Identifier: Apache-2.0
"""amd.py [--only REGEX] [--targets LIST] [--page FILE] [FILE...]: PTX and bitcode (the corpus) through tally-lower for AMD's machines, with
slice and guard; each code object is disassembled, and its metadata compared with what the PTX says: the kernels, their arguments,
their shared memory, the size of blocks, the width of waves. Exit status 1 when anything is wrong; refusals by name are counted."""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("TALLY_BUILD", ROOT / "build"))
LOWER = BUILD / "bin/tally-lower"
TARGETS = ["gfx906", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"]
HIDDEN = 256  # bytes of hidden arguments of code object version 5
LAUNCH = 32   # struct tally_launch, the last argument of a variant
SIZES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4,
         "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16}
# What the library adds: a word for barrier reductions, 16 barriers of 16 bytes.
OWN_SHARED = 16 + 256


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace")


def up(offset, alignment):
    return (offset + alignment - 1) // alignment * alignment


def entries(text):
    """Kernel: bytes of its parameters, and the most threads of a block that it says."""
    found = {}
    for match in re.finditer(r"\.entry\s+([\w$]+)\s*(\((.*?)\))?(.*?)\{", text, re.S):
        offset = 0
        for param in re.findall(r"\.param\s+([^,]*)", match[3] or ""):
            words = re.match(r"(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr(?:\s+\.\w+)*(?:\s+\.align\s+\d+)?)?\s+[\w$]+(?:\[(\d+)\])?", param.strip())
            size = SIZES[words[2]]
            offset = up(offset, int(words[1] or size)) + size * int(words[3] or 1)
        threads = 1024
        for word in ("maxntid", "reqntid"):
            if numbers := re.search(rf"\.{word}\s+([\d, \t]+)", match[4]):
                threads = 1
                for number in numbers[1].split(","):
                    threads *= int(number)
        found[match[1]] = {"arguments": offset, "threads": min(threads, 1024)}
    return found


def shared(text):
    """The least that any kernel's shared variables can take together is not known from the text; the most is."""
    total = 0
    for match in re.finditer(r"^\s*\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+[\w$]+((?:\[\d+\])*)", text, re.M):
        size = SIZES[match[2]]
        for number in re.findall(r"\[(\d+)\]", match[3]):
            size *= int(number)
        total = up(total, int(match[1] or SIZES[match[2]])) + size
    return total


def notes(path):
    """Kernel: its metadata, of what llvm-readelf prints as YAML."""
    kernels, one = {}, None
    for line in run("llvm-readelf-22", "--notes", path).stdout.splitlines():
        if re.match(r"  - \.", line):
            one = {"hidden": []}
        if one is None:
            continue
        if match := re.match(r"    (?:- )?\.(\w+):\s*(.*)|  - \.(\w+):\s*(.*)", line):
            key, value = match[1] or match[3], match[2] if match[1] else match[4]
            one[key] = value.strip("'")
            if key == "name":
                kernels[one["name"]] = one
        elif match := re.match(r"\s+\.value_kind:\s*(hidden_\w+)", line):
            one["hidden"].append(match[1])
        elif match := re.match(r"\s+(?:- )?\.offset:\s*(\d+)", line):
            one.setdefault("offsets", []).append(int(match[1]))
    return kernels


def check(path, target, expected, most_shared, whole):
    """What is wrong with a code object, as lines. `whole` names the kernels that have no variants."""
    wrong, kernels = [], notes(path)
    wave = "32" if target.startswith("gfx1") else "64"
    for name, k in kernels.items():
        base = name.split("$")[0] if name.split("$")[0] in expected else name
        bytes_ = int(k["kernarg_segment_size"])
        if want := expected.get(base):
            arguments = up(want["arguments"], 8) + LAUNCH if name != base else want["arguments"]
            if bytes_ not in (up(arguments, 4), up(arguments, 8), up(arguments, 8) + HIDDEN):
                wrong.append(f"{name}: {bytes_} bytes of arguments, not {up(arguments, 8) + HIDDEN}")
            if int(k["max_flat_workgroup_size"]) != want["threads"]:
                wrong.append(f"{name}: blocks of {k['max_flat_workgroup_size']} threads, not {want['threads']}")
        elif expected:
            wrong.append(f"{name}: not in the PTX")
        if k["wavefront_size"] != wave:
            wrong.append(f"{name}: waves of {k['wavefront_size']}")
        if most_shared is not None and int(k["group_segment_fixed_size"]) > most_shared + OWN_SHARED:
            wrong.append(f"{name}: {k['group_segment_fixed_size']} bytes of shared memory, at most {most_shared}")
        if int(k["group_segment_fixed_size"]) > 65536:
            wrong.append(f"{name}: {k['group_segment_fixed_size']} bytes of shared memory")
        if k.get("symbol") != name + ".kd":
            wrong.append(f"{name}: symbol {k.get('symbol')}")
        if int(k["sgpr_count"]) > 112 or int(k["vgpr_count"]) > 512:
            wrong.append(f"{name}: {k['sgpr_count']} scalar, {k['vgpr_count']} vector registers")
        if "$" not in name and name not in whole and name + "$slice_guard" not in kernels:
            wrong.append(f"{name}: no variant")
    symbols = run("llvm-readelf-22", "--dyn-syms", "-W", path).stdout
    for line in symbols.splitlines():
        words = line.split()
        if len(words) == 8 and words[6] == "UND" and words[7]:
            wrong.append(f"undefined symbol {words[7]}")
    for name in kernels:
        if not re.search(rf"OBJECT\s+GLOBAL\s+PROTECTED\s+\d+ {re.escape(name)}\.kd$", symbols, re.M):
            wrong.append(f"{name}: no descriptor among the symbols")
    code = run("llvm-objdump-22", "-d", path)
    if code.returncode or "<unknown>" in code.stdout:
        wrong.append("llvm-objdump reads no instructions there")
    return wrong


def one(job):
    path, target, folder = job
    text = path.read_text() if path.suffix == ".ptx" else ""
    expected, out = entries(text), Path(folder) / f"{path.stem}.{target}.hsaco"
    row = {"file": path.name, "target": target, "wrong": [], "refused": {}, "kernels": 0, "asked": len(expected), "scratch": 0, "spills": 0}
    done = run(LOWER, path, "--target", target, "--transform", "slice,guard", "--keep-going", "--timeout", 300, "-o", out)
    lines = done.stderr.strip().splitlines()
    for line in lines:
        if match := re.match(r"tally-lower: warning: kernel '([^']+)' left out: (.*)", line):
            row["refused"][match[1]] = match[2]
        elif match := re.search(r"error: kernel '([^']+)' (.*)", line):
            row["refused"][match[1]] = match[2]
        elif "stays whole" not in line:
            row["wrong"].append(line)
    if done.returncode:
        if len(row["refused"]) < max(1, len(expected)):
            row["wrong"].append(f"status {done.returncode}, and not all kernels are refused")
        return row
    row["wrong"] += check(out, target, expected, shared(text) if expected else None, {re.search("kernel '([^']+)'", l)[1] for l in lines if "stays whole" in l})
    kernels = {n: k for n, k in notes(out).items() if "$" not in n}
    row["kernels"], row["scratch"] = len(kernels), sum(int(k["private_segment_fixed_size"]) > 0 for k in kernels.values())
    row["spills"] = sum(int(k["vgpr_spill_count"]) > 0 for k in kernels.values())
    row["wrong"] += [f"{n}: neither there nor refused" for n in expected if n not in kernels and n not in row["refused"]]
    out.unlink()
    return row


def reason(text):
    """A refusal without what differs from kernel to kernel."""
    text = re.sub(r"'(\S+?)( at [^']*)?'", r"`\1`", text)
    text = re.sub(r"^only nvidia has `([a-z_.:0-9]+).*", r"only nvidia has `\1`", text)
    text = re.sub(r", which target gfx\w+ does not have", "", text)
    return re.sub(r"^kernel `[^`]*` ", "", text).strip()


def page(rows, targets):
    out = ["| target | kernels | lowered | refused by name | with scratch memory | that spill |", "|---|---|---|---|---|---|"]
    for target in targets:
        own = [r for r in rows if r["target"] == target]
        kernels, refused = sum(r["kernels"] for r in own), sum(len(r["refused"]) for r in own)
        out.append(f"| `{target}` | {kernels + refused} | {kernels} | {refused} | {sum(r['scratch'] for r in own)} | {sum(r['spills'] for r in own)} |")
    out += ["", "| refused because | kernels | targets |", "|---|---|---|"]
    why = collections.defaultdict(lambda: (set(), set()))
    for row in rows:
        for kernel, text in row["refused"].items():
            why[reason(text)][0].add((row["file"], kernel))
            why[reason(text)][1].add(row["target"])
    for text, (kernels, where) in sorted(why.items(), key=lambda w: -len(w[1][0])):
        where = "all" if len(where) == len(targets) else ", ".join(t for t in targets if t in where)
        out.append(f"| {text} | {len(kernels)} | {where} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.error = lambda what: parser.exit(1, "corpus/amd.py: error: %s (see --help)\n" % what)
    parser.add_argument("files", nargs="*", type=Path, help="default: all of build/corpus")
    parser.add_argument("--only", default="")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    targets = options.targets.split(",")
    files = options.files or sorted((ROOT / "build/corpus/ptx").glob("*.ptx")) + sorted((ROOT / "build/corpus/bitcode").glob("*.bc"))
    files = [f for f in files if re.search(options.only, f.name)]
    if not files:
        sys.exit("amd.py: no files (python3 corpus/make.py makes the corpus)")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(one, [(f, t, folder) for f in files for t in targets]))
    wrong = [(r["file"], r["target"], line) for r in rows for line in r["wrong"]]
    for file, target, line in wrong:
        print(f"{file} {target}: {line}", file=sys.stderr)
    text = f"{len(files)} files.\n\n" + page(rows, targets)
    if options.page:
        options.page.write_text(text)
    print(text, end="")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
