/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that launches run every block once, get their parameters however given, keep the stop
 * protocol, refuse what is wrong, and that a fault stays with its context. */
#include "driver_tests.h"

#include <pthread.h>
#include <signal.h>

#include "backends/cpu/driver/tally_cpu.h"
#include "ir_passes/launch_abi.h"

static void every_block_runs_once(void **state)
{
	static const unsigned grids[][3] = {{1, 1, 1}, {7, 5, 3}, {100000, 1, 1}, {1, 300, 2}};

	for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
		const unsigned *d = grids[g];
		size_t blocks = (size_t)d[0] * d[1] * d[2];
		uint32_t *count = zeroed(blocks * 4);
		void *params[] = {&count};
		OK(cuLaunchKernel(kernel("count"), d[0], d[1], d[2], 32, 1, 1, 0, NULL, params,
				  NULL));
		OK(cuCtxSynchronize());
		for (size_t i = 0; i < blocks; i++)
			assert_int_equal(count[i], 1);
		OK(cuMemFree((CUdeviceptr)count));
	}
}

static void parameters_by_pointers_and_packed(void **state)
{
	enum { N = 1000 };
	float *x = zeroed(N * 4), *y = zeroed(N * 4), a = 2;
	uint8_t times = 3;
	uint32_t n = N;
	void *params[] = {&times, &a, &x, &y, &n};
	struct {
		uint8_t times;
		float a;
		float *x, *y;
		uint32_t n;
	} packed = {1, -5, x, y, N};
	size_t size = sizeof packed, too_small = 8;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};

	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	OK(cuLaunchKernel(kernel("saxpy"), 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	OK(cuLaunchKernel(kernel("saxpy"), 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
	OK(cuCtxSynchronize());
	for (int i = 0; i < N; i++)
		assert_true(y[i] == (float)i);
	extra[3] = &too_small;
	assert_int_equal(cuLaunchKernel(kernel("saxpy"), 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		cuLaunchKernel(kernel("saxpy"), 8, 1, 1, 128, 1, 1, 0, NULL, params, extra),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree((CUdeviceptr)x));
	OK(cuMemFree((CUdeviceptr)y));
}

/* More than an operation's own storage; copied at launch, so the caller may overwrite it. */
static void four_kilobytes_of_parameters(void **state)
{
	uint64_t *out = zeroed(8), expected = 0;
	unsigned char big[4088];
	void *params[] = {&out, big};

	for (int i = 0; i < 4088; i++) {
		big[i] = (unsigned char)(i * 7);
		expected = expected * 31 + big[i];
	}
	OK(launch(kernel("large"), 1, NULL, params));
	memset(big, 0, sizeof big);
	OK(cuCtxSynchronize());
	assert_true(*out == expected);
	OK(cuMemFree((CUdeviceptr)out));
}

static void wrong_shapes_are_refused(void **state)
{
	CUfunction empty = kernel("empty"), narrow = kernel("narrow");

	assert_int_equal(cuLaunchKernel(empty, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(empty, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(empty, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(empty, 1, 1, 1, 64, 64, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 60000, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(narrow, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuLaunchKernel(narrow, 1, 1, 1, 8, 4, 2, 0, NULL, NULL, NULL));
	assert_int_equal(launch(kernel("count"), 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(NULL, 1, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSynchronize());
}

static void dynamic_shared_memory(void **state)
{
	CUfunction shared = kernel("shared");
	uint32_t *bytes = zeroed(4);
	void *params[] = {&bytes};

	OK(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 512, NULL, params, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(*bytes, 1536);
	assert_int_equal(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 100000, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	OK(cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 100000, NULL, params, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(*bytes, 101024);
	OK(cuMemFree((CUdeviceptr)bytes));
}

static void attributes_of_a_launch(void **state)
{
	CUlaunchAttribute list[3] = {
		{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -3},
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}},
		{.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT},
	};
	CUlaunchConfig config = {.gridDimX = 4,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .attrs = list,
				 .numAttrs = 3};
	uint32_t *count = zeroed(16);
	void *params[] = {&count};
	CUevent event;

	OK(cuEventCreate(&event, 0));
	list[2].value.launchCompletionEvent.event = event;
	OK(cuLaunchKernelEx(&config, kernel("count"), params, NULL));
	OK(cuEventSynchronize(event));
	for (int i = 0; i < 4; i++)
		assert_int_equal(count[i], 1);
	list[0].value.priority = -100;
	assert_int_equal(cuLaunchKernelEx(&config, kernel("count"), params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	list[0].value.priority = 0;
	list[1].value.clusterDim.x = 2;
	assert_int_equal(cuLaunchKernelEx(&config, kernel("count"), params, NULL),
			 CUDA_ERROR_NOT_SUPPORTED);
	list[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	list[1].value.cooperative = 1;
	config.gridDimX = 1000; /* more than can run at once */
	assert_int_equal(cuLaunchKernelEx(&config, kernel("count"), params, NULL),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	OK(cuLaunchCooperativeKernel(kernel("count"), 1, 1, 1, 1, 1, 1, 0, NULL, params));
	OK(cuCtxSynchronize());
	assert_int_equal(count[0], 2);
	OK(cuEventDestroy(event));
	OK(cuMemFree((CUdeviceptr)count));
}

/* One launch, stopped at some moment and resumed until it is done: every block exactly once.
 * Returns how often it was stopped. */
static unsigned stop_and_resume(void)
{
	enum { BLOCKS = 2000 };
	CUfunction guard = kernel("work$guard");
	struct {
		struct tally_control control;
		uint32_t gate, broken;
		uint64_t mailbox;
	} *m = zeroed(sizeof *m);
	uint32_t *count = zeroed(BLOCKS * 4);
	uint64_t ns = 20000;
	unsigned stops = 0;
	struct tally_launch range = {
		.control = (uint64_t)&m->control, .hi = BLOCKS, .grid = {BLOCKS, 1, 1}};
	void *params[] = {&count, &ns, &range};

	m->control = (struct tally_control){.gate = (uint64_t)&m->gate,
					    .broken = (uint64_t)&m->broken,
					    .mailbox = (uint64_t)&m->mailbox,
					    .hi = BLOCKS};
	for (uint32_t sequence = 1;; sequence++) {
		m->gate = m->broken = 0;
		m->mailbox = 0;
		m->control.word = range.lo;
		m->control.sequence = sequence;
		OK(launch(guard, BLOCKS, NULL, params));
		while (range.lo + 64 < BLOCKS &&
		       !__atomic_load_n(&count[range.lo + sequence % 64], __ATOMIC_ACQUIRE))
			sleep_ms(0);
		__atomic_store_n(&m->gate, 1, __ATOMIC_RELEASE);
		OK(cuCtxSynchronize());
		if (!m->mailbox)
			break;
		stops++;
		assert_int_equal(TALLY_MAILBOX_SEQUENCE(m->mailbox), sequence);
		uint32_t max = TALLY_MAILBOX_MAX(m->mailbox);
		for (uint32_t i = 0; i < BLOCKS; i++)
			assert_int_equal(count[i], i < max);
		range.lo = max;
	}
	for (uint32_t i = 0; i < BLOCKS; i++)
		assert_int_equal(count[i], 1);
	OK(cuMemFree((CUdeviceptr)m));
	OK(cuMemFree((CUdeviceptr)count));
	return stops;
}

static void stopped_launches_resume(void **state)
{
	/* The thread that stops it may be kept from the CPU until it is over. */
	for (uint64_t start = tally_now(); stop_and_resume() < 2;)
		be_patient(start);
}

/* What this process has used, nanoseconds: whatever else the machine does is not in it. */
static uint64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A stopped launch of very many blocks is over at once. */
static void stopped_launch_drains_at_once(void **state)
{
	enum { BLOCKS = 500000000 };
	uint32_t *count = zeroed(4);
	uint64_t ns = 0;
	struct {
		struct tally_control control;
		uint32_t gate, broken;
		uint64_t mailbox;
	} *m = zeroed(sizeof *m);
	struct tally_launch range = {
		.control = (uint64_t)&m->control, .hi = BLOCKS, .grid = {BLOCKS, 1, 1}};
	void *params[] = {&count, &ns, &range};

	m->control = (struct tally_control){.gate = (uint64_t)&m->gate,
					    .broken = (uint64_t)&m->broken,
					    .mailbox = (uint64_t)&m->mailbox,
					    .sequence = 1,
					    .hi = BLOCKS};
	m->gate = 1;
	uint64_t start = cpu_time();
	OK(launch(kernel("work$guard"), BLOCKS, NULL, params));
	OK(cuCtxSynchronize());
	assert_true(cpu_time() - start < 1000000000);
	assert_true(m->mailbox == TALLY_MAILBOX(1, 0));
	assert_int_equal(*count, 0);
	OK(cuMemFree((CUdeviceptr)m));
	OK(cuMemFree((CUdeviceptr)count));
}

/* cmocka puts its own handler for SIGSEGV over the driver's before each test. */
static struct sigaction fault_handler;

static void faults_stay_with_the_context(void **state)
{
	sigaction(SIGSEGV, &fault_handler, NULL);
	static const struct {
		const char *kernel;
		CUresult error;
	} cases[] = {{"illegal", CUDA_ERROR_ILLEGAL_ADDRESS},
		     {"trap", CUDA_ERROR_LAUNCH_FAILED},
		     {"assert", CUDA_ERROR_ASSERT}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CUcontext other;
		CUmodule own;
		CUfunction f;
		CUdeviceptr memory;
		OK(cuCtxCreate(&other, NULL, 0, 0));
		OK(cuModuleLoad(&own, TALLY_BUILD_DIR "/tests/driver_kernels.so"));
		OK(cuModuleGetFunction(&f, own, cases[i].kernel));
		OK(cuMemAlloc(&memory, 64));
		OK(launch(f, 100, NULL, NULL));
		assert_int_equal(cuCtxSynchronize(), cases[i].error);
		assert_int_equal(cuCtxSynchronize(), cases[i].error);
		assert_int_equal(launch(f, 1, NULL, NULL), cases[i].error);
		assert_int_equal(cuMemAlloc(&memory, 64), cases[i].error);
		assert_int_equal(cuStreamQuery(NULL), cases[i].error);
		OK(cuCtxDestroy(other));
		/* The other context never noticed. */
		OK(launch(kernel("empty"), 1, NULL, NULL));
		OK(cuCtxSynchronize());
	}
}

/* A thread that waits runs blocks itself, but not where a fault's signal would kill the process. */
static void *fail_with_signals_blocked(void *argument)
{
	CUcontext other;
	CUmodule own;
	CUfunction f;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	OK(cuCtxCreate(&other, NULL, 0, 0));
	OK(cuModuleLoad(&own, TALLY_BUILD_DIR "/tests/driver_kernels.so"));
	OK(cuModuleGetFunction(&f, own, "illegal"));
	OK(launch(f, 1, NULL, NULL));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxDestroy(other));
	return argument;
}

static void fault_in_a_thread_that_blocks_signals(void **state)
{
#ifdef __SANITIZE_THREAD__
	/* The handler of a real fault leaves by siglongjmp, which ThreadSanitizer's own delivery of
	 * signals to threads that block them does not survive. */
	skip();
#endif
	pthread_t thread;

	sigaction(SIGSEGV, &fault_handler, NULL);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, fail_with_signals_blocked, NULL);
		pthread_join(thread, NULL);
	}
}

static void driver_says_its_target(void **state)
{
	assert_string_equal(tallyCpuTarget(), "x86-64");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_block_runs_once),
		cmocka_unit_test(parameters_by_pointers_and_packed),
		cmocka_unit_test(four_kilobytes_of_parameters),
		cmocka_unit_test(wrong_shapes_are_refused),
		cmocka_unit_test(dynamic_shared_memory),
		cmocka_unit_test(attributes_of_a_launch),
		cmocka_unit_test(stopped_launches_resume),
		cmocka_unit_test(stopped_launch_drains_at_once),
		cmocka_unit_test(faults_stay_with_the_context),
		cmocka_unit_test(fault_in_a_thread_that_blocks_signals),
		cmocka_unit_test(driver_says_its_target),
	};

	/* The first block that runs installs the driver's handler for faults. */
	if (start_driver(NULL) || launch(kernel("empty"), 1, NULL, NULL) || cuCtxSynchronize() ||
	    sigaction(SIGSEGV, NULL, &fault_handler))
		return 1;
	return cmocka_run_group_tests(tests, NULL, stop_driver);
}
