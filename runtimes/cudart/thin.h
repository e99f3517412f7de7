/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that are one call of the driver; an X-macro list without a guard, included with the
 * CUDART_THIN macros of thin.c. Parameters are those of cuda_runtime_api.h. */

/* Devices */
CUDART_THIN_DRIVER(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device),
		   cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device))
CUDART_THIN_DRIVER(cudaDeviceGetByPCIBusId, (int *device, const char *bus),
		   cuDeviceGetByPCIBusId(device, bus))
CUDART_THIN_DRIVER(cudaDeviceGetPCIBusId, (char *bus, int length, int device),
		   cuDeviceGetPCIBusId(bus, length, device))
CUDART_THIN_DRIVER(cudaDeviceCanAccessPeer, (int *can, int device, int peer),
		   cuDeviceCanAccessPeer(can, device, peer))
CUDART_THIN_DRIVER(cudaDeviceGetP2PAttribute,
		   (int *value, enum cudaDeviceP2PAttr attribute, int from, int to),
		   cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attribute, from, to))
CUDART_THIN_DRIVER(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
		   cuDeviceGetDefaultMemPool(pool, device))
CUDART_THIN_DRIVER(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device),
		   cuDeviceGetMemPool(pool, device))
CUDART_THIN_DRIVER(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool),
		   cuDeviceSetMemPool(device, pool))
CUDART_THIN(cudaDeviceGetLimit, (size_t *value, enum cudaLimit limit),
	    cuCtxGetLimit(value, (CUlimit)limit))
CUDART_THIN(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value),
	    cuCtxSetLimit((CUlimit)limit, value))
CUDART_THIN(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config),
	    cuCtxGetCacheConfig((CUfunc_cache *)config))
CUDART_THIN(cudaDeviceSetCacheConfig, (enum cudaFuncCache config),
	    cuCtxSetCacheConfig((CUfunc_cache)config))
CUDART_THIN(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
	    cuCtxGetStreamPriorityRange(least, greatest))
CUDART_THIN(cudaCtxResetPersistingL2Cache, (void), cuCtxResetPersistingL2Cache())
CUDART_THIN(cudaDeviceFlushGPUDirectRDMAWrites,
	    (enum cudaFlushGPUDirectRDMAWritesTarget target,
	     enum cudaFlushGPUDirectRDMAWritesScope scope),
	    cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget)target,
				       (CUflushGPUDirectRDMAWritesScope)scope))
CUDART_THIN(cudaProfilerStart, (void), cuProfilerStart())
CUDART_THIN(cudaProfilerStop, (void), cuProfilerStop())

/* Memory */
CUDART_THIN(cudaMemGetInfo, (size_t *available, size_t *total), cuMemGetInfo(available, total))
CUDART_THIN(cudaHostRegister, (void *pointer, size_t bytes, unsigned flags),
	    cuMemHostRegister(pointer, bytes, flags))
CUDART_THIN(cudaHostUnregister, (void *pointer), cuMemHostUnregister(pointer))
CUDART_THIN(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags),
	    cuMemHostGetDevicePointer((CUdeviceptr *)device, host, flags))
CUDART_THIN(cudaHostGetFlags, (unsigned *flags, void *host), cuMemHostGetFlags(flags, host))
CUDART_THIN(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer),
	    cuIpcGetMemHandle((CUipcMemHandle *)handle, (CUdeviceptr)pointer))
CUDART_THIN(cudaIpcOpenMemHandle, (void **pointer, cudaIpcMemHandle_t handle, unsigned flags),
	    cuIpcOpenMemHandle((CUdeviceptr *)pointer, *(CUipcMemHandle *)&handle, flags))
CUDART_THIN(cudaIpcCloseMemHandle, (void *pointer), cuIpcCloseMemHandle((CUdeviceptr)pointer))
CUDART_THIN(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
	    cuIpcGetEventHandle((CUipcEventHandle *)handle, event))
CUDART_THIN(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
	    cuIpcOpenEventHandle(event, *(CUipcEventHandle *)&handle))
CUDART_THIN(cudaMemRangeGetAttribute,
	    (void *data, size_t size, enum cudaMemRangeAttribute attribute, const void *pointer,
	     size_t bytes),
	    cuMemRangeGetAttribute(data, size, (CUmem_range_attribute)attribute,
				   (CUdeviceptr)pointer, bytes))
CUDART_THIN(cudaMemRangeGetAttributes,
	    (void **data, size_t *sizes, enum cudaMemRangeAttribute *attributes, size_t count,
	     const void *pointer, size_t bytes),
	    cuMemRangeGetAttributes(data, sizes, (CUmem_range_attribute *)attributes, count,
				    (CUdeviceptr)pointer, bytes))
CUDART_THIN(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy(pool))
CUDART_THIN(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), cuMemPoolTrimTo(pool, keep))
CUDART_THIN(cudaMemPoolSetAttribute,
	    (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
	    cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value))
CUDART_THIN(cudaMemPoolGetAttribute,
	    (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
	    cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value))

/* Streams */
CUDART_THIN(cudaStreamCreate, (cudaStream_t * stream), cuStreamCreate(stream, CU_STREAM_DEFAULT))
CUDART_THIN(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),
	    cuStreamCreate(stream, flags))
CUDART_THIN(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
	    cuStreamCreateWithPriority(stream, flags, priority))
CUDART_THIN(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
CUDART_THIN_STREAM(cudaStreamGetPriority, (cudaStream_t stream, int *priority),
		   cuStreamGetPriority(stream, priority))
CUDART_THIN_STREAM(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags),
		   cuStreamGetFlags(stream, flags))
CUDART_THIN_STREAM(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id),
		   cuStreamGetId(stream, id))
CUDART_THIN_STREAM(cudaStreamGetAttribute,
		   (cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue *value),
		   cuStreamGetAttribute(stream, (CUstreamAttrID)attribute,
					(CUstreamAttrValue *)value))
CUDART_THIN_STREAM(cudaStreamSetAttribute,
		   (cudaStream_t stream, cudaStreamAttrID attribute,
		    const cudaStreamAttrValue *value),
		   cuStreamSetAttribute(stream, (CUstreamAttrID)attribute,
					(const CUstreamAttrValue *)value))
CUDART_THIN_STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
		   cuStreamWaitEvent(stream, event, flags))
CUDART_THIN_STREAM(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
CUDART_THIN_STREAM(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery(stream))
CUDART_THIN_STREAM(cudaStreamAttachMemAsync,
		   (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
		   cuStreamAttachMemAsync(stream, (CUdeviceptr)pointer, bytes, flags))
CUDART_THIN_STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
		   cuLaunchHostFunc(stream, function, data))

/* Events */
CUDART_THIN(cudaEventCreate, (cudaEvent_t * event), cuEventCreate(event, CU_EVENT_DEFAULT))
CUDART_THIN(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags),
	    cuEventCreate(event, flags))
CUDART_THIN(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
CUDART_THIN_STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
		   cuEventRecord(event, stream))
CUDART_THIN_STREAM(cudaEventRecordWithFlags,
		   (cudaEvent_t event, cudaStream_t stream, unsigned flags),
		   cuEventRecordWithFlags(event, stream, flags))
CUDART_THIN(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
CUDART_THIN(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
CUDART_THIN(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end),
	    cuEventElapsedTime(milliseconds, start, end))

/* Libraries */
CUDART_THIN(cudaLibraryLoadData,
	    (cudaLibrary_t * library, const void *code, enum cudaJitOption *jit, void **jit_values,
	     unsigned jit_count, enum cudaLibraryOption *options, void **values, unsigned count),
	    cuLibraryLoadData(library, code, (CUjit_option *)jit, jit_values, jit_count,
			      (CUlibraryOption *)options, values, count))
CUDART_THIN(cudaLibraryLoadFromFile,
	    (cudaLibrary_t * library, const char *file, enum cudaJitOption *jit, void **jit_values,
	     unsigned jit_count, enum cudaLibraryOption *options, void **values, unsigned count),
	    cuLibraryLoadFromFile(library, file, (CUjit_option *)jit, jit_values, jit_count,
				  (CUlibraryOption *)options, values, count))
CUDART_THIN(cudaLibraryGetGlobal,
	    (void **pointer, size_t *bytes, cudaLibrary_t library, const char *name),
	    cuLibraryGetGlobal((CUdeviceptr *)pointer, bytes, library, name))
CUDART_THIN(cudaLibraryGetManaged,
	    (void **pointer, size_t *bytes, cudaLibrary_t library, const char *name),
	    cuLibraryGetManaged((CUdeviceptr *)pointer, bytes, library, name))
CUDART_THIN(cudaLibraryGetUnifiedFunction,
	    (void **function, cudaLibrary_t library, const char *symbol),
	    cuLibraryGetUnifiedFunction(function, library, symbol))
CUDART_THIN(cudaLibraryGetKernelCount, (unsigned *count, cudaLibrary_t library),
	    cuLibraryGetKernelCount(count, library))
CUDART_THIN(cudaKernelSetAttributeForDevice,
	    (cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device),
	    cuKernelSetAttribute((CUfunction_attribute)attribute, value, kernel, device))

/* Stream capture, graphs that are there */
CUDART_THIN_STREAM(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
		   cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode))
CUDART_THIN_STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph),
		   cuStreamEndCapture(stream, graph))
CUDART_THIN_STREAM(cudaStreamIsCapturing,
		   (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
		   cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status))
CUDART_THIN_STREAM(cudaStreamGetCaptureInfo,
		   (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
		    unsigned long long *id, cudaGraph_t *graph,
		    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
		    size_t *count),
		   cuStreamGetCaptureInfo(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id,
					  graph, dependencies, (const CUgraphEdgeData **)edges,
					  count))
CUDART_THIN_STREAM(cudaStreamUpdateCaptureDependencies,
		   (cudaStream_t stream, cudaGraphNode_t *dependencies,
		    const cudaGraphEdgeData *edges, size_t count, unsigned flags),
		   cuStreamUpdateCaptureDependencies(stream, dependencies,
						     (const CUgraphEdgeData *)edges, count, flags))
CUDART_THIN(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
	    cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
CUDART_THIN_STREAM(cudaGraphUpload, (cudaGraphExec_t graph, cudaStream_t stream),
		   cuGraphUpload(graph, stream))
CUDART_THIN_STREAM(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream),
		   cuGraphLaunch(graph, stream))
CUDART_THIN(cudaGraphExecDestroy, (cudaGraphExec_t graph), cuGraphExecDestroy(graph))
CUDART_THIN(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))

/* Graphs; nodes whose parameters differ are in graph.c */
CUDART_THIN_STREAM(cudaStreamBeginCaptureToGraph,
		   (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *before,
		    const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),
		   cuStreamBeginCaptureToGraph(stream, graph, before,
					       (const CUgraphEdgeData *)edges, count,
					       (CUstreamCaptureMode)mode))
CUDART_THIN(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), cuGraphCreate(graph, flags))
CUDART_THIN(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), cuGraphClone(clone, graph))
CUDART_THIN(cudaGraphNodeFindInClone,
	    (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone),
	    cuGraphNodeFindInClone(node, original, clone))
CUDART_THIN(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type),
	    cuGraphNodeGetType(node, (CUgraphNodeType *)type))
CUDART_THIN(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
	    cuGraphGetNodes(graph, nodes, count))
CUDART_THIN(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
	    cuGraphGetRootNodes(graph, nodes, count))
CUDART_THIN(cudaGraphGetEdges,
	    (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
	     cudaGraphEdgeData *edges, size_t *count),
	    cuGraphGetEdges(graph, from, to, (CUgraphEdgeData *)edges, count))
CUDART_THIN(cudaGraphNodeGetDependencies,
	    (cudaGraphNode_t node, cudaGraphNode_t *before, cudaGraphEdgeData *edges,
	     size_t *count),
	    cuGraphNodeGetDependencies(node, before, (CUgraphEdgeData *)edges, count))
CUDART_THIN(cudaGraphNodeGetDependentNodes,
	    (cudaGraphNode_t node, cudaGraphNode_t *after, cudaGraphEdgeData *edges, size_t *count),
	    cuGraphNodeGetDependentNodes(node, after, (CUgraphEdgeData *)edges, count))
CUDART_THIN(cudaGraphAddDependencies,
	    (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
	     const cudaGraphEdgeData *edges, size_t count),
	    cuGraphAddDependencies(graph, from, to, (const CUgraphEdgeData *)edges, count))
CUDART_THIN(cudaGraphRemoveDependencies,
	    (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
	     const cudaGraphEdgeData *edges, size_t count),
	    cuGraphRemoveDependencies(graph, from, to, (const CUgraphEdgeData *)edges, count))
CUDART_THIN(cudaGraphDestroyNode, (cudaGraphNode_t node), cuGraphDestroyNode(node))
CUDART_THIN(cudaGraphKernelNodeGetAttribute,
	    (cudaGraphNode_t node, cudaKernelNodeAttrID attribute, cudaKernelNodeAttrValue *value),
	    cuGraphKernelNodeGetAttribute(node, (CUkernelNodeAttrID)attribute,
					  (CUkernelNodeAttrValue *)value))
CUDART_THIN(cudaGraphKernelNodeSetAttribute,
	    (cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
	     const cudaKernelNodeAttrValue *value),
	    cuGraphKernelNodeSetAttribute(node, (CUkernelNodeAttrID)attribute,
					  (const CUkernelNodeAttrValue *)value))
CUDART_THIN(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t to, cudaGraphNode_t from),
	    cuGraphKernelNodeCopyAttributes(to, from))
CUDART_THIN(cudaGraphAddHostNode,
	    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
	     const struct cudaHostNodeParams *params),
	    cuGraphAddHostNode(node, graph, before, count, (const CUDA_HOST_NODE_PARAMS *)params))
CUDART_THIN(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, struct cudaHostNodeParams *params),
	    cuGraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *)params))
CUDART_THIN(cudaGraphHostNodeSetParams,
	    (cudaGraphNode_t node, const struct cudaHostNodeParams *params),
	    cuGraphHostNodeSetParams(node, (const CUDA_HOST_NODE_PARAMS *)params))
CUDART_THIN(cudaGraphExecHostNodeSetParams,
	    (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *params),
	    cuGraphExecHostNodeSetParams(exec, node, (const CUDA_HOST_NODE_PARAMS *)params))
CUDART_THIN(cudaGraphAddEmptyNode,
	    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before,
	     size_t count),
	    cuGraphAddEmptyNode(node, graph, before, count))
CUDART_THIN(cudaGraphAddChildGraphNode,
	    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
	     cudaGraph_t child),
	    cuGraphAddChildGraphNode(node, graph, before, count, child))
CUDART_THIN(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *graph),
	    cuGraphChildGraphNodeGetGraph(node, graph))
CUDART_THIN(cudaGraphExecChildGraphNodeSetParams,
	    (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child),
	    cuGraphExecChildGraphNodeSetParams(exec, node, child))
CUDART_THIN(cudaGraphAddEventRecordNode,
	    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
	     cudaEvent_t event),
	    cuGraphAddEventRecordNode(node, graph, before, count, event))
CUDART_THIN(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
	    cuGraphEventRecordNodeGetEvent(node, event))
CUDART_THIN(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
	    cuGraphEventRecordNodeSetEvent(node, event))
CUDART_THIN(cudaGraphExecEventRecordNodeSetEvent,
	    (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
	    cuGraphExecEventRecordNodeSetEvent(exec, node, event))
CUDART_THIN(cudaGraphAddEventWaitNode,
	    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
	     cudaEvent_t event),
	    cuGraphAddEventWaitNode(node, graph, before, count, event))
CUDART_THIN(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
	    cuGraphEventWaitNodeGetEvent(node, event))
CUDART_THIN(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
	    cuGraphEventWaitNodeSetEvent(node, event))
CUDART_THIN(cudaGraphExecEventWaitNodeSetEvent,
	    (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
	    cuGraphExecEventWaitNodeSetEvent(exec, node, event))
CUDART_THIN(cudaGraphAddMemAllocNode,
	    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
	     struct cudaMemAllocNodeParams *params),
	    cuGraphAddMemAllocNode(node, graph, before, count,
				   (CUDA_MEM_ALLOC_NODE_PARAMS *)params))
CUDART_THIN(cudaGraphMemAllocNodeGetParams,
	    (cudaGraphNode_t node, struct cudaMemAllocNodeParams *params),
	    cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params))
CUDART_THIN(cudaGraphAddMemFreeNode,
	    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
	     void *pointer),
	    cuGraphAddMemFreeNode(node, graph, before, count, (CUdeviceptr)pointer))
CUDART_THIN(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *pointer),
	    cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)pointer))
CUDART_THIN(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags),
	    cuGraphExecGetFlags(exec, (cuuint64_t *)flags))
CUDART_THIN(cudaGraphExecUpdate,
	    (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
	    cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)info))
CUDART_THIN(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled),
	    cuGraphNodeSetEnabled(exec, node, enabled))
CUDART_THIN(cudaGraphNodeGetEnabled,
	    (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled),
	    cuGraphNodeGetEnabled(exec, node, enabled))
CUDART_THIN(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned flags),
	    cuGraphDebugDotPrint(graph, path, flags))
CUDART_THIN(cudaUserObjectCreate,
	    (cudaUserObject_t * object, void *pointer, cudaHostFn_t destroy, unsigned count,
	     unsigned flags),
	    cuUserObjectCreate(object, pointer, destroy, count, flags))
CUDART_THIN(cudaUserObjectRetain, (cudaUserObject_t object, unsigned count),
	    cuUserObjectRetain(object, count))
CUDART_THIN(cudaUserObjectRelease, (cudaUserObject_t object, unsigned count),
	    cuUserObjectRelease(object, count))
CUDART_THIN(cudaGraphRetainUserObject,
	    (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags),
	    cuGraphRetainUserObject(graph, object, count, flags))
CUDART_THIN(cudaGraphReleaseUserObject,
	    (cudaGraph_t graph, cudaUserObject_t object, unsigned count),
	    cuGraphReleaseUserObject(graph, object, count))
CUDART_THIN_STREAM(cudaMemcpyBatchAsync,
		   (void *const *to, const void *const *from, const size_t *sizes, size_t count,
		    struct cudaMemcpyAttributes *attributes, size_t *indices, size_t kinds,
		    cudaStream_t stream),
		   cuMemcpyBatchAsync((CUdeviceptr *)to, (CUdeviceptr *)from, (size_t *)sizes,
				      count, (CUmemcpyAttributes *)attributes, indices, kinds,
				      stream))
