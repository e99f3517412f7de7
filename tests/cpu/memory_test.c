/* SPDX-License-Identifier: Apache-2.0 */
/* Where things lie: device variables and constants in the table, address spaces told apart, the
 * in-kernel heap, private addresses in 32 bits, records for functions that cannot be inlined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

static void launch(const struct tally_cpu_image *image, uint32_t threads, const void *params)
{
	char message[256];

	if (cpu_test_run(image,
			 &(struct cpu_test_launch){.kernel = "k",
						   .grid = {2, 1, 1},
						   .block = {threads, 1, 1},
						   .params = params},
			 message) != TALLY_CPU_OK)
		fail_msg("%s", message);
}

/* The host writes both kinds of variable between launches; the names are those of libm. */
static void variables(void **state)
{
	static const char text[] =
		"@sin = addrspace(1) global i32 5, align 4\n"
		"@memcpy = addrspace(4) constant [2 x i32] [i32 1, i32 2], align 4\n"
		"@hidden = internal addrspace(1) global i32 9, align 4\n"
		"define void @k(ptr %out) \"tally.kernel\" {\n"
		"  %a = load i32, ptr addrspace(1) @sin, align 4\n"
		"  %p = getelementptr [2 x i32], ptr addrspace(4) @memcpy, i64 0, i64 1\n"
		"  %b = load i32, ptr addrspace(4) %p, align 4\n"
		"  %h = load i32, ptr addrspace(1) @hidden, align 4\n"
		"  %s = add i32 %a, %b\n"
		"  %t = add i32 %s, %h\n"
		"  store i32 %t, ptr %out, align 4\n"
		"  ret void\n"
		"}\n";
	struct tally_cpu_image image = cpu_test_image(text, "none");
	const struct tally_cpu_variable *global = tally_cpu_image_variable(&image, "sin");
	const struct tally_cpu_variable *constant = tally_cpu_image_variable(&image, "memcpy");
	uint32_t out = 0, *params = &out;

	assert_non_null(global);
	assert_non_null(constant);
	assert_null(tally_cpu_image_variable(&image, "hidden"));
	assert_null(tally_cpu_image_kernel(&image, "none"));
	assert_int_equal(global->bytes, 4);
	assert_int_equal(constant->bytes, 8);
	assert_int_equal(global->constant, 0);
	assert_int_equal(constant->constant, 1);
	launch(&image, 1, &params);
	assert_int_equal(out, 16);
	*(uint32_t *)global->address = 100;
	((uint32_t *)constant->address)[1] = 1000;
	launch(&image, 1, &params);
	assert_int_equal(out, 1109);
	tally_cpu_image_close(&image);
}

/* Bits: 0 shared, 1 constant, 2 local, 3 global; for a variable of each and the heap. */
static void spaces(void **state)
{
	static const char text[] =
		"@s = internal addrspace(3) global i32 undef, align 4\n"
		"@c = addrspace(4) constant i32 1, align 4\n"
		"@g = addrspace(1) global i32 1, align 4\n"
		"define internal i32 @ask(ptr %p) {\n"
		"  %s = call i1 @tally.is.shared(ptr %p)\n"
		"  %c = call i1 @tally.is.constant(ptr %p)\n"
		"  %l = call i1 @tally.is.local(ptr %p)\n"
		"  %g = call i1 @tally.is.global(ptr %p)\n"
		"  %s0 = zext i1 %s to i32\n"
		"  %c0 = zext i1 %c to i32\n"
		"  %l0 = zext i1 %l to i32\n"
		"  %g0 = zext i1 %g to i32\n"
		"  %c1 = shl i32 %c0, 1\n"
		"  %l1 = shl i32 %l0, 2\n"
		"  %g1 = shl i32 %g0, 3\n"
		"  %a = or i32 %s0, %c1\n"
		"  %b = or i32 %l1, %g1\n"
		"  %r = or i32 %a, %b\n"
		"  ret i32 %r\n"
		"}\n"
		"define void @k(ptr %out) \"tally.kernel\" {\n"
		"  %local = alloca i32, align 4\n"
		"  call void @tally.barrier(i32 0, i32 0)\n"
		"  store volatile i32 1, ptr %local, align 4\n"
		"  %heap = call ptr @tally.malloc(i64 100)\n"
		"  store i32 77, ptr %heap, align 4\n"
		"  %r0 = call i32 @ask(ptr addrspacecast (ptr addrspace(3) @s to ptr))\n"
		"  %r1 = call i32 @ask(ptr addrspacecast (ptr addrspace(4) @c to ptr))\n"
		"  %r2 = call i32 @ask(ptr %local)\n"
		"  %r3 = call i32 @ask(ptr addrspacecast (ptr addrspace(1) @g to ptr))\n"
		"  %r4 = call i32 @ask(ptr %heap)\n"
		"  store i32 %r0, ptr %out, align 4\n"
		"  %o1 = getelementptr i32, ptr %out, i64 1\n"
		"  store i32 %r1, ptr %o1, align 4\n"
		"  %o2 = getelementptr i32, ptr %out, i64 2\n"
		"  store i32 %r2, ptr %o2, align 4\n"
		"  %o3 = getelementptr i32, ptr %out, i64 3\n"
		"  store i32 %r3, ptr %o3, align 4\n"
		"  %o4 = getelementptr i32, ptr %out, i64 4\n"
		"  store i32 %r4, ptr %o4, align 4\n"
		"  call void @tally.barrier(i32 0, i32 0)\n"
		"  call void @tally.free(ptr %heap)\n"
		"  ret void\n"
		"}\n";
	static const uint32_t expected[] = {1, 2, 4, 8, 8};
	struct tally_cpu_image image = cpu_test_image(text, "none");
	uint32_t out[5] = {0}, *params = out;

	launch(&image, 40, &params);
	assert_memory_equal(out, expected, sizeof expected);
	tally_cpu_image_close(&image);
}

/* A private array, indexed through a 32-bit address: each thread's own, with a barrier and without.
 */
#define LOW_LOCAL(barrier)                                                                         \
	"define void @k(ptr %out) \"tally.kernel\" {\n"                                            \
	"  %array = alloca [8 x i32], align 16\n"                                                  \
	"  %t = call i32 @tally.thread.id.x()\n"                                                   \
	"  %private = addrspacecast ptr %array to ptr addrspace(5)\n"                              \
	"  %wide = ptrtoint ptr addrspace(5) %private to i64\n"                                    \
	"  %low = trunc i64 %wide to i32\n"                                                        \
	"  %i = and i32 %t, 7\n"                                                                   \
	"  %o = shl i32 %i, 2\n"                                                                   \
	"  %a = add i32 %low, %o\n"                                                                \
	"  %aw = zext i32 %a to i64\n"                                                             \
	"  %p = inttoptr i64 %aw to ptr addrspace(5)\n"                                            \
	"  store volatile i32 %t, ptr addrspace(5) %p, align 4\n" barrier                          \
	"  %iw = zext i32 %i to i64\n"                                                             \
	"  %q = getelementptr i32, ptr %array, i64 %iw\n"                                          \
	"  %v = load volatile i32, ptr %q, align 4\n"                                              \
	"  %w = zext i32 %t to i64\n"                                                              \
	"  %to = getelementptr i32, ptr %out, i64 %w\n"                                            \
	"  store i32 %v, ptr %to, align 4\n"                                                       \
	"  ret void\n"                                                                             \
	"}\n"

static void private_addresses_in_32_bits(void **state)
{
	static const char *const texts[] = {
		LOW_LOCAL(""), LOW_LOCAL("  call void @tally.barrier(i32 0, i32 0)\n")};

	for (size_t i = 0; i < 2; i++) {
		struct tally_cpu_image image = cpu_test_image(texts[i], "none");
		uint32_t out[100], *params = out;

		assert_true(tally_cpu_image_kernel(&image, "k")->flags & TALLY_CPU_LOW_LOCAL);
		assert_int_equal(tally_cpu_image_kernel(&image, "k")->local_bytes, 32);
		launch(&image, 100, &params);
		for (uint32_t t = 0; t < 100; t++)
			assert_int_equal(out[t], t);
		tally_cpu_image_close(&image);
	}
}

/* A recursive function and one that is called through a pointer know their thread and block. */
#define KEPT(barrier)                                                                              \
	"@table = internal addrspace(1) global [2 x ptr] [ptr @one, ptr @two]\n"                   \
	"define internal i32 @one(i32 %x) {\n"                                                     \
	"  %t = call i32 @tally.thread.id.x()\n"                                                   \
	"  %r = add i32 %x, %t\n"                                                                  \
	"  ret i32 %r\n"                                                                           \
	"}\n"                                                                                      \
	"define internal i32 @two(i32 %x) {\n"                                                     \
	"  %s = call i32 @tally.block.size.x()\n"                                                  \
	"  %r = mul i32 %x, %s\n"                                                                  \
	"  ret i32 %r\n"                                                                           \
	"}\n"                                                                                      \
	"define internal i32 @sum(i32 %n) {\n"                                                     \
	"  %end = icmp eq i32 %n, 0\n"                                                             \
	"  br i1 %end, label %out, label %more\n"                                                  \
	"more:\n"                                                                                  \
	"  %m = sub i32 %n, 1\n"                                                                   \
	"  %r = call i32 @sum(i32 %m)\n"                                                           \
	"  %l = call i32 @tally.lane.id()\n"                                                       \
	"  %v = add i32 %r, %l\n"                                                                  \
	"  ret i32 %v\n"                                                                           \
	"out:\n"                                                                                   \
	"  ret i32 0\n"                                                                            \
	"}\n"                                                                                      \
	"define void @k(ptr %out) \"tally.kernel\" {\n"                                            \
	"  %t = call i32 @tally.thread.id.x()\n"                                                   \
	"  %w = zext i32 %t to i64\n"                                                              \
	"  %odd = and i64 %w, 1\n"                                                                 \
	"  %at = getelementptr [2 x ptr], ptr addrspace(1) @table, i64 0, i64 %odd\n"              \
	"  %f = load ptr, ptr addrspace(1) %at, align 8\n" barrier "  %a = call i32 %f(i32 3)\n"   \
	"  %b = call i32 @sum(i32 5)\n"                                                            \
	"  %v = add i32 %a, %b\n"                                                                  \
	"  %to = getelementptr i32, ptr %out, i64 %w\n"                                            \
	"  store i32 %v, ptr %to, align 4\n"                                                       \
	"  ret void\n"                                                                             \
	"}\n"

static void functions_that_stay(void **state)
{
	static const char *const texts[] = {KEPT(""),
					    KEPT("  call void @tally.barrier(i32 0, i32 0)\n")};

	for (size_t i = 0; i < 2; i++) {
		struct tally_cpu_image image = cpu_test_image(texts[i], "none");
		uint32_t out[70], *params = out;

		launch(&image, 70, &params);
		for (uint32_t t = 0; t < 70; t++)
			assert_int_equal(out[t], (t % 2 ? 3 * 70 : 3 + t) + 5 * (t % 32));
		tally_cpu_image_close(&image);
	}
}

static void damaged_images(void **state)
{
	struct tally_cpu_image image = {0};
	struct tally_error error = {0};

	assert_false(tally_cpu_image_open("/nonexistent/kernels.so", &image, &error));
	assert_non_null(strstr(error.message, "cannot load compiled kernels"));
	error.message[0] = '\0';
	assert_false(tally_cpu_image_open("libm.so.6", &image, &error));
	assert_non_null(strstr(error.message, "no tally_cpu_module"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables),
		cmocka_unit_test(spaces),
		cmocka_unit_test(private_addresses_in_32_bits),
		cmocka_unit_test(functions_that_stay),
		cmocka_unit_test(damaged_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
