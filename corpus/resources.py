# SPDX-License-Identifier: Apache-2.0
"""resources.py [--pairs] PTXAS-LOG CUBIN: what kernels take, from what `ptxas -v` said and what it wrote: a line each of
kernel, registers, SASS instructions, bytes of spills. With --pairs, of each kernel that has a transformed form beside it:
kernel, registers of both, instructions of both, spills of both."""

import re
import sys
from pathlib import Path

from sass import texts

NOP = 0x918  # the low 12 bits of an instruction of 16 bytes (sm_70 and later): ptxas fills up with these


def resources(text):
    """Kernel: registers, stack, spills, shared memory, of what `ptxas -v` says."""
    found, kernel, stack, spills = {}, None, 0, 0
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '([^']+)'", line):
            kernel = match[1]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spills = int(match[1]), int(match[2]) + int(match[3])
        elif (match := re.search(r"Used (\d+) registers", line)) and kernel:
            shared = re.search(r"(\d+) bytes smem", line)
            found[kernel] = {"registers": int(match[1]), "stack": stack, "spills": spills, "shared": int(shared[1]) if shared else 0}
            kernel, stack, spills = None, 0, 0
    return found


def instructions(cubin):
    """Function: number of SASS instructions, without NOPs."""
    return {name: sum(low & 0xFFF != NOP for low, _ in words) for name, words in texts(cubin)[0].items()}


def pairs(used, sass):
    for kernel, both in ((k.rsplit("$", 1)[0], k) for k in used if "$" in k):
        if kernel in used:
            cells = [[used[k][what] for k in (kernel, both)] for what in ("registers", "spills")]
            cells.insert(1, [sass[kernel], sass[both]])
            yield kernel, *(value for cell in cells for value in cell)


def main():
    *options, log, cubin = sys.argv[1:]
    used, sass = resources(Path(log).read_text()), instructions(cubin)
    rows = pairs(used, sass) if options == ["--pairs"] else ((k, v["registers"], sass[k], v["spills"]) for k, v in used.items())
    for row in sorted(rows):
        print(*row)


if __name__ == "__main__":
    main()
