/* SPDX-License-Identifier: Apache-2.0 */
/* Reads graphs; see graph_nodes.h. */
#include "backends/cuda/interpose/graph_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "backends/cuda/interpose/waits.h"
#include "base/grow.h"

#define MOST_NODES  65536
#define MOST_DEPTH  8 /* child graphs in child graphs */
#define MOST_PARAMS 4096

void tally_nodes_free(struct tally_nodes *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->nodes[i].type == CU_GRAPH_NODE_TYPE_KERNEL)
			free(l->nodes[i].kernel.pointers);
	free(l->nodes);
	*l = (struct tally_nodes){0};
}

static struct tally_node *add(struct tally_nodes *l, CUgraphNodeType type)
{
	if (l->count == MOST_NODES || !TALLY_GROW(l->nodes, l->count))
		return NULL;
	if (l->count && l->nodes[l->count - 1].type == CU_GRAPH_NODE_TYPE_HOST)
		l->calls = true;
	l->nodes[l->count] = (struct tally_node){.type = type};
	return &l->nodes[l->count++];
}

/* A copy of the parameters, which belong to the graph: pointers and bytes in one allocation. */
static void **copy_parameters(CUfunction function, void **list, void **extra)
{
	const uint8_t *packed = list ? NULL : tally_packed_parameters(extra);
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

static bool read_kernel(struct tally_nodes *l, CUgraphNode handle)
{
	struct tally_node *n = add(l, CU_GRAPH_NODE_TYPE_KERNEL);
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

static bool read_copy(struct tally_nodes *l, CUgraphNode handle)
{
	struct tally_node *n = add(l, CU_GRAPH_NODE_TYPE_MEMCPY);

	return n && !TALLY_DRIVER(cuGraphMemcpyNodeGetParams)(handle, &n->copy) &&
	       known(n->copy.srcMemoryType, n->copy.srcHost, n->copy.srcDevice) &&
	       known(n->copy.dstMemoryType, n->copy.dstHost, n->copy.dstDevice);
}

static bool read_graph(struct tally_nodes *l, CUgraph graph, unsigned depth);

static bool read_node(struct tally_nodes *l, CUgraphNode handle, unsigned depth)
{
	CUgraphNodeType type;
	CUgraph child;
	struct tally_node *n;

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
static bool sort(struct structure *s, struct tally_nodes *l)
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

static bool read_graph(struct tally_nodes *l, CUgraph graph, unsigned depth)
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

void tally_nodes_wait(CUgraph graph)
{
	look_for_waits(graph, 0);
}

bool tally_nodes_read(struct tally_nodes *l, CUgraph graph)
{
	*l = (struct tally_nodes){.chain = true};
	/* A function may wait for what the program does after the launch; but launches behind it
	 * would keep the program in the launch (the depth limit). */
	if (read_graph(l, graph, 0) &&
	    ((l->chain && !l->calls) || tally_process.config.graphs == TALLY_GRAPHS_NODES))
		return true;
	tally_nodes_free(l);
	return false;
}
