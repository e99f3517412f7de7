/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's fatbin: a header of 16 bytes (u32 magic, u16 version, u16 header size, u64 size of what
 * follows), then entries. The format is not documented by NVIDIA; the offsets below are those that
 * nvcc 11 to 13 and clang write.
 */
#include <stdio.h>
#include <stdlib.h>

#include "frontend/container/reader.h"

#define FATBIN_HEADER 16
#define ENTRY_HEADER  64 /* at least; options and names follow */

enum entry_offset {
	ENTRY_KIND = 0,		/* u16 */
	ENTRY_HEADER_SIZE = 4,	/* u32 */
	ENTRY_PAYLOAD = 8,	/* u32, padded */
	ENTRY_COMPRESSED = 16,	/* u32, exact; 0 when not compressed */
	ENTRY_SM = 28,		/* u32: 80 for sm_80 */
	ENTRY_FLAGS = 40,	/* u64 */
	ENTRY_UNCOMPRESSED = 56 /* u64 */
};

#define FLAG_LZ4  0x2000u
#define FLAG_ZSTD 0x8000u

static const struct {
	unsigned kind;
	enum tally_image_kind image;
} kinds[] = {
	{1, TALLY_IMAGE_PTX},
	{2, TALLY_IMAGE_CUBIN},
	{8, TALLY_IMAGE_LTOIR},
};

static enum tally_image_kind image_kind(unsigned kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].kind == kind)
			return kinds[i].image;
	return TALLY_IMAGE_UNKNOWN;
}

static bool read_entry(struct reader *r, struct view *payload, const uint8_t *head)
{
	enum tally_image_kind kind = image_kind(get16(head + ENTRY_KIND));
	uint64_t flags = get64(head + ENTRY_FLAGS);
	uint32_t compressed = get32(head + ENTRY_COMPRESSED), sm = get32(head + ENTRY_SM);
	enum compression how = flags & FLAG_ZSTD  ? COMPRESSION_ZSTD
			       : flags & FLAG_LZ4 ? COMPRESSION_LZ4
						  : COMPRESSION_NONE;
	uint8_t *bytes;

	if (sm)
		snprintf(payload->arch, sizeof(payload->arch), "sm_%u", sm);
	/* LTO-IR is scrambled, so that its compression cannot be undone: listed as it is. */
	if (how == COMPRESSION_NONE || kind == TALLY_IMAGE_LTOIR || kind == TALLY_IMAGE_UNKNOWN)
		return reader_add(r, payload, kind, how, NULL, 0);
	if (!compressed || compressed > payload->size)
		return view_fail(r, payload, 0, "damaged: %u compressed bytes in a payload of %zu",
				 compressed, payload->size);
	payload->size = compressed;
	bytes = decompress(r, payload, how, get64(head + ENTRY_UNCOMPRESSED));
	if (!bytes)
		return false;
	return reader_add(r, payload, kind, how, bytes, get64(head + ENTRY_UNCOMPRESSED));
}

bool read_fatbin(struct reader *r, const struct view *view, size_t *used)
{
	uint64_t header, size, at, end;
	unsigned n = 0;

	if (view->size < FATBIN_HEADER)
		return view_fail(r, view, 0, "the fatbin header is cut off after %zu bytes",
				 view->size);
	header = get16(view->data + 6);
	size = get64(view->data + 8);
	if (header < FATBIN_HEADER || !within(header, size, view->size))
		return view_fail(r, view, 8, "the fatbin says %llu bytes, but there are %zu",
				 (unsigned long long)size, view->size);
	end = header + size;
	*used = end;
	for (at = header; at < end; n++) {
		const uint8_t *head = view->data + at;
		uint64_t head_size, payload;
		struct view part;

		if (end - at < ENTRY_HEADER)
			return view_fail(r, view, at, "fatbin entry %u is cut off after %llu bytes",
					 n, (unsigned long long)(end - at));
		head_size = get32(head + ENTRY_HEADER_SIZE);
		payload = get32(head + ENTRY_PAYLOAD);
		if (head_size < ENTRY_HEADER || !within(head_size, payload, end - at))
			return view_fail(
				r, view, at,
				"fatbin entry %u says %llu + %llu bytes, but %llu are left", n,
				(unsigned long long)head_size, (unsigned long long)payload,
				(unsigned long long)(end - at));
		part = view_part(view, at + head_size, payload, "entry %u", n);
		if (!read_entry(r, &part, head))
			return false;
		at += head_size + payload;
	}
	return true;
}
