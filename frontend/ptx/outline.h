/* SPDX-License-Identifier: Apache-2.0 */
/* PTX that stays as its compiler wrote it: where its kernels begin and end, and copies of them. */
#ifndef TALLY_FRONTEND_PTX_OUTLINE_H
#define TALLY_FRONTEND_PTX_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* `%ctaid.x` ... `%nctaid.z` in a body: offset and length in the text, and which of the six. */
struct ptx_read {
	size_t at, length;
	unsigned which;
};

/* A kernel with a body. Offsets into the text. */
struct ptx_entry {
	size_t start;		  /* of .visible, .weak or .entry */
	size_t name, name_length; /* of its name */
	size_t parameters;	  /* the closing parenthesis; 0: there is no list */
	bool has_parameters;
	unsigned long long parameter_bytes;
	size_t body, end;	  /* behind its opening brace; its closing one */
	size_t first_read, reads; /* of ptx_outline.read */
	const char *reason;	  /* it has to run whole: why (static text); or NULL */
};

struct ptx_outline {
	const char *text;
	size_t size;
	unsigned version; /* 83 is 8.3 */
	char target[16];  /* "sm_90a" */
	struct ptx_entry *entry;
	size_t entries;
	struct ptx_read *read;
	size_t reads;
	bool ours; /* it has names that copies have, as what tally-lower wrote */
};

/*
 * Fills `outline` from `size` bytes of PTX, which have to outlive it. False when its kernels cannot
 * be copied as text: a device function that is not part of a kernel reads a block id or the grid's
 * size or holds what decides whether kernels run whole; such a read that is no plain `mov` of 32
 * bits; variables that live longer than a launch inside a body; text that is no PTX; no memory.
 * Free the outline either way.
 */
bool ptx_outline(struct ptx_outline *outline, const char *text, size_t size);
void ptx_outline_free(struct ptx_outline *outline);

/* What stands round a copied body: PTX text. */
struct ptx_frame {
	struct tally_buffer suffix; /* of the copy's name: "$slice_guard" */
	struct tally_buffer before, after;
};

/*
 * Cuts the frame out of `text`, a lowered module of the kernel `name` and one variant of it, whose
 * bodies are the statement `tally_body;` behind declarations of `%tally_block_x` ... (see
 * ptx_keep()). Its registers and labels get names of their own. False for anything else, or
 * no memory. Free the frame either way.
 */
bool ptx_frame_cut(struct ptx_frame *frame, const char *text, size_t size, const char *name);
void ptx_frame_free(struct ptx_frame *frame);

/*
 * Appends the outline's text and, of each kernel that need not run whole, a copy with one more
 * parameter (struct tally_launch, launch_abi.h) inside `frame`. With `moved` the copies read
 * `%tally_block_x` ... `%tally_grid_z` where the originals read %ctaid and %nctaid.
 */
void ptx_keep(const struct ptx_outline *outline, const struct ptx_frame *frame, bool moved,
	      struct tally_buffer *out);

#endif
