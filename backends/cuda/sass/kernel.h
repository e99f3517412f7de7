/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel of an image: what belongs to it, and the guard put into it. */
#ifndef TALLY_BACKENDS_CUDA_SASS_KERNEL_H
#define TALLY_BACKENDS_CUDA_SASS_KERNEL_H

#include "backends/cuda/sass/image.h"
#include "backends/cuda/sass/patch.h"
#include "backends/cuda/sass/prelude.h"

/* What is known of each section and each symbol of an image; made once, for all its kernels. */
struct sass_index {
	struct sass_image *image;
	const struct sass_prelude *prelude;
	/* By section: of a kernel's code, its attributes and its constants (0: none). */
	unsigned *info, *constants;
	bool *moved_entry;     /* by section: a relocation changes the first instruction */
	unsigned *base;	       /* by section: the symbol that stands for it (0: none) */
	bool *address;	       /* by symbol: something beside its own code refers to it */
	size_t *registers;     /* by symbol: where .nv.info counts its registers (0: nowhere) */
	unsigned info_section; /* .nv.info; 0: none */
	bool launches;	       /* its code launches kernels */
};

/* False with an error; free it all the same. Nothing of the image is owned. */
bool sass_index_make(struct sass_index *index, struct sass_image *image,
		     const struct sass_prelude *prelude, struct tally_error *error);
void sass_index_free(struct sass_index *index);

/* Puts the guard into the kernel `symbol`, or says why not and changes nothing. False with an error
 * when out of memory: the image is then not to be written. */
bool sass_kernel_patch(struct sass_index *index, unsigned symbol, enum tally_sass_reason *reason,
		       struct tally_error *error);

#endif
