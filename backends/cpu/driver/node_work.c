/* SPDX-License-Identifier: Apache-2.0 */
/* From the API's parameters of a node to its work; see node_work.h. */
#include "backends/cpu/driver/node_work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- from parameters to work --- */

CUresult work_of_kernel(struct work *work, const CUDA_KERNEL_NODE_PARAMS *p)
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
CUresult work_of_kernel_v1(struct work *work, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS whole = {0};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&whole, p, sizeof *p);
	return work_of_kernel(work, &whole);
}

static CUresult check_transfer(struct work *work)
{
	bool empty;

	transfer_note(&work->transfer);
	return transfer_check(&work->transfer, &empty);
}

CUresult work_of_memcpy(struct work *work, const CUDA_MEMCPY3D *p)
{
	work->type = CU_GRAPH_NODE_TYPE_MEMCPY;
	CUresult error = copy_node_work(work, p);
	return error ? error : check_transfer(work);
}

CUresult work_of_memset(struct work *work, const CUDA_MEMSET_NODE_PARAMS *p)
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

CUresult work_of_host(struct work *work, const CUDA_HOST_NODE_PARAMS *p)
{
	if (!p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	work->type = CU_GRAPH_NODE_TYPE_HOST;
	work->host = *p;
	return CUDA_SUCCESS;
}

CUresult work_of_child(struct work *work, CUgraph handle)
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

CUresult work_of_record(struct work *work, CUevent handle)
{
	return event_work(work, handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

CUresult work_of_wait(struct work *work, CUevent handle)
{
	return event_work(work, handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

CUresult work_of_values(struct work *work, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	CUresult error =
		p ? values_check(p->count, p->paramArray, p->flags) : CUDA_ERROR_INVALID_VALUE;

	if (error)
		return error;
	return values_make(work, p->count, p->paramArray) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult work_of_alloc(struct work *work, CUDA_MEM_ALLOC_NODE_PARAMS *p)
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

CUresult work_of_free(struct work *work, CUdeviceptr address)
{
	struct region region;

	if (!memory_find(address, &region) || region.base != address)
		return CUDA_ERROR_INVALID_VALUE;
	work->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
	work->freed = address;
	return CUDA_SUCCESS;
}

CUresult work_of_any(struct work *work, CUgraphNodeParams *p)
{
	static atomic_bool said;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		CUDA_KERNEL_NODE_PARAMS kernel; /* the third version has the second's layout */

		static_assert(sizeof kernel == sizeof p->kernel, "kernel nodes");
		memcpy(&kernel, &p->kernel, sizeof kernel);
		return work_of_kernel(work, &kernel);
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return work_of_memcpy(work, &p->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET: {
		const CUDA_MEMSET_NODE_PARAMS_v2 *m = &p->memset;

		return work_of_memset(work, &(CUDA_MEMSET_NODE_PARAMS){m->dst, m->pitch, m->value,
								       m->elementSize, m->width,
								       m->height});
	}
	case CU_GRAPH_NODE_TYPE_HOST:
		return work_of_host(work, &(CUDA_HOST_NODE_PARAMS){p->host.fn, p->host.userData});
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return work_of_child(work, p->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		work->type = p->type;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return work_of_wait(work, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return work_of_record(work, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return work_of_values(work, &(CUDA_BATCH_MEM_OP_NODE_PARAMS){
						    p->memOp.ctx, p->memOp.count,
						    p->memOp.paramArray, p->memOp.flags});
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
		CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
			.poolProps = p->alloc.poolProps,
			.bytesize = p->alloc.bytesize,
		};
		CUresult error = work_of_alloc(work, &alloc);

		p->alloc.dptr = alloc.dptr;
		return error;
	}
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return work_of_free(work, p->free.dptr);
	default:
		return driver_unsupported("conditional and external semaphore nodes of a graph",
					  &said);
	}
}
