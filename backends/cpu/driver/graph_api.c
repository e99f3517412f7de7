/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as the API has them: made, copied, asked about, edges; see graph.h. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/graph.h"

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

static CUresult change_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
			     const CUgraphEdgeData *edges, size_t count,
			     CUresult (*change)(struct graph_node *, struct graph_node *))
{
	struct graph_node *first, *second;
	CUresult error = graph_check_edges(edges, count);

	if (!error && count && (!from || !to))
		error = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !error; i++) {
		error = check_pair(graph, from[i], to[i], &first, &second);
		if (!error)
			error = change(first, second);
	}
	return error;
}

#define CHANGE_EDGES(symbol, change)                                                               \
	CUresult symbol##_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,       \
			     const CUgraphEdgeData *edgeData, size_t numDependencies)              \
	{                                                                                          \
		return change_edges(hGraph, from, to, edgeData, numDependencies, change);          \
	}                                                                                          \
	CUresult symbol(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,            \
			size_t numDependencies)                                                    \
	{                                                                                          \
		return change_edges(hGraph, from, to, NULL, numDependencies, change);              \
	}
CHANGE_EDGES(cuGraphAddDependencies, graph_connect)
CHANGE_EDGES(cuGraphRemoveDependencies, graph_disconnect)
