/* SPDX-License-Identifier: Apache-2.0 */
/* The structure of graphs: nodes, edges, copies, order; see graph.h. */
#include "backends/cpu/driver/graph.h"

#include <stdlib.h>
#include <string.h>

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

/* Room for one more of `count` pointers. */
static bool grow(void *array, size_t count, size_t *capacity)
{
	void **place = array;

	if (count < *capacity)
		return true;
	size_t more = *capacity ? 2 * *capacity : 4;
	void *grown = realloc(*place, more * sizeof(void *));
	if (!grown)
		return false;
	*place = grown;
	*capacity = more;
	return true;
}

static CUresult graph_connect(struct graph_node *from, struct graph_node *to)
{
	if (from->graph != to->graph || from == to)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < to->count; i++)
		if (to->before[i] == from)
			return CUDA_ERROR_INVALID_VALUE; /* cuda.h: an edge that exists already */
	if (!grow(&to->before, to->count, &to->capacity))
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->before[to->count++] = from;
	return CUDA_SUCCESS;
}

CUresult graph_add(struct graph *graph, struct work *work, struct graph_node *const *before,
		   size_t count, struct graph_node **result)
{
	struct graph_node *node = calloc(1, sizeof *node);
	CUresult error = CUDA_ERROR_OUT_OF_MEMORY;

	if (!node || !grow(&graph->nodes, graph->count, &graph->capacity)) {
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

static void disconnect(struct graph_node *from, struct graph_node *to)
{
	for (size_t i = 0; i < to->count; i++)
		if (to->before[i] == from) {
			memmove(&to->before[i], &to->before[i + 1],
				(--to->count - i) * sizeof(struct graph_node *));
			return;
		}
}

static void graph_node_delete(struct graph_node *node)
{
	struct graph *graph = node->graph;

	for (size_t i = 0; i < graph->count; i++)
		disconnect(node, graph->nodes[i]);
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

/* --- the API --- */

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	REQUIRE_INIT();
	if (!phGraph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*phGraph = (CUgraph)graph_new();
	return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
	struct graph *graph;
	CUresult error = graph_check(hGraph, &graph);

	if (!error && graph->parent)
		error = CUDA_ERROR_INVALID_VALUE; /* its node owns it */
	if (!error)
		graph_delete(graph);
	return error;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	struct graph *graph;
	CUresult error = graph_check(originalGraph, &graph);

	if (error)
		return error;
	if (!phGraphClone)
		return CUDA_ERROR_INVALID_VALUE;
	*phGraphClone = (CUgraph)graph_copy(graph);
	return *phGraphClone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
				CUgraph hClonedGraph)
{
	struct graph_node *original, *found = NULL;
	struct graph *clone;
	CUresult error = graph_check(hClonedGraph, &clone);

	if (!error)
		error = graph_node_check(hOriginalNode, &original);
	if (!error)
		found = graph_find_copy(clone, original);
	if (!error && (!phNode || !found))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*phNode = (CUgraphNode)found;
	return error;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	struct graph_node *node;
	CUresult error = graph_node_check(hNode, &node);

	if (!error && !type)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*type = node->work.type;
	return error;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
	struct graph_node *node;
	CUresult error = graph_node_check(hNode, &node);

	/* cuda.h: not from graphs that hold memory nodes. */
	if (!error && (node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		       node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE))
		error = CUDA_ERROR_NOT_SUPPORTED;
	if (!error)
		graph_node_delete(node);
	return error;
}

/*
 * A list for the caller, who asks with NULL how long it is; places that are left over become NULL
 * and the count says how many were filled (cuda.h at cuGraphGetNodes).
 */
static CUresult give_list(struct graph_node *const *found, size_t count, CUgraphNode *list,
			  size_t *length)
{
	if (!length)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; list && i < *length; i++)
		list[i] = i < count ? (CUgraphNode)found[i] : NULL;
	*length = list && *length < count ? *length : count;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	struct graph *graph;
	CUresult error = graph_check(hGraph, &graph);

	return error ? error : give_list(graph->nodes, graph->count, nodes, numNodes);
}

/* The nodes of a graph that `wanted` takes. */
static CUresult give_some(const struct graph *graph,
			  bool (*wanted)(const struct graph_node *, const struct graph_node *),
			  const struct graph_node *about, CUgraphNode *list, size_t *length)
{
	struct graph_node **found = malloc((graph->count + 1) * sizeof *found);
	size_t count = 0;

	if (!found)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < graph->count; i++)
		if (wanted(graph->nodes[i], about))
			found[count++] = graph->nodes[i];
	CUresult error = give_list(found, count, list, length);
	free(found);
	return error;
}

static bool is_root(const struct graph_node *node, const struct graph_node *about)
{
	(void)about;
	return !node->count;
}

static bool depends_on(const struct graph_node *node, const struct graph_node *about)
{
	for (size_t i = 0; i < node->count; i++)
		if (node->before[i] == about)
			return true;
	return false;
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	struct graph *graph;
	CUresult error = graph_check(hGraph, &graph);

	return error ? error : give_some(graph, is_root, NULL, rootNodes, numRootNodes);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
			    CUgraphEdgeData *edgeData, size_t *numEdges)
{
	struct graph *graph;
	CUresult error = graph_check(hGraph, &graph);
	size_t count = 0, most;

	if (error)
		return error;
	if (!numEdges || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	most = from ? *numEdges : 0;
	for (size_t i = 0; i < graph->count; i++)
		for (size_t j = 0; j < graph->nodes[i]->count; j++, count++) {
			if (count >= most)
				continue;
			from[count] = (CUgraphNode)graph->nodes[i]->before[j];
			to[count] = (CUgraphNode)graph->nodes[i];
		}
	for (size_t i = count; i < most; i++)
		from[i] = to[i] = NULL;
	*numEdges = from && most < count ? most : count;
	if (edgeData && from)
		memset(edgeData, 0, most * sizeof *edgeData);
	return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
				       CUgraphEdgeData *edgeData, size_t *numDependencies)
{
	struct graph_node *node;
	CUresult error = graph_node_check(hNode, &node);

	if (!error && edgeData && dependencies && numDependencies)
		memset(edgeData, 0, *numDependencies * sizeof *edgeData);
	return error ? error : give_list(node->before, node->count, dependencies, numDependencies);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
				    size_t *numDependencies)
{
	return cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
					 CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
	struct graph_node *node;
	CUresult error = graph_node_check(hNode, &node);

	if (!error && edgeData && dependentNodes && numDependentNodes)
		memset(edgeData, 0, *numDependentNodes * sizeof *edgeData);
	return error ? error
		     : give_some(node->graph, depends_on, node, dependentNodes, numDependentNodes);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
				      size_t *numDependentNodes)
{
	return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

/* Edges that mean anything but "after the whole node" are not there. */
CUresult graph_check_edges(const CUgraphEdgeData *edges, size_t count)
{
	static const CUgraphEdgeData plain;
	static atomic_bool said;

	for (size_t i = 0; edges && i < count; i++)
		if (memcmp(&edges[i], &plain, sizeof plain) != 0)
			return driver_unsupported("programmatic edges of a graph", &said);
	return CUDA_SUCCESS;
}

static CUresult check_pair(CUgraph hGraph, CUgraphNode from, CUgraphNode to,
			   struct graph_node **first, struct graph_node **second)
{
	struct graph *graph;
	CUresult error = graph_check(hGraph, &graph);

	if (!error)
		error = graph_node_check(from, first);
	if (!error)
		error = graph_node_check(to, second);
	if (!error && ((*first)->graph != graph || (*second)->graph != graph))
		error = CUDA_ERROR_INVALID_VALUE;
	return error;
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	struct graph_node *first, *second;
	CUresult error = graph_check_edges(edgeData, numDependencies);

	if (!error && numDependencies && (!from || !to))
		error = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && !error; i++) {
		error = check_pair(hGraph, from[i], to[i], &first, &second);
		if (!error)
			error = graph_connect(first, second);
	}
	return error;
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				size_t numDependencies)
{
	return cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
				      const CUgraphNode *to, const CUgraphEdgeData *edgeData,
				      size_t numDependencies)
{
	struct graph_node *first, *second;
	CUresult error = graph_check_edges(edgeData, numDependencies);

	if (!error && numDependencies && (!from || !to))
		error = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && !error; i++) {
		error = check_pair(hGraph, from[i], to[i], &first, &second);
		if (!error && !depends_on(second, first))
			error = CUDA_ERROR_INVALID_VALUE;
		if (!error)
			disconnect(first, second);
	}
	return error;
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				   size_t numDependencies)
{
	return cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}
