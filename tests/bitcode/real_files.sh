#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Device code as clang writes it, optimised or not, with its device libraries or without: CUDA and
# HIP, bare and inside programs. All of it lifts and keeps the contract, or is refused by name.
set -euo pipefail
lift=$TALLY_BUILD/tests/lift_file
here=$TALLY_SOURCE/tests/bitcode
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "$*"; exit 1; }
# lifts FILE PATTERN...: lifts, and the result has each pattern; nothing of a vendor is left
lifts() {
	local file=$1 pattern
	shift
	"$lift" "$file" >out.ll || fail "$file does not lift"
	for pattern; do
		grep -qE -- "$pattern" out.ll || fail "$file: no '$pattern' in its IR"
	done
	grep -qE 'declare.*@(__nv_|__ocml_|__ockl_)' out.ll && fail "$file: library functions are left"
	return 0
}
# refuses FILE PATTERN
refuses() {
	"$lift" "$1" >out.ll 2>err && fail "$1 lifts"
	[ "$(wc -l <err)" = 1 ] || fail "$1: not one line: $(cat err)"
	grep -qE -- "$2" err || fail "$1: no '$2' in '$(cat err)'"
}

cuda=(clang-22 -x cuda --cuda-gpu-arch=sm_80 --cuda-device-only -w)
if [ -x "${TALLY_NVCC:-}" ]; then
	cuda+=("--cuda-path=$(dirname "$(dirname "$(readlink -f "$TALLY_NVCC")")")")
	for how in -O2 -O0 '-O2 -nocudalib' '-O0 -g'; do
		"${cuda[@]}" $how -emit-llvm -c "$here/cuda.cu" -o cuda.bc
		lifts cuda.bc '"tally.maxntid"="128,1,1"' 'call void @tally.barrier' 'byval\(%struct' \
			'@tally.printf' '@tally.assert.fail' 'atomicrmw .*syncscope\("block"\)' \
			'@tally.shuffle.down' 'external .*addrspace\(3\) global \[0 x'
		grep -q tally.vendor out.ll && fail "cuda.cu $how: something locks"
	done
	# The same in textual form, and in a program of two modules with a kernel in each.
	"${cuda[@]}" -O2 -emit-llvm -S "$here/cuda.cu" -o cuda.ll
	lifts cuda.ll 'define .*void @reduce'
	printf '%s\n' '__global__ void one(int *p) { *p = 1; }' \
		'void f() { one<<<1, 1>>>(nullptr); }' >one.cu
	printf '%s\n' '__global__ void two(int *p) { *p = 2; }' \
		'int main() { two<<<1, 1>>>(nullptr); }' >two.cu
	"$TALLY_NVCC" -arch=compute_80 -code=compute_80 one.cu two.cu -cudart shared -o program
	lifts program 'define .*void @_Z3onePi' 'define .*void @_Z3twoPi'
	"$TALLY_NVCC" -fatbin -gencode arch=compute_80,code=sm_80 one.cu -o cubin.fatbin
	refuses cubin.fatbin 'only NVIDIA machine code for sm_80; compile with -gencode arch=compute_80'
fi

libs=$(echo /usr/lib/*/amdgcn/bitcode)
if command -v clang-19 >/dev/null && [ -f "$libs/ockl.bc" ] && [ -d /usr/include/hip ]; then
	hip=(clang-19 -x hip --rocm-path=/usr "--rocm-device-lib-path=$libs" --cuda-device-only -w)
	for how in '-O2 -nogpulib' '-O0 -nogpulib' -O0; do
		"${hip[@]}" --offload-arch=gfx90a $how -emit-llvm -c "$here/hip.hip" -o hip.bc
		lifts hip.bc '"tally.maxntid"="256,1,1"' '@tally.grid.size.x' '@tally.block.size.x' \
			'byval\(%struct' '@tally.printf' 'atomicrmw .*syncscope\("device"\)' \
			'fence syncscope\("block"\)' 'external .*addrspace\(3\) global \[0 x'
		grep -q tally.vendor out.ll && fail "hip.hip $how: something locks"
	done
	"${hip[@]}" --offload-arch=gfx90a -O2 -emit-llvm -c "$here/hip.hip" -o hip.bc
	refuses hip.bc 'host calls \(printf, assert\): compile with -nogpulib'
	"${hip[@]}" --offload-arch=gfx90a -O2 -DNO_PRINTF -emit-llvm -c "$here/hip.hip" -o hip.bc
	lifts hip.bc '@tally.block.size.x'
	# Lanes: neutral with 32, AMD's own with 64.
	"${hip[@]}" --offload-arch=gfx1030 -O2 -DNO_PRINTF -DLANES -emit-llvm -c "$here/hip.hip" -o lanes.bc
	lifts lanes.bc '@tally.shuffle.idx' '"tally.warp"="32"'
	grep -q tally.vendor out.ll && fail "lanes of gfx1030 lock"
	"${hip[@]}" --offload-arch=gfx90a -O2 -DNO_PRINTF -DLANES -emit-llvm -c "$here/hip.hip" -o lanes.bc
	lifts lanes.bc '"tally.locked"="llvm.amdgcn.ds.bpermute' '"tally.warp"="64"'
	# Its other kernels never look at lanes, and go along.
	"$TALLY_BUILD/bin/tally-lower" lanes.bc --target gfx90a --transform guard -o lanes.hsaco
	[ -s lanes.hsaco ] || fail "nothing for gfx90a"
	"$TALLY_BUILD/bin/tally-lower" lanes.bc --kernel reduce --target sm_80 -o reduce.ptx
	grep -q '\.entry reduce' reduce.ptx || fail "a HIP kernel does not become PTX"
	# The bitcode that an executable can carry.
	clang-19 -x hip --offload-arch=gfx90a --rocm-path=/usr "--rocm-device-lib-path=$libs" -w \
		-O2 -DNO_PRINTF -fgpu-rdc --offload-new-driver -foffload-lto -c "$here/hip.hip" -o hip.o
	lifts hip.o '@tally.block.size.x'
fi
echo "real files: all as expected"
