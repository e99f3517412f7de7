/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the guard of the stop protocol into NVIDIA machine code: docs/opaque.md. */
#ifndef TALLY_BACKENDS_CUDA_SASS_PATCH_H
#define TALLY_BACKENDS_CUDA_SASS_PATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* Why a kernel, or all of an image, stays as it is. */
#define TALLY_SASS_REASONS(X)                                                                      \
	X(PATCHED, "patched")                                                                      \
	X(OTHER, "another kernel was named")                                                       \
	X(LAUNCHES, "its image launches kernels from the device")                                  \
	X(ADDRESS, "its address is taken on the device")                                           \
	X(PIECES, "a section of its own is missing or belongs to another kernel")                  \
	X(ENTRY, "its code does not start where its section does")                                 \
	X(SIZE, "its code is not all of its section")                                              \
	X(GUARDED, "it has a guard already: take what it was made from")                           \
	X(FIRST, "its first instruction does not load the stack's address")                        \
	X(RELOCATED, "its first instruction is relocated")                                         \
	X(LOOP, "it branches back to its first instruction")                                       \
	X(ATTRIBUTES, "its attributes cannot be read")                                             \
	X(CLUSTER_GRID, "its grid counts clusters, not blocks")                                    \
	X(LARGE, "its parameters leave no room for another")                                       \
	X(PARAMETERS, "its parameters are not where this chip has them")                           \
	X(REGISTERS, "it has fewer registers than the guard needs, or nothing says how many")

enum tally_sass_reason {
#define X(name, text) TALLY_SASS_##name,
	TALLY_SASS_REASONS(X)
#undef X
		TALLY_SASS_REASON_COUNT
};

/* The words above. */
const char *tally_sass_reason_text(enum tally_sass_reason reason);

struct tally_sass_kernel {
	const char *name; /* inside the image that was given */
	enum tally_sass_reason reason;
};

struct tally_sass_report {
	struct tally_sass_kernel *kernel; /* in the order of the symbol table */
	size_t count, patched;
};

/* Frees the list and leaves the report empty; the names are the image's. */
void tally_sass_report_free(struct tally_sass_report *report);

/*
 * Appends to `out` the image `cubin` (one linked ELF file of NVIDIA machine code, as a driver loads
 * it) with a guard in each kernel that takes one, or in `only` alone (NULL: all). `target`
 * ("sm_90") is the chip that will run it.
 *
 * A guarded kernel keeps its name and its parameters and has one more behind them, at the next
 * multiple of 8 bytes: the first 16 bytes of a struct tally_launch (ir_passes/launch_abi.h). It is
 * launched with the original's grid; hi == 0 runs everything; where it is launched in clusters, lo,
 * hi and the words of the stop protocol count clusters. What is refused stays as it was, without
 * the parameter; `report` (freed by the caller, also after a failure) says of each kernel which and
 * why. The names in it point into `cubin`.
 *
 * False with an error, and nothing appended, for an image that is damaged, is not for `target`, or
 * has no kernel that takes a guard. Reads nothing outside of [cubin, cubin + size). No global
 * state: any thread.
 */
bool tally_sass_patch(const void *cubin, size_t size, const char *target, const char *only,
		      struct tally_buffer *out, struct tally_sass_report *report,
		      struct tally_error *error);

/* How well `cubin` suits a chip `target` and whoever wants `kernel` (NULL: any): 0 for another
 * chip's, one without that kernel, or no linked image at all; of several the driver takes the one
 * with the highest number. */
unsigned tally_sass_fit(const void *cubin, size_t size, const char *target, const char *kernel);

#endif
