/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that streams are queues with CUDA's order among them: priorities at block boundaries, the
 * null stream's rules, events, memory operations, host functions. */
#include "driver_tests.h"

#include <pthread.h>

static uint32_t *log_words, *next_word, *held;

static int set_up(void **state)
{
	int failed = start_driver(state);

	log_words = zeroed(4096 * 4);
	next_word = zeroed(4);
	held = zeroed(8);
	return failed;
}

static CUstream stream_with(unsigned flags, int priority)
{
	CUstream stream;

	OK(cuStreamCreateWithPriority(&stream, flags, priority));
	return stream;
}

static CUstream new_stream(void)
{
	return stream_with(CU_STREAM_NON_BLOCKING, 0);
}

/* Blocks of `us` microseconds that write `id` into the log. */
static void busy(CUstream stream, unsigned blocks, unsigned us, uint32_t id)
{
	uint64_t ns = us * 1000ull;
	void *params[] = {&ns, &log_words, &next_word, &id};

	OK(launch(kernel("busy"), blocks, stream, params));
}

static void clear_log(void)
{
	OK(cuCtxSynchronize());
	*next_word = 0;
}

static void launches_of_a_stream_follow_one_another(void **state)
{
	CUstream stream = new_stream();

	clear_log();
	for (uint32_t i = 0; i < 500; i++)
		busy(stream, 3, 0, i);
	OK(cuStreamSynchronize(stream));
	assert_int_equal(*next_word, 1500);
	for (uint32_t i = 0; i < 1500; i++)
		assert_int_equal(log_words[i], i / 3);
	OK(cuStreamDestroy(stream));
}

static unsigned workers(void)
{
	int count;

	OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	return (unsigned)count;
}

/* With all workers in blocks of a launch in `low`, another launch is given: whether its blocks
 * begin before any other of the first one's. */
static bool goes_first(CUstream low, const CUlaunchConfig *urgent)
{
	enum { BLOCKS = 200 };
	uint32_t *gate = held, *open = held + 1, one = 1, two = 2;
	void *first[] = {&gate, &log_words, &next_word, &one},
	     *second[] = {&open, &log_words, &next_word, &two};
	bool is_first = true;

	clear_log();
	*gate = 0;
	*open = 1;
	OK(launch(kernel("stay"), BLOCKS, low, first));
	for (uint64_t start = tally_now();
	     __atomic_load_n(next_word, __ATOMIC_ACQUIRE) < workers();)
		be_patient(start);
	OK(cuLaunchKernelEx(urgent, kernel("stay"), second, NULL));
	let_go(gate);
	OK(cuStreamSynchronize(urgent->hStream));
	OK(cuCtxSynchronize());
	assert_int_equal(*next_word, BLOCKS + urgent->gridDimX);
	for (unsigned i = 0; i < urgent->gridDimX; i++)
		is_first &= log_words[workers() + i] == two;
	return is_first;
}

/* A worker that is kept from the CPU between taking a block and its beginning is overtaken by the
 * others: then once more. */
static void expect_first(CUstream low, const CUlaunchConfig *urgent)
{
	for (uint64_t start = tally_now(); !goes_first(low, urgent);)
		be_patient(start);
}

static void urgent_launch_runs_at_the_next_block(void **state)
{
	CUlaunchConfig config = {.gridDimX = 4,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1};
	int least, greatest, priority;

	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_int_equal(least, 0);
	assert_int_equal(greatest, -5);
	CUstream low = stream_with(CU_STREAM_NON_BLOCKING, least),
		 high = stream_with(CU_STREAM_NON_BLOCKING, greatest - 10);
	OK(cuStreamGetPriority(high, &priority));
	assert_int_equal(priority, greatest); /* clamped */
	config.hStream = high;
	expect_first(low, &config);
	OK(cuStreamDestroy(low));
	OK(cuStreamDestroy(high));
}

static void launch_priority_overrides_the_streams(void **state)
{
	CUstream stream = new_stream(), other = new_stream();
	CUlaunchAttribute priority = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -5};
	CUlaunchConfig config = {.gridDimX = 2,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = stream,
				 .attrs = &priority,
				 .numAttrs = 1};

	expect_first(other, &config);
	OK(cuStreamDestroy(stream));
	OK(cuStreamDestroy(other));
}

/* Small operations of an idle stream run at once, however busy the workers are: here none comes
 * free before they are over. */
static void small_operations_do_not_wait_for_blocks(void **state)
{
	enum { MOST = 64 };
	CUstream busy_streams[MOST], idle = new_stream();
	uint32_t *holds = zeroed(MOST * 8);
	uint32_t *words = zeroed(16);
	uint32_t value = 0;
	CUevent event;

	OK(cuEventCreate(&event, 0));
	assert_in_range(workers(), 1, MOST);
	for (unsigned i = 0; i < workers(); i++) {
		busy_streams[i] = new_stream();
		hold(busy_streams[i], &holds[2 * i]);
	}
	OK(cuStreamWriteValue32(idle, (CUdeviceptr)words, 5, 0));
	assert_int_equal(words[0], 5);
	OK(cuEventRecord(event, idle));
	OK(cuEventQuery(event));
	OK(cuMemcpyDtoHAsync(&value, (CUdeviceptr)words, 4, idle));
	assert_int_equal(value, 5);
	OK(cuMemsetD32Async((CUdeviceptr)words, 9, 4, idle));
	assert_int_equal(words[3], 9);
	for (unsigned i = 0; i < workers(); i++) {
		assert_int_equal(cuStreamQuery(busy_streams[i]), CUDA_ERROR_NOT_READY);
		let_go(&holds[2 * i]);
		OK(cuStreamDestroy(busy_streams[i]));
	}
	OK(cuCtxSynchronize());
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(idle));
	OK(cuMemFree((CUdeviceptr)holds));
	OK(cuMemFree((CUdeviceptr)words));
}

static void null_stream_waits_and_is_waited_for(void **state)
{
	CUstream blocking = stream_with(CU_STREAM_DEFAULT, 0), free_stream = new_stream();

	clear_log();
	hold(blocking, held);
	busy(NULL, 1, 0, 2);	    /* after what `blocking` holds */
	busy(blocking, 1, 0, 3);    /* after the null stream */
	busy(free_stream, 1, 0, 4); /* takes no part */
	OK(cuStreamSynchronize(free_stream));
	assert_int_equal(*next_word, 1);
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
	let_go(held);
	OK(cuStreamSynchronize(blocking));
	assert_int_equal(*next_word, 3);
	assert_int_equal(log_words[0], 4);
	assert_int_equal(log_words[1], 2);
	assert_int_equal(log_words[2], 3);
	/* To synchronize the null stream is to synchronize the blocking ones. */
	busy(blocking, 1, 5000, 5);
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamQuery(blocking));
	OK(cuStreamDestroy(blocking));
	OK(cuStreamDestroy(free_stream));
}

/* A synchronous copy is an operation of the null stream. */
static void synchronous_copy_waits_for_blocking_streams(void **state)
{
	CUstream blocking = stream_with(CU_STREAM_DEFAULT, 0);
	uint32_t count = 0;

	clear_log();
	busy(blocking, 10, 2000, 1);
	OK(cuMemcpyDtoH(&count, (CUdeviceptr)next_word, 4));
	assert_int_equal(count, 10);
	OK(cuStreamDestroy(blocking));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned,
			     unsigned, unsigned, CUstream, void **, void **);

static void *own_stream_thread(void *argument)
{
	uint32_t id = (uint32_t)(uintptr_t)argument;
	uint64_t ns = 0;
	void *params[] = {&ns, &log_words, &next_word, &id};
	unsigned long long own, same, null;

	OK(cuCtxSetCurrent(context));
	OK(cuLaunchKernel_ptsz(kernel("busy"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &same));
	OK(cuStreamGetId(NULL, &null));
	assert_true(own == same && own != null);
	return (void *)(uintptr_t)own;
}

static void threads_have_streams_of_their_own(void **state)
{
	pthread_t thread;
	unsigned long long mine;
	void *theirs;
	CUstream other = new_stream();

	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
	clear_log();
	/* My own stream is held up; another thread's is not. */
	hold(CU_STREAM_PER_THREAD, held);
	pthread_create(&thread, NULL, own_stream_thread, (void *)1);
	pthread_join(thread, &theirs);
	assert_int_equal(*next_word, 1);
	assert_true((uintptr_t)theirs != mine);
	assert_int_equal(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
	let_go(held);
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	OK(cuStreamDestroy(other));
}

static void events_order_streams_and_tell_time(void **state)
{
	CUstream first = new_stream(), second = new_stream();
	CUevent start, end, untimed;
	float ms;

	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	OK(cuEventQuery(end)); /* never recorded */
	OK(cuStreamWaitEvent(second, end, 0));
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	clear_log();
	uint64_t before = tally_now();
	OK(cuEventRecord(start, first));
	hold(first, held);
	busy(first, 1, 5000, 1);
	OK(cuEventRecord(end, first));
	OK(cuStreamWaitEvent(second, end, 0));
	busy(second, 1, 0, 2);
	assert_int_equal(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
	sleep_ms(5);
	assert_int_equal(*next_word, 0);
	let_go(held);
	OK(cuEventSynchronize(end));
	OK(cuStreamSynchronize(second));
	assert_int_equal(log_words[0], 1);
	assert_int_equal(log_words[1], 2);
	OK(cuEventElapsedTime(&ms, start, end));
	assert_true(ms >= 10 && ms <= (double)(tally_now() - before) / 1e6 + 0.01);
	assert_int_equal(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	/* Destroyed while its record is under way: the record still runs. */
	hold(first, held);
	OK(cuEventRecord(end, first));
	OK(cuEventDestroy(end));
	let_go(held);
	OK(cuStreamSynchronize(first));
	assert_int_equal(cuEventQuery(NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventDestroy(start));
	OK(cuEventDestroy(untimed));
	OK(cuStreamDestroy(first));
	OK(cuStreamDestroy(second));
}

static void values_are_waited_for(void **state)
{
	static const struct {
		unsigned flags;
		uint64_t value, no, yes;
		bool wide;
	} cases[] = {
		{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6, false},
		{CU_STREAM_WAIT_VALUE_GEQ, 2, 0xFFFFFFF0u, 3, false}, /* cyclic */
		{CU_STREAM_WAIT_VALUE_GEQ, 1ull << 40, 1, 1ull << 41, true},
		{CU_STREAM_WAIT_VALUE_EQ, 7, 8, 7, false},
		{CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH, 1ull << 33, 0, 1ull << 33,
		 true},
		{CU_STREAM_WAIT_VALUE_AND, 6, 1, 4, false},
		{CU_STREAM_WAIT_VALUE_AND, 1ull << 35, 1, 3ull << 35, true},
		{CU_STREAM_WAIT_VALUE_NOR, 0xF0F0F0F0u, 0x0F0F0F0Fu, 0x0F0F0F0Eu, false},
		{CU_STREAM_WAIT_VALUE_NOR, 1, UINT64_MAX, UINT64_MAX - 2, true},
	};
	CUstream stream = new_stream();
	uint64_t *word = zeroed(16);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		word[1] = 0;
		*word = cases[i].no;
		if (cases[i].wide)
			OK(cuStreamWaitValue64(stream, (CUdeviceptr)word, cases[i].value,
					       cases[i].flags));
		else
			OK(cuStreamWaitValue32(stream, (CUdeviceptr)word, (uint32_t)cases[i].value,
					       cases[i].flags));
		OK(cuStreamWriteValue64(stream, (CUdeviceptr)&word[1], 1, 0));
		sleep_ms(2);
		assert_int_equal(word[1], 0);
		if (i % 2) /* by the host, or by another stream */
			__atomic_store_n(word, cases[i].yes, __ATOMIC_RELEASE);
		else
			OK(cuStreamWriteValue64(NULL, (CUdeviceptr)word, cases[i].yes, 0));
		OK(cuStreamSynchronize(stream));
		assert_int_equal(word[1], 1);
	}
	assert_int_equal(cuStreamWriteValue32(stream, (CUdeviceptr)word + 1, 0, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWaitValue32(stream, (CUdeviceptr)word, 0, 4),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWriteValue32(stream, 64, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)word));
}

static void batches_run_in_order(void **state)
{
	CUstream stream = new_stream();
	uint64_t *word = zeroed(32);
	CUstreamBatchMemOpParams list[4] = {{0}};

	list[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	list[0].writeValue.address = (CUdeviceptr)&word[0];
	list[0].writeValue.value = 1;
	list[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
	list[1].waitValue.address = (CUdeviceptr)&word[1];
	list[1].waitValue.value64 = 1;
	list[2].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
	list[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	list[3].writeValue.address = (CUdeviceptr)&word[2];
	list[3].writeValue.value64 = 1ull << 50;
	OK(cuStreamBatchMemOp(stream, 4, list, 0));
	assert_int_equal(word[0], 1);
	sleep_ms(1);
	assert_int_equal(word[2], 0);
	__atomic_store_n(&word[1], 1, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
	assert_true(word[2] == 1ull << 50);
	list[2].operation = 99;
	assert_int_equal(cuStreamBatchMemOp(stream, 4, list, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)word));
}

/* As many stuck waits as you like hold no worker. */
static void stuck_waits_hold_nobody_up(void **state)
{
	enum { STUCK = 64 };
	CUstream stuck[STUCK], stream = new_stream();
	uint32_t *word = zeroed(4);

	clear_log();
	for (int i = 0; i < STUCK; i++) {
		stuck[i] = new_stream();
		OK(cuStreamWaitValue32(stuck[i], (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_EQ));
		busy(stuck[i], 1, 0, 1);
	}
	busy(stream, 50, 10, 2);
	OK(cuStreamSynchronize(stream));
	assert_int_equal(*next_word, 50);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	OK(cuCtxSynchronize());
	assert_int_equal(*next_word, 50 + STUCK);
	for (int i = 0; i < STUCK; i++)
		OK(cuStreamDestroy(stuck[i]));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)word));
}

struct calls {
	_Atomic unsigned count;
	unsigned order[1000];
	pthread_mutex_t lock;
};
static struct calls calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void CUDA_CB host_function(void *data)
{
	/* A lock that the submitting thread may hold: must not be called on that thread. */
	pthread_mutex_lock(&calls.lock);
	calls.order[atomic_fetch_add(&calls.count, 1)] = (unsigned)(uintptr_t)data;
	pthread_mutex_unlock(&calls.lock);
}

static void CUDA_CB callback(CUstream stream, CUresult status, void *data)
{
	assert_int_equal(status, CUDA_SUCCESS);
	assert_non_null(stream);
	host_function(data);
}

static void host_functions_keep_the_order(void **state)
{
	CUstream stream = new_stream();

	clear_log();
	atomic_store(&calls.count, 0);
	pthread_mutex_lock(&calls.lock);
	for (uintptr_t i = 0; i < 300; i++) {
		if (i % 3)
			OK(cuLaunchHostFunc(stream, host_function, (void *)i));
		else
			OK(cuStreamAddCallback(stream, callback, (void *)i, 0));
		busy(stream, 1, 0, (uint32_t)i);
	}
	assert_int_equal(*next_word, 0); /* none before the function in front of it */
	pthread_mutex_unlock(&calls.lock);
	OK(cuStreamSynchronize(stream));
	assert_int_equal(atomic_load(&calls.count), 300);
	assert_int_equal(*next_word, 300);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(calls.order[i], i);
		assert_int_equal(log_words[i], i);
	}
	assert_int_equal(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(stream));
}

static void destroyed_stream_finishes_its_work(void **state)
{
	CUstream stream = new_stream();

	clear_log();
	hold(stream, held);
	busy(stream, 20, 100, 1);
	OK(cuStreamDestroy(stream));
	assert_int_equal(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
	let_go(held);
	for (uint64_t start = tally_now(); *(volatile uint32_t *)next_word < 20;)
		be_patient(start);
	assert_int_equal(*next_word, 20);
}

/* Two streams wait for a third; one of them comes to that from a small operation, so that it is
 * looked at twice. Both have to be woken. */
static void everybody_who_waits_is_woken(void **state)
{
	uint32_t *word = zeroed(4), *other_held = zeroed(8);
	CUstream third = new_stream(), first = new_stream(), second = new_stream();
	CUevent event;

	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	hold(third, held);
	OK(cuEventRecord(event, third));
	OK(cuStreamWaitEvent(first, event, 0));
	hold(second, other_held);
	OK(cuStreamWriteValue32(second, (CUdeviceptr)word, 1, 0));
	OK(cuStreamWaitEvent(second, event, 0));
	let_go(other_held);
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	let_go(held);
	for (uint64_t start = tally_now(); cuStreamQuery(first) || cuStreamQuery(second);)
		be_patient(start);
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(first));
	OK(cuStreamDestroy(second));
	OK(cuStreamDestroy(third));
	OK(cuMemFree((CUdeviceptr)word));
}

static void streams_answer_for_themselves(void **state)
{
	CUstream stream = stream_with(CU_STREAM_NON_BLOCKING, -2), other = new_stream();
	unsigned flags;
	unsigned long long id, other_id;
	CUcontext owner;
	CUdevice device;
	int priority;
	CUlaunchAttributeValue value = {.priority = -4};

	OK(cuStreamGetFlags(stream, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	OK(cuStreamGetId(stream, &id));
	OK(cuStreamGetId(other, &other_id));
	assert_true(id != other_id);
	OK(cuStreamGetCtx(stream, &owner));
	assert_ptr_equal(owner, context);
	OK(cuStreamGetDevice(stream, &device));
	assert_int_equal(device, 0);
	OK(cuStreamCopyAttributes(other, stream));
	OK(cuStreamGetPriority(other, &priority));
	assert_int_equal(priority, -2);
	OK(cuStreamSetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	OK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	assert_int_equal(value.priority, -4);
	assert_int_equal(cuStreamCreate(&stream, 8), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(stream));
	OK(cuStreamDestroy(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_of_a_stream_follow_one_another),
		cmocka_unit_test(urgent_launch_runs_at_the_next_block),
		cmocka_unit_test(launch_priority_overrides_the_streams),
		cmocka_unit_test(small_operations_do_not_wait_for_blocks),
		cmocka_unit_test(null_stream_waits_and_is_waited_for),
		cmocka_unit_test(synchronous_copy_waits_for_blocking_streams),
		cmocka_unit_test(threads_have_streams_of_their_own),
		cmocka_unit_test(events_order_streams_and_tell_time),
		cmocka_unit_test(values_are_waited_for),
		cmocka_unit_test(batches_run_in_order),
		cmocka_unit_test(stuck_waits_hold_nobody_up),
		cmocka_unit_test(host_functions_keep_the_order),
		cmocka_unit_test(destroyed_stream_finishes_its_work),
		cmocka_unit_test(everybody_who_waits_is_woken),
		cmocka_unit_test(streams_answer_for_themselves),
	};

	/* The tests hold one worker with a kernel and want another one free. */
	setenv("TALLY_CPU_WORKERS", "3", 0);
	return cmocka_run_group_tests(tests, set_up, stop_driver);
}
