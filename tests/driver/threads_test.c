/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads do everything at once (the test to run under ThreadSanitizer), and processes fork in
 * the middle of it. */
#include "driver_tests.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 60 };

/* ThreadSanitizer gives up in a forked child that starts threads, unless told that we mean it. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static CUevent shared_event;

/* A round of everything; each thread checks its own results. */
static void round_of(unsigned number, CUstream stream, unsigned round)
{
	enum { N = 4096 };
	CUdeviceptr memory;
	CUevent event;
	uint32_t *host;
	void *params[1];

	OK(cuMemAllocAsync(&memory, N * 4, stream));
	OK(cuMemAllocHost((void **)&host, N * 4));
	OK(cuEventCreate(&event, 0));
	OK(cuMemsetD32Async(memory, number, N, stream));
	params[0] = &memory;
	OK(launch(kernel("count"), N, stream, params));
	OK(cuEventRecord(event, stream));
	OK(cuEventRecord(shared_event, stream));
	OK(cuStreamWaitEvent(stream, shared_event, 0));
	OK(cuMemcpyDtoHAsync(host, memory, N * 4, stream));
	OK(cuMemFreeAsync(memory, stream));
	if (round % 3)
		OK(cuStreamSynchronize(stream));
	else
		OK(cuCtxSynchronize());
	OK(cuEventQuery(event));
	for (int i = 0; i < N; i++)
		assert_int_equal(host[i], number + 1);
	OK(cuEventDestroy(event));
	OK(cuMemFreeHost(host));
}

static void CUDA_CB count_up(void *data)
{
	atomic_fetch_add((_Atomic unsigned *)data, 1);
}

static void *thread_main(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;
	_Atomic unsigned called = 0;
	CUstream stream;

	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreateWithPriority(&stream, number % 2, -(int)number));
	for (unsigned round = 0; round < ROUNDS; round++) {
		round_of(number, stream, round);
		OK(cuLaunchHostFunc(stream, count_up, &called));
		if (round % 10 == 9) {
			OK(cuStreamDestroy(stream));
			OK(cuStreamCreate(&stream, 0));
		}
	}
	OK(cuCtxSynchronize());
	while (atomic_load(&called) < ROUNDS) /* those of destroyed streams */
		sleep_ms(1);
	OK(cuStreamDestroy(stream));
	return NULL;
}

static void threads_do_everything_at_once(void **state)
{
	pthread_t thread[THREADS];

	OK(cuEventCreate(&shared_event, CU_EVENT_DISABLE_TIMING));
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, thread_main, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	OK(cuEventDestroy(shared_event));
}

/* One stream, several threads: all arrives. */
static CUstream common;
static uint32_t *common_count;

static void *submit_main(void *argument)
{
	void *params[] = {&common_count};

	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 2000; i++) {
		OK(launch(kernel("count"), 2, common, params));
		if (i % 100 == 0)
			OK(cuStreamSynchronize(common));
	}
	return NULL;
}

static void threads_share_a_stream(void **state)
{
	pthread_t thread[THREADS];

	OK(cuStreamCreate(&common, CU_STREAM_NON_BLOCKING));
	common_count = zeroed(8);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, submit_main, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	OK(cuStreamSynchronize(common));
	assert_int_equal(common_count[0], THREADS * 2000);
	assert_int_equal(common_count[1], THREADS * 2000);
	OK(cuStreamDestroy(common));
	OK(cuMemFree((CUdeviceptr)common_count));
}

/* Memory that is given to other processes changes its place behind its address, whatever other
 * threads have written to it meanwhile; and a kernel may be under way that waits for one of theirs.
 */
enum { MOVED = 8, MOVED_WORDS = 1 << 20 };
static uint32_t *moved[MOVED];

static uint32_t write_once(CUstream stream, CUstream other, uint32_t *words)
{
	uint32_t *flag = words, *started = words + 1;
	void *wait_params[] = {&flag, &started};

	OK(cuMemsetD32((CUdeviceptr)words, 0, 2));
	OK(launch(kernel("wait"), 1, stream, wait_params));
	for (int i = 0; i < MOVED; i++)
		OK(launch(kernel("count"), MOVED_WORDS, other, (void *[]){&moved[i]}));
	OK(cuMemsetD32Async((CUdeviceptr)flag, 1, 1, other));
	OK(cuStreamSynchronize(stream));
	return 1;
}

static void *write_main(void *over)
{
	CUstream stream, other;
	uint32_t *words, times = 0;

	OK(cuCtxSetCurrent(context));
	words = zeroed(8);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	while (!atomic_load((atomic_bool *)over))
		times += write_once(stream, other, words);
	OK(cuCtxSynchronize());
	return (void *)(uintptr_t)times;
}

static void memory_moves_under_kernels(void **state)
{
	atomic_bool over = false;
	CUipcMemHandle handle;
	pthread_t thread;
	void *times;

	for (int i = 0; i < MOVED; i++)
		moved[i] = zeroed(MOVED_WORDS * 4);
	assert_int_equal(pthread_create(&thread, NULL, write_main, &over), 0);
	for (int i = 0; i < MOVED; i++) {
		sleep_ms(1);
		OK(cuIpcGetMemHandle(&handle, (CUdeviceptr)moved[i]));
	}
	atomic_store(&over, true);
	pthread_join(thread, &times);
	for (int i = 0; i < MOVED; i++) {
		for (int word = 0; word < MOVED_WORDS; word++)
			if (moved[i][word] != (uintptr_t)times)
				fail_msg("%d: word %d is %u of %u", i, word, moved[i][word],
					 (unsigned)(uintptr_t)times);
		OK(cuMemFree((CUdeviceptr)moved[i]));
	}
}

/* More than a stream holds: the submitter waits, nothing is lost. */
static void deep_queue(void **state)
{
	uint32_t *count = zeroed(4), *none = NULL;
	void *params[] = {&count};
	uint32_t id = 0;
	uint64_t ns = 20000000;
	void *first[] = {&ns, &none, &none, &id};
	CUstream stream;

	OK(cuStreamCreate(&stream, 0));
	OK(launch(kernel("busy"), 1, stream, first));
	for (int i = 0; i < 50000; i++)
		OK(launch(kernel("count"), 1, stream, params));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(*count, 50000);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)count));
}

/* The child finds memory as it was and streams that are empty, and works on. */
static void child_process(uint32_t *count, CUstream stream)
{
	void *params[] = {&count};
	uint32_t before = count[0];
	CUevent event;

	alarm(100); /* before the test itself runs out of time */
	if (cuStreamSynchronize(stream) ||
	    cuLaunchKernel(kernel("count"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL))
		_exit(1);
	if (cuEventCreate(&event, 0) || cuEventRecord(event, stream) || cuEventSynchronize(event))
		_exit(2);
	if (count[0] != before + 1)
		_exit(3);
	if (cuLaunchKernel(kernel("count"), 64, 1, 1, 1, 1, 1, 0, NULL, params, NULL) ||
	    cuCtxSynchronize() || count[0] != before + 2 || count[63] < 1)
		_exit(4);
	CUdeviceptr memory;
	uint32_t word = 5;
	if (cuMemAlloc(&memory, 64) || cuMemsetD32Async(memory, 7, 16, stream) ||
	    cuStreamSynchronize(stream) || cuMemcpyDtoH(&word, memory, 4) || word != 7 ||
	    cuMemFree(memory))
		_exit(5);
	_exit(0);
}

static void forked_children_work(void **state)
{
	uint32_t *count = zeroed(64 * 4), *none = NULL, id = 0;
	uint64_t ns = 100000;
	void *params[] = {&ns, &none, &none, &id};
	CUstream stream;
	int status;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 10; i++) {
		OK(launch(kernel("busy"), 100, stream, params)); /* in the middle of this */
		pid_t child = fork();
		if (!child)
			child_process(count, stream);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		OK(cuStreamSynchronize(stream));
	}
	assert_int_equal(count[0], 0); /* the children's memory was their own */
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)count));
}

static _Atomic bool enough;

static void *record(void *event)
{
	OK(cuCtxSetCurrent(context));
	while (!atomic_load(&enough))
		OK(cuEventRecord(event, NULL));
	OK(cuEventSynchronize(event));
	return NULL;
}

/* Whatever lock of events that processes share a thread has when the process forks, children can
 * record too, and open and close what others export. */
static void forked_children_record(void **state)
{
	enum { CHILDREN = 60 };
	CUipcMemHandle handle = {{0}};
	pthread_t thread;
	CUdeviceptr memory;
	CUevent event;
	int status;

	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	assert_int_equal(pthread_create(&thread, NULL, record, event), 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child) {
			alarm(100);
			CUresult error = cuEventRecord(event, NULL);
			if (!error)
				error = cuEventSynchronize(event);
			if (cuIpcOpenMemHandle(&memory, handle, 1) != CUDA_ERROR_INVALID_VALUE)
				error = CUDA_ERROR_UNKNOWN;
			_exit(error != CUDA_SUCCESS);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	OK(cuEventDestroy(event));
}

static void *synchronise(void *stream)
{
	OK(cuCtxSetCurrent(context));
	OK(cuStreamSynchronize(stream));
	return NULL;
}

/* One block's end completes a whole fan of streams, each with a thread asleep on it: all wake. */
static void sleepers_on_several_streams_wake_together(void **state)
{
	enum { FAN = 4 };
	CUstream first, fan[FAN];
	uint32_t *words = zeroed(16);
	pthread_t threads[FAN];
	CUevent event;

	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	hold(first, words);
	OK(cuEventRecord(event, first));
	for (int i = 0; i < FAN; i++) {
		OK(cuStreamCreate(&fan[i], CU_STREAM_NON_BLOCKING));
		OK(cuStreamWaitEvent(fan[i], event, 0));
		assert_int_equal(pthread_create(&threads[i], NULL, synchronise, fan[i]), 0);
	}
	sleep_ms(50); /* long enough for all of them to be asleep */
	let_go(words);
	for (int i = 0; i < FAN; i++) {
		pthread_join(threads[i], NULL);
		OK(cuStreamDestroy(fan[i]));
	}
	OK(cuStreamDestroy(first));
	OK(cuEventDestroy(event));
	OK(cuMemFree((CUdeviceptr)words));
}

static void *share_memory(void *stop)
{
	OK(cuCtxSetCurrent(context));
	while (!atomic_load((atomic_bool *)stop)) {
		CUipcMemHandle handle;
		CUdeviceptr memory;
		OK(cuMemAlloc(&memory, 4096));
		OK(cuIpcGetMemHandle(&handle, memory));
		OK(cuMemFree(memory));
	}
	return NULL;
}

/* A fork while another thread moves memory that it shares: neither waits for the other for ever. */
static void forks_while_memory_is_shared(void **state)
{
	atomic_bool stop = false;
	pthread_t thread;

	alarm(300);
	assert_int_equal(pthread_create(&thread, NULL, share_memory, &stop), 0);
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		if (!child)
			_exit(0);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_do_everything_at_once),
		cmocka_unit_test(threads_share_a_stream),
		cmocka_unit_test(memory_moves_under_kernels),
		cmocka_unit_test(deep_queue),
		cmocka_unit_test(sleepers_on_several_streams_wake_together),
		cmocka_unit_test(forked_children_work),
		cmocka_unit_test(forks_while_memory_is_shared),
		cmocka_unit_test(forked_children_record),
	};

	return cmocka_run_group_tests(tests, start_driver, stop_driver);
}
