/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every door through which a program gives work to the device, one by one, with Tally's hooks, the
 * CPU device's driver and a real daemon (guard.sh starts it). In a program that may be stopped
 * ("best-effort") each has to wait behind a launch that was stopped; in one of high priority
 * ("high") each has to be announced. Then graphs, node by node and whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "base/file.h"

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

enum { BLOCKS = 24, LONG_US = 1000 };

static CUcontext context;
static CUmodule module;
static CUfunction step, empty;
static struct tally_device *device;
static struct tally_client *rival;

static uint64_t stops(void)
{
	return atomic_load(&tally_slot(device)->stops);
}

/* --- a chain of launches whose result says how often and in which order its blocks ran --- */

struct chain {
	CUstream stream;
	CUdeviceptr values, ran;
	uint32_t expected[BLOCKS], launches;
};

static void chain_open(struct chain *c, CUstream stream)
{
	memset(c, 0, sizeof *c);
	c->stream = stream;
	OK(cuMemAlloc_v2(&c->values, sizeof c->expected));
	OK(cuMemAlloc_v2(&c->ran, sizeof c->expected));
	OK(cuMemsetD32_v2(c->values, 0, BLOCKS));
	OK(cuMemsetD32_v2(c->ran, 0, BLOCKS));
	OK(cuCtxSynchronize());
}

static void chain_expect(struct chain *c, uint32_t number)
{
	c->launches++;
	for (unsigned b = 0; b < BLOCKS; b++)
		c->expected[b] = c->expected[b] * 1664525u + 1013904223u + number;
}

static void chain_step(struct chain *c, uint32_t number, uint32_t us)
{
	void *pointers[] = {&c->values, &c->ran, &number, &us};

	OK(cuLaunchKernel(step, BLOCKS, 1, 1, 1, 1, 1, 0, c->stream, pointers, NULL));
	chain_expect(c, number);
}

/* How many blocks have run so far. */
static uint32_t chain_ran(const struct chain *c)
{
	const volatile uint32_t *ran = (const uint32_t *)c->ran; /* host memory, on this device */
	uint32_t sum = 0;

	for (unsigned b = 0; b < BLOCKS; b++)
		sum += ran[b];
	return sum;
}

static void chain_close(struct chain *c)
{
	const uint32_t *ran = (const uint32_t *)c->ran;

	OK(cuCtxSynchronize());
	for (unsigned b = 0; b < BLOCKS; b++)
		assert_int_equal(ran[b], c->launches);
	assert_memory_equal((const void *)c->values, c->expected, sizeof c->expected);
	OK(cuMemFree_v2(c->values));
	OK(cuMemFree_v2(c->ran));
}

/* --- the doors --- */

static CUdeviceptr memory, other;
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

static const CUDA_MEMCPY3D *box(void)
{
	static CUDA_MEMCPY3D c;

	c = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			    .srcDevice = memory,
			    .srcPitch = 16,
			    .srcHeight = 2,
			    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			    .dstDevice = other,
			    .dstPitch = 16,
			    .dstHeight = 2,
			    .WidthInBytes = 8,
			    .Height = 2,
			    .Depth = 2};
	return &c;
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
	DOOR(copy_3d, cuMemcpy3DAsync_v2(box(), s))                                                \
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
	DOOR(copy_3d, cuMemcpy3D_v2(box()))
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

/* Stops a launch of the chain in the middle. */
static void stop_one(struct chain *c)
{
	uint64_t before = stops();

	chain_step(c, 7, LONG_US);
	tally_client_set_active(rival, true);
	for (unsigned i = 0; stops() == before && i < 10000; i++)
		usleep(1000);
	assert_true(stops() > before);
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
		stop_one(&c);
		pthread_create(&thread, NULL, pass, &p);
		usleep(10000);
		if (atomic_load(&p.through))
			print_message("%s came through\n", p.door->name);
		assert_false(atomic_load(&p.through));
		assert_true(chain_ran(&c) < BLOCKS);
		tally_client_set_active(rival, false);
		pthread_join(thread, NULL);
		if (p.result)
			print_message("%s answered %d\n", p.door->name, p.result);
		assert_int_equal(p.result, CUDA_SUCCESS);
		OK(cuStreamSynchronize(c.stream));
		chain_close(&c);
	}
	OK(cuStreamDestroy_v2(stream));
}

/* --- graphs --- */

static CUgraphNode add_step(CUgraph graph, struct chain *c, uint32_t number, uint32_t us,
			    const CUgraphNode *after, size_t count)
{
	void *pointers[] = {&c->values, &c->ran, &number, &us};
	CUDA_KERNEL_NODE_PARAMS p = {.func = step,
				     .gridDimX = BLOCKS,
				     .gridDimY = 1,
				     .gridDimZ = 1,
				     .blockDimX = 1,
				     .blockDimY = 1,
				     .blockDimZ = 1,
				     .kernelParams = pointers};
	CUgraphNode node;

	OK(cuGraphAddKernelNode_v2(&node, graph, after, count, &p));
	return node;
}

enum { NODES = 8 };

/* A chain of NODES steps numbered from `first`, a copy and a memset among them. */
static CUgraph make_graph(struct chain *c, uint32_t first, uint32_t us, CUgraphNode *nodes)
{
	const CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory, .elementSize = 1, .value = 3, .width = 8, .height = 1};
	CUgraphNode last = NULL;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	for (uint32_t i = 0; i < NODES; i++) {
		nodes[i] = last = add_step(graph, c, first + i, us, &last, i != 0);
		if (i == 2)
			OK(cuGraphAddMemcpyNode(&last, graph, &last, 1, box(), context));
		if (i == 4)
			OK(cuGraphAddMemsetNode(&last, graph, &last, 1, &fill, context));
	}
	return graph;
}

static void chain_expect_graph(struct chain *c, uint32_t first)
{
	for (uint32_t i = 0; i < NODES; i++)
		chain_expect(c, first + i);
}

struct launching {
	CUgraphExec exec;
	CUstream stream;
	CUresult result;
};

static void *launch_graph(void *argument)
{
	struct launching *l = argument;

	OK(cuCtxSetCurrent(context));
	l->result = cuGraphLaunch(l->exec, l->stream);
	return NULL;
}

/* Waits until nothing runs any more, though nobody synchronises. Returns the blocks that ran. */
static uint32_t settled(const struct chain *c)
{
	uint32_t ran = chain_ran(c), again;

	for (unsigned i = 0; i < 200; i++, ran = again) {
		usleep(20 * LONG_US);
		again = chain_ran(c);
		if (again == ran)
			break;
	}
	return ran;
}

/* A graph gives way in the middle, and goes on where it was. */
static void graphs_stop_between_nodes(void **state)
{
	CUgraphNode nodes[NODES];
	struct launching l;
	struct chain c;
	pthread_t thread;
	uint32_t ran;

	OK(cuStreamCreate(&l.stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, l.stream);
	CUgraph graph = make_graph(&c, 10, LONG_US, nodes);
	OK(cuGraphInstantiateWithFlags(&l.exec, graph, 0));
	OK(cuGraphDestroy(graph));
	for (unsigned round = 0; round < 3; round++) {
		uint32_t before = chain_ran(&c);

		pthread_create(&thread, NULL, launch_graph, &l);
		while (chain_ran(&c) < before + BLOCKS + 3)
			usleep(100);
		tally_client_set_active(rival, true);
		ran = settled(&c);
		assert_true(ran < before + NODES * BLOCKS);
		tally_client_set_active(rival, false);
		pthread_join(thread, NULL);
		OK(l.result);
		OK(cuStreamSynchronize(l.stream));
		chain_expect_graph(&c, 10);
	}
	OK(cuGraphExecDestroy(l.exec));
	chain_close(&c);
	OK(cuStreamDestroy_v2(l.stream));
}

static void *restless(void *stop)
{
	unsigned seed = 3;

	while (!atomic_load((_Atomic bool *)stop)) {
		tally_client_set_active(rival, true);
		usleep((useconds_t)(rand_r(&seed) % 300));
		tally_client_set_active(rival, false);
		usleep((useconds_t)(rand_r(&seed) % 900));
	}
	return NULL;
}

/* One executable graph in two streams, its parameters changed in every way there is, a rival that
 * comes and goes: each launch does what the graph said when it was launched, and after the one
 * before. */
static void changes_of_graphs_are_seen(void **state)
{
	CUgraphNode nodes[NODES], first[NODES];
	_Atomic bool stop = false;
	CUgraphExecUpdateResultInfo info;
	CUstream streams[2];
	CUgraphExec exec;
	CUgraph graph, next;
	pthread_t thread;
	struct chain c;

	for (unsigned i = 0; i < 2; i++)
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	pthread_create(&thread, NULL, restless, &stop);
	for (unsigned way = 0; way < 3; way++) {
		chain_open(&c, NULL);
		graph = make_graph(&c, 0, 20, first);
		OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		for (uint32_t round = 0; round < 30; round++) {
			uint32_t number = round * 100, us = 20;
			void *pointers[] = {&c.values, &c.ran, &number, &us};
			CUDA_KERNEL_NODE_PARAMS p;

			OK(cuGraphLaunch(exec, streams[round % 2]));
			chain_expect_graph(&c, way == 0 ? (round ? (round - 1) * 100 : 0) : 0);
			if (way == 0) { /* all nodes at once */
				next = make_graph(&c, number, us, nodes);
				OK(cuGraphExecUpdate_v2(exec, next, &info));
				OK(cuGraphDestroy(next));
			} else if (way == 1 && round == 10) { /* one, back to what it was */
				OK(cuGraphKernelNodeGetParams_v2(first[3], &p));
				OK(cuGraphExecKernelNodeSetParams_v2(exec, first[3], &p));
			} else if (way == 2 && round == 10) { /* one that does the same work */
				number = 3;
				OK(cuGraphKernelNodeGetParams_v2(first[3], &p));
				p.kernelParams = pointers;
				OK(cuGraphExecKernelNodeSetParams_v2(exec, first[3], &p));
			}
		}
		OK(cuStreamSynchronize(streams[0]));
		OK(cuStreamSynchronize(streams[1]));
		OK(cuGraphExecDestroy(exec));
		OK(cuGraphDestroy(graph));
		chain_close(&c);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < 2; i++)
		OK(cuStreamDestroy_v2(streams[i]));
}

/* A parameter that was changed in the executable graph alone. */
static void changed_parameters_are_used(void **state)
{
	CUgraphNode nodes[NODES];
	struct chain c, d;
	CUgraphExec exec;
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	chain_open(&d, stream);
	CUgraph graph = make_graph(&c, 1, 200, nodes);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	chain_expect_graph(&c, 1);
	/* The last node works on the other chain now. */
	uint32_t number = 77, us = 10;
	void *pointers[] = {&d.values, &d.ran, &number, &us};
	CUDA_KERNEL_NODE_PARAMS p;
	OK(cuGraphKernelNodeGetParams_v2(nodes[NODES - 1], &p));
	p.kernelParams = pointers;
	OK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[NODES - 1], &p));
	OK(cuGraphLaunch(exec, stream));
	for (uint32_t i = 0; i < NODES - 1; i++)
		chain_expect(&c, 1 + i);
	chain_expect(&d, 77);
	/* And is switched off. */
	OK(cuGraphNodeSetEnabled(exec, nodes[NODES - 1], 0));
	OK(cuGraphLaunch(exec, stream));
	for (uint32_t i = 0; i < NODES - 1; i++)
		chain_expect(&c, 1 + i);
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	chain_close(&c);
	chain_close(&d);
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

/* Work that is captured is not held up, and comes out right under a restless rival. */
static void captures_are_left_alone(void **state)
{
	_Atomic bool stop = false;
	CUgraphExec exec;
	CUstream stream;
	pthread_t thread;
	CUgraph graph;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	tally_client_set_active(rival, true);
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (uint32_t i = 0; i < NODES; i++)
		chain_step(&c, i, 100);
	OK(cuMemcpyAsync(other, memory, 8, stream));
	OK(cuStreamEndCapture(stream, &graph));
	tally_client_set_active(rival, false);
	memset(c.expected, 0, sizeof c.expected); /* nothing ran yet */
	c.launches = 0;
	assert_int_equal(chain_ran(&c), 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	pthread_create(&thread, NULL, restless, &stop);
	for (unsigned i = 0; i < 20; i++) {
		OK(cuGraphLaunch(exec, stream));
		chain_expect_graph(&c, 0);
	}
	OK(cuStreamSynchronize(stream));
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	OK(cuGraphExecDestroy(exec));
	chain_close(&c);
	OK(cuStreamDestroy_v2(stream));
}

/* A stream that Tally meets for the first time in a capture: what it would like to know of it must
 * not be asked then. */
static void a_stream_begins_with_a_capture(void **state)
{
	CUstream streams[2];
	CUgraph graph;
	size_t nodes;

	for (int k = 0; k < 2; k++) {
		OK(cuStreamCreate(&streams[k], k ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
		OK(cuStreamBeginCapture_v2(streams[k], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		OK(cuMemcpyAsync(other, memory, 8, streams[k]));
		OK(cuMemsetD32Async(memory, 0, 1, streams[k]));
		OK(cuStreamEndCapture(streams[k], &graph));
		OK(cuGraphGetNodes(graph, NULL, &nodes));
		assert_int_equal(nodes, 2);
		OK(cuGraphDestroy(graph));
		/* And it is met like any other afterwards. */
		OK(cuMemcpyAsync(other, memory, 8, streams[k]));
		OK(cuStreamSynchronize(streams[k]));
		OK(cuStreamDestroy_v2(streams[k]));
	}
}

static void two_hundred_streams(void **state)
{
	enum { STREAMS = 200 };
	static struct chain chains[STREAMS];
	_Atomic bool stop = false;
	pthread_t thread;

	for (unsigned i = 0; i < STREAMS; i++) {
		CUstream stream;

		OK(cuStreamCreate(&stream, i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
		chain_open(&chains[i], stream);
	}
	pthread_create(&thread, NULL, restless, &stop);
	for (uint32_t round = 0; round < 5; round++)
		for (unsigned i = 0; i < STREAMS; i++)
			chain_step(&chains[i], round, 2);
	OK(cuCtxSynchronize());
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < STREAMS; i++) {
		CUstream stream = chains[i].stream;

		chain_close(&chains[i]);
		OK(cuStreamDestroy_v2(stream));
	}
}

/* Nobody ever waits: the work is done all the same, stops and all. */
static void a_program_that_never_synchronises(void **state)
{
	_Atomic bool stop = false;
	CUstream stream;
	pthread_t thread;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	pthread_create(&thread, NULL, restless, &stop);
	for (uint32_t i = 0; i < 100; i++)
		chain_step(&c, i, 20);
	for (unsigned i = 0; chain_ran(&c) < 100 * BLOCKS && i < 20000; i++)
		usleep(1000);
	assert_int_equal(chain_ran(&c), 100 * BLOCKS);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	chain_close(&c);
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

/* --- */

static void make_things(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUgraphNode root, branch;
	CUgraph graph;

	OK(cuMemAlloc_v2(&memory, 4096));
	OK(cuMemAlloc_v2(&other, 4096));
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
	struct tally_buffer image = {0};
	struct tally_error error = {0};
	struct tally_client_options options = {.priority = 1000, .name = "rival"};
	CUdevice ordinal;

	OK(cuInit(0));
	OK(cuDeviceGet(&ordinal, 0));
	OK(cuDevicePrimaryCtxRetain(&context, ordinal));
	OK(cuCtxSetCurrent(context));
	assert_true(tally_file_read(TALLY_BUILD_DIR "/tests/interpose/guard_kernels.so", &image,
				    &error));
	OK(cuModuleLoadData(&module, image.data));
	tally_buffer_free(&image);
	/* As if the compiler had made it from something. */
	struct tally_module *m = tally_module_add(module, false, NULL);
	assert_non_null(m);
	atomic_store(&m->variants, module);
	tally_module_is(m, TALLY_MODULE_STOPPABLE, TALLY_WHY_NONE);
	OK(cuModuleGetFunction(&step, module, "step"));
	OK(cuModuleGetFunction(&empty, module, "empty"));
	device = tally_device_of(ordinal);
	assert_non_null(device);
	assert_non_null(atomic_load(&device->client));
	memcpy(options.device, device->uuid, sizeof options.device);
	rival = tally_client_connect(&options, &error);
	assert_non_null(rival);
	make_things();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest best_effort[] = {
		cmocka_unit_test(doors_wait_behind_what_was_stopped),
		cmocka_unit_test(graphs_stop_between_nodes),
		cmocka_unit_test(changes_of_graphs_are_seen),
		cmocka_unit_test(changed_parameters_are_used),
		cmocka_unit_test(whole_graphs_wait_at_the_gate),
		cmocka_unit_test(captures_are_left_alone),
		cmocka_unit_test(a_stream_begins_with_a_capture),
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
