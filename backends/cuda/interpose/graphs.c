/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs, launched node by node or whole; see graphs.h. */
#include "backends/cuda/interpose/graphs.h"

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/graph_execs.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/waits.h"

#define COPY_UNIT_NS 5000
/* What giving a node by itself takes beside its work, on an H200. */
#define NODE_NS 4000
/* Limits: what is longer is given node by node whatever that costs, to be stopped inside. */
#define LONG 10

/* `timed` (may be NULL): whether each of its kernels was. */
static uint64_t predicted(const struct tally_nodes *l, bool *timed)
{
	uint64_t ns = 0;
	bool all = true;

	for (size_t i = 0; i < l->count; i++) {
		const struct tally_node *n = &l->nodes[i];
		const struct tally_kernel *k;
		uint64_t ps = 0;

		if (n->type != CU_GRAPH_NODE_TYPE_KERNEL) {
			ns += COPY_UNIT_NS;
			continue;
		}
		k = tally_kernel_find(n->kernel.function);
		if (k)
			ps = atomic_load_explicit(&k->block_ps, memory_order_relaxed);
		all &= ps != 0;
		ns += ps ? ps * n->kernel.grid[0] * n->kernel.grid[1] * n->kernel.grid[2] / 1000
			 : TALLY_UNIT_NS;
	}
	if (timed)
		*timed = all;
	return ns;
}

/* Kernels of machine code are not timed inside of a graph: that it is long is reason enough. */
static void ask_for_all(const struct tally_nodes *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct tally_kernel *k;
		struct tally_module *m = NULL;

		if (l->nodes[i].type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		k = tally_kernel_find(l->nodes[i].kernel.function);
		if (k && (m = tally_kernel_unasked(k)))
			tally_opaque_ask(m);
	}
}

/* Kernels may get their stoppable form some time after the graph was made. A context is current. */
static bool stoppable(struct tally_nodes *l)
{
	bool unasked = false;

	for (size_t i = 0; i < l->count && !l->stoppable; i++) {
		struct tally_kernel *k;

		if (l->nodes[i].type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		k = tally_kernel_of(l->nodes[i].kernel.function);
		if (k && tally_kernel_unasked(k))
			unasked = true;
		else if (!k || !tally_kernel_stoppable(k))
			return false;
	}
	l->stoppable = !unasked;
	if (unasked && predicted(l, NULL) > tally_queue_limit())
		ask_for_all(l);
	return l->stoppable;
}

/*
 * What the depth limit would let through at once anyway is launched whole; and, up to ten times as
 * long, a graph whose nodes are so short that giving them one by one takes several times as long as
 * the graph. Kernels by themselves are timed with what is around them, which is most of it where
 * they are short: there the sum says little, and the graph is launched whole to learn how long it
 * takes. TALLY_LEVEL=guard asks for nodes whatever they cost.
 */
static bool worth_it(struct tally_exec *e)
{
	struct tally_nodes *l = &e->list;
	const uint64_t limit = tally_queue_limit(), around = l->count * NODE_NS,
		       whole_ns = tally_cost_ns(&e->whole, 0);
	bool timed;
	uint64_t sum;

	if (tally_process.config.graphs == TALLY_GRAPHS_NODES)
		return true;
	if (!stoppable(l))
		return false;
	sum = predicted(l, &timed);
	if (tally_process.config.level == TALLY_RUN_GUARD)
		return sum > limit;
	if (whole_ns)
		return whole_ns > limit && (whole_ns > LONG * limit || around <= 2 * whole_ns);
	if (timed && sum <= around + LONG * limit && sum <= 2 * around)
		return false;
	return sum > limit;
}

static CUresult launch_fill(const CUDA_MEMSET_NODE_PARAMS *p, CUstream stream)
{
	bool flat = p->height == 1;

	switch (p->elementSize) {
	case 1:
		return flat ? cuMemsetD8Async(p->dst, (unsigned char)p->value, p->width, stream)
			    : cuMemsetD2D8Async(p->dst, p->pitch, (unsigned char)p->value, p->width,
						p->height, stream);
	case 2:
		return flat ? cuMemsetD16Async(p->dst, (unsigned short)p->value, p->width, stream)
			    : cuMemsetD2D16Async(p->dst, p->pitch, (unsigned short)p->value,
						 p->width, p->height, stream);
	default:
		return flat ? cuMemsetD32Async(p->dst, p->value, p->width, stream)
			    : cuMemsetD2D32Async(p->dst, p->pitch, p->value, p->width, p->height,
						 stream);
	}
}

/* One node, through its own door. */
static CUresult launch_node(const struct tally_node *n, CUstream stream)
{
	switch (n->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuLaunchKernel(n->kernel.function, n->kernel.grid[0], n->kernel.grid[1],
				      n->kernel.grid[2], n->kernel.block[0], n->kernel.block[1],
				      n->kernel.block[2], n->kernel.shared, stream,
				      n->kernel.pointers, NULL);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuMemcpy3DAsync_v2(&n->copy, stream);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return launch_fill(&n->fill, stream);
	default:
		return cuLaunchHostFunc(stream, n->host.fn, n->host.userData);
	}
}

/* cuda.h: a launch comes behind earlier launches of the same executable graph in other streams. */
static void follow_last(struct tally_stream *s, struct tally_exec *e)
{
	if (!e->end || e->last == s->number)
		return;
	/* What was stopped and is started again comes behind the event. */
	tally_drain_context(s->context);
	TALLY_DRIVER(cuStreamWaitEvent)(s->handle, e->end, 0);
	if (tally_waits_event(e->end))
		tally_waits_begin(s);
}

static void remember_end(struct tally_stream *s, struct tally_exec *e)
{
	if (!e->end && TALLY_DRIVER(cuEventCreate)(&e->end, CU_EVENT_DISABLE_TIMING))
		return;
	TALLY_DRIVER(cuEventRecord)(e->end, s->handle);
	tally_waits_recorded(e->end, s);
	e->last = s->number;
}

/* Node by node. Its lock is held. */
static CUresult launch_nodes(struct tally_stream *s, struct tally_exec *e)
{
	CUresult result = CUDA_SUCCESS;

	/* The doors have to take it for the program's own calls, but give each at once: the graph
	 * has been taken ahead as a whole, or there was room for it. */
	tally_leave();
	for (size_t i = 0; i < e->list.count && !result; i++)
		result = launch_node(&e->list.nodes[i], s->handle);
	tally_enter();
	return result;
}

/* `cost`: how long that takes; NULL: nobody keeps it. No lock held. */
static CUresult launch_whole(struct tally_stream *s, CUgraphExec handle, struct tally_cost *cost)
{
	struct tally_piece piece = {.cost = cost};
	CUresult result;

	tally_fence(s);
	tally_queue_enter(s, &piece, cost ? tally_cost_ns(cost, TALLY_UNIT_NS) : TALLY_UNIT_NS,
			  cost != NULL);
	result = TALLY_REAL(cuGraphLaunch)(handle, s->handle);
	tally_report_trace(s->context->device->report, TALLY_TRACE_START, s->number, NULL, 0);
	tally_queue_leave(&piece, result == CUDA_SUCCESS);
	if (!result && atomic_load(&tally_process.waits))
		tally_waits_begin(s);
	return result;
}

/* Whether its launches may be some node by node, and then all have to be in order. While something
 * is captured no launch is guarded, and nothing would be gained. */
static bool ordered(const struct tally_exec *e)
{
	return e->context && tally_execs_read() && !atomic_load(&tally_process.captures);
}

/* Behind its last launch, where that has to be seen to; true: node by node. Its lock is held. */
static bool launch_ordered(struct tally_stream *s, struct tally_exec *e, CUresult *result)
{
	if (!ordered(e))
		return false;
	follow_last(s, e);
	if (!e->list.count || e->context != s->context->handle || !worth_it(e))
		return false;
	*result = launch_nodes(s, e);
	remember_end(s, e);
	return true;
}

CUresult tally_graph_launch(struct tally_stream *s, CUgraphExec handle)
{
	struct tally_exec *e = tally_exec_find(handle, true);
	CUresult result;
	bool nodes;

	if (!e)
		return launch_whole(s, handle, NULL);
	/* With this lock held nobody waits for what was taken ahead: it may be there again. */
	tally_giving |= TALLY_GIVING_NODE;
	nodes = launch_ordered(s, e, &result);
	tally_giving &= ~(unsigned)TALLY_GIVING_NODE;
	if (!nodes) {
		pthread_mutex_unlock(&e->lock);
		result = launch_whole(s, handle, &e->whole);
		pthread_mutex_lock(&e->lock);
		if (!result && !e->gone && ordered(e))
			remember_end(s, e);
	}
	if (!result)
		atomic_store_explicit(&e->accepted, true, memory_order_relaxed);
	tally_exec_done(e);
	return result;
}

static CUresult give(const struct tally_entry *entry)
{
	return cuGraphLaunch(*(const CUgraphExec *)entry->payload, entry->stream->handle);
}

bool tally_graph_ahead(struct tally_stream *s, CUgraphExec handle, CUresult *result)
{
	struct tally_device *d = s->context->device;
	struct tally_entry *e = NULL;
	uint64_t ns;

	if (tally_ahead_failed(d, result))
		return true;
	/* It follows its own earlier launches, in whatever stream they are. */
	if (tally_exec_accepted(handle, &ns) &&
	    (tally_ahead_busy(d) || tally_ahead_wanted(s, ns, true)))
		e = tally_ahead_begin(d, s, sizeof handle);
	if (!e) {
		tally_ahead_flush_all();
		return false;
	}
	*(CUgraphExec *)e->payload = handle;
	tally_report_trace(d->report, TALLY_TRACE_LAUNCH, s->number, NULL, 0);
	tally_ahead_commit(d, e, give);
	*result = CUDA_SUCCESS;
	return true;
}
