/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that came as machine code alone. Theirs can be made stoppable too (`tally-lower
 * --transform opaque`): the patched image is loaded beside the program's own when the first of its
 * kernels turns out to be worth it, never before, for libraries carry hundreds of images.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_OPAQUE_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_OPAQUE_H

#include "backends/cuda/interpose/images.h"

/* What is needed to patch a module's image, once somebody asks. */
struct tally_machine_code {
	const void *image; /* of a file that stays mapped as long as the module is loaded, or: */
	void *copy;	   /* ours: the same as `image`, or NULL */
	size_t size;
	char target[32];
	/* TALLY_NO: the patched image has no constants that the host could change. Read after the
	 * module's form is STOPPABLE. */
	enum tally_fact constants;
	void *patched; /* what was loaded beside it: a mapped file of the cache; or NULL */
	size_t patched_size;
	_Atomic unsigned behind; /* launches that waited for stoppable ones in front of them */
};

/*
 * Whether the image of `loading`, which holds machine code alone, may be patched at all; why not is
 * in `barred`. By whose it is: the file that is mapped where the image is, or, where there is none,
 * the file whose code called the driver (`caller`).
 */
bool tally_opaque_allowed(const struct tally_loading *loading, enum tally_reason *barred);

/* The record for `loading`, NULL out of memory or where the device can run nothing of it. */
struct tally_machine_code *tally_opaque_remember(const struct tally_loading *loading);
/* Frees it; NULL is nothing. Nobody compiles or launches anything of it any more. */
void tally_opaque_forget(struct tally_machine_code *code);

/*
 * The module's kernels should be stoppable: has its image patched in the background, once; a second
 * call does nothing. Where TALLY_COMPILE=wait, returns when that is over. A context is current, no
 * lock is held.
 */
void tally_opaque_ask(struct tally_module *module);

/* Whether kernels of that name wait for others than blocks before them: they are never stopped. */
bool tally_opaque_collective(const char *kernel);

/* opaque_trial.c: whether this driver runs patched code as it should: a small kernel is patched,
 * run, stopped and started again, once in the process. Says on stderr why not. `context` is not
 * current; called by a thread of ours, which may wait for the gate. */
bool tally_opaque_works(CUcontext context, const char *target);

/* Around a fork, which is not to meet the driver's compiler at work for us; in the child. */
void tally_opaque_before_fork(void);
void tally_opaque_after_fork(void);
void tally_opaque_forked(void);

/* Before the driver goes: no trial is under way, and none begins. */
void tally_opaque_leave(void);

#endif
