#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PTX for every NVIDIA target, and ptxas accepts it: neutral IR, clang's bitcode, nvcc's PTX and host
# executables; parameters keep their bytes; orders and scopes are what the IR says.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1
here=$TALLY_SOURCE/tests/lower

# Every target once. What this ptxas does not know is assembled by none of its machines.
targets=$("$lower" --help | sed -n 's/^targets: //p' | tr ' ' '\n' | grep ^sm_)
for target in $targets; do
	works "$here/vadd.ll" --target "$target" --transform slice,guard --verify -o vadd.ptx
	holds vadd.ptx ".target $target"
	holds vadd.ptx '.visible .entry vadd$slice_guard('
	case $target in sm_101*) continue ;; esac
	assemble vadd.ptx "$target"
done

# Each transform has its own entry, and the original stays.
for pair in slice:slice guard:guard slice,guard:slice_guard persist:persist slice,guard,persist:slice_guard slice,guard,persist:persist; do
	works "$here/vadd.ll" --target sm_80 --transform "${pair%%:*}" -o vadd.ptx
	holds vadd.ptx '.visible .entry vadd('
	holds vadd.ptx ".visible .entry vadd\$${pair##*:}("
done
works "$here/vadd.ll" --target sm_80 --transform none -o vadd.ptx
lacks vadd.ptx '$slice'
holds vadd.ptx '.maxntid 256'
holds vadd.ptx '.minnctapersm 2'

# Parameters at their natural offsets, variables and shared memory under their names.
works "$here/forms.ll" --target sm_90 --transform guard -o forms.ptx
assemble forms.ptx sm_90
holds forms.ptx '.param .u8 forms_param_0'
holds forms.ptx '.param .align 2 .b8 forms_param_1[2]'
holds forms.ptx '.param .align 32 .b8 forms_param_2[32]'
holds forms.ptx '.param .align 8 .b8 forms$guard_param_6[32]'
holds forms.ptx '.visible .global .align 4 .u32 counter = 7;'
holds forms.ptx '.visible .const .align 4 .b8 table[16]'
holds forms.ptx '.extern .shared .align 16 .b8 dynamic[]'
holds forms.ptx '.reqntid 64, 2, 1'
holds forms.ptx 'redux.sync.add'
works "$here/forms.ll" --target sm_75 -o forms.ptx
assemble forms.ptx sm_75
lacks forms.ptx 'redux.sync'

works "$here/atomics.ll" --target sm_80 -o atomics.ptx
assemble atomics.ptx sm_80
holds atomics.ptx 'fence.sc.sys'
holds atomics.ptx 'atom.acquire.sys.global.add.u32'
holds atomics.ptx 'atom.acq_rel.cta.global.max.u64'
holds atomics.ptx 'atom.acquire.gpu.global.exch.b32'
holds atomics.ptx 'atom.relaxed.sys.global.add.u32'
holds atomics.ptx 'atom.release.gpu.global.add.f32'
holds atomics.ptx 'atom.acquire.cta.global.cas.b32'
holds atomics.ptx 'fence.acq_rel.cta'

works "$here/maths.ll" --target sm_80 -o maths.ptx
assemble maths.ptx sm_80
holds maths.ptx 'add.rz.f32'
lacks maths.ptx '__nv_'

# Hints of the source's compiler. ", debug" behind the target would turn ptxas's optimiser off; a loop that the
# first compiler has unrolled already says so, and the others stay free.
for transform in none slice,guard; do
	works "$here/hints.ptx" --target sm_90 --transform $transform --lift --verify -o hints.ptx
	assemble hints.ptx sm_90
	grep -qx '\.target sm_90' hints.ptx || fail "hints.ptx has no plain .target line"
	holds hints.ptx '.loc	1 9 3'
	entries=$(grep -c '^\.visible \.entry' hints.ptx)
	for hint in '\.pragma "nounroll";' '\.maxnreg 40' '\.maxclusterrank 4'; do
		[ "$(grep -cE "$hint" hints.ptx)" = "$entries" ] || fail "not one '$hint' a kernel in hints.ptx ($transform)"
	done
done

# A place in a tensor map or a texture takes no offset.
works "$here/texture.ptx" --target sm_90 -o texture.ptx
assemble texture.ptx sm_90

# Vectors with an order stay whole; barriers that are aligned stay so, others do not become it.
for target in sm_80 sm_90; do
	works "$here/vector_order.ptx" --target $target --verify -o vector_order.ptx
	assemble vector_order.ptx $target
	holds vector_order.ptx 'ld.volatile.global.v2.b64'
	holds vector_order.ptx 'ld.volatile.global.v2.b32'
	holds vector_order.ptx 'st.volatile.global.v2.b64'
	holds vector_order.ptx 'st.volatile.global.v2.b32'
	[ "$(grep -c 'fence.acq_rel.gpu' vector_order.ptx)" = 2 ] || fail "not a fence each for acquire and release"
	grep -qE '(bar|barrier)\.sync(\.aligned)?[[:space:]]+0;' vector_order.ptx && ! grep -qE 'barrier\.sync[[:space:]]+0;' vector_order.ptx ||
		fail "the aligned barrier is not aligned any more"
	grep -qE 'barrier\.sync[[:space:]]+1;' vector_order.ptx || fail "barrier.sync has become aligned"
done

# Real programs: what clang and nvcc make of them, as bitcode, PTX and inside executables.
for kernel in matmul_tiled math_library atomics_scopes shuffle_divergent prints half_math; do
	source=$TALLY_SOURCE/conformance/kernels/$kernel.cu
	clang_bitcode "$source" $kernel.bc
	nvcc_ptx "$source" $kernel.ptx
	for input in $kernel.bc $kernel.ptx; do
		for target in sm_70 sm_80 sm_90 sm_100 sm_120; do
			works $input --target $target --transform slice,guard --verify -o out.ptx
			assemble out.ptx $target
		done
	done
done

# Debuggers and profilers show the user's lines, in what was transformed too.
cat >lines.cu <<'END'
__device__ int twice(int x) { return x * 2; }
extern "C" __global__ void lines(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	int v = in[i];
	v = twice(v) + 1;
	out[i] = v * v;
}
END
"$TALLY_NVCC" -lineinfo -arch=compute_80 -ptx lines.cu -o lines.ptx 2>nvcc.log || { cat nvcc.log >&2; fail nvcc; }
clang++-22 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-path="$(dirname "$(dirname "$TALLY_NVCC")")" \
	-O2 -gline-tables-only -emit-llvm -c lines.cu -o lines.bc 2>clang.log || { cat clang.log >&2; fail clang; }
for input in lines.ptx lines.bc; do
	works $input --target sm_80 --transform slice,guard,persist --verify -o out.ptx
	assemble out.ptx sm_80
	grep -q '^	\.file	1 .*lines\.cu"' out.ptx || fail "$input: the file's name is lost"
	for variant in '' '$slice_guard' '$persist'; do
		sed -n "/\.entry lines$variant(/,/^}/p" out.ptx >variant.ptx
		for line in 4 5 7 9; do
			grep -q "^	\.loc	1 $line " variant.ptx || fail "$input: line $line is lost in lines$variant"
		done
	done
done
cat >program.cu <<'END'
#include <cstdio>
__global__ void scale(float *p, float f) { p[blockIdx.x * blockDim.x + threadIdx.x] *= f; }
int main() { scale<<<1, 32>>>(nullptr, 2.0f); return 0; }
END
"$TALLY_NVCC" -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=sm_90 \
	-cudart shared program.cu -o program 2>nvcc.log || { cat nvcc.log >&2; fail nvcc; }
works program --list >list.txt
holds list.txt 'kernel _Z5scalePff'
holds list.txt 'cubin'
works program --target sm_90 --transform guard -o out.ptx
holds out.ptx '_Z5scalePff$guard('
assemble out.ptx sm_90
echo ok
