/* SPDX-License-Identifier: Apache-2.0 */
/* The way from a hook to the driver's own function. */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_RESOLVE_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_RESOLVE_H

#include <stdatomic.h>

#include "backends/cuda/interpose/hooks.h"

/*
 * Two ways on from a hook. `next` is what the program would have called without us: another
 * preloaded library's function where there is one, else the driver's. `driver` is the driver's own:
 * taken when a hook is entered from inside another hook of the same thread (such a library that
 * looks functions up by handle, or a driver that calls its own exported functions), so that nothing
 * ever goes round in a circle. Filled on first use.
 */
extern _Atomic(void *) tally_next_table[TALLY_DRIVER_COUNT];
extern _Atomic(void *) tally_driver_table[TALLY_DRIVER_COUNT];

/* Never NULL: a function that the driver lacks is one that answers CUDA_ERROR_NOT_SUPPORTED. */
void *tally_resolve_next(enum tally_hook function);
void *tally_resolve_driver(enum tally_hook function);

/* Whether the driver has `function`. */
bool tally_driver_has(enum tally_hook function);

/* The address of `symbol` in the driver's library, or NULL. Loads the library when it is not. */
void *tally_driver_lookup(const char *symbol);

/* Whether the driver's library is part of the process; loads nothing. */
bool tally_driver_loaded(void);

/* The next dlsym after ours, found without private symbols of glibc. */
void *(*tally_next_dlsym(void))(void *, const char *);

/* How deep this thread is inside hooks. */
extern __thread unsigned tally_inside __attribute__((tls_model("initial-exec")));

static inline void *tally_driver(enum tally_hook function)
{
	void *p = atomic_load_explicit(&tally_driver_table[function], memory_order_relaxed);

	return p ? p : tally_resolve_driver(function);
}

static inline void *tally_target(enum tally_hook function)
{
	void *p;

	if (__builtin_expect(tally_inside > 1, 0))
		return tally_driver(function);
	p = atomic_load_explicit(&tally_next_table[function], memory_order_relaxed);
	return p ? p : tally_resolve_next(function);
}

/* Calls on with `symbol`'s own type: TALLY_REAL(cuInit)(0). Between tally_enter and tally_leave. */
#define TALLY_REAL(symbol) ((__typeof__(&symbol))tally_target(TALLY_HOOK_##symbol))
/* What Tally asks for itself goes to the driver and nowhere else. */
#define TALLY_DRIVER(symbol) ((__typeof__(&symbol))tally_driver(TALLY_HOOK_##symbol))
#define TALLY_HAS(symbol)    tally_driver_has(TALLY_HOOK_##symbol)

/* Opens and closes a hook. True from the outermost one: the program's own call. */
static inline bool tally_enter(void)
{
	return tally_inside++ == 0;
}

static inline void tally_leave(void)
{
	tally_inside--;
}

#endif
