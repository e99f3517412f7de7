/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device's driver: its objects, and what its files need of each other. The functions of the
 * API themselves are declared by cuda.h. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_DRIVER_H
#define TALLY_BACKENDS_CPU_DRIVER_DRIVER_H

#include "backends/cpu/driver/engine.h"
#include "backends/cpu/driver/exports.h"
#include "backends/cpu/driver/ipc.h"
#include "base/error.h"

#define DRIVER_VERSION 13000 /* CUDA_VERSION that we speak */

/* Begins a function of the API that needs no context. */
#define REQUIRE_INIT()                                                                             \
	do {                                                                                       \
		if (!driver_initialized())                                                         \
			return CUDA_ERROR_NOT_INITIALIZED;                                         \
	} while (0)

bool driver_initialized(void);

/* Device properties that others go by. */
#define SHARED_DEFAULT 49152u  /* bytes of a block */
#define SHARED_OPTIN   232448u /* with CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define BLOCK_THREADS  1024u
#define COMPUTE_MAJOR  9
#define COMPUTE_MINOR  0
uint64_t device_memory_bytes(void); /* of each device */

/* --- which devices there are (devices.c) --- */

#define MOST_DEVICES 16
void devices_start(void); /* once, from cuInit */
int device_count(void);
bool device_valid(CUdevice device);

/* --- contexts (context.c) --- */

#define LIMITS 16

struct peer;

struct context {
	_Atomic uint32_t magic;
	CUdevice device;
	bool primary;
	unsigned flags;
	unsigned retained; /* primary: how often; else 1 until destroyed */
	_Atomic uint64_t id;
	CUresult error; /* sticky, CUDA_SUCCESS while all is well; engine lock */
	CUfunc_cache cache_config;
	size_t limits[LIMITS];
	struct stream *_Atomic legacy; /* the null stream, made on demand */
	struct stream *streams;	       /* all of them; engine lock */
	struct event *events;	       /* all of them; engine lock */
	struct peer *peers;	       /* devices.c; engine lock */
	struct context *next;	       /* of all contexts; engine lock */
};

/* The calling thread's context, or the error to return (also a sticky one when `healthy`). */
CUresult context_current(struct context **context, bool healthy);
CUresult context_check(CUcontext handle, struct context **context);
CUresult context_error(const struct context *context); /* sticky error */
void context_forget_peers(struct context *context);    /* devices.c; engine lock */
void contexts_start(void);			       /* once, from cuInit */
void context_default_limits(struct context *context);  /* context_settings.c; engine lock */
void contexts_each_stream(void (*visit)(struct stream *stream));
/* Waits for all work of all contexts: before memory or code goes away. */
void contexts_quiesce(void);
/* still.c: waits for all work that was submitted before the call, and comes back with the engine's
 * lock held at a moment when nothing else touches memory. */
void engine_lock_still(void);
/* Gives the lock back, and starts what has come meanwhile. */
void engine_unlock_still(void);

/* --- streams (stream.c) --- */

/* The stream that a handle means to the calling thread. */
CUresult stream_resolve(CUstream handle, struct stream **stream);
struct stream *stream_add(struct context *context, unsigned flags, int level);
/* Takes a stream out of its context; what is queued still runs. */
void stream_remove(struct stream *stream);
void stream_drop(struct stream *stream); /* the same; engine lock */
CUresult stream_wait(struct stream *stream, struct point point);
/* Check the context's health, submit. Frees the operation on failure. */
CUresult stream_submit(struct stream *stream, struct operation *operation, struct point after);
/* Waits until no more than `depth` operations are queued in the stream. */
void stream_make_room(struct stream *stream, uint64_t depth);
/* Everything submitted to the stream so far is done (and, for the null stream, to the blocking
 * ones). Returns the sticky error. */
CUresult stream_drain(struct stream *stream);

/* --- events (event.c) --- */

struct event {
	struct context *context;
	struct event *next, **link; /* of the context's events; engine lock */
	unsigned flags;
	_Atomic unsigned references; /* the handle, and every record under way */
	struct point point;	     /* engine lock */
	bool recorded;
	struct captured_event *captured; /* recorded in a capture last; engine lock */
	int64_t time;			 /* ns, when the point was reached */
	struct ipc_event *shared;	 /* of several processes, or NULL */
	int fd;				 /* of `shared` */
	uint64_t mine;			 /* this process's last record; ipc.c */
};
/* Makes a handle; owns `shared` and `fd`, also when it fails. */
CUresult event_new(CUevent *result, struct context *context, unsigned flags,
		   struct ipc_event *shared, int fd);
void events_remove_context(struct context *context); /* their handles end; engine lock */
/* A wait of the stream for all records so far of an event of several processes. */
CUresult event_wait_shared(struct event *event, struct stream *stream);
CUresult event_point(CUevent handle, struct point *point);
CUresult event_record(struct event *event, struct stream *stream);
CUresult event_check(CUevent handle, struct event **event);

/* --- memory (memory.c, pool.c) --- */

enum region_kind {
	REGION_DEVICE,
	REGION_HOST,	   /* cuMemHostAlloc */
	REGION_REGISTERED, /* cuMemHostRegister */
	REGION_MANAGED,
	REGION_VARIABLE, /* of a module */
	REGION_IMPORTED, /* another process's (ipc.c) */
};

/* A flag of REGION_DEVICE: of an allocation node; it goes with the last graph that knows it. */
#define REGION_OF_GRAPH 0x80000000u

struct pool;
void pools_start(void); /* once, from cuInit */
CUdevice pool_device(const struct pool *pool);

struct region {
	uintptr_t base;
	size_t size, mapped; /* mapped: bytes of a mapping of its own, 0: a small block */
	enum region_kind kind;
	unsigned flags;
	uint64_t id;
	struct context *context;
	CUdevice device; /* whose memory it is */
	struct pool *pool;
	bool freeing; /* cuMemFreeAsync is under way */
	int share;    /* a descriptor of its memory and 1; 0: it is this process's alone */
};

void memory_lock(void);
void memory_unlock(void);
/* In a forked child, where the lock that was taken for the fork is not this thread's to give back:
 * a lock of readers and a writer remembers the writer by its number, which is another now. */
void memory_after_fork(void);
/* Makes memory of the pool's device, or (NULL) of the context's; CUDA_ERROR_OUT_OF_MEMORY beyond
 * its size. */
CUresult memory_new(size_t bytes, enum region_kind kind, unsigned flags, struct context *context,
		    struct pool *pool, uintptr_t *address);
size_t whole_pages(size_t bytes);
/* Moves the allocation (of cuMemAlloc) that holds `address` into memory that other processes can
 * open. Nothing may run meanwhile. */
CUresult memory_share(uintptr_t address, struct region *region);
void ipc_forget_context(const struct context *context); /* ipc.c; before its memory goes */
bool memory_add(const struct region *region);		/* memory that somebody else owns */
/* Takes `base` out of the table (and frees what memory_new made). Nothing may use it any more. */
bool memory_remove(uintptr_t base, unsigned kinds, struct region *removed);
void memory_remove_context(const struct context *context);
/* The region that holds `address`. */
bool memory_find(uintptr_t address, struct region *region);
/* Whether `address` lies in memory that the driver has made, and that goes when it is freed. */
bool memory_made(uintptr_t address);
/* Whether [address, address + bytes) may be read and written: inside a region, or ordinary memory
 * of the process (which the device reaches as well). */
bool memory_valid(uintptr_t address, size_t bytes);
uint64_t memory_used(CUdevice device);

/* --- modules (module.c, function.c) --- */

struct module;

struct function {
	struct module *module; /* NULL once it was unloaded: `kernel` is gone too */
	const struct tally_cpu_kernel *kernel;
	_Atomic unsigned references; /* its module, and the nodes of graphs that launch it */
	unsigned dynamic_shared;     /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
	int carveout;
	CUfunc_cache cache_config;
	struct function *next;
};

/* The function of a handle; for a library's kernel that of the calling thread's device, or of
 * `device`. */
CUresult function_check(const void *handle, struct function **function);
CUresult function_check_on(const void *handle, CUdevice device, struct function **function);
void function_hold(struct function *function);
void function_let_go(struct function *function);
void modules_unload_context(const struct context *context);
void modules_after_fork(void); /* in the child: nobody is inside any more */

#endif
