/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds graphs: user objects whose life they lengthen, and the picture for Graphviz. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/graph.h"

struct user_object {
	_Atomic unsigned references;
	CUhostFn destroy;
	void *data;
};

/* A graph's references to one object. */
struct user_reference {
	struct user_reference *next;
	struct user_object *object;
	unsigned count;
};

/* cuda.h: the destructor may be called by any thread, and calls no function of CUDA. */
static void let_go(struct user_object *object, unsigned count)
{
	if (atomic_fetch_sub(&object->references, count) != count)
		return;
	/* Work that was launched before is not to find its object gone. */
	contexts_quiesce();
	object->destroy(object->data);
	handle_remove(object, HANDLE_USER_OBJECT);
	free(object);
}

static bool hold(struct graph *graph, struct user_object *object, unsigned count)
{
	struct user_reference *reference = malloc(sizeof *reference);

	if (!reference)
		return false;
	*reference = (struct user_reference){graph->objects, object, count};
	graph->objects = reference;
	return true;
}

bool user_references_copy(struct graph *to, const struct graph *from)
{
	for (const struct user_reference *r = from->objects; r; r = r->next) {
		if (!hold(to, r->object, r->count))
			return false;
		atomic_fetch_add(&r->object->references, r->count);
	}
	return true;
}

void user_references_release(struct graph *graph)
{
	while (graph->objects) {
		struct user_reference *reference = graph->objects;

		graph->objects = reference->next;
		let_go(reference->object, reference->count);
		free(reference);
	}
}

static CUresult object_check(CUuserObject handle, unsigned count, struct user_object **object)
{
	REQUIRE_INIT();
	*object = (struct user_object *)handle;
	return handle_is(handle, HANDLE_USER_OBJECT) && count && count <= INT32_MAX
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
			    unsigned int initialRefcount, unsigned int flags)
{
	REQUIRE_INIT();
	if (!object_out || !destroy || !initialRefcount || initialRefcount > INT32_MAX ||
	    flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	struct user_object *object = malloc(sizeof *object);
	if (!object || !handle_add(object, HANDLE_USER_OBJECT)) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*object = (struct user_object){initialRefcount, destroy, ptr};
	*object_out = (CUuserObject)object;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	struct user_object *o;
	CUresult error = object_check(object, count, &o);

	if (!error)
		atomic_fetch_add(&o->references, count);
	return error;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	struct user_object *o;
	CUresult error = object_check(object, count, &o);

	if (!error)
		let_go(o, count);
	return error;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
				 unsigned int flags)
{
	struct user_object *o;
	struct graph *g;
	CUresult error = graph_check(graph, &g);

	if (!error)
		error = object_check(object, count, &o);
	if (!error && flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error && !hold(g, o, count))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!error && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
		atomic_fetch_add(&o->references, count);
	return error;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	struct user_object *o;
	struct graph *g;
	CUresult error = graph_check(graph, &g);

	if (!error)
		error = object_check(object, count, &o);
	if (error)
		return error;
	for (struct user_reference **p = &g->objects; *p; p = &(*p)->next) {
		struct user_reference *reference = *p;

		if (reference->object != o || reference->count < count)
			continue;
		reference->count -= count;
		if (!reference->count) {
			*p = reference->next;
			free(reference);
		}
		let_go(o, count);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* --- the picture --- */

static const char *const type_names[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = "KERNEL",
	[CU_GRAPH_NODE_TYPE_MEMCPY] = "MEMCPY",
	[CU_GRAPH_NODE_TYPE_MEMSET] = "MEMSET",
	[CU_GRAPH_NODE_TYPE_HOST] = "HOST",
	[CU_GRAPH_NODE_TYPE_GRAPH] = "GRAPH",
	[CU_GRAPH_NODE_TYPE_EMPTY] = "EMPTY",
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "EVENT_WAIT",
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "EVENT_RECORD",
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "MEM_ALLOC",
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = "MEM_FREE",
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "BATCH_MEM_OP",
};

static void print_graph(FILE *file, const struct graph *graph, int depth)
{
	for (size_t i = 0; i < graph->count; i++) {
		const struct graph_node *node = graph->nodes[i];
		const struct work *work = &node->work;

		fprintf(file, "%*s\"%p\" [label=\"%zu %s", 2 * depth + 2, "", (const void *)node, i,
			type_names[work->type]);
		if (work->type == CU_GRAPH_NODE_TYPE_KERNEL)
			fprintf(file, "\\n%s\\n%ux%ux%u blocks of %ux%ux%u",
				work->kernel.function->module ? work->kernel.function->kernel->name
							      : "(unloaded)",
				work->kernel.config.gridDimX, work->kernel.config.gridDimY,
				work->kernel.config.gridDimZ, work->kernel.config.blockDimX,
				work->kernel.config.blockDimY, work->kernel.config.blockDimZ);
		fprintf(file, "\"];\n");
		for (size_t j = 0; j < node->count; j++)
			fprintf(file, "%*s\"%p\" -> \"%p\";\n", 2 * depth + 2, "",
				(const void *)node->before[j], (const void *)node);
		if (work->type != CU_GRAPH_NODE_TYPE_GRAPH)
			continue;
		fprintf(file, "%*ssubgraph \"cluster_%p\" {\n", 2 * depth + 2, "",
			(const void *)node);
		print_graph(file, work->child, depth + 1);
		fprintf(file, "%*s}\n", 2 * depth + 2, "");
	}
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	struct graph *graph;
	CUresult error = graph_check(hGraph, &graph);

	(void)flags; /* how much to tell: always the same */
	if (error)
		return error;
	FILE *file = path ? fopen(path, "we") : NULL;
	if (!file)
		return path ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE;
	fprintf(file, "digraph graph_1 {\n");
	print_graph(file, graph, 0);
	fprintf(file, "}\n");
	return fclose(file) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
