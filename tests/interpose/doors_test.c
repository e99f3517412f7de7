/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every door through which a program gives work to the device, one by one. In a program that may be
 * stopped ("best-effort") each has to wait behind a launch that was stopped; in one of high
 * priority ("high") each has to be announced. Then many streams, and a program that never waits.
 */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the doors --- */

static void *pinned;
static CUevent event;
static CUgraphExec whole; /* a graph that has branches */
static CUmemoryPool pool;

static void host_function(void *data)
{
	(void)data;
}

static void callback(CUstream stream, CUresult status, void *data)
{
	(void)stream, (void)status, (void)data;
}

static CUresult copy_2d(CUstream s)
{
	const CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
				 .srcDevice = memory,
				 .srcPitch = 16,
				 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				 .dstDevice = other,
				 .dstPitch = 16,
				 .WidthInBytes = 8,
				 .Height = 2};

	return cuMemcpy2DAsync_v2(&c, s);
}

static CUresult peer_box(CUstream s)
{
	const CUDA_MEMCPY3D_PEER c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
				      .srcDevice = memory,
				      .srcPitch = 16,
				      .srcHeight = 2,
				      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				      .dstDevice = other,
				      .dstPitch = 16,
				      .dstHeight = 2,
				      .WidthInBytes = 8,
				      .Height = 2,
				      .Depth = 1};

	return cuMemcpy3DPeerAsync(&c, s);
}

static CUresult batch(CUstream s)
{
	CUdeviceptr to = other, from = memory;
	size_t size = 8, index = 0;
	CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

	return cuMemcpyBatchAsync_v2(&to, &from, &size, 1, &attributes, &index, 1, s);
}

static CUresult values(CUstream s)
{
	CUstreamBatchMemOpParams p = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
						     .address = other,
						     .value = 1}};

	return cuStreamBatchMemOp_v2(s, 1, &p, 0);
}

static CUresult allocate(CUstream s)
{
	CUdeviceptr made;
	CUresult result = cuMemAllocAsync(&made, 16, s);

	return result ? result : cuMemFreeAsync(made, s);
}

static CUresult allocate_from_pool(CUstream s)
{
	CUdeviceptr made;
	CUresult result = cuMemAllocFromPoolAsync(&made, 16, pool, s);

	return result ? result : cuMemFreeAsync(made, s);
}

static CUresult with_attributes(CUstream s)
{
	CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					 .value.cooperative = 1};
	const CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, s, &cooperative, 1};

	return cuLaunchKernelEx(&config, empty, NULL, NULL);
}

#define DOOR(name, call)                                                                           \
	static CUresult door_##name(CUstream s)                                                    \
	{                                                                                          \
		return call;                                                                       \
	}
#define DOORS                                                                                      \
	DOOR(kernel, cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL))                    \
	DOOR(kernel_ptsz, cuLaunchKernel_ptsz(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL))          \
	DOOR(kernel_ex, with_attributes(s))                                                        \
	DOOR(cooperative, cuLaunchCooperativeKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL))          \
	DOOR(cooperative_ptsz,                                                                     \
	     cuLaunchCooperativeKernel_ptsz(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL))                  \
	DOOR(graph, cuGraphLaunch(whole, s))                                                       \
	DOOR(graph_ptsz, cuGraphLaunch_ptsz(whole, s))                                             \
	DOOR(graph_upload, cuGraphUpload(whole, s))                                                \
	DOOR(host_function, cuLaunchHostFunc(s, host_function, NULL))                              \
	DOOR(callback, cuStreamAddCallback(s, callback, NULL, 0))                                  \
	DOOR(memset8, cuMemsetD8Async(memory, 1, 8, s))                                            \
	DOOR(memset16, cuMemsetD16Async(memory, 1, 8, s))                                          \
	DOOR(memset32, cuMemsetD32Async(memory, 1, 8, s))                                          \
	DOOR(memset32_ptsz, cuMemsetD32Async_ptsz(memory, 1, 8, s))                                \
	DOOR(memset_2d, cuMemsetD2D8Async(memory, 16, 1, 8, 2, s))                                 \
	DOOR(copy, cuMemcpyAsync(other, memory, 8, s))                                             \
	DOOR(copy_ptsz, cuMemcpyAsync_ptsz(other, memory, 8, s))                                   \
	DOOR(copy_up, cuMemcpyHtoDAsync_v2(memory, pinned, 8, s))                                  \
	DOOR(copy_down, cuMemcpyDtoHAsync_v2(pinned, memory, 8, s))                                \
	DOOR(copy_over, cuMemcpyDtoDAsync_v2(other, memory, 8, s))                                 \
	DOOR(copy_peer, cuMemcpyPeerAsync(other, context, memory, context, 8, s))                  \
	DOOR(copy_2d, copy_2d(s))                                                                  \
	DOOR(copy_3d, cuMemcpy3DAsync_v2(some_copy(), s))                                          \
	DOOR(copy_3d_peer, peer_box(s))                                                            \
	DOOR(copy_batch, batch(s))                                                                 \
	DOOR(allocate, allocate(s))                                                                \
	DOOR(allocate_from_pool, allocate_from_pool(s))                                            \
	DOOR(write_value, cuStreamWriteValue32_v2(s, other, 1, 0))                                 \
	DOOR(write_value64, cuStreamWriteValue64_v2(s, other, 1, 0))                               \
	DOOR(wait_value, cuStreamWaitValue32_v2(s, other, 0, CU_STREAM_WAIT_VALUE_GEQ))            \
	DOOR(values, values(s))                                                                    \
	DOOR(record, cuEventRecord(event, s))                                                      \
	DOOR(record_with_flags, cuEventRecordWithFlags(event, s, 0))
DOORS
/* Of the calling thread's default stream: the legacy one. */
#undef DOOR
#define DOOR(name, call)                                                                           \
	static CUresult now_##name(CUstream s)                                                     \
	{                                                                                          \
		(void)s;                                                                           \
		return call;                                                                       \
	}
#define DOORS_NOW                                                                                  \
	DOOR(memset8, cuMemsetD8_v2(memory, 1, 8))                                                 \
	DOOR(memset32, cuMemsetD32_v2(memory, 1, 8))                                               \
	DOOR(memset_2d, cuMemsetD2D8_v2(memory, 16, 1, 8, 2))                                      \
	DOOR(copy, cuMemcpy(other, memory, 8))                                                     \
	DOOR(copy_up, cuMemcpyHtoD_v2(memory, pinned, 8))                                          \
	DOOR(copy_down, cuMemcpyDtoH_v2(pinned, memory, 8))                                        \
	DOOR(copy_over, cuMemcpyDtoD_v2(other, memory, 8))                                         \
	DOOR(copy_peer, cuMemcpyPeer(other, context, memory, context, 8))                          \
	DOOR(copy_3d, cuMemcpy3D_v2(some_copy()))
DOORS_NOW

struct door {
	const char *name;
	CUresult (*call)(CUstream);
	bool legacy;
};
static const struct door doors[] = {
#undef DOOR
#define DOOR(name, call) {#name, door_##name, false},
	DOORS
#undef DOOR
#define DOOR(name, call) {"synchronous " #name, now_##name, true},
		DOORS_NOW};
enum { DOOR_COUNT = sizeof doors / sizeof *doors };

/* --- a program that may be stopped --- */

struct passing {
	const struct door *door;
	CUstream stream;
	CUresult result;
	_Atomic bool through;
};

static void *pass(void *argument)
{
	struct passing *p = argument;

	OK(cuCtxSetCurrent(context));
	p->result = p->door->call(p->stream);
	atomic_store(&p->through, true);
	return NULL;
}

/* What follows a stopped launch in its stream may not come before its end. */
static void doors_wait_behind_what_was_stopped(void **state)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < DOOR_COUNT; i++) {
		struct passing p = {.door = &doors[i], .stream = stream};
		struct chain c;
		pthread_t thread;

		chain_open(&c, p.door->legacy ? NULL : stream);
		chain_stop(&c, 1);
		pthread_create(&thread, NULL, pass, &p);
		usleep(10000);
		if (atomic_load(&p.through))
			print_message("%s came through\n", p.door->name);
		assert_false(atomic_load(&p.through));
		assert_true(chain_ran(&c) < c.launches * BLOCKS);
		tally_client_set_active(rival, false);
		pthread_join(thread, NULL);
		if (p.result)
			print_message("%s answered %d\n", p.door->name, p.result);
		assert_int_equal(p.result, CUDA_SUCCESS);
		OK(cuStreamSynchronize(c.stream));
		OK(cuCtxSynchronize());
		chain_check(&c);
	}
	OK(cuStreamDestroy_v2(stream));
}

/* A graph with branches is launched whole; it waits at the gate. */
static void whole_graphs_wait_at_the_gate(void **state)
{
	struct passing p = {0};
	const struct door door = {"graph", door_graph, false};
	pthread_t thread;

	OK(cuCtxSynchronize());
	p.door = &door;
	OK(cuStreamCreate(&p.stream, CU_STREAM_NON_BLOCKING));
	tally_client_set_active(rival, true);
	pthread_create(&thread, NULL, pass, &p);
	usleep(30000);
	assert_false(atomic_load(&p.through));
	tally_client_set_active(rival, false);
	pthread_join(thread, NULL);
	OK(p.result);
	OK(cuStreamSynchronize(p.stream));
	OK(cuStreamDestroy_v2(p.stream));
}

static void two_hundred_streams(void **state)
{
	enum { STREAMS = 200 };
	static struct chain chains[STREAMS];

	for (unsigned i = 0; i < STREAMS; i++) {
		CUstream stream;

		OK(cuStreamCreate(&stream, i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
		chain_open(&chains[i], stream);
	}
	rival_begins(3);
	for (uint32_t round = 0; round < 5; round++)
		for (unsigned i = 0; i < STREAMS; i++)
			chain_step(&chains[i], round, 2, false);
	OK(cuCtxSynchronize());
	rival_ends();
	for (unsigned i = 0; i < STREAMS; i++) {
		CUstream stream = chains[i].stream;

		OK(cuCtxSynchronize());
		chain_check(&chains[i]);
		OK(cuStreamDestroy_v2(stream));
	}
}

/* Nobody ever waits: the work is done all the same, stops and all. */
static void a_program_that_never_synchronises(void **state)
{
	CUstream stream;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	rival_begins(3);
	for (uint32_t i = 0; i < 100; i++)
		chain_step(&c, i, 20, false);
	UNTIL(chain_ran(&c) == 100 * BLOCKS);
	rival_ends();
	OK(cuCtxSynchronize());
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

/* --- a program of high priority --- */

static void doors_are_announced(void **state)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < DOOR_COUNT; i++) {
		const struct door *door = &doors[i];
		struct tally_stream *record =
			tally_stream_find(door->legacy ? NULL : stream, false);
		uint64_t before;

		assert_non_null(record);
		before = atomic_load(&record->announced);
		OK(door->call(stream));
		if (atomic_load(&record->announced) == before)
			print_message("%s was not announced\n", door->name);
		assert_true(atomic_load(&record->announced) > before);
	}
	OK(cuStreamSynchronize(stream));
	OK(cuCtxSynchronize());
	assert_false(atomic_load(&tally_slot(device)->active));
	OK(cuStreamDestroy_v2(stream));
}

static void make_things(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUgraphNode root, branch;
	CUgraph graph;

	OK(cuMemHostAlloc(&pinned, 4096, 0));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuGraphCreate(&graph, 0));
	CUDA_KERNEL_NODE_PARAMS p = {.func = empty,
				     .gridDimX = 1,
				     .gridDimY = 1,
				     .gridDimZ = 1,
				     .blockDimX = 1,
				     .blockDimY = 1,
				     .blockDimZ = 1};
	OK(cuGraphAddEmptyNode(&root, graph, NULL, 0));
	for (unsigned i = 0; i < 2; i++)
		OK(cuGraphAddKernelNode_v2(&branch, graph, &root, 1, &p));
	OK(cuGraphInstantiateWithFlags(&whole, graph, 0));
	OK(cuGraphDestroy(graph));
}

static int setup(void **state)
{
	steps_setup(state);
	/* When a door has returned, the driver has it: ahead_test.c is about those that wait. */
	doors_wait(state);
	make_things();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest best_effort[] = {
		cmocka_unit_test(doors_wait_behind_what_was_stopped),
		cmocka_unit_test(whole_graphs_wait_at_the_gate),
		cmocka_unit_test(two_hundred_streams),
		cmocka_unit_test(a_program_that_never_synchronises),
	};
	const struct CMUnitTest high[] = {
		cmocka_unit_test(doors_are_announced),
	};

	if (argc > 1 && !strcmp(argv[1], "high"))
		return cmocka_run_group_tests(high, setup, NULL);
	return cmocka_run_group_tests(best_effort, setup, NULL);
}
