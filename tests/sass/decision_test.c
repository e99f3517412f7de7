/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard of machine code (backends/cuda/sass/prelude.ptx.in) against launch_abi.h's in C: its
 * own text, lifted and run by the CPU device, with a count where the kernel would go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "frontend/frontend.h"
#include "ir_passes/launch_abi.h"
#include "tests/cpu/harness.h"

#define TEXT TALLY_BUILD_DIR "/backends/cuda/sass/prelude_80_8.ptx"

enum { THREADS = 12, ROUNDS = 2000 };

/* The parameters of the text: `before`, which nobody reads there, and `launch`. */
static struct {
	uint64_t ran; /* address of a count */
	uint64_t control;
	uint32_t lo, hi;
} params;

static struct tally_cpu_image image;
static struct tally_cpu_worker *worker;
static uint32_t ran;

static int setup(void **state)
{
	static const char on[] = "pmevent 7;\n\tpmevent 7;\n\tpmevent 7;";
	LLVMContextRef context = LLVMContextCreate();
	struct tally_lift_options options = {.file = TEXT};
	struct tally_buffer ptx = {0}, counting = {0};
	struct tally_error error = {0};
	LLVMModuleRef module;
	const char *end;
	char *ir;

	assert_true(tally_file_read(TEXT, &ptx, &error));
	end = strstr(ptx.data, on);
	assert_non_null(end);
	tally_buffer_print(&counting,
			   "%.*sld.param.u64 %%old, [before];\n\tred.global.add.u32 [%%old], 1;%s",
			   (int)(end - ptx.data), ptx.data, end + sizeof on - 1);
	module = tally_ptx_lift(context, counting.data, counting.size, &options, &error);
	if (!module)
		fail_msg("%s", error.message);
	ir = LLVMPrintModuleToString(module);
	image = cpu_test_image(strstr(ir, "define "), "none"); /* the head is the harness's */
	LLVMDisposeMessage(ir);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
	tally_buffer_free(&ptx);
	tally_buffer_free(&counting);
	worker = tally_cpu_worker_create(0);
	assert_non_null(worker);
	return 0;
}

static int teardown(void **state)
{
	tally_cpu_worker_destroy(worker);
	tally_cpu_image_close(&image);
	return 0;
}

/* Whether block `u` of a grid of 3x2x4 ran, with all of its threads. */
static bool runs(uint32_t u)
{
	struct tally_cpu_launch launch = {
		.kernel = tally_cpu_image_kernel(&image, "tally_prelude"),
		.params = &params,
		.grid = {3, 2, 4},
		.block = {3, 2, 2},
	};

	ran = 0;
	params.ran = (uintptr_t)&ran;
	assert_int_equal(tally_cpu_run_block(worker, &launch, u), TALLY_CPU_OK);
	assert_true(ran == 0 || ran == THREADS);
	return ran;
}

/* The same launch twice: the first is decided by the text, the second by the reference. */
static struct twins {
	uint32_t gate, broken[2];
	uint64_t mailbox[2];
	struct tally_control control[2];
} twins;

static void start(uint32_t lo, uint32_t hi, uint32_t sequence)
{
	bool broken = cpu_test_random() % 8 == 0;

	twins = (struct twins){.broken = {broken, broken}};
	for (int k = 0; k < 2; k++)
		twins.control[k] = (struct tally_control){.word = lo,
							  .gate = (uintptr_t)&twins.gate,
							  .broken = (uintptr_t)&twins.broken[k],
							  .mailbox = (uintptr_t)&twins.mailbox[k],
							  .sequence = sequence,
							  .hi = hi};
	params.control = (uintptr_t)&twins.control[0];
	params.lo = lo;
	params.hi = hi;
}

/* Blocks in any order, the gate closing anywhere: the same answers, words and mailboxes.
 * `whole`: TALLY_CONTROL_WHOLE or 0. */
static void decide_as_the_reference(uint64_t whole)
{
	unsigned stopped = 0;

	for (unsigned n = 0; n < ROUNDS; n++) {
		uint32_t hi = 1 + cpu_test_random() % 24, lo = cpu_test_random() % hi;

		start(lo, hi, 1 + n);
		params.control |= whole;
		for (unsigned step = 0; step < 8; step++) {
			uint32_t u = cpu_test_random() % 24;
			bool inside = u >= lo && u < hi;

			twins.gate |= cpu_test_random() % 6 == 0;
			assert_int_equal(
				runs(u),
				inside &&
					tally_guard_enter((uintptr_t)&twins.control[1] | whole, u));
			assert_int_equal(twins.control[0].word, twins.control[1].word);
			assert_int_equal(twins.broken[0], twins.broken[1]);
			assert_int_equal(twins.mailbox[0], twins.mailbox[1]);
		}
		stopped += twins.mailbox[0] != 0;
	}
	assert_true(stopped > ROUNDS / 10);
}

static void decides_as_the_reference(void **state)
{
	decide_as_the_reference(0);
}

/* All blocks, or none. */
static void decides_for_whole_launches(void **state)
{
	decide_as_the_reference(TALLY_CONTROL_WHOLE);
}

/* hi = 0 runs everything, control = 0 the range: nobody is asked. */
static void runs_without_asking(void **state)
{
	start(5, 9, 1);
	twins.gate = 1;
	params.control = 0;
	for (uint32_t u = 0; u < 24; u++)
		assert_int_equal(runs(u), u >= 5 && u < 9);
	params.control = (uintptr_t)&twins.control[0];
	params.hi = 0;
	for (uint32_t u = 0; u < 24; u++)
		assert_true(runs(u));
	assert_int_equal(twins.control[0].word, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decides_as_the_reference),
		cmocka_unit_test(decides_for_whole_launches),
		cmocka_unit_test(runs_without_asking),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
