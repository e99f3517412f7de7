/* SPDX-License-Identifier: Apache-2.0 */
/* The portable library: flushing, lane masks, and the lane reductions on a simulated warp. */
#include <math.h>
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

/* One lane at a time: the others' values stand in a table, a shuffle reads it. */
static const char machine[] =
	"@lane = global i32 0\n@values = global [32 x i32] zeroinitializer\n"
	"@tid = global [3 x i32] zeroinitializer\n@size = global [3 x i32] [i32 1, i32 1, i32 1]\n"
	"define i32 @tally.lane.id() {\n %v = load i32, ptr @lane\n ret i32 %v }\n"
	"define i32 @tally.warp.size() {\n ret i32 32 }\n"
	"define void @tally.nanosleep(i32 %ns) {\n ret void }\n"
	"define void @tally.warp.sync(i32 %m) {\n ret void }\n"
	"define { i32, i1 } @tally.shuffle.idx(i32 %m, i32 %v, i32 %b, i32 %c) {\n"
	" %i = zext i32 %b to i64\n %p = getelementptr i32, ptr @values, i64 %i\n"
	" %x = load i32, ptr %p\n %r = insertvalue { i32, i1 } poison, i32 %x, 0\n"
	" ret { i32, i1 } %r }\n"
#define XYZ(name, table)                                                                           \
	"define i32 @tally." name ".x() {\n %v = load i32, ptr @" table "\n ret i32 %v }\n"        \
	"define i32 @tally." name ".y() {\n %v = load i32, ptr getelementptr (i32, ptr @" table    \
	", i64 1)\n ret i32 %v }\n"                                                                \
	"define i32 @tally." name ".z() {\n %v = load i32, ptr getelementptr (i32, ptr @" table    \
	", i64 2)\n ret i32 %v }\n"
	XYZ("thread.id", "tid") XYZ(
		"block.size",
		"size") "define float @tally.math.scalbn.f32(float %x, i32 %n) {\n ret float %x }\n"
			"define double @tally.math.scalbn.f64(double %x, i32 %n) {\n ret double %x "
			"}\n"
			"define float @tally.math.sinpi.f32(float %x) {\n ret float %x }\n"
			"define double @tally.math.sinpi.f64(double %x) {\n ret double %x }\n"
			"define float @tally.math.cospi.f32(float %x) {\n ret float 1.0 }\n"
			"define double @tally.math.cospi.f64(double %x) {\n ret double 1.0 }\n";

static uint32_t fold(int op, uint32_t a, uint32_t b)
{
	switch (op) {
	case 0:
		return a + b;
	case 1:
		return (int32_t)a < (int32_t)b ? a : b;
	case 2:
		return (int32_t)a > (int32_t)b ? a : b;
	case 3:
		return a < b ? a : b;
	case 4:
		return a > b ? a : b;
	case 5:
		return a & b;
	case 6:
		return a | b;
	default:
		return a ^ b;
	}
}

static void reductions_fold_the_mask(void **unused)
{
	static const char *const names[] = {"add",  "min", "max", "umin",
					    "umax", "and", "or",  "xor"};
	uint32_t *values = ir_jit_lookup(jit, "values");

	for (int op = 0; op < 8; op++) {
		char name[32];
		uint32_t (*reduce)(uint32_t, uint32_t);

		snprintf(name, sizeof name, "tally.reduce.%s", names[op]);
		reduce = (void *)ir_jit_lookup(jit, name);
		for (int n = 0; n < 500; n++) {
			uint32_t mask = n ? (uint32_t)ir_test_random() : ~0u, expected = 0;
			bool first = true;

			if (!mask)
				continue;
			for (int lane = 0; lane < 32; lane++) {
				values[lane] = (uint32_t)ir_test_random();
				if (!(mask >> lane & 1))
					continue;
				expected = first ? values[lane] : fold(op, expected, values[lane]);
				first = false;
			}
			assert_int_equal(reduce(mask, values[0]), expected);
		}
	}
}

static void lane_masks(void **unused)
{
	uint32_t *lane = ir_jit_lookup(jit, "lane");
	uint32_t (*eq)(void) = (void *)ir_jit_lookup(jit, "tally.lanemask.eq");
	uint32_t (*lt)(void) = (void *)ir_jit_lookup(jit, "tally.lanemask.lt");
	uint32_t (*le)(void) = (void *)ir_jit_lookup(jit, "tally.lanemask.le");
	uint32_t (*ge)(void) = (void *)ir_jit_lookup(jit, "tally.lanemask.ge");
	uint32_t (*gt)(void) = (void *)ir_jit_lookup(jit, "tally.lanemask.gt");

	for (uint32_t k = 0; k < 32; k++) {
		uint64_t bit = 1ull << k;

		*lane = k;
		assert_int_equal(eq(), bit);
		assert_int_equal(lt(), bit - 1);
		assert_int_equal(le(), 2 * bit - 1);
		assert_int_equal(ge(), (uint32_t)~(bit - 1));
		assert_int_equal(gt(), (uint32_t)~(2 * bit - 1));
	}
	*lane = 0;
}

static void warps_are_counted(void **unused)
{
	uint32_t *tid = ir_jit_lookup(jit, "tid"), *size = ir_jit_lookup(jit, "size");
	uint32_t (*id)(void) = (void *)ir_jit_lookup(jit, "tally.warp.id");
	uint32_t (*count)(void) = (void *)ir_jit_lookup(jit, "tally.warp.count");

	memcpy(size, (uint32_t[]){10, 5, 3}, 12);
	memcpy(tid, (uint32_t[]){3, 4, 2}, 12);
	assert_int_equal(id(), ((2 * 5 + 4) * 10 + 3) / 32);
	assert_int_equal(count(), 5);
	memset(tid, 0, 12);
}

static void denormals_flush(void **unused)
{
	float (*ftz)(float) = (void *)ir_jit_lookup(jit, "tally.ftz.f32");
	double (*rcp)(double) = (void *)ir_jit_lookup(jit, "tally.approx.rcp.ftz.f64");
	static const float kept[] = {0.0f, 1.0f, -0x1p-126f, INFINITY, -0x1.fffffep127f};

	for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
		assert_true(ftz(kept[k]) == kept[k]);
	assert_true(ftz(0x1p-127f) == 0 && !signbit(ftz(0x1p-127f)));
	assert_true(ftz(-0x1p-149f) == 0 && signbit(ftz(-0x1p-149f)));
	assert_true(isnan(ftz(NAN)));
	assert_true(rcp(4.0) == 0.25);
	assert_true(isinf(rcp(-0x1p-1074)) && rcp(-0x1p-1074) < 0);
	assert_true(rcp(0x1.8p1023) == 0);
}

static int setup(void **state)
{
	*state = jit = ir_jit_of_file("ir_passes/library.ll", machine);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reductions_fold_the_mask),
		cmocka_unit_test(lane_masks),
		cmocka_unit_test(warps_are_counted),
		cmocka_unit_test(denormals_flush),
	};

	return cmocka_run_group_tests(tests, setup, ir_jit_teardown);
}
