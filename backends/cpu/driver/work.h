/* SPDX-License-Identifier: Apache-2.0 */
/* Work as a value: what a node of a graph does each time that the graph is launched, and what a
 * capture writes down instead of running it. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_WORK_H
#define TALLY_BACKENDS_CPU_DRIVER_WORK_H

#include "backends/cpu/driver/copy.h"
#include "backends/cpu/driver/driver.h"

struct graph;

/* Memory that belongs to graphs: freed when the last node that knows it is gone. */
struct graph_memory {
	_Atomic unsigned references;
	CUDA_MEM_ALLOC_NODE_PARAMS as_asked;
	uintptr_t address;
};

struct kernel_work {
	struct function *function; /* held; its module may be unloaded */
	size_t param_count, param_bytes;
	CUlaunchConfig config; /* the shape; no stream, no attributes */
	int level;	       /* -1: of the stream that the graph is launched into */
	bool cooperative;
	void **pointers; /* to each parameter; their bytes follow in the same allocation */
	void *params;	 /* packed */
};

struct work {
	CUgraphNodeType type;
	/* Where kernels, copies, fills and values belong, and its id then; NULL: nowhere. Contexts
	 * are never freed, and have another id once they are destroyed or reset. */
	struct context *context;
	uint64_t context_id;
	union {
		struct kernel_work kernel;
		struct transfer transfer; /* MEMCPY and MEMSET */
		CUDA_HOST_NODE_PARAMS host;
		struct event *event; /* WAIT_EVENT and EVENT_RECORD */
		struct graph *child;
		struct graph_memory *memory; /* MEM_ALLOC */
		uintptr_t freed;	     /* MEM_FREE */
		struct {
			unsigned count;
			CUstreamBatchMemOpParams *list;
			bool *made; /* of each: it lay in memory that the driver had made */
		} values;	    /* BATCH_MEM_OP */
	};
};

/* Ties the work to `context` (NULL: to none) if it is of a kind that belongs to one. */
void work_settle(struct work *work, struct context *context);

/* Whether what it needs is still there, and whether it fits: the error that a launch has to give.
 */
CUresult work_check(const struct work *work);

/* A copy with everything that it owns; false out of memory. */
bool work_copy(struct work *to, const struct work *from);
/* Gives back what it owns, and may wait for what was launched with it: the engine's lock is not
 * held. The work is not used again. */
void work_release(struct work *work);

/*
 * The operations that do it, in order, to be put into a stream of `level`; `most` is at least
 * WORK_OPERATIONS. How many, or 0 when out of memory. Event records are not made here: they belong
 * to a place in a stream.
 */
#define WORK_OPERATIONS 256
unsigned work_operations(const struct work *work, int level, struct operation **list,
			 unsigned most);
unsigned work_operation_count(const struct work *work);

/* launch.c: a launch as work. `list` and `extra` as cuLaunchKernel takes them. */
CUresult kernel_work_make(struct kernel_work *work, const void *function,
			  const CUlaunchConfig *config, void **list, void **extra);
bool kernel_work_copy(struct kernel_work *to, const struct kernel_work *from);
bool kernel_work_fits(const struct kernel_work *work); /* cooperative: all blocks at once */
struct operation *kernel_work_operation(const struct kernel_work *work, int level);

/* copy.c: whether it may be done, and the operation; nothing is staged. */
CUresult transfer_check(const struct transfer *transfer, bool *empty);
struct operation *transfer_operation(const struct transfer *transfer, int level);

/* memop.c: of values_make() `list` has passed the check; false out of memory. */
CUresult values_check(unsigned count, const CUstreamBatchMemOpParams *list, unsigned flags);
bool values_make(struct work *work, unsigned count, const CUstreamBatchMemOpParams *list);
bool values_copy(struct work *to, const struct work *from);
CUresult values_check_again(const struct work *work);
void values_release(struct work *work);
struct operation *value_operation(const CUstreamBatchMemOpParams *params); /* also for barriers */
struct operation *host_operation(CUhostFn function, void *data);

/* stream.c: does nothing, whatever became of the context. */
struct operation *marker_operation(void);

/* event.c: a record of `event`, which has to be put at the end of a stream under the same lock
 * round as event_recorded_at(). */
struct operation *record_operation(struct event *event);
void event_recorded_at(struct event *event, struct point point); /* lock held */
void event_hold(struct event *event);
void event_let_go(struct event *event);

#endif
