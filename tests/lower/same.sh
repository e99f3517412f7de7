#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same input gives the same bytes, wherever the system puts the program's memory: every form of every target, again and again.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
runs=5
kernels=$TALLY_BUILD/conformance/kernels

[ "$(cat /proc/sys/kernel/randomize_va_space)" != 0 ] || echo "note: addresses are not randomised here" >&2

# same FILE OPTIONS...: every run prints what the first printed
same() {
	local file=$1 run
	shift
	for run in $(seq $runs); do
		"$lower" "$file" --keep-going "$@" -o "same.$run" 2>"same.$run.err" || { cat "same.$run.err" >&2; fail "$file $*"; }
		cmp -s same.1 "same.$run" || fail "$file $*: run $run differs from the first"
		cmp -s same.1.err "same.$run.err" || fail "$file $*: other messages in run $run"
	done
}

shopt -s nullglob
for kernel in barrier_trip_count copy_async matmul_tiled reduce_tree; do
	inputs=("$kernels/$kernel".{bc,ptx})
	for input in "${inputs[@]}"; do
		[ -e "$input" ] || continue
		same "$input" --emit ir --target x86-64 --transform guard
	done
done
for input in "$TALLY_SOURCE"/tests/lower/triton/*.ptx; do
	same "$input" --emit ir --transform slice,guard
	same "$input" --target sm_90a --transform slice,guard,persist
done
input=("$kernels"/barrier_reduce.{ptx,bc})
for form in "x86-64 obj" "x86-64 asm" "x86-64 ir" "gfx90a asm" "gfx90a obj" "gfx90a ir" "sm_80 ptx" "sm_80 ir"; do
	read -r target emit <<<"$form"
	same "${input[0]}" --target "$target" --emit "$emit" --transform slice,guard
	same "${input[0]}" --target "$target" --emit "$emit" -O3
done
same "${input[0]}" --target x86-64 --emit ir --coroutines
echo ok
