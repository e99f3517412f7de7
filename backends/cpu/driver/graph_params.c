/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of each type: added, changed, asked about, in graphs and in executable ones. */
#include <string.h>

#include "backends/cpu/driver/graph.h"
#include "backends/cpu/driver/graph_exec.h"
#include "backends/cpu/driver/node_work.h"

/* --- into graphs --- */

/* The context that the node is of: `handle`, or the calling thread's where it has one. */
static CUresult settle(struct work *work, CUcontext handle)
{
	struct context *context = NULL;
	CUresult error = context_check(handle, &context);

	if (error && handle)
		return error;
	work_settle(work, error ? NULL : context);
	return CUDA_SUCCESS;
}

static CUcontext context_of(const CUgraphNodeParams *p)
{
	switch (p ? p->type : CU_GRAPH_NODE_TYPE_EMPTY) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return p->kernel.ctx;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return p->memcpy.copyCtx;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return p->memset.ctx;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return p->memOp.ctx;
	default:
		return NULL;
	}
}

static CUresult add(CUgraphNode *result, CUgraph handle, const CUgraphNode *dependencies,
		    size_t count, struct work *work, CUcontext context, CUresult error)
{
	struct graph_node *node;
	struct graph *graph;

	if (error)
		return error;
	error = settle(work, context);
	if (!error)
		error = graph_check(handle, &graph);
	if (!error && (!result || (count && !dependencies)))
		error = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !error; i++)
		error = graph_node_check(dependencies[i], &node);
	if (!error)
		error = graph_add(graph, work, (struct graph_node *const *)dependencies, count,
				  &node);
	if (error)
		work_release(work);
	else
		*result = (CUgraphNode)node;
	return error;
}

/* What may change of a node is what it works on, not what kind of thing it does. */
static CUresult replace(struct graph_node *node, struct work *work)
{
	if (node->work.type != work->type) {
		work_release(work);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (work->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		work->kernel.level = node->work.kernel.level;
		work->kernel.cooperative = node->work.kernel.cooperative;
	}
	if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
		work->child->parent = node;
	work_release(&node->work);
	node->work = *work;
	return CUDA_SUCCESS;
}

static CUresult set(CUgraphNode handle, struct work *work, CUcontext context, CUresult error)
{
	struct graph_node *node;

	if (error)
		return error;
	error = settle(work, context);
	if (!error)
		error = graph_node_check(handle, &node);
	if (error) {
		work_release(work);
		return error;
	}
	return replace(node, work);
}

/* The node of the executable graph that stands for `handle`. */
static CUresult set_exec(CUgraphExec exec, CUgraphNode handle, struct work *work, CUcontext context,
			 CUresult error)
{
	struct graph_node *node;

	if (error)
		return error;
	error = settle(work, context);
	if (!error)
		error = graph_exec_node(exec, handle, &node);
	if (error) {
		work_release(work);
		return error;
	}
	if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		error = graph_update(node->work.child, work->child, NULL);
		work_release(work);
		return error;
	}
	return replace(node, work);
}

static CUresult get(CUgraphNode handle, CUgraphNodeType type, const void *result,
		    struct graph_node **node)
{
	CUresult error = graph_node_check(handle, node);

	if (!error && (!result || (*node)->work.type != type))
		error = CUDA_ERROR_INVALID_VALUE;
	return error;
}

/* One type of nodes: adding, changing, changing in an executable graph. `context` is what the
 * parameters say of it. */
#define ADD_OF(symbol, parameters, context, make)                                                  \
	CUresult symbol(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, \
			size_t numDependencies, parameters)                                        \
	{                                                                                          \
		struct work work = {0};                                                            \
		CUresult error = make;                                                             \
                                                                                                   \
		return add(phGraphNode, hGraph, dependencies, numDependencies, &work, context,     \
			   error);                                                                 \
	}
#define SET_OF(symbol, parameter, context, make)                                                   \
	CUresult symbol(CUgraphNode hNode, parameter)                                              \
	{                                                                                          \
		struct work work = {0};                                                            \
		CUresult error = make;                                                             \
                                                                                                   \
		return set(hNode, &work, context, error);                                          \
	}
#define SET_EXEC_OF(symbol, parameters, context, make)                                             \
	CUresult symbol(CUgraphExec hGraphExec, CUgraphNode hNode, parameters)                     \
	{                                                                                          \
		struct work work = {0};                                                            \
		CUresult error = make;                                                             \
                                                                                                   \
		return set_exec(hGraphExec, hNode, &work, context, error);                         \
	}
#define BOTH(a, b)		     a, b
#define ADD(symbol, parameter, make) ADD_OF(symbol, parameter, NULL, make)
#define ADD_IN_CONTEXT(symbol, parameter, make)                                                    \
	ADD_OF(symbol, BOTH(parameter, CUcontext ctx), ctx, make)
#define SET(symbol, parameter, make)	  SET_OF(symbol, parameter, NULL, make)
#define SET_EXEC(symbol, parameter, make) SET_EXEC_OF(symbol, parameter, NULL, make)
#define SET_EXEC_IN_CONTEXT(symbol, parameter, make)                                               \
	SET_EXEC_OF(symbol, BOTH(parameter, CUcontext ctx), ctx, make)

ADD(cuGraphAddKernelNode_v2, const CUDA_KERNEL_NODE_PARAMS *p, work_of_kernel(&work, p))
SET(cuGraphKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS *p, work_of_kernel(&work, p))
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS *p,
	 work_of_kernel(&work, p))
ADD(cuGraphAddKernelNode, const CUDA_KERNEL_NODE_PARAMS_v1 *p, work_of_kernel_v1(&work, p))
SET(cuGraphKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1 *p, work_of_kernel_v1(&work, p))
SET_EXEC(cuGraphExecKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1 *p,
	 work_of_kernel_v1(&work, p))
ADD_IN_CONTEXT(cuGraphAddMemcpyNode, const CUDA_MEMCPY3D *p, work_of_memcpy(&work, p))
SET(cuGraphMemcpyNodeSetParams, const CUDA_MEMCPY3D *p, work_of_memcpy(&work, p))
SET_EXEC_IN_CONTEXT(cuGraphExecMemcpyNodeSetParams, const CUDA_MEMCPY3D *p,
		    work_of_memcpy(&work, p))
ADD_IN_CONTEXT(cuGraphAddMemsetNode, const CUDA_MEMSET_NODE_PARAMS *p, work_of_memset(&work, p))
SET(cuGraphMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS *p, work_of_memset(&work, p))
SET_EXEC_IN_CONTEXT(cuGraphExecMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS *p,
		    work_of_memset(&work, p))
ADD(cuGraphAddHostNode, const CUDA_HOST_NODE_PARAMS *p, work_of_host(&work, p))
SET(cuGraphHostNodeSetParams, const CUDA_HOST_NODE_PARAMS *p, work_of_host(&work, p))
SET_EXEC(cuGraphExecHostNodeSetParams, const CUDA_HOST_NODE_PARAMS *p, work_of_host(&work, p))
ADD(cuGraphAddChildGraphNode, CUgraph childGraph, work_of_child(&work, childGraph))
SET_EXEC(cuGraphExecChildGraphNodeSetParams, CUgraph childGraph, work_of_child(&work, childGraph))
ADD(cuGraphAddEventRecordNode, CUevent event, work_of_record(&work, event))
SET(cuGraphEventRecordNodeSetEvent, CUevent event, work_of_record(&work, event))
SET_EXEC(cuGraphExecEventRecordNodeSetEvent, CUevent event, work_of_record(&work, event))
ADD(cuGraphAddEventWaitNode, CUevent event, work_of_wait(&work, event))
SET(cuGraphEventWaitNodeSetEvent, CUevent event, work_of_wait(&work, event))
SET_EXEC(cuGraphExecEventWaitNodeSetEvent, CUevent event, work_of_wait(&work, event))
ADD_OF(cuGraphAddBatchMemOpNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, p ? p->ctx : NULL,
       work_of_values(&work, p))
SET_OF(cuGraphBatchMemOpNodeSetParams, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, p ? p->ctx : NULL,
       work_of_values(&work, p))
SET_EXEC_OF(cuGraphExecBatchMemOpNodeSetParams, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p,
	    p ? p->ctx : NULL, work_of_values(&work, p))
ADD(cuGraphAddMemAllocNode, CUDA_MEM_ALLOC_NODE_PARAMS *p, work_of_alloc(&work, p))
ADD(cuGraphAddMemFreeNode, CUdeviceptr dptr, work_of_free(&work, dptr))
SET_OF(cuGraphNodeSetParams, CUgraphNodeParams *p, context_of(p), work_of_any(&work, p))
SET_EXEC_OF(cuGraphExecNodeSetParams, CUgraphNodeParams *p, context_of(p), work_of_any(&work, p))

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			     const CUgraphNode *dependencies, size_t numDependencies)
{
	struct work work = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

	return add(phGraphNode, hGraph, dependencies, numDependencies, &work, NULL, CUDA_SUCCESS);
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	struct work work = {0};
	CUresult error = work_of_any(&work, nodeParams);

	error = add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		    context_of(nodeParams), error);
	/* cuda.h: the child graph's handle is given back here. */
	if (!error && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
		nodeParams->graph.graph = (CUgraph)((struct graph_node *)*phGraphNode)->work.child;
	return error;
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
			   const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
			   size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	CUresult error = graph_check_edges(dependencyData, numDependencies);

	return error ? error
		     : cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies,
				      nodeParams);
}

/* --- back to parameters --- */

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *p)
{
	struct graph_node *node;
	CUresult error = get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, p, &node);

	if (error)
		return error;
	const struct kernel_work *k = &node->work.kernel;
	*p = (CUDA_KERNEL_NODE_PARAMS){
		.func = (CUfunction)k->function,
		.gridDimX = k->config.gridDimX,
		.gridDimY = k->config.gridDimY,
		.gridDimZ = k->config.gridDimZ,
		.blockDimX = k->config.blockDimX,
		.blockDimY = k->config.blockDimY,
		.blockDimZ = k->config.blockDimZ,
		.sharedMemBytes = k->config.sharedMemBytes,
		.kernelParams = k->param_count ? k->pointers : NULL,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS whole;
	CUresult error =
		p ? cuGraphKernelNodeGetParams_v2(hNode, &whole) : CUDA_ERROR_INVALID_VALUE;

	if (!error)
		memcpy(p, &whole, sizeof *p);
	return error;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *p)
{
	struct graph_node *node;
	CUresult error = get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, p, &node);

	return error ? error : copy_node_params(&node->work, p);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *p)
{
	struct graph_node *node;
	CUresult error = get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, p, &node);

	if (error)
		return error;
	const struct transfer *t = &node->work.transfer;
	*p = (CUDA_MEMSET_NODE_PARAMS){.dst = t->to,
				       .pitch = t->to_pitch,
				       .value = t->value,
				       .elementSize = t->element,
				       .width = t->width / t->element,
				       .height = t->height};
	return CUDA_SUCCESS;
}

#define GET(symbol, wanted, parameter, place, value)                                               \
	CUresult symbol(CUgraphNode hNode, parameter)                                              \
	{                                                                                          \
		struct graph_node *node;                                                           \
		CUresult error = get(hNode, CU_GRAPH_NODE_TYPE_##wanted, place, &node);            \
                                                                                                   \
		if (!error)                                                                        \
			*place = value;                                                            \
		return error;                                                                      \
	}
GET(cuGraphHostNodeGetParams, HOST, CUDA_HOST_NODE_PARAMS *p, p, node->work.host)
GET(cuGraphChildGraphNodeGetGraph, GRAPH, CUgraph *phGraph, phGraph, (CUgraph)node->work.child)
GET(cuGraphEventRecordNodeGetEvent, EVENT_RECORD, CUevent *event_out, event_out,
    (CUevent)node->work.event)
GET(cuGraphEventWaitNodeGetEvent, WAIT_EVENT, CUevent *event_out, event_out,
    (CUevent)node->work.event)
GET(cuGraphMemAllocNodeGetParams, MEM_ALLOC, CUDA_MEM_ALLOC_NODE_PARAMS *params_out, params_out,
    node->work.memory->as_asked)
GET(cuGraphMemFreeNodeGetParams, MEM_FREE, CUdeviceptr *dptr_out, dptr_out, node->work.freed)
GET(cuGraphBatchMemOpNodeGetParams, BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS *p, p,
    ((CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = node->work.values.count,
				     .paramArray = node->work.values.list}))

/* --- attributes of kernel nodes: those that mean something here --- */

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
				       CUkernelNodeAttrValue *value_out)
{
	struct graph_node *node;
	CUresult error = get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value_out, &node);

	if (error)
		return error;
	memset(value_out, 0, sizeof *value_out);
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value_out->priority = node->work.kernel.level > 0 ? -node->work.kernel.level : 0;
	else if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		value_out->cooperative = node->work.kernel.cooperative;
	else if (attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
		value_out->clusterDim.x = value_out->clusterDim.y = value_out->clusterDim.z = 1;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
				       const CUkernelNodeAttrValue *value)
{
	struct graph_node *node;
	CUresult error = get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value, &node);

	if (error)
		return error;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		if (value->priority > 0 || value->priority <= -LEVELS)
			return CUDA_ERROR_INVALID_VALUE;
		node->work.kernel.level = -value->priority;
	} else if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		node->work.kernel.cooperative = value->cooperative;
	}
	return CUDA_SUCCESS; /* the others are hints */
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	struct graph_node *to, *from;
	CUresult error = get(dst, CU_GRAPH_NODE_TYPE_KERNEL, dst, &to);

	if (!error)
		error = get(src, CU_GRAPH_NODE_TYPE_KERNEL, src, &from);
	if (!error) {
		to->work.kernel.level = from->work.kernel.level;
		to->work.kernel.cooperative = from->work.kernel.cooperative;
	}
	return error;
}
