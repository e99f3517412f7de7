/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of each type: from the API's parameters to work and back, for graphs and executable ones.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/graph.h"
#include "backends/cpu/driver/graph_exec.h"

/* --- from parameters to work --- */

static CUresult kernel_work(struct work *work, const CUDA_KERNEL_NODE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	const CUlaunchConfig config = {.gridDimX = p->gridDimX,
				       .gridDimY = p->gridDimY,
				       .gridDimZ = p->gridDimZ,
				       .blockDimX = p->blockDimX,
				       .blockDimY = p->blockDimY,
				       .blockDimZ = p->blockDimZ,
				       .sharedMemBytes = p->sharedMemBytes};

	work->type = CU_GRAPH_NODE_TYPE_KERNEL;
	return kernel_work_make(&work->kernel, p->func ? (const void *)p->func : p->kern, &config,
				p->kernelParams, p->extra);
}

/* The first version lacks the last two members. */
static CUresult kernel_work_v1(struct work *work, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS whole = {0};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&whole, p, sizeof *p);
	return kernel_work(work, &whole);
}

static CUresult check_transfer(struct work *work)
{
	bool empty;

	transfer_note(&work->transfer);
	return transfer_check(&work->transfer, &empty);
}

static CUresult memcpy_work(struct work *work, const CUDA_MEMCPY3D *p)
{
	work->type = CU_GRAPH_NODE_TYPE_MEMCPY;
	CUresult error = copy_node_work(work, p);
	return error ? error : check_transfer(work);
}

static CUresult memset_work(struct work *work, const CUDA_MEMSET_NODE_PARAMS *p)
{
	if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	work->type = CU_GRAPH_NODE_TYPE_MEMSET;
	work->transfer = (struct transfer){.to = p->dst,
					   .height = p->height,
					   .depth = 1,
					   .to_pitch = p->pitch,
					   .element = p->elementSize,
					   .value = p->value};
	if (__builtin_mul_overflow(p->width, p->elementSize, &work->transfer.width))
		return CUDA_ERROR_INVALID_VALUE;
	return check_transfer(work);
}

static CUresult host_work(struct work *work, const CUDA_HOST_NODE_PARAMS *p)
{
	if (!p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	work->type = CU_GRAPH_NODE_TYPE_HOST;
	work->host = *p;
	return CUDA_SUCCESS;
}

static CUresult child_work(struct work *work, CUgraph handle)
{
	struct graph *graph;
	CUresult error = graph_check(handle, &graph);

	work->type = CU_GRAPH_NODE_TYPE_GRAPH;
	if (!error && !(work->child = graph_copy(graph)))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	return error;
}

static CUresult event_work(struct work *work, CUevent handle, CUgraphNodeType type)
{
	struct event *event;
	CUresult error = event_check(handle, &event);

	work->type = type;
	work->event = event;
	if (!error)
		event_hold(event);
	return error;
}

static CUresult record_work(struct work *work, CUevent handle)
{
	return event_work(work, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

static CUresult wait_work(struct work *work, CUevent handle)
{
	return event_work(work, handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

static CUresult values_work(struct work *work, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	CUresult error =
		p ? values_check(p->count, p->paramArray, p->flags) : CUDA_ERROR_INVALID_VALUE;

	if (error)
		return error;
	work->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	work->values.count = p->count;
	work->values.list = malloc(p->count * sizeof *p->paramArray);
	if (!work->values.list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(work->values.list, p->paramArray, p->count * sizeof *p->paramArray);
	return CUDA_SUCCESS;
}

static CUresult alloc_work(struct work *work, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	if (!p || p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    p->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	work->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	CUresult error = graph_memory_make(&work->memory, p);
	if (!error)
		p->dptr = work->memory->address;
	return error;
}

static CUresult free_work(struct work *work, CUdeviceptr address)
{
	struct region region;

	if (!memory_find(address, &region) || region.base != address)
		return CUDA_ERROR_INVALID_VALUE;
	work->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
	work->freed = address;
	return CUDA_SUCCESS;
}

static CUresult any_work(struct work *work, CUgraphNodeParams *p)
{
	static atomic_bool said;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS kernel; /* the third version has the second's layout */

		static_assert(sizeof kernel == sizeof p->kernel, "kernel nodes");
		memcpy(&kernel, &p->kernel, sizeof kernel);
		return kernel_work(work, &kernel);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return memcpy_work(work, &p->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		const CUDA_MEMSET_NODE_PARAMS_v2 *m = &p->memset;

		return memset_work(work,
				   &(CUDA_MEMSET_NODE_PARAMS){m->dst, m->pitch, m->value,
							      m->elementSize, m->width, m->height});
	}
	case CU_GRAPH_NODE_TYPE_HOST:
		return host_work(work, &(CUDA_HOST_NODE_PARAMS){p->host.fn, p->host.userData});
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return child_work(work, p->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		work->type = p->type;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return wait_work(work, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return record_work(work, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return values_work(work, &(CUDA_BATCH_MEM_OP_NODE_PARAMS){
						 p->memOp.ctx, p->memOp.count, p->memOp.paramArray,
						 p->memOp.flags});
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
		CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
			.poolProps = p->alloc.poolProps,
			.bytesize = p->alloc.bytesize,
		};
		CUresult error = alloc_work(work, &alloc);

		p->alloc.dptr = alloc.dptr;
		return error;
	}
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return free_work(work, p->free.dptr);
	default:
		return driver_unsupported("conditional and external semaphore nodes of a graph",
					  &said);
	}
}

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

ADD(cuGraphAddKernelNode_v2, const CUDA_KERNEL_NODE_PARAMS *p, kernel_work(&work, p))
SET(cuGraphKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS *p, kernel_work(&work, p))
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS *p, kernel_work(&work, p))
ADD(cuGraphAddKernelNode, const CUDA_KERNEL_NODE_PARAMS_v1 *p, kernel_work_v1(&work, p))
SET(cuGraphKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1 *p, kernel_work_v1(&work, p))
SET_EXEC(cuGraphExecKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1 *p,
	 kernel_work_v1(&work, p))
ADD_IN_CONTEXT(cuGraphAddMemcpyNode, const CUDA_MEMCPY3D *p, memcpy_work(&work, p))
SET(cuGraphMemcpyNodeSetParams, const CUDA_MEMCPY3D *p, memcpy_work(&work, p))
SET_EXEC_IN_CONTEXT(cuGraphExecMemcpyNodeSetParams, const CUDA_MEMCPY3D *p, memcpy_work(&work, p))
ADD_IN_CONTEXT(cuGraphAddMemsetNode, const CUDA_MEMSET_NODE_PARAMS *p, memset_work(&work, p))
SET(cuGraphMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS *p, memset_work(&work, p))
SET_EXEC_IN_CONTEXT(cuGraphExecMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS *p,
		    memset_work(&work, p))
ADD(cuGraphAddHostNode, const CUDA_HOST_NODE_PARAMS *p, host_work(&work, p))
SET(cuGraphHostNodeSetParams, const CUDA_HOST_NODE_PARAMS *p, host_work(&work, p))
SET_EXEC(cuGraphExecHostNodeSetParams, const CUDA_HOST_NODE_PARAMS *p, host_work(&work, p))
ADD(cuGraphAddChildGraphNode, CUgraph childGraph, child_work(&work, childGraph))
SET_EXEC(cuGraphExecChildGraphNodeSetParams, CUgraph childGraph, child_work(&work, childGraph))
ADD(cuGraphAddEventRecordNode, CUevent event, record_work(&work, event))
SET(cuGraphEventRecordNodeSetEvent, CUevent event, record_work(&work, event))
SET_EXEC(cuGraphExecEventRecordNodeSetEvent, CUevent event, record_work(&work, event))
ADD(cuGraphAddEventWaitNode, CUevent event, wait_work(&work, event))
SET(cuGraphEventWaitNodeSetEvent, CUevent event, wait_work(&work, event))
SET_EXEC(cuGraphExecEventWaitNodeSetEvent, CUevent event, wait_work(&work, event))
ADD_OF(cuGraphAddBatchMemOpNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, p ? p->ctx : NULL,
       values_work(&work, p))
SET_OF(cuGraphBatchMemOpNodeSetParams, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, p ? p->ctx : NULL,
       values_work(&work, p))
SET_EXEC_OF(cuGraphExecBatchMemOpNodeSetParams, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p,
	    p ? p->ctx : NULL, values_work(&work, p))
ADD(cuGraphAddMemAllocNode, CUDA_MEM_ALLOC_NODE_PARAMS *p, alloc_work(&work, p))
ADD(cuGraphAddMemFreeNode, CUdeviceptr dptr, free_work(&work, dptr))
SET_OF(cuGraphNodeSetParams, CUgraphNodeParams *p, context_of(p), any_work(&work, p))
SET_EXEC_OF(cuGraphExecNodeSetParams, CUgraphNodeParams *p, context_of(p), any_work(&work, p))

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
	CUresult error = any_work(&work, nodeParams);

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
