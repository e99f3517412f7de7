/* SPDX-License-Identifier: Apache-2.0 */
/* What launches run as: stoppable, in slices, whole; nodes by themselves or a graph as one. As
 * depth_test.c, started by levels.sh. */
#include "tests/interpose/steps.h"

#include <stdlib.h>

#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/profile.h"
#include "base/clock.h"

static CUfunction whole; /* `step` of a module that cannot be stopped */

/* As if the choice had said so, and said it for good. */
static void choose(CUfunction k, bool flat, enum tally_level level, uint32_t slice)
{
	struct tally_configuration *c = chain_configuration(k, flat);

	atomic_store(&c->choice, level | TALLY_WHY_ASKED << 8 | (uint64_t)slice << 32);
	atomic_store(&c->launches, 33);
}

static uint64_t fences(void)
{
	return atomic_load(&tally_slot(device)->fences);
}

/* Each launch depends on the one before: long stoppable ones, whole or in slices, short ones that
 * run as they are, and ones that cannot be stopped, in any order through stops and resumes. */
static void order_holds_whatever_runs(void **state)
{
	uint64_t stops = atomic_load(&tally_slot(device)->stops), end, stopped;
	CUstream stream;
	struct chain c;
	unsigned seed = 5, round;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	for (unsigned flat = 0; flat < 2; flat++) {
		c.flat = flat;
		chain_step(&c, 0, 1, false);
	}
	rival_begins(3);
	end = tally_now() + PATIENCE_S * UINT64_C(1000000000);
	for (round = 0; round < 300 || tally_now() < end; round++) {
		int what = rand_r(&seed) % 4;

		stopped = atomic_load(&tally_slot(device)->stops) - stops;
		if (round >= 300 && stopped >= 40)
			break;
		c.flat = what == 1;
		c.step = what == 2 ? whole : step;
		if (what != 2)
			choose(step, c.flat,
			       what == 1   ? TALLY_LEVEL_GATE
			       : what == 3 ? TALLY_LEVEL_SLICE
					   : TALLY_LEVEL_GUARD,
			       what == 3 ? 7 : 0);
		chain_step(&c, round, what == 1 ? 0 : 20, round % 3 == 0);
	}
	OK(cuStreamSynchronize(stream));
	rival_ends();
	stopped = atomic_load(&tally_slot(device)->stops) - stops;
	print_message("%u launches, %lu stops\n", round, (unsigned long)stopped);
	assert_true(stopped >= 40);
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

/* A short kernel behind a long stoppable one does not wait for it on the host. */
static void mixing_is_no_fence(void **state)
{
	struct tally_known known;
	CUstream stream;
	struct chain c;
	uint64_t before;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	before = fences();
	for (unsigned round = 0; round < 60; round++) {
		c.flat = round % 2;
		if (round > 1)
			choose(step, c.flat, c.flat ? TALLY_LEVEL_GATE : TALLY_LEVEL_GUARD, 0);
		chain_step(&c, round, c.flat ? 0 : 50, false);
	}
	assert_true(fences() - before <= 4); /* of the first rounds, before the choice */
	OK(cuStreamSynchronize(stream));
	tally_known_gather(&known, chain_configuration(step, true)->row, NULL);
	assert_true(
		atomic_load(
			&chain_configuration(step, true)->row->level[TALLY_LEVEL_GUARD].launches) >
		0);
	/* With nothing in front of it, it runs as it is. */
	before = atomic_load(
		&chain_configuration(step, true)->row->level[TALLY_LEVEL_GATE].launches);
	c.flat = true;
	choose(step, true, TALLY_LEVEL_GATE, 0);
	chain_step(&c, 60, 0, false);
	OK(cuStreamSynchronize(stream));
	assert_int_equal(
		atomic_load(
			&chain_configuration(step, true)->row->level[TALLY_LEVEL_GATE].launches),
		before + 1);
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

/* Left alone, the choice takes the original for what is short and the guarded form for what is
 * long. */
static void the_choice_is_followed(void **state)
{
	struct tally_choice chosen;
	CUfunction f;
	struct chain c;

	OK(cuModuleGetFunction(&f, load_steps(true), "step"));
	chain_open(&c, NULL);
	c.step = f;
	for (unsigned round = 0; round < 200; round++)
		chain_step(&c, round, 500, false);
	chosen = tally_report_choice(chain_configuration(f, false)->row);
	print_message("long: %s, %s\n", tally_level_word(chosen.level),
		      tally_reason_text(chosen.reason));
	assert_int_not_equal(chosen.level, TALLY_LEVEL_GATE);
	chain_check(&c);
	OK(cuModuleGetFunction(&f, load_steps(true), "empty"));
	for (unsigned round = 0; round < 100; round++)
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuCtxSynchronize());
	chosen = tally_report_choice(atomic_load(&tally_kernel_find(f)->last)->row);
	assert_int_equal(chosen.level, TALLY_LEVEL_GATE);
}

/* The count reaches the board in a lull, whenever the monitor gets to run: not so late here. */
static uint64_t launches_so_far(void)
{
	tally_lock(device);
	tally_activity_publish(device);
	tally_unlock(device);
	return atomic_load(&tally_slot(device)->launches);
}

/* Launches that one launch of a graph of `nodes` comes to, once it is known how long all of it
 * takes, which is `took` milliseconds (0: what it takes). `work`: microseconds of each block. */
static double launches_of_a_graph(unsigned nodes, uint32_t work, float took)
{
	CUgraphExec executable;
	CUgraph graph;
	CUstream stream;
	struct chain c;
	uint64_t before = 0;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	/* A kernel of its own, of which nobody knows anything. */
	OK(cuModuleGetFunction(&c.step, load_steps(true), "step"));
	for (unsigned i = 0; i < 8; i++)
		chain_step(&c, i, work, false);
	OK(cuStreamSynchronize(stream));
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (unsigned i = 0; i < nodes; i++)
		chain_step(&c, 8 + i, work, false);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	if (took > 0)
		steps_say_took(took);
	for (unsigned i = 0; i < 20; i++) {
		if (i == 10)
			before = launches_so_far();
		OK(cuGraphLaunch(executable, stream));
		OK(cuStreamSynchronize(stream));
		for (unsigned n = 0; i && n < nodes; n++)
			chain_expect(&c, 8 + n);
	}
	chain_check(&c);
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(stream));
	return (double)(launches_so_far() - before) / 10;
}

/* Nodes by themselves, where that is worth it: not where each is over before the next is given. */
static void short_nodes_go_as_one_graph(void **state)
{
	double tiny, long_ones;

	/* In this order: what the first took is not known of another graph with its handle. */
	steps_say_took(0.002f);
	tiny = launches_of_a_graph(150, 0, 0);
	steps_say_took(0);
	long_ones = launches_of_a_graph(20, 40, 0);
	print_message("150 short nodes: %.1f launches a graph; 20 nodes of 480 us: %.1f\n", tiny,
		      long_ones);
	assert_true(tiny < 150 / 2.0);
	assert_true(long_ones >= 20);
}

/* What was measured of the whole counts for more than what its nodes add up to: here they always
 * say that it is short. The limit is 100 us; ten times that is long; to give a node takes 4. */
static void what_the_whole_took_decides(void **state)
{
	static const struct {
		unsigned nodes;
		float whole;
		bool one_by_one;
	} graphs[] = {
		{10, 0.05f, false}, /* within the limit */
		{150, 0.2f, false}, /* over soon: to give its nodes takes 0.6 ms */
		{40, 0.2f, true},   /* 0.16 ms */
		{700, 1.2f, true},  /* long, whatever giving takes */
	};

	for (unsigned i = 0; i < sizeof graphs / sizeof *graphs; i++) {
		double launches;
		steps_say_took(0.002f);
		launches = launches_of_a_graph(graphs[i].nodes, 0, graphs[i].whole);
		print_message("%u nodes, %.2f ms: %.1f launches a graph\n", graphs[i].nodes,
			      (double)graphs[i].whole, launches);
		if (graphs[i].one_by_one)
			assert_true(launches >= graphs[i].nodes);
		else
			assert_true(launches < graphs[i].nodes / 2.0);
	}
	steps_say_took(0);
}

static int setup(void **state)
{
	int failed = steps_setup(state);

	OK(cuModuleGetFunction(&whole, load_steps(false), "step"));
	return failed;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_holds_whatever_runs),
		cmocka_unit_test(mixing_is_no_fence),
		cmocka_unit_test(the_choice_is_followed),
		cmocka_unit_test(short_nodes_go_as_one_graph),
		cmocka_unit_test(what_the_whole_took_decides),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
