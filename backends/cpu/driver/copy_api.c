/* SPDX-License-Identifier: Apache-2.0 */
/* The API's copies and fills: each says what it copies, copy.c does it. Arrays are refused. */
#include <stdlib.h>

#include "backends/cpu/driver/graph.h"

static struct transfer line(uintptr_t to, uintptr_t from, size_t bytes)
{
	return (struct transfer){.to = to, .from = from, .width = bytes, .height = 1, .depth = 1};
}

static CUresult copy_now(uintptr_t to, uintptr_t from, size_t bytes)
{
	struct transfer t = line(to, from, bytes);

	return transfer_now(NULL, &t);
}

static CUresult copy_queue(uintptr_t to, uintptr_t from, size_t bytes, CUstream stream)
{
	struct transfer t = line(to, from, bytes);

	return transfer_queue(stream, &t);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy_now(dst, src, ByteCount);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_now(dstDevice, (uintptr_t)srcHost, ByteCount);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_now((uintptr_t)dstHost, srcDevice, ByteCount);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_now(dstDevice, srcDevice, ByteCount);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
		      CUcontext srcContext, size_t ByteCount)
{
	return copy_now(dstDevice, srcDevice, ByteCount);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy_queue(dst, src, ByteCount, hStream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
			      CUstream hStream)
{
	return copy_queue(dstDevice, (uintptr_t)srcHost, ByteCount, hStream);
}

CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
			      CUstream hStream)
{
	return copy_queue((uintptr_t)dstHost, srcDevice, ByteCount, hStream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
			      CUstream hStream)
{
	return copy_queue(dstDevice, srcDevice, ByteCount, hStream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
			   CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	return copy_queue(dstDevice, srcDevice, ByteCount, hStream);
}

/* --- two and three dimensions --- */

/* The address of one side, or an error for arrays (there are none) and nonsense. */
static CUresult side(CUmemorytype type, const void *host, CUdeviceptr device, uintptr_t *address)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		*address = (uintptr_t)host;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		*address = device;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_ARRAY:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult from_3d(const CUDA_MEMCPY3D *c, struct transfer *t)
{
	uintptr_t from, to;
	CUresult error;

	if (!c || c->srcLOD || c->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	error = side(c->srcMemoryType, c->srcHost, c->srcDevice, &from);
	if (!error)
		error = side(c->dstMemoryType, c->dstHost, c->dstDevice, &to);
	if (error)
		return error;
	*t = (struct transfer){
		.width = c->WidthInBytes,
		.height = c->Height,
		.depth = c->Depth,
		/* A pitch of 0 means: rows follow one another. */
		.to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes,
		.from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes,
	};
	t->to_slice = t->to_pitch * (c->dstHeight ? c->dstHeight : c->Height);
	t->from_slice = t->from_pitch * (c->srcHeight ? c->srcHeight : c->Height);
	t->to = to + c->dstZ * t->to_slice + c->dstY * t->to_pitch + c->dstXInBytes;
	t->from = from + c->srcZ * t->from_slice + c->srcY * t->from_pitch + c->srcXInBytes;
	return CUDA_SUCCESS;
}

/* A copy node's work from what the API is given. */
CUresult copy_node_work(struct work *work, const CUDA_MEMCPY3D *params)
{
	return from_3d(params, &work->transfer);
}

/* One side as the API names it: what the driver has made is the device's, all else the host's. */
static CUmemorytype kind_of(uintptr_t address)
{
	struct region region;

	return memory_find(address, &region) && region.kind != REGION_HOST &&
			       region.kind != REGION_REGISTERED
		       ? CU_MEMORYTYPE_DEVICE
		       : CU_MEMORYTYPE_HOST;
}

CUresult copy_node_params(const struct work *work, CUDA_MEMCPY3D *params)
{
	const struct transfer *t = &work->transfer;

	*params = (CUDA_MEMCPY3D){
		.srcMemoryType = kind_of(t->from),
		.srcHost = (const void *)t->from,
		.srcDevice = t->from,
		.srcPitch = t->from_pitch,
		.srcHeight = t->from_pitch ? t->from_slice / t->from_pitch : t->height,
		.dstMemoryType = kind_of(t->to),
		.dstHost = (void *)t->to,
		.dstDevice = t->to,
		.dstPitch = t->to_pitch,
		.dstHeight = t->to_pitch ? t->to_slice / t->to_pitch : t->height,
		.WidthInBytes = t->width,
		.Height = t->height,
		.Depth = t->depth,
	};
	return CUDA_SUCCESS;
}

static CUresult from_2d(const CUDA_MEMCPY2D *c, struct transfer *t)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D whole = {
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcPitch = c->srcPitch,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstPitch = c->dstPitch,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = 1,
	};
	return from_3d(&whole, t);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	struct transfer t;
	CUresult error = from_2d(pCopy, &t);

	return error ? error : transfer_now(NULL, &t);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return cuMemcpy2D_v2(pCopy);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	struct transfer t;
	CUresult error = from_2d(pCopy, &t);

	return error ? error : transfer_queue(hStream, &t);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	struct transfer t;
	CUresult error = from_3d(pCopy, &t);

	return error ? error : transfer_now(NULL, &t);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	struct transfer t;
	CUresult error = from_3d(pCopy, &t);

	return error ? error : transfer_queue(hStream, &t);
}

static CUresult from_peer(const CUDA_MEMCPY3D_PEER *c, struct transfer *t)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D whole = {
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcZ = c->srcZ,
		.srcLOD = c->srcLOD,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcPitch = c->srcPitch,
		.srcHeight = c->srcHeight,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstZ = c->dstZ,
		.dstLOD = c->dstLOD,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstPitch = c->dstPitch,
		.dstHeight = c->dstHeight,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = c->Depth,
	};
	return from_3d(&whole, t);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	struct transfer t;
	CUresult error = from_peer(pCopy, &t);

	return error ? error : transfer_now(NULL, &t);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	struct transfer t;
	CUresult error = from_peer(pCopy, &t);

	return error ? error : transfer_queue(hStream, &t);
}

/* The order among the copies of a batch is free; so is one after another. */
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			       CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
			       CUstream hStream)
{
	CUresult error = count && dsts && srcs && sizes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < count && !error; i++)
		error = copy_queue(dsts[i], srcs[i], sizes[i], hStream);
	return error;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			    CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
			    size_t *failIdx, CUstream hStream)
{
	if (failIdx)
		*failIdx = SIZE_MAX;
	return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
}

/* --- fills --- */

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned element, size_t width,
		     size_t height, CUstream stream)
{
	struct transfer t = {.to = to,
			     .height = height,
			     .depth = 1,
			     .to_pitch = pitch,
			     .element = element,
			     .value = value};

	if (__builtin_mul_overflow(width, element, &t.width))
		return CUDA_ERROR_INVALID_VALUE;
	return transfer_queue(stream, &t);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return fill(dstDevice, 0, uc, 1, N, 1, hStream);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return fill(dstDevice, 0, us, 2, N, 1, hStream);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return fill(dstDevice, 0, ui, 4, N, 1, hStream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
			   size_t Height, CUstream hStream)
{
	return fill(dstDevice, dstPitch, uc, 1, Width, Height, hStream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
			    size_t Height, CUstream hStream)
{
	return fill(dstDevice, dstPitch, us, 2, Width, Height, hStream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
			    size_t Height, CUstream hStream)
{
	return fill(dstDevice, dstPitch, ui, 4, Width, Height, hStream);
}

/* The synchronous forms do not wait on a GPU either, where the memory is the device's. */

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return cuMemsetD8Async(dstDevice, uc, N, NULL);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return cuMemsetD16Async(dstDevice, us, N, NULL);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return cuMemsetD32Async(dstDevice, ui, N, NULL);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
			 size_t Height)
{
	return cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, NULL);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
			  size_t Height)
{
	return cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, NULL);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
			  size_t Height)
{
	return cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, NULL);
}
