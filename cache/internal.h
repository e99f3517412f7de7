/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the code cache share. All of it lives in foreign processes and old containers:
 * no glibc symbol newer than 2.31 (so statx instead of stat, dl_iterate_phdr instead of dladdr), no
 * thread, no handler, no child that the application could see.
 */
#ifndef TALLY_CACHE_INTERNAL_H
#define TALLY_CACHE_INTERNAL_H

#include "base/hash.h"
#include "cache/cache.h"

/* key.c: the tally-lower that would be run, and the name of a request's result. */
bool tally_cache_find_lower(char path[PATH_MAX], struct tally_error *error);
struct tally_hash tally_cache_key(const struct tally_cache_request *request, const char *lower);
/* ".so", ".ptx", ".hsaco", ".cubin" */
const char *tally_cache_extension(const struct tally_cache_request *request);

/* folder.c: makes room for what was just added: removes the files that were used least recently
 * until the cache is within its limit, but never `keep`. */
void tally_cache_evict(const char *folder, const char *keep);

/*
 * kept.c: whether the result of `key` is at `path`, whole, as it was written; marks it as used now.
 * Reads all of it, which costs a small part of what loading it does.
 */
bool tally_cache_take(const char *path, struct tally_hash key);

/* Puts the memory file `from` there by way of a temporary name, over whatever file is there.
 * False: it could not be kept, and nothing is left behind. */
bool tally_cache_keep(int from, const char *path, struct tally_hash key);

/* worker.c: how a tally-lower ended. */
enum tally_worker_end {
	TALLY_WORKER_DONE,    /* exit status 0 and some output */
	TALLY_WORKER_REFUSED, /* it said why: the same request will fail again */
	TALLY_WORKER_LATE,    /* killed at the time limit */
	TALLY_WORKER_KILLED,  /* died by a signal: may work another time */
	TALLY_WORKER_FAILED,  /* could not be run at all */
};

/*
 * Runs `lower` on the request and stores a descriptor of a memory file with its output (owned by
 * the caller, close-on-exec, offset undefined). Blocks the calling thread.
 */
enum tally_worker_end tally_worker_run(const char *lower, const struct tally_cache_request *request,
				       int *output, struct tally_error *error);

#endif
