/* SPDX-License-Identifier: Apache-2.0 */
/* The structure of graphs: nodes, edges, copies, order; see graph.h. */
#include "backends/cpu/driver/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

CUresult graph_check(CUgraph handle, struct graph **graph)
{
	REQUIRE_INIT();
	*graph = (struct graph *)handle;
	return handle_is(handle, HANDLE_GRAPH) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_node_check(CUgraphNode handle, struct graph_node **node)
{
	REQUIRE_INIT();
	*node = (struct graph_node *)handle;
	return handle_is(handle, HANDLE_NODE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct graph *graph_new(void)
{
	struct graph *graph = calloc(1, sizeof *graph);

	if (graph && !handle_add(graph, HANDLE_GRAPH)) {
		free(graph);
		return NULL;
	}
	return graph;
}

static void free_node(struct graph_node *node)
{
	work_release(&node->work);
	free(node->before);
	handle_remove(node, HANDLE_NODE);
	free(node);
}

void graph_delete(struct graph *graph)
{
	if (!graph)
		return;
	for (size_t i = 0; i < graph->count; i++)
		free_node(graph->nodes[i]);
	free(graph->nodes);
	user_references_release(graph);
	handle_remove(graph, HANDLE_GRAPH);
	free(graph);
}

CUresult graph_connect(struct graph_node *from, struct graph_node *to)
{
	if (from->graph != to->graph || from == to)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < to->count; i++)
		if (to->before[i] == from)
			return CUDA_ERROR_INVALID_VALUE; /* cuda.h: an edge that exists already */
	if (!TALLY_GROW(to->before, to->count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->before[to->count++] = from;
	return CUDA_SUCCESS;
}

CUresult graph_add(struct graph *graph, struct work *work, struct graph_node *const *before,
		   size_t count, struct graph_node **result)
{
	struct graph_node *node = calloc(1, sizeof *node);
	CUresult error = CUDA_ERROR_OUT_OF_MEMORY;

	if (!node || !TALLY_GROW(graph->nodes, graph->count)) {
		free(node);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	node->graph = graph;
	node->index = graph->count;
	error = CUDA_SUCCESS;
	for (size_t i = 0; i < count && !error; i++)
		error = graph_connect(before[i], node);
	if (!error && !handle_add(node, HANDLE_NODE))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (error) {
		free(node->before);
		free(node);
		return error;
	}
	node->work = *work;
	if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
		work->child->parent = node;
	graph->nodes[graph->count++] = node;
	*result = node;
	return CUDA_SUCCESS;
}

CUresult graph_disconnect(struct graph_node *from, struct graph_node *to)
{
	for (size_t i = 0; i < to->count; i++)
		if (to->before[i] == from) {
			memmove(&to->before[i], &to->before[i + 1],
				(--to->count - i) * sizeof(struct graph_node *));
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

void graph_node_delete(struct graph_node *node)
{
	struct graph *graph = node->graph;

	for (size_t i = 0; i < graph->count; i++)
		graph_disconnect(node, graph->nodes[i]);
	for (size_t i = node->index; i + 1 < graph->count; i++) {
		graph->nodes[i] = graph->nodes[i + 1];
		graph->nodes[i]->index = i;
	}
	graph->count--;
	free_node(node);
}

static bool copy_node(struct graph *to, const struct graph_node *from)
{
	struct graph_node *made;
	struct work work;

	if (!work_copy(&work, &from->work))
		return false;
	if (graph_add(to, &work, NULL, 0, &made)) {
		work_release(&work);
		return false;
	}
	made->origin = from;
	made->disabled = from->disabled;
	return true;
}

struct graph *graph_copy(const struct graph *graph)
{
	struct graph *copy = graph_new();
	bool ok = copy && user_references_copy(copy, graph);

	for (size_t i = 0; i < graph->count && ok; i++)
		ok = copy_node(copy, graph->nodes[i]);
	for (size_t i = 0; i < graph->count && ok; i++)
		for (size_t j = 0; j < graph->nodes[i]->count && ok; j++)
			ok = !graph_connect(copy->nodes[graph->nodes[i]->before[j]->index],
					    copy->nodes[i]);
	if (!ok) {
		graph_delete(copy);
		return NULL;
	}
	return copy;
}

struct graph_node *graph_find_copy(const struct graph *graph, const struct graph_node *origin)
{
	for (size_t i = 0; i < graph->count; i++) {
		struct graph_node *node = graph->nodes[i];

		if (node->origin == origin)
			return node;
		if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH &&
		    (node = graph_find_copy(node->work.child, origin)))
			return node;
	}
	return NULL;
}

/* Edges by the node that they come from: those of node i are after[first[i]] to first[i + 1]. */
static void turn_round(const struct graph *graph, size_t *first, struct graph_node **after)
{
	size_t n = graph->count;

	memset(first, 0, (n + 2) * sizeof *first);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < graph->nodes[i]->count; j++)
			first[graph->nodes[i]->before[j]->index + 2]++;
	for (size_t i = 2; i < n + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < graph->nodes[i]->count; j++)
			after[first[graph->nodes[i]->before[j]->index + 1]++] = graph->nodes[i];
}

struct graph_node **graph_sort(const struct graph *graph, CUresult *error)
{
	size_t n = graph->count, edges = 0, done = 0, end = 0;

	for (size_t i = 0; i < n; i++)
		edges += graph->nodes[i]->count;
	struct graph_node **order = malloc((n + 1) * sizeof *order);
	struct graph_node **after = malloc((edges + 1) * sizeof *after);
	size_t *first = malloc((n + 2) * sizeof *first);
	*error = order && after && first ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (!*error) {
		turn_round(graph, first, after);
		for (size_t i = 0; i < n; i++) {
			graph->nodes[i]->mark = graph->nodes[i]->count;
			if (!graph->nodes[i]->count)
				order[end++] = graph->nodes[i];
		}
		for (; done < end; done++)
			for (size_t e = first[order[done]->index];
			     e < first[order[done]->index + 1]; e++)
				if (!--after[e]->mark)
					order[end++] = after[e];
		if (end != n)
			*error = CUDA_ERROR_INVALID_VALUE;
	}
	free(after);
	free(first);
	if (*error) {
		free(order);
		return NULL;
	}
	return order;
}

CUresult graph_check_edges(const CUgraphEdgeData *edges, size_t count)
{
	static const CUgraphEdgeData plain;
	static atomic_bool said;

	for (size_t i = 0; edges && i < count; i++)
		if (memcmp(&edges[i], &plain, sizeof plain) != 0)
			return driver_unsupported("programmatic edges of a graph", &said);
	return CUDA_SUCCESS;
}
