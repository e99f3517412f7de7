/* SPDX-License-Identifier: Apache-2.0 */
/* Changing an executable graph: one of its nodes, or all that an edited graph has changed. */
#include "backends/cpu/driver/graph_exec.h"

CUresult graph_exec_node(CUgraphExec handle, CUgraphNode origin, struct graph_node **node)
{
	struct graph *graph;
	CUresult error = graph_exec_graph(handle, &graph);

	if (error)
		return error;
	*node = origin ? graph_find_copy(graph, (struct graph_node *)origin) : NULL;
	return *node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	struct graph_node *node;
	CUresult error = graph_exec_node(hGraphExec, hNode, &node);

	/* cuda.h: kernel, memset and memcpy nodes only. */
	if (!error && node->work.type > CU_GRAPH_NODE_TYPE_MEMSET)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		node->disabled = !isEnabled;
	return error;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	struct graph_node *node;
	CUresult error = graph_exec_node(hGraphExec, hNode, &node);

	if (!error && !isEnabled)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*isEnabled = !node->disabled;
	return error;
}

static CUresult differs(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult why,
			const struct graph_node *node)
{
	if (info)
		*info = (CUgraphExecUpdateResultInfo){.result = why,
						      .errorNode = (CUgraphNode)node};
	return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult compare(const struct graph *graph, const struct graph *from,
			CUgraphExecUpdateResultInfo *info)
{
	CUresult error = CUDA_SUCCESS;

	if (graph->count != from->count)
		return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL);
	for (size_t i = 0; i < graph->count && !error; i++) {
		const struct graph_node *a = graph->nodes[i], *b = from->nodes[i];

		if (a->count != b->count)
			return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b);
		for (size_t j = 0; j < a->count; j++)
			if (a->before[j]->index != b->before[j]->index)
				return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
					       b);
		if (a->work.type != b->work.type)
			return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b);
		if (a->work.type == CU_GRAPH_NODE_TYPE_KERNEL &&
		    a->work.kernel.cooperative != b->work.kernel.cooperative)
			return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, b);
		if (a->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		    a->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, b);
		if (a->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
			error = compare(a->work.child, b->work.child, info);
	}
	return error;
}

static bool take_over(struct graph *graph, const struct graph *from)
{
	bool ok = true;

	for (size_t i = 0; i < graph->count && ok; i++) {
		struct graph_node *node = graph->nodes[i];
		struct work work;

		if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
			ok = take_over(node->work.child, from->nodes[i]->work.child);
			continue;
		}
		ok = work_copy(&work, &from->nodes[i]->work);
		if (!ok)
			break;
		work_release(&node->work);
		node->work = work;
	}
	return ok;
}

CUresult graph_update(struct graph *graph, const struct graph *from,
		      CUgraphExecUpdateResultInfo *info)
{
	CUresult error = compare(graph, from, info);

	if (error)
		return error;
	if (!take_over(graph, from)) {
		differs(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (info)
		*info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
			      CUgraphExecUpdateResultInfo *resultInfo)
{
	struct graph *graph, *from;
	CUresult error = graph_exec_graph(hGraphExec, &graph);

	if (!error)
		error = graph_check(hGraph, &from);
	if (error) {
		differs(resultInfo, CU_GRAPH_EXEC_UPDATE_ERROR, NULL);
		return error;
	}
	return graph_update(graph, from, resultInfo);
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
			   CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResultInfo info;
	CUresult error = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);

	if (hErrorNode_out)
		*hErrorNode_out = info.errorNode;
	if (updateResult_out)
		*updateResult_out = info.result;
	return error;
}
