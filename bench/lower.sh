#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tally-lower beside llc on the same one-kernel bitcode files, whole processes run in turn: the best
# of 15 runs each in ms, and the ratio (the aim: at most 3 with both transforms).
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
lower=$TALLY_BUILD/bin/tally-lower
nvcc=${TALLY_NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}

# run_once COMMAND...: its time in microseconds goes to $elapsed
run_once() {
	local from=${EPOCHREALTIME/./}
	"$@" >/dev/null 2>&1
	local to=${EPOCHREALTIME/./}
	elapsed=$((to - from))
}

printf '%-16s %-7s %9s %9s %9s %7s %7s\n' kernel target llc plain both plain/llc both/llc
for kernel in vadd matmul_tiled reduce_warp math_library; do
	clang++-22 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 \
		--cuda-path="$(dirname "$(dirname "$nvcc")")" -O2 -std=c++17 -emit-llvm -c \
		"$TALLY_SOURCE/conformance/kernels/$kernel.cu" -o "$scratch/k.bc" 2>/dev/null
	best=(999999999 999999999 999999999)
	for _ in $(seq 15); do
		for k in 0 1 2; do
			case $k in
			0) run_once llc-22 -mcpu=sm_80 "$scratch/k.bc" -o "$scratch/k.s" ;;
			1) run_once "$lower" "$scratch/k.bc" --target sm_80 -o "$scratch/k.ptx" ;;
			2) run_once "$lower" "$scratch/k.bc" --target sm_80 --transform slice,guard -o "$scratch/k.ptx" ;;
			esac
			[ "$elapsed" -lt "${best[$k]}" ] && best[$k]=$elapsed || true
		done
	done
	awk -v n=$kernel -v l=${best[0]} -v p=${best[1]} -v b=${best[2]} 'BEGIN {
		printf "%-16s %-7s %9.1f %9.1f %9.1f %7.2f %7.2f\n", n, "sm_80", l / 1e3, p / 1e3, b / 1e3, p / l, b / l }'
done
