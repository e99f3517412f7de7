/* SPDX-License-Identifier: Apache-2.0 */
/* mbarrier objects (PTX ISA 9.7.13.15): counts, phases, transactions and arrivals that drop out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

enum { RESULTS = 32 };

/* Each step of one thread's story: what it calls, and the number that it must get. */
static const struct {
	const char *call;
	enum { NONE, PENDING, FLAG } kind;
	unsigned expected;
} steps[] = {
	{"void @tally.mbarrier.init(ptr addrspace(3) @b, i32 3)", NONE, 0},
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 0)", FLAG, 0},
	/* The phase before the first has parity 1 and is complete. */
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 1)", FLAG, 1},
	{"i64 @tally.mbarrier.arrive(ptr addrspace(3) @b, i32 1)", PENDING, 3},
	{"i64 @tally.mbarrier.arrive.some(ptr addrspace(3) @b, i32 1)", PENDING, 2},
	{"i1 @tally.mbarrier.try.parity(ptr addrspace(3) @b, i32 0)", FLAG, 0},
	{"i64 @tally.mbarrier.arrive(ptr addrspace(3) @b, i32 1)", PENDING, 1},
	{"i1 @tally.mbarrier.try.parity(ptr addrspace(3) @b, i32 0)", FLAG, 1},
	/* Second phase: two arrive, one of them for good. */
	{"i64 @tally.mbarrier.arrive.drop(ptr addrspace(3) @b, i32 1)", PENDING, 3},
	{"i64 @tally.mbarrier.arrive(ptr addrspace(3) @b, i32 2)", PENDING, 2},
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 1)", FLAG, 1},
	/* Third phase: two are expected now, and 16 bytes. */
	{"i64 @tally.mbarrier.arrive.expect(ptr addrspace(3) @b, i32 16)", PENDING, 2},
	{"i64 @tally.mbarrier.arrive(ptr addrspace(3) @b, i32 1)", PENDING, 1},
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 0)", FLAG, 0},
	{"void @tally.mbarrier.complete(ptr addrspace(3) @b, i32 10)", NONE, 0},
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 0)", FLAG, 0},
	{"void @tally.mbarrier.complete(ptr addrspace(3) @b, i32 6)", NONE, 0},
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 0)", FLAG, 1},
	/* Fourth: bytes may come before they are expected. */
	{"void @tally.mbarrier.complete(ptr addrspace(3) @b, i32 8)", NONE, 0},
	{"i64 @tally.mbarrier.arrive(ptr addrspace(3) @b, i32 2)", PENDING, 2},
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 1)", FLAG, 0},
	{"void @tally.mbarrier.expect(ptr addrspace(3) @b, i32 8)", NONE, 0},
	{"i1 @tally.mbarrier.test.parity(ptr addrspace(3) @b, i32 1)", FLAG, 1},
	{"void @tally.mbarrier.inval(ptr addrspace(3) @b)", NONE, 0},
};

static void story(void **state)
{
	struct tally_buffer text = {0};
	struct tally_cpu_image image;
	uint32_t out[RESULTS];
	struct {
		uint32_t *out;
	} params = {out};

	memset(out, 0xee, sizeof out);
	tally_buffer_print(&text, "@b = internal addrspace(3) global i64 undef, align 8\n"
				  "define void @k(ptr %%out) \"tally.kernel\" {\n");
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		if (steps[i].kind == NONE) {
			tally_buffer_print(&text, "  call %s\n", steps[i].call);
			continue;
		}
		tally_buffer_print(&text, "  %%r%zu = call %s\n", i, steps[i].call);
		if (steps[i].kind == PENDING)
			tally_buffer_print(&text,
					   "  %%v%zu = call i32 @tally.mbarrier.pending.count(i64 "
					   "%%r%zu)\n",
					   i, i);
		else
			tally_buffer_print(&text, "  %%v%zu = zext i1 %%r%zu to i32\n", i, i);
		tally_buffer_print(&text,
				   "  %%p%zu = getelementptr i32, ptr %%out, i32 %zu\n"
				   "  store i32 %%v%zu, ptr %%p%zu, align 4\n",
				   i, i, i, i);
	}
	tally_buffer_print(&text, "  ret void\n}\n");
	image = cpu_test_image(text.data, "none");
	assert_int_equal(cpu_test_run(&image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {1, 1, 1},
								.block = {1, 1, 1},
								.params = &params},
				      NULL),
			 TALLY_CPU_OK);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i].kind != NONE && out[i] != steps[i].expected)
			fail_msg("step %zu, %s: %u, not %u", i, steps[i].call, out[i],
				 steps[i].expected);
	tally_cpu_image_close(&image);
	tally_buffer_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(story)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
