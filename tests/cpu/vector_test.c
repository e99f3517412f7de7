/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that the lowering writes out so that loops over threads become vectors: directed
 * rounding against the processor's own, powers and logarithms against libm in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/executor/internal.h"
#include "tests/cpu/harness.h"

enum { BLOCK = 256, COUNT = 1 << 18 };

static float a[COUNT], b[COUNT], c[COUNT], out[COUNT];

static uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}

static float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* Numbers on which rounding is hard: zeros, denormals, the largest, infinities, NaN, neighbours of
 * powers of two. */
static const uint32_t hard[] = {0,	    1,		2,	    0x7fffff,	0x800000,
				0x800001,   0x33800000, 0x3f800000, 0x3f800001, 0x3f7fffff,
				0x40000000, 0x4b000000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
				0x00c00000, 0x20000000, 0x5f000000};
enum { HARD = sizeof hard / sizeof *hard };

/* All triples of hard numbers with all signs, then random bits, then sums that nearly cancel. */
static void fill(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		size_t k = i / 8;

		a[i] = float_of(hard[k % HARD] | (uint32_t)(i & 1) << 31);
		b[i] = float_of(hard[k / HARD % HARD] | (uint32_t)(i >> 1 & 1) << 31);
		c[i] = float_of(hard[k / HARD / HARD % HARD] | (uint32_t)(i >> 2 & 1) << 31);
		if (k < HARD * HARD * HARD)
			continue;
		a[i] = float_of(cpu_test_random());
		b[i] = float_of(cpu_test_random());
		c[i] = float_of(cpu_test_random());
		if (i % 3 == 1)
			c[i] = -a[i] * b[i];
		if (i % 3 == 2)
			b[i] = float_of((bits_of(a[i]) ^ 0x80000000) + (cpu_test_random() & 3));
	}
}

static void run(const char *operation, int arguments)
{
	struct tally_buffer text = {0};
	struct tally_cpu_image image;
	struct {
		float *a, *b, *c, *out;
	} params = {a, b, c, out};

	tally_buffer_print(
		&text, "define void @k(ptr %%a, ptr %%b, ptr %%c, ptr %%out) \"tally.kernel\" {\n"
		       "  %%x = call i32 @tally.thread.id.x()\n"
		       "  %%i = call i32 @tally.block.id.x()\n"
		       "  %%first = mul i32 %%i, 256\n"
		       "  %%t = add i32 %%first, %%x\n"
		       "  %%w = zext i32 %%t to i64\n");
	for (int k = 0; k < 3; k++)
		tally_buffer_print(&text,
				   "  %%p%c = getelementptr float, ptr %%%c, i64 %%w\n"
				   "  %%v%c = load float, ptr %%p%c, align 4\n",
				   'a' + k, 'a' + k, 'a' + k, 'a' + k);
	tally_buffer_print(&text,
			   "  %%r = call float @%s(float %%va%s%s)\n"
			   "  %%to = getelementptr float, ptr %%out, i64 %%w\n"
			   "  store float %%r, ptr %%to, align 4\n"
			   "  ret void\n"
			   "}\n",
			   operation, arguments > 1 ? ", float %vb" : "",
			   arguments > 2 ? ", float %vc" : "");
	image = cpu_test_image(text.data, "none");
	assert_int_equal(cpu_test_run(&image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {COUNT / BLOCK, 1, 1},
								.block = {BLOCK, 1, 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
	tally_cpu_image_close(&image);
	tally_buffer_free(&text);
}

static void directed_rounding(void **state)
{
	static const struct {
		const char *name;
		int arguments;
		uint32_t what;
	} operations[] = {{"add", 2, TALLY_CPU_ROUND_ADD},
			  {"sub", 2, TALLY_CPU_ROUND_SUB},
			  {"mul", 2, TALLY_CPU_ROUND_MUL},
			  {"fma", 3, TALLY_CPU_ROUND_FMA}};
	static const char *const directions[] = {"rz", "rm", "rp"};

	fill();
	for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
		for (uint32_t d = 0; d < 3; d++) {
			char name[64];

			snprintf(name, sizeof name, "tally.round.%s.%s.f32", operations[o].name,
				 directions[d]);
			run(name, operations[o].arguments);
			for (size_t i = 0; i < COUNT; i++) {
				float right = tally_cpu_round32(operations[o].what * 4 + d, a[i],
								b[i], c[i]);

				if (isnan(right) ? isnan(out[i])
						 : bits_of(right) == bits_of(out[i]))
					continue;
				fail_msg("%s of %a %a %a: %a, not %a", name, a[i], b[i], c[i],
					 out[i], right);
			}
		}
}

/* The nearest float for nearly all operands, its neighbour for some. */
static void check_function(const char *name, double (*exact)(double))
{
	size_t off = 0;

	run(name, 1);
	for (size_t i = 0; i < COUNT; i++) {
		float right = (float)exact(a[i]);
		uint32_t x = bits_of(right), y = bits_of(out[i]);

		if (isnan(right) ? isnan(out[i]) : x == y)
			continue;
		off++;
		if (x - y + 1 > 2 || isinf(right) || right == 0)
			fail_msg("%s of %a: %a, not %a", name, a[i], out[i], right);
	}
	assert_true(off < 5);
}

static void powers_and_logarithms(void **state)
{
	fill();
	check_function("tally.approx.ex2.f32", exp2);
	check_function("tally.approx.lg2.f32", log2);
	/* Where results are neither nothing nor infinite, close to whole numbers and to 1. */
	for (size_t i = 0; i < COUNT; i++)
		a[i] = (float)((double)i / COUNT * 300 - 152);
	check_function("tally.approx.ex2.f32", exp2);
	for (size_t i = 0; i < COUNT; i++)
		a[i] = float_of(0x3f700000 + (uint32_t)i * 8);
	check_function("tally.approx.lg2.f32", log2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(directed_rounding),
		cmocka_unit_test(powers_and_logarithms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
