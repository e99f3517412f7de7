/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs, read and launched node by node; see graphs.h. */
#include "backends/cuda/interpose/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/waits.h"

#define MOST_NODES   65536
#define MOST_DEPTH   8 /* child graphs in child graphs */
#define MOST_PARAMS  4096
#define COPY_UNIT_NS 5000

struct node {
	CUgraphNodeType type;
	union {
		struct {
			CUfunction function;
			unsigned grid[3], block[3], shared;
			void **pointers; /* the parameters' bytes follow */
		} kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
	};
};

/* The nodes of one graph, in order. */
struct list {
	struct node *nodes;
	size_t count, capacity;
	bool chain;	/* each follows the one before */
	bool calls;	/* a function of the program has something behind it */
	bool stoppable; /* every kernel is known to have a stoppable form */
};

/* An executable graph that can be launched node by node. */
struct exec {
	CUgraphExec handle;
	struct exec *next;
	CUcontext context;
	unsigned users;	      /* the table and who holds or waits for the lock: the table's lock */
	pthread_mutex_t lock; /* what follows; held during a launch */
	bool gone;	      /* it is in the table no more */
	struct list list;
	CUevent end;   /* behind the last launch */
	uint32_t last; /* that launch's stream, by its number: handles are used again, and each
			* thread calls its default stream the same */
};

#define BUCKETS 256
static struct exec *buckets[BUCKETS];
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

static struct exec **place_of(CUgraphExec handle)
{
	uintptr_t n = (uintptr_t)handle;
	struct exec **place = &buckets[(n >> 4 ^ n >> 12) % BUCKETS];

	while (*place && (*place)->handle != handle)
		place = &(*place)->next;
	return place;
}

static void list_free(struct list *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->nodes[i].type == CU_GRAPH_NODE_TYPE_KERNEL)
			free(l->nodes[i].kernel.pointers);
	free(l->nodes);
	*l = (struct list){0};
}

/* One user less: the last one frees it. No lock held. */
static void leave(struct exec *e)
{
	unsigned left;

	pthread_mutex_lock(&lock);
	left = --e->users;
	pthread_mutex_unlock(&lock);
	if (left)
		return;
	list_free(&e->list);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static void done(struct exec *e)
{
	pthread_mutex_unlock(&e->lock);
	leave(e);
}

/* The record with its lock held until done(), or NULL. Whoever launches it may have it for as long
 * as the program is stopped: nobody waits for that with the table's lock. */
static struct exec *find(CUgraphExec handle)
{
	struct exec *e;

	pthread_mutex_lock(&lock);
	e = *place_of(handle);
	if (e)
		e->users++;
	pthread_mutex_unlock(&lock);
	if (!e)
		return NULL;
	pthread_mutex_lock(&e->lock);
	if (!e->gone)
		return e;
	done(e);
	return NULL;
}

/* --- reading --- */

static struct node *add(struct list *l, CUgraphNodeType type)
{
	if (l->count == l->capacity) {
		size_t more = l->capacity ? 2 * l->capacity : 16;
		struct node *grown =
			more <= MOST_NODES ? realloc(l->nodes, more * sizeof *grown) : NULL;

		if (!grown)
			return NULL;
		l->nodes = grown;
		l->capacity = more;
	}
	if (l->count && l->nodes[l->count - 1].type == CU_GRAPH_NODE_TYPE_HOST)
		l->calls = true;
	l->nodes[l->count] = (struct node){.type = type};
	return &l->nodes[l->count++];
}

static const void *packed_of(void **extra)
{
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2)
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			return extra[1];
	return NULL;
}

/* A copy of the parameters, which belong to the graph: pointers and bytes in one allocation. */
static void **copy_parameters(CUfunction function, void **list, void **extra)
{
	const uint8_t *packed = list ? NULL : packed_of(extra);
	size_t offset, size, bytes = 0;
	unsigned count = 0;
	CUresult result;
	void **copy;

	for (;; count++) {
		result = TALLY_DRIVER(cuFuncGetParamInfo)(function, count, &offset, &size);
		if (result || count == MOST_PARAMS)
			break;
		bytes += (size + 15) & ~(size_t)15;
	}
	/* Behind the last one the index is invalid. Anything else is a driver that does not tell.
	 */
	if (result != CUDA_ERROR_INVALID_VALUE || (count && !list && !packed))
		return NULL;
	size_t head = (count * sizeof(void *) + 15) & ~(size_t)15;
	copy = malloc(head + bytes + 16);
	uint8_t *to = (uint8_t *)copy + head;
	for (unsigned i = 0; copy && i < count; i++) {
		TALLY_DRIVER(cuFuncGetParamInfo)(function, i, &offset, &size);
		memcpy(to, packed ? packed + offset : list[i], size);
		copy[i] = to;
		to += (size + 15) & ~(size_t)15;
	}
	return copy;
}

/* Attributes under which the launch door would do something else, or with which the device itself
 * may change the node. */
static bool plain(CUgraphNode node)
{
	CUkernelNodeAttrValue v;

	if (!TALLY_DRIVER(cuGraphKernelNodeGetAttribute)(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
							 &v) &&
	    v.cooperative)
		return false;
	if (!TALLY_DRIVER(cuGraphKernelNodeGetAttribute)(
		    node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &v) &&
	    v.clusterDim.x * v.clusterDim.y * v.clusterDim.z > 1)
		return false;
	return TALLY_DRIVER(cuGraphKernelNodeGetAttribute)(
		       node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &v) ||
	       !v.deviceUpdatableKernelNode.deviceUpdatable;
}

static bool read_kernel(struct list *l, CUgraphNode handle)
{
	struct node *n = add(l, CU_GRAPH_NODE_TYPE_KERNEL);
	CUDA_KERNEL_NODE_PARAMS p = {0};

	if (!n || TALLY_DRIVER(cuGraphKernelNodeGetParams_v2)(handle, &p) || !p.func ||
	    !plain(handle))
		return false;
	n->kernel.function = p.func;
	n->kernel.shared = p.sharedMemBytes;
	memcpy(n->kernel.grid, (unsigned[]){p.gridDimX, p.gridDimY, p.gridDimZ},
	       sizeof n->kernel.grid);
	memcpy(n->kernel.block, (unsigned[]){p.blockDimX, p.blockDimY, p.blockDimZ},
	       sizeof n->kernel.block);
	n->kernel.pointers = copy_parameters(p.func, p.kernelParams, p.extra);
	return n->kernel.pointers;
}

/* Whether the driver knows the memory. Pageable memory is read and written when a graph runs, but
 * when an ordinary copy is given to the driver. */
static bool known(CUmemorytype type, const void *host, CUdeviceptr device)
{
	CUmemorytype found;

	if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_UNIFIED)
		return true;
	return !TALLY_DRIVER(cuPointerGetAttribute)(&found, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
						    type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)host
									       : device);
}

static bool read_copy(struct list *l, CUgraphNode handle)
{
	struct node *n = add(l, CU_GRAPH_NODE_TYPE_MEMCPY);

	return n && !TALLY_DRIVER(cuGraphMemcpyNodeGetParams)(handle, &n->copy) &&
	       known(n->copy.srcMemoryType, n->copy.srcHost, n->copy.srcDevice) &&
	       known(n->copy.dstMemoryType, n->copy.dstHost, n->copy.dstDevice);
}

static bool read_graph(struct list *l, CUgraph graph, unsigned depth);

static bool read_node(struct list *l, CUgraphNode handle, unsigned depth)
{
	CUgraphNodeType type;
	CUgraph child;
	struct node *n;

	if (TALLY_DRIVER(cuGraphNodeGetType)(handle, &type))
		return false;
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return read_kernel(l, handle);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return read_copy(l, handle);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		n = add(l, type);
		return n && !TALLY_DRIVER(cuGraphMemsetNodeGetParams)(handle, &n->fill);
	case CU_GRAPH_NODE_TYPE_HOST:
		n = add(l, type);
		return n && !TALLY_DRIVER(cuGraphHostNodeGetParams)(handle, &n->host);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return true;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return depth < MOST_DEPTH &&
		       !TALLY_DRIVER(cuGraphChildGraphNodeGetGraph)(handle, &child) &&
		       read_graph(l, child, depth + 1);
	default:
		return false;
	}
}

struct structure {
	CUgraphNode *nodes, *from, *to;
	size_t count, edges;
};

/* Edges that are more than an order (programmatic launches) are an error of this version's. */
static bool read_structure(struct structure *s, CUgraph graph)
{
	if (TALLY_DRIVER(cuGraphGetNodes)(graph, NULL, &s->count) ||
	    TALLY_DRIVER(cuGraphGetEdges)(graph, NULL, NULL, &s->edges) || s->count > MOST_NODES ||
	    s->edges > 16 * MOST_NODES)
		return false;
	s->nodes = calloc(s->count + 1, sizeof(CUgraphNode));
	s->from = calloc(s->edges + 1, sizeof(CUgraphNode));
	s->to = calloc(s->edges + 1, sizeof(CUgraphNode));
	return s->nodes && s->from && s->to &&
	       (!s->count || !TALLY_DRIVER(cuGraphGetNodes)(graph, s->nodes, &s->count)) &&
	       (!s->edges || !TALLY_DRIVER(cuGraphGetEdges)(graph, s->from, s->to, &s->edges));
}

static int compare(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

/* The place of a node in the sorted list. */
static size_t index_of(const struct structure *s, CUgraphNode node)
{
	const CUgraphNode *found = bsearch(&node, s->nodes, s->count, sizeof node, compare);

	return found ? (size_t)(found - s->nodes) : 0;
}

/*
 * Orders the nodes so that each comes behind those that it depends on; false when they go in a
 * circle. A chain is a graph in which at no time two nodes could run.
 */
static bool sort(struct structure *s, struct list *l)
{
	unsigned *waits = calloc(s->count + 1, sizeof *waits);
	CUgraphNode *order = calloc(s->count + 1, sizeof *order);
	size_t *first = calloc(s->count + 2, sizeof *first), *after = NULL;
	size_t done = 0, end = 0;
	bool ok = waits && order && first;

	qsort(s->nodes, s->count, sizeof *s->nodes, compare);
	after = ok ? calloc(s->edges + 1, sizeof *after) : NULL;
	ok = ok && after;
	for (size_t i = 0; ok && i < s->edges; i++)
		first[index_of(s, s->from[i]) + 2]++;
	for (size_t i = 2; ok && i < s->count + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; ok && i < s->edges; i++) {
		size_t to = index_of(s, s->to[i]);

		after[first[index_of(s, s->from[i]) + 1]++] = to;
		waits[to]++;
	}
	for (size_t i = 0; ok && i < s->count; i++)
		if (!waits[i])
			order[end++] = s->nodes[i];
	while (ok && done < end) {
		size_t i = index_of(s, order[done++]);

		if (end > done)
			l->chain = false;
		for (size_t e = first[i]; e < first[i + 1]; e++)
			if (!--waits[after[e]])
				order[end++] = s->nodes[after[e]];
	}
	ok = ok && end == s->count;
	if (ok)
		memcpy(s->nodes, order, s->count * sizeof *order);
	free(waits);
	free(order);
	free(first);
	free(after);
	return ok;
}

static bool read_graph(struct list *l, CUgraph graph, unsigned depth)
{
	struct structure s = {0};
	bool ok = read_structure(&s, graph) && sort(&s, l);

	for (size_t i = 0; ok && i < s.count; i++)
		ok = read_node(l, s.nodes[i], depth);
	free(s.nodes);
	free(s.from);
	free(s.to);
	return ok;
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

/* Nodes that may wait for the program, and events that are recorded, matter however the graph is
 * launched. */
static void look_for_waits(CUgraph graph, unsigned depth)
{
	CUgraphNode *nodes = NULL;
	CUgraphNodeType type;
	size_t count = 0;
	CUgraph child;
	CUevent event;

	if (!TALLY_DRIVER(cuGraphGetNodes)(graph, NULL, &count) && count)
		nodes = calloc(count, sizeof *nodes);
	if (!nodes || TALLY_DRIVER(cuGraphGetNodes)(graph, nodes, &count))
		count = 0;
	for (size_t i = 0; i < count; i++) {
		if (TALLY_DRIVER(cuGraphNodeGetType)(nodes[i], &type))
			continue;
		switch (type) {
		case CU_GRAPH_NODE_TYPE_HOST:
		case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
			tally_waits_begin(NULL);
			break;
		case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
			if (!TALLY_DRIVER(cuGraphEventRecordNodeGetEvent)(nodes[i], &event))
				tally_waits_in_graph(event);
			break;
		case CU_GRAPH_NODE_TYPE_GRAPH:
			if (depth < MOST_DEPTH &&
			    !TALLY_DRIVER(cuGraphChildGraphNodeGetGraph)(nodes[i], &child))
				look_for_waits(child, depth + 1);
			break;
		default:
			break;
		}
	}
	free(nodes);
}

static bool read(struct list *l, CUgraph graph)
{
	*l = (struct list){.chain = true};
	/* A function may wait for what the program does after the launch; but launches behind it
	 * would keep the program in the launch (the depth limit). */
	if (read_graph(l, graph, 0) &&
	    ((l->chain && !l->calls) || tally_process.config.graphs == TALLY_GRAPHS_NODES))
		return true;
	list_free(l);
	return false;
}

static bool reads_graphs(void)
{
	return tally_process.config.guards && tally_process.config.graphs != TALLY_GRAPHS_WHOLE &&
	       !atomic_load(&unseen);
}

/* --- the lives of executable graphs --- */

/* It was taken out of the table: when this returns whoever had found it before is through, and the
 * table's share is given up. `event`: it is still there. */
static void end(struct exec *e, bool event)
{
	pthread_mutex_lock(&e->lock);
	e->gone = true;
	if (event && e->end)
		TALLY_DRIVER(cuEventDestroy_v2)(e->end);
	done(e);
}

static void destroyed(CUgraphExec handle)
{
	struct exec **place, *e;

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
	struct exec *ended = NULL, *e;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct exec **place = &buckets[i]; (e = *place);) {
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
	CUcontext context = reads_graphs() ? only_context() : NULL;
	struct exec *e;
	struct list l;

	if (tally_process.config.guards)
		look_for_waits(graph, 0);
	if (!context || !read(&l, graph))
		return;
	e = calloc(1, sizeof *e);
	if (!e) {
		list_free(&l);
		return;
	}
	e->handle = handle;
	e->context = context;
	e->users = 1;
	e->list = l;
	pthread_mutex_init(&e->lock, NULL);
	destroyed(handle); /* one that ended unseen */
	pthread_mutex_lock(&lock);
	*place_of(handle) = e;
	pthread_mutex_unlock(&lock);
}

/* Something about a node changed: from now on the driver alone knows what. */
static void changed(CUgraphExec handle)
{
	struct exec *e = reads_graphs() ? find(handle) : NULL;

	if (!e)
		return;
	list_free(&e->list);
	done(e);
}

/* The nodes do what those of `graph` do. */
static void updated(CUgraphExec handle, CUgraph graph)
{
	struct exec *e = reads_graphs() ? find(handle) : NULL;
	bool readable;

	if (!e)
		return;
	readable = e->list.count;
	list_free(&e->list);
	/* One that was changed node by node keeps what the update does not touch (what is switched
	 * off): it stays whole. */
	if (readable && !read(&e->list, graph))
		e->list = (struct list){0};
	done(e);
}

/* --- launching --- */

static uint64_t predicted(const struct list *l)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct node *n = &l->nodes[i];
		const struct tally_kernel *k;
		uint64_t ps = 0;

		if (n->type != CU_GRAPH_NODE_TYPE_KERNEL) {
			ns += COPY_UNIT_NS;
			continue;
		}
		k = tally_kernel_find(n->kernel.function);
		if (k)
			ps = atomic_load_explicit(&k->block_ps, memory_order_relaxed);
		ns += ps ? ps * n->kernel.grid[0] * n->kernel.grid[1] * n->kernel.grid[2] / 1000
			 : TALLY_UNIT_NS;
	}
	return ns;
}

/* Kernels of machine code are not timed inside of a graph: that it is long is reason enough. */
static void ask_for_all(const struct list *l)
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
static bool stoppable(struct list *l)
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
	if (unasked && predicted(l) > tally_queue_limit())
		ask_for_all(l);
	return l->stoppable;
}

/* What the depth limit would let through at once anyway is launched whole. */
static bool worth_it(struct list *l)
{
	return tally_process.config.graphs == TALLY_GRAPHS_NODES ||
	       (stoppable(l) && predicted(l) > tally_queue_limit());
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
static CUresult launch_node(const struct node *n, CUstream stream)
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
static void follow_last(struct tally_stream *s, struct exec *e)
{
	if (!e->end || e->last == s->number)
		return;
	/* What was stopped and is started again comes behind the event. */
	tally_drain_context(s->context);
	TALLY_DRIVER(cuStreamWaitEvent)(s->handle, e->end, 0);
	if (tally_waits_event(e->end))
		tally_waits_begin(s);
}

static void remember_end(struct tally_stream *s, struct exec *e)
{
	if (!e->end && TALLY_DRIVER(cuEventCreate)(&e->end, CU_EVENT_DISABLE_TIMING))
		return;
	TALLY_DRIVER(cuEventRecord)(e->end, s->handle);
	tally_waits_recorded(e->end, s);
	e->last = s->number;
}

bool tally_graph_launch(struct tally_stream *s, CUgraphExec handle, CUresult *result)
{
	struct exec *e;
	bool nodes;

	/* While something is captured no launch is guarded, and nothing would be gained. */
	if (!reads_graphs() || atomic_load(&tally_process.captures))
		return false;
	e = find(handle);
	if (!e)
		return false;
	follow_last(s, e);
	nodes = e->list.count && e->context == s->context->handle && worth_it(&e->list);
	*result = CUDA_SUCCESS;
	/* The doors have to take it for the program's own calls. */
	tally_leave();
	for (size_t i = 0; nodes && i < e->list.count && !*result; i++)
		*result = launch_node(&e->list.nodes[i], s->handle);
	tally_enter();
	if (nodes)
		remember_end(s, e);
	done(e);
	return nodes;
}

void tally_graph_launched(struct tally_stream *s, CUgraphExec handle)
{
	struct exec *e =
		reads_graphs() && !atomic_load(&tally_process.captures) ? find(handle) : NULL;

	if (!e)
		return;
	remember_end(s, e);
	done(e);
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
	if (tally_enter() && tally_on())
		destroyed(hGraphExec);
	result = TALLY_REAL(cuGraphExecDestroy)(hGraphExec);
	tally_leave();
	return result;
}

#define UPDATE(symbol, parameters, arguments)                                                      \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = TALLY_REAL(symbol) arguments;                                    \
                                                                                                   \
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
		CUresult result = TALLY_REAL(symbol) arguments;                                    \
                                                                                                   \
		if (ours)                                                                          \
			changed(hGraphExec);                                                       \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
#define WORK(flavour, symbol, parameters, arguments)
#define FENCE(flavour, symbol, parameters, arguments)
#define DRAIN(flavour, symbol, parameters, arguments)
#define OWN(flavour, symbol, parameters, arguments)
#define HOOK(kind, base, version, since, flavour, stream, bytes, parameters, arguments)            \
	kind(flavour, base##version, parameters, arguments)
#include "backends/cuda/interpose/hooks.def"
