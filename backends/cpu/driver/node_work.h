/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a node of each type, of the parameters that the API has for it. `work` is zeroed and
 * tied to no context yet; on an error there is nothing to release.
 */
#ifndef TALLY_BACKENDS_CPU_DRIVER_NODE_WORK_H
#define TALLY_BACKENDS_CPU_DRIVER_NODE_WORK_H

#include "backends/cpu/driver/graph.h"

CUresult work_of_kernel(struct work *work, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult work_of_kernel_v1(struct work *work, const CUDA_KERNEL_NODE_PARAMS_v1 *p);
CUresult work_of_memcpy(struct work *work, const CUDA_MEMCPY3D *p);
CUresult work_of_memset(struct work *work, const CUDA_MEMSET_NODE_PARAMS *p);
CUresult work_of_host(struct work *work, const CUDA_HOST_NODE_PARAMS *p);
CUresult work_of_child(struct work *work, CUgraph handle);
CUresult work_of_record(struct work *work, CUevent handle);
CUresult work_of_wait(struct work *work, CUevent handle);
CUresult work_of_values(struct work *work, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p);
CUresult work_of_alloc(struct work *work, CUDA_MEM_ALLOC_NODE_PARAMS *p);
CUresult work_of_free(struct work *work, CUdeviceptr address);
CUresult work_of_any(struct work *work, CUgraphNodeParams *p);

#endif
