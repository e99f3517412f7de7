/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs whose parameters the runtime describes in its own way: kernels by their host
 * functions, copies, memsets, and nodes of any type. The rest of graphs is in thin.h. */
#include "runtimes/cudart/internal.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "host nodes");
static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS) &&
		      offsetof(struct cudaMemsetParams, height) ==
			      offsetof(CUDA_MEMSET_NODE_PARAMS, height),
	      "memset nodes");
static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) &&
		      offsetof(struct cudaMemAllocNodeParams, dptr) ==
			      offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr),
	      "allocation nodes");
static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams) &&
		      offsetof(struct cudaGraphNodeParams, kernel) ==
			      offsetof(CUgraphNodeParams, kernel),
	      "nodes");
static_assert((int)cudaGraphNodeTypeConditional == (int)CU_GRAPH_NODE_TYPE_CONDITIONAL,
	      "types of nodes");
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) &&
		      sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
	      "results");

/* --- from the runtime's parameters to the driver's --- */

static cudaError_t kernel_params(const struct cudaKernelNodeParams *from,
				 CUDA_KERNEL_NODE_PARAMS *to)
{
	CUkernel kernel;
	cudaError_t error;

	if (!from)
		return cudaErrorInvalidValue;
	error = cudart_kernel(from->func, &kernel);
	if (error != cudaSuccess)
		return error;
	*to = (CUDA_KERNEL_NODE_PARAMS){
		.kern = kernel,
		.gridDimX = from->gridDim.x,
		.gridDimY = from->gridDim.y,
		.gridDimZ = from->gridDim.z,
		.blockDimX = from->blockDim.x,
		.blockDimY = from->blockDim.y,
		.blockDimZ = from->blockDim.z,
		.sharedMemBytes = from->sharedMemBytes,
		.kernelParams = from->kernelParams,
		.extra = from->extra,
	};
	return cudaSuccess;
}

static cudaError_t memset_params(const struct cudaMemsetParams *from, CUDA_MEMSET_NODE_PARAMS *to)
{
	if (!from)
		return cudaErrorInvalidValue;
	memcpy(to, from, sizeof(*to));
	return cudaSuccess;
}

static struct cudaMemcpy3DParms line(void *to, const void *from, size_t bytes,
				     enum cudaMemcpyKind kind)
{
	return (struct cudaMemcpy3DParms){
		.srcPtr = {(void *)from, bytes, bytes, 1},
		.dstPtr = {to, bytes, bytes, 1},
		.extent = {bytes, 1, 1},
		.kind = kind,
	};
}

/* A copy that may be given in four ways; `error` is that of finding the symbol. */
static cudaError_t line_params(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			       cudaError_t error, CUDA_MEMCPY3D *params)
{
	struct cudaMemcpy3DParms box = line(to, from, bytes, kind);

	return error == cudaSuccess ? cudart_box_params(&box, params) : error;
}

static cudaError_t to_symbol_params(const void *symbol, const void *from, size_t bytes,
				    size_t offset, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *params)
{
	void *to = NULL;
	cudaError_t error = cudart_place_in_symbol(symbol, bytes, offset, &to);

	return line_params(to, from, bytes, kind, error, params);
}

static cudaError_t from_symbol_params(void *to, const void *symbol, size_t bytes, size_t offset,
				      enum cudaMemcpyKind kind, CUDA_MEMCPY3D *params)
{
	void *from = NULL;
	cudaError_t error = cudart_place_in_symbol(symbol, bytes, offset, &from);

	return line_params(to, from, bytes, kind, error, params);
}

static CUcontext current(void)
{
	CUcontext context = NULL;

	cudart_driver.cuCtxGetCurrent(&context);
	return context;
}

/* --- the three things that can be done with a description of a node --- */

#define ADD_PARAMS                                                                                 \
	cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count
#define ADD_ARGUMENTS  node, graph, before, count
#define SET_PARAMS     cudaGraphNode_t node
#define SET_ARGUMENTS  node
#define EXEC_PARAMS    cudaGraphExec_t exec, cudaGraphNode_t node
#define EXEC_ARGUMENTS exec, node

/* A function whose parameters are made into `params` of the driver's type and then given to it. */
#define INSIDE(...) __VA_ARGS__
#define NODE(name, kind, type, parameters, make, call)                                             \
	cudaError_t CUDARTAPI name(kind##_PARAMS, INSIDE parameters)                               \
	{                                                                                          \
		type params;                                                                       \
                                                                                                   \
		CUDART_ENTER();                                                                    \
		CUDART_TRY(make);                                                                  \
		return cudart_result(cudart_driver.call);                                          \
	}

#define KERNEL(name, kind, function)                                                               \
	NODE(name, kind, CUDA_KERNEL_NODE_PARAMS, (const struct cudaKernelNodeParams *from),       \
	     kernel_params(from, &params), function(kind##_ARGUMENTS, &params))
KERNEL(cudaGraphAddKernelNode, ADD, cuGraphAddKernelNode)
KERNEL(cudaGraphKernelNodeSetParams, SET, cuGraphKernelNodeSetParams)
KERNEL(cudaGraphExecKernelNodeSetParams, EXEC, cuGraphExecKernelNodeSetParams)

/* Copies and memsets work in a context, which graphs remember but for changes in place. */
#define IN_CONTEXT(add, set, exec_set, runtime_add, runtime_set, runtime_exec_set, type,           \
		   parameters, make)                                                               \
	NODE(runtime_add, ADD, type, parameters, make, add(ADD_ARGUMENTS, &params, current()))     \
	NODE(runtime_set, SET, type, parameters, make, set(SET_ARGUMENTS, &params))                \
	NODE(runtime_exec_set, EXEC, type, parameters, make,                                       \
	     exec_set(EXEC_ARGUMENTS, &params, current()))
IN_CONTEXT(cuGraphAddMemsetNode, cuGraphMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams,
	   cudaGraphAddMemsetNode, cudaGraphMemsetNodeSetParams, cudaGraphExecMemsetNodeSetParams,
	   CUDA_MEMSET_NODE_PARAMS, (const struct cudaMemsetParams *from),
	   memset_params(from, &params))

/* A box, a line, to a variable, from a variable. */
#define COPY(suffix, parameters, make)                                                             \
	IN_CONTEXT(cuGraphAddMemcpyNode, cuGraphMemcpyNodeSetParams,                               \
		   cuGraphExecMemcpyNodeSetParams, cudaGraphAddMemcpyNode##suffix,                 \
		   cudaGraphMemcpyNodeSetParams##suffix, cudaGraphExecMemcpyNodeSetParams##suffix, \
		   CUDA_MEMCPY3D, parameters, make)
COPY(, (const struct cudaMemcpy3DParms *box), cudart_box_params(box, &params))
COPY(1D, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
     line_params(to, from, bytes, kind, cudaSuccess, &params))
COPY(ToSymbol,
     (const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind),
     to_symbol_params(symbol, from, bytes, offset, kind, &params))
COPY(FromSymbol,
     (void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind),
     from_symbol_params(to, symbol, bytes, offset, kind, &params))

/* --- back --- */

cudaError_t CUDARTAPI cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
						   struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS from;
	CUresult result;

	CUDART_REQUIRE(params);
	CUDART_ENTER();
	result = cudart_driver.cuGraphKernelNodeGetParams(node, &from);
	if (result != CUDA_SUCCESS)
		return cudart_result(result);
	*params = (struct cudaKernelNodeParams){
		.func = (void *)cudart_symbol(from.func, from.kern),
		.gridDim = {from.gridDimX, from.gridDimY, from.gridDimZ},
		.blockDim = {from.blockDimX, from.blockDimY, from.blockDimZ},
		.sharedMemBytes = from.sharedMemBytes,
		.kernelParams = from.kernelParams,
		.extra = from.extra,
	};
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
						   struct cudaMemsetParams *params)
{
	CUDART_REQUIRE(params);
	CUDART_ENTER();
	return cudart_result(
		cudart_driver.cuGraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *)params));
}

cudaError_t CUDARTAPI cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
						   struct cudaMemcpy3DParms *params)
{
	CUDA_MEMCPY3D from;
	CUresult result;

	CUDART_REQUIRE(params);
	CUDART_ENTER();
	result = cudart_driver.cuGraphMemcpyNodeGetParams(node, &from);
	if (result != CUDA_SUCCESS)
		return cudart_result(result);
	bool from_host = from.srcMemoryType == CU_MEMORYTYPE_HOST;
	bool to_host = from.dstMemoryType == CU_MEMORYTYPE_HOST;
	*params = (struct cudaMemcpy3DParms){
		.srcPos = {from.srcXInBytes, from.srcY, from.srcZ},
		.srcPtr = {from_host ? (void *)from.srcHost : (void *)from.srcDevice, from.srcPitch,
			   from.srcPitch, from.srcHeight},
		.dstPos = {from.dstXInBytes, from.dstY, from.dstZ},
		.dstPtr = {to_host ? from.dstHost : (void *)from.dstDevice, from.dstPitch,
			   from.dstPitch, from.dstHeight},
		.extent = {from.WidthInBytes, from.Height, from.Depth},
		.kind = from_host ? (to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
				  : (to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice),
	};
	return cudaSuccess;
}

/* --- nodes of any type --- */

/* Most types have one layout in both interfaces; kernels and copies do not, and what works in a
 * context is told which. */
static cudaError_t any_params(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
	if (!from)
		return cudaErrorInvalidValue;
	memcpy(to, from, sizeof(*to));
	if (from->type == cudaGraphNodeTypeKernel) {
		CUDA_KERNEL_NODE_PARAMS kernel;
		struct cudaKernelNodeParams runtime;
		cudaError_t error;

		static_assert(sizeof(runtime) == sizeof(from->kernel) &&
				      sizeof(kernel) == sizeof(to->kernel),
			      "kernel nodes");
		memcpy(&runtime, &from->kernel, sizeof(runtime));
		error = kernel_params(&runtime, &kernel);
		memset(&to->kernel, 0, sizeof(to->reserved1));
		memcpy(&to->kernel, &kernel, sizeof(kernel));
		return error;
	}
	if (from->type == cudaGraphNodeTypeMemcpy) {
		CUDA_MEMCPY3D copy;
		cudaError_t error = cudart_box_params(&from->memcpy.copyParams, &copy);

		memset(&to->memcpy, 0, sizeof(to->reserved1));
		to->memcpy.copyCtx = current();
		to->memcpy.copyParams = copy;
		return error;
	}
	if (from->type == cudaGraphNodeTypeMemset)
		to->memset.ctx = current();
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
				       const cudaGraphNode_t *before,
				       const cudaGraphEdgeData *edges, size_t count,
				       struct cudaGraphNodeParams *from)
{
	CUgraphNodeParams params;
	CUresult result;

	CUDART_ENTER();
	CUDART_TRY(any_params(from, &params));
	result = cudart_driver.cuGraphAddNode(node, graph, before, (const CUgraphEdgeData *)edges,
					      count, &params);
	/* What the driver gives back. */
	if (result == CUDA_SUCCESS && from->type == cudaGraphNodeTypeMemAlloc)
		from->alloc.dptr = (void *)params.alloc.dptr;
	if (result == CUDA_SUCCESS && from->type == cudaGraphNodeTypeGraph)
		from->graph.graph = params.graph.graph;
	return cudart_result(result);
}

NODE(cudaGraphNodeSetParams, SET, CUgraphNodeParams, (struct cudaGraphNodeParams * from),
     any_params(from, &params), cuGraphNodeSetParams(SET_ARGUMENTS, &params))
NODE(cudaGraphExecNodeSetParams, EXEC, CUgraphNodeParams, (struct cudaGraphNodeParams * from),
     any_params(from, &params), cuGraphExecNodeSetParams(EXEC_ARGUMENTS, &params))

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
						     cudaGraphInstantiateParams *params)
{
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuGraphInstantiateWithParams(
		exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params));
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *, cudaGraph_t,
							  cudaGraphInstantiateParams *);
cudaError_t CUDARTAPI cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
							  cudaGraphInstantiateParams *params)
{
	CUDART_REQUIRE(params);
	params->uploadStream = cudart_own_stream(params->uploadStream);
	return cudaGraphInstantiateWithParams(exec, graph, params);
}
