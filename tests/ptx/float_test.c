/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point instructions, comparisons and conversions give what the PTX ISA says. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "run.h"

#define ONE   0x3f800000
#define TWO   0x40000000
#define NAN32 0x7fc00000
#define NAN64 0x7ff8000000000000
#define INF   0x7f800000
#define M1    0xffffffffffffffffull
#define D(x)                                                                                       \
	((union {                                                                                  \
		 double d;                                                                         \
		 uint64_t u;                                                                       \
	 }){.d = (x)}                                                                              \
		 .u)
#define F(x)                                                                                       \
	((union {                                                                                  \
		 float f;                                                                          \
		 uint32_t u;                                                                       \
	 }){.f = (x)}                                                                              \
		 .u)

static void arithmetic(void **state)
{
	const struct ptx_case cases[] = {
		{"add.f32 %f8, %f0, %f1;", 'f', {ONE, ONE}, TWO},
		{"sub.rn.f32 %f8, %f0, %f1;", 'f', {ONE, ONE}, 0},
		{"mul.f32 %f8, %f0, 0f40000000;", 'f', {F(1.5f)}, F(3.0f)},
		{"mul.f32 %f8, %f0, 2.0;", 'f', {F(1.5f)}, F(3.0f)},
		/* (1 + 2^-23)^2 - 1: one rounding keeps 2^-46, two lose it */
		{"fma.rn.f32 %f8, %f0, %f0, %f1;", 'f', {0x3f800001, F(-1.0f)}, F(0x1.000001p-22f)},
		{"mul.f32 %f7, %f0, %f0; add.f32 %f8, %f7, %f1;",
		 'f',
		 {0x3f800001, F(-1.0f)},
		 F(0x1p-22f)},
		{"mad.rn.f64 %e8, %e0, %e1, %e2;", 'e', {D(2), D(3), D(4)}, D(10)},
		{"add.sat.f32 %f8, %f0, %f1;", 'f', {ONE, ONE}, ONE},
		{"add.sat.f32 %f8, %f0, %f1;", 'f', {NAN32, ONE}, 0},
		{"mul.sat.f32 %f8, %f0, %f1;", 'f', {ONE, F(-3.0f)}, 0},
		{"fma.rn.sat.f32 %f8, %f0, %f1, %f2;", 'f', {ONE, F(0.25f), F(0.25f)}, F(0.5f)},
		{"add.ftz.f32 %f8, %f0, %f1;", 'f', {1, 0x80000001}, 0},
		{"add.ftz.f32 %f8, %f0, %f1;", 'f', {0x00400000, 0x00400000}, 0},
		{"add.f32 %f8, %f0, %f1;", 'f', {0x00400000, 0x00400000}, 0x00800000},
		{"mul.ftz.f32 %f8, %f0, %f1;", 'f', {0x80800000, F(0.5f)}, 0x80000000},
		{"add.rz.f32 %f8, %f0, %f1;", 'f', {ONE, 0x33ffffff}, ONE},
		{"add.rp.f32 %f8, %f0, %f1;", 'f', {ONE, 1}, 0x3f800001},
		{"add.rm.f32 %f8, %f0, %f1;", 'f', {ONE, 0x80000001}, 0x3f7fffff},
		{"div.rp.f64 %e8, %e0, %e1;", 'e', {D(1), D(3)}, D(1.0 / 3) + 1},
		{"div.rn.f32 %f8, %f0, %f1;", 'f', {ONE, F(3.0f)}, F(1.0f / 3)},
		{"div.approx.f32 %f8, %f0, %f1;", 'f', {ONE, F(4.0f)}, F(0.25f)},
		{"div.full.ftz.f32 %f8, %f0, %f1;", 'f', {ONE, F(4.0f)}, F(0.25f)},
		{"rcp.rn.f32 %f8, %f0;", 'f', {F(4.0f)}, F(0.25f)},
		{"rcp.approx.ftz.f32 %f8, %f0;", 'f', {1}, INF},
		{"rcp.approx.ftz.f64 %e8, %e0;", 'e', {D(4)}, D(0.25)},
		{"sqrt.rn.f32 %f8, %f0;", 'f', {F(9.0f)}, F(3.0f)},
		{"sqrt.rn.f64 %e8, %e0;", 'e', {D(2)}, D(1.4142135623730951)},
		{"sqrt.approx.f32 %f8, %f0;", 'f', {F(9.0f)}, F(3.0f)},
		{"rsqrt.approx.f32 %f8, %f0;", 'f', {F(4.0f)}, F(0.5f)},
		{"ex2.approx.f32 %f8, %f0;", 'f', {F(3.0f)}, F(8.0f)},
		{"lg2.approx.ftz.f32 %f8, %f0;", 'f', {F(8.0f)}, F(3.0f)},
		{"sin.approx.f32 %f8, %f0;", 'f', {0}, 0},
		{"cos.approx.f32 %f8, %f0;", 'f', {0}, ONE},
		{"tanh.approx.f32 %f8, %f0;", 'f', {0}, 0},
		{"abs.f32 %f8, %f0;", 'f', {F(-2.0f)}, TWO},
		{"abs.ftz.f32 %f8, %f0;", 'f', {0x80000001}, 0},
		{"neg.f64 %e8, %e0;", 'e', {D(0)}, D(-0.0)},
		{"copysign.f32 %f8, %f0, %f1;", 'f', {F(-1.0f), F(5.0f)}, F(-5.0f)},
		{"add.f32x2 %d8, %d0, %d1;",
		 'd',
		 {0x3f80000040000000, 0x3f8000003f800000},
		 0x4000000040400000},
		{"fma.rn.f32x2 %d8, %d0, %d1, %d2;",
		 'd',
		 {0x3f80000040000000, 0x3f80000040000000, 0},
		 0x3f80000040800000},
	};
	PTX_RUN(cases);
}

static void minmax(void **state)
{
	const struct ptx_case cases[] = {
		{"min.f32 %f8, %f0, %f1;", 'f', {NAN32, ONE}, ONE},
		{"max.f32 %f8, %f0, %f1;", 'f', {ONE, NAN32}, ONE},
		{"min.f32 %f8, %f0, %f1;", 'f', {0, 0x80000000}, 0x80000000},
		{"max.f32 %f8, %f0, %f1;", 'f', {0x80000000, 0}, 0},
		{"min.NaN.f32 %f8, %f0, %f1;", 'f', {NAN32, ONE}, NAN32},
		{"max.f64 %e8, %e0, %e1;", 'e', {D(-1), D(3)}, D(3)},
		{"min.ftz.f32 %f8, %f0, %f1;", 'f', {1, ONE}, 0},
		{"max.xorsign.abs.f32 %f8, %f0, %f1;", 'f', {F(-3.0f), TWO}, F(-3.0f)},
		{"min.xorsign.abs.f32 %f8, %f0, %f1;", 'f', {F(-3.0f), F(-2.0f)}, TWO},
		{"max.f32 %f8, %f0, %f1, %f2;", 'f', {ONE, TWO, F(3.0f)}, F(3.0f)},
		{"testp.normal.f32 %p8, %f0;", 'p', {ONE}, 1},
		{"testp.subnormal.f32 %p8, %f0;", 'p', {1}, 1},
		{"testp.finite.f32 %p8, %f0;", 'p', {INF}, 0},
		{"testp.number.f32 %p8, %f0;", 'p', {INF}, 1},
		{"testp.notanumber.f64 %p8, %e0;", 'p', {0x7ff8000000000000}, 1},
		{"testp.infinite.f32 %p8, %f0;", 'p', {0xff800000}, 1},
	};
	PTX_RUN(cases);
}

static void halves(void **state)
{
	const struct ptx_case cases[] = {
		{"add.f16 %h8, %h0, %h1;", 'h', {0x3c00, 0x3c00}, 0x4000},
		{"mul.rn.f16 %h8, %h0, %h1;", 'h', {0x4000, 0x4200}, 0x4600},
		{"fma.rn.f16 %h8, %h0, %h1, %h2;", 'h', {0x3c00, 0x4000, 0x3c00}, 0x4200},
		{"fma.rn.relu.f16 %h8, %h0, %h1, %h2;", 'h', {0x3c00, 0xc000, 0x3c00}, 0},
		{"add.sat.f16 %h8, %h0, %h1;", 'h', {0x3c00, 0x3c00}, 0x3c00},
		{"add.ftz.f16 %h8, %h0, %h1;", 'h', {0x0001, 0x0001}, 0},
		{"add.f16x2 %r8, %r0, %r1;", 'r', {0x3c004000, 0x3c003c00}, 0x40004200},
		{"sub.f16x2 %r8, %r0, %r1;", 'r', {0x3c004000, 0x3c003c00}, 0x00003c00},
		{"neg.f16x2 %r8, %r0;", 'r', {0x3c00c000}, 0xbc004000},
		{"abs.bf16x2 %r8, %r0;", 'r', {0xbf80c000}, 0x3f804000},
		{"max.f16x2 %r8, %r0, %r1;", 'r', {0x3c007e00, 0x40003c00}, 0x40003c00},
		{"add.bf16 %h8, %h0, %h1;", 'h', {0x3f80, 0x3f80}, 0x4000},
		{"fma.rn.bf16x2 %r8, %r0, %r1, %r2;",
		 'r',
		 {0x3f803f80, 0x40004000, 0x3f803f80},
		 0x40404040},
		{"mul.bf16 %h8, %h0, %h1;", 'h', {0x4000, 0x4040}, 0x40c0},
		{"ex2.approx.f16 %h8, %h0;", 'h', {0x4200}, 0x4800},
		{"tanh.approx.bf16x2 %r8, %r0;", 'r', {0}, 0},
		{"add.f32.f16 %f8, %h0, %f1;", 'f', {0x3c00, ONE}, TWO},
		{"fma.rn.f32.bf16 %f8, %h0, %h1, %f2;", 'f', {0x3f80, 0x4000, ONE}, F(3.0f)},
		{"setp.lt.f16 %p8, %h0, %h1;", 'p', {0x3c00, 0x4000}, 1},
		{"setp.lt.f16x2 %p8|%p7, %r0, %r1;", 'p', {0x40003c00, 0x3c004000}, 1},
		{"setp.lt.f16x2 %p7|%p8, %r0, %r1;", 'p', {0x40003c00, 0x3c004000}, 0},
		{"set.gt.f16x2.f16x2 %r8, %r0, %r1;", 'r', {0x40003c00, 0x3c004000}, 0x3c000000},
	};
	PTX_RUN(cases);
}

static void comparisons(void **state)
{
	const struct ptx_case cases[] = {
		{"setp.lt.s32 %p8, %r0, %r1;", 'p', {M1, 0}, 1},
		{"setp.lt.u32 %p8, %r0, %r1;", 'p', {M1, 0}, 0},
		{"setp.lo.u32 %p8, %r0, %r1;", 'p', {M1, 0}, 0},
		{"setp.hs.u64 %p8, %d0, %d1;", 'p', {M1, 0}, 1},
		{"setp.eq.b16 %p8, %h0, %h1;", 'p', {0x10001, 1}, 1},
		{"setp.ne.and.s32 %p8, %r0, %r1, %p0;", 'p', {1, 0, 0, 0}, 0},
		{"setp.ne.or.s32 %p8, %r0, %r1, !%p0;", 'p', {0, 0, 0, 0}, 1},
		{"setp.eq.xor.s32 %p8, %r0, %r1, %p0;", 'p', {0, 0, 0, 1}, 0},
		/* the second destination is (!comparison) and c */
		{"setp.eq.and.s32 %p7|%p8, %r0, %r1, %p0;", 'p', {0, 1, 0, 1}, 1},
		{"setp.eq.s32 %p7|%p8, %r0, %r1;", 'p', {0, 0}, 0},
		{"setp.lt.f32 %p8, %f0, %f1;", 'p', {NAN32, ONE}, 0},
		{"setp.ltu.f32 %p8, %f0, %f1;", 'p', {NAN32, ONE}, 1},
		{"setp.ne.f32 %p8, %f0, %f1;", 'p', {NAN32, ONE}, 0},
		{"setp.neu.f64 %p8, %e0, %e1;", 'p', {0x7ff8000000000000, 0}, 1},
		{"setp.num.f32 %p8, %f0, %f1;", 'p', {ONE, ONE}, 1},
		{"setp.nan.f32 %p8, %f0, %f1;", 'p', {ONE, NAN32}, 1},
		{"setp.eq.ftz.f32 %p8, %f0, %f1;", 'p', {1, 0}, 1},
		{"setp.eq.f32 %p8, %f0, %f1;", 'p', {1, 0}, 0},
		{"set.lt.u32.s32 %r8, %r0, %r1;", 'r', {M1, 0}, 0xffffffff},
		{"set.lt.f32.s32 %f8, %r0, %r1;", 'f', {M1, 0}, ONE},
		{"set.gt.and.u32.f32 %r8, %f0, %f1, %p0;", 'r', {TWO, ONE, 0, 1}, 0xffffffff},
		{"selp.b32 %r8, %r0, %r1, %p0;", 'r', {5, 6, 0, 1}, 5},
		{"selp.f64 %e8, %e0, %e1, %p0;", 'e', {D(5), D(6), 0, 0}, D(6)},
		{"slct.u32.s32 %r8, %r0, %r1, %r2;", 'r', {5, 6, M1}, 6},
		{"slct.u32.s32 %r8, %r0, %r1, %r2;", 'r', {5, 6, 0}, 5},
		{"slct.f32.f32 %f8, %f0, %f1, %f2;", 'f', {ONE, TWO, 0x80000000}, ONE},
		{"slct.f32.f32 %f8, %f0, %f1, %f2;", 'f', {ONE, TWO, NAN32}, TWO},
	};
	PTX_RUN(cases);
}

static void conversions(void **state)
{
	const struct ptx_case cases[] = {
		{"cvt.s64.s32 %d8, %r0;", 'd', {0xffffffff}, M1},
		{"cvt.u64.u32 %d8, %r0;", 'd', {0xffffffff}, 0xffffffff},
		{"cvt.s32.s8 %r8, %r0;", 'r', {0x80}, 0xffffff80},
		{"cvt.u32.u8 %r8, %r0;", 'r', {0x1ff}, 0xff},
		{"cvt.s16.s8 %h8, %h0;", 'h', {0xff}, 0xffff},
		{"cvt.s8.s32 %r8, %r0;", 'r', {0x1ff}, 0xffffffff},
		{"cvt.u16.u32 %h8, %r0;", 'h', {0x12345}, 0x2345},
		{"cvt.sat.s8.s32 %r8, %r0;", 'r', {1000}, 127},
		{"cvt.sat.s8.s32 %r8, %r0;", 'r', {(uint64_t)-1000}, 0xffffff80},
		{"cvt.sat.u8.s32 %r8, %r0;", 'r', {(uint64_t)-5}, 0},
		{"cvt.sat.u8.s32 %r8, %r0;", 'r', {300}, 255},
		{"cvt.sat.s32.u32 %r8, %r0;", 'r', {0xffffffff}, 0x7fffffff},
		{"cvt.sat.u32.s32 %r8, %r0;", 'r', {0xffffffff}, 0},
		{"cvt.sat.s32.u64 %r8, %d0;", 'r', {M1}, 0x7fffffff},
		{"cvt.sat.u64.s32 %d8, %r0;", 'd', {0xffffffff}, 0},
		{"cvt.rzi.s32.f32 %r8, %f0;", 'r', {F(-2.7f)}, 0xfffffffe},
		{"cvt.rni.s32.f32 %r8, %f0;", 'r', {F(2.5f)}, 2},
		{"cvt.rni.s32.f32 %r8, %f0;", 'r', {F(3.5f)}, 4},
		{"cvt.rmi.s32.f32 %r8, %f0;", 'r', {F(-2.5f)}, 0xfffffffd},
		{"cvt.rpi.s32.f32 %r8, %f0;", 'r', {F(2.1f)}, 3},
		{"cvt.rzi.s32.f32 %r8, %f0;", 'r', {F(1e20f)}, 0x7fffffff},
		{"cvt.rzi.s32.f32 %r8, %f0;", 'r', {F(-1e20f)}, 0x80000000},
		{"cvt.rzi.u32.f32 %r8, %f0;", 'r', {F(-1.0f)}, 0},
		{"cvt.rzi.s32.f32 %r8, %f0;", 'r', {NAN32}, 0},
		{"cvt.rzi.s32.f64 %r8, %e0;", 'r', {NAN64}, 0x80000000},
		{"cvt.rzi.u64.f32 %d8, %f0;", 'd', {NAN32}, 0x8000000000000000},
		{"cvt.rzi.u64.f64 %d8, %e0;", 'd', {D(1e30)}, M1},
		{"cvt.rzi.s16.f32 %h8, %f0;", 'h', {F(1e6f)}, 0x7fff},
		{"cvt.rzi.u8.f32 %r8, %f0;", 'r', {F(300.0f)}, 255},
		{"cvt.rn.f32.s32 %f8, %r0;", 'f', {M1}, F(-1.0f)},
		{"cvt.rn.f32.u32 %f8, %r0;", 'f', {0xffffffff}, F(4294967296.0f)},
		{"cvt.rz.f32.s32 %f8, %r0;", 'f', {0x7fffffff}, F(0x1.fffffep30f)},
		{"cvt.rp.f32.u64 %f8, %d0;", 'f', {0x1000001}, 0x4b800001},
		{"cvt.rn.f64.s64 %e8, %d0;", 'e', {M1}, D(-1)},
		{"cvt.rz.f64.u32 %e8, %r0;", 'e', {0xffffffff}, D(4294967295.0)},
		{"cvt.f64.f32 %e8, %f0;", 'e', {F(1.5f)}, D(1.5)},
		{"cvt.rn.f32.f64 %f8, %e0;", 'f', {D(1.0 + 0x1p-24)}, ONE},
		{"cvt.rp.f32.f64 %f8, %e0;", 'f', {D(1.0 + 0x1p-24)}, 0x3f800001},
		{"cvt.rz.f32.f64 %f8, %e0;", 'f', {D(1.0 + 0x1.8p-24)}, ONE},
		{"cvt.rni.f32.f32 %f8, %f0;", 'f', {F(2.5f)}, TWO},
		{"cvt.rmi.f64.f64 %e8, %e0;", 'e', {D(-2.5)}, D(-3)},
		{"cvt.sat.f32.f32 %f8, %f0;", 'f', {F(7.0f)}, ONE},
		{"cvt.ftz.f64.f32 %e8, %f0;", 'e', {1}, 0},
		{"cvt.f32.f16 %f8, %h0;", 'f', {0x3e00}, F(1.5f)},
		{"cvt.f32.bf16 %f8, %h0;", 'f', {0x3fc0}, F(1.5f)},
		{"cvt.rn.f16.f32 %h8, %f0;", 'h', {F(1.5f)}, 0x3e00},
		{"cvt.rz.f16.f32 %h8, %f0;", 'h', {F(65519.0f)}, 0x7bff},
		{"cvt.rn.f16.f32 %h8, %f0;", 'h', {F(65520.0f)}, 0x7c00},
		{"cvt.rn.satfinite.f16.f32 %h8, %f0;", 'h', {F(1e9f)}, 0x7bff},
		{"cvt.rn.bf16.f32 %h8, %f0;", 'h', {0x3f808000}, 0x3f80},
		{"cvt.rn.bf16.f32 %h8, %f0;", 'h', {0x3f818000}, 0x3f82},
		{"cvt.rn.relu.bf16.f32 %h8, %f0;", 'h', {F(-2.0f)}, 0},
		{"cvt.rn.f16x2.f32 %r8, %f0, %f1;", 'r', {ONE, TWO}, 0x3c004000},
		{"cvt.rn.bf16x2.f32 %r8, %f0, %f1;", 'r', {ONE, TWO}, 0x3f804000},
		{"cvt.rn.f16.s32 %h8, %r0;", 'h', {3}, 0x4200},
		{"cvt.rzi.s32.f16 %r8, %h0;", 'r', {0xc200}, 0xfffffffd},
		{"cvt.rn.f16.f64 %h8, %e0;", 'h', {D(1.5)}, 0x3e00},
		{"cvt.rna.tf32.f32 %r8, %f0;", 'r', {0x3f801000}, 0x3f802000},
		{"cvt.rna.tf32.f32 %r8, %f0;", 'r', {0x3f800fff}, 0x3f800000},
	};
	PTX_RUN(cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic),  cmocka_unit_test(minmax),
		cmocka_unit_test(halves),      cmocka_unit_test(comparisons),
		cmocka_unit_test(conversions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
