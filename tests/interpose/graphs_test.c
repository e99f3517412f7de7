/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of a program that may be stopped: between and inside their nodes where they are launched
 * node by node, changes of executable graphs, functions in them, captures. */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		nodes[i] = last = chain_node(c, graph, step, first + i, us, &last, i != 0);
		if (i == 2)
			OK(cuGraphAddMemcpyNode(&last, graph, &last, 1, some_copy(), context));
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

/* Waits until no block has ended for a while, though nobody synchronises. Returns the blocks that
 * ran. */
static uint32_t settled(const struct chain *c)
{
	uint32_t ran;

	do {
		ran = chain_ran(c);
		usleep(50 * LONG_US);
	} while (chain_ran(c) != ran);
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
	/* Again where a busy machine let the graph come to its end first. */
	for (unsigned rounds = 0, stopped = 0; stopped < 3; rounds++) {
		uint32_t before = chain_ran(&c);

		assert_in_range(rounds, 0, 60);
		pthread_create(&thread, NULL, launch_graph, &l);
		UNTIL(chain_ran(&c) >= before + BLOCKS + 3);
		tally_client_set_active(rival, true);
		ran = settled(&c);
		stopped += ran < before + NODES * BLOCKS;
		tally_client_set_active(rival, false);
		pthread_join(thread, NULL);
		OK(l.result);
		OK(cuStreamSynchronize(l.stream));
		chain_expect_graph(&c, 10);
	}
	OK(cuGraphExecDestroy(l.exec));
	OK(cuCtxSynchronize());
	chain_check(&c);
	OK(cuStreamDestroy_v2(l.stream));
}

/* One executable graph in two streams, its parameters changed in every way there is, a rival that
 * comes and goes: each launch does what the graph said when it was launched, and after the one
 * before. */
static void changes_of_graphs_are_seen(void **state)
{
	CUgraphNode nodes[NODES], first[NODES];
	CUgraphExecUpdateResultInfo info;
	CUstream streams[2];
	CUgraphExec exec;
	CUgraph graph, next;
	struct chain c;

	for (unsigned i = 0; i < 2; i++)
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	rival_begins(3);
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
		OK(cuCtxSynchronize());
		chain_check(&c);
	}
	rival_ends();
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
	OK(cuCtxSynchronize());
	chain_check(&c);
	OK(cuCtxSynchronize());
	chain_check(&d);
	OK(cuStreamDestroy_v2(stream));
}

struct meeting {
	_Atomic bool launched, met;
};

static void wait_for_the_launcher(void *data)
{
	struct meeting *m = data;

	for (uint64_t end = tally_now() + PATIENCE_S * UINT64_C(1000000000);
	     !atomic_load(&m->launched) && !steps_waited(end);)
		;
	atomic_store(&m->met, atomic_load(&m->launched));
}

/* A function inside a graph may wait for what the program does once it has launched the graph. */
static void functions_of_graphs_may_wait_for_the_launcher(void **state)
{
	struct meeting m = {0};
	CUDA_HOST_NODE_PARAMS call = {wait_for_the_launcher, &m};
	CUgraphNode last;
	CUgraphExec exec;
	CUstream stream;
	struct chain c;
	CUgraph graph;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	OK(cuGraphCreate(&graph, 0));
	last = chain_node(&c, graph, step, 0, LONG_US, NULL, 0);
	OK(cuGraphAddHostNode(&last, graph, &last, 1, &call));
	for (uint32_t i = 1; i < NODES; i++)
		last = chain_node(&c, graph, step, i, LONG_US, &last, 1);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphLaunch(exec, stream));
	atomic_store(&m.launched, true);
	chain_expect_graph(&c, 0);
	OK(cuStreamSynchronize(stream));
	assert_true(atomic_load(&m.met));
	OK(cuGraphExecDestroy(exec));
	OK(cuCtxSynchronize());
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

/* Work that is captured is not held up, and comes out right under a restless rival. */
static void captures_are_left_alone(void **state)
{
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	tally_client_set_active(rival, true);
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (uint32_t i = 0; i < NODES; i++)
		chain_step(&c, i, 100, false);
	OK(cuMemcpyAsync(other, memory, 8, stream));
	OK(cuStreamEndCapture(stream, &graph));
	tally_client_set_active(rival, false);
	memset(c.expected, 0, sizeof c.expected); /* nothing ran yet */
	c.launches = 0;
	assert_int_equal(chain_ran(&c), 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	rival_begins(3);
	for (unsigned i = 0; i < 20; i++) {
		OK(cuGraphLaunch(exec, stream));
		chain_expect_graph(&c, 0);
	}
	OK(cuStreamSynchronize(stream));
	rival_ends();
	OK(cuGraphExecDestroy(exec));
	OK(cuCtxSynchronize());
	chain_check(&c);
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

static CUgraphExec make_exec(struct chain *c, uint32_t first, uint32_t us)
{
	CUgraphNode nodes[NODES];
	CUgraph graph = make_graph(c, first, us, nodes);
	CUgraphExec exec;

	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

/* While threads are kept in launches of one graph, others can be made, changed and destroyed. */
static void a_stopped_graph_is_nobody_elses_business(void **state)
{
	struct launching l[2];
	pthread_t threads[2];
	CUgraphExec another;
	CUstream streams[2];
	struct chain c;

	for (unsigned i = 0; i < 2; i++)
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	chain_open(&c, streams[0]);
	another = make_exec(&c, 10, 5);
	l[0].exec = l[1].exec = make_exec(&c, 10, LONG_US);
	for (unsigned i = 0; i < 2; i++) {
		l[i].stream = streams[i];
		pthread_create(&threads[i], NULL, launch_graph, &l[i]);
	}
	UNTIL(chain_ran(&c) >= BLOCKS);
	tally_client_set_active(rival, true);
	settled(&c);
	/* Whatever of these waited would wait for the last line of this. */
	OK(cuGraphExecDestroy(another));
	another = make_exec(&c, 20, 5);
	OK(cuGraphExecDestroy(another));
	tally_client_set_active(rival, false);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		OK(l[i].result);
		chain_expect_graph(&c, 10);
	}
	OK(cuGraphExecDestroy(l[0].exec));
	OK(cuCtxSynchronize());
	chain_check(&c);
	for (unsigned i = 0; i < 2; i++)
		OK(cuStreamDestroy_v2(streams[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_stop_between_nodes),
		cmocka_unit_test(changes_of_graphs_are_seen),
		cmocka_unit_test(changed_parameters_are_used),
		cmocka_unit_test(functions_of_graphs_may_wait_for_the_launcher),
		cmocka_unit_test(captures_are_left_alone),
		cmocka_unit_test(a_stream_begins_with_a_capture),
		cmocka_unit_test(a_stopped_graph_is_nobody_elses_business),
	};

	return cmocka_run_group_tests(tests, steps_setup, NULL);
}
