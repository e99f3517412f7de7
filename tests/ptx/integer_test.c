/* SPDX-License-Identifier: Apache-2.0 */
/* Integer, bit and carry instructions give what the PTX ISA says, at their edges above all. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "run.h"

#define M1 0xffffffffffffffffull

static void arithmetic(void **state)
{
	static const struct ptx_case cases[] = {
		{"add.s32 %r8, %r0, %r1;", 'r', {0xffffffff, 2}, 1},
		{"add.u64 %d8, %d0, %d1;", 'd', {M1, 2}, 1},
		{"add.s16 %h8, %h0, %h1;", 'h', {0x7fff, 1}, 0x8000},
		{"add.sat.s32 %r8, %r0, %r1;", 'r', {0x7fffffff, 1}, 0x7fffffff},
		{"add.sat.s32 %r8, %r0, %r1;", 'r', {0x80000000, 0xffffffff}, 0x80000000},
		{"sub.sat.s32 %r8, %r0, %r1;", 'r', {0x80000000, 1}, 0x80000000},
		{"sub.s32 %r8, %r0, -5;", 'r', {3}, 8},
		{"add.u16x2 %r8, %r0, %r1;", 'r', {0x0001ffff, 0x00010001}, 0x00020000},
		{"mul.lo.s32 %r8, %r0, %r1;", 'r', {0x10001, 0x10001}, 0x20001},
		{"mul.hi.s32 %r8, %r0, %r1;", 'r', {M1, 2}, 0xffffffff},
		{"mul.hi.u32 %r8, %r0, %r1;", 'r', {M1, 2}, 1},
		{"mul.hi.u64 %d8, %d0, %d1;", 'd', {M1, M1}, M1 - 1},
		{"mul.hi.s64 %d8, %d0, %d1;", 'd', {M1, M1}, 0},
		{"mul.hi.s16 %h8, %h0, %h1;", 'h', {0x4000, 8}, 2},
		{"mul.wide.s32 %d8, %r0, %r1;", 'd', {M1, 3}, M1 - 2},
		{"mul.wide.u32 %d8, %r0, %r1;", 'd', {M1, 3}, 0x2fffffffd},
		{"mul.wide.s16 %r8, %h0, %h1;", 'r', {0xffff, 3}, 0xfffffffd},
		{"mad.lo.s32 %r8, %r0, %r1, %r2;", 'r', {3, 4, 5}, 17},
		{"mad.wide.s32 %d8, %r0, %r1, %d2;", 'd', {M1, 3, 10}, 7},
		{"mad.hi.sat.s32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0x7fffffff, 4, 0x7fffffff},
		 0x7fffffff},
		{"mul24.lo.s32 %r8, %r0, %r1;", 'r', {0x00ffffff, 5}, 0xfffffffb},
		{"mul24.lo.u32 %r8, %r0, %r1;", 'r', {0xff000003, 5}, 15},
		{"mul24.hi.u32 %r8, %r0, %r1;", 'r', {0xffffff, 0xffffff}, 0xfffffe00},
		{"mad24.lo.u32 %r8, %r0, %r1, %r2;", 'r', {3, 5, 7}, 22},
		{"sad.s32 %r8, %r0, %r1, %r2;", 'r', {M1, 4, 10}, 15},
		{"sad.u32 %r8, %r0, %r1, %r2;", 'r', {4, 10, 1}, 7},
		{"div.s32 %r8, %r0, %r1;", 'r', {(uint64_t)-7, 2}, 0xfffffffd},
		{"div.u32 %r8, %r0, %r1;", 'r', {7, 2}, 3},
		{"div.s32 %r8, %r0, %r1;", 'r', {0x80000000, M1}, 0x80000000},
		{"div.u32 %r8, %r0, %r1; mov.u32 %r8, 1;", 'r', {7, 0}, 1},
		{"div.s64 %d8, %d0, %d1; mov.u64 %d8, 1;", 'd', {7, 0}, 1},
		{"rem.s32 %r8, %r0, %r1;", 'r', {(uint64_t)-7, 2}, 0xffffffff},
		{"rem.s64 %d8, %d0, %d1;", 'd', {0x8000000000000000, M1}, 0},
		{"abs.s32 %r8, %r0;", 'r', {(uint64_t)-7}, 7},
		{"abs.s32 %r8, %r0;", 'r', {0x80000000}, 0x80000000},
		{"neg.s16 %h8, %h0;", 'h', {3}, 0xfffd},
		{"min.s32 %r8, %r0, %r1;", 'r', {M1, 1}, 0xffffffff},
		{"min.u32 %r8, %r0, %r1;", 'r', {M1, 1}, 1},
		{"max.s64 %d8, %d0, %d1;", 'd', {M1, 1}, 1},
		{"max.relu.s32 %r8, %r0, %r1;", 'r', {(uint64_t)-4, (uint64_t)-3}, 0},
		{"max.s16x2 %r8, %r0, %r1;", 'r', {0xffff0005, 0x0001fffe}, 0x00010005},
		{"dp4a.u32.u32 %r8, %r0, %r1, %r2;", 'r', {0xff020304, 0x01010101, 10}, 0x112},
		{"dp4a.u32.s32 %r8, %r0, %r1, %r2;", 'r', {0xff000000, 0xff000000, 0}, 0xffffff01},
		{"dp4a.s32.s32 %r8, %r0, %r1, %r2;", 'r', {0xff000000, 0xff000000, 0}, 1},
		{"dp2a.lo.s32.s32 %r8, %r0, %r1, %r2;", 'r', {0x00030002, 0x05060708, 1}, 38},
		{"dp2a.hi.s32.s32 %r8, %r0, %r1, %r2;", 'r', {0x00030002, 0x05060708, 1}, 28},
	};
	PTX_RUN(cases);
}

static void carry(void **state)
{
	static const struct ptx_case cases[] = {
		{"add.cc.u32 %r8, %r0, %r1; addc.u32 %r8, 0, 0;", 'r', {M1, 1}, 1},
		{"add.cc.u32 %r8, %r0, %r1; addc.u32 %r8, 0, 0;", 'r', {M1, 0}, 0},
		{"add.cc.u32 %r8, %r0, %r1; addc.cc.u32 %r8, %r2, 0; addc.u32 %r8, 0, 0;",
		 'r',
		 {M1, 1, M1},
		 1},
		{"sub.cc.u32 %r8, %r0, %r1; subc.u32 %r8, 5, 1;", 'r', {0, 1}, 3},
		{"sub.cc.u32 %r8, %r0, %r1; subc.u32 %r8, 5, 1;", 'r', {1, 1}, 4},
		{"sub.cc.u64 %d8, %d0, %d1; subc.u64 %d8, 0, 0;", 'd', {0, 1}, M1},
		{"mad.lo.cc.u32 %r8, %r0, %r1, %r2; madc.hi.u32 %r8, %r0, %r1, 0;",
		 'r',
		 {0xffffffff, 2, 4},
		 2},
		{"add.cc.s64 %d8, %d0, %d1; madc.lo.u64 %d8, %d2, %d3, 1;", 'd', {M1, 1, 3, 4}, 14},
		/* mul 64x64 -> low half of the high part by a carry chain, as compilers write it */
		{"mul.lo.u32 %r8, %r0, %r1; mad.lo.cc.u32 %r9, %r2, %r3, %r8; madc.hi.u32 %r8, "
		 "%r2, "
		 "%r3, 0;",
		 'r',
		 {0xffffffff, 1, 0x10000, 0x10000},
		 1},
	};
	PTX_RUN(cases);
}

static void bits(void **state)
{
	static const struct ptx_case cases[] = {
		{"popc.b32 %r8, %r0;", 'r', {0xf0f0}, 8},
		{"popc.b64 %r8, %d0;", 'r', {M1}, 64},
		{"clz.b32 %r8, %r0;", 'r', {0}, 32},
		{"clz.b64 %r8, %d0;", 'r', {1}, 63},
		{"brev.b32 %r8, %r0;", 'r', {1}, 0x80000000},
		{"brev.b64 %d8, %d0;", 'd', {2}, 0x4000000000000000},
		{"bfind.u32 %r8, %r0;", 'r', {0}, 0xffffffff},
		{"bfind.u32 %r8, %r0;", 'r', {0x80}, 7},
		{"bfind.s32 %r8, %r0;", 'r', {M1}, 0xffffffff},
		{"bfind.s32 %r8, %r0;", 'r', {0xfffffff0}, 3},
		{"bfind.u64 %r8, %d0;", 'r', {(uint64_t)1 << 40}, 40},
		{"bfind.shiftamt.u32 %r8, %r0;", 'r', {0x80}, 24},
		{"bfe.u32 %r8, %r0, %r1, %r2;", 'r', {0xabcd1234, 8, 8}, 0x12},
		{"bfe.s32 %r8, %r0, %r1, %r2;", 'r', {0x0000f000, 12, 4}, 0xffffffff},
		{"bfe.s32 %r8, %r0, %r1, %r2;", 'r', {0x80000000, 28, 8}, 0xfffffff8},
		{"bfe.u32 %r8, %r0, %r1, %r2;", 'r', {M1, 4, 0}, 0},
		{"bfe.u32 %r8, %r0, %r1, %r2;", 'r', {M1, 40, 4}, 0},
		{"bfe.s32 %r8, %r0, %r1, %r2;", 'r', {0x80000000, 40, 4}, 0xffffffff},
		{"bfe.u64 %d8, %d0, %r1, %r2;", 'd', {0x123456789abcdef0, 32, 16}, 0x5678},
		{"bfe.s64 %d8, %d0, %r1, %r2;",
		 'd',
		 {0x123456789abcdef0, 4, 8},
		 0xffffffffffffffef},
		{"bfi.b32 %r8, %r0, %r1, 8, 4;", 'r', {0xf5, 0}, 0x500},
		{"bfi.b32 %r8, %r0, %r1, 30, 8;", 'r', {0xff, 0}, 0xc0000000},
		{"bfi.b32 %r8, %r0, %r1, 4, 0;", 'r', {0xff, 0x77}, 0x77},
		{"bfi.b64 %d8, %d0, %d1, 32, 16;", 'd', {0xabcd, 1}, 0xabcd00000001},
		{"bmsk.clamp.b32 %r8, %r0, %r1;", 'r', {4, 8}, 0xff0},
		{"bmsk.clamp.b32 %r8, %r0, %r1;", 'r', {0, 40}, 0xffffffff},
		{"bmsk.wrap.b32 %r8, %r0, %r1;", 'r', {33, 34}, 0x6},
		{"fns.b32 %r8, %r0, 0, 2;", 'r', {0xb4}, 4},
		{"fns.b32 %r8, %r0, 7, -2;", 'r', {0xb4}, 5},
		{"fns.b32 %r8, %r0, 2, 0;", 'r', {0xb4}, 2},
		{"fns.b32 %r8, %r0, 0, 9;", 'r', {0xb4}, 0xffffffff},
		{"szext.clamp.s32 %r8, %r0, 4;", 'r', {0x8}, 0xfffffff8},
		{"szext.clamp.u32 %r8, %r0, 4;", 'r', {0xff}, 0xf},
		{"szext.clamp.s32 %r8, %r0, %r1;", 'r', {0x12345678, 40}, 0x12345678},
		{"szext.clamp.s32 %r8, %r0, %r1;", 'r', {0x12345678, 32}, 0x12345678},
		{"szext.wrap.u32 %r8, %r0, %r1;", 'r', {0xff, 36}, 0xf},
		{"szext.wrap.s32 %r8, %r0, %r1;", 'r', {0xff, 32}, 0},
		{"cnot.b32 %r8, %r0;", 'r', {0}, 1},
		{"cnot.b64 %d8, %d0;", 'd', {7}, 0},
		{"not.b16 %h8, %h0;", 'h', {0x00ff}, 0xff00},
		{"prmt.b32 %r8, %r0, %r1, 0x7531;", 'r', {0x33221100, 0x77665544}, 0x77553311},
		{"prmt.b32 %r8, %r0, %r1, 0x888b;", 'r', {0x80221180, 0}, 0xffffffff},
		{"prmt.b32 %r8, %r0, %r1, 0x9998;", 'r', {0x00001180, 0}, 0x000000ff},
		{"prmt.b32.f4e %r8, %r0, %r1, %r2;", 'r', {0x33221100, 0x77665544, 1}, 0x44332211},
		{"prmt.b32.b4e %r8, %r0, %r1, %r2;", 'r', {0x33221100, 0x77665544, 1}, 0x66770011},
		{"prmt.b32.rc8 %r8, %r0, %r1, %r2;", 'r', {0x33221100, 0, 2}, 0x22222222},
		{"prmt.b32.ecl %r8, %r0, %r1, %r2;", 'r', {0x33221100, 0, 2}, 0x33222222},
		{"prmt.b32.ecr %r8, %r0, %r1, %r2;", 'r', {0x33221100, 0, 2}, 0x22221100},
		{"prmt.b32.rc16 %r8, %r0, %r1, %r2;", 'r', {0x33221100, 0, 3}, 0x33223322},
	};
	PTX_RUN(cases);
}

static void shifts(void **state)
{
	static const struct ptx_case cases[] = {
		{"shl.b32 %r8, %r0, %r1;", 'r', {1, 31}, 0x80000000},
		{"shl.b32 %r8, %r0, %r1;", 'r', {1, 32}, 0},
		{"shl.b32 %r8, %r0, %r1;", 'r', {1, 0xffffffff}, 0},
		{"shl.b64 %d8, %d0, %r1;", 'd', {1, 63}, 0x8000000000000000},
		{"shl.b64 %d8, %d0, %r1;", 'd', {1, 64}, 0},
		{"shl.b16 %h8, %h0, %r1;", 'h', {1, 16}, 0},
		{"shl.b16 %h8, %h0, %r1;", 'h', {1, 0x10001}, 0},
		{"shr.u32 %r8, %r0, %r1;", 'r', {0x80000000, 31}, 1},
		{"shr.u32 %r8, %r0, %r1;", 'r', {0x80000000, 32}, 0},
		{"shr.s32 %r8, %r0, %r1;", 'r', {0x80000000, 40}, 0xffffffff},
		{"shr.s64 %d8, %d0, %r1;", 'd', {0x8000000000000000, 1000}, M1},
		{"shr.s16 %h8, %h0, %r1;", 'h', {0x8000, 0x10000}, 0xffff},
		{"shr.b32 %r8, %r0, 4;", 'r', {0x80000000}, 0x08000000},
		{"shf.l.wrap.b32 %r8, %r0, %r1, %r2;", 'r', {0x80000000, 1, 1}, 3},
		{"shf.l.wrap.b32 %r8, %r0, %r1, %r2;", 'r', {0xaaaa, 0xbbbb, 32}, 0xbbbb},
		{"shf.l.clamp.b32 %r8, %r0, %r1, %r2;", 'r', {0xaaaa, 0xbbbb, 40}, 0xaaaa},
		{"shf.r.wrap.b32 %r8, %r0, %r1, %r2;", 'r', {2, 1, 1}, 0x80000001},
		{"shf.r.clamp.b32 %r8, %r0, %r1, %r2;", 'r', {0xaaaa, 0xbbbb, 32}, 0xbbbb},
	};
	PTX_RUN(cases);
}

/* lop3 for every table: each bit position of the inputs is one line of the truth table. */
static void logic_tables(void **state)
{
	static struct ptx_case cases[256];
	static char code[256][64];

	for (unsigned t = 0; t < 256; t++) {
		snprintf(code[t], sizeof code[t], "lop3.b32 %%r8, %%r0, %%r1, %%r2, 0x%x;", t);
		/* The ISA's constants: ta = 0xF0, tb = 0xCC, tc = 0xAA give the table itself. */
		cases[t] = (struct ptx_case){code[t], 'r', {0xf0, 0xcc, 0xaa}, t};
		if (t & 1) /* the bits above are inputs 0, 0, 0 */
			cases[t].expected |= 0xffffff00;
	}
	PTX_RUN(cases);
}

static void predicates(void **state)
{
	static const struct ptx_case cases[] = {
		{"lop3.or.b32 %r8|%p8, %r0, %r1, %r2, 0x80, !%p0;", 'p', {0, 0, 0, 0}, 1},
		{"lop3.and.b32 %r8|%p8, %r0, %r1, %r2, 0xfe, %p0;", 'p', {4, 0, 0, 1}, 1},
		{"and.pred %p8, %p0, !%p8;", 'p', {0, 0, 0, 1}, 1},
		{"xor.pred %p8, %p0, %p0;", 'p', {0, 0, 0, 1}, 0},
		{"not.pred %p8, %p0;", 'p', {0, 0, 0, 0}, 1},
		{"mov.pred %p8, %p0;", 'p', {0, 0, 0, 1}, 1},
		{"@%p0 mov.u32 %r8, 5;", 'r', {0, 0, 0, 1}, 5},
		{"@!%p0 mov.u32 %r8, 5;", 'r', {0, 0, 0, 1}, 0},
	};
	PTX_RUN(cases);
}

/* The lanes of c do not show where all of d is written; .add sums the lanes onto c. */
static void video(void **state)
{
	static const struct ptx_case cases[] = {
		{"vadd4.u32.u32.u32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0xff010203, 0x01010101, 0},
		 0x00020304},
		{"vadd4.u32.u32.u32.sat %r8, %r0, %r1, %r2;",
		 'r',
		 {0xff010203, 0x01010101, 0},
		 0xff020304},
		{"vsub2.s32.s32.s32.sat %r8, %r0, %r1, %r2;",
		 'r',
		 {0x80000005, 0x00010007, 0},
		 0x8000fffe},
		{"vabsdiff4.u32.u32.u32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0xff010203, 0x01020104, 0},
		 0xfe010101},
		{"vabsdiff4.u32.u32.u32.add %r8, %r0, %r1, %r2;",
		 'r',
		 {0xff010203, 0x01020104, 5},
		 0x106},
		{"vmax4.s32.s32.s32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0xff010203, 0x01ff0404, 0},
		 0x01010404},
		{"vset4.u32.u32.gt %r8, %r0, %r1, %r2;",
		 'r',
		 {0xff010203, 0x01020103, 0},
		 0x01000100},
		{"vset2.s32.s32.lt.add %r8, %r0, %r1, %r2;", 'r', {0xffff0003, 0x00010004, 7}, 9},
		{"vmin2.u32.u32.u32 %r8, %r0, %r1, %r2;",
		 'r',
		 {0xffff0001, 0x0001ffff, 0},
		 0x00010001},
	};
	PTX_RUN(cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic),	cmocka_unit_test(carry),
		cmocka_unit_test(bits),		cmocka_unit_test(shifts),
		cmocka_unit_test(logic_tables), cmocka_unit_test(predicates),
		cmocka_unit_test(video),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
