/* SPDX-License-Identifier: Apache-2.0 */
/* Work as a value: copying it, ending it, making operations of it; see work.h. */
#include "backends/cpu/driver/work.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/graph.h"

static bool copy_kernel(struct kernel_work *to, const struct kernel_work *from)
{
	const struct tally_cpu_kernel *kernel = from->function->kernel;
	CUlaunchConfig config = from->config;
	int level = from->level;
	bool cooperative = from->cooperative;
	void *packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, from->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &(size_t){kernel->param_bytes}, CU_LAUNCH_PARAM_END};

	if (kernel_work_make(to, from->function, &config, NULL, packed))
		return false;
	to->level = level;
	to->cooperative = cooperative;
	return true;
}

bool work_copy(struct work *to, const struct work *from)
{
	*to = *from;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return copy_kernel(&to->kernel, &from->kernel);
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
		to->values.list = malloc(from->values.count * sizeof *from->values.list);
		if (to->values.list)
			memcpy(to->values.list, from->values.list,
			       from->values.count * sizeof *from->values.list);
		return to->values.list;
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
		free(work->values.list);
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
