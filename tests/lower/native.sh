#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What PTX says in one instruction, PTX says in one instruction again: .ftz and .sat arithmetic,
# arithmetic that may be contracted, asynchronous copies. Machines without them copy at once.
source "$TALLY_SOURCE/tests/lower/common.sh" || exit 1

cat >native.ptx <<'END'
.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %e<3>; .reg .b64 %d<9>; .reg .pred %p<4>;
	.shared .align 16 .b8 tile[1024];
	ld.param.u64 %d0, [p];
	cvta.to.global.u64 %d0, %d0;
	ld.global.v2.f32 {%f0, %f1}, [%d0];
	mul.ftz.f32 %f2, %f0, %f1;
	add.rn.ftz.f32 %f2, %f2, 0f3F000000;
	ex2.approx.ftz.f32 %f3, %f2;
	fma.rn.ftz.sat.f32 %f3, %f3, %f2, %f1;
	max.ftz.f32 %f3, %f3, %f0;
	div.full.ftz.f32 %f3, %f3, %f0;
	rcp.rn.ftz.f32 %f3, %f3;
	sub.rz.sat.f32 %f4, %f0, %f1;
	mul.f32 %f5, %f0, %f1;
	setp.lt.ftz.f32 %p0, %f0, %f1;
	@%p0 st.global.f32 [%d0], %f3;
	st.global.f32 [%d0+4], %f4;
	st.global.f32 [%d0+8], %f5;
	cvt.ftz.f64.f32 %e0, %f0;
	mul.f64 %e0, %e0, %e0;
	cvt.rn.ftz.f32.f64 %f6, %e0;
	st.global.f32 [%d0+12], %f6;
	mov.u32 %r1, tile;
	cp.async.cg.shared.global.L2::128B [%r1], [%d0], 16;
	cp.async.ca.shared.global [%r1+16], [%d0+16], 4, %r2;
	cp.async.commit_group;
	cp.async.wait_group 1;
	cp.async.wait_all;
	ld.shared.f32 %f7, [%r1];
	st.global.f32 [%d0+16], %f7;
	ret;
}
END
"$lower" native.ptx --target sm_80 -o native.out || fail "sm_80"
for text in "mul.ftz.f32 " "add.rn.ftz.f32 " "ex2.approx.ftz.f32 " "fma.rn.ftz.sat.f32 " "max.ftz.f32 " \
	"div.full.ftz.f32 " "rcp.rn.ftz.f32 " "sub.rz.sat.f32 " "mul.f32 " "setp.lt.ftz.f32 " "cvt.ftz.f64.f32 " \
	"mul.f64 " "cvt.rn.ftz.f32.f64 " "cp.async.cg.shared.global.L2::128B [" "cp.async.ca.shared.global [" \
	"cp.async.commit_group;" "cp.async.wait_group 1;" "cp.async.wait_all;"; do
	holds native.out "$text"
done
[ "$(grep -c 'mul.*ftz' native.out)" = 1 ] || fail "a flush of its own is left"
"$lower" native.ptx --target sm_75 -o native.out || fail "sm_75"
lacks native.out "cp.async"
"$lower" native.ptx --target x86-64 -o native.out || fail "x86-64"
echo ok
