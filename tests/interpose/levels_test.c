/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launches run as, and how much of what cannot be stopped is queued ahead: Tally's hooks are
 * linked in, the driver is the CPU device's, the daemon a real one (levels.sh starts it). With the
 * argument "endless" it is a program that launches what cannot be stopped until somebody kills it.
 */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"

enum { PATIENCE_S = 60 };

static CUfunction whole; /* `step` of a module that cannot be stopped */

#if defined(__SANITIZE_THREAD__)
/* The compiler's workers are children that share our memory but have descriptors of their own:
 * those are not the same though they have the same numbers. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:nanny_main\nrace:worker_main\n";
}
#endif

static bool waited(const struct timespec *pause, uint64_t end)
{
	nanosleep(pause, NULL);
	return tally_now() > end;
}

/* Waits until CONDITION; fails after a minute. */
#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t end_ = tally_now() + PATIENCE_S * UINT64_C(1000000000);                   \
		while (!(condition))                                                               \
			if (waited(&(struct timespec){.tv_nsec = 1000000}, end_))                  \
				fail_msg("line %d: never: %s", __LINE__, #condition);              \
	} while (0)

/* The depth limit ------------------------------------------------------------------------------ */

enum { THREADS = 4, STREAMS = 20, LAUNCHES = 1000, WORK_US = 60 };

static _Atomic bool watching;
static _Atomic uint64_t most_ns, most_launches, returned;
static CUdeviceptr all_ran; /* u32 for each stream */

static void keep_most(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t known = atomic_load(most);

	while (value > known && !atomic_compare_exchange_weak(most, &known, value))
		;
}

static uint64_t ran(void)
{
	const _Atomic uint32_t *words = (const _Atomic uint32_t *)(uintptr_t)all_ran;
	uint64_t sum = 0;

	for (unsigned i = 0; i < STREAMS; i++)
		sum += atomic_load(&words[i]);
	return sum;
}

static void *watch(void *argument)
{
	while (atomic_load(&watching)) {
		/* This order: what has run by the second look had returned by the first. */
		uint64_t given = atomic_load(&returned), over = ran();

		keep_most(&most_ns, atomic_load(&device->queued_ns));
		if (given > over)
			keep_most(&most_launches, given - over);
		usleep(20);
	}
	return argument;
}

/* Launches one block at a time, in turn into each of a fifth of the streams. */
static void *launch_whole(void *argument)
{
	unsigned first = (unsigned)(uintptr_t)argument;
	CUstream streams[STREAMS / THREADS];
	CUdeviceptr values;

	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&values, 4 * STREAMS));
	OK(cuMemsetD32_v2(values, 0, STREAMS));
	for (unsigned i = 0; i < STREAMS / THREADS; i++)
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < LAUNCHES / THREADS; i++) {
		unsigned s = i % (STREAMS / THREADS);
		CUdeviceptr value = values + 4 * s,
			    count = all_ran + 4 * (first * (STREAMS / THREADS) + s);
		uint32_t number = i, work = WORK_US;
		void *parameters[] = {&value, &count, &number, &work};

		OK(cuLaunchKernel(whole, 1, 1, 1, 1, 1, 1, 0, streams[s], parameters, NULL));
		atomic_fetch_add(&returned, 1);
	}
	for (unsigned i = 0; i < STREAMS / THREADS; i++)
		OK(cuStreamSynchronize(streams[i]));
	for (unsigned i = 0; i < STREAMS / THREADS; i++)
		OK(cuStreamDestroy_v2(streams[i]));
	OK(cuMemFree_v2(values));
	return NULL;
}

/*
 * A thousand launches that cannot be stopped, from four threads into twenty streams. A block runs
 * for 60 us at least, so of the limit's 100 us one fits, or the one more that was let in before
 * anything was measured, whatever the machine does meanwhile.
 */
static void depth_holds_over_all_streams(void **state)
{
	pthread_t threads[THREADS], watcher;

	OK(cuMemAlloc_v2(&all_ran, 4 * STREAMS));
	OK(cuMemsetD32_v2(all_ran, 0, STREAMS));
	OK(cuCtxSynchronize());
	UNTIL(!atomic_load(&device->queued_ns) || (cuCtxSynchronize(), true));
	atomic_store(&watching, true);
	atomic_store(&most_ns, 0);
	atomic_store(&most_launches, 0);
	atomic_store(&returned, 0);
	pthread_create(&watcher, NULL, watch, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, launch_whole, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&watching, false);
	pthread_join(watcher, NULL);
	print_message("at most %lu us predicted, %lu launches given and not run\n",
		      (unsigned long)atomic_load(&most_ns) / 1000,
		      (unsigned long)atomic_load(&most_launches));
	assert_int_equal(ran(), LAUNCHES);
	assert_in_range(atomic_load(&most_launches), 1, 2);
	/* Everything was counted out again. */
	assert_int_equal(atomic_load(&device->queued_ns), 0);
	OK(cuMemFree_v2(all_ran));
}

/* The same with the waiting of a GPU, where no event wakes a thread. */
static void depth_holds_while_spinning(void **state)
{
	OK(cuCtxSynchronize());
	device->cpu = false;
	depth_holds_over_all_streams(state);
	device->cpu = true;
}

static _Atomic bool may_end;

static void CUDA_CB wait_for_program(void *unused)
{
	while (!atomic_load(&may_end))
		usleep(1000);
	(void)unused;
}

/* What runs waits for what the thread does after its launches: the limit is no deadlock. */
static void waiting_ends(void **state)
{
	CUstream stream;
	struct chain c;

	OK(cuCtxSynchronize());
	device->cpu = false;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	c.step = whole;
	OK(cuLaunchHostFunc(stream, wait_for_program, NULL));
	for (unsigned i = 0; i < 20; i++)
		chain_step(&c, i, 20, false);
	atomic_store(&may_end, true);
	OK(cuStreamSynchronize(stream));
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
	device->cpu = true;
}

/* The short ones are let in many at a time, and marks are few. */
static void short_launches_are_batched(void **state)
{
	struct tally_stream *s;
	uint32_t before;
	CUstream stream;
	CUfunction f;

	OK(cuModuleGetFunction(&f, load_steps(false), "empty"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	s = tally_stream_find(stream, false);
	assert_non_null(s);
	for (unsigned i = 0; i < 200; i++) {
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
		OK(cuStreamSynchronize(stream));
	}
	before = s->queue.sequence;
	for (unsigned i = 0; i < 2000; i++)
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuStreamSynchronize(stream));
	print_message("%u marks for 2000 launches\n", s->queue.sequence - before);
	assert_in_range(s->queue.sequence - before, 1, 1500);
	OK(cuStreamDestroy_v2(stream));
}

/* What the report knows of the kernel `k` in chains' usual configuration. */
static struct tally_configuration *configuration(CUfunction k, bool flat)
{
	struct tally_configuration *c = atomic_load(&tally_kernel_find(k)->configurations);

	while (c && (c->at.grid[0] == BLOCKS) != flat)
		c = c->next;
	assert_non_null(c);
	return c;
}

/* Without anybody waiting for a measurement, the report knows what a launch takes. */
static void launches_are_timed(void **state)
{
	struct tally_known known;
	struct chain c;

	chain_open(&c, NULL);
	c.step = whole;
	for (unsigned i = 0; i < 30; i++)
		chain_step(&c, i, 40, false);
	chain_check(&c);
	tally_known_gather(&known, configuration(whole, false)->row, NULL);
	print_message("%lu samples of %lu launches: %lu us\n",
		      (unsigned long)known.level[TALLY_LEVEL_GATE].samples,
		      (unsigned long)known.launches,
		      (unsigned long)known.level[TALLY_LEVEL_GATE].ns / 1000);
	assert_true(known.level[TALLY_LEVEL_GATE].samples >= 3);
	assert_true(known.level[TALLY_LEVEL_GATE].ns >= 40 * 1000);
	assert_true(known.launches >= 30);
	assert_int_equal(known.current.level, TALLY_LEVEL_GATE);
}

/* Copies and memsets count too, and leave nothing behind. */
static void copies_count(void **state)
{
	enum { BYTES = 1 << 20 };
	CUdeviceptr a, b;
	CUstream stream;
	uint64_t seen = 0;

	OK(cuMemAlloc_v2(&a, BYTES));
	OK(cuMemAlloc_v2(&b, BYTES));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 50; i++) {
		OK(cuMemsetD8Async(a, (unsigned char)i, BYTES, stream));
		OK(cuMemcpyDtoDAsync_v2(b, a, BYTES, stream));
		keep_most(&most_ns, atomic_load(&device->queued_ns));
		seen += atomic_load(&device->queued_ns) != 0;
	}
	OK(cuStreamSynchronize(stream));
	assert_true(seen > 0);
	OK(cuStreamDestroy_v2(stream));
	assert_int_equal(atomic_load(&device->queued_ns), 0);
	OK(cuMemFree_v2(a));
	OK(cuMemFree_v2(b));
}

/* So does a graph, as a whole, by what its launches before have taken. */
static void graphs_count(void **state)
{
	struct tally_report *report = device->report;
	uint64_t before = atomic_load(&report->counters[TALLY_COUNT_GRAPHS]), most = 0;
	CUgraphExec executable;
	CUgraph graph;
	CUstream stream;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	c.step = whole;
	OK(cuCtxSynchronize());
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	chain_step(&c, 1, 100, false);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	c.launches = 0;
	memset(c.expected, 0, sizeof c.expected);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t queued;

		OK(cuGraphLaunch(executable, stream));
		queued = atomic_load(&device->queued_ns);
		if (i > 8 && queued > most)
			most = queued;
		chain_expect(&c, 1);
	}
	OK(cuStreamSynchronize(stream));
	/* 24 blocks of 100 us on two workers. */
	print_message("a graph of 1200 us was predicted to take %lu us\n",
		      (unsigned long)most / 1000);
	assert_true(most >= 600 * 1000);
	assert_int_equal(atomic_load(&report->counters[TALLY_COUNT_GRAPHS]), before + 12);
	chain_check(&c);
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(stream));
}

/* The count reaches the board in a lull, whenever the monitor gets to run: not so late here. */
static uint64_t launches_so_far(void)
{
	tally_lock(device);
	tally_activity_publish(device);
	tally_unlock(device);
	return atomic_load(&tally_slot(device)->launches);
}

static void launch_empty(CUstream stream)
{
	OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* Launches that one launch of a graph of `nodes` comes to, once it is known how long all of it
 * takes. `work`: microseconds of each block of a step; 0: empty kernels. */
static double launches_of_a_graph(unsigned nodes, uint32_t work)
{
	CUgraphExec executable;
	CUgraph graph;
	CUstream stream;
	struct chain c;
	uint64_t before = 0;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	for (unsigned i = 0; i < 8; i++) {
		chain_step(&c, i, work, false);
		launch_empty(stream);
	}
	OK(cuStreamSynchronize(stream));
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (unsigned i = 0; i < nodes; i++)
		if (work)
			chain_step(&c, 8 + i, work, false);
		else
			launch_empty(stream);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	for (unsigned i = 0; i < 20; i++) {
		if (i == 10)
			before = launches_so_far();
		OK(cuGraphLaunch(executable, stream));
		OK(cuStreamSynchronize(stream));
		for (unsigned n = 0; work && i && n < nodes; n++)
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
	/* In this order: what the first took is not known of another graph with its handle. */
	double tiny = launches_of_a_graph(150, 0), long_ones = launches_of_a_graph(20, 40);

	print_message("150 empty nodes: %.1f launches a graph; 20 nodes of 480 us: %.1f\n", tiny,
		      long_ones);
	assert_true(tiny < 150 / 2.0);
	assert_true(long_ones >= 20);
}

/* Levels --------------------------------------------------------------------------------------- */

/* As if the choice had said so, and said it for good. */
static void choose(CUfunction k, bool flat, enum tally_level level, uint32_t slice)
{
	struct tally_configuration *c = configuration(k, flat);

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
	end = tally_now() + 20000000000u;
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
	tally_known_gather(&known, configuration(step, true)->row, NULL);
	assert_true(
		atomic_load(&configuration(step, true)->row->level[TALLY_LEVEL_GUARD].launches) >
		0);
	/* With nothing in front of it, it runs as it is. */
	before = atomic_load(&configuration(step, true)->row->level[TALLY_LEVEL_GATE].launches);
	c.flat = true;
	choose(step, true, TALLY_LEVEL_GATE, 0);
	chain_step(&c, 60, 0, false);
	assert_int_equal(
		atomic_load(&configuration(step, true)->row->level[TALLY_LEVEL_GATE].launches),
		before + 1);
	OK(cuStreamSynchronize(stream));
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
	chosen = tally_report_choice(configuration(f, false)->row);
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

/* Compiling in the background ------------------------------------------------------------------ */

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
/* Adds one to a word of its own for each block. */
#define COUNTS(name)                                                                               \
	".visible .entry " name "(.param .u64 .ptr .global .align 4 p)\n{\n"                       \
	".reg .b64 %rd<4>;\n.reg .b32 %r<4>;\n"                                                    \
	"ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %ctaid.x;\n"        \
	"mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"                                  \
	"ld.global.u32 %r2, [%rd3];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%rd3], %r2;\nret;\n}\n"
/* The same, for a variable of the module. */
#define COUNTS_TOTAL                                                                               \
	".visible .global .align 4 .u32 total;\n.visible .entry count_total()\n{\n"                \
	".reg .b32 %r<3>;\natom.global.add.u32 %r1, [total], 1;\nret;\n}\n"

static struct tally_module *record(CUmodule module)
{
	struct tally_module *m = tally_module_find(module);

	assert_non_null(m);
	return m;
}

static void count(CUfunction f, CUdeviceptr words, unsigned launches)
{
	void *parameters[] = {&words};

	for (unsigned i = 0; i < launches; i++)
		OK(cuLaunchKernel(f, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static void counted(CUdeviceptr words, uint32_t launches)
{
	uint32_t got[BLOCKS];

	OK(cuMemcpyDtoH_v2(got, words, sizeof got));
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_int_equal(got[i], launches);
}

/* A module without variables is there at once, and changes over when its stoppable form is. */
static void compiled_while_it_runs(void **state)
{
	struct tally_module *m;
	struct tally_report_row *row;
	CUcontext same;
	CUmodule module;
	CUdeviceptr words;
	CUfunction f;
	uint64_t guarded = 0;
	uint32_t launches = 0;

	tally_process.config.level = TALLY_RUN_GUARD;
	OK(cuMemAlloc_v2(&words, 4 * BLOCKS));
	OK(cuMemsetD32_v2(words, 0, BLOCKS));
	OK(cuModuleLoadData(&module, HEAD COUNTS("in_background")));
	m = record(module);
	OK(cuModuleGetFunction(&f, module, "in_background"));
	count(f, words, 20);
	launches += 20;
	while (atomic_load(&m->form) == TALLY_MODULE_COMPILING) {
		/* Somebody else's hold on the context ends, not the context. */
		OK(cuDevicePrimaryCtxRetain(&same, device->ordinal));
		OK(cuDevicePrimaryCtxRelease_v2(device->ordinal));
		count(f, words, 1);
		launches++;
		usleep(1000);
	}
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	assert_ptr_not_equal(atomic_load(&m->variants), module);
	row = atomic_load(&tally_kernel_find(f)->last)->row;
	guarded = atomic_load(&row->level[TALLY_LEVEL_GUARD].launches);
	/* From the next launch on. */
	count(f, words, 30);
	launches += 30;
	assert_int_equal(atomic_load(&row->level[TALLY_LEVEL_GUARD].launches), guarded + 30);
	assert_true(atomic_load(&row->level[TALLY_LEVEL_GATE].launches) >= 20);
	counted(words, launches);
	OK(cuModuleUnload(module));
	/* Warm: the stoppable form is loaded instead, and there is one module. */
	OK(cuModuleLoadData(&module, HEAD COUNTS("in_background")));
	m = record(module);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	assert_ptr_equal(atomic_load(&m->variants), module);
	OK(cuModuleGetFunction(&f, module, "in_background"));
	count(f, words, 5);
	counted(words, launches + 5);
	OK(cuModuleUnload(module));
	OK(cuMemFree_v2(words));
	tally_process.config.level = TALLY_RUN_AUTO;
}

/* One with a variable exists once: its load waits for the compiler. */
static void variables_exist_once(void **state)
{
	struct tally_module *m;
	CUdeviceptr total;
	CUmodule module;
	CUfunction f;
	uint32_t got;
	size_t bytes;

	tally_process.config.level = TALLY_RUN_GUARD;
	OK(cuModuleLoadData(&module, HEAD COUNTS_TOTAL));
	m = record(module);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	assert_ptr_equal(atomic_load(&m->variants), module);
	OK(cuModuleGetFunction(&f, module, "count_total"));
	for (unsigned i = 0; i < 10; i++) {
		/* Both forms. */
		tally_process.config.level = i % 2 ? TALLY_RUN_GUARD : TALLY_RUN_GATE;
		OK(cuLaunchKernel(f, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	}
	OK(cuModuleGetGlobal_v2(&total, &bytes, module, "total"));
	assert_int_equal(bytes, 4);
	OK(cuMemcpyDtoH_v2(&got, total, 4));
	assert_int_equal(got, 10 * BLOCKS);
	assert_true(atomic_load(&m->asked));
	OK(cuModuleUnload(module));

	/* Asked never to wait, it stays as it is and says why. */
	tally_process.config.level = TALLY_RUN_GUARD;
	tally_process.config.compile = TALLY_COMPILE_BACKGROUND;
	OK(cuModuleLoadData(&module, HEAD "// another text\n" COUNTS_TOTAL));
	m = record(module);
	UNTIL(atomic_load(&m->form) != TALLY_MODULE_COMPILING);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_WHOLE);
	assert_int_equal(atomic_load(&m->barred), TALLY_WHY_VARIABLES);
	OK(cuModuleUnload(module));
	tally_process.config.compile = TALLY_COMPILE_AUTO;
	tally_process.config.level = TALLY_RUN_AUTO;
}

/* Unloading a module that is being compiled, again and again: nothing is loaded beside what is
 * gone, and nothing hangs. */
static void unloaded_meanwhile(void **state)
{
	char text[1024];
	CUmodule module;
	struct tally_module *m;

	for (unsigned i = 0; i < 6; i++) {
		snprintf(text, sizeof text, "%s// %u\n%s", HEAD, i, COUNTS("gone"));
		OK(cuModuleLoadData(&module, text));
		m = record(module);
		if (i % 2)
			usleep(i * 20000);
		OK(cuModuleUnload(module));
		assert_null(atomic_load(&m->handle));
	}
	/* The compiler's thread is through when a later one is. */
	OK(cuModuleLoadData(&module, HEAD COUNTS("last")));
	m = record(module);
	UNTIL(atomic_load(&m->form) != TALLY_MODULE_COMPILING);
	assert_int_equal(atomic_load(&m->form), TALLY_MODULE_STOPPABLE);
	OK(cuModuleUnload(module));
}

static int setup(void **state)
{
	int failed = steps_setup(state);

	OK(cuModuleGetFunction(&whole, load_steps(false), "step"));
	return failed;
}

static int endless(void)
{
	struct chain c;

	setup(NULL);
	chain_open(&c, NULL);
	c.step = whole;
	for (unsigned i = 0;; i++) {
		chain_step(&c, i, 100, false);
		if (i == 100) {
			printf("running\n");
			fflush(stdout);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depth_holds_over_all_streams),
		cmocka_unit_test(depth_holds_while_spinning),
		cmocka_unit_test(waiting_ends),
		cmocka_unit_test(short_launches_are_batched),
		cmocka_unit_test(launches_are_timed),
		cmocka_unit_test(copies_count),
		cmocka_unit_test(graphs_count),
		cmocka_unit_test(short_nodes_go_as_one_graph),
		cmocka_unit_test(order_holds_whatever_runs),
		cmocka_unit_test(mixing_is_no_fence),
		cmocka_unit_test(the_choice_is_followed),
		cmocka_unit_test(compiled_while_it_runs),
		cmocka_unit_test(variables_exist_once),
		cmocka_unit_test(unloaded_meanwhile),
	};

	(void)argv;
	if (argc > 1)
		return endless();
	return cmocka_run_group_tests(tests, setup, NULL);
}
