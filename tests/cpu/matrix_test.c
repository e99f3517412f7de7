/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix operations of a warp against the ISA's text: fragments are placed by the formulas of
 * each shape's section (PTX ISA 9.7.14.5), written here once more, shape by shape.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/matrix.h"
#include "tests/cpu/harness.h"

enum { WORDS = 32 };

struct params {
	const uint64_t *in;
	uint64_t *out;
};

static const char *type_text(char code)
{
	return code == 'i'   ? "i32"
	       : code == 'f' ? "float"
	       : code == 'd' ? "double"
			     : "ptr addrspace(3)";
}

/* "%v = load float, ptr %p": 8 bytes a register, one row of WORDS a lane. */
static void print_in(struct tally_buffer *text, const char *signature)
{
	unsigned k = 0;

	for (const char *c = signature; *c; c++, k++)
		tally_buffer_print(text,
				   "  %%p%u = getelementptr i64, ptr %%from, i32 %u\n"
				   "  %%s%u = load %s, ptr %%p%u, align 8\n",
				   k, k, k, *c == 'q' ? "i64" : type_text(*c), k);
}

/* A kernel that loads one operation's registers, does it, and stores its results. */
static void print_kernel(struct tally_buffer *text, const char *name, const char *signature)
{
	char results[16];
	bool many = *signature == '{';
	size_t n = many ? strcspn(signature + 1, "}") : 1;

	snprintf(results, sizeof results, "%.*s", (int)n, signature + many);
	signature += many ? n + 2 : 1;
	tally_buffer_print(text, "define void @k(ptr %%in, ptr %%out) \"tally.kernel\" {\n"
				 "  %%x = call i32 @tally.thread.id.x()\n"
				 "  %%row = mul i32 %%x, 32\n"
				 "  %%from = getelementptr i64, ptr %%in, i32 %%row\n"
				 "  %%to = getelementptr i64, ptr %%out, i32 %%row\n");
	print_in(text, signature);
	tally_buffer_print(text, "  %%r = call %s", many ? "{" : type_text(*results));
	for (const char *c = results; many && *c; c++)
		tally_buffer_print(text, "%s%s", c == results ? "" : ", ", type_text(*c));
	tally_buffer_print(text, "%s @%s(", many ? "}" : "", name);
	for (unsigned k = 0; signature[k]; k++)
		tally_buffer_print(text, "%s%s %%s%u", k ? ", " : "", type_text(signature[k]), k);
	tally_buffer_print(text, ")\n");
	for (unsigned k = 0; results[k]; k++) {
		tally_buffer_print(text, "  %%q%u = getelementptr i64, ptr %%to, i32 %u\n", k, k);
		if (many) {
			tally_buffer_print(text, "  %%e%u = extractvalue {", k);
			for (const char *c = results; *c; c++)
				tally_buffer_print(text, "%s%s", c == results ? "" : ", ",
						   type_text(*c));
			tally_buffer_print(text, "} %%r, %u\n  store %s %%e%u, ptr %%q%u\n", k,
					   type_text(results[k]), k, k);
		} else {
			tally_buffer_print(text, "  store %s %%r, ptr %%q%u\n", type_text(*results),
					   k);
		}
	}
	tally_buffer_print(text, "  ret void\n}\n");
}

static void run_text(const char *text, const uint64_t *in, uint64_t *out)
{
	struct tally_cpu_image image = cpu_test_image(text, "none");
	struct params params = {in, out};
	char message[256] = "";

	assert_int_equal(cpu_test_run(&image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {1, 1, 1},
								.block = {32, 1, 1},
								.params = &params},
				      message),
			 TALLY_CPU_OK);
	tally_cpu_image_close(&image);
}

/* ---- Where the ISA puts element i of a lane's fragment ---- */

typedef void place(unsigned lane, unsigned i, unsigned *row, unsigned *column);
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
	place *a, *b;
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

static unsigned bits_of(unsigned type)
{
	static const uint8_t bits[] = {
		[TALLY_MATRIX_F16] = 16, [TALLY_MATRIX_BF16] = 16, [TALLY_MATRIX_TF32] = 32,
		[TALLY_MATRIX_F32] = 32, [TALLY_MATRIX_F64] = 64,  [TALLY_MATRIX_U8] = 8,
		[TALLY_MATRIX_S8] = 8,	 [TALLY_MATRIX_U4] = 4,	   [TALLY_MATRIX_S4] = 4,
		[TALLY_MATRIX_B1] = 1,	 [TALLY_MATRIX_S32] = 32,  [TALLY_MATRIX_E4M3] = 8,
		[TALLY_MATRIX_E5M2] = 8,
	};

	return bits[type];
}

/* A whole number of at most three bits in a float of eight. */
static uint64_t eight_bits(int v, unsigned bias, unsigned mantissa)
{
	unsigned size = (unsigned)abs(v), e = size < 2 ? 0 : size < 4 ? 1 : 2;

	if (!v)
		return 0;
	return (v < 0 ? 0x80u : 0) | (bias + e) << mantissa |
	       ((size << mantissa >> e) & ((1u << mantissa) - 1));
}

/* The bits of small number `v` as `type`, made without the code under test. */
static uint64_t bits_for(unsigned type, int v)
{
	float f = (float)v;
	double d = v;
	_Float16 h = (_Float16)v;
	uint64_t bits = 0;

	switch (type) {
	case TALLY_MATRIX_F16:
		memcpy(&bits, &h, 2);
		return bits;
	case TALLY_MATRIX_E4M3:
		return eight_bits(v, 7, 3);
	case TALLY_MATRIX_E5M2:
		return eight_bits(v, 15, 2);
	case TALLY_MATRIX_BF16:
		memcpy(&bits, &f, 4);
		return bits >> 16;
	case TALLY_MATRIX_TF32: /* what lies below tf32's mantissa does not count */
		memcpy(&bits, &f, 4);
		return v ? bits | 0x1fff : bits;
	case TALLY_MATRIX_F32:
		memcpy(&bits, &f, 4);
		return bits;
	case TALLY_MATRIX_F64:
		memcpy(&bits, &d, 8);
		return bits;
	default:
		return (uint64_t)(int64_t)v &
		       (bits_of(type) == 32 ? 0xffffffff : (1u << bits_of(type)) - 1);
	}
}

/* Small numbers of every sign that the type has. */
static int number(unsigned type, unsigned i)
{
	int v = (int)(i * 2654435761u >> 16 & 0xff);

	switch (type) {
	case TALLY_MATRIX_U8:
		return v;
	case TALLY_MATRIX_S8:
		return v - 128;
	case TALLY_MATRIX_U4:
		return v & 15;
	case TALLY_MATRIX_S4:
		return (v & 15) - 8;
	case TALLY_MATRIX_B1:
		return v & 1;
	case TALLY_MATRIX_E4M3:
	case TALLY_MATRIX_E5M2:
		return v % 15 - 7;
	case TALLY_MATRIX_S32:
		return (v - 128) * 1000;
	default:
		return (v & 15) - 8;
	}
}

static void put(uint64_t *lane, unsigned first, unsigned type, unsigned i, uint64_t bits)
{
	unsigned per = bits_of(type) >= 32 ? 1 : 32 / bits_of(type);

	lane[first + i / per] |= per == 1 ? bits : bits << i % per * bits_of(type);
}

/* Distributes a matrix over the lanes; returns the registers that it takes. */
static unsigned distribute(uint64_t *in, unsigned first, unsigned type, unsigned elements,
			   unsigned columns, place *where, const int *matrix)
{
	unsigned per = bits_of(type) >= 32 ? 1 : 32 / bits_of(type);

	for (unsigned lane = 0; lane < 32; lane++)
		for (unsigned i = 0; i < elements / 32; i++) {
			unsigned row, column;

			where(lane, i, &row, &column);
			put(in + lane * WORDS, first, type, i,
			    bits_for(type, matrix[row * columns + column]));
		}
	return first + elements / 32 / per;
}

static void check_mma(const struct tally_matrix_form *f, const struct shape *shape)
{
	static int a[16 * 256], b[256 * 8], c[16 * 8];
	static uint64_t in[32 * WORDS], out[32 * WORDS];
	struct tally_buffer text = {0};
	place *cd = f->m == 8 ? c_8x8 : c_16x8;
	unsigned next, per = bits_of(f->d) == 16 ? 2 : 1;

	memset(in, 0, sizeof in);
	memset(out, 0, sizeof out);
	for (unsigned i = 0; i < f->m * f->k; i++)
		a[i] = number(f->a, i);
	for (unsigned i = 0; i < f->k * f->n; i++)
		b[i] = number(f->b, i + 7777);
	for (unsigned i = 0; i < f->m * f->n; i++)
		c[i] = f->flags & TALLY_MATRIX_SATURATED ? (i % 2 ? INT32_MAX - 5 : INT32_MIN + 5)
							 : number(f->c, i + 99);
	next = distribute(in, 0, f->a, f->m * f->k, f->k, shape->a, a);
	next = distribute(in, next, f->b, f->k * f->n, f->n, shape->b, b);
	distribute(in, next, f->c, f->m * f->n, f->n, cd, c);
	print_kernel(&text, f->name, f->signature);
	run_text(text.data, in, out);
	tally_buffer_free(&text);
	for (unsigned lane = 0; lane < 32; lane++)
		for (unsigned i = 0; i < f->m * f->n / 32u; i++) {
			unsigned row, column;
			uint64_t got = out[lane * WORDS + i / per];
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
			if (bits_of(f->d) == 32)
				got &= 0xffffffff;
			if (got != bits_for(f->d, (int)sum))
				fail_msg("%s: lane %u element %u: %llx, not %llx", f->name, lane, i,
					 (unsigned long long)got,
					 (unsigned long long)bits_for(f->d, (int)sum));
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

		if (!f || f->kind != TALLY_MATRIX_MMA)
			continue;
		for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
			if (shapes[k].m == f->m && shapes[k].k == f->k &&
			    shapes[k].bits == bits_of(f->a))
				shape = &shapes[k];
		if (!shape)
			fail_msg("%s: no such shape here", f->name);
		check_mma(f, shape);
		count++;
	}
	assert_int_equal(count, 82);
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
		{0x7bff, 0xfbff, 0x7bff, 0x7bff, 0x3f800000, 0x3f800000}, /* big terms cancel */
	};
	struct tally_buffer text = {0};
	const struct tally_matrix_form *f =
		tally_matrix_find("tally.mma.m16n8k8.row.col.f32.f16.f16.f32", NULL);

	print_kernel(&text, f->name, f->signature);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t in[32 * WORDS] = {0}, out[32 * WORDS] = {0};

		in[0] = cases[i].a0 | cases[i].a1 << 16;
		in[2] = cases[i].b0 | cases[i].b1 << 16;
		in[3] = cases[i].c;
		run_text(text.data, in, out);
		assert_int_equal((uint32_t)out[0], cases[i].d);
	}
	tally_buffer_free(&text);
	f = tally_matrix_find("tally.mma.m16n8k8.row.col.f16.f16.f16.f16", NULL);
	print_kernel(&text, f->name, f->signature);
	uint64_t in[32 * WORDS] = {0}, out[32 * WORDS] = {0};
	in[0] = 0x7bff; /* 65504 * 2: beyond f16 */
	in[2] = 0x4000;
	in[1] = 0x7e00; /* row 8: NaN */
	run_text(text.data, in, out);
	assert_int_equal(out[0] & 0xffff, 0x7c00);
	assert_int_equal(out[1] & 0xffff, 0x7fff);
	tally_buffer_free(&text);
}

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
	uint64_t in[32 * WORDS] = {0}, out[32 * WORDS];

	/* Element (r, c) of matrix i is 64 * i + 8 * r + c. */
	for (unsigned i = 0; i < 256; i++)
		((uint16_t *)(in + i / 8 * WORDS))[i % 8] = (uint16_t)i;
	for (unsigned form = 0; form < 4; form++) {
		bool load = form & 1, store = form & 2;
		struct tally_buffer text = {0};

		memset(out, 0, sizeof out);
		tally_buffer_print(&text, frame, load ? ".trans" : "", store ? ".trans" : "");
		run_text(text.data, in, out);
		tally_buffer_free(&text);
		for (unsigned lane = 0; lane < 32; lane++) {
			const uint16_t *got = (const uint16_t *)(out + lane * WORDS);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products),
		cmocka_unit_test(special_values),
		cmocka_unit_test(rows),
	};

	int failed = cmocka_run_group_tests_name("the device's own", tests, NULL, NULL);

	cpu_test_portable_matrix = true;
	return failed + cmocka_run_group_tests_name("portable bodies", tests, NULL, NULL);
}
