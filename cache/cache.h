/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code cache: compiled kernels on disk, named by the hash of what they were made from. A
 * missing one is compiled by a tally-lower worker process, so that LLVM never enters the asking
 * process. Libc only: it is part of the preload library too.
 */
#ifndef TALLY_CACHE_CACHE_H
#define TALLY_CACHE_CACHE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tally_cache_request {
	const void *image;     /* what a driver API was given: PTX text, fatbin, bitcode, ELF */
	size_t size;	       /* from tally_image_size() where the API gives none */
	const char *target;    /* "x86-64", "sm_90" */
	const char *transform; /* "none", "slice,guard", TALLY_CACHE_OPAQUE */
};

/* Machine code that is made stoppable as it is: cubins, and fatbins that hold some. */
#define TALLY_CACHE_OPAQUE "opaque"

/*
 * Finds or makes the file for `request` and stores its path (a file that stays readable once
 * opened, even if the cache is cleared meanwhile). Safe with any number of processes and threads:
 * the same request compiles once per host as a rule (a lock file; when the holder dies another
 * takes over). What is on disk is read and compared with the sum in its last line, which is a
 * comment in text and behind the end of an ELF file; what is damaged is made again. Negative
 * results are remembered for the process's life, so that a kernel that cannot be compiled costs one
 * attempt. False with tally-lower's own message when it refused, or with the reason when it could
 * not be run. When the disk is full or the folder cannot be written the result lives in a memory
 * file of this process (a path under /proc/self/fd). The worker is a child that the application
 * cannot see (no SIGCHLD, not reaped by waitpid(-1)), with LD_PRELOAD unset and a time limit
 * ($TALLY_LOWER_TIMEOUT seconds, default 120).
 */
bool tally_cache_get(const struct tally_cache_request *request, char path[PATH_MAX],
		     struct tally_error *error);

/*
 * The same without ever compiling: whether the result is there. TALLY_CACHE_MISSING: it would have
 * to be made. TALLY_CACHE_REFUSED: tally_cache_get() was refused in this process, or could not
 * begin; the reason is in `error`.
 */
enum tally_cache_answer { TALLY_CACHE_MISSING, TALLY_CACHE_FOUND, TALLY_CACHE_REFUSED };
enum tally_cache_answer tally_cache_find(const struct tally_cache_request *request,
					 char path[PATH_MAX], struct tally_error *error);

/*
 * What can be told about an image by looking at it, in microseconds: a fatbin's entries by their
 * headers, text by its words. `liftable`: there is something that tally-lower may be able to lift;
 * images of machine code alone have nothing. `arch`: the oldest architecture that a text
 * in a fatbin was made for (90: sm_90), which older devices cannot run; 0: nobody knows.
 * `variables`: whether the module has variables on the device (or textures), which two copies of it
 * would have twice; of a compressed image nobody knows. Doubt counts as "may have": TALLY_MAYBE, or
 * TALLY_YES.
 */
enum tally_fact { TALLY_NO, TALLY_YES, TALLY_MAYBE };
struct tally_image_facts {
	bool liftable;
	unsigned arch;
	enum tally_fact variables;
};
struct tally_image_facts tally_image_peek(const void *image, size_t size);

/*
 * What a fatbin, or a cubin, holds that a device of `arch` (90: sm_90) can run as machine code: a
 * fatbin of those entries alone, or the cubin itself. For size: large libraries carry seven
 * architectures. The caller frees `part`. False when there is nothing, or no memory.
 */
bool tally_image_machine_code(const void *image, size_t size, unsigned arch, void **part,
			      size_t *part_size);

/*
 * What a cubin's kernels share with the program and with each other beside their parameters.
 * `variables`: they use variables on the device, which two copies of the code would have twice;
 * literals, tables of CUDA's own headers and objects without content, which nobody writes, do not
 * count. `constants`: constant memory that only the host can change, by its address. TALLY_MAYBE:
 * it is no cubin, or damaged.
 */
struct tally_cubin_facts {
	enum tally_fact variables, constants;
	char variable[64]; /* one of those, its name cut; or empty */
};
struct tally_cubin_facts tally_cubin_look(const void *cubin, size_t size);

/* Size in bytes of the image at `image`, known only by its first bytes (fatbin, fatbin wrapper,
 * ELF, PTX text), and its start (differs for the wrapper). False when it is none of these. */
bool tally_image_size(const void *image, const void **start, size_t *size);

/* Folder of the cache: $TALLY_CACHE_DIR, else $XDG_CACHE_HOME/tally, else ~/.cache/tally. */
bool tally_cache_folder(char path[PATH_MAX], struct tally_error *error);

/* A short text that changes whenever the compiler does: "0.1.0-1f2e3d4c", or the library's own
 * version where there is no tally-lower. Cut at `size` bytes. */
void tally_cache_compiler(char *text, size_t size);

struct tally_cache_status {
	uint64_t bytes, limit; /* limit: $TALLY_CACHE_SIZE in MiB, default 1024 */
	unsigned files;
};
bool tally_cache_status(struct tally_cache_status *status, struct tally_error *error);
bool tally_cache_clear(unsigned *removed, struct tally_error *error);

#endif
