/* SPDX-License-Identifier: Apache-2.0 */
/* What ends while the program goes on: contexts, primary ones too, whose handles and whose modules'
 * and kernels' handles come again; threads with streams of their own. */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/resolve.h"

/* Kernels of a module of the current context, each asked for in turn: what Tally knows of a handle
 * is what it is now, and each runs as itself. */
static void use_kernels(unsigned round)
{
	static const char *const names[] = {"step", "empty"};
	CUmodule module = load_steps(true);
	CUfunction found[2];
	struct chain c;

	for (unsigned i = 0; i < 2; i++) {
		unsigned which = (i + round) % 2;
		struct tally_kernel *k;

		OK(cuModuleGetFunction(&found[which], module, names[which]));
		k = tally_kernel_find(found[which]);
		assert_non_null(k);
		assert_string_equal(k->name, names[which]);
		assert_ptr_equal(k->module, tally_module_find(module));
	}
	chain_open(&c, NULL);
	c.step = found[0];
	for (uint32_t i = 0; i < 20; i++) {
		chain_step(&c, i, 5, false);
		OK(cuLaunchKernel(found[1], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	}
	OK(cuCtxSynchronize());
	chain_check(&c);
}

static void handles_come_again_in_other_contexts(void **state)
{
	CUcontext own;

	rival_begins(4);
	for (unsigned round = 0; round < 20; round++) {
		OK(cuCtxCreate_v2(&own, 0, device->ordinal));
		use_kernels(round);
		OK(cuCtxDestroy_v2(own));
	}
	rival_ends();
	OK(cuCtxSetCurrent(context));
}

static _Atomic bool enough;

static void *come_and_go(void *unused)
{
	CUcontext own;

	(void)unused;
	for (unsigned round = 0; round < 30; round++) {
		OK(cuCtxCreate_v2(&own, 0, device->ordinal));
		use_kernels(round);
		OK(cuCtxDestroy_v2(own));
	}
	atomic_store(&enough, true);
	return NULL;
}

/* Who waits for everything does so while contexts come and go; sanitizers see to it. */
static void contexts_end_while_all_are_waited_for(void **state)
{
	pthread_t thread;
	CUdeviceptr some;
	CUstream stream;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	pthread_create(&thread, NULL, come_and_go, NULL);
	for (uint32_t i = 0; !atomic_load(&enough); i++) {
		chain_step(&c, i, 5, false);
		OK(cuMemAlloc_v2(&some, 64));
		OK(cuMemFree_v2(some));
	}
	pthread_join(thread, NULL);
	OK(cuStreamSynchronize(stream));
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

/* Also where nothing of it was ever launched. */
static void modules_end_with_a_context_without_launches(void **state)
{
	CUcontext own;
	CUfunction f;

	for (unsigned round = 0; round < 20; round++) {
		CUmodule module;

		OK(cuCtxCreate_v2(&own, 0, device->ordinal));
		module = load_steps(true);
		OK(cuModuleGetFunction(&f, module, round % 2 ? "step" : "empty"));
		assert_string_equal(tally_kernel_find(f)->name, round % 2 ? "step" : "empty");
		OK(cuCtxDestroy_v2(own));
		assert_null(tally_module_find(module));
		assert_null(tally_kernel_find(f));
	}
	OK(cuCtxSetCurrent(context));
}

static size_t resident_kib(void)
{
	size_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %zu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Programs that compile as they run load and unload modules for as long as they live. */
static void modules_that_are_gone_leave_nothing(void **state)
{
	enum { ROUNDS = 3000 };
	size_t before = 0, after;
	struct chain c;

	chain_open(&c, NULL);
	for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
		CUmodule module = load_steps(true);
		CUfunction f;

		if (round == ROUNDS)
			before = resident_kib();
		OK(cuModuleGetFunction(&f, module, "empty"));
		OK(cuModuleGetFunction(&c.step, module, "step"));
		/* Each with what is learnt of a launch. */
		c.flat = round % 2;
		chain_step(&c, round, 0, false);
		OK(cuModuleUnload(module));
		assert_null(tally_kernel_find(f));
	}
	after = resident_kib();
	chain_check(&c);
	print_message("%d modules: %zu KiB, %d more: %zu KiB\n", ROUNDS, before, ROUNDS, after);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which keep what is freed */
	assert_true(after < before + 512);
#endif
}

/* A reset ends the primary context whoever holds it; one of several holders ends nothing. */
static void a_reset_ends_the_primary_context(void **state)
{
	CUcontext same;

	rival_begins(5);
	for (unsigned round = 0; round < 10; round++) {
		struct chain c;
		CUmodule module = load_steps(true);
		CUfunction f;

		OK(cuModuleGetFunction(&f, module, "step"));
		chain_open(&c, NULL);
		c.step = f;
		chain_step(&c, 1, 20, false);
		OK(cuDevicePrimaryCtxRetain(&same, device->ordinal));
		OK(cuDevicePrimaryCtxRelease_v2(device->ordinal));
		assert_ptr_equal(tally_kernel_find(f)->module, tally_module_find(module));
		chain_step(&c, 2, 20, false);
		OK(cuCtxSynchronize());
		chain_check(&c);
		chain_open(&c, NULL);
		c.step = f;
		chain_step(&c, 3, 20, false);
		OK(cuDevicePrimaryCtxReset_v2(device->ordinal));
		assert_null(tally_module_find(module));
		assert_null(tally_kernel_find(f));
		use_kernels(round);
	}
	rival_ends();
}

/* Executable graphs ------------------------------------------------------------------------------
 */

static CUgraphExec graph_of(struct chain *c, CUfunction f, uint32_t number, uint32_t us)
{
	CUgraphExec exec;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	chain_node(c, graph, f, number, us, NULL, 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

static void *launch_in_own_stream(void *exec)
{
	OK(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < 3; i++)
		OK(cuGraphLaunch_ptsz(exec, NULL));
	return NULL;
}

/* Each thread's default stream has the same name, and is another stream all the same. */
static void a_graph_follows_itself_from_thread_to_thread(void **state)
{
	pthread_t thread;
	CUgraphExec exec;
	struct chain c;

	chain_open(&c, NULL);
	exec = graph_of(&c, step, 7, LONG_US);
	/* As a whole: short as far as anybody knows, and nobody waits for it. */
	pthread_create(&thread, NULL, launch_in_own_stream, exec);
	pthread_join(thread, NULL);
	tally_process.config.graphs = TALLY_GRAPHS_NODES;
	OK(cuGraphLaunch_ptsz(exec, NULL));
	tally_process.config.graphs = TALLY_GRAPHS_AUTO;
	OK(cuStreamSynchronize_ptsz(NULL));
	assert_int_equal(chain_ran(&c), 4 * BLOCKS);
	for (unsigned i = 0; i < 4; i++)
		chain_expect(&c, 7);
	chain_check(&c);
	OK(cuGraphExecDestroy(exec));
}

/* Threads ---------------------------------------------------------------------------------------
 */

static unsigned records(void)
{
	unsigned count = 0;

	tally_lock(device);
	for (struct tally_context *c = device->contexts; c; c = c->next)
		for (struct tally_stream *s = c->streams; s; s = s->next)
			count++;
	tally_unlock(device);
	return count;
}

static void launch_at_the_end(void *argument)
{
	OK(cuLaunchKernel_ptsz(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	(void)argument;
}

static pthread_key_t late;

/* Work that can be stopped and work that cannot, and more from the thread's last functions. */
static void *short_life(void *argument)
{
	uint32_t number = 1, us = 5;
	struct chain *c = argument;
	void *pointers[] = {&c->values, &c->ran, &number, &us};

	OK(cuCtxSetCurrent(context));
	pthread_setspecific(late, c);
	OK(cuLaunchKernel_ptsz(step, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, pointers, NULL));
	OK(cuMemsetD32Async_ptsz(memory, 1, 16, NULL));
	return NULL;
}

static void threads_come_and_go(struct chain *c, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, short_life, c);
		pthread_join(thread, NULL);
		chain_expect(c, 1);
	}
}

static void ended_threads_leave_nothing(void **state)
{
	unsigned before = records();
	struct chain c;

	chain_open(&c, NULL);
	assert_int_equal(pthread_key_create(&late, launch_at_the_end), 0);
	rival_begins(6);
	threads_come_and_go(&c, 200);
	rival_ends();
	OK(cuCtxSynchronize());
	/* The last few may not have been known done when the next one came. */
	UNTIL((threads_come_and_go(&c, 1), records() <= before + 20));
	OK(cuCtxSynchronize());
	chain_check(&c);
	pthread_key_delete(late);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_follows_itself_from_thread_to_thread),
		cmocka_unit_test(ended_threads_leave_nothing),
		cmocka_unit_test(handles_come_again_in_other_contexts),
		cmocka_unit_test(contexts_end_while_all_are_waited_for),
		cmocka_unit_test(modules_end_with_a_context_without_launches),
		cmocka_unit_test(modules_that_are_gone_leave_nothing),
		cmocka_unit_test(a_reset_ends_the_primary_context),
	};

	(void)argc, (void)argv;
	return cmocka_run_group_tests(tests, steps_setup, NULL);
}
