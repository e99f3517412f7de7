/* SPDX-License-Identifier: Apache-2.0 */
/* A program on two devices: who is urgent on one stops what runs there, and nothing on the other.
 */
#include "tests/interpose/steps.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

static CUcontext second; /* the other device's, with */
static CUfunction second_step;
static struct tally_device *second_device;

static uint64_t stops_of(struct tally_device *d)
{
	return atomic_load(&tally_slot(d)->stops);
}

static int two_devices(void **state)
{
	CUmodule module;

	/* The driver reads it when it starts. */
	setenv("TALLY_CPU_DEVICES", "2", 1);
	steps_setup(state);
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(second));
	module = load_steps(true);
	OK(cuModuleGetFunction(&second_step, module, "step"));
	second_device = tally_device_of(1);
	assert_non_null(second_device);
	assert_ptr_not_equal(second_device, device);
	OK(cuCtxSetCurrent(context));
	return 0;
}

static void open_on(struct chain *c, CUcontext where, CUstream stream)
{
	OK(cuCtxSetCurrent(where));
	chain_open(c, stream);
	c->step = where == second ? second_step : step;
}

/* While the first is held the second launches, synchronizes, copies, in every kind of stream. */
static void one_is_held_and_the_other_goes_on(void **state)
{
	struct chain held, free_one;
	CUstream blocking, own;

	OK(cuCtxSetCurrent(second));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	open_on(&held, context, NULL);
	chain_stop(&held, 1);
	/* These wait in host memory. */
	for (uint32_t i = 0; i < 5; i++)
		chain_step(&held, i, 5, false);
	for (uint32_t round = 0; round < 30; round++) {
		const CUstream streams[] = {NULL, blocking, own, CU_STREAM_PER_THREAD};

		open_on(&free_one, second, streams[round % 4]);
		chain_step(&free_one, round, 5, false);
		OK(cuStreamSynchronize(streams[round % 4]));
		OK(cuCtxSynchronize());
		assert_int_equal(chain_ran(&free_one), BLOCKS);
	}
	assert_true(chain_ran(&held) < held.launches * BLOCKS);
	assert_int_equal(stops_of(second_device), 0);
	tally_client_set_active(rival, false);
	OK(cuCtxSetCurrent(context));
	chain_check(&held);
	OK(cuCtxSetCurrent(second));
	OK(cuStreamDestroy_v2(blocking));
	OK(cuStreamDestroy_v2(own));
}

/* Launches of the second that follow stopped ones of the first, by events, and the other way. */
static void events_order_across_them(void **state)
{
	struct chain first, last;
	CUevent done[2];
	CUstream streams[2];
	uint64_t before = stops_of(device), end = tally_now() + PATIENCE_S * UINT64_C(1000000000);

	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(i ? second : context));
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	}
	open_on(&first, context, streams[0]);
	open_on(&last, second, streams[1]);
	/* Both chains are one: each step reads what the other device's wrote. */
	OK(cuMemFree_v2(last.values));
	OK(cuMemFree_v2(last.ran));
	last.values = first.values;
	last.ran = first.ran;
	rival_begins(11);
	for (uint32_t round = 0;
	     round < 200 || (stops_of(device) - before < 30 && tally_now() < end); round++) {
		OK(cuCtxSetCurrent(context));
		OK(cuStreamWaitEvent(streams[0], done[1], 0));
		chain_step(&first, 2 * round, 20, false);
		OK(cuEventRecord(done[0], streams[0]));
		OK(cuCtxSetCurrent(second));
		OK(cuStreamWaitEvent(streams[1], done[0], 0));
		chain_step(&last, 2 * round + 1, 20, false);
		chain_expect(&first, 2 * round + 1);
		OK(cuEventRecord(done[1], streams[1]));
	}
	OK(cuStreamSynchronize(streams[1]));
	rival_ends();
	assert_true(stops_of(device) - before >= 30);
	assert_int_equal(stops_of(second_device), 0);
	OK(cuCtxSetCurrent(context));
	chain_check(&first);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_held_and_the_other_goes_on),
		cmocka_unit_test(events_order_across_them),
	};

	(void)argc, (void)argv;
	return cmocka_run_group_tests(tests, two_devices, NULL);
}
