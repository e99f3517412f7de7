/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a PTX file, lowered one by one (`part` in backend.h), as one file again. */
#ifndef TALLY_BACKENDS_CUDA_LOWER_JOIN_H
#define TALLY_BACKENDS_CUDA_LOWER_JOIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct tally_cuda_join {
	struct tally_buffer *out;
	size_t start; /* of the file in `out` */
	const char *target;
	bool verbatim;			       /* the file's own text is in it */
	unsigned version;		       /* the newest that a part needs, as 86 for 8.6 */
	unsigned files;			       /* .file numbers so far */
	struct tally_buffer file_lines;	       /* `.file` lines of `text`, then of the parts */
	size_t own_files;		       /* where the parts' begin */
	struct tally_buffer names;	       /* declared by parts, each with a NUL behind it */
	size_t *table, table_size, name_count; /* 1 + places in `names`, by hash */
};

/*
 * Starts a file for `target` at the end of `out`, which has to outlive the join. `text` (may be
 * NULL) is what follows the header of the file that the parts come from, when its kernels stay as
 * they are and the parts bring variants: it declares all variables then. `version` is the oldest
 * PTX version (as 86) that the file may have.
 */
void tally_cuda_join_open(struct tally_cuda_join *join, struct tally_buffer *out,
			  const char *target, unsigned version, const char *text, size_t size);

/* Adds what the lowering made of a part, in the order that they are to have. */
bool tally_cuda_join_add(struct tally_cuda_join *join, const char *text, size_t size,
			 struct tally_error *error);

/* Ends the file; needed after an error as well. False when memory ran out. */
bool tally_cuda_join_close(struct tally_cuda_join *join, struct tally_error *error);

#endif
