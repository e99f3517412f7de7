#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A part of corpus/ there and back: nvcc's PTX of CUB, libcu++, narrow floats, tensor cores and sm_90a, and Triton's. All of it
# lifts and assembles, also with variants; no kernel spills more than the original, has many more registers or many more
# instructions, and on the whole they have as few; loops are no longer, nothing is waited for longer (static.py). (What a GPU
# would show as time: bench/gpu/roundtrip.py.)
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
corpus=$TALLY_SOURCE/corpus/cuda

# usage FILE ARCH NAME: "kernel registers instructions spills" of each kernel, by name; NAME.log and NAME.cubin
usage() {
	"$TALLY_PTXAS" -arch="$2" -v "$1" -o "$3.cubin" 2>"$3.log" || { head -5 "$3.log" >&2; fail "ptxas -arch=$2 on $1"; }
	python3 "$TALLY_SOURCE/corpus/resources.py" "$3.log" "$3.cubin" | LC_ALL=C sort
}

# same FILE ARCH: there and back it costs no more
same() {
	works "$1" --target "$2" --verify -o ours.ptx
	usage "$1" "$2" original >original.txt
	usage ours.ptx "$2" ours >ours.txt
	python3 "$TALLY_SOURCE/tests/lower/static.py" "$1" original ours || fail "$1 costs more"
	diff <(grep -c C7510 original.log) <(grep -c C7510 ours.log) || fail "$1: wgmma is serialised elsewhere (ptxas C7510)"
	[ -s original.txt ] || fail "ptxas names no kernel of $1"
	[ "$(cut -d' ' -f1 original.txt)" = "$(cut -d' ' -f1 ours.txt)" ] || fail "other kernels than $1 has"
	LC_ALL=C join original.txt ours.txt | awk -v file="$1" '
		function worse(what, was, is) { print "FAILED: " file ": " $1 ": " what " " was " -> " is > "/dev/stderr"; bad = 1 }
		{ all++; registers += $5 - $2; instructions += log($6 / $3) }
		$7 > $4 { worse("spills (bytes)", $4, $7) }
		$5 > $2 + 6 && $5 > 1.1 * $2 { worse("registers", $2, $5) }
		$6 > 1.1 * $3 + 6 { worse("instructions", $3, $6) }
		END {
			if (registers > 1.5 * all) worse("registers in the mean", 0, registers / all)
			if (instructions > 0.05 * all) worse("instructions, geometric", 1, exp(instructions / all))
			exit bad
		}' || exit 1
}

# there_and_back FILE ARCH: that, and its variants assemble
there_and_back() {
	same "$@"
	for way in '' --lift; do
		"$lower" "$1" --target "$2" --transform slice,guard --keep-going $way --verify -o variants.ptx 2>/dev/null || fail "slice,guard $way on $1"
		assemble variants.ptx "$2"
	done
}

for file in cub_block dense library narrow sparse tensor; do
	"$TALLY_NVCC" -arch=compute_90 -O3 -std=c++17 -w -ptx "$corpus/$file.cu" -o $file.ptx 2>nvcc.log || { cat nvcc.log >&2; fail "nvcc on $file.cu"; }
	there_and_back $file.ptx sm_90
done
# Kernels of CUB that ptxas squeezes: a radix sort of pairs keeps its second block on an SM.
"$TALLY_NVCC" -arch=compute_90 -O3 -std=c++17 -w -ptx "$TALLY_SOURCE/corpus/programs/cub_device.cu" -o device.ptx 2>nvcc.log ||
	{ cat nvcc.log >&2; fail "nvcc on cub_device.cu"; }
same device.ptx sm_90
"$TALLY_NVCC" -arch=compute_90a -O3 -std=c++17 -w -ptx "$corpus/hopper.cu" -o hopper.ptx 2>nvcc.log || { cat nvcc.log >&2; fail "nvcc on hopper.cu"; }
there_and_back hopper.ptx sm_90a
for file in "$TALLY_SOURCE"/tests/lower/triton/*.ptx; do
	there_and_back "$file" sm_90a
done

# What is portable goes everywhere.
"$TALLY_NVCC" -arch=compute_80 -O3 -std=c++17 -w -ptx "$corpus/dense.cu" -o dense.ptx 2>nvcc.log || { cat nvcc.log >&2; fail "nvcc on dense.cu"; }
for target in sm_75 sm_120 gfx90a gfx1100 x86-64; do
	works dense.ptx --target $target --transform slice,guard -o dense.out
done
echo ok
