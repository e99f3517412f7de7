/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture; see capture.h. */
#include "backends/cpu/driver/capture.h"

#include <stdlib.h>
#include <string.h>

_Atomic unsigned captures_active;

/* A set of nodes. */
struct nodes {
	struct graph_node **list;
	size_t count, capacity;
};

struct capture {
	uint64_t id;
	struct graph *graph;
	bool given; /* the graph is the application's */
	bool invalid;
	CUstreamCaptureMode mode;
	pthread_t thread; /* that began it */
	struct stream *origin;
	struct capturing *streams;
	struct capture *next;
};

/* A stream's part in a capture. */
struct capturing {
	struct capture *capture;
	struct stream *stream;
	struct nodes tail;	/* what the stream's next work depends on */
	CUgraphEdgeData *edges; /* zeroes, as many as the tail has room */
	struct capturing *next;
};

struct captured_event {
	uint64_t id; /* of the capture */
	struct nodes nodes;
};

static struct capture *captures;
static struct graph *lost; /* of streams that went away: deleted when somebody may wait */
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool insert(struct nodes *nodes, struct graph_node *node)
{
	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->list[i] == node)
			return true;
	if (nodes->count == nodes->capacity) {
		size_t more = nodes->capacity ? 2 * nodes->capacity : 4;
		struct graph_node **grown = realloc(nodes->list, more * sizeof(*grown));
		if (!grown)
			return false;
		nodes->list = grown;
		nodes->capacity = more;
	}
	nodes->list[nodes->count++] = node;
	return true;
}

static bool insert_all(struct nodes *to, struct graph_node *const *list, size_t count)
{
	bool ok = true;

	for (size_t i = 0; i < count && ok; i++)
		ok = insert(to, list[i]);
	return ok;
}

static struct capture *find(uint64_t id)
{
	struct capture *c = captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

/* The stream comes into the capture. */
static bool join(struct capture *c, struct stream *stream, struct graph_node *const *tail,
		 size_t count)
{
	struct capturing *member = calloc(1, sizeof *member);

	if (!member || !insert_all(&member->tail, tail, count)) {
		free(member);
		return false;
	}
	member->capture = c;
	member->stream = stream;
	member->next = c->streams;
	c->streams = member;
	stream->capturing = member;
	return true;
}

static void free_member(struct capturing *member)
{
	member->stream->capturing = NULL;
	free(member->tail.list);
	free(member->edges);
	free(member);
}

/* Takes the capture apart; its graph is the caller's. */
static void end(struct capture *c)
{
	struct capture **link = &captures;

	while (c->streams) {
		struct capturing *next = c->streams->next;
		free_member(c->streams);
		c->streams = next;
	}
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	free(c);
	atomic_fetch_sub(&captures_active, 1);
}

static void make_invalid(struct capture *c)
{
	c->invalid = true;
}

/* Makes the captures of a context's blocking streams invalid, which its legacy stream would have to
 * wait for; whether there were any. */
static bool invalidate_blocking(const struct context *context)
{
	bool any = false;

	for (struct stream *s = context->streams; s; s = s->next)
		if (s->capturing && !(s->flags & CU_STREAM_NON_BLOCKING)) {
			make_invalid(s->capturing->capture);
			any = true;
		}
	return any;
}

CUresult capture_admit(struct stream *stream, bool *captured)
{
	CUresult error = CUDA_SUCCESS;

	*captured = false;
	if (!capture_any())
		return CUDA_SUCCESS;
	engine_lock();
	if (stream->capturing) {
		*captured = true;
		if (stream->capturing->capture->invalid)
			error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (stream->legacy && invalidate_blocking(stream->context)) {
		error = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	engine_unlock();
	return error;
}

CUresult capture_work(struct stream *stream, struct work *work)
{
	CUresult error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	struct graph_node *node;

	engine_lock();
	struct capturing *member = stream->capturing;
	work_settle(work, stream->context);
	if (member && !member->capture->invalid) {
		error = graph_add(member->capture->graph, work, member->tail.list,
				  member->tail.count, &node);
		if (!error) {
			member->tail.count = 0;
			if (!insert(&member->tail, node)) /* cannot fail but for an empty list */
				make_invalid(member->capture);
		} else {
			make_invalid(member->capture);
		}
	}
	engine_unlock();
	if (error)
		work_release(work);
	return error;
}

static CUresult invalidate(struct stream *stream, CUresult error)
{
	struct capture *c = stream->capturing->capture;

	if (c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	make_invalid(c);
	return error;
}

CUresult capture_refuse(struct stream *stream)
{
	CUresult error = CUDA_SUCCESS;

	engine_lock();
	if (stream->capturing)
		error = invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	engine_unlock();
	return error;
}

CUresult capture_forbids_wait(struct stream *stream)
{
	bool captured;

	if (!capture_any())
		return CUDA_SUCCESS;
	CUresult error = capture_refuse(stream);
	return error ? error : capture_admit(stream, &captured);
}

CUresult capture_forbids_context(struct context *context)
{
	CUresult error = CUDA_SUCCESS;

	if (!capture_any())
		return CUDA_SUCCESS;
	engine_lock();
	for (struct stream *s = context->streams; s; s = s->next)
		if (s->capturing) {
			make_invalid(s->capturing->capture);
			error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	engine_unlock();
	return error;
}

/* cuda.h at cuThreadExchangeStreamCaptureMode. */
static bool forbids(const struct capture *c)
{
	bool mine = pthread_equal(c->thread, pthread_self());

	if (c->invalid || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (mine)
		return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_forbids_unsafe(void)
{
	CUresult error = CUDA_SUCCESS;

	if (!capture_any())
		return CUDA_SUCCESS;
	engine_lock();
	for (struct capture *c = captures; c; c = c->next)
		if (forbids(c)) {
			make_invalid(c);
			error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	engine_unlock();
	return error;
}

/* --- events --- */

void captured_event_free(struct captured_event *captured)
{
	if (captured)
		free(captured->nodes.list);
	free(captured);
}

CUresult capture_record(struct stream *stream, struct event *event)
{
	struct captured_event *made = calloc(1, sizeof *made), *old = NULL;
	CUresult error = made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	engine_lock();
	struct capturing *member = stream->capturing;
	if (!error && (!member || member->capture->invalid))
		error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!error && !insert_all(&made->nodes, member->tail.list, member->tail.count))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!error) {
		made->id = member->capture->id;
		old = event->captured;
		event->captured = made;
		made = NULL;
	}
	engine_unlock();
	captured_event_free(made);
	captured_event_free(old);
	return error;
}

/* Both are there. */
static CUresult merge(struct stream *stream, const struct captured_event *captured,
		      struct capture *c)
{
	if (c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->capturing->capture != c) {
		make_invalid(c);
		return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	return insert_all(&stream->capturing->tail, captured->nodes.list, captured->nodes.count)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

bool capture_wait(struct stream *stream, struct event *event, CUresult *result)
{
	bool ours = true;

	engine_lock();
	const struct captured_event *captured = event->captured;
	struct capture *c = captured ? find(captured->id) : NULL;
	if (!captured && !stream->capturing) {
		ours = false;
	} else if (!captured) {
		*result = event->recorded ? invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
					  : CUDA_SUCCESS;
	} else if (!c) {
		*result = CUDA_ERROR_CAPTURED_EVENT; /* its capture has ended */
	} else if (stream->capturing) {
		*result = merge(stream, captured, c);
	} else if (c->invalid) {
		*result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (stream->legacy) {
		make_invalid(c);
		*result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else {
		*result = join(c, stream, captured->nodes.list, captured->nodes.count)
				  ? CUDA_SUCCESS
				  : CUDA_ERROR_OUT_OF_MEMORY;
	}
	engine_unlock();
	return ours;
}

void capture_lose_stream(struct stream *stream)
{
	struct capturing *member = stream->capturing;

	if (!member)
		return;
	struct capture *c = member->capture;
	make_invalid(c);
	if (c->origin == stream) {
		if (!c->given) {
			c->graph->next_lost = lost;
			lost = c->graph;
		}
		end(c);
		return;
	}
	struct capturing **link = &c->streams;
	while (*link != member)
		link = &(*link)->next;
	*link = member->next;
	free_member(member);
}

/* --- the API --- */

static void delete_lost(void)
{
	engine_lock();
	struct graph *list = lost;
	lost = NULL;
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
	else if (!join(c, stream, (struct graph_node *const *)dependencies, count))
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
		ok = ok && insert(&reached, tail->list[i]);
	}
	/* Nodes are marked before they come into the list, so each comes once. */
	for (size_t i = 0; i < reached.count && ok; i++)
		for (size_t j = 0; j < reached.list[i]->count && ok; j++) {
			struct graph_node *before = reached.list[i]->before[j];
			if (before->mark)
				continue;
			before->mark = 1;
			if (reached.count == reached.capacity)
				ok = insert(&reached, before);
			else
				reached.list[reached.count++] = before;
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
		end(c);
	} else if (error == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
		make_invalid(stream->capturing->capture);
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
		if (!insert_all(&member->tail, (struct graph_node *const *)dependencies,
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
	CUstreamCaptureMode old = thread_mode;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
