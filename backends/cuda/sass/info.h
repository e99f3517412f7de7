/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of images and kernels (sections .nv.info and .nv.info.KERNEL). NVIDIA does not
 * document them; numbers and layouts are those that ptxas 11 to 13 writes and nvdisasm names.
 */
#ifndef TALLY_BACKENDS_CUDA_SASS_INFO_H
#define TALLY_BACKENDS_CUDA_SASS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum sass_attribute_name {
	SASS_CTAIDZ_USED = 0x04,
	SASS_PARAM_CBANK = 0x0a,	 /* u32 symbol, u16 start, u16 size */
	SASS_FRAME_SIZE = 0x11,		 /* u32 symbol, u32 bytes */
	SASS_MIN_STACK_SIZE = 0x12,	 /* u32 symbol, u32 bytes */
	SASS_KPARAM_INFO = 0x17,	 /* u32 0, u16 ordinal, u16 offset, u32 size << 18 | ... */
	SASS_CBANK_PARAM_SIZE = 0x19,	 /* u16 */
	SASS_MAXREG_COUNT = 0x1b,	 /* u16 */
	SASS_EXIT_INSTR_OFFSETS = 0x1c,	 /* u32 each */
	SASS_CRS_STACK_SIZE = 0x1e,	 /* u32 */
	SASS_REGCOUNT = 0x2f,		 /* u32 symbol, u32 registers */
	SASS_CUDA_API_VERSION = 0x37,	 /* u32 */
	SASS_KPARAM_INFO_V2 = 0x45,	 /* the same, but for u16 size, u16 0: over 4 KiB of them */
	SASS_NUM_BARRIERS = 0x4c,	 /* u8 */
	SASS_BLOCKS_ARE_CLUSTERS = 0x5b, /* the grid counts clusters */
};

enum sass_attribute_format { SASS_NO_VALUE = 1, SASS_BYTE, SASS_HALF, SASS_SIZED };

struct sass_attribute {
	unsigned format, name;
	size_t at;	      /* of the attribute in its section */
	const uint8_t *value; /* of SASS_SIZED: what follows the size; else the two bytes */
	size_t size;
};

/* Steps through a section: false at its end (`*at` is the size then) or where it is damaged. */
bool sass_info_next(const uint8_t *info, size_t size, size_t *at, struct sass_attribute *found);

/* Appends one. */
void sass_info_append(struct tally_buffer *out, unsigned format, unsigned name, const void *value,
		      size_t size);

/* Little-endian fields at any alignment. */
uint16_t sass_get16(const uint8_t *p);
uint32_t sass_get32(const uint8_t *p);
void sass_put16(uint8_t *p, uint16_t value);
void sass_put32(uint8_t *p, uint32_t value);

#endif
