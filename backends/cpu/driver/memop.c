/* SPDX-License-Identifier: Apache-2.0 */
/* Stream memory operations (write a value, wait for a value) and functions of the application. */
#include "backends/cpu/driver/capture.h"

#include <stdlib.h>
#include <string.h>

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

static bool is_wide(const CUstreamBatchMemOpParams *p)
{
	return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	       p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static bool is_wait(const CUstreamBatchMemOpParams *p)
{
	return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
	       p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_write(const CUstreamBatchMemOpParams *p)
{
	return p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
	       p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* Waits and writes have address, value and flags at the same places. */
static CUresult check_value(const CUstreamBatchMemOpParams *p)
{
	size_t bytes = is_wide(p) ? 8 : 4;
	unsigned flags = p->waitValue.flags;

	if (!is_wait(p) && !is_write(p)) /* they order memory, which operations do anyway */
		return p->operation == CU_STREAM_MEM_OP_BARRIER ||
				       p->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	if (is_wait(p) ? (flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR
		       : flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return p->waitValue.address && p->waitValue.address % bytes == 0 &&
			       memory_valid(p->waitValue.address, bytes)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult values_check(unsigned count, const CUstreamBatchMemOpParams *list, unsigned flags)
{
	CUresult error = CUDA_SUCCESS;

	if (!count || !list || flags || count > WORK_OPERATIONS)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !error; i++)
		error = check_value(&list[i]);
	return error;
}

bool values_make(struct work *work, unsigned count, const CUstreamBatchMemOpParams *list)
{
	struct work made = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .values.count = count};

	made.values.list = malloc(count * sizeof *list);
	made.values.made = malloc(count);
	if (!made.values.list || !made.values.made) {
		values_release(&made);
		return false;
	}
	for (unsigned i = 0; i < count; i++) {
		made.values.list[i] = list[i];
		made.values.made[i] = memory_made(list[i].waitValue.address);
	}
	*work = made;
	return true;
}

bool values_copy(struct work *to, const struct work *from)
{
	struct work copy = {0};
	bool ok = values_make(&copy, from->values.count, from->values.list);

	if (ok)
		memcpy(copy.values.made, from->values.made, from->values.count);
	to->values = copy.values;
	return ok;
}

CUresult values_check_again(const struct work *work)
{
	const CUstreamBatchMemOpParams *list = work->values.list;
	CUresult error = values_check(work->values.count, list, 0);

	for (unsigned i = 0; i < work->values.count && !error; i++)
		if ((is_wait(&list[i]) || is_write(&list[i])) && work->values.made[i] &&
		    !memory_made(list[i].waitValue.address))
			error = CUDA_ERROR_INVALID_VALUE;
	return error;
}

void values_release(struct work *work)
{
	free(work->values.list);
	free(work->values.made);
}

struct operation *value_operation(const CUstreamBatchMemOpParams *p)
{
	if (!is_wait(p) && !is_write(p))
		return marker_operation();
	struct operation *operation =
		operation_new(is_wait(p) ? &wait_class : &write_class, sizeof(struct value));
	if (operation)
		*(struct value *)operation->data = (struct value){
			.address = p->waitValue.address,
			.value = is_wide(p) ? p->waitValue.value64 : (uint32_t)p->waitValue.value64,
			.condition = p->waitValue.flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH,
			.wide = is_wide(p),
		};
	return operation;
}

static CUresult capture_values(struct stream *stream, unsigned count,
			       const CUstreamBatchMemOpParams *list)
{
	struct work work = {0};

	return values_make(&work, count, list) ? capture_work(stream, &work)
					       : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult queue_values(CUstream handle, unsigned count, const CUstreamBatchMemOpParams *list,
			     unsigned flags)
{
	struct stream *stream;
	bool captured;
	CUresult error = values_check(count, list, flags);

	if (!error)
		error = capture_stream(handle, &stream, &captured);
	if (error)
		return error;
	if (captured)
		return capture_values(stream, count, list);
	for (unsigned i = 0; i < count && !error; i++) {
		struct operation *operation = value_operation(&list[i]);
		error = operation ? stream_submit(stream, operation, (struct point){0})
				  : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return error;
}

static CUresult queue_value(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address,
			    uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams p = {.waitValue = {.operation = operation,
						    .address = address,
						    .value64 = value,
						    .flags = flags}};

	return queue_values(stream, 1, &p, 0);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				 unsigned int flags)
{
	return queue_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				 unsigned int flags)
{
	return queue_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				unsigned int flags)
{
	return queue_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				unsigned int flags)
{
	return queue_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
			       CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return queue_values(stream, count, paramArray, flags);
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

struct operation *host_operation(CUhostFn function, void *data)
{
	struct operation *operation = operation_new(&function_class, sizeof(struct host_call));

	if (operation)
		*(struct host_call *)operation->data =
			(struct host_call){.function = function, .data = data};
	return operation;
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct work work = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {fn, userData}};
	struct stream *stream;
	bool captured;

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult error = capture_stream(hStream, &stream, &captured);
	if (error)
		return error;
	if (captured)
		return capture_work(stream, &work);
	struct operation *operation = host_operation(fn, userData);
	return operation ? stream_submit(stream, operation, (struct point){0})
			 : CUDA_ERROR_OUT_OF_MEMORY;
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
		error = capture_forbids_wait(stream); /* nor does one that is captured */
	if (!error)
		error = context_error(stream->context);
	if (error)
		return error;
	struct operation *operation = operation_new(&callback_class, sizeof(struct host_call));
	if (!operation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(struct host_call *)operation->data =
		(struct host_call){.callback = callback, .stream = hStream, .data = userData};
	return stream_submit(stream, operation, (struct point){0});
}
