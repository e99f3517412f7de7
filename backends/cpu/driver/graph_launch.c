/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: launching one; see graph.h. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/graph_exec.h"

#define LANE_DEPTH 8192 /* operations in a lane before a launch waits for room */

/* --- launching --- */

/* Whether the lanes are streams of this very context: its memory is used again. Lock held. */
static bool lanes_live(const struct graph_exec *exec)
{
	return exec->context && exec->context->id == exec->context_id;
}

void graph_exec_drop_lanes(struct graph_exec *exec)
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
		graph_exec_drop_lanes(exec);
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

CUresult graph_exec_launch(struct graph_exec *exec, struct stream *stream)
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
