/* SPDX-License-Identifier: Apache-2.0 */
/* Stream memory operations (write a value, wait for a value) and functions of the application. */
#include "backends/cpu/driver/driver.h"

struct value {
	uintptr_t address;
	uint64_t value;
	unsigned condition;
	bool wide;
};

static bool run_write(struct operation *operation)
{
	const struct value *v = operation->data;

	if (v->wide)
		__atomic_store_n((uint64_t *)v->address, v->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint32_t *)v->address, (uint32_t)v->value, __ATOMIC_SEQ_CST);
	return true;
}

static bool run_wait(struct operation *operation)
{
	const struct value *v = operation->data;
	uint64_t now = v->wide ? __atomic_load_n((uint64_t *)v->address, __ATOMIC_ACQUIRE)
			       : __atomic_load_n((uint32_t *)v->address, __ATOMIC_ACQUIRE);
	uint64_t all = v->wide ? UINT64_MAX : UINT32_MAX;

	switch (v->condition) {
	case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic, cuda.h */
		return v->wide ? (int64_t)(now - v->value) >= 0
			       : (int32_t)((uint32_t)now - (uint32_t)v->value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == v->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & v->value) != 0;
	default: /* CU_STREAM_WAIT_VALUE_NOR */
		return (~(now | v->value) & all) != 0;
	}
}

static const struct operation_class write_class = {
	.name = "write value",
	.start = START_LOCKED,
	.run = run_write,
};

static const struct operation_class wait_class = {
	.name = "wait value",
	.start = START_WAIT,
	.run = run_wait,
};

static CUresult queue(const struct operation_class *class, CUstream stream, CUdeviceptr address,
		      uint64_t value, unsigned condition, bool wide)
{
	size_t bytes = wide ? 8 : 4;

	if (!address || address % bytes || !memory_valid(address, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	struct operation *operation = operation_new(class, sizeof(struct value));
	if (operation)
		*(struct value *)operation->data =
			(struct value){address, wide ? value : (uint32_t)value, condition, wide};
	return stream_enqueue(stream, operation);
}

static CUresult queue_write(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags,
			    bool wide)
{
	if (flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return queue(&write_class, stream, address, value, 0, wide);
}

static CUresult queue_wait(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags,
			   bool wide)
{
	unsigned condition = flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;

	if (condition > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	return queue(&wait_class, stream, address, value, condition, wide);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				 unsigned int flags)
{
	return queue_write(stream, addr, value, flags, false);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				 unsigned int flags)
{
	return queue_write(stream, addr, value, flags, true);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				unsigned int flags)
{
	return queue_wait(stream, addr, value, flags, false);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				unsigned int flags)
{
	return queue_wait(stream, addr, value, flags, true);
}

static CUresult check_batch(unsigned count, const CUstreamBatchMemOpParams *list, unsigned flags)
{
	if (!count || !list || flags || count > 256)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		switch (list[i].operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		case CU_STREAM_MEM_OP_BARRIER:
		case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
			break;
		default:
			return CUDA_ERROR_INVALID_VALUE;
		}
	return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
			       CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	CUresult error = check_batch(count, paramArray, flags);

	for (unsigned i = 0; i < count && !error; i++) {
		const CUstreamBatchMemOpParams *p = &paramArray[i];
		bool wide = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
			    p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
		if (p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		    p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
			error = queue_wait(stream, p->waitValue.address, p->waitValue.value64,
					   p->waitValue.flags, wide);
		else if (p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
			 p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
			error = queue_write(stream, p->writeValue.address, p->writeValue.value64,
					    p->writeValue.flags, wide);
		/* The others order memory, which operations of one stream do anyway. */
	}
	return error;
}

/* The first version had to be switched on and said the same. */

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
			      unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
			      unsigned int flags)
{
	return cuStreamWriteValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
			     unsigned int flags)
{
	return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
			     unsigned int flags)
{
	return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
			    CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}

/* --- functions of the application --- */

struct host_call {
	CUhostFn function;
	CUstreamCallback callback;
	CUstream stream;
	void *data;
};

static bool run_function(struct operation *operation)
{
	const struct host_call *call = operation->data;

	call->function(call->data);
	return true;
}

static bool run_callback(struct operation *operation)
{
	const struct host_call *call = operation->data;

	call->callback(call->stream, context_error(operation->stream->context), call->data);
	return true;
}

/* cuda.h: not called when the context has failed. */
static const struct operation_class function_class = {
	.name = "host function",
	.start = START_HOST,
	.run = run_function,
};

/* The older kind is, and is told. */
static const struct operation_class callback_class = {
	.name = "callback",
	.start = START_HOST,
	.always = true,
	.run = run_callback,
};

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	struct operation *operation = operation_new(&function_class, sizeof(struct host_call));
	if (operation)
		*(struct host_call *)operation->data =
			(struct host_call){.function = fn, .stream = hStream, .data = userData};
	return stream_enqueue(hStream, operation);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
			     unsigned int flags)
{
	struct stream *stream;

	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	/* A stream of a failed context takes no new one. */
	CUresult error = stream_resolve(hStream, &stream);
	if (!error)
		error = context_error(stream->context);
	if (error)
		return error;
	struct operation *operation = operation_new(&callback_class, sizeof(struct host_call));
	if (operation)
		*(struct host_call *)operation->data = (struct host_call){
			.callback = callback, .stream = hStream, .data = userData};
	return stream_enqueue(hStream, operation);
}
