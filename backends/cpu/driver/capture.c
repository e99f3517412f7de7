/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture; see capture.h. */
#include "backends/cpu/driver/capture_state.h"

#include <stdlib.h>

#include "base/grow.h"

_Atomic unsigned captures_active;

struct captured_event {
	uint64_t id; /* of the capture */
	struct nodes nodes;
};

struct capture *captures;
struct graph *captures_lost;
_Thread_local CUstreamCaptureMode capture_thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool nodes_add(struct nodes *nodes, struct graph_node *node)
{
	if (!TALLY_GROW(nodes->list, nodes->count))
		return false;
	nodes->list[nodes->count++] = node;
	return true;
}

static bool insert(struct nodes *nodes, struct graph_node *node)
{
	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->list[i] == node)
			return true;
	return nodes_add(nodes, node);
}

bool nodes_insert_all(struct nodes *to, struct graph_node *const *list, size_t count)
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

bool capture_join(struct capture *c, struct stream *stream, struct graph_node *const *tail,
		  size_t count)
{
	struct capturing *member = calloc(1, sizeof *member);

	if (!member || !nodes_insert_all(&member->tail, tail, count)) {
		if (member)
			free(member->tail.list);
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

void capture_end(struct capture *c)
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

/* Makes the captures of a context's blocking streams invalid, which its legacy stream would have to
 * wait for; whether there were any. */
static bool invalidate_blocking(const struct context *context)
{
	bool any = false;

	for (struct stream *s = context->streams; s; s = s->next)
		if (s->capturing && !(s->flags & CU_STREAM_NON_BLOCKING)) {
			s->capturing->capture->invalid = true;
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
				member->capture->invalid = true;
		} else {
			member->capture->invalid = true;
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
	c->invalid = true;
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
			s->capturing->capture->invalid = true;
			error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	engine_unlock();
	return error;
}

/* cuda.h at cuThreadExchangeStreamCaptureMode. */
static bool forbids(const struct capture *c)
{
	bool mine = pthread_equal(c->thread, pthread_self());

	if (c->invalid || capture_thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (mine)
		return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return capture_thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
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
			c->invalid = true;
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
	if (!error && !nodes_insert_all(&made->nodes, member->tail.list, member->tail.count))
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
		c->invalid = true;
		return invalidate(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	return nodes_insert_all(&stream->capturing->tail, captured->nodes.list,
				captured->nodes.count)
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
		c->invalid = true;
		*result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else {
		*result = capture_join(c, stream, captured->nodes.list, captured->nodes.count)
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
	c->invalid = true;
	if (c->origin == stream) {
		if (!c->given) {
			c->graph->next_lost = captures_lost;
			captures_lost = c->graph;
		}
		capture_end(c);
		return;
	}
	struct capturing **link = &c->streams;
	while (*link != member)
		link = &(*link)->next;
	*link = member->next;
	free_member(member);
}
