/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges that the PTX ISA's text spells out, section by section: values that do not fit, shifts
 * by more than the width, zeros of either sign, denormals, infinities and NaNs.
 */
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
#define MINUS 0x80000000
#define NAN32 0x7fc00000
#define INF   0x7f800000
#define NINF  0xff800000
#define DNAN  0x7ff8000000000000
#define ALL   0xffffffffffffffffull
#define W(x)  ((uint32_t)(x))
/* 1 for a NaN: its bits are the machine's. */
#define IS_NAN32 " setp.nan.f32 %p8, %f8, %f8;"

static void integers(void **state)
{
	const struct ptx_case cases[] = {
		{"add.u16x2 %r8, %r0, %r1;", 'r', {0xffff0001, 0x00010001}, 0x00000002},
		{"add.sat.s32 %r8, %r0, 1;", 'r', {0x7fffffff}, 0x7fffffff},
		{"add.sat.s32 %r8, %r0, -1;", 'r', {0x80000000}, 0x80000000},
		{"sub.sat.s32 %r8, %r0, 1;", 'r', {0x80000000}, 0x80000000},
		{"sub.sat.s32 %r8, %r0, %r1;", 'r', {0, 0x80000000}, 0x7fffffff},
		{"mul.hi.s16 %h8, %h0, %h1;", 'h', {0x8000, 0x8000}, 0x4000},
		{"mul.hi.u16 %h8, %h0, %h1;", 'h', {0xffff, 0xffff}, 0xfffe},
		{"mul.hi.s64 %d8, %d0, %d1;", 'd', {ALL, ALL}, 0},
		{"mul.hi.u64 %d8, %d0, %d1;", 'd', {ALL, ALL}, 0xfffffffffffffffe},
		{"mul.wide.s16 %r8, %h0, %h1;", 'r', {0x8000, 0xffff}, 0x8000},
		{"mul.wide.u32 %d8, %r0, %r1;", 'd', {W(-1), W(-1)}, 0xfffffffe00000001},
		{"mad.wide.s32 %d8, %r0, %r1, %d2;", 'd', {W(-1), 2, 1}, ALL},
		{"mad.hi.sat.s32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0x40000000, 4, 0x7fffffff},
		 0x7fffffff},
		{"mad.hi.sat.s32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0x80000000, 0x40000000, 0x80000001},
		 0x80000000},
		/* bits 47 to 16 of 24 by 24 bits; the highest bytes do not count */
		{"mul24.hi.u32 %r8, %r0, %r1;", 'r', {0xaaffffff, 0xbbffffff}, 0xfffffe00},
		{"mul24.lo.s32 %r8, %r0, %r1;", 'r', {0x00ffffff, 3}, W(-3)},
		{"mul24.hi.s32 %r8, %r0, %r1;", 'r', {0x00800000, 0x00800000}, 0x40000000},
		{"mad24.hi.sat.s32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0x00800000, 0x00800000, 0x7fffffff},
		 0x7fffffff},
		{"sad.s32 %r8, %r0, %r1, %r2;", 'r', {0x80000000, 0x7fffffff, 5}, 4},
		{"sad.u16 %h8, %h0, %h1, %h2;", 'h', {0, 0xffff, 2}, 1},
		{"sad.u64 %d8, %d0, %d1, %d2;", 'd', {3, 10, ALL}, 6},
		{"div.s32 %r8, %r0, %r1;", 'r', {0x80000000, W(-1)}, 0x80000000},
		{"rem.s32 %r8, %r0, %r1;", 'r', {0x80000000, W(-1)}, 0},
		{"div.s32 %r8, %r0, %r1;", 'r', {W(-7), 2}, W(-3)},
		{"rem.s32 %r8, %r0, %r1;", 'r', {W(-7), 2}, W(-1)},
		{"abs.s32 %r8, %r0;", 'r', {0x80000000}, 0x80000000},
		{"abs.s16 %h8, %h0;", 'h', {0x8000}, 0x8000},
		{"neg.s64 %d8, %d0;", 'd', {0x8000000000000000}, 0x8000000000000000},
		{"min.relu.s16x2 %r8, %r0, %r1;", 'r', {0x80000005, 0x7fff0003}, 3},
		{"max.relu.s32 %r8, %r0, %r1;", 'r', {W(-5), W(-3)}, 0},
		{"min.u16x2 %r8, %r0, %r1;", 'r', {0x80000005, 0x7fff0003}, 0x7fff0003},
	};
	PTX_RUN(cases);
}

static void bits(void **state)
{
	const struct ptx_case cases[] = {
		{"popc.b64 %r8, %d0;", 'r', {ALL}, 64},
		{"clz.b32 %r8, %r0;", 'r', {0}, 32},
		{"clz.b64 %r8, %d0;", 'r', {0}, 64},
		{"bfind.u32 %r8, %r0;", 'r', {0}, W(-1)},
		{"bfind.s32 %r8, %r0;", 'r', {W(-1)}, W(-1)},
		{"bfind.s32 %r8, %r0;", 'r', {0x80000000}, 30},
		{"bfind.u64 %r8, %d0;", 'r', {0x8000000000000000}, 63},
		{"bfind.shiftamt.u32 %r8, %r0;", 'r', {1}, 31},
		{"bfind.shiftamt.u32 %r8, %r0;", 'r', {0}, W(-1)},
		{"fns.b32 %r8, 0xaaaaaaaa, 3, 1;", 'r', {0}, 3},
		{"fns.b32 %r8, 0xaaaaaaaa, 3, -1;", 'r', {0}, 3},
		{"fns.b32 %r8, 0xaaaaaaaa, 2, 1;", 'r', {0}, 3},
		{"fns.b32 %r8, 0xaaaaaaaa, 2, -1;", 'r', {0}, 1},
		{"fns.b32 %r8, 0xaaaaaaaa, 2, 0;", 'r', {0}, W(-1)},
		{"fns.b32 %r8, 0xaaaaaaaa, 3, 0;", 'r', {0}, 3},
		{"fns.b32 %r8, 1, 1, 1;", 'r', {0}, W(-1)},
		{"bfe.s32 %r8, %r0, 40, 3;", 'r', {0x80000000}, W(-1)},
		{"bfe.s32 %r8, %r0, 30, 8;", 'r', {0x80000000}, W(-2)},
		{"bfe.s32 %r8, %r0, 4, 0;", 'r', {W(-1)}, 0},
		{"bfe.u32 %r8, %r0, 40, 3;", 'r', {W(-1)}, 0},
		{"bfe.u32 %r8, %r0, %r1, %r2;", 'r', {0xf0, 260, 260}, 0xf},
		{"bfe.u64 %d8, %d0, 60, 8;", 'd', {ALL}, 15},
		{"bfe.s64 %d8, %d0, 4, 4;", 'd', {0x80}, 0xfffffffffffffff8},
		{"bfi.b32 %r8, %r0, %r1, 40, 4;", 'r', {W(-1), 0x1234}, 0x1234},
		{"bfi.b32 %r8, %r0, %r1, 4, 0;", 'r', {W(-1), 0x1234}, 0x1234},
		{"bfi.b32 %r8, %r0, %r1, 28, 40;", 'r', {0xab, 0x01234567}, 0xb1234567},
		{"bfi.b64 %d8, %d0, %d1, 60, 255;", 'd', {5, 0}, 0x5000000000000000},
		{"szext.wrap.u32 %r8, %r0, 32;", 'r', {W(-1)}, 0},
		{"szext.clamp.u32 %r8, %r0, 32;", 'r', {0xdeadbeef}, 0xdeadbeef},
		{"szext.clamp.s32 %r8, %r0, %r1;", 'r', {0xdeadbeef, W(-1)}, 0xdeadbeef},
		{"szext.wrap.s32 %r8, %r0, 33;", 'r', {1}, W(-1)},
		{"szext.clamp.s32 %r8, %r0, 0;", 'r', {W(-1)}, 0},
		{"bmsk.clamp.b32 %r8, 31, 5;", 'r', {0}, 0x80000000},
		{"bmsk.clamp.b32 %r8, 32, 1;", 'r', {0}, 0},
		{"bmsk.clamp.b32 %r8, 0, 32;", 'r', {0}, W(-1)},
		{"bmsk.wrap.b32 %r8, 0, 32;", 'r', {0}, 0},
		{"bmsk.wrap.b32 %r8, 33, 2;", 'r', {0}, 6},
		{"dp4a.u32.u32 %r8, %r0, %r1, %r2;", 'r', {W(-1), W(-1), W(-1)}, 260099},
		{"dp4a.s32.s32 %r8, %r0, %r1, %r2;", 'r', {0x80808080, 0x80808080, 0}, 65536},
		{"dp2a.hi.s32.s32 %r8, %r0, %r1, 1;", 'r', {0x80008000, 0x80800000}, 0x800001},
		{"shl.b16 %h8, %h0, 16;", 'h', {0xffff}, 0},
		{"shl.b32 %r8, %r0, %r1;", 'r', {W(-1), 32}, 0},
		{"shl.b32 %r8, %r0, %r1;", 'r', {W(-1), W(-1)}, 0},
		{"shl.b64 %d8, %d0, 64;", 'd', {ALL}, 0},
		{"shr.s16 %h8, %h0, 100;", 'h', {0x8000}, 0xffff},
		{"shr.u16 %h8, %h0, 16;", 'h', {0xffff}, 0},
		{"shr.b32 %r8, %r0, %r1;", 'r', {0x80000000, 32}, 0},
		{"shr.s64 %d8, %d0, %r1;", 'd', {0x8000000000000000, W(-1)}, ALL},
		{"shf.l.clamp.b32 %r8, %r0, %r1, 33;", 'r', {5, 9}, 5},
		{"shf.l.wrap.b32 %r8, %r0, %r1, 33;", 'r', {0x80000000, 9}, 19},
		{"shf.r.clamp.b32 %r8, %r0, %r1, %r2;", 'r', {5, 9, W(-1)}, 9},
		{"shf.r.wrap.b32 %r8, %r0, %r1, 32;", 'r', {5, 9}, 5},
		{"cnot.b16 %h8, %h0;", 'h', {0}, 1},
		{"lop3.b32 %r8, %r0, %r1, %r2, 0x1a;", 'r', {0xf0, 0xcc, 0xaa}, 0x1a},
		{"lop3.or.b32 _|%p8, %r0, %r1, %r2, 0x40, %p0;", 'p', {1, 1, 0, 0}, 1},
		{"lop3.and.b32 %r7|%p8, %r0, %r1, %r2, 0x40, !%p0;", 'p', {1, 1, 0, 1}, 0},
		{"prmt.b32 %r8, %r0, %r1, 0x9f80;", 'r', {0x80, 0x80000000}, 0x00ffff80},
		{"prmt.b32.b4e %r8, %r0, %r1, 1;", 'r', {0x33221100, 0x77665544}, 0x66770011},
		{"prmt.b32.ecl %r8, %r0, %r1, 6;", 'r', {0x33221100, 0}, 0x33222222},
	};
	PTX_RUN(cases);
}

/* The carry of an addition, the borrow of a subtraction, through words of 32 and 64 bits. */
static void carries(void **state)
{
	const struct ptx_case cases[] = {
		{"add.cc.u32 %r7, %r0, %r1; addc.u32 %r8, 0, 0;", 'r', {W(-1), 1}, 1},
		{"add.cc.u32 %r7, %r0, 1; addc.cc.u32 %r7, %r1, 0; addc.u32 %r8, 0, 0;",
		 'r',
		 {W(-1), W(-1)},
		 1},
		{"add.cc.u32 %r7, %r0, 1; addc.cc.u32 %r7, %r1, %r1; addc.u32 %r8, 0, 0;",
		 'r',
		 {0, 0x7fffffff},
		 0},
		{"sub.cc.u32 %r7, %r0, 1; subc.u32 %r8, 5, 0;", 'r', {0}, 4},
		{"sub.cc.u32 %r7, %r0, 1; subc.cc.u32 %r7, 0, 0; subc.u32 %r8, 0, 0;",
		 'r',
		 {0},
		 W(-1)},
		{"sub.cc.u32 %r7, %r0, 1; subc.cc.u32 %r7, %r1, %r1; subc.u32 %r8, 0, 0;",
		 'r',
		 {1, 9},
		 0},
		{"add.cc.s64 %d7, %d0, %d1; addc.u64 %d8, %d2, %d3;", 'd', {ALL, 1, 2, 3}, 6},
		{"mad.lo.cc.u32 %r7, %r0, %r1, %r2; madc.hi.u32 %r8, %r0, %r1, 0;",
		 'r',
		 {W(-1), W(-1), W(-1)},
		 W(-1)},
		{"mad.hi.cc.s32 %r7, %r0, %r1, %r2; addc.u32 %r8, 0, 0;",
		 'r',
		 {W(-1), 1, W(-1)},
		 1},
		{"mad.lo.cc.u64 %d7, %d0, %d1, 1; madc.hi.cc.u64 %d8, %d0, %d1, 0;",
		 'd',
		 {ALL, ALL},
		 ALL - 1},
	};
	PTX_RUN(cases);
}

static void floats(void **state)
{
	const struct ptx_case cases[] = {
		{"testp.normal.f32 %p8, %f0;", 'p', {0}, 1},
		{"testp.normal.f32 %p8, %f0;", 'p', {MINUS}, 1},
		{"testp.normal.f32 %p8, %f0;", 'p', {1}, 0},
		{"testp.normal.f64 %p8, %e0;", 'p', {0x8000000000000000}, 1},
		{"testp.normal.f32 %p8, %f0;", 'p', {INF}, 0},
		{"testp.subnormal.f32 %p8, %f0;", 'p', {MINUS}, 0},
		{"testp.finite.f64 %p8, %e0;", 'p', {1}, 1},
		{"copysign.f32 %f8, %f0, %f1;", 'f', {MINUS, 0x7fc12345}, 0xffc12345},
		{"add.sat.f32 %f8, %f0, %f1;", 'f', {NINF, INF}, 0},
		{"mul.sat.f32 %f8, %f0, %f1;", 'f', {INF, ONE}, ONE},
		{"mul.ftz.sat.f32 %f8, %f0, %f1;", 'f', {0x00800000, 0x3f000000}, 0},
		{"fma.rn.ftz.f32 %f8, %f0, %f1, %f2;" IS_NAN32, 'p', {1, INF, ONE}, 1},
		{"min.f32 %f8, %f0, %f1;" IS_NAN32, 'p', {NAN32, 0xffc00000}, 1},
		{"max.NaN.f32 %f8, %f0, %f1;" IS_NAN32, 'p', {ONE, 0x7f800001}, 1},
		{"min.NaN.f32 %f8, %f0, %f1;", 'f', {0, MINUS}, MINUS},
		{"max.NaN.f32 %f8, %f0, %f1;", 'f', {MINUS, 0}, 0},
		{"max.f64 %e8, %e0, %e1;", 'e', {DNAN, 5}, 5},
		{"max.ftz.f32 %f8, %f0, %f1;", 'f', {0x80000001, 0x80000002}, MINUS},
		{"max.NaN.xorsign.abs.f32 %f8, %f0, %f1;", 'f', {0xc0400000, TWO}, 0xc0400000},
		{"min.abs.f32 %f8, %f0, %f1, %f2;", 'f', {0xc0400000, 0xbf800000, TWO}, ONE},
		{"rcp.approx.f32 %f8, %f0;", 'f', {MINUS}, NINF},
		{"rcp.approx.f32 %f8, %f0;", 'f', {NINF}, MINUS},
		{"sqrt.approx.f32 %f8, %f0;", 'f', {MINUS}, MINUS},
		{"sqrt.rn.f32 %f8, %f0;" IS_NAN32, 'p', {0xbf800000}, 1},
		{"rsqrt.approx.f32 %f8, %f0;", 'f', {MINUS}, NINF},
		{"rsqrt.approx.f32 %f8, %f0;", 'f', {INF}, 0},
		{"lg2.approx.f32 %f8, %f0;", 'f', {MINUS}, NINF},
		{"lg2.approx.ftz.f32 %f8, %f0;", 'f', {1}, NINF},
		{"lg2.approx.f32 %f8, %f0;" IS_NAN32, 'p', {0xbf800000}, 1},
		{"ex2.approx.f32 %f8, %f0;", 'f', {NINF}, 0},
		{"ex2.approx.ftz.f32 %f8, %f0;", 'f', {0xc2fe0000}, 0},
		{"ex2.approx.f32 %f8, %f0;", 'f', {0xc2fe0000}, 0x00400000},
		{"sin.approx.f32 %f8, %f0;", 'f', {MINUS}, MINUS},
		{"cos.approx.f32 %f8, %f0;" IS_NAN32, 'p', {INF}, 1},
		{"tanh.approx.f32 %f8, %f0;", 'f', {NINF}, 0xbf800000},
		{"tanh.approx.f32 %f8, %f0;", 'f', {0x80000001}, 0x80000001},
		/* 2^127 is beyond what a divisor may be: 0 of the quotient's sign */
		{"div.approx.f32 %f8, %f0, %f1;", 'f', {ONE, 0xff000000}, MINUS},
		{"div.approx.f32 %f8, %f0, %f1;", 'f', {0x7f000000, 0x7f000000}, 0},
		{"div.approx.f32 %f8, %f0, %f1;" IS_NAN32, 'p', {INF, 0x7f000000}, 1},
		{"div.approx.f32 %f8, %f0, %f1;", 'f', {0x7e800000, 0x7e800000}, ONE},
		{"div.approx.f32 %f8, %f0, %f1;", 'f', {ONE, INF}, 0},
		{"div.full.f32 %f8, %f0, %f1;", 'f', {0x7f000000, 0x7f000000}, ONE},
	};
	PTX_RUN(cases);
}

/* rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: upper words. */
static void upper_words(void **state)
{
	const struct ptx_case cases[] = {
		{"rcp.approx.ftz.f64 %e8, %e0;", 'e', {0x4000000000000000}, 0x3fe0000000000000},
		{"rcp.approx.ftz.f64 %e7, %e0; mov.b64 {%r8, %r7}, %e7;",
		 'r',
		 {0x4008000000000000},
		 0},
		{"rcp.approx.ftz.f64 %e8, %e0;", 'e', {0x40000000ffffffff}, 0x3fe0000000000000},
		{"rcp.approx.ftz.f64 %e8, %e0;", 'e', {0x800fffffffffffff}, 0xfff0000000000000},
		{"rcp.approx.ftz.f64 %e8, %e0;", 'e', {0xfff0000000000000}, 0x8000000000000000},
		{"rcp.approx.ftz.f64 %e8, %e0;", 'e', {0x7fefffffffffffff}, 0},
		{"rcp.approx.ftz.f64 %e8, %e0;", 'e', {DNAN}, 0x7fffffff00000000},
		{"rsqrt.approx.ftz.f64 %e8, %e0;", 'e', {0x4010000000000000}, 0x3fe0000000000000},
		{"rsqrt.approx.ftz.f64 %e7, %e0; mov.b64 {%r8, %r7}, %e7;",
		 'r',
		 {0x4000000000000000},
		 0},
		{"rsqrt.approx.ftz.f64 %e8, %e0;", 'e', {0x8000000000000001}, 0xfff0000000000000},
		{"rsqrt.approx.ftz.f64 %e8, %e0;", 'e', {0x7ff0000000000000}, 0},
		{"rsqrt.approx.ftz.f64 %e8, %e0;", 'e', {DNAN}, 0x7fffffff00000000},
	};
	PTX_RUN(cases);
}

static void halves(void **state)
{
	const struct ptx_case cases[] = {
		{"add.sat.f16 %h8, %h0, %h1;", 'h', {0x7e00, 0x3c00}, 0},
		{"sub.ftz.f16x2 %r8, %r0, %r1;", 'r', {0x03ff8001, 0}, 0x00008000},
		{"mul.f16 %h8, %h0, %h1;", 'h', {0x0400, 0x3800}, 0x0200},
		{"fma.rn.relu.bf16 %h8, %h0, %h1, %h2;", 'h', {0xbf80, 0x3f80, 0}, 0},
		{"neg.f16 %h8, %h0;", 'h', {0}, 0x8000},
		{"abs.ftz.f16x2 %r8, %r0;", 'r', {0x83ffbc00}, 0x00003c00},
		{"min.f16x2 %r8, %r0, %r1;", 'r', {0x00007e00, 0x80003c00}, 0x80003c00},
		{"max.NaN.bf16x2 %r8, %r0, %r1;", 'r', {0x7fc03f80, 0x3f804000}, 0x7fc04000},
		{"min.xorsign.abs.bf16 %h8, %h0, %h1;", 'h', {0xc040, 0x4000}, 0xc000},
		{"ex2.approx.ftz.bf16 %h8, %h0;", 'h', {0xc2fe}, 0},
		{"ex2.approx.ftz.bf16 %h8, %h0;", 'h', {0xc2fc}, 0x0080},
		{"ex2.approx.ftz.bf16x2 %r8, %r0;", 'r', {0x8001ff80}, 0x3f800000},
		{"ex2.approx.f16 %h8, %h0;", 'h', {0xcb80}, 0x0200},
		{"tanh.approx.f16 %h8, %h0;", 'h', {0xfc00}, 0xbc00},
		{"add.sat.f32.f16 %f8, %h0, %f1;", 'f', {0x7e00, ONE}, 0},
		{"sub.f32.bf16 %f8, %h0, %f1;", 'f', {0x0001, 0}, 0x00010000},
		{"fma.rn.sat.f32.f16 %f8, %h0, %h1, %f2;", 'f', {0x7bff, 0x7bff, 0}, ONE},
	};
	PTX_RUN(cases);
}

static void comparisons(void **state)
{
	const struct ptx_case cases[] = {
		{"setp.ne.f32 %p8, %f0, %f1;", 'p', {NAN32, ONE}, 0},
		{"setp.neu.f32 %p8, %f0, %f1;", 'p', {NAN32, ONE}, 1},
		{"setp.ltu.f64 %p8, %e0, %e1;", 'p', {DNAN, 0}, 1},
		{"setp.num.f16 %p8, %h0, %h1;", 'p', {0x7c00, 0x7e00}, 0},
		{"setp.eq.f32 %p8, %f0, %f1;", 'p', {MINUS, 0}, 1},
		{"setp.eq.ftz.f32 %p8, %f0, %f1;", 'p', {1, 0x80000002}, 1},
		{"setp.lt.f32 %p8, %f0, %f1;", 'p', {0x80000002, 1}, 1},
		{"setp.lt.ftz.f16 %p8, %h0, %h1;", 'p', {0x8001, 1}, 0},
		{"setp.lt.bf16 %p8, %h0, %h1;", 'p', {0x8001, 1}, 1},
		/* q is of the complement, before .and */
		{"setp.lt.and.s32 %p7|%p8, %r0, %r1, %p0;", 'p', {2, 1, 0, 0}, 0},
		{"setp.lt.or.s32 _|%p8, %r0, %r1, !%p0;", 'p', {2, 1, 0, 1}, 1},
		{"setp.hi.u16 %p8, %h0, %h1;", 'p', {0x8000, 0x7fff}, 1},
		{"setp.ne.b64 %p8, %d0, %d1;", 'p', {1ull << 63, 0}, 1},
		{"set.eq.u32.f32 %r8, %f0, %f1;", 'r', {MINUS, 0}, W(-1)},
		{"set.gt.f32.s64 %f8, %d0, %d1;", 'f', {0, ALL}, ONE},
		{"set.lt.xor.s32.u32 %r8, %r0, %r1, %p0;", 'r', {0, W(-1), 0, 1}, 0},
		{"set.nan.u16.f16 %h8, %h0, %h1;", 'h', {0x7e00, 0}, 0xffff},
		{"set.lt.bf16.s32 %h8, %r0, %r1;", 'h', {W(-1), 0}, 0x3f80},
		{"set.ge.f16.f64 %h8, %e0, %e1;", 'h', {0, 0x8000000000000000}, 0x3c00},
		{"set.ltu.or.bf16.f16 %h8, %h0, %h1, %p0;", 'h', {0x7e00, 0, 0, 0}, 0x3f80},
		{"set.eq.u32.bf16x2 %r8, %r0, %r1;", 'r', {0x80003f80, 0x00007fc0}, 0xffff0000},
		{"set.eq.ftz.f16x2.f16x2 %r8, %r0, %r1;", 'r', {0x83ff3c00, 0}, 0x3c000000},
		{"selp.b16 %h8, %h0, %h1, %p0;", 'h', {1, 2, 0, 0}, 2},
		{"slct.u64.f32 %d8, %d0, %d1, %f2;", 'd', {1, 2, NAN32}, 2},
		{"slct.u64.f32 %d8, %d0, %d1, %f2;", 'd', {1, 2, MINUS}, 1},
		{"slct.b32.f32 %r8, %r0, %r1, %f2;", 'r', {1, 2, 0x80000001}, 2},
		{"slct.ftz.b32.f32 %r8, %r0, %r1, %f2;", 'r', {1, 2, 0x80000001}, 1},
		{"slct.f32.s32 %f8, %f0, %f1, %r2;", 'f', {0x7f800001, 2, 0}, 0x7f800001},
	};
	PTX_RUN(cases);
}

/* Arrays, vectors and initialisers (PTX ISA 5.4, 6.4). */
static void operands(void **state)
{
	const struct ptx_case cases[] = {
		{".const .s32 x[3][2] = {{1, 2}, {3}}; ld.const.u32 %r8, x[2];", 'r', {0}, 3},
		{".const .s32 x[3][2] = {{1, 2}, {3}}; ld.const.u32 %r8, [x+4];", 'r', {0}, 2},
		{".const .s32 x[3][2] = {{1, 2}, {3}}; ld.const.u32 %r8, [x+12];", 'r', {0}, 0},
		{".const .s32 x[][2] = {{-1}, {0, -2}, {5, 6}}; ld.const.u32 %r8, x[%r0+2];",
		 'r',
		 {3},
		 6},
		{".const .v2 .u16 x[2] = {{1, 2}, {3, 4}}; ld.const.u16 %h8, x[%r0];", 'h', {3}, 4},
		{".const .u8 x[] = {0xff(0x1234), 0xff00(0x1200+0x34)}; ld.const.u16 %h8, [x];",
		 'h',
		 {0},
		 0x1234},
		{".shared .u32 x[8]; mov.u32 %r6, x; mov.u32 %r7, x[3]; sub.u32 %r8, %r7, %r6;",
		 'r',
		 {0},
		 12},
		{".local .b16 x[8]; st.local.u16 x[%r0+1], %h1; ld.local.u16 %h8, [x+6];",
		 'h',
		 {2, 77},
		 77},
		{".global .u32 x<3>; st.global.u32 [x1], %r0; ld.global.u32 %r8, [x1];",
		 'r',
		 {9},
		 9},
		{".reg .v4 .u32 v; mov.v4.u32 v, {1, 2, %r0, 4}; mov.v4.u32 {_, _, %r8, _}, v;",
		 'r',
		 {7},
		 7},
		{".reg .v2 .f64 v; mov.v2.f64 v, {%e0, %e1}; mov.v2.f64 v, {v.y, v.x}; "
		 "mov.f64 %e8, v.r;",
		 'e',
		 {1, 2},
		 2},
		{".reg .v4 .u32 v; mov.v4.u32 v, %ntid; mov.u32 %r8, v.w;", 'r', {0}, 1},
		{".reg .b128 %qq<1>; mov.b128 %qq0, {%r0, %r1, %r2, %r3}; mov.b128 {%d7, %d8}, "
		 "%qq0;",
		 'd',
		 {1, 2, 3, 4},
		 0x400000003},
		{"mov.b32 {%h7, %h8}, %r0;", 'h', {0x12345678}, 0x1234},
		{"ld.global.s8 %d8, [%d14];", 'd', {0x80}, 0xffffffffffffff80},
		{"ld.global.u8 %d8, [%d14];", 'd', {0x1ff}, 0xff},
		{"L: .branchtargets N<3>; brx.idx %r0, L; N0: mov.u32 %r8, 5; ret; "
		 "N2: mov.u32 %r8, 7; bra E; N1: mov.u32 %r8, 6; E:",
		 'r',
		 {1},
		 6},
		{"fence.gpu; fence.cta; mov.u32 %r8, 1;", 'r', {0}, 1},
	};
	PTX_RUN(cases);
}

/* Constant expressions (PTX ISA 4.5). */
static void constants(void **state)
{
	const struct ptx_case cases[] = {
		{"mov.u64 %d8, (-8 & -1) / 2;", 'd', {0}, (uint64_t)-4},
		{"mov.u64 %d8, -5 % 3;", 'd', {0}, 2},
		{"mov.u64 %d8, (~0) / 2;", 'd', {0}, ALL / 2},
		{"mov.u64 %d8, (-1U) / 2;", 'd', {0}, ALL / 2},
		{"mov.u64 %d8, (-8) >> 1U;", 'd', {0}, (uint64_t)-4},
		{"mov.u64 %d8, (1 == 1U) - 2 < 0;", 'd', {0}, 1},
		{"mov.u64 %d8, (1 < 2U) - 2 < 0;", 'd', {0}, 1},
		{"mov.u64 %d8, -8 / 2U;", 'd', {0}, 0x7ffffffffffffffc},
		{"mov.u64 %d8, (.s64)0xffffffffffffffff < 0;", 'd', {0}, 1},
		{"mov.u64 %d8, (.u64)-1 < 0;", 'd', {0}, 0},
		{"mov.u64 %d8, !0U - 2 < 0;", 'd', {0}, 1},
		{"mov.pred %p8, !0;", 'p', {0}, 1},
		{"mov.pred %p8, 1.5 < 2.5;", 'p', {0}, 1},
		{"mov.u32 %r8, 0x10U + 010 + 0b11 + WARP_SZ;", 'r', {0}, 59},
		{"mov.f64 %e8, 1.0 + 2.5;", 'e', {0}, 0x400c000000000000},
		{"mov.f64 %e8, -(1.0 * 4.0);", 'e', {0}, 0xc010000000000000},
		{"mov.f32 %f8, 1 ? 2.0 : 3.0;", 'f', {0}, TWO},
	};
	PTX_RUN(cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),    cmocka_unit_test(bits),
		cmocka_unit_test(carries),     cmocka_unit_test(floats),
		cmocka_unit_test(upper_words), cmocka_unit_test(halves),
		cmocka_unit_test(comparisons), cmocka_unit_test(operands),
		cmocka_unit_test(constants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
