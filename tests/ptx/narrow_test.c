/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of narrow formats and video instructions; expected values from the ISA's text. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "run.h"

#define NAN32	  0x7fffffff
#define INF	  0x7f800000
#define ONE	  0x3f800000
#define F32_70000 0x4788b800

static uint64_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return u;
}
#define F(x) bits(x)

static void fp8(void **state)
{
	const struct ptx_case cases[] = {
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;", 'h', {ONE, F(-2)}, 0x38c0},
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;", 'h', {F(500), NAN32}, 0x7e7f},
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;", 'h', {INF, 0xff800000}, 0x7efe},
		/* ties go to even */
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;",
		 'h',
		 {F(1.0625f), F(1.1875f)},
		 0x383a},
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;", 'h', {F(464), F(465)}, 0x7e7e},
		/* the format's denormals: units of 2^-9 */
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;",
		 'h',
		 {F(0x1p-9f), F(0x1p-10f)},
		 0x0100},
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;",
		 'h',
		 {F(0x1.8p-9f), F(-0x1.cp-7f)},
		 0x0287},
		{"cvt.rn.satfinite.e4m3x2.f32 %h8, %f0, %f1;", 'h', {0x80000000, 1}, 0x8000},
		{"cvt.rn.satfinite.relu.e4m3x2.f32 %h8, %f0, %f1;", 'h', {F(-3), NAN32}, 0x007f},
		{"cvt.rn.relu.satfinite.e4m3x2.f32 %h8, %f0, %f1;",
		 'h',
		 {F(3), 0x80000000},
		 0x4400},
		{"cvt.rn.satfinite.e5m2x2.f32 %h8, %f0, %f1;", 'h', {ONE, F(57344)}, 0x3c7b},
		{"cvt.rn.satfinite.e5m2x2.f32 %h8, %f0, %f1;", 'h', {F(1e9f), NAN32}, 0x7b7f},
		{"cvt.rn.satfinite.e5m2x2.f32 %h8, %f0, %f1;",
		 'h',
		 {F(0x1p-16f), F(-0x1p-17f)},
		 0x0180},
		{"cvt.rn.satfinite.e4m3x2.f16x2 %h8, %r0;", 'h', {0x3c00c000}, 0x38c0},
		{"cvt.rn.satfinite.e5m2x2.f16x2 %h8, %r0;", 'h', {0x7c007e00}, 0x7b7f},
		{"cvt.rn.satfinite.relu.e5m2x2.f16x2 %h8, %r0;", 'h', {0xbc003c00}, 0x003c},
		{"cvt.rn.f16x2.e4m3x2 %r8, %h0;", 'r', {0x387f}, 0x3c007fff},
		{"cvt.rn.f16x2.e4m3x2 %r8, %h0;", 'r', {0x0181}, 0x18009800},
		{"cvt.rn.f16x2.e4m3x2 %r8, %h0;", 'r', {0x7e80}, 0x5f008000},
		{"cvt.rn.f16x2.e5m2x2 %r8, %h0;", 'r', {0x3c7c}, 0x3c007c00},
		{"cvt.rn.f16x2.e5m2x2 %r8, %h0;", 'r', {0x01fe}, 0x01007fff},
		{"cvt.rn.relu.f16x2.e5m2x2 %r8, %h0;", 'r', {0xbc7e}, 0x00007fff},
	};
	PTX_RUN(cases);
}

static void fp6_and_fp4(void **state)
{
	static const struct ptx_case cases[] = {
		{"cvt.rn.satfinite.e2m3x2.f32 %h8, %f0, %f1;", 'h', {ONE, 0x41000000}, 0x081f},
		{"cvt.rn.satfinite.e2m3x2.f32 %h8, %f0, %f1;", 'h', {0xbe000000, NAN32}, 0x211f},
		{"cvt.rn.satfinite.e3m2x2.f32 %h8, %f0, %f1;", 'h', {ONE, 0xc2000000}, 0x0c3f},
		{"cvt.rn.f16x2.e2m3x2 %r8, %h0;", 'r', {0x0821}, 0x3c00b000},
		{"cvt.rn.f16x2.e3m2x2 %r8, %h0;", 'r', {0x0c1f}, 0x3c004f00},
		/* 1.0 is 2, 5.0 a tie that goes to 4.0 */
		{".reg .b8 %c; cvt.rn.satfinite.e2m1x2.f32 %c, %f0, %f1; cvt.u16.u8 %h8, %c;",
		 'h',
		 {ONE, 0x40a00000},
		 0x26},
		{".reg .b8 %c; cvt.rn.satfinite.e2m1x2.f32 %c, %f0, %f1; cvt.u16.u8 %h8, %c;",
		 'h',
		 {0x3e800000, 0x3f400000},
		 0x02},
		{".reg .b8 %c; cvt.rn.satfinite.e2m1x2.f32 %c, %f0, %f1; cvt.u16.u8 %h8, %c;",
		 'h',
		 {NAN32, 0xc1000000},
		 0x7f},
		{".reg .b8 %c; cvt.u8.u16 %c, %h0; cvt.rn.f16x2.e2m1x2 %r8, %c;",
		 'r',
		 {0x7f},
		 0x4600c600},
		{".reg .b8 %c; cvt.u8.u16 %c, %h0; cvt.rn.f16x2.e2m1x2 %r8, %c;",
		 'r',
		 {0x18},
		 0x38008000},
		{"cvt.rn.bf16x2.ue8m0x2 %r8, %h0;", 'r', {0x7f00}, 0x3f800040},
		{"cvt.rn.bf16x2.ue8m0x2 %r8, %h0;", 'r', {0xff01}, 0x7fff0080},
	};
	PTX_RUN(cases);
}

/* Powers of two: the exponent alone; a sign does not count; up only above the smallest. */
static void ue8m0(void **state)
{
	static const struct ptx_case cases[] = {
		{"cvt.rz.ue8m0x2.f32 %h8, %f0, %f1;", 'h', {ONE, 0x40400000}, 0x7f80},
		{"cvt.rp.ue8m0x2.f32 %h8, %f0, %f1;", 'h', {ONE, 0x40400000}, 0x7f81},
		{"cvt.rp.ue8m0x2.f32 %h8, %f0, %f1;", 'h', {0xc0400000, 0x00400000}, 0x8100},
		{"cvt.rp.ue8m0x2.f32 %h8, %f0, %f1;", 'h', {0x00400001, 0}, 0x0100},
		{"cvt.rz.ue8m0x2.f32 %h8, %f0, %f1;", 'h', {INF, NAN32}, 0xffff},
		{"cvt.rz.satfinite.ue8m0x2.f32 %h8, %f0, %f1;", 'h', {INF, NAN32}, 0xfeff},
		{"cvt.rp.ue8m0x2.f32 %h8, %f0, %f1;", 'h', {0x7f7fffff, 0x7f000000}, 0xfffe},
		{"cvt.rp.satfinite.ue8m0x2.f32 %h8, %f0, %f1;",
		 'h',
		 {0x7f7fffff, 0x7f000000},
		 0xfefe},
		{"cvt.rz.ue8m0x2.bf16x2 %h8, %r0;", 'h', {0x3f804040}, 0x7f80},
		{"cvt.rp.ue8m0x2.bf16x2 %h8, %r0;", 'h', {0x3f814040}, 0x8081},
		{"cvt.rp.satfinite.ue8m0x2.bf16x2 %h8, %r0;", 'h', {0x7f800041}, 0xfe01},
	};
	PTX_RUN(cases);
}

/* Random bits below the last place: one less than needed to carry, and enough. */
static void random_rounding(void **state)
{
	static const struct ptx_case cases[] = {
		/* f16 drops 13 bits: 1 + 2^-13 is an eighth of its last place above 1 */
		{"cvt.rs.f16x2.f32 %r8, %f0, %f1, %r2;",
		 'r',
		 {0x3f800400, 0x3f800400, 0x1c001bff},
		 0x3c013c00},
		{"cvt.rs.f16x2.f32 %r8, %f0, %f1, %r2;",
		 'r',
		 {0xbf800400, ONE, 0xffffffff},
		 0xbc013c00},
		{"cvt.rs.f16x2.f32 %r8, %f0, %f1, %r2;", 'r', {INF, F32_70000, 0}, 0x7c007c00},
		{"cvt.rs.satfinite.f16x2.f32 %r8, %f0, %f1, %r2;",
		 'r',
		 {0xff800000, F32_70000, 0},
		 0xfbff7bff},
		{"cvt.rs.relu.f16x2.f32 %r8, %f0, %f1, %r2;", 'r', {0xbf800000, NAN32, 0}, 0x7fff},
		/* a denormal half: 1.5 * 2^-24, half of its last place */
		{"cvt.rs.f16x2.f32 %r8, %f0, %f1, %r2;",
		 'r',
		 {0x33c00000, 0x33c00000, 0x10000fff},
		 0x00020001},
		/* bf16 drops 16 */
		{"cvt.rs.bf16x2.f32 %r8, %f0, %f1, %r2;",
		 'r',
		 {0x3f800001, 0x3f800001, 0xfffffffe},
		 0x3f813f80},
		{"cvt.rs.satfinite.bf16x2.f32 %r8, %f0, %f1, %r2;",
		 'r',
		 {0x7f7fffff, 0xff7fffff, 0xffffffff},
		 0x7f7fff7f},
		/* the upper 16 bits serve the first two numbers, the lower the others */
		{"cvt.rs.satfinite.e4m3x4.f32 %r8, {%f0, %f1, %f0, %f1}, %r2;",
		 'r',
		 {0x3f880000, 0xbf880000, 0x80007fff},
		 0x39b938b8},
		{"cvt.rs.satfinite.e5m2x4.f32 %r8, {%f0, %f1, %f0, %f1}, %r2;",
		 'r',
		 {0x3f900000, 0x7f800000, 0x80007fff},
		 0x3d7b3c7b},
		{"cvt.rs.satfinite.relu.e2m3x4.f32 %r8, {%f0, %f1, %f0, %f1}, %r2;",
		 'r',
		 {0x3f880000, 0xbf880000, 0x80007fff},
		 0x09000800},
		{"cvt.rs.satfinite.e3m2x4.f32 %r8, {%f0, %f1, %f0, %f1}, %r2;",
		 'r',
		 {0x3f900000, 0xc2000000, 0x80007fff},
		 0x0d3f0c3f},
		/* of e2m1 the upper bytes of both halves serve the first two */
		{"cvt.rs.satfinite.e2m1x4.f32 %h8, {%f0, %f1, %f0, %f1}, %r2;",
		 'h',
		 {0x3fa00000, 0xbfa00000, 0x807f00ff},
		 0x3b2a},
	};
	PTX_RUN(cases);
}

static void tf32_and_pack(void **state)
{
	static const struct ptx_case cases[] = {
		{"cvt.rn.tf32.f32 %r8, %f0;", 'r', {0x3f801000}, 0x3f800000},
		{"cvt.rn.tf32.f32 %r8, %f0;", 'r', {0x3f803000}, 0x3f804000},
		{"cvt.rz.tf32.f32 %r8, %f0;", 'r', {0x3f803fff}, 0x3f802000},
		{"cvt.rn.relu.tf32.f32 %r8, %f0;", 'r', {0xbf800000}, 0},
		{"cvt.rn.tf32.f32 %r8, %f0;", 'r', {INF}, INF},
		{"cvt.rn.tf32.f32 %r8, %f0;", 'r', {0x7f7fffff}, INF},
		{"cvt.rn.satfinite.tf32.f32 %r8, %f0;", 'r', {0xff800000}, 0xff7fe000},
		{"cvt.rna.satfinite.tf32.f32 %r8, %f0;", 'r', {0x7f7fffff}, 0x7f7fe000},
		{"cvt.pack.sat.s16.s32 %r8, %r0, %r1;", 'r', {70000, (uint64_t)-70000}, 0x7fff8000},
		{"cvt.pack.sat.u16.s32 %r8, %r0, %r1;", 'r', {70000, (uint64_t)-70000}, 0xffff0000},
		{"cvt.pack.sat.s8.s32.b32 %r8, %r0, %r1, %r2;",
		 'r',
		 {300, (uint64_t)-300, 0x51234},
		 0x12347f80},
		{"cvt.pack.sat.u4.s32.b32 %r8, %r0, %r1, %r2;", 'r', {20, (uint64_t)-1, 5}, 0x5f0},
		{"cvt.pack.sat.s2.s32.b32 %r8, %r0, %r1, %r2;", 'r', {1, (uint64_t)-2, 1}, 0x16},
	};
	PTX_RUN(cases);
}

static void scalar_video(void **state)
{
	static const struct ptx_case cases[] = {
		{"vadd.s32.s32.s32 %r8, %r0.b1, %r1.h1;", 'r', {0xff00, 0x50000}, 4},
		{"vadd.s32.u32.u32.sat %r8, %r0, %r1;", 'r', {0xffffffff, 1}, 0x7fffffff},
		{"vsub.u32.u32.u32.sat %r8, %r0, %r1;", 'r', {1, 2}, 0},
		{"vsub.s32.u32.u32 %r8, %r0, %r1;", 'r', {1, 2}, 0xffffffff},
		{"vabsdiff.u32.s32.s32 %r8, %r0, %r1;", 'r', {0xfffffffb, 3}, 8},
		{"vadd.s32.s32.s32.sat %r8.b2, %r0, %r1, %r2;",
		 'r',
		 {100, 100, 0x11223344},
		 0x117f3344},
		{"vmax.s32.s32.s32.add %r8, %r0, %r1, %r2;", 'r', {3, 5, 10}, 15},
		{"vmin.u32.u32.u32.max %r8, %r0, %r1, %r2;", 'r', {3, 5, 0xffffffff}, 0xffffffff},
		{"vmin.s32.s32.s32.max %r8, %r0, %r1, %r2;", 'r', {3, 5, 0xffffffff}, 3},
		{"vshl.u32.u32.u32.clamp %r8, %r0, %r1;", 'r', {1, 40}, 0},
		{"vshl.u32.u32.u32.wrap %r8, %r0, %r1;", 'r', {1, 33}, 2},
		{"vshr.s32.s32.u32.clamp %r8, %r0, %r1;", 'r', {0x80000000, 40}, 0xffffffff},
		{"vshr.u32.u32.u32.wrap %r8, %r0.h1, %r1;", 'r', {0x80000000, 36}, 0x800},
		{"vmad.s32.s32.s32.shr7 %r8, %r0, %r1, %r2;", 'r', {128, 3, 127}, 3},
		{"vmad.u32.u32.u32.po %r8, %r0, %r1, %r2;", 'r', {2, 3, 4}, 11},
		{"vmad.s32.s32.s32 %r8, -%r0, %r1, %r2;", 'r', {2, 3, 10}, 4},
		{"vmad.s32.s32.s32 %r8, %r0, %r1, -%r2;", 'r', {2, 3, 4}, 2},
		{"vset.s32.u32.lt %r8, %r0, %r1;", 'r', {0xffffffff, 0}, 1},
		{"vset.u32.u32.lt %r8.b1, %r0, %r1, %r2;", 'r', {0, 1, 0x12345678}, 0x12340178},
		{"vset.u32.u32.ge.add %r8, %r0, %r1, %r2;", 'r', {1, 1, 7}, 8},
	};
	PTX_RUN(cases);
}

#ifndef PTX_ON_DEVICE
/* Clamped to the largest unsigned number, as the ISA's text says. What ptxas 13.0 makes of these
 * for sm_90 clamps at zero alone, and an H200 gives 0. */
static void unsigned_video(void **state)
{
	static const struct ptx_case cases[] = {
		{"vadd.u32.u32.u32.sat %r8, %r0, %r1;", 'r', {0xffffffff, 1}, 0xffffffff},
		{"vmad.u32.u32.u32.sat %r8, %r0, %r1, %r2;", 'r', {0xffffffff, 2, 0}, 0xffffffff},
	};
	PTX_RUN(cases);
}
#endif

static void simd_video(void **state)
{
	static const struct ptx_case cases[] = {
		{"vavrg4.u32.u32.u32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0x01020304, 0x02020205},
		 0x02020305},
		{"vavrg2.s32.s32.s32 %r8, %r0, %r1, %r2;", 'r', {0xfffd0003, 0}, 0xfffe0002},
		{"vadd2.s32.s32.s32 %r8.h0, %r0.h01, %r1, %r2;",
		 'r',
		 {0x00010002, 0x00100020, 0xaaaabbbb},
		 0xaaaa0021},
		{"vsub4.s32.s32.s32.sat %r8, %r0, %r1.b4567, %r2;",
		 'r',
		 {0x80808080, 0x01020304},
		 0x80808080},
		{"vsub4.u32.u32.u32 %r8, %r0, %r1.b4567, %r2;",
		 'r',
		 {0x10101010, 0x01020304},
		 0x0c0d0e0f},
		{"vadd4.u32.u32.u32.add %r8.b20, %r0, %r1, %r2;", 'r', {0x01020304, 0, 100}, 106},
	};
	PTX_RUN(cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fp8),
		cmocka_unit_test(fp6_and_fp4),
		cmocka_unit_test(ue8m0),
		cmocka_unit_test(random_rounding),
		cmocka_unit_test(tf32_and_pack),
		cmocka_unit_test(scalar_video),
		cmocka_unit_test(simd_video),
#ifndef PTX_ON_DEVICE
		cmocka_unit_test(unsigned_video),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
