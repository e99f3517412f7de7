/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a fatbin, as far as a program that links nothing looks at them (the compiler's
 * side, frontend/container/fatbin.c, reads all of them). Any image: nothing outside it is read. */
#ifndef TALLY_CACHE_FATBIN_H
#define TALLY_CACHE_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FATBIN_MAGIC  0xBA55ED50u
#define FATBIN_HEADER 16  /* bytes of the header that nvcc writes */
#define CUDA_MACHINE  190 /* of ELF files */

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_CUBIN = 2 };

/* Its members that matter here; what follows them differs from version to version. */
struct fatbin_entry {
	uint16_t kind, version;
	uint32_t header_size, payload; /* bytes */
	uint32_t unused[4], arch, unused_too[2];
	uint64_t flags;
	uint64_t unused_behind[2];
};
_Static_assert(offsetof(struct fatbin_entry, arch) == 28, "NVIDIA's layout");
_Static_assert(offsetof(struct fatbin_entry, flags) == 40, "NVIDIA's layout");
_Static_assert(sizeof(struct fatbin_entry) == 64, "the least that an entry's header has");

static inline bool is_fatbin(const void *image, size_t size)
{
	uint32_t magic = 0;

	if (size > FATBIN_HEADER)
		memcpy(&magic, image, sizeof magic);
	return magic == FATBIN_MAGIC;
}

/* Where the first entry begins. */
static inline size_t fatbin_first(const char *image)
{
	uint16_t header;

	memcpy(&header, image + 6, sizeof header);
	return header;
}

/* The entry at `at`; false: there is none, or it is not all there. */
static inline bool fatbin_entry_at(const char *image, size_t size, size_t at,
				   struct fatbin_entry *entry)
{
	if (at >= size || size - at < sizeof *entry)
		return false;
	memcpy(entry, image + at, sizeof *entry);
	return entry->header_size >= sizeof *entry && entry->header_size <= size - at &&
	       entry->payload <= size - at - entry->header_size;
}

static inline size_t fatbin_entry_bytes(const struct fatbin_entry *entry)
{
	return (size_t)entry->header_size + entry->payload;
}

#endif
