#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A part of corpus/ there and back: nvcc's PTX of CUB, libcu++, narrow floats, tensor cores and sm_90a, and Triton's. All of it
# lifts and assembles, also with variants; no kernel has more spills than the original, and few have more registers.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
corpus=$TALLY_SOURCE/corpus/cuda

# usage FILE ARCH: "kernel registers spills" of each kernel, by name
usage() {
	"$TALLY_PTXAS" -arch="$2" -v "$1" -o assembled.cubin 2>ptxas.log || { head -5 ptxas.log >&2; fail "ptxas -arch=$2 on $1"; }
	awk '/Compiling entry function/ { split($0, part, "\047"); name = part[2] }
		/bytes stack frame/ { spills = $5 + $9 }
		/ registers/ && name != "" { match($0, /Used [0-9]+/); print name, substr($0, RSTART + 5, RLENGTH - 5), spills; name = "" }' ptxas.log | sort
}

# there_and_back FILE ARCH
there_and_back() {
	works "$1" --target "$2" --verify -o ours.ptx
	usage "$1" "$2" >original.txt
	usage ours.ptx "$2" >ours.txt
	[ -s original.txt ] || fail "ptxas names no kernel of $1"
	[ "$(cut -d' ' -f1 original.txt)" = "$(cut -d' ' -f1 ours.txt)" ] || fail "other kernels than $1 has"
	join original.txt ours.txt | awk -v file="$1" '
		{ all++; more += $4 > $2 + 8 }
		$5 > $3 { print "FAILED: " file ": " $1 " spills " $5 " bytes, the original " $3 > "/dev/stderr"; bad = 1 }
		END { if (more * 4 > all) { print "FAILED: " file ": " more " of " all " kernels take over 8 registers more" > "/dev/stderr"; bad = 1 }
			exit bad }' || exit 1
	for way in '' --lift; do
		"$lower" "$1" --target "$2" --transform slice,guard --keep-going $way --verify -o variants.ptx 2>/dev/null || fail "slice,guard $way on $1"
		assemble variants.ptx "$2"
	done
}

for file in cub_block library narrow tensor; do
	"$TALLY_NVCC" -arch=compute_90 -O3 -std=c++17 -w -ptx "$corpus/$file.cu" -o $file.ptx 2>nvcc.log || { cat nvcc.log >&2; fail "nvcc on $file.cu"; }
	there_and_back $file.ptx sm_90
done
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
