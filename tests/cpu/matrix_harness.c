/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of one matrix operation, and numbers in every type of element, made without the code
 * under test. */
#include "tests/cpu/matrix_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

struct params {
	const uint64_t *in;
	uint64_t *out;
};

static const char *type_text(char code)
{
	return code == 'i'   ? "i32"
	       : code == 's' ? "i16"
	       : code == 'f' ? "float"
	       : code == 'd' ? "double"
			     : "ptr addrspace(3)";
}

/* "%v = load float, ptr %p": 8 bytes a register, one row of MATRIX_WORDS a lane. */
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
void matrix_print_kernel(struct tally_buffer *text, const char *name, const char *signature)
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

void matrix_run(const char *text, const uint64_t *in, uint64_t *out)
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

unsigned matrix_bits_of(unsigned type)
{
	static const uint8_t bits[TALLY_MATRIX_TYPES] = {
		[TALLY_MATRIX_F16] = 16, [TALLY_MATRIX_BF16] = 16,     [TALLY_MATRIX_TF32] = 32,
		[TALLY_MATRIX_F32] = 32, [TALLY_MATRIX_F64] = 64,      [TALLY_MATRIX_U8] = 8,
		[TALLY_MATRIX_S8] = 8,	 [TALLY_MATRIX_U4] = 4,	       [TALLY_MATRIX_S4] = 4,
		[TALLY_MATRIX_B1] = 1,	 [TALLY_MATRIX_S32] = 32,      [TALLY_MATRIX_E4M3] = 8,
		[TALLY_MATRIX_E5M2] = 8, [TALLY_MATRIX_E3M2] = 8,      [TALLY_MATRIX_E2M3] = 8,
		[TALLY_MATRIX_E2M1] = 4, [TALLY_MATRIX_E2M1_BYTE] = 8,
	};

	return bits[type];
}

/* A whole number of at most three bits in a small float, its sign in bit `top`. */
static uint64_t small_bits(int v, unsigned bias, unsigned mantissa, unsigned top)
{
	unsigned size = (unsigned)abs(v), e = size < 2 ? 0 : size < 4 ? 1 : 2;

	if (!v)
		return 0;
	return (v < 0 ? 1u << top : 0) | (bias + e) << mantissa |
	       ((size << mantissa >> e) & ((1u << mantissa) - 1));
}

/* The bits of small number `v` as `type`, made without the code under test. */
uint64_t matrix_bits_for(unsigned type, int v)
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
		return small_bits(v, 7, 3, 7);
	case TALLY_MATRIX_E5M2:
		return small_bits(v, 15, 2, 7);
	case TALLY_MATRIX_E3M2:
		return small_bits(v, 3, 2, 5);
	case TALLY_MATRIX_E2M3:
		return small_bits(v, 1, 3, 5);
	case TALLY_MATRIX_E2M1:
		return small_bits(v, 1, 1, 3);
	case TALLY_MATRIX_E2M1_BYTE:
		return small_bits(v, 1, 1, 3) << 2;
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
		       (matrix_bits_of(type) == 32 ? 0xffffffff : (1u << matrix_bits_of(type)) - 1);
	}
}

/* Small numbers of every sign that the type has. */
int matrix_number(unsigned type, unsigned i)
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
	case TALLY_MATRIX_E3M2:
	case TALLY_MATRIX_E2M3:
		return v % 15 - 7;
	case TALLY_MATRIX_E2M1: /* 5 and 7 are not among them */
	case TALLY_MATRIX_E2M1_BYTE:
		return v % 13 - 6 == 5 || v % 13 - 6 == -5 ? 1 : v % 13 - 6;
	case TALLY_MATRIX_S32:
		return (v - 128) * 1000;
	default:
		return (v & 15) - 8;
	}
}

void matrix_put(uint64_t *lane, unsigned first, unsigned type, unsigned i, uint64_t bits)
{
	unsigned per = matrix_bits_of(type) >= 32 ? 1 : 32 / matrix_bits_of(type);

	lane[first + i / per] |= per == 1 ? bits : bits << i % per * matrix_bits_of(type);
}

/* Distributes a matrix over the lanes; returns the registers that it takes. */
unsigned matrix_distribute(uint64_t *in, unsigned first, unsigned type, unsigned elements,
			   unsigned columns, matrix_place *where, const int *matrix)
{
	unsigned per = matrix_bits_of(type) >= 32 ? 1 : 32 / matrix_bits_of(type);

	for (unsigned lane = 0; lane < 32; lane++)
		for (unsigned i = 0; i < elements / 32; i++) {
			unsigned row, column;

			where(lane, i, &row, &column);
			matrix_put(in + lane * MATRIX_WORDS, first, type, i,
				   matrix_bits_for(type, matrix[row * columns + column]));
		}
	return first + elements / 32 / per;
}
