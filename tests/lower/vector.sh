#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernels for the CPU whose loops over threads are to be vectors: without that they are several times
# slower, and no other test notices.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1

# Guarded ends, 32-bit indices that PTX lets wrap, addresses as integers, a fused operation.
cat >stencil.ptx <<'END'
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 c, .param .u32 n)
{
	.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>; .reg .pred %p<4>;
	ld.param.u64 %d0, [a];
	ld.param.u64 %d1, [c];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.s32 %r4, %r1, %r2, %r3;
	setp.lt.s32 %p0, %r4, 1;
	setp.ge.s32 %p1, %r4, %r0;
	or.pred %p2, %p0, %p1;
	@%p2 bra END;
	cvta.to.global.u64 %d2, %d0;
	mul.wide.s32 %d3, %r4, 4;
	add.s64 %d4, %d2, %d3;
	ld.global.nc.f32 %f0, [%d4];
	ld.global.nc.f32 %f1, [%d4+-4];
	ld.global.nc.f32 %f2, [%d4+4];
	fma.rn.f32 %f3, %f0, %f1, %f2;
	cvta.to.global.u64 %d5, %d1;
	add.s64 %d6, %d5, %d3;
	st.global.f32 [%d6], %f3;
END:	ret;
}
END
"$lower" stencil.ptx --target x86-64-v4 --emit ir -o stencil.out || fail stencil
grep -qE "call <[0-9]+ x float> @llvm.fma.v" stencil.out || fail "a guarded stencil is not vectorised"

# nvcc's expf: directed rounding and a power of two, which calls would keep from being vectors.
sed -e 's/fma.rn.f32 %f3, %f0, %f1, %f2;/fma.rm.f32 %f4, %f0, %f1, %f2; ex2.approx.ftz.f32 %f3, %f4;/' stencil.ptx >power.ptx
"$lower" power.ptx --target x86-64-v4 --emit ir -o power.out || fail power
grep -qE "fptrunc <[0-9]+ x double>" power.out || fail "directed rounding and ex2 are not vectorised"
echo ok
