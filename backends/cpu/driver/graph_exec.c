/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: from a graph to steps in lanes; see graph.h. */
#include "backends/cpu/driver/graph_exec.h"

#include <stdlib.h>

#include "backends/cpu/driver/capture.h"
#include "base/grow.h"

static CUresult check(CUgraphExec handle, struct graph_exec **exec)
{
	REQUIRE_INIT();
	*exec = (struct graph_exec *)handle;
	return handle_is(handle, HANDLE_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- from nodes to steps --- */

static bool add_link(struct graph_exec *exec, size_t step)
{
	if (!TALLY_GROW(exec->links, exec->link_count))
		return false;
	exec->links[exec->link_count++] = step;
	return true;
}

/* A step whose links are those added since `first`. */
static bool add_step(struct graph_exec *exec, struct graph_node *node, size_t first)
{
	if (!TALLY_GROW(exec->steps, exec->count))
		return false;
	exec->steps[exec->count++] =
		(struct step){.node = node, .first = first, .count = exec->link_count - first};
	return true;
}

#define NO_STEP SIZE_MAX

/* Writes out `graph`, whose roots follow step `entry`. Each node's mark is its last step. */
static CUresult write_out(struct graph_exec *exec, const struct graph *graph, size_t entry)
{
	CUresult error;
	struct graph_node **order = graph_sort(graph, &error);
	size_t n = order ? graph->count : 0;

	for (size_t i = 0; i < n && !error; i++) {
		struct graph_node *node = order[i];
		size_t first = exec->link_count;
		bool child = node->work.type == CU_GRAPH_NODE_TYPE_GRAPH;
		bool ok = true;

		for (size_t j = 0; j < node->count && ok; j++)
			ok = add_link(exec, node->before[j]->mark);
		if (!node->count && entry != NO_STEP)
			ok = add_link(exec, entry);
		ok = ok && add_step(exec, child ? NULL : node, first);
		if (ok && child) {
			size_t enter = exec->count - 1;
			error = write_out(exec, node->work.child, enter);
			first = exec->link_count;
			ok = add_link(exec, enter);
			for (size_t j = 0; j < node->work.child->count && ok; j++)
				ok = add_link(exec, node->work.child->nodes[j]->mark);
			ok = ok && add_step(exec, NULL, first);
		}
		if (!ok)
			error = CUDA_ERROR_OUT_OF_MEMORY;
		node->mark = exec->count - 1;
	}
	free(order);
	return error;
}

/* A step goes on in the lane of one that it follows, where it is the first to; else it opens a lane
 * while there are any. */
static void choose_lanes(struct graph_exec *exec)
{
	size_t end[LANES];
	unsigned turn = 0;

	for (size_t i = 0; i < exec->count; i++) {
		struct step *step = &exec->steps[i];
		unsigned lane = LANES;

		for (size_t j = 0; j < step->count && lane == LANES; j++) {
			size_t before = exec->links[step->first + j];
			if (end[exec->steps[before].lane] == before)
				lane = exec->steps[before].lane;
		}
		if (lane == LANES)
			lane = exec->lanes_used < LANES ? exec->lanes_used++ : turn++ % LANES;
		step->lane = lane;
		end[lane] = i;
	}
}

static void exec_free(struct graph_exec *exec)
{
	if (!exec)
		return;
	graph_delete(exec->graph);
	free(exec->steps);
	free(exec->links);
	pthread_mutex_destroy(&exec->lock);
	handle_remove(exec, HANDLE_EXEC);
	free(exec);
}

static CUresult instantiate(CUgraphExec *result, CUgraph handle, cuuint64_t flags)
{
	static atomic_bool said;
	struct graph *graph;
	CUresult error = graph_check(handle, &graph);
	const cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
				 CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
				 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

	if (error)
		return error;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return driver_unsupported("graphs that the device launches", &said);
	if (!result || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	struct graph_exec *exec = calloc(1, sizeof *exec);
	if (!exec || !handle_add(exec, HANDLE_EXEC)) {
		free(exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->flags = flags;
	pthread_mutex_init(&exec->lock, NULL);
	exec->graph = graph_copy(graph);
	error = exec->graph ? write_out(exec, exec->graph, NO_STEP) : CUDA_ERROR_OUT_OF_MEMORY;
	if (error) {
		exec_free(exec);
		return error;
	}
	choose_lanes(exec);
	*result = (CUgraphExec)exec;
	return CUDA_SUCCESS;
}

/* --- the API --- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
				     unsigned long long flags)
{
	return instantiate(phGraphExec, hGraph, flags);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
			       char *logBuffer, size_t bufferSize)
{
	if (phErrorNode)
		*phErrorNode = NULL;
	if (logBuffer && bufferSize)
		*logBuffer = '\0';
	return instantiate(phGraphExec, hGraph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
			    char *logBuffer, size_t bufferSize)
{
	return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	if (!instantiateParams)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult error = instantiate(phGraphExec, hGraph, instantiateParams->flags);
	instantiateParams->hErrNode_out = NULL;
	instantiateParams->result_out = error == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
					: error == CUDA_ERROR_INVALID_VALUE
						? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
						: CUDA_GRAPH_INSTANTIATE_ERROR;
	return error;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	struct graph_exec *exec;
	CUresult error = check(hGraphExec, &exec);

	if (!error && !flags)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*flags = exec->flags;
	return error;
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	struct graph_exec *exec;
	CUresult error = check(hGraphExec, &exec);

	if (error)
		return error;
	graph_exec_drop_lanes(exec); /* what was launched still runs */
	exec_free(exec);
	return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	struct graph_exec *exec;
	struct stream *stream;
	CUresult error = check(hGraphExec, &exec);

	return error ? error : stream_resolve(hStream, &stream); /* there is nowhere to bring it */
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	struct graph_exec *exec;
	struct stream *stream;
	bool captured = false;
	CUresult error = check(hGraphExec, &exec);

	if (!error)
		error = capture_stream(hStream, &stream, &captured);
	if (error)
		return error;
	if (!captured)
		return graph_exec_launch(exec, stream);
	struct work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = graph_copy(exec->graph)};
	return work.child ? capture_work(stream, &work) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult graph_exec_graph(CUgraphExec handle, struct graph **graph)
{
	struct graph_exec *exec;
	CUresult error = check(handle, &exec);

	if (!error)
		*graph = exec->graph;
	return error;
}
