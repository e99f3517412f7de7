/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture as the API has it: begin, end, questions, dependencies; see capture.h. */
#include <stdlib.h>

#include "backends/cpu/driver/capture_state.h"

/* --- the API --- */

static void delete_lost(void)
{
	engine_lock();
	struct graph *list = captures_lost;
	captures_lost = NULL;
	engine_unlock();
	while (list) {
		struct graph *next = list->next_lost;
		graph_delete(list);
		list = next;
	}
}

/* Begins a capture into `graph` after `count` of its nodes; NULL: into a new one. */
static CUresult begin(CUstream handle, CUstreamCaptureMode mode, struct graph *graph,
		      const CUgraphNode *dependencies, size_t count)
{
	static uint64_t ids;
	struct stream *stream;
	CUresult error = stream_resolve(handle, &stream);

	if (error)
		return error;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	delete_lost();
	struct capture *c = calloc(1, sizeof *c);
	struct graph *made = graph ? NULL : graph_new();
	if (!c || (!graph && !made)) {
		free(c);
		graph_delete(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	engine_lock();
	*c = (struct capture){.id = ++ids,
			      .graph = graph ? graph : made,
			      .given = graph,
			      .mode = mode,
			      .thread = pthread_self(),
			      .origin = stream,
			      .next = captures};
	if (stream->capturing)
		error = CUDA_ERROR_ILLEGAL_STATE;
	else if (!capture_join(c, stream, (struct graph_node *const *)dependencies, count))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!error) {
		captures = c;
		atomic_fetch_add(&captures_active, 1);
	}
	engine_unlock();
	if (error) {
		free(c);
		graph_delete(made);
	}
	return error;
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	return begin(hStream, mode, NULL, NULL, 0);
}

CUresult cuStreamBeginCapture(CUstream hStream)
{
	return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
				     const CUgraphNode *dependencies,
				     const CUgraphEdgeData *dependencyData, size_t numDependencies,
				     CUstreamCaptureMode mode)
{
	struct graph_node *node;
	struct graph *graph;
	CUresult error = graph_check(hGraph, &graph);

	if (!error && numDependencies && !dependencies)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = graph_check_edges(dependencyData, numDependencies);
	for (size_t i = 0; i < numDependencies && !error; i++) {
		error = graph_node_check(dependencies[i], &node);
		if (!error && node->graph != graph)
			error = CUDA_ERROR_INVALID_VALUE;
	}
	return error ? error : begin(hStream, mode, graph, dependencies, numDependencies);
}

/* Whether every stream of the capture ends in something that the origin's end depends on. */
static bool joined(const struct capture *c)
{
	const struct graph *graph = c->graph;
	struct nodes reached = {0};
	bool ok = true;

	for (size_t i = 0; i < graph->count; i++)
		graph->nodes[i]->mark = 0;
	const struct nodes *tail = &c->origin->capturing->tail;
	for (size_t i = 0; i < tail->count; i++) {
		tail->list[i]->mark = 1;
		ok = ok && nodes_add(&reached, tail->list[i]);
	}
	/* Nodes are marked before they come into the list, so each comes once. */
	for (size_t i = 0; i < reached.count && ok; i++)
		for (size_t j = 0; j < reached.list[i]->count && ok; j++) {
			struct graph_node *before = reached.list[i]->before[j];
			if (before->mark)
				continue;
			before->mark = 1;
			ok = nodes_add(&reached, before);
		}
	for (const struct capturing *m = c->streams; m && ok; m = m->next)
		for (size_t i = 0; i < m->tail.count && ok; i++)
			ok = m->tail.list[i]->mark;
	free(reached.list);
	return ok;
}

static CUresult may_end(const struct stream *stream)
{
	const struct capture *c = stream->capturing ? stream->capturing->capture : NULL;

	if (!c)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (c->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	struct graph *graph = NULL, *unwanted = NULL;
	struct stream *stream;
	CUresult error = stream_resolve(hStream, &stream);

	if (error)
		return error;
	if (!phGraph)
		return CUDA_ERROR_INVALID_VALUE;
	*phGraph = NULL;
	engine_lock();
	error = may_end(stream);
	if (!error) {
		struct capture *c = stream->capturing->capture;
		graph = c->graph;
		if (c->invalid)
			error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		else if (!joined(c))
			error = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		if (error && !c->given)
			unwanted = graph;
		capture_end(c);
	} else if (error == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
		stream->capturing->capture->invalid = true;
	}
	engine_unlock();
	graph_delete(unwanted);
	if (!error)
		*phGraph = (CUgraph)graph;
	return error;
}

static CUstreamCaptureStatus status_of(const struct stream *stream)
{
	if (!stream->capturing)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return stream->capturing->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
						   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Nobody may ask about the legacy stream while one that it waits for is captured. */
static bool legacy_blocked(const struct stream *stream)
{
	if (!stream->legacy)
		return false;
	for (struct stream *s = stream->context->streams; s; s = s->next)
		if (s->capturing && !(s->flags & CU_STREAM_NON_BLOCKING))
			return true;
	return false;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
				   cuuint64_t *id_out, CUgraph *graph_out,
				   const CUgraphNode **dependencies_out,
				   const CUgraphEdgeData **edgeData_out,
				   size_t *numDependencies_out)
{
	struct stream *stream;
	CUresult error = stream_resolve(hStream, &stream);

	if (error)
		return error;
	if (!captureStatus_out || (edgeData_out && !dependencies_out))
		return CUDA_ERROR_INVALID_VALUE;
	engine_lock();
	struct capturing *member = stream->capturing;
	*captureStatus_out = status_of(stream);
	if (legacy_blocked(stream))
		error = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (!error && member && !member->capture->invalid) {
		if (id_out)
			*id_out = member->capture->id;
		if (graph_out)
			*graph_out = (CUgraph)member->capture->graph;
		if (dependencies_out)
			*dependencies_out = (const CUgraphNode *)member->tail.list;
		if (numDependencies_out)
			*numDependencies_out = member->tail.count;
		if (edgeData_out) {
			free(member->edges);
			member->edges = calloc(member->tail.count + 1, sizeof *member->edges);
			*edgeData_out = member->edges;
			error = member->edges ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	engine_unlock();
	return error;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
				   cuuint64_t *id_out, CUgraph *graph_out,
				   const CUgraphNode **dependencies_out,
				   size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
					 dependencies_out, NULL, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
				cuuint64_t *id_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL,
					 NULL);
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus, NULL, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
					      const CUgraphEdgeData *dependencyData,
					      size_t numDependencies, unsigned int flags)
{
	struct stream *stream;
	struct graph_node *node;
	CUresult error = stream_resolve(hStream, &stream);

	if (!error &&
	    ((numDependencies && !dependencies) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = graph_check_edges(dependencyData, numDependencies);
	for (size_t i = 0; i < numDependencies && !error; i++)
		error = graph_node_check(dependencies[i], &node);
	if (error)
		return error;
	engine_lock();
	struct capturing *member = stream->capturing;
	if (!member || member->capture->invalid) {
		error = member ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_ILLEGAL_STATE;
	} else {
		if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
			member->tail.count = 0;
		if (!nodes_insert_all(&member->tail, (struct graph_node *const *)dependencies,
				      numDependencies))
			error = CUDA_ERROR_OUT_OF_MEMORY;
	}
	engine_unlock();
	return error;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
					   size_t numDependencies, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies,
						    flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	REQUIRE_INIT();
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode old = capture_thread_mode;
	capture_thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
