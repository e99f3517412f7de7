/* SPDX-License-Identifier: Apache-2.0 */
/* The integer library against C written from the PTX ISA's pseudo-code: edges and random operands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ir_passes/ir_test.h"
#include "tests/ir_passes/jit.h"

static struct ir_jit *jit;

/* Operands where mistakes live, then random ones. */
static const uint64_t edges[] = {0,	     1,		 2,	7,	    8,		31,
				 32,	     33,	 63,	64,	    65,		127,
				 128,	     255,	 256,	0x7fffffff, 0x80000000, 0xffffffff,
				 1ull << 32, 1ull << 63, ~0ull, 0x8080,	    0x7f7f7f7f};
enum { EDGES = sizeof edges / sizeof *edges, ROUNDS = 4000 };

static uint64_t operand(unsigned round)
{
	return round < EDGES ? edges[round] : ir_test_random() >> (ir_test_random() & 63);
}

static uint32_t ref_prmt(uint32_t a, uint32_t b, uint32_t s)
{
	uint64_t bytes = (uint64_t)b << 32 | a;
	uint32_t r = 0;

	for (int i = 0; i < 4; i++) {
		uint32_t n = s >> (4 * i) & 15, byte = bytes >> (8 * (n & 7)) & 255;

		if (n & 8)
			byte = byte & 128 ? 255 : 0;
		r |= byte << (8 * i);
	}
	return r;
}

static uint64_t ref_bfe(uint64_t a, uint32_t b, uint32_t c, int width, bool is_signed)
{
	uint32_t msb = (uint32_t)width - 1, pos = b & 255, len = c & 255;
	uint32_t last = pos + len - 1 < msb ? pos + len - 1 : msb;
	bool sbit = is_signed && len && (a >> last & 1);
	uint64_t d = 0;

	for (uint32_t i = 0; i <= msb; i++)
		d |= (uint64_t)(i < len && pos + i <= msb ? a >> (pos + i) & 1 : sbit) << i;
	return d;
}

static uint64_t ref_bfi(uint64_t a, uint64_t b, uint32_t c, uint32_t d, int width)
{
	uint32_t msb = (uint32_t)width - 1, pos = c & 255, len = d & 255;

	for (uint32_t i = 0; i < len && pos + i <= msb; i++)
		b = (b & ~(1ull << (pos + i))) | (a >> i & 1) << (pos + i);
	return b;
}

static uint32_t ref_bfind(uint64_t a, int width, bool is_signed, bool shift)
{
	if (is_signed && a >> (width - 1) & 1)
		a = ~a;
	for (int i = width - 1; i >= 0; i--)
		if (a >> i & 1)
			return (uint32_t)(shift ? width - 1 - i : i);
	return ~0u;
}

static uint32_t ref_bmsk(uint32_t a, uint32_t b, bool clamp)
{
	uint64_t r = 0;
	uint32_t first = a & 31, count = b & 31;

	if (clamp && a >= 32)
		return 0;
	if (clamp && b >= 32)
		count = 32;
	for (uint32_t i = first; i < first + count && i < 32; i++)
		r |= 1ull << i;
	return (uint32_t)r;
}

static uint32_t ref_fns(uint32_t mask, uint32_t base, int32_t offset)
{
	int64_t pos = (int32_t)base;
	uint32_t count = (uint32_t)(offset < 0 ? -(int64_t)offset : offset) - 1;

	if (offset == 0)
		return base < 32 && mask >> base & 1 ? base : ~0u;
	for (; pos >= 0 && pos < 32; pos += offset > 0 ? 1 : -1)
		if (mask >> pos & 1 && count-- == 0)
			return (uint32_t)pos;
	return ~0u;
}

static int64_t part(uint32_t v, int index, int width, bool is_signed)
{
	uint32_t field = v >> (width * index) & ((1u << width) - 1);

	return is_signed && field >> (width - 1) ? (int64_t)field - (1 << width) : field;
}

static uint32_t ref_dp4a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
	for (int i = 0; i < 4; i++)
		c += (uint32_t)(part(a, i, 8, sa) * part(b, i, 8, sb));
	return c;
}

static uint32_t ref_dp2a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, bool high)
{
	for (int i = 0; i < 2; i++)
		c += (uint32_t)(part(a, i, 16, sa) * part(b, i + (high ? 2 : 0), 8, sb));
	return c;
}

static void *get(const char *format, ...)
{
	char name[64];
	va_list list;

	va_start(list, format);
	vsnprintf(name, sizeof name, format, list);
	va_end(list);
	return ir_jit_lookup(jit, name);
}

typedef uint32_t f32_1(uint32_t);
typedef uint32_t f32_2(uint32_t, uint32_t);
typedef uint32_t f32_3(uint32_t, uint32_t, uint32_t);
typedef uint32_t f32_4(uint32_t, uint32_t, uint32_t, uint32_t);
typedef uint64_t f64_3(uint64_t, uint32_t, uint32_t);
typedef uint64_t f64_4(uint64_t, uint64_t, uint32_t, uint32_t);
typedef uint32_t f64_1(uint64_t);

static void permutes(void **unused)
{
	f32_3 *f = get("tally.prmt");

	for (unsigned n = 0; n < ROUNDS; n++) {
		uint32_t a = operand(n), b = operand(n * 7 % ROUNDS),
			 s = (uint32_t)ir_test_random();

		assert_int_equal(f(a, b, s), ref_prmt(a, b, s));
	}
}

static void bit_fields(void **unused)
{
	f32_3 *u32 = get("tally.bfe.u32"), *s32 = get("tally.bfe.s32");
	f64_3 *u64 = get("tally.bfe.u64"), *s64 = get("tally.bfe.s64");
	f32_4 *b32 = get("tally.bfi.b32");
	f64_4 *b64 = get("tally.bfi.b64");

	for (unsigned n = 0; n < ROUNDS; n++) {
		uint64_t a = operand(n), b = ir_test_random();

		for (unsigned e = 0; e < EDGES * EDGES; e++) {
			uint32_t pos = edges[e / EDGES], len = edges[e % EDGES];

			assert_int_equal(u32(a, pos, len),
					 ref_bfe((uint32_t)a, pos, len, 32, false));
			assert_int_equal(s32(a, pos, len),
					 ref_bfe((uint32_t)a, pos, len, 32, true));
			assert_int_equal(u64(a, pos, len), ref_bfe(a, pos, len, 64, false));
			assert_int_equal(s64(a, pos, len), ref_bfe(a, pos, len, 64, true));
			assert_int_equal(b32(a, b, pos, len),
					 ref_bfi((uint32_t)a, (uint32_t)b, pos, len, 32));
			assert_int_equal(b64(a, b, pos, len), ref_bfi(a, b, pos, len, 64));
			if (n > EDGES && e > 40)
				break;
		}
	}
}

static void leading_bits(void **unused)
{
	for (int shift = 0; shift < 2; shift++)
		for (int is_signed = 0; is_signed < 2; is_signed++) {
			char s = is_signed ? 's' : 'u';
			f32_1 *f32 = get("tally.bfind.%s%c32", shift ? "shiftamt." : "", s);
			f64_1 *f64 = get("tally.bfind.%s%c64", shift ? "shiftamt." : "", s);

			for (unsigned n = 0; n < ROUNDS; n++) {
				uint64_t a = operand(n);

				assert_int_equal(f32(a),
						 ref_bfind((uint32_t)a, 32, is_signed, shift));
				assert_int_equal(f64(a), ref_bfind(a, 64, is_signed, shift));
			}
		}
}

static void masks(void **unused)
{
	f32_2 *clamp = get("tally.bmsk.clamp"), *wrap = get("tally.bmsk.wrap");
	f32_3 *fns = get("tally.fns");

	for (uint32_t a = 0; a < 80; a++)
		for (uint32_t b = 0; b < 80; b++) {
			assert_int_equal(clamp(a, b), ref_bmsk(a, b, true));
			assert_int_equal(wrap(a, b), ref_bmsk(a, b, false));
		}
	assert_int_equal(clamp(~0u, 3), 0);
	for (unsigned n = 0; n < ROUNDS; n++) {
		uint32_t mask = operand(n);

		for (int32_t offset = -34; offset <= 34; offset += 1 + (n > 40) * 5) {
			uint32_t base = (uint32_t)ir_test_random() & 31;

			assert_int_equal(fns(mask, base, (uint32_t)offset),
					 ref_fns(mask, base, offset));
		}
	}
}

static void dot_products(void **unused)
{
	for (int k = 0; k < 4; k++) {
		bool sa = k & 2, sb = k & 1;
		char x = sa ? 's' : 'u', y = sb ? 's' : 'u';
		f32_3 *four = get("tally.dp4a.%c%c", x, y);
		f32_3 *low = get("tally.dp2a.lo.%c%c", x, y);
		f32_3 *high = get("tally.dp2a.hi.%c%c", x, y);

		for (unsigned n = 0; n < ROUNDS; n++) {
			uint32_t a = operand(n), b = ir_test_random(), c = ir_test_random();

			assert_int_equal(four(a, b, c), ref_dp4a(a, b, c, sa, sb));
			assert_int_equal(low(a, b, c), ref_dp2a(a, b, c, sa, sb, false));
			assert_int_equal(high(b, a, c), ref_dp2a(b, a, c, sa, sb, true));
		}
	}
}

static void differences(void **unused)
{
	f32_3 *u = get("tally.sad.u32"), *s = get("tally.sad.s32");

	for (unsigned n = 0; n < ROUNDS; n++) {
		uint32_t a = operand(n), b = operand((n * 5 + 3) % ROUNDS), c = ir_test_random();
		int64_t d = (int64_t)(int32_t)a - (int32_t)b;

		assert_int_equal(u(a, b, c), c + (a < b ? b - a : a - b));
		assert_int_equal(s(a, b, c), c + (uint32_t)(d < 0 ? -d : d));
	}
}

static int setup(void **state)
{
	*state = jit = ir_jit_of_file("ir_passes/integer.ll", NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permutes),	cmocka_unit_test(bit_fields),
		cmocka_unit_test(leading_bits), cmocka_unit_test(masks),
		cmocka_unit_test(dot_products), cmocka_unit_test(differences),
	};

	return cmocka_run_group_tests(tests, setup, ir_jit_teardown);
}
