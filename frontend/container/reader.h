/* SPDX-License-Identifier: Apache-2.0 */
/* What the container formats share: a bounded view of bytes, and the list being filled. */
#ifndef TALLY_FRONTEND_CONTAINER_READER_H
#define TALLY_FRONTEND_CONTAINER_READER_H

#include <elf.h>

#include "frontend/frontend.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif
#ifndef EM_AMDGPU
#define EM_AMDGPU 224
#endif

/* Containers hold containers (an ELF a bundle, a bundle an ELF); deeper than this is damage. */
#define READER_DEPTH_MAX 6
/* All images of one call together: the bound that frontend.h promises. */
#define READER_BYTES_MAX ((size_t)1 << 30)

struct reader {
	const char *path;
	struct tally_images *images;
	struct tally_error *error;
	size_t bytes; /* of all images and decompression buffers so far */
	unsigned depth;
	unsigned module;       /* of the images that are being added */
	unsigned alternatives; /* depth of containers whose entries are one module's */
};

/* Bytes inside the file, and what they are called in messages. */
struct view {
	const uint8_t *data;
	size_t size;
	char origin[224]; /* ".nv_fatbin entry 3" */
	char arch[64];	  /* what the container around says, or "" */
};

/* Whether [offset, offset + length) lies within `size` bytes, with no overflow. */
static inline bool within(uint64_t offset, uint64_t length, uint64_t size)
{
	return offset <= size && length <= size - offset;
}

/* Little-endian fields at any alignment. The caller has checked the bounds. */
uint16_t get16(const uint8_t *p);
uint32_t get32(const uint8_t *p);
uint64_t get64(const uint8_t *p);

/* The part [offset, offset + size) of `view`, which the caller has checked, named by printf. */
struct view view_part(const struct view *view, uint64_t offset, uint64_t size, const char *format,
		      ...) __attribute__((format(printf, 4, 5)));

/* Fails with `path: ORIGIN at offset N: message`; the offset is within the view. Returns false. */
bool view_fail(struct reader *r, const struct view *view, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

enum compression { COMPRESSION_NONE, COMPRESSION_LZ4, COMPRESSION_ZSTD, COMPRESSION_ZLIB };
extern const char *const compression_names[];

/* Decompresses all of `view` into exactly `size` bytes followed by a NUL. The caller frees them.
 * NULL with an error. */
uint8_t *decompress(struct reader *r, const struct view *view, enum compression how, uint64_t size);

/* Adds an image. `owned` is taken (and freed on failure); NULL: the view's bytes are copied. */
bool reader_add(struct reader *r, const struct view *view, enum tally_image_kind kind,
		enum compression compression, uint8_t *owned, size_t size);

/* Reads what `view` holds, by its first bytes: an image or a container. */
bool read_any(struct reader *r, const struct view *view);

/* The same for a section or file in which several may follow each other, with zeros between. */
bool read_sequence(struct reader *r, const struct view *view);

/*
 * The formats. Each reads one container at the start of the view and says in *used how many bytes
 * it takes (the whole view where the format does not tell).
 */
bool read_fatbin(struct reader *r, const struct view *view, size_t *used);
bool read_bundle(struct reader *r, const struct view *view, size_t *used);
bool read_compressed_bundle(struct reader *r, const struct view *view, size_t *used);
bool read_offload_binary(struct reader *r, const struct view *view, size_t *used);
bool read_elf(struct reader *r, const struct view *view, size_t *used);

/* arch.c: names of the machines in ELF headers ("sm_80", "gfx90a"); "" when unknown. */
void arch_of_elf(unsigned machine, unsigned abi_version, uint32_t flags, char arch[64]);
/* What follows the last "--" of a bundle entry's id: "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+" ->
 * "gfx90a:xnack+". Without one, `arch` stays. */
void arch_of_bundle_id(const char *id, char arch[64]);
/* The `.target` of PTX text, or "". */
void arch_of_ptx(const char *text, size_t size, char arch[64]);

#endif
