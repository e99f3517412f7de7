/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program gave and the device has no room for waits in host memory (ahead.h): in its
 * order, within bounds, out of reach of whoever is more urgent, and without a trace of it in what
 * the driver answers. guard.sh gives the program its daemon. With the argument "leaves" it is a
 * program that ends while calls of it wait.
 */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"

static CUmodule unstoppable;
static CUfunction whole; /* `step` of it */
static CUstream a, b;
static CUevent event, timed, timed2;

static uint64_t taken(void)
{
	return atomic_load(&device->report->counters[TALLY_COUNT_AHEAD]);
}

static unsigned waiting(void)
{
	return atomic_load(&device->ahead_waiting);
}

/* From when this returns until open_gate() nothing of the program that the gate holds is given. */
static void close_gate(void)
{
	tally_client_set_active(rival, true);
	UNTIL(tally_gate_closed(device));
}

static void open_gate(void)
{
	tally_client_set_active(rival, false);
}

/* A chain whose next launch the driver is known to take. */
static void open_chain(struct chain *c, CUstream stream, CUfunction f)
{
	chain_open(c, stream);
	c->step = f;
	OK(cuStreamSynchronize(NULL));
	chain_step(c, 1, 1, false);
	chain_step(c, 1, 1, true);
	OK(cuStreamSynchronize(stream));
}

/* Order ------------------------------------------------------------------------------------- */

/* Each step depends on the one before, which is in another stream: by an event of which a new one
 * is made and destroyed each time. What can be stopped and what cannot, copies and memsets between.
 */
static void order_holds_over_streams(void **state)
{
	uint64_t before = stops(), began = taken(), end = tally_now() + 20000000000u;
	CUstream streams[3] = {a, b};
	unsigned round, seed = 11;
	CUdeviceptr words;
	struct chain c;

	OK(cuStreamCreate(&streams[2], CU_STREAM_DEFAULT));
	OK(cuMemAlloc_v2(&words, 4096));
	open_chain(&c, a, whole);
	open_chain(&c, a, step);
	rival_begins(7);
	for (round = 0; round < 300 || (stops() - before < 20 && tally_now() < end); round++) {
		CUevent done;

		c.step = rand_r(&seed) % 2 ? whole : step;
		chain_step(&c, round, 20, round % 3 == 0);
		/* The values go elsewhere and come back, and are lost in between. */
		OK(cuMemcpyDtoDAsync_v2(words, c.values, sizeof c.expected, c.stream));
		OK(cuMemsetD32Async(c.values, round, BLOCKS, c.stream));
		OK(cuMemcpyAsync(c.values, words, sizeof c.expected, c.stream));
		OK(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
		OK(cuEventRecord(done, c.stream));
		c.stream = streams[rand_r(&seed) % 3];
		OK(cuStreamWaitEvent(c.stream, done, 0));
		OK(cuEventDestroy_v2(done));
	}
	OK(cuStreamSynchronize(c.stream));
	rival_ends();
	print_message("%u rounds, %lu taken ahead, %lu stops\n", round,
		      (unsigned long)(taken() - began), (unsigned long)(stops() - before));
	assert_true(taken() - began > 300);
	assert_true(stops() - before >= 20);
	chain_check(&c);
	OK(cuMemFree_v2(words));
	OK(cuStreamDestroy_v2(streams[2]));
}

/* The null stream and a blocking one wait for each other without being told to. */
static void null_streams_order_holds(void **state)
{
	CUstream blocking;
	struct chain c;

	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	open_chain(&c, NULL, whole);
	close_gate();
	for (unsigned i = 0; i < 60; i++) {
		c.stream = i % 2 ? blocking : NULL;
		chain_step(&c, i, 5, false);
	}
	assert_true(waiting() >= 60);
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	open_gate();
	chain_check(&c); /* whose copies wait for the null stream */
	OK(cuStreamDestroy_v2(blocking));
}

/* What has nothing to do with what waits does not wait for all of it. */
static void other_streams_have_their_turn(void **state)
{
	struct chain c;

	open_chain(&c, a, whole);
	for (unsigned i = 0; i < 600; i++)
		chain_step(&c, i, 100, false);
	assert_true(waiting() > 500);
	OK(cuMemcpyDtoDAsync_v2(other, memory, 64, b));
	OK(cuEventRecord(event, b));
	OK(cuEventSynchronize(event));
	OK(cuStreamSynchronize(b));
	assert_true(waiting() > 300);
	OK(cuStreamSynchronize(a));
	chain_check(&c);
}

/* Launches of one executable graph follow one another, in whatever streams they are. */
static void graphs_follow_themselves(void **state)
{
	CUgraphExec executable;
	CUgraph graph;
	struct chain c;

	open_chain(&c, a, whole);
	OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
	chain_step(&c, 3, 20, false);
	OK(cuStreamEndCapture(a, &graph));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphLaunch(executable, b));
	rival_begins(5);
	for (unsigned i = 0; i < 100; i++) {
		OK(cuGraphLaunch(executable, i % 3 ? a : b));
		chain_expect(&c, 3);
	}
	OK(cuStreamSynchronize(a));
	OK(cuStreamSynchronize(b));
	rival_ends();
	for (unsigned i = 0; i < 50; i++)
		chain_step(&c, i, 50, false);
	OK(cuGraphLaunch(executable, a));
	chain_expect(&c, 3);
	OK(cuGraphLaunch(executable, b));
	chain_expect(&c, 3);
	/* Behind the last one is behind all. */
	OK(cuStreamSynchronize(b));
	assert_int_equal(chain_ran(&c), c.launches * BLOCKS);
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphDestroy(graph));
	chain_check(&c);
}

/* Answers ----------------------------------------------------------------------------------- */

/* Whoever asks gets the answer of a driver that has it all. */
static void what_waits_is_not_ready(void **state)
{
	float ms = -1;
	struct chain c;

	open_chain(&c, a, whole);
	/* An answer of before is none. */
	OK(cuEventRecord(timed, a));
	OK(cuEventRecord(timed2, a));
	OK(cuEventSynchronize(timed2));
	OK(cuEventElapsedTime(&ms, timed, timed2));
	OK(cuStreamQuery(a));
	close_gate();
	OK(cuEventRecord(timed, b));
	chain_step(&c, 2, 1, false);
	OK(cuEventRecord(timed2, a));
	assert_int_equal(waiting(), 2);
	assert_int_equal(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventQuery(timed2), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventElapsedTime(&ms, timed, timed2), CUDA_ERROR_NOT_READY);
	/* What has nothing to do with it is asked of the driver. */
	OK(cuStreamSynchronize(b));
	OK(cuEventQuery(timed));
	OK(cuEventSynchronize(timed));
	OK(cuStreamQuery(b));
	assert_int_equal(waiting(), 2);
	assert_true(atomic_load(&device->active));
	open_gate();
	OK(cuEventSynchronize(timed2));
	OK(cuStreamQuery(a));
	OK(cuEventElapsedTime(&ms, timed, timed2));
	assert_true(ms >= 0);
	chain_check(&c);
}

/* The thread's own memory is its own again: pageable memory is read before the call returns, and a
 * pinned page, like a copy's length, when the copy's turn comes. */
static void copies_read_in_their_turn(void **state)
{
	uint32_t pageable[4] = {1, 2, 3, 4}, got[8];
	uint32_t *pinned;
	CUdeviceptr words;
	struct chain c;
	uint64_t before;

	OK(cuMemAlloc_v2(&words, 32));
	OK(cuMemHostAlloc((void **)&pinned, 64, 0));
	open_chain(&c, a, whole);
	before = taken();
	for (unsigned i = 0; i < 20; i++)
		chain_step(&c, i, 200, false);
	memset(pinned, 0, 64);
	OK(cuMemcpyHtoDAsync_v2(words, pinned, 16, a));
	OK(cuMemcpyDtoHAsync_v2(pinned + 4, words, 16, a));
	for (unsigned i = 0; i < 4; i++)
		__atomic_store_n(&pinned[i], 10 + i, __ATOMIC_SEQ_CST);
	assert_true(taken() - before >= 12);
	before = taken();
	OK(cuMemcpyHtoDAsync_v2(words + 16, pageable, 16, a));
	memset(pageable, 0, sizeof pageable);
	assert_int_equal(taken(), before);
	OK(cuMemcpyDtoH_v2(got, words, sizeof got));
	OK(cuStreamSynchronize(a));
	OK(cuMemcpyDtoH_v2(got, words, sizeof got));
	for (unsigned i = 0; i < 4; i++) {
		assert_true(got[i] == 10 + i ||
			    got[i] == 0); /* it was a race, of the program's own */
		assert_int_equal(pinned[4 + i], got[i]);
		assert_int_equal(got[4 + i], 1 + i);
	}
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree_v2(words));
	chain_check(&c);
}

/* Errors ------------------------------------------------------------------------------------ */

static _Atomic unsigned refused;

static CUresult refuse(CUdeviceptr to, unsigned int value, size_t n, CUstream stream)
{
	(void)to, (void)value, (void)n, (void)stream;
	atomic_fetch_add(&refused, 1);
	return CUDA_ERROR_LAUNCH_FAILED;
}

/* Its error is what the next call answers, once; what came behind it has not been given, for the
 * program would not have asked for it. */
static void an_error_is_told_once(void **state)
{
	_Atomic(void *) *next = &tally_next_table[TALLY_HOOK_cuMemsetD32Async];
	struct chain c;
	void *usual;

	OK(cuMemsetD32Async(memory, 0, 4, a));
	open_chain(&c, a, whole);
	usual = atomic_load(next);
	close_gate();
	OK(cuMemsetD32Async(memory, 7, 4, a));
	chain_step(&c, 2, 1, false);
	OK(cuEventRecord(event, a));
	c.launches--; /* it is not to run, and nobody is to wait for it */
	atomic_store(next, (void *)refuse);
	open_gate();
	UNTIL(atomic_load(&refused));
	UNTIL(!tally_ahead_waits(device));
	atomic_store(next, usual);
	assert_int_equal(cuStreamSynchronize(a), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuStreamSynchronize(a));
	OK(cuEventSynchronize(event));
	assert_int_equal(chain_ran(&c), c.launches * BLOCKS);
	assert_int_equal(atomic_load(&refused), 1);
	assert_int_equal(waiting(), 0);
	chain_step(&c, 2, 1, false);
	OK(cuStreamSynchronize(a));
	OK(cuMemFree_v2(c.values));
	OK(cuMemFree_v2(c.ran));
}

/* What could fail for a reason of its own fails in the program's own call. */
static void what_could_fail_is_not_taken(void **state)
{
	void *parameters[] = {&memory, &memory, &(uint32_t){1}, &(uint32_t){1}};
	struct chain c;
	uint64_t before;

	open_chain(&c, a, whole);
	for (unsigned i = 0; i < 20; i++)
		chain_step(&c, i, 100, false);
	before = taken();
	assert_int_not_equal(cuLaunchKernel(whole, 1, 1, 1, 4096, 1, 1, 0, a, parameters, NULL), 0);
	assert_int_not_equal(cuMemsetD32Async(memory + 2, 0, 4, a), 0);
	assert_int_not_equal(cuMemsetD8Async(memory, 0, (size_t)1 << 40, a), 0);
	assert_int_not_equal(cuMemcpyDtoDAsync_v2(other, memory, (size_t)1 << 40, a), 0);
	assert_int_equal(taken(), before);
	OK(cuStreamSynchronize(a));
	chain_check(&c);
}

/* Memory that comes and goes with each launch, in stream order: the program waits for none of it,
 * and no launch finds memory that is another's by then. */
static void memory_comes_and_goes(void **state)
{
	enum { TURNS = 60, BIG = 64 << 20 };
	CUdeviceptr temporary;
	struct chain c;

	open_chain(&c, a, whole);
	close_gate();
	for (unsigned i = 0; i < TURNS; i++) {
		OK(cuMemAllocAsync(&temporary, sizeof c.expected, a));
		chain_step(&c, i, 1, false);
		OK(cuMemcpyDtoDAsync_v2(temporary, c.values, sizeof c.expected, a));
		OK(cuMemsetD32Async(c.values, i, BLOCKS, a));
		OK(cuMemcpyDtoDAsync_v2(c.values, temporary, sizeof c.expected, a));
		OK(cuMemFreeAsync(temporary, a));
	}
	assert_true(waiting() >= 5 * TURNS);
	assert_int_not_equal(cuMemFreeAsync(memory + 64, b), 0);
	open_gate();
	OK(cuStreamSynchronize(a));
	chain_check(&c);
	/* Five are not yet the driver's again: whoever wants more waits for them. */
	open_chain(&c, a, whole);
	close_gate();
	chain_step(&c, 1, 1, false);
	for (unsigned i = 0; i < 5; i++) {
		OK(cuMemAllocAsync(&temporary, BIG, a));
		OK(cuMemFreeAsync(temporary, a));
	}
	assert_true(waiting() >= 6);
	open_gate();
	OK(cuMemAllocAsync(&temporary, BIG, a));
	assert_int_equal(waiting(), 0);
	OK(cuMemFreeAsync(temporary, a));
	OK(cuStreamSynchronize(a));
	chain_check(&c);
}

/* Libraries say before each launch how much shared memory a kernel may have: what is so already
 * waits for nothing, what changes waits for all that was launched before. */
static void settings_wait_only_for_a_change(void **state)
{
	const CUfunction_attribute bytes = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	struct chain c;
	int was;

	open_chain(&c, a, whole);
	OK(cuFuncGetAttribute(&was, bytes, whole));
	close_gate();
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, i, 5, false);
		OK(cuFuncSetAttribute(whole, bytes, was));
		OK(cuFuncSetAttribute(whole, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
				      (int)i));
		OK(cuFuncSetCacheConfig(whole, CU_FUNC_CACHE_PREFER_SHARED));
	}
	assert_true(waiting() >= 20);
	open_gate();
	for (unsigned i = 0; i < 200; i++)
		chain_step(&c, i, 50, false);
	assert_true(waiting() > 10);
	OK(cuFuncSetAttribute(whole, bytes, was + 1024));
	assert_int_equal(waiting(), 0);
	OK(cuFuncSetAttribute(whole, bytes, was));
	OK(cuStreamSynchronize(a));
	chain_check(&c);
}

static void *wait_on_shared(void *shared)
{
	OK(cuCtxSetCurrent(context));
	OK(cuStreamWaitEvent(a, shared, 0));
	OK(cuEventRecord(shared, a));
	return NULL;
}

/* Another process may record an event that it shares between the program's call and a later one,
 * and does not see what waits here. */
static void shared_events_are_not_taken(void **state)
{
	pthread_t thread;
	CUevent shared;
	struct chain c;
	uint64_t before;

	OK(cuEventCreate(&shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	OK(cuEventRecord(shared, b));
	open_chain(&c, a, whole);
	close_gate();
	for (unsigned i = 0; i < 20; i++)
		chain_step(&c, i, 5, false);
	before = taken();
	assert_int_equal(pthread_create(&thread, NULL, wait_on_shared, shared), 0);
	usleep(20000);
	open_gate();
	pthread_join(thread, NULL);
	assert_int_equal(taken(), before);
	OK(cuStreamSynchronize(a));
	chain_check(&c);
	OK(cuEventDestroy_v2(shared));
}

/* Who is more urgent ------------------------------------------------------------------------ */

static uint64_t given(CUfunction f)
{
	struct tally_configuration *c = atomic_load(&tally_kernel_find(f)->last);

	return atomic_load(&c->row->level[TALLY_LEVEL_GATE].launches);
}

/* With a long queue the device is as free as without one: what waits stays where it is. */
static void nothing_is_given_behind_the_gate(void **state)
{
	struct chain c;
	uint64_t seen;

	open_chain(&c, a, whole);
	for (unsigned i = 0; i < 400; i++)
		chain_step(&c, i, 50, false);
	assert_true(waiting() > 300);
	assert_in_range(atomic_load(&device->queued_ns), 1, UINT64_MAX);
	close_gate();
	/* One that had passed the gate may be on its way. */
	seen = given(whole);
	usleep(50000);
	assert_in_range(given(whole) - seen, 0, 1);
	assert_true(waiting() > 300);
	/* And the program may go on with more. */
	chain_step(&c, 5, 1, false);
	open_gate();
	OK(cuStreamSynchronize(a));
	assert_int_equal(waiting(), 0);
	chain_check(&c);
}

/* Hiccups ----------------------------------------------------------------------------------- */

enum { ROUNDS = 8, EACH = 40, WORK_US = 50, HICCUP_US = 1000 };

/* Launches, and is somewhere else for a while now and then. How long until all has run, ns. */
static uint64_t hiccups(unsigned depth, unsigned ahead)
{
	unsigned usual_depth = tally_process.config.depth, usual = tally_process.config.ahead;
	uint32_t number = 1, work = WORK_US;
	void *parameters[] = {&memory, &other, &number, &work};
	uint64_t began;

	tally_process.config.depth = depth;
	tally_process.config.ahead = ahead;
	began = tally_now();
	for (unsigned i = 0; i < ROUNDS * EACH; i++) {
		if (i % EACH == EACH / 2)
			usleep(HICCUP_US);
		OK(cuLaunchKernel(whole, 1, 1, 1, 1, 1, 1, 0, a, parameters, NULL));
	}
	OK(cuStreamSynchronize(a));
	began = tally_now() - began;
	tally_process.config.depth = usual_depth;
	tally_process.config.ahead = usual;
	return began;
}

static void keep_least(uint64_t *least, uint64_t value)
{
	if (value < *least)
		*least = value;
}

/*
 * The device has work for twice as long as the thread is away, so without a limit nothing is lost.
 * With one, and no queue, every millisecond away but the 100 us of the limit is. The quickest of
 * some turns, for others use the machine.
 */
static void hiccups_leave_no_hole(void **state)
{
	uint64_t free_ns = UINT64_MAX, waits_ns = UINT64_MAX, ahead_ns = UINT64_MAX;
	unsigned ahead = tally_process.config.ahead, turn;

	for (turn = 0; turn < 40; turn++) {
		keep_least(&free_ns, hiccups(1000000, 0));
		keep_least(&waits_ns, hiccups(2, 0));
		keep_least(&ahead_ns, hiccups(2, ahead));
		if (turn > 2 && waits_ns * 10 > free_ns * 12 &&
		    (ahead_ns - free_ns) * 3 < (waits_ns - free_ns) * 2)
			break;
	}
	print_message("without a limit %lu us; with one %.2fx, with the queue %.2fx (%u turns)\n",
		      (unsigned long)free_ns / 1000, (double)waits_ns / (double)free_ns,
		      (double)ahead_ns / (double)free_ns, turn);
	assert_true(turn < 40);
}

/* Bounds ------------------------------------------------------------------------------------ */

static _Atomic unsigned returned;
static _Atomic bool enough;

static void *launch_on(void *chain)
{
	OK(cuCtxSetCurrent(context));
	for (unsigned i = 0; !atomic_load(&enough); i++) {
		chain_step(chain, i, 1, i % 2);
		atomic_fetch_add(&returned, 1);
	}
	return NULL;
}

/* A thread that launches for ever waits when the queue is full, and goes on when it is not. */
static void the_queue_is_bounded(void **state)
{
	unsigned usual = tally_process.config.ahead;
	pthread_t thread;
	struct chain c;

	open_chain(&c, a, whole);
	tally_process.config.ahead = 16;
	close_gate();
	pthread_create(&thread, NULL, launch_on, &c);
	UNTIL(waiting() == 16);
	usleep(20000);
	assert_int_equal(waiting(), 16);
	assert_int_equal(atomic_load(&returned), 16);
	open_gate();
	UNTIL(atomic_load(&returned) > 2000);
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	OK(cuStreamSynchronize(a));
	chain_check(&c);
	tally_process.config.ahead = usual;
}

/* What is destroyed, captured, left --------------------------------------------------------- */

static void destroyed_behind_what_waits(void **state)
{
	CUstream stream;
	CUmodule module;
	CUfunction f;
	struct chain c;

	module = load_steps(false);
	OK(cuModuleGetFunction(&f, module, "step"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	open_chain(&c, stream, f);
	for (unsigned i = 0; i < 50; i++)
		chain_step(&c, i, 50, i % 2);
	assert_true(waiting() > 10);
	OK(cuModuleUnload(module));
	assert_int_equal(waiting(), 0);
	c.step = whole;
	for (unsigned i = 0; i < 50; i++)
		chain_step(&c, i, 50, i % 2);
	assert_true(waiting() > 10);
	OK(cuStreamDestroy_v2(stream));
	assert_int_equal(waiting(), 0);
	OK(cuCtxSynchronize());
	chain_check(&c);
}

/* A capture begins behind all that waits, and has nothing of it; meanwhile nothing is taken. */
static void captures_have_nothing_of_it(void **state)
{
	CUgraphExec executable;
	CUgraph graph;
	struct chain c;
	uint64_t before;
	size_t nodes = 0;

	open_chain(&c, a, whole);
	for (unsigned i = 0; i < 40; i++)
		chain_step(&c, i, 50, false);
	OK(cuStreamBeginCapture_v2(b, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_equal(waiting(), 0);
	before = taken();
	c.stream = b;
	chain_step(&c, 77, 20, false);
	c.stream = a;
	for (unsigned i = 0; i < 20; i++)
		chain_step(&c, i, 20, false);
	assert_int_equal(taken(), before);
	OK(cuStreamEndCapture(b, &graph));
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	assert_int_equal(nodes, 1);
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuStreamSynchronize(a));
	/* What the capture recorded runs when it is launched; and graphs wait their turn too. */
	memset(c.expected, 0, sizeof c.expected);
	OK(cuMemsetD32_v2(c.values, 0, BLOCKS));
	c.launches--;
	before = taken();
	for (unsigned i = 0; i < 30; i++) {
		OK(cuGraphLaunch(executable, a));
		chain_expect(&c, 77);
	}
	assert_true(taken() - before > 10);
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphDestroy(graph));
	OK(cuStreamSynchronize(a));
	chain_check(&c);
}

/* A child has nothing of it and no thread that gives; the parent's goes on. */
static void a_child_has_an_empty_queue(void **state)
{
	struct chain c;
	int status;
	pid_t child;

	open_chain(&c, a, whole);
	close_gate();
	for (unsigned i = 0; i < 40; i++)
		chain_step(&c, i, 5, false);
	child = fork();
	if (!child) {
		alarm(30);
		if (atomic_load(&tally_process.devices))
			_exit(2);
#if !defined(__SANITIZE_THREAD__) /* which has no child of threads start one */
		/* The driver of a child answers with errors; it answers. */
		cuCtxSynchronize();
		cuStreamQuery(NULL);
		cuEventQuery(event);
#endif
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(waiting() >= 40);
	open_gate();
	OK(cuStreamSynchronize(a));
	chain_check(&c);
}

static void a_process_ends_with_calls_waiting(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		alarm(60);
		execl("/proc/self/exe", "ahead_test", "leaves", (char *)NULL);
		_exit(3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	steps_setup(state);
	unstoppable = load_steps(false);
	OK(cuModuleGetFunction(&whole, unstoppable, "step"));
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&timed, CU_EVENT_DEFAULT));
	OK(cuEventCreate(&timed2, CU_EVENT_DEFAULT));
	return 0;
}

/* What was taken when the program ends, and a rival holds it, is given all the same. */
static struct chain left;

static void look(void)
{
	/* Registered before Tally's own, so it runs after that. */
	uint64_t end = tally_now() + 30000000000u;

	while (chain_ran(&left) != left.launches * BLOCKS)
		if (steps_waited(end))
			_exit(4);
}

static int leave(void)
{
	atexit(look);
	setup(NULL);
	open_chain(&left, a, whole);
	close_gate();
	for (unsigned i = 0; i < 100; i++)
		chain_step(&left, i, 20, false);
	return waiting() >= 100 ? 0 : 5;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_holds_over_streams),
		cmocka_unit_test(null_streams_order_holds),
		cmocka_unit_test(other_streams_have_their_turn),
		cmocka_unit_test(graphs_follow_themselves),
		cmocka_unit_test(what_waits_is_not_ready),
		cmocka_unit_test(copies_read_in_their_turn),
		cmocka_unit_test(an_error_is_told_once),
		cmocka_unit_test(what_could_fail_is_not_taken),
		cmocka_unit_test(memory_comes_and_goes),
		cmocka_unit_test(settings_wait_only_for_a_change),
		cmocka_unit_test(shared_events_are_not_taken),
		cmocka_unit_test(nothing_is_given_behind_the_gate),
		cmocka_unit_test(hiccups_leave_no_hole),
		cmocka_unit_test(the_queue_is_bounded),
		cmocka_unit_test(destroyed_behind_what_waits),
		cmocka_unit_test(captures_have_nothing_of_it),
		cmocka_unit_test(a_child_has_an_empty_queue),
		cmocka_unit_test(a_process_ends_with_calls_waiting),
	};

	if (argc > 1 && !strcmp(argv[1], "leaves"))
		return leave();
	return cmocka_run_group_tests(tests, setup, NULL);
}
