/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an image that the program loads to one whose kernels can be stopped: found in the code
 * cache, made while the program waits, or made while it runs on with the original (compile.c).
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_IMAGES_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_IMAGES_H

#include "backends/cuda/interpose/kernels.h"
#include "base/buffer.h"
#include "cache/cache.h"

#define TALLY_TRANSFORM "slice,guard"

/* One load of an image, from the door to the module's record. */
struct tally_loading {
	bool known;		  /* what follows is filled in: Tally has to do with it */
	struct tally_buffer file; /* of an image that came as a path */
	const void *caller;	  /* code of whoever called the door */
	const void *image;
	size_t size;
	struct tally_image_facts facts;
	char target[32];
	uint64_t hash[2];
	void *other;	   /* to be loaded instead; or NULL */
	bool later;	   /* to be compiled while the program runs */
	bool machine_code; /* to be patched when that turns out to be worth it */
	enum tally_reason barred;
};

/* Fills in `loading`, which is zero, for an image in memory or in a file. */
void tally_loading_data(struct tally_loading *loading, const void *image);
void tally_loading_file(struct tally_loading *loading, const char *path);

/* Whether loading `other` worked (`result`). If not, the original is to be loaded. */
bool tally_loading_took(struct tally_loading *loading, CUresult result);

/* The module is there (or not: `result`): makes its record, starts what is to be compiled. */
void tally_loading_done(struct tally_loading *loading, CUresult result, void *handle, bool library);

/* What a linker of the driver made of one text, so that the text is found when its result is
 * loaded (jit_link.c). NULL: not ours. */
const char *tally_linked_text(const void *image, size_t size);

/* In a forked child: process.c says what becomes of all that the parent knew. */
void tally_links_forked(void);

/* The number of "sm_90": 90; 0 for other targets. */
unsigned tally_target_arch(const char *target);

/* The compiler's answer as an image (NUL behind it); the caller frees it. */
void *tally_image_read(const char *path, size_t *size, struct tally_error *error);

/* compile.c ------------------------------------------------------------------------------------ */

/*
 * Compiles the image of `module`, which is loaded as it is, on a thread of ours; then loads the
 * result beside it, and from then on its kernels have stoppable forms. Takes its own copy of the
 * image. The module's form is COMPILING from before the call.
 */
void tally_compile_start(struct tally_module *module, const struct tally_loading *loading);

/*
 * The same for an image of machine code (opaque.h): the module's `machine_code` says which. Its
 * form is COMPILING.
 */
void tally_compile_patch(struct tally_module *module);

/* Until the module's form is not COMPILING. No lock held. */
void tally_compile_wait(struct tally_module *module);

/* Nothing more is done for `module`, or (NULL) for any module of `context`; when it returns nothing
 * is under way for them. What was loaded beside the module is its `variants`. */
void tally_compile_forget(struct tally_module *module, CUcontext context);

/* Between the two nothing is loaded beside a module: while a context may end. `ended`: it did, and
 * nothing more is done for its modules; NULL: it did not. */
void tally_compile_pause(void);
void tally_compile_resume(CUcontext ended);

/* Before the driver goes: nothing more is done at all. */
void tally_compile_leave(void);

/* In a forked child: process.c says what becomes of all that the parent knew. */
void tally_compile_forked(void);

#endif
