/* SPDX-License-Identifier: Apache-2.0 */
/* A linked image of NVIDIA machine code: an ELF file, taken apart and put together again. */
#ifndef TALLY_BACKENDS_CUDA_SASS_IMAGE_H
#define TALLY_BACKENDS_CUDA_SASS_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif
#define SASS_NV_INFO  0x70000000u /* section type of attributes */
#define SASS_KERNEL   0x10	  /* in st_other: a function that is launched */
#define SASS_SECTIONS 0xff00u	  /* SHN_LORESERVE: more are numbered in another way */

struct sass_section {
	Elf64_Shdr head; /* offset and size are the input's */
	const char *name;
	const uint8_t *data; /* the input's bytes, or `own`; NULL for those without */
	size_t size;	     /* of data */
	uint8_t *own;	     /* the new content, or NULL */
};

struct sass_image {
	const uint8_t *input;
	size_t input_size;
	Elf64_Ehdr head;
	unsigned arch; /* 90: sm_90 */
	unsigned abi;  /* EI_ABIVERSION */
	bool specific; /* sm_90a: runs on this very chip alone */
	bool mercury;  /* holds a second form of its code, for related chips */
	struct sass_section *section;
	unsigned sections;
	Elf64_Sym *symbol; /* a copy: what is changed in it is written */
	unsigned symbols, symbol_section;
	const char *strings; /* of the symbols; ends in a NUL */
	size_t strings_size;
};

/*
 * Reads headers, sections and symbols of an image that is linked (not relocatable). Everything that
 * is reached through `image` lies within [data, data + size), which has to stay; sections do not
 * overlap each other or the tables. Ended by sass_image_free(), also after false with an error.
 */
bool sass_image_read(struct sass_image *image, const void *data, size_t size,
		     struct tally_error *error);
void sass_image_free(struct sass_image *image);

/* "" for a symbol without a name. */
const char *sass_symbol_name(const struct sass_image *image, unsigned symbol);

/* Gives a section new content: `size` bytes that start as the old ones and are zero behind them.
 * NULL when out of memory. */
uint8_t *sass_section_own(struct sass_section *section, size_t size);

/*
 * layout.c: appends the image with its sections' and symbols' present content to `out`. What has
 * not changed keeps its bytes, its order and its alignment; everything behind a section that grew
 * moves. False when out of memory or when a table could not be kept.
 */
bool sass_image_write(const struct sass_image *image, struct tally_buffer *out,
		      struct tally_error *error);

#endif
