/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of one, two and three dimensions, from and to symbols, and memset. */
#include "runtimes/cudart/internal.h"

static bool kind_known(enum cudaMemcpyKind kind)
{
	return (unsigned)kind <= cudaMemcpyDefault;
}

/*
 * The doors to `function(ARGUMENTS..., stream, now)`: synchronous and not, each also for callers
 * compiled with a per-thread default stream. `now`: return when it is done.
 */
#define DOORS(name, function, parameters, ...)                                                     \
	cudaError_t CUDARTAPI name(parameters)                                                     \
	{                                                                                          \
		return function(__VA_ARGS__, NULL, true);                                          \
	}                                                                                          \
	cudaError_t CUDARTAPI name##Async(parameters, cudaStream_t stream)                         \
	{                                                                                          \
		return function(__VA_ARGS__, stream, false);                                       \
	}                                                                                          \
	CUDART_PTDS(name, (parameters), function(__VA_ARGS__, cudaStreamPerThread, false))         \
	CUDART_PTSZ(name##Async, (parameters, cudaStream_t stream), (__VA_ARGS__, stream))

static cudaError_t copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			cudaStream_t stream, bool now)
{
	const CUdeviceptr destination = (CUdeviceptr)to, source = (CUdeviceptr)from;
	const struct cudart_driver *d = &cudart_driver;

	if (!kind_known(kind))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	CUDART_ENTER();
	if (!bytes)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_result(now ? d->cuMemcpyHtoD(destination, from, bytes)
					 : d->cuMemcpyHtoDAsync(destination, from, bytes, stream));
	case cudaMemcpyDeviceToHost:
		return cudart_result(now ? d->cuMemcpyDtoH(to, source, bytes)
					 : d->cuMemcpyDtoHAsync(to, source, bytes, stream));
	case cudaMemcpyDeviceToDevice:
		return cudart_result(
			now ? d->cuMemcpyDtoD(destination, source, bytes)
			    : d->cuMemcpyDtoDAsync(destination, source, bytes, stream));
	default:
		return cudart_result(now ? d->cuMemcpy(destination, source, bytes)
					 : d->cuMemcpyAsync(destination, source, bytes, stream));
	}
}

#define COPY_PARAMS void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind

DOORS(cudaMemcpy, copy, COPY_PARAMS, to, from, bytes, kind)

static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device,
			     size_t bytes, cudaStream_t stream, bool now)
{
	const CUdeviceptr destination = (CUdeviceptr)to, source = (CUdeviceptr)from;
	CUcontext to_context, from_context;
	cudaError_t error;

	CUDART_ENTER();
	error = cudart_primary_context(to_device, &to_context);
	if (error == cudaSuccess)
		CUDART_TRY(cudart_primary_context(from_device, &from_context));
	return cudart_result(now ? cudart_driver.cuMemcpyPeer(destination, to_context, source,
							      from_context, bytes)
				 : cudart_driver.cuMemcpyPeerAsync(destination, to_context, source,
								   from_context, bytes, stream));
}

cudaError_t CUDARTAPI cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
				     size_t bytes)
{
	return copy_peer(to, to_device, from, from_device, bytes, NULL, true);
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
					  int from_device, size_t bytes, cudaStream_t stream)
{
	return copy_peer(to, to_device, from, from_device, bytes, stream, false);
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

#define PLANE_PARAMS                                                                               \
	void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,              \
		size_t height, enum cudaMemcpyKind kind

static cudaError_t copy_plane(PLANE_PARAMS, cudaStream_t stream, bool now)
{
	CUDA_MEMCPY2D driver = {
		.srcHost = from,
		.srcDevice = (CUdeviceptr)from,
		.srcPitch = from_pitch,
		.dstHost = to,
		.dstDevice = (CUdeviceptr)to,
		.dstPitch = to_pitch,
		.WidthInBytes = width,
		.Height = height,
	};

	if (!kind_known(kind))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	if (width > to_pitch || width > from_pitch)
		return cudart_fail(cudaErrorInvalidPitchValue);
	CUDART_ENTER();
	if (!width || !height)
		return cudaSuccess;
	driver.srcMemoryType = side(kind, false);
	driver.dstMemoryType = side(kind, true);
	return cudart_result(now ? cudart_driver.cuMemcpy2DUnaligned(&driver)
				 : cudart_driver.cuMemcpy2DAsync(&driver, stream));
}

DOORS(cudaMemcpy2D, copy_plane, PLANE_PARAMS, to, to_pitch, from, from_pitch, width, height, kind)

/* Where a copy of a box begins and how large it is, the same in both of the driver's structs. */
#define BOX_PLACE(side)                                                                            \
	.side##XInBytes = box->side##Pos.x, .side##Y = box->side##Pos.y,                           \
	.side##Z = box->side##Pos.z, .side##Device = (CUdeviceptr)box->side##Ptr.ptr,              \
	.side##Pitch = box->side##Ptr.pitch, .side##Height = box->side##Ptr.ysize
#define BOX_SIZE                                                                                   \
	.WidthInBytes = box->extent.width, .Height = box->extent.height, .Depth = box->extent.depth

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
		BOX_PLACE(src), .srcMemoryType = side(box->kind, false), .srcHost = box->srcPtr.ptr,
		BOX_PLACE(dst), .dstMemoryType = side(box->kind, true),	 .dstHost = box->dstPtr.ptr,
		BOX_SIZE,
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

DOORS(cudaMemcpy3D, copy_box, const struct cudaMemcpy3DParms *box, box)

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
		BOX_PLACE(src), .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcContext = from,
		BOX_PLACE(dst), .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstContext = to,
		BOX_SIZE,
	};
	return cudart_result(now ? cudart_driver.cuMemcpy3DPeer(&driver)
				 : cudart_driver.cuMemcpy3DPeerAsync(&driver, stream));
}

DOORS(cudaMemcpy3DPeer, copy_peer_box, const struct cudaMemcpy3DPeerParms *box, box)

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
	return copy(to, from, bytes, kind, stream, now);
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
	return copy(to, from, bytes, kind, stream, now);
}

#define TO_SYMBOL_PARAMS                                                                           \
	const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind
#define FROM_SYMBOL_PARAMS                                                                         \
	void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind

DOORS(cudaMemcpyToSymbol, copy_to_symbol, TO_SYMBOL_PARAMS, symbol, from, bytes, offset, kind)
DOORS(cudaMemcpyFromSymbol, copy_from_symbol, FROM_SYMBOL_PARAMS, to, symbol, bytes, offset, kind)

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

static cudaError_t fill_line(void *pointer, int value, size_t bytes, cudaStream_t stream, bool now)
{
	return fill(pointer, bytes, value, bytes, 1, stream, now);
}

#define LINE_PARAMS void *pointer, int value, size_t bytes
#define FILL_PARAMS void *pointer, size_t pitch, int value, size_t width, size_t height
#define BOX_PARAMS  struct cudaPitchedPtr box, int value, struct cudaExtent extent

DOORS(cudaMemset, fill_line, LINE_PARAMS, pointer, value, bytes)
DOORS(cudaMemset2D, fill, FILL_PARAMS, pointer, pitch, value, width, height)
DOORS(cudaMemset3D, fill_box, BOX_PARAMS, box, value, extent)
