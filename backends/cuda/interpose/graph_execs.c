/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs, from when they are made until they end; see graph_execs.h. */
#include "backends/cuda/interpose/graph_execs.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/graphs.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"

#define BUCKETS 256

static struct tally_exec *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool unseen;

void tally_graphs_unseen(void)
{
	atomic_store(&unseen, true);
}

void tally_graphs_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(buckets, 0, sizeof buckets);
}

static struct tally_exec **place_of(CUgraphExec handle)
{
	uintptr_t n = (uintptr_t)handle;
	struct tally_exec **place = &buckets[(n >> 4 ^ n >> 12) % BUCKETS];

	while (*place && (*place)->handle != handle)
		place = &(*place)->next;
	return place;
}

/* One user less: the last one frees it. No lock held. */
static void leave(struct tally_exec *e)
{
	unsigned left;

	pthread_mutex_lock(&lock);
	left = --e->users;
	pthread_mutex_unlock(&lock);
	if (left)
		return;
	tally_samples_forget_cost(&e->whole);
	tally_nodes_free(&e->list);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

void tally_exec_done(struct tally_exec *e)
{
	pthread_mutex_unlock(&e->lock);
	leave(e);
}

static struct tally_exec *make(CUgraphExec handle)
{
	struct tally_exec *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->handle = handle;
	e->users = 1;
	pthread_mutex_init(&e->lock, NULL);
	return e;
}

struct tally_exec *tally_exec_find(CUgraphExec handle, bool or_make)
{
	struct tally_exec **place, *e;

	pthread_mutex_lock(&lock);
	place = place_of(handle);
	if (!*place && or_make)
		*place = make(handle);
	e = *place;
	if (e)
		e->users++;
	pthread_mutex_unlock(&lock);
	if (!e)
		return NULL;
	pthread_mutex_lock(&e->lock);
	if (!e->gone)
		return e;
	tally_exec_done(e);
	return NULL;
}

bool tally_execs_read(void)
{
	return tally_process.config.guards && tally_process.config.graphs != TALLY_GRAPHS_WHOLE &&
	       !atomic_load(&unseen);
}

bool tally_exec_accepted(CUgraphExec handle, uint64_t *ns)
{
	const struct tally_exec *e;
	bool taken;

	pthread_mutex_lock(&lock);
	e = *place_of(handle);
	taken = e && atomic_load_explicit(&e->accepted, memory_order_relaxed);
	*ns = e ? tally_cost_ns(&e->whole, TALLY_UNIT_NS) : 0;
	pthread_mutex_unlock(&lock);
	return taken && !atomic_load(&unseen);
}

/* Nodes may belong to other contexts than the stream, which cannot be asked: with one context in
 * the process they do not. */
static CUcontext only_context(void)
{
	struct tally_device *d = atomic_load(&tally_process.devices);
	CUcontext context = NULL;

	if (!d || d->next)
		return NULL;
	tally_lock(d);
	if (d->contexts && !d->contexts->next)
		context = d->contexts->handle;
	tally_unlock(d);
	return context;
}

/* --- the lives of executable graphs --- */

/* It was taken out of the table: when this returns whoever had found it before is through, and the
 * table's share is given up. `event`: it is still there. */
static void end(struct tally_exec *e, bool event)
{
	pthread_mutex_lock(&e->lock);
	e->gone = true;
	if (event && e->end)
		TALLY_DRIVER(cuEventDestroy_v2)(e->end);
	tally_exec_done(e);
}

static void destroyed(CUgraphExec handle)
{
	struct tally_exec **place, *e;

	pthread_mutex_lock(&lock);
	place = place_of(handle);
	e = *place;
	if (e)
		*place = e->next;
	pthread_mutex_unlock(&lock);
	if (e)
		end(e, true);
}

void tally_graphs_forget(CUcontext context)
{
	struct tally_exec *ended = NULL, *e;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct tally_exec **place = &buckets[i]; (e = *place);) {
			if (e->context != context) {
				place = &e->next;
				continue;
			}
			*place = e->next;
			e->next = ended;
			ended = e;
		}
	pthread_mutex_unlock(&lock);
	/* The event went, or goes, with the context. */
	while ((e = ended)) {
		ended = e->next;
		end(e, false);
	}
}

static void instantiated(CUgraphExec handle, CUgraph graph)
{
	CUcontext context = tally_execs_read() ? only_context() : NULL;
	struct tally_nodes l;
	struct tally_exec *e;

	destroyed(handle); /* one that ended unseen */
	if (tally_process.config.guards)
		tally_nodes_wait(graph);
	if (!context || !tally_nodes_read(&l, graph))
		return;
	e = tally_exec_find(handle, true);
	if (!e) {
		tally_nodes_free(&l);
		return;
	}
	e->context = context;
	e->list = l;
	tally_exec_done(e);
}

/* Something about a node changed: from now on the driver alone knows what. */
static void changed(CUgraphExec handle)
{
	struct tally_exec *e = tally_exec_find(handle, false);

	if (!e)
		return;
	tally_nodes_free(&e->list);
	atomic_store(&e->accepted, false);
	tally_exec_done(e);
}

/* The nodes do what those of `graph` do. */
static void updated(CUgraphExec handle, CUgraph graph)
{
	struct tally_exec *e = tally_exec_find(handle, false);
	bool readable;

	if (!e)
		return;
	atomic_store(&e->whole.ns, 0);
	atomic_store(&e->accepted, false);
	readable = e->list.count;
	tally_nodes_free(&e->list);
	/* One that was changed node by node keeps what the update does not touch (what is switched
	 * off): it stays whole. */
	if (readable && !tally_nodes_read(&e->list, graph))
		e->list = (struct tally_nodes){0};
	tally_exec_done(e);
}

/* --- the hooks --- */

#define INSTANTIATE(symbol, parameters, arguments)                                                 \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = TALLY_REAL(symbol) arguments;                                    \
                                                                                                   \
		if (ours && !result)                                                               \
			instantiated(*phGraphExec, hGraph);                                        \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
INSTANTIATE(cuGraphInstantiateWithFlags,
	    (CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags),
	    (phGraphExec, hGraph, flags))
INSTANTIATE(cuGraphInstantiateWithParams,
	    (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	    (phGraphExec, hGraph, params))
INSTANTIATE(cuGraphInstantiateWithParams_ptsz,
	    (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	    (phGraphExec, hGraph, params))

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	CUresult result;

	/* First: the handle may be another graph's as soon as it is free. */
	if (tally_enter() && tally_on()) {
		tally_ahead_flush_all();
		destroyed(hGraphExec);
	}
	result = TALLY_REAL(cuGraphExecDestroy)(hGraphExec);
	tally_leave();
	return result;
}

#define UPDATE(symbol, parameters, arguments)                                                      \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result;                                                                   \
                                                                                                   \
		if (ours)                                                                          \
			tally_ahead_flush_all();                                                   \
		result = TALLY_REAL(symbol) arguments;                                             \
		if (ours && !result)                                                               \
			updated(hGraphExec, hGraph);                                               \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
UPDATE(cuGraphExecUpdate,
       (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
	CUgraphExecUpdateResult *updateResult_out),
       (hGraphExec, hGraph, hErrorNode_out, updateResult_out))
UPDATE(cuGraphExecUpdate_v2,
       (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo),
       (hGraphExec, hGraph, resultInfo))

#define CHANGE(flavour, symbol, parameters, arguments)                                             \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result;                                                                   \
                                                                                                   \
		if (ours)                                                                          \
			tally_ahead_flush_all();                                                   \
		result = TALLY_REAL(symbol) arguments;                                             \
		if (ours)                                                                          \
			changed(hGraphExec);                                                       \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
#define WORK(flavour, symbol, parameters, arguments)
#define FENCE(flavour, symbol, parameters, arguments)
#define WORK_AHEAD(flavour, symbol, parameters, arguments)
#define FENCE_AHEAD(flavour, symbol, parameters, arguments)
#define DRAIN(flavour, symbol, parameters, arguments)
#define FLUSH(flavour, symbol, parameters, arguments)
#define SETTING(flavour, symbol, parameters, arguments)
#define OWN(flavour, symbol, parameters, arguments)
#define HOOK(kind, base, version, since, flavour, stream, bytes, parameters, arguments)            \
	kind(flavour, base##version, parameters, arguments)
#include "backends/cuda/interpose/hooks.def"
