# SPDX-License-Identifier: Apache-2.0
"""static.py PTX ORIGINAL OURS: of ORIGINAL.cubin and OURS.cubin, with what `ptxas -v` said of them in .log: no kernel's innermost
loops have over 5 % more instructions, none issues over 10 % more or is estimated to take over 8 % more (corpus/sass.py), and all
of them together no more than before."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "corpus"))
from resources import resources  # noqa: E402
from sass import block_sizes, costs, estimate  # noqa: E402


def main():
    ptx, *names = sys.argv[1:]
    code = [costs(name + ".cubin") for name in names]
    used = [resources(Path(name + ".log").read_text()) for name in names]
    threads, ratios, bad = block_sizes(Path(ptx).read_text()), [], False
    for kernel in used[0]:
        was, is_ = (c[kernel] for c in code)
        size = threads.get(kernel, 256)
        ratio = estimate(is_, used[1][kernel], size, 90) / estimate(was, used[0][kernel], size, 90)
        ratios.append(ratio)
        for what, least, most in (("inner", 3, 1.05), ("issued", 8, 1.1)):
            if is_[what] > most * was[what] + least:
                print(f"FAILED: {ptx}: {kernel}: {what} {was[what]} -> {is_[what]}", file=sys.stderr)
                bad = True
        if ratio > 1.08:
            print(f"FAILED: {ptx}: {kernel}: estimate {ratio:.2f}", file=sys.stderr)
            bad = True
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    if mean > 1.02:
        print(f"FAILED: {ptx}: estimate {mean:.3f} in the geometric mean", file=sys.stderr)
    sys.exit(bad or mean > 1.02 or not ratios)


main()
