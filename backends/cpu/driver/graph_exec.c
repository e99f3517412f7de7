/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: from a graph to steps in lanes, and launching them; see graph.h. */
#include "backends/cpu/driver/graph_exec.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/capture.h"

#define LANES	   16	/* branches that run side by side, at most */
#define LANE_DEPTH 8192 /* operations in a lane before a launch waits for room */

/* What one node does; a child graph has a step before it and one behind it that do nothing. */
struct step {
	struct graph_node *node; /* NULL: nothing */
	unsigned lane;
	size_t first, count; /* of links: the steps that it follows */
};

struct graph_exec {
	cuuint64_t flags;
	struct graph *graph;
	struct step *steps;
	size_t count, capacity;
	size_t *links;
	size_t link_count, link_capacity;
	unsigned lanes_used;

	pthread_mutex_t lock; /* one launch at a time */
	struct context *context;
	uint64_t context_id;
	struct stream *lanes[LANES];
	struct point last; /* the end of the launch before */
};

static CUresult check(CUgraphExec handle, struct graph_exec **exec)
{
	REQUIRE_INIT();
	*exec = (struct graph_exec *)handle;
	return handle_is(handle, HANDLE_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- from nodes to steps --- */

static bool add_link(struct graph_exec *exec, size_t step)
{
	if (exec->link_count == exec->link_capacity) {
		size_t more = exec->link_capacity ? 2 * exec->link_capacity : 32;
		size_t *grown = realloc(exec->links, more * sizeof *grown);
		if (!grown)
			return false;
		exec->links = grown;
		exec->link_capacity = more;
	}
	exec->links[exec->link_count++] = step;
	return true;
}

/* A step whose links are those added since `first`. */
static bool add_step(struct graph_exec *exec, struct graph_node *node, size_t first)
{
	if (exec->count == exec->capacity) {
		size_t more = exec->capacity ? 2 * exec->capacity : 32;
		struct step *grown = realloc(exec->steps, more * sizeof *grown);
		if (!grown)
			return false;
		exec->steps = grown;
		exec->capacity = more;
	}
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

/* --- launching --- */

/* Whether the lanes are streams of this very context: its memory is used again. Lock held. */
static bool lanes_live(const struct graph_exec *exec)
{
	return exec->context && exec->context->id == exec->context_id;
}

static void drop_lanes(struct graph_exec *exec)
{
	engine_lock();
	bool live = lanes_live(exec);
	engine_unlock();
	for (unsigned i = 0; i < LANES && live; i++)
		if (exec->lanes[i])
			stream_remove(exec->lanes[i]);
	memset(exec->lanes, 0, sizeof exec->lanes);
	exec->context = NULL;
}

static CUresult have_lanes(struct graph_exec *exec, struct context *context)
{
	if (exec->context != context || !lanes_live(exec)) {
		drop_lanes(exec);
		exec->context = context;
		exec->context_id = context->id;
	}
	for (unsigned i = 0; i < exec->lanes_used; i++) {
		if (!exec->lanes[i])
			exec->lanes[i] = stream_add(context, CU_STREAM_NON_BLOCKING, 0);
		if (!exec->lanes[i])
			return CUDA_ERROR_OUT_OF_MEMORY;
		stream_make_room(exec->lanes[i], LANE_DEPTH);
	}
	return CUDA_SUCCESS;
}

/* The operations of one launch: those of step i are list[first[i]] to list[first[i + 1]]. */
struct launch_list {
	struct operation **list, *begin, *end;
	size_t *first;
	struct point *points; /* the end of each step */
	struct point *after;  /* scratch */
};

static void list_free(struct launch_list *l, size_t steps)
{
	if (l->list && l->first)
		for (size_t i = 0; i < l->first[steps]; i++)
			operation_free(l->list[i]);
	if (l->begin)
		operation_free(l->begin);
	if (l->end)
		operation_free(l->end);
}

static void list_free_arrays(struct launch_list *l)
{
	free(l->list);
	free(l->first);
	free(l->points);
	free(l->after);
}

static bool does_nothing(const struct step *step)
{
	return !step->node || step->node->disabled;
}

static unsigned operations_of(const struct step *step)
{
	return does_nothing(step) ? 1 : work_operation_count(&step->node->work);
}

static unsigned make_step(const struct graph_exec *exec, const struct step *step, int level,
			  struct operation **list)
{
	if (does_nothing(step)) {
		*list = marker_operation();
		return *list ? 1 : 0;
	}
	const struct work *work = &step->node->work;
	if (work->type == CU_GRAPH_NODE_TYPE_KERNEL && work->kernel.level >= 0 &&
	    exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
		level = work->kernel.level;
	return work_operations(work, level, list, WORK_OPERATIONS);
}

/* Everything that may fail for want of memory, before anything is queued. */
static bool make_list(const struct graph_exec *exec, struct launch_list *l, int level)
{
	size_t total = 0, most = LANES;

	for (size_t i = 0; i < exec->count; i++) {
		total += operations_of(&exec->steps[i]);
		if (exec->steps[i].count > most)
			most = exec->steps[i].count;
	}
	*l = (struct launch_list){
		.list = calloc(total + 1, sizeof(struct operation *)),
		.first = calloc(exec->count + 1, sizeof(size_t)),
		.points = malloc((exec->count + 1) * sizeof(struct point)),
		.after = malloc((most + 2) * sizeof(struct point)),
		.begin = marker_operation(),
		.end = marker_operation(),
	};
	if (!l->list || !l->first || !l->points || !l->after || !l->begin || !l->end ||
	    !engine_reserve(l->end, LANES))
		return false;
	l->end->follows = true;
	for (size_t i = 0; i < exec->count; i++) {
		const struct step *step = &exec->steps[i];
		unsigned made = make_step(exec, step, level, &l->list[l->first[i]]);

		l->first[exec->count] = l->first[i + 1] = l->first[i] + made;
		if (!made || !engine_reserve(l->list[l->first[i]], (unsigned)step->count + 2))
			return false;
	}
	return true;
}

/* Queues step i behind what it follows. Lock held. */
static void queue_step(struct graph_exec *exec, struct launch_list *l, size_t i, struct point begin)
{
	const struct step *step = &exec->steps[i];
	const struct work *work = step->node ? &step->node->work : NULL;
	struct stream *lane = exec->lanes[step->lane];
	unsigned count = 0;

	for (size_t j = 0; j < step->count; j++)
		l->after[count++] = l->points[exec->links[step->first + j]];
	if (!count)
		l->after[count++] = begin;
	if (work && !step->node->disabled && work->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		l->after[count++] = work->event->point;
	for (size_t k = l->first[i]; k < l->first[i + 1]; k++) {
		engine_queue(lane, l->list[k], l->after, count);
		count = 0;
	}
	l->points[i] = stream_end(lane);
	if (work && !step->node->disabled && work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		event_recorded_at(work->event, l->points[i]);
}

/* Lock held. */
static CUresult queue_list(struct graph_exec *exec, struct launch_list *l, struct stream *stream)
{
	if (context_failed(stream->context))
		return stream->context->error;
	if (!engine_queue(stream, l->begin, &exec->last, 1))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct point begin = stream_end(stream);
	for (size_t i = 0; i < exec->count; i++)
		queue_step(exec, l, i, begin);
	for (unsigned i = 0; i < exec->lanes_used; i++)
		l->after[i] = stream_end(exec->lanes[i]);
	engine_queue(stream, l->end, l->after, exec->lanes_used);
	exec->last = stream_end(stream);
	engine_look();
	return CUDA_SUCCESS;
}

/* What nodes need may have gone since they were made. */
static CUresult check_steps(const struct graph_exec *exec)
{
	CUresult error = CUDA_SUCCESS;

	for (size_t i = 0; i < exec->count && !error; i++)
		if (!does_nothing(&exec->steps[i]))
			error = work_check(&exec->steps[i].node->work);
	return error;
}

static CUresult launch(struct graph_exec *exec, struct stream *stream)
{
	struct launch_list l = {0};
	CUresult error;

	pthread_mutex_lock(&exec->lock);
	error = check_steps(exec);
	if (!error)
		error = have_lanes(exec, stream->context);
	if (!error && !make_list(exec, &l, stream->level))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!error) {
		stream_make_room(stream, LANE_DEPTH);
		engine_lock();
		error = queue_list(exec, &l, stream);
		engine_unlock();
	}
	if (error)
		list_free(&l, exec->count);
	list_free_arrays(&l);
	pthread_mutex_unlock(&exec->lock);
	return error;
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
	drop_lanes(exec); /* what was launched still runs */
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
		return launch(exec, stream);
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
