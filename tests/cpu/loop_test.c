/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that run as loops: results, shapes, vectorisation, early ends, faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "tests/cpu/harness.h"

/* c[i] = a[i] + b[i] for i < n, pointers as clang has them. */
static const char vadd[] = "define void @vadd(ptr %a, ptr %b, ptr %c, i32 %n) \"tally.kernel\" {\n"
			   "  %b.id = call i32 @tally.block.id.x()\n"
			   "  %size = call i32 @tally.block.size.x()\n"
			   "  %t = call i32 @tally.thread.id.x()\n"
			   "  %base = mul i32 %b.id, %size\n"
			   "  %i = add i32 %base, %t\n"
			   "  %in = icmp slt i32 %i, %n\n"
			   "  br i1 %in, label %do, label %out\n"
			   "do:\n"
			   "  %w = sext i32 %i to i64\n"
			   "  %pa = getelementptr float, ptr %a, i64 %w\n"
			   "  %pb = getelementptr float, ptr %b, i64 %w\n"
			   "  %pc = getelementptr float, ptr %c, i64 %w\n"
			   "  %x = load float, ptr %pa, align 4\n"
			   "  %y = load float, ptr %pb, align 4\n"
			   "  %s = fadd contract float %x, %y\n"
			   "  store float %s, ptr %pc, align 4\n"
			   "  br label %out\n"
			   "out:\n"
			   "  ret void\n"
			   "}\n";

/* y[i] = a * x[i] + y[i] as it comes from PTX: addresses are integers. */
static const char saxpy[] =
	"define void @saxpy(i64 %x, i64 %y, float %a, i32 %n) \"tally.kernel\" {\n"
	"  %b.id = call i32 @tally.block.id.x()\n"
	"  %size = call i32 @tally.block.size.x()\n"
	"  %t = call i32 @tally.thread.id.x()\n"
	"  %base = mul i32 %b.id, %size\n"
	"  %i = add i32 %base, %t\n"
	"  %in = icmp sge i32 %i, %n\n"
	"  br i1 %in, label %out, label %do\n"
	"do:\n"
	"  %w = sext i32 %i to i64\n"
	"  %o = mul i64 %w, 4\n"
	"  %ax = add i64 %x, %o\n"
	"  %px = inttoptr i64 %ax to ptr addrspace(1)\n"
	"  %vx = load float, ptr addrspace(1) %px, align 4\n"
	"  %ay = add i64 %y, %o\n"
	"  %py = inttoptr i64 %ay to ptr addrspace(1)\n"
	"  %vy = load float, ptr addrspace(1) %py, align 4\n"
	"  %m = fmul contract float %vx, %a\n"
	"  %s = fadd contract float %m, %vy\n"
	"  store float %s, ptr addrspace(1) %py, align 4\n"
	"  br label %out\n"
	"out:\n"
	"  ret void\n"
	"}\n";

struct vadd_params {
	float *a, *b, *c;
	int n;
};

static void vector_addition(void **state)
{
	enum { N = 1000, ROOM = 1024 };
	struct tally_cpu_image image = cpu_test_image(vadd, "none");
	float a[ROOM], b[ROOM], c[ROOM];
	struct vadd_params params = {a, b, c, N};

	for (int i = 0; i < ROOM; i++) {
		a[i] = (float)i * 0.5f;
		b[i] = (float)(i % 7);
		c[i] = -1;
	}
	assert_int_equal(cpu_test_run(&image,
				      &(struct cpu_test_launch){.kernel = "vadd",
								.grid = {4, 1, 1},
								.block = {256, 1, 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
	for (int i = 0; i < ROOM; i++)
		assert_true(c[i] == (i < N ? a[i] + b[i] : -1));
	tally_cpu_image_close(&image);
}

static void multiplication_is_not_fused(void **state)
{
	struct tally_cpu_image image = cpu_test_image(saxpy, "none");
	float x[64], y[64], expected[64];
	struct {
		float *x, *y;
		float a;
		int n;
	} params = {x, y, 1.0000001f, 64};

	for (int i = 0; i < 64; i++) {
		volatile float product;

		x[i] = 1.0f + (float)i * 1.1920929e-7f;
		y[i] = -1.0f - (float)i * 0.37f;
		product = x[i] * params.a;
		expected[i] = product + y[i];
	}
	assert_int_equal(cpu_test_run(&image,
				      &(struct cpu_test_launch){.kernel = "saxpy",
								.grid = {1, 1, 1},
								.block = {64, 1, 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
	assert_memory_equal(y, expected, sizeof y);
	tally_cpu_image_close(&image);
}

static void assert_packed(const char *text, const char *transforms, const char *instruction)
{
	struct tally_buffer out = {0};
	struct tally_error error = {0};

	if (!cpu_test_lower(text, transforms, TALLY_EMIT_ASM, &out, &error))
		fail_msg("%s", error.message);
	if (!strstr(out.data, instruction) || strstr(out.data, "vfmadd"))
		fail_msg("no %s in:\n%s", instruction, out.data);
	tally_buffer_free(&out);
}

static void loops_are_vectorised(void **state)
{
	assert_packed(vadd, "none", "addps");
	assert_packed(saxpy, "none", "mulps");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_addition),
		cmocka_unit_test(multiplication_is_not_fused),
		cmocka_unit_test(loops_are_vectorised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
