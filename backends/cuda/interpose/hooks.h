/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hooks.def becomes in C: numbers for the hooks, typed access to the driver's own functions,
 * and the two lookups (by exported name, by cuGetProcAddress's arguments).
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_HOOKS_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_HOOKS_H

/* With this defined cuda.h declares every variant by its real name and redirects none. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#define TALLY_EXPORT __attribute__((visibility("default")))

/* The newest CUDA version whose functions the table was checked against. */
#define TALLY_HOOKS_CUDA_VERSION 13000

enum tally_hook {
#define NUMBER_PLAIN(symbol) TALLY_HOOK_##symbol,
#define NUMBER_PTSZ(symbol)  TALLY_HOOK_##symbol, TALLY_HOOK_##symbol##_ptsz,
#define NUMBER_PTDS(symbol)  TALLY_HOOK_##symbol, TALLY_HOOK_##symbol##_ptds,
#define HOOK(kind, base, version, since, flavour, stream, bytes, parameters, arguments)            \
	NUMBER_##flavour(base##version)
#include "backends/cuda/interpose/hooks.def"
	TALLY_HOOK_COUNT,
	TALLY_HOOK_LAST = TALLY_HOOK_COUNT - 1, /* the functions of USES rows follow */
#define USES(symbol) TALLY_HOOK_##symbol,
#include "backends/cuda/interpose/hooks.def"
	TALLY_DRIVER_COUNT,
};

#define DECLARE_PLAIN(symbol, parameters) TALLY_EXPORT CUresult CUDAAPI symbol parameters;
#define DECLARE_PTSZ(symbol, parameters)                                                           \
	DECLARE_PLAIN(symbol, parameters)                                                          \
	DECLARE_PLAIN(symbol##_ptsz, parameters)
#define DECLARE_PTDS(symbol, parameters)                                                           \
	DECLARE_PLAIN(symbol, parameters)                                                          \
	DECLARE_PLAIN(symbol##_ptds, parameters)
#define HOOK(kind, base, version, since, flavour, stream, bytes, parameters, arguments)            \
	DECLARE_##flavour(base##version, parameters)
#include "backends/cuda/interpose/hooks.def"

/* One row of the table at run time. */
struct tally_hook_row {
	const char *base;   /* "cuMemcpyHtoD": what cuGetProcAddress is asked for */
	const char *symbol; /* "cuMemcpyHtoD_v2_ptds": what dlsym is asked for */
	void *interposer;
	int since; /* CUDA version as cuGetProcAddress counts: 3020 */
	bool per_thread;
};

/* Index: enum tally_hook below TALLY_HOOK_COUNT. */
extern const struct tally_hook_row tally_hook_rows[TALLY_HOOK_COUNT];

/* The hook whose exported symbol has this name, or TALLY_HOOK_COUNT. */
enum tally_hook tally_hook_by_symbol(const char *symbol);

/* The hook that cuGetProcAddress(base, cuda_version, flags) means, or TALLY_HOOK_COUNT. */
enum tally_hook tally_hook_by_request(const char *base, int cuda_version, cuuint64_t flags);

/* The exported name of any function of the table, hooks and USES rows alike. */
const char *tally_driver_symbol(enum tally_hook function);

#endif
