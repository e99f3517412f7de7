/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids whose blocks are all on the device at the same time may wait for each other, in any order:
 * such a launch is stopped as a whole or not at all. Tally's hooks are linked in, the driver is the
 * CPU device's with two workers, the daemon a real one (guard.sh).
 */
#include "tests/interpose/steps.h"

#include "backends/cuda/interpose/guard.h"

enum { WAVE = 2, LAUNCHES = 150, STOPS = 20, MOST = 4000 };

static CUmodule module;

static CUfunction kernel(const char *name)
{
	CUfunction f;

	if (!module)
		module = load_steps(true);
	OK(cuModuleGetFunction(&f, module, name));
	return f;
}

static void launch(CUfunction f, unsigned blocks, CUdeviceptr words, uint32_t number, uint32_t work)
{
	CUdeviceptr second = words + 4;
	void *parameters[] = {&words, &second, &number, &work};

	OK(cuLaunchKernel(f, blocks, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

/* Two blocks that wait for each other, while another stream keeps the second from starting with the
 * first, and stops meet every moment: with some blocks run and others skipped one would be alone.
 */
static void blocks_that_meet(void **state)
{
	uint64_t before = stops();
	CUfunction meet = kernel("meet");
	struct tally_report_row *row;
	CUdeviceptr words;
	CUstream stream;
	uint32_t got[2], n = 0;
	struct chain c;

	OK(cuMemAlloc_v2(&words, sizeof got));
	OK(cuMemsetD32_v2(words, 0, 2));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	rival_begins(11);
	for (; n < LAUNCHES || (stops() < before + STOPS && n < MOST); n++) {
		if (__atomic_load_n((const uint32_t *)(words + 4), __ATOMIC_RELAXED))
			break; /* somebody waited in vain */
		if (n % 4 == 0)
			chain_step(&c, n, 50, false);
		launch(meet, WAVE, words, WAVE * (n + 1), 0);
	}
	OK(cuCtxSynchronize());
	rival_ends();
	chain_check(&c);
	OK(cuMemcpyDtoH_v2(got, words, sizeof got));
	print_message("%u launches, %lu stops\n", n, (unsigned long)(stops() - before));
	assert_int_equal(got[0], WAVE * n);
	assert_int_equal(got[1], 0);
	assert_true(stops() >= before + STOPS);
	row = atomic_load(&tally_kernel_find(meet)->last)->row;
	assert_int_equal(atomic_load(&row->level[TALLY_LEVEL_GUARD].launches), n);
	OK(cuStreamDestroy_v2(stream));
	OK(cuMemFree_v2(words));
}

/* Its blocks all fit as it is, but not in the form that can be stopped: it stays as it is. */
static void blocks_that_would_not_fit(void **state)
{
	CUfunction crowd = kernel("crowd");
	struct tally_configuration *c;
	CUdeviceptr words;
	uint32_t got[2];

	OK(cuMemAlloc_v2(&words, sizeof got));
	OK(cuMemsetD32_v2(words, 0, 2));
	for (unsigned i = 0; i < 40; i++)
		launch(crowd, 1, words, i, 100); /* longer than the bound */
	OK(cuMemcpyDtoH_v2(got, words, sizeof got));
	assert_int_equal(got[1], 40);
	c = atomic_load(&tally_kernel_find(crowd)->last);
	assert_int_equal(atomic_load(&c->row->level[TALLY_LEVEL_GATE].launches), 40);
	assert_int_equal(atomic_load(&c->choice) >> 8 & 0xff, TALLY_WHY_CROWDED);
	OK(cuMemFree_v2(words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_that_meet),
		cmocka_unit_test(blocks_that_would_not_fit),
	};

	return cmocka_run_group_tests(tests, steps_setup, NULL);
}
