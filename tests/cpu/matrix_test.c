/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix operations of a warp against the ISA's text: fragments are placed by the formulas of
 * each shape's section (PTX ISA 9.7.14.5), written here once more, shape by shape.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/matrix.h"
#include "tests/cpu/matrix_harness.h"

/* ---- Where the ISA puts element i of a lane's fragment ---- */

#define PLACE(name, r, c)                                                                          \
	static void name(unsigned lane, unsigned i, unsigned *row, unsigned *column)               \
	{                                                                                          \
		unsigned group = lane >> 2, thread = lane % 4;                                     \
                                                                                                   \
		*row = (r);                                                                        \
		*column = (c);                                                                     \
		(void)group, (void)thread, (void)i;                                                \
	}
/* m8n8k4 .f64 */
PLACE(a_8x4_f64, group, thread)
PLACE(b_4x8_f64, thread, group)
PLACE(c_8x8, group, thread * 2 + (i & 1))
/* m8n8k16 bytes, m8n8k32 nibbles, m8n8k128 bits */
PLACE(a_8x16, group, thread * 4 + i)
PLACE(b_16x8, thread * 4 + i, group)
PLACE(a_8x32, group, thread * 8 + i)
PLACE(b_32x8, thread * 8 + i, group)
PLACE(a_8x128, group, thread * 32 + i)
PLACE(b_128x8, thread * 32 + i, group)
/* m16n8: C and D */
PLACE(c_16x8, i < 2 ? group : group + 8, thread * 2 + (i & 1))
/* m16n8k4, m16n8k8 .tf32 and .f64 */
PLACE(a_16x4, i == 0 ? group : group + 8, thread)
PLACE(b_4x8, thread, group)
PLACE(a_16x8_tf32, i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4)
PLACE(b_8x8_tf32, i == 0 ? thread : thread + 4, group)
/* m16n8k16 .f64 */
PLACE(a_16x16_f64, i % 2 == 0 ? group : group + 8, i / 2 * 4 + thread)
PLACE(b_16x8_f64, thread + i * 4, group)
/* m16n8k8 .f16, .bf16 */
PLACE(a_16x8_f16, i < 2 ? group : group + 8, thread * 2 + (i & 1))
PLACE(b_8x8_f16, thread * 2 + i, group)
/* m16n8k16 .f16, .bf16 */
PLACE(a_16x16_f16, i < 2 || (4 <= i && i < 6) ? group : group + 8,
      i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8)
PLACE(b_16x8_f16, i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8, group)
/* m16n8k16 bytes */
PLACE(a_16x16_s8, i < 4 ? group : group + 8, thread * 4 + (i & 3))
/* m16n8k32 bytes */
PLACE(a_16x32_s8, i < 4 || (8 <= i && i < 12) ? group : group + 8,
      i < 8 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16)
PLACE(b_32x8_s8, i < 4 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16, group)
/* m16n8k32, m16n8k64 nibbles */
PLACE(a_16x32_s4, i < 8 ? group : group + 8, thread * 8 + (i & 7))
PLACE(a_16x64_s4, i < 8 || (16 <= i && i < 24) ? group : group + 8,
      i < 16 ? thread * 8 + (i & 7) : thread * 8 + (i & 7) + 32)
PLACE(b_64x8_s4, i < 8 ? thread * 8 + (i & 7) : thread * 8 + (i & 7) + 32, group)
/* m16n8k128, m16n8k256 bits */
PLACE(a_16x128, i < 32 ? group : group + 8, thread * 32 + (i & 0x1f))
PLACE(a_16x256, i < 32 || (64 <= i && i < 96) ? group : group + 8,
      i < 64 ? thread * 32 + i % 32 : thread * 32 + i % 32 + 128)
PLACE(b_256x8, i < 32 ? thread * 32 + i % 32 : thread * 32 + i % 32 + 128, group)

static const struct shape {
	unsigned m, k, bits;
	matrix_place *a, *b;
} shapes[] = {
	{8, 4, 64, a_8x4_f64, b_4x8_f64},
	{8, 16, 8, a_8x16, b_16x8},
	{8, 32, 4, a_8x32, b_32x8},
	{8, 128, 1, a_8x128, b_128x8},
	{16, 4, 64, a_16x4, b_4x8},
	{16, 8, 64, a_16x8_tf32, b_8x8_tf32},
	{16, 16, 64, a_16x16_f64, b_16x8_f64},
	{16, 4, 32, a_16x4, b_4x8},
	{16, 8, 32, a_16x8_tf32, b_8x8_tf32},
	{16, 8, 16, a_16x8_f16, b_8x8_f16},
	{16, 16, 16, a_16x16_f16, b_16x8_f16},
	{16, 16, 8, a_16x16_s8, b_16x8},
	{16, 32, 8, a_16x32_s8, b_32x8_s8},
	{16, 32, 4, a_16x32_s4, b_32x8},
	{16, 64, 4, a_16x64_s4, b_64x8_s4},
	{16, 128, 1, a_16x128, b_128x8},
	{16, 256, 1, a_16x256, b_256x8},
};

static void check_mma(const struct tally_matrix_form *f, const struct shape *shape)
{
	static int a[16 * 256], b[256 * 8], c[16 * 8];
	static uint64_t in[32 * MATRIX_WORDS], out[32 * MATRIX_WORDS];
	struct tally_buffer text = {0};
	matrix_place *cd = f->m == 8 ? c_8x8 : c_16x8;
	unsigned next, per = matrix_bits_of(f->d) == 16 ? 2 : 1;

	memset(in, 0, sizeof in);
	memset(out, 0, sizeof out);
	for (unsigned i = 0; i < f->m * f->k; i++)
		a[i] = matrix_number(f->a, i);
	for (unsigned i = 0; i < f->k * f->n; i++)
		b[i] = matrix_number(f->b, i + 7777);
	for (unsigned i = 0; i < f->m * f->n; i++)
		c[i] = f->flags & TALLY_MATRIX_SATURATED ? (i % 2 ? INT32_MAX - 5 : INT32_MIN + 5)
							 : matrix_number(f->c, i + 99);
	next = matrix_distribute(in, 0, f->a, f->m * f->k, f->k, shape->a, a);
	next = matrix_distribute(in, next, f->b, f->k * f->n, f->n, shape->b, b);
	matrix_distribute(in, next, f->c, f->m * f->n, f->n, cd, c);
	matrix_print_kernel(&text, f->name, f->signature);
	matrix_run(text.data, in, out);
	tally_buffer_free(&text);
	for (unsigned lane = 0; lane < 32; lane++)
		for (unsigned i = 0; i < f->m * f->n / 32u; i++) {
			unsigned row, column;
			uint64_t got = out[lane * MATRIX_WORDS + i / per];
			int64_t sum;

			cd(lane, i, &row, &column);
			sum = c[row * f->n + column];
			for (unsigned k = 0; k < f->k; k++) {
				int x = a[row * f->k + k], y = b[k * f->n + column];

				sum += f->a != TALLY_MATRIX_B1	     ? x * y
				       : f->flags & TALLY_MATRIX_AND ? (x & y)
								     : (x ^ y);
			}
			if (f->flags & TALLY_MATRIX_SATURATED)
				sum = sum > INT32_MAX	? INT32_MAX
				      : sum < INT32_MIN ? INT32_MIN
							: sum;
			got = per == 2 ? got >> i % 2 * 16 & 0xffff : got;
			if (matrix_bits_of(f->d) == 32)
				got &= 0xffffffff;
			if (got != matrix_bits_for(f->d, (int)sum))
				fail_msg("%s: lane %u element %u: %llx, not %llx", f->name, lane, i,
					 (unsigned long long)got,
					 (unsigned long long)matrix_bits_for(f->d, (int)sum));
		}
}

/* Every mma of the contract. */
static void products(void **state)
{
	const struct tally_operation *o;
	unsigned count = 0;

	for (size_t i = 0; (o = tally_operation_at(i)); i++) {
		const struct tally_matrix_form *f = tally_matrix_find(o->name, NULL);
		const struct shape *shape = NULL;

		/* matrix_more_test.c has the rest; the narrowest floats have no portable body. */
		if (cpu_test_portable_matrix && f && strstr(f->name, ".kind."))
			continue;
		if (!f || f->kind != TALLY_MATRIX_MMA || TALLY_MATRIX_SCALES(f->flags) ||
		    f->flags & (TALLY_MATRIX_ZERO | TALLY_MATRIX_DOWN | TALLY_MATRIX_UP))
			continue;
		for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
			if (shapes[k].m == f->m && shapes[k].k == f->k &&
			    shapes[k].bits == matrix_bits_of(f->a))
				shape = &shapes[k];
		if (!shape)
			fail_msg("%s: no such shape here", f->name);
		check_mma(f, shape);
		count++;
	}
	matrix_check_count(count, cpu_test_portable_matrix ? 82 : 132);
}

/* Infinity, NaN, an overflow of f16, and a sum that f32 alone would lose. */
static void special_values(void **state)
{
	static const struct {
		uint32_t a0, a1, b0, b1, c; /* halves of row 0 and column 0: k = 0, 1 */
		uint32_t d;
	} cases[] = {
		{0x7c00, 0, 0x3c00, 0, 0, 0x7f800000},		 /* inf * 1 */
		{0x7c00, 0, 0, 0, 0, 0x7fffffff},		 /* inf * 0: NaN */
		{0x7c00, 0xfc00, 0x3c00, 0x3c00, 0, 0x7fffffff}, /* inf - inf */
		{0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3f800000, 0x40400000},
		{0x0001, 0, 0x3c00, 0, 0, 0x33800000}, /* a denormal half is not flushed */
#ifndef MATRIX_ON_DEVICE /* where the ISA leaves the precision of sums open */
		{0x7bff, 0xfbff, 0x7bff, 0x7bff, 0x3f800000, 0x3f800000}, /* big terms cancel */
#endif
	};
	struct tally_buffer text = {0};
	const struct tally_matrix_form *f =
		tally_matrix_find("tally.mma.m16n8k8.row.col.f32.f16.f16.f32", NULL);

	matrix_print_kernel(&text, f->name, f->signature);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t in[32 * MATRIX_WORDS] = {0}, out[32 * MATRIX_WORDS] = {0};

		in[0] = cases[i].a0 | cases[i].a1 << 16;
		in[2] = cases[i].b0 | cases[i].b1 << 16;
		in[3] = cases[i].c;
		matrix_run(text.data, in, out);
		assert_int_equal((uint32_t)out[0], cases[i].d);
	}
	tally_buffer_free(&text);
	f = tally_matrix_find("tally.mma.m16n8k8.row.col.f16.f16.f16.f16", NULL);
	matrix_print_kernel(&text, f->name, f->signature);
	uint64_t in[32 * MATRIX_WORDS] = {0}, out[32 * MATRIX_WORDS] = {0};
	in[0] = 0x7bff; /* 65504 * 2: beyond f16 */
	in[2] = 0x4000;
	in[1] = 0x7e00; /* row 8: NaN */
	matrix_run(text.data, in, out);
	assert_int_equal(out[0] & 0xffff, 0x7c00);
	assert_int_equal(out[1] & 0xffff, 0x7fff);
	tally_buffer_free(&text);
}

#ifndef MATRIX_ON_DEVICE
/* movmatrix, ldmatrix and stmatrix, on halves that say where they came from. */
static void rows(void **state)
{
	static const char frame[] =
		"@s = internal addrspace(3) global [256 x i16] undef, align 16\n"
		"define void @k(ptr %%in, ptr %%out) \"tally.kernel\" {\n"
		"  %%x = call i32 @tally.thread.id.x()\n"
		"  %%at = mul i32 %%x, 8\n"
		"  %%mine = getelementptr i16, ptr addrspace(3) @s, i32 %%at\n"
		"  %%word = mul i32 %%x, 32\n"
		"  %%from = getelementptr i64, ptr %%in, i32 %%word\n"
		"  %%to = getelementptr i64, ptr %%out, i32 %%word\n"
		"  %%v = load <8 x i16>, ptr %%from, align 8\n"
		"  store <8 x i16> %%v, ptr addrspace(3) %%mine, align 16\n"
		"  call void @tally.barrier(i32 0, i32 0)\n"
		"  %%r = call {i32, i32, i32, i32} @tally.ldmatrix.m8n8.x4%s.b16(ptr addrspace(3) "
		"%%mine)\n"
		"  %%a = extractvalue {i32, i32, i32, i32} %%r, 0\n"
		"  %%b = extractvalue {i32, i32, i32, i32} %%r, 1\n"
		"  %%c = extractvalue {i32, i32, i32, i32} %%r, 2\n"
		"  %%d = extractvalue {i32, i32, i32, i32} %%r, 3\n"
		"  store {i32, i32, i32, i32} %%r, ptr %%to, align 8\n"
		"  call void @tally.barrier(i32 0, i32 0)\n"
		"  call void @tally.stmatrix.m8n8.x4%s.b16(ptr addrspace(3) %%mine, i32 %%d, i32 "
		"%%c, i32 %%b, i32 %%a)\n"
		"  call void @tally.barrier(i32 0, i32 0)\n"
		"  %%w = load <8 x i16>, ptr addrspace(3) %%mine, align 16\n"
		"  %%next = getelementptr i64, ptr %%to, i32 2\n"
		"  store <8 x i16> %%w, ptr %%next, align 8\n"
		"  %%m = call i32 @tally.movmatrix.m8n8.trans.b16(i32 %%a)\n"
		"  %%last = getelementptr i64, ptr %%to, i32 4\n"
		"  store i32 %%m, ptr %%last, align 8\n"
		"  ret void\n}\n";
	uint64_t in[32 * MATRIX_WORDS] = {0}, out[32 * MATRIX_WORDS];

	/* Element (r, c) of matrix i is 64 * i + 8 * r + c. */
	for (unsigned i = 0; i < 256; i++)
		((uint16_t *)(in + i / 8 * MATRIX_WORDS))[i % 8] = (uint16_t)i;
	for (unsigned form = 0; form < 4; form++) {
		bool load = form & 1, store = form & 2;
		struct tally_buffer text = {0};

		memset(out, 0, sizeof out);
		tally_buffer_print(&text, frame, load ? ".trans" : "", store ? ".trans" : "");
		matrix_run(text.data, in, out);
		tally_buffer_free(&text);
		for (unsigned lane = 0; lane < 32; lane++) {
			const uint16_t *got = (const uint16_t *)(out + lane * MATRIX_WORDS);

			for (unsigned i = 0; i < 8; i++) {
				unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;

				assert_int_equal(got[i], i / 2 * 64 + (load ? column * 8 + row
									    : row * 8 + column));
				/* Back, the matrices in reverse order. */
				row = lane % 8;
				assert_int_equal(got[8 + i], (3 - lane / 8) * 64 +
								     (load != store ? i * 8 + row
										    : row * 8 + i));
			}
			for (unsigned i = 0; i < 2; i++) {
				unsigned row = lane / 4, column = lane % 4 * 2 + i;

				assert_int_equal(got[16 + i],
						 load ? row * 8 + column : column * 8 + row);
			}
		}
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products),
		cmocka_unit_test(special_values),
#ifndef MATRIX_ON_DEVICE
		cmocka_unit_test(rows),
#endif
	};

	int failed = cmocka_run_group_tests_name("the device's own", tests, NULL, NULL);

	cpu_test_portable_matrix = true;
	return failed + cmocka_run_group_tests_name("portable bodies", tests, NULL, NULL);
}
