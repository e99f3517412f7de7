#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A part of corpus/ for AMD's machines, checked by corpus/amd.py: metadata against the PTX, symbols, disassembly.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1

for file in dense sparse tensor; do
	"$TALLY_NVCC" -arch=compute_80 -O3 -std=c++17 -w -ptx "$TALLY_SOURCE/corpus/cuda/$file.cu" -o $file.ptx 2>nvcc.log ||
		{ cat nvcc.log >&2; fail "nvcc on $file.cu"; }
done
python3 "$TALLY_SOURCE/corpus/amd.py" --targets gfx90a,gfx1100 dense.ptx sparse.ptx tensor.ptx >table.txt || fail "corpus/amd.py"
for target in gfx90a gfx1100; do
	grep -qE "^\| \`$target\` \| ([0-9]+) \| \1 \| 0 " table.txt || { cat table.txt >&2; fail "$target refuses something"; }
done
