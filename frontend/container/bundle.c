/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clang's three ways to put device code together: the offload bundle (also what .hip_fatbin
 * holds), the compressed bundle, and the offload binary of the new driver (.llvm.offloading).
 * Formats: clang's ClangOffloadBundler.rst and llvm/Object/OffloadBinary.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/container/reader.h"

#define BUNDLE_MAGIC 24

static bool is_host(const char *id)
{
	return !strncmp(id, "host", 4) && (id[4] == '-' || !id[4]);
}

bool read_bundle(struct reader *r, const struct view *view, size_t *used)
{
	size_t at = BUNDLE_MAGIC + 8, end;
	uint64_t count;

	if (view->size < at)
		return view_fail(r, view, 0, "the offload bundle is cut off after %zu bytes",
				 view->size);
	count = get64(view->data + BUNDLE_MAGIC);
	if (count > (view->size - at) / 24)
		return view_fail(
			r, view, BUNDLE_MAGIC,
			"the offload bundle says %llu entries, more than fit its %zu bytes",
			(unsigned long long)count, view->size);
	end = at;
	for (uint64_t n = 0; n < count; n++) {
		uint64_t offset, size, length;
		struct view part;
		char id[160];

		if (view->size - at < 24)
			return view_fail(r, view, at, "bundle entry %llu is cut off",
					 (unsigned long long)n);
		offset = get64(view->data + at);
		size = get64(view->data + at + 8);
		length = get64(view->data + at + 16);
		if (!within(at + 24, length, view->size) || length >= sizeof(id) || !length)
			return view_fail(r, view, at + 16,
					 "bundle entry %llu has a name of %llu bytes",
					 (unsigned long long)n, (unsigned long long)length);
		snprintf(id, sizeof(id), "%.*s", (int)length, (const char *)view->data + at + 24);
		if (!within(offset, size, view->size))
			return view_fail(
				r, view, at,
				"bundle entry %s says %llu bytes at %llu, but there are %zu", id,
				(unsigned long long)size, (unsigned long long)offset, view->size);
		at += 24 + length;
		if (at > end)
			end = at;
		if (offset + size > end)
			end = offset + size;
		if (is_host(id) || !size)
			continue;
		part = view_part(view, offset, size, "%s", id);
		arch_of_bundle_id(id, part.arch);
		if (!read_any(r, &part))
			return false;
	}
	*used = end;
	return true;
}

/* Where the three versions of the compressed bundle's header keep their sizes. */
static const struct ccob {
	unsigned header, total, uncompressed, width; /* bytes; `total` 0: not told */
} ccobs[] = {
	[1] = {20, 0, 8, 4},
	[2] = {24, 8, 12, 4},
	[3] = {32, 8, 16, 8},
};

bool read_compressed_bundle(struct reader *r, const struct view *view, size_t *used)
{
	static const enum compression methods[] = {COMPRESSION_ZLIB, COMPRESSION_ZSTD};
	const struct ccob *form;
	struct view part, inner;
	unsigned version, method;
	uint64_t total, size;
	uint8_t *bytes;
	bool ok;

	if (view->size < 8)
		return view_fail(r, view, 0, "the compressed bundle is cut off after %zu bytes",
				 view->size);
	version = get16(view->data + 4);
	method = get16(view->data + 6);
	if (version < 1 || version >= sizeof(ccobs) / sizeof(*ccobs) || method > 1)
		return view_fail(r, view, 4,
				 "a compressed offload bundle of version %u, method %u: versions 1 "
				 "to 3 with zlib or zstd can be read",
				 version, method);
	form = &ccobs[version];
	if (view->size < form->header)
		return view_fail(r, view, 0, "the compressed bundle is cut off after %zu bytes",
				 view->size);
#define FIELD(offset)                                                                              \
	(form->width == 8 ? get64(view->data + (offset)) : get32(view->data + (offset)))
	total = form->total ? FIELD(form->total) : view->size;
	size = FIELD(form->uncompressed);
#undef FIELD
	if (total < form->header || total > view->size)
		return view_fail(r, view, form->total,
				 "the compressed bundle says %llu bytes, but there are %zu",
				 (unsigned long long)total, view->size);
	*used = total;
	part = view_part(view, form->header, total - form->header, "CCOB");
	bytes = decompress(r, &part, methods[method], size);
	if (!bytes)
		return false;
	inner = part;
	inner.data = bytes;
	inner.size = size;
	ok = read_sequence(r, &inner);
	free(bytes);
	return ok;
}

enum offload_offset {
	OFFLOAD_SIZE = 8,
	OFFLOAD_ENTRY = 16,
	OFFLOAD_ENTRY_SIZE = 24,
	OFFLOAD_HEADER = 32,
	ENTRY_STRINGS = 8,
	ENTRY_STRING_COUNT = 16,
	ENTRY_IMAGE = 24,
	ENTRY_IMAGE_SIZE = 32,
	ENTRY_BYTES = 40,
};

/* The value of string `key`, or "". */
static const char *offload_string(const struct view *view, const uint8_t *entry, const char *key)
{
	uint64_t at = get64(entry + ENTRY_STRINGS), count = get64(entry + ENTRY_STRING_COUNT);

	for (uint64_t i = 0; i < count && within(at, 16, view->size); i++, at += 16) {
		uint64_t k = get64(view->data + at), v = get64(view->data + at + 8);

		if (k >= view->size || v >= view->size ||
		    !memchr(view->data + k, 0, view->size - k) ||
		    !memchr(view->data + v, 0, view->size - v))
			continue;
		if (!strcmp((const char *)view->data + k, key))
			return (const char *)view->data + v;
	}
	return "";
}

/*
 * Each chip's image is an offload binary of its own; those of one source file follow each other. So
 * one more chip belongs to the module before it, and a chip that module has already begins the
 * next.
 */
static void join_module(struct reader *r, const char *arch)
{
	const struct tally_images *images = r->images;
	unsigned before = r->module - 1;

	if (r->alternatives > 1 || !images->count ||
	    images->image[images->count - 1].module != before)
		return;
	for (size_t i = images->count; i-- > 0 && images->image[i].module == before;)
		if (!strcmp(images->image[i].arch, arch))
			return;
	r->module = before;
}

bool read_offload_binary(struct reader *r, const struct view *view, size_t *used)
{
	struct view whole, image;
	uint64_t size, at, offset, length;
	const uint8_t *entry;

	if (view->size < OFFLOAD_HEADER)
		return view_fail(r, view, 0, "the offload binary is cut off after %zu bytes",
				 view->size);
	if (get32(view->data + 4) != 1)
		return view_fail(r, view, 4,
				 "an offload binary of version %u: version 1 can be read",
				 get32(view->data + 4));
	size = get64(view->data + OFFLOAD_SIZE);
	at = get64(view->data + OFFLOAD_ENTRY);
	if (size > view->size || !within(at, ENTRY_BYTES, size) || at < OFFLOAD_HEADER ||
	    get64(view->data + OFFLOAD_ENTRY_SIZE) < ENTRY_BYTES)
		return view_fail(r, view, OFFLOAD_SIZE,
				 "the offload binary says %llu bytes with its entry at %llu, but "
				 "there are %zu",
				 (unsigned long long)size, (unsigned long long)at, view->size);
	*used = size;
	whole = view_part(view, 0, size, "%s", "");
	entry = view->data + at;
	offset = get64(entry + ENTRY_IMAGE);
	length = get64(entry + ENTRY_IMAGE_SIZE);
	if (!within(offset, length, size))
		return view_fail(
			r, view, at,
			"the offload binary's image says %llu bytes at %llu, but there are "
			"%llu",
			(unsigned long long)length, (unsigned long long)offset,
			(unsigned long long)size);
	image = view_part(view, offset, length, "%s", offload_string(&whole, entry, "triple"));
	snprintf(image.arch, sizeof(image.arch), "%s", offload_string(&whole, entry, "arch"));
	join_module(r, image.arch);
	return length ? read_any(r, &image) : true;
}
