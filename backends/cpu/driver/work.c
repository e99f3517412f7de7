/* SPDX-License-Identifier: Apache-2.0 */
/* Work as a value: copying it, ending it, whether it can still be done, making operations of it;
 * see work.h. */
#include "backends/cpu/driver/work.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/graph.h"
#include "backends/cpu/driver/module.h"

static bool belongs_to_context(CUgraphNodeType type)
{
	return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
	       type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
}

void work_settle(struct work *work, struct context *context)
{
	const struct module *module =
		work->type == CU_GRAPH_NODE_TYPE_KERNEL ? work->kernel.function->module : NULL;

	/* cuda.h at CUDA_KERNEL_NODE_PARAMS: a function has its context by itself. */
	if (module && module->context)
		context = module->context;
	if (!context || !belongs_to_context(work->type))
		return;
	work->context = context;
	work->context_id = context->id;
}

/* Memory of the driver that was freed is the process's again, for whatever else. */
static CUresult transfer_check_again(const struct transfer *t)
{
	bool empty;
	CUresult error = transfer_check(t, &empty);

	if (error || empty)
		return error;
	return (t->to_made && !memory_made(t->to)) || (t->from_made && !memory_made(t->from))
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

CUresult work_check(const struct work *work)
{
	if (work->context && work->context->id != work->context_id)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (!work->kernel.function->module)
			return CUDA_ERROR_INVALID_HANDLE; /* its module was unloaded */
		/* Blocks of a cooperative launch that could not all run would wait for ever. */
		return kernel_work_fits(&work->kernel) ? CUDA_SUCCESS
						       : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return transfer_check_again(&work->transfer);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return values_check_again(work);
	default:
		return CUDA_SUCCESS;
	}
}

bool work_copy(struct work *to, const struct work *from)
{
	*to = *from;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_work_copy(&to->kernel, &from->kernel);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		to->child = graph_copy(from->child);
		return to->child;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		event_hold(to->event);
		return true;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		atomic_fetch_add(&to->memory->references, 1);
		return true;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return values_copy(to, from);
	default:
		return true;
	}
}

static void release_memory(struct graph_memory *memory)
{
	if (atomic_fetch_sub(&memory->references, 1) != 1)
		return;
	/* What was launched may still use it. */
	contexts_quiesce();
	memory_remove(memory->address, 1u << REGION_DEVICE, NULL);
	free(memory);
}

void work_release(struct work *work)
{
	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		function_let_go(work->kernel.function);
		free(work->kernel.pointers);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		graph_delete(work->child);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		event_let_go(work->event);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		release_memory(work->memory);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		values_release(work);
		break;
	default:
		break;
	}
	memset(work, 0, sizeof *work);
	work->type = CU_GRAPH_NODE_TYPE_EMPTY;
}

unsigned work_operation_count(const struct work *work)
{
	return work->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ? work->values.count : 1;
}

static struct operation *first_operation(const struct work *work, int level)
{
	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_work_operation(&work->kernel, level);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return transfer_operation(&work->transfer, level);
	case CU_GRAPH_NODE_TYPE_HOST:
		return host_operation(work->host.fn, work->host.userData);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return record_operation(work->event);
	default:
		return marker_operation();
	}
}

unsigned work_operations(const struct work *work, int level, struct operation **list, unsigned most)
{
	unsigned count = work_operation_count(work);

	if (count > most)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		list[i] = work->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
				  ? value_operation(&work->values.list[i])
				  : first_operation(work, level);
		if (list[i])
			continue;
		while (i--)
			operation_free(list[i]);
		return 0;
	}
	return count;
}
