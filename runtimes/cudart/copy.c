/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of one, two and three dimensions, from and to symbols, and memset. */
#include "runtimes/cudart/internal.h"

static bool kind_known(enum cudaMemcpyKind kind)
{
	return (unsigned)kind <= cudaMemcpyDefault;
}

static cudaError_t copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	CUdeviceptr destination = (CUdeviceptr)to, source = (CUdeviceptr)from;

	if (!kind_known(kind))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	CUDART_ENTER();
	if (!bytes)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_result(cudart_driver.cuMemcpyHtoD(destination, from, bytes));
	case cudaMemcpyDeviceToHost:
		return cudart_result(cudart_driver.cuMemcpyDtoH(to, source, bytes));
	case cudaMemcpyDeviceToDevice:
		return cudart_result(cudart_driver.cuMemcpyDtoD(destination, source, bytes));
	default:
		return cudart_result(cudart_driver.cuMemcpy(destination, source, bytes));
	}
}

static cudaError_t copy_async(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	CUdeviceptr destination = (CUdeviceptr)to, source = (CUdeviceptr)from;

	if (!kind_known(kind))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	CUDART_ENTER();
	if (!bytes)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_result(
			cudart_driver.cuMemcpyHtoDAsync(destination, from, bytes, stream));
	case cudaMemcpyDeviceToHost:
		return cudart_result(cudart_driver.cuMemcpyDtoHAsync(to, source, bytes, stream));
	case cudaMemcpyDeviceToDevice:
		return cudart_result(
			cudart_driver.cuMemcpyDtoDAsync(destination, source, bytes, stream));
	default:
		return cudart_result(
			cudart_driver.cuMemcpyAsync(destination, source, bytes, stream));
	}
}

cudaError_t CUDARTAPI cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	return copy(to, from, bytes, kind);
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t bytes,
				      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_async(to, from, bytes, kind, stream);
}

CUDART_PTDS(cudaMemcpy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
	    copy_async(to, from, bytes, kind, cudaStreamPerThread))
CUDART_PTSZ(cudaMemcpyAsync,
	    (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
	     cudaStream_t stream),
	    (to, from, bytes, kind, stream))

cudaError_t CUDARTAPI cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
				     size_t bytes)
{
	CUcontext to_context, from_context;
	cudaError_t error;

	CUDART_ENTER();
	error = cudart_primary_context(to_device, &to_context);
	if (error == cudaSuccess)
		CUDART_TRY(cudart_primary_context(from_device, &from_context));
	return cudart_result(cudart_driver.cuMemcpyPeer((CUdeviceptr)to, to_context,
							(CUdeviceptr)from, from_context, bytes));
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
					  int from_device, size_t bytes, cudaStream_t stream)
{
	CUcontext to_context, from_context;
	cudaError_t error;

	CUDART_ENTER();
	error = cudart_primary_context(to_device, &to_context);
	if (error == cudaSuccess)
		CUDART_TRY(cudart_primary_context(from_device, &from_context));
	return cudart_result(cudart_driver.cuMemcpyPeerAsync(
		(CUdeviceptr)to, to_context, (CUdeviceptr)from, from_context, bytes, stream));
}

/* What a kind says about each side. */
static CUmemorytype side(enum cudaMemcpyKind kind, bool destination)
{
	static const CUmemorytype sides[][2] = {
		[cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
		[cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
		[cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
		[cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
		[cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED},
	};

	return sides[kind][destination];
}

/* One plane to copy; `now`: return when it is done. */
struct plane {
	void *to;
	size_t to_pitch;
	const void *from;
	size_t from_pitch, width, height;
	enum cudaMemcpyKind kind;
};

static cudaError_t copy_plane(const struct plane *plane, cudaStream_t stream, bool now)
{
	CUDA_MEMCPY2D driver = {
		.srcHost = plane->from,
		.srcDevice = (CUdeviceptr)plane->from,
		.srcPitch = plane->from_pitch,
		.dstHost = plane->to,
		.dstDevice = (CUdeviceptr)plane->to,
		.dstPitch = plane->to_pitch,
		.WidthInBytes = plane->width,
		.Height = plane->height,
	};

	if (!kind_known(plane->kind))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	if (plane->width > plane->to_pitch || plane->width > plane->from_pitch)
		return cudart_fail(cudaErrorInvalidPitchValue);
	CUDART_ENTER();
	if (!plane->width || !plane->height)
		return cudaSuccess;
	driver.srcMemoryType = side(plane->kind, false);
	driver.dstMemoryType = side(plane->kind, true);
	return cudart_result(now ? cudart_driver.cuMemcpy2DUnaligned(&driver)
				 : cudart_driver.cuMemcpy2DAsync(&driver, stream));
}

#define PLANE_PARAMS                                                                               \
	void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,              \
		size_t height, enum cudaMemcpyKind kind
#define PLANE (&(struct plane){to, to_pitch, from, from_pitch, width, height, kind})

cudaError_t CUDARTAPI cudaMemcpy2D(PLANE_PARAMS)
{
	return copy_plane(PLANE, NULL, true);
}

cudaError_t CUDARTAPI cudaMemcpy2DAsync(PLANE_PARAMS, cudaStream_t stream)
{
	return copy_plane(PLANE, stream, false);
}

CUDART_PTDS(cudaMemcpy2D, (PLANE_PARAMS), copy_plane(PLANE, cudaStreamPerThread, false))
CUDART_PTSZ(cudaMemcpy2DAsync, (PLANE_PARAMS, cudaStream_t stream),
	    (to, to_pitch, from, from_pitch, width, height, kind, stream))

cudaError_t cudart_box_params(const struct cudaMemcpy3DParms *box, CUDA_MEMCPY3D *params)
{
	static bool said;

	if (!box)
		return cudaErrorInvalidValue;
	if (box->srcArray || box->dstArray)
		return cudart_unsupported("a copy from or to an array", &said);
	if (!kind_known(box->kind))
		return cudaErrorInvalidMemcpyDirection;
	*params = (CUDA_MEMCPY3D){
		.srcXInBytes = box->srcPos.x,
		.srcY = box->srcPos.y,
		.srcZ = box->srcPos.z,
		.srcMemoryType = side(box->kind, false),
		.srcHost = box->srcPtr.ptr,
		.srcDevice = (CUdeviceptr)box->srcPtr.ptr,
		.srcPitch = box->srcPtr.pitch,
		.srcHeight = box->srcPtr.ysize,
		.dstXInBytes = box->dstPos.x,
		.dstY = box->dstPos.y,
		.dstZ = box->dstPos.z,
		.dstMemoryType = side(box->kind, true),
		.dstHost = box->dstPtr.ptr,
		.dstDevice = (CUdeviceptr)box->dstPtr.ptr,
		.dstPitch = box->dstPtr.pitch,
		.dstHeight = box->dstPtr.ysize,
		.WidthInBytes = box->extent.width,
		.Height = box->extent.height,
		.Depth = box->extent.depth,
	};
	return cudaSuccess;
}

static cudaError_t copy_box(const struct cudaMemcpy3DParms *box, cudaStream_t stream, bool now)
{
	CUDA_MEMCPY3D driver;
	cudaError_t error = cudart_box_params(box, &driver);

	if (error != cudaSuccess)
		return cudart_fail(error);
	CUDART_ENTER();
	if (!box->extent.width || !box->extent.height || !box->extent.depth)
		return cudaSuccess;
	return cudart_result(now ? cudart_driver.cuMemcpy3D(&driver)
				 : cudart_driver.cuMemcpy3DAsync(&driver, stream));
}

cudaError_t CUDARTAPI cudaMemcpy3D(const struct cudaMemcpy3DParms *box)
{
	return copy_box(box, NULL, true);
}

cudaError_t CUDARTAPI cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *box, cudaStream_t stream)
{
	return copy_box(box, stream, false);
}

CUDART_PTDS(cudaMemcpy3D, (const struct cudaMemcpy3DParms *box),
	    copy_box(box, cudaStreamPerThread, false))
CUDART_PTSZ(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *box, cudaStream_t stream),
	    (box, stream))

static cudaError_t copy_peer_box(const struct cudaMemcpy3DPeerParms *box, cudaStream_t stream,
				 bool now)
{
	static bool said;
	CUcontext to, from;
	CUDA_MEMCPY3D_PEER driver;
	cudaError_t error;

	CUDART_REQUIRE(box);
	if (box->srcArray || box->dstArray)
		return cudart_unsupported("cudaMemcpy3DPeer with an array", &said);
	CUDART_ENTER();
	error = cudart_primary_context(box->dstDevice, &to);
	if (error == cudaSuccess)
		CUDART_TRY(cudart_primary_context(box->srcDevice, &from));
	driver = (CUDA_MEMCPY3D_PEER){
		.srcXInBytes = box->srcPos.x,
		.srcY = box->srcPos.y,
		.srcZ = box->srcPos.z,
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = (CUdeviceptr)box->srcPtr.ptr,
		.srcContext = from,
		.srcPitch = box->srcPtr.pitch,
		.srcHeight = box->srcPtr.ysize,
		.dstXInBytes = box->dstPos.x,
		.dstY = box->dstPos.y,
		.dstZ = box->dstPos.z,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = (CUdeviceptr)box->dstPtr.ptr,
		.dstContext = to,
		.dstPitch = box->dstPtr.pitch,
		.dstHeight = box->dstPtr.ysize,
		.WidthInBytes = box->extent.width,
		.Height = box->extent.height,
		.Depth = box->extent.depth,
	};
	return cudart_result(now ? cudart_driver.cuMemcpy3DPeer(&driver)
				 : cudart_driver.cuMemcpy3DPeerAsync(&driver, stream));
}

cudaError_t CUDARTAPI cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *box)
{
	return copy_peer_box(box, NULL, true);
}

cudaError_t CUDARTAPI cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *box,
					    cudaStream_t stream)
{
	return copy_peer_box(box, stream, false);
}

CUDART_PTDS(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *box),
	    copy_peer_box(box, cudaStreamPerThread, false))
CUDART_PTSZ(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *box, cudaStream_t stream),
	    (box, stream))

cudaError_t cudart_place_in_symbol(const void *symbol, size_t bytes, size_t offset, void **address)
{
	CUdeviceptr base;
	size_t size;

	CUDART_ENTER();
	CUDART_TRY(cudart_variable(symbol, &base, &size));
	CUDART_REQUIRE(offset <= size && bytes <= size - offset);
	*address = (void *)(base + offset);
	return cudaSuccess;
}

/* Symbols live on the device: of the kinds, those with a host on the symbol's side make no sense.
 */
static cudaError_t copy_to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
				  enum cudaMemcpyKind kind, cudaStream_t stream, bool now)
{
	cudaError_t error;
	void *to;

	if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
	    kind != cudaMemcpyDefault)
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	error = cudart_place_in_symbol(symbol, bytes, offset, &to);
	if (error != cudaSuccess)
		return error;
	return now ? copy(to, from, bytes, kind) : copy_async(to, from, bytes, kind, stream);
}

static cudaError_t copy_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset,
				    enum cudaMemcpyKind kind, cudaStream_t stream, bool now)
{
	cudaError_t error;
	void *from;

	if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
	    kind != cudaMemcpyDefault)
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	error = cudart_place_in_symbol(symbol, bytes, offset, &from);
	if (error != cudaSuccess)
		return error;
	return now ? copy(to, from, bytes, kind) : copy_async(to, from, bytes, kind, stream);
}

#define TO_SYMBOL_PARAMS                                                                           \
	const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind
#define FROM_SYMBOL_PARAMS                                                                         \
	void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind

/* The doors of either direction; what stands behind the parameters' list are their names. */
#define SYMBOL(name, copy_symbol, parameters, ...)                                                 \
	cudaError_t CUDARTAPI name(parameters)                                                     \
	{                                                                                          \
		return copy_symbol(__VA_ARGS__, NULL, true);                                       \
	}                                                                                          \
	cudaError_t CUDARTAPI name##Async(parameters, cudaStream_t stream)                         \
	{                                                                                          \
		return copy_symbol(__VA_ARGS__, stream, false);                                    \
	}                                                                                          \
	CUDART_PTDS(name, (parameters), copy_symbol(__VA_ARGS__, cudaStreamPerThread, false))      \
	CUDART_PTSZ(name##Async, (parameters, cudaStream_t stream), (__VA_ARGS__, stream))

SYMBOL(cudaMemcpyToSymbol, copy_to_symbol, TO_SYMBOL_PARAMS, symbol, from, bytes, offset, kind)
SYMBOL(cudaMemcpyFromSymbol, copy_from_symbol, FROM_SYMBOL_PARAMS, to, symbol, bytes, offset, kind)

static cudaError_t fill(void *pointer, size_t pitch, int value, size_t width, size_t height,
			cudaStream_t stream, bool now)
{
	CUdeviceptr address = (CUdeviceptr)pointer;
	unsigned char byte = (unsigned char)value;

	CUDART_ENTER();
	if (!width || !height)
		return cudaSuccess;
	if (height == 1)
		return cudart_result(
			now ? cudart_driver.cuMemsetD8(address, byte, width)
			    : cudart_driver.cuMemsetD8Async(address, byte, width, stream));
	if (width > pitch)
		return cudart_fail(cudaErrorInvalidPitchValue);
	return cudart_result(
		now ? cudart_driver.cuMemsetD2D8(address, pitch, byte, width, height)
		    : cudart_driver.cuMemsetD2D8Async(address, pitch, byte, width, height, stream));
}

/* Planes that are whole are one tall plane; otherwise plane by plane. */
static cudaError_t fill_box(struct cudaPitchedPtr box, int value, struct cudaExtent extent,
			    cudaStream_t stream, bool now)
{
	size_t rows;

	CUDART_REQUIRE(!__builtin_mul_overflow(extent.height, extent.depth, &rows));
	if (extent.height == box.ysize)
		return fill(box.ptr, box.pitch, value, extent.width, rows, stream, now);
	CUDART_REQUIRE(extent.height <= box.ysize);
	for (size_t z = 0; z < extent.depth; z++) {
		cudaError_t error = fill((char *)box.ptr + z * box.pitch * box.ysize, box.pitch,
					 value, extent.width, extent.height, stream, now);

		if (error != cudaSuccess)
			return error;
	}
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemset(void *pointer, int value, size_t bytes)
{
	return fill(pointer, bytes, value, bytes, 1, NULL, true);
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
	return fill(pointer, bytes, value, bytes, 1, stream, false);
}

CUDART_PTDS(cudaMemset, (void *pointer, int value, size_t bytes),
	    fill(pointer, bytes, value, bytes, 1, cudaStreamPerThread, false))
CUDART_PTSZ(cudaMemsetAsync, (void *pointer, int value, size_t bytes, cudaStream_t stream),
	    (pointer, value, bytes, stream))

cudaError_t CUDARTAPI cudaMemset2D(void *pointer, size_t pitch, int value, size_t width,
				   size_t height)
{
	return fill(pointer, pitch, value, width, height, NULL, true);
}

cudaError_t CUDARTAPI cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width,
					size_t height, cudaStream_t stream)
{
	return fill(pointer, pitch, value, width, height, stream, false);
}

CUDART_PTDS(cudaMemset2D, (void *pointer, size_t pitch, int value, size_t width, size_t height),
	    fill(pointer, pitch, value, width, height, cudaStreamPerThread, false))
CUDART_PTSZ(cudaMemset2DAsync,
	    (void *pointer, size_t pitch, int value, size_t width, size_t height,
	     cudaStream_t stream),
	    (pointer, pitch, value, width, height, stream))

cudaError_t CUDARTAPI cudaMemset3D(struct cudaPitchedPtr box, int value, struct cudaExtent extent)
{
	return fill_box(box, value, extent, NULL, true);
}

cudaError_t CUDARTAPI cudaMemset3DAsync(struct cudaPitchedPtr box, int value,
					struct cudaExtent extent, cudaStream_t stream)
{
	return fill_box(box, value, extent, stream, false);
}

CUDART_PTDS(cudaMemset3D, (struct cudaPitchedPtr box, int value, struct cudaExtent extent),
	    fill_box(box, value, extent, cudaStreamPerThread, false))
CUDART_PTSZ(cudaMemset3DAsync,
	    (struct cudaPitchedPtr box, int value, struct cudaExtent extent, cudaStream_t stream),
	    (box, value, extent, stream))
