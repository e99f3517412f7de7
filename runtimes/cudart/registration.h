/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that nvcc's and clang's generated host code calls; no header of the toolkit
 * declares them for C. Their signatures are those of the code that both compilers emit. */
#ifndef TALLY_RUNTIMES_CUDART_REGISTRATION_H
#define TALLY_RUNTIMES_CUDART_REGISTRATION_H

#include <cuda_runtime_api.h>

/* A handle is ours to choose; the generated code only hands it back. `binary` and all names stay
 * valid until __cudaUnregisterFatBinary(). */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
			    const char *name, int thread_limit, uint3 *thread, uint3 *block,
			    dim3 *block_size, dim3 *grid_size, int *warp_size);
void __cudaRegisterVar(void **handle, char *host_variable, char *device_address, const char *name,
		       int external, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host_pointer, char *device_address,
			      const char *name, int external, size_t size, int constant,
			      int global);
/* Non-zero when all managed variables of the image are ready. */
char __cudaInitModule(void **handle);

/* `kernel<<<grid, block, shared, stream>>>(...)`: pushed before the arguments are evaluated, popped
 * by the kernel's host function. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *symbol);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
			       size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
				    size_t shared, cudaStream_t stream);

/* The error of a launch through a null cudaKernel_t: the generated code asks for the handle once
 * and does not look at the answer. */
cudaError_t cudart_no_kernel(void);

#endif
