/* SPDX-License-Identifier: Apache-2.0 */
/* What the generated tables (exports.awk) and the hand-written files of the driver share. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_EXPORTS_H
#define TALLY_BACKENDS_CPU_DRIVER_EXPORTS_H

/* With this cuda.h declares every exported name as it is: old versions, new ones, per-thread. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#include <stdatomic.h>
#include <stdbool.h>

struct context;
struct operation;
struct stream;

#define CONTEXT_STACK 64

/* What a thread has: its stack of current contexts, and its own default streams. */
struct driver_thread {
	struct context *contexts[CONTEXT_STACK];
	unsigned depth;
	bool null_is_own; /* inside a _ptsz or _ptds function: stream 0 is the thread's own */
	bool registered;  /* what follows is given back when it ends */
	struct operation *operations; /* free ones, so that a launch takes the lock once */
	struct own_stream {
		struct own_stream *next;
		struct context *context;
		uint64_t context_id;
		struct stream *stream;
	} *own;
};
extern _Thread_local struct driver_thread driver_thread;
void driver_thread_register(void);

struct driver_entry {
	const char *name;
	int version; /* of CUDA, as CUDA_VERSION */
	void (*function)(void);
	bool per_thread;
};
extern const struct driver_entry driver_entries[]; /* ends with a NULL name */

struct driver_error {
	CUresult code;
	const char *name, *text;
};
extern const struct driver_error driver_errors[]; /* ends with a NULL name */

/* Says once that `name` is not there (with $TALLY_LOG), answers CUDA_ERROR_NOT_SUPPORTED. */
CUresult driver_unsupported(const char *name, atomic_bool *said);

/* Says once, on stderr, whatever $TALLY_LOG is: for what a user has to know. */
void driver_complain(atomic_bool *said, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
