/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what some bytes are, and keeps the list of images that the formats fill. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "frontend/container/reader.h"

uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

uint64_t get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

struct view view_part(const struct view *view, uint64_t offset, uint64_t size, const char *format,
		      ...)
{
	struct view part = {.data = view->data + offset, .size = size};
	char name[sizeof(part.origin)];
	size_t n;
	va_list args;

	memcpy(part.arch, view->arch, sizeof(part.arch));
	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	n = strlen(view->origin);
	memcpy(part.origin, view->origin, n + 1);
	snprintf(part.origin + n, sizeof(part.origin) - n, "%s%s", n && name[0] ? " " : "", name);
	return part;
}

bool view_fail(struct reader *r, const struct view *view, uint64_t offset, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return tally_fail_at(r->error, r->path, 0, 0, "%s%sat offset %llu: %s", view->origin,
			     view->origin[0] ? " " : "", (unsigned long long)offset, text);
}

bool reader_add(struct reader *r, const struct view *view, enum tally_image_kind kind,
		enum compression compression, uint8_t *owned, size_t size)
{
	struct tally_images *list = r->images;
	struct tally_image *image;

	if (!owned) {
		size = view->size;
		if (size > READER_BYTES_MAX - r->bytes)
			return view_fail(r, view, 0, "its images are larger than 1 GiB together");
		r->bytes += size;
		owned = malloc(size + 1);
		if (!owned)
			return view_fail(r, view, 0, "out of memory");
		memcpy(owned, view->data, size);
		owned[size] = 0;
	}
	/* PTX in a fatbin is padded with NULs; text ends where they begin. */
	if (kind == TALLY_IMAGE_PTX || kind == TALLY_IMAGE_IR)
		while (size && !owned[size - 1])
			size--;
	if (!TALLY_GROW(list->image, list->count)) {
		free(owned);
		return view_fail(r, view, 0, "out of memory");
	}
	image = &list->image[list->count++];
	if (!r->alternatives)
		r->module++;
	*image = (struct tally_image){
		.kind = kind, .module = r->module, .data = owned, .size = size};
	/* The name may be cut: it is for people. */
	snprintf(image->origin, sizeof(image->origin), "%.*s%s%s",
		 view->origin[0] ? 255 - 2 - (int)strlen(view->origin) : 255, r->path,
		 view->origin[0] ? ": " : "", view->origin);
	memcpy(image->arch, view->arch, sizeof(image->arch));
	snprintf(image->compression, sizeof(image->compression), "%s",
		 compression_names[compression]);
	if (kind == TALLY_IMAGE_PTX && !image->arch[0])
		arch_of_ptx((const char *)owned, size, image->arch);
	return true;
}

void tally_images_free(struct tally_images *images)
{
	for (size_t i = 0; i < images->count; i++)
		free(images->image[i].data);
	free(images->image);
	*images = (struct tally_images){0};
}

/* Past blanks, comments of PTX (line and block) and of IR (`;` to the end of the line), and what a
 * preprocessor leaves in PTX (`# 1 "file"`). */
static size_t skip_blank(const uint8_t *p, size_t i, size_t size)
{
	while (i < size) {
		if (p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r')) {
			i++;
		} else if (p[i] == ';' || p[i] == '#' ||
			   (p[i] == '/' && i + 1 < size && p[i + 1] == '/')) {
			while (i < size && p[i] != '\n')
				i++;
		} else if (p[i] == '/' && i + 1 < size && p[i + 1] == '*') {
			for (i += 2; i + 1 < size && (p[i] != '*' || p[i + 1] != '/');)
				i++;
			i += 2;
		} else {
			break;
		}
	}
	return i < size ? i : size;
}

/* How the first word of a text tells PTX from IR. A PTX file must open with .version; the rest
 * is what an IR file can open with at its top level. */
static const struct {
	const char *word;
	enum tally_image_kind kind;
} first_words[] = {
	{".version", TALLY_IMAGE_PTX},	{"source_filename", TALLY_IMAGE_IR},
	{"target ", TALLY_IMAGE_IR},	{"define ", TALLY_IMAGE_IR},
	{"declare ", TALLY_IMAGE_IR},	{"attributes ", TALLY_IMAGE_IR},
	{"module asm", TALLY_IMAGE_IR}, {"@", TALLY_IMAGE_IR},
	{"%", TALLY_IMAGE_IR},		{"!", TALLY_IMAGE_IR},
	{"$", TALLY_IMAGE_IR},
};

static enum tally_image_kind text_kind(const struct view *view)
{
	size_t size = view->size, i;

	while (size && !view->data[size - 1])
		size--;
	if (memchr(view->data, 0, size))
		return TALLY_IMAGE_UNKNOWN;
	i = skip_blank(view->data, 0, size);
	for (size_t w = 0; w < sizeof(first_words) / sizeof(*first_words); w++) {
		size_t n = strlen(first_words[w].word);

		if (n <= size - i && !memcmp(view->data + i, first_words[w].word, n))
			return first_words[w].kind;
	}
	return TALLY_IMAGE_UNKNOWN;
}

static bool read_wrapped_bitcode(struct reader *r, const struct view *view, size_t *used)
{
	struct view inner;
	uint32_t offset, size;

	if (view->size < 20)
		return view_fail(r, view, 0, "the bitcode wrapper is cut off after %zu bytes",
				 view->size);
	offset = get32(view->data + 8);
	size = get32(view->data + 12);
	if (offset < 20 || !within(offset, size, view->size))
		return view_fail(r, view, 8,
				 "the bitcode wrapper says %u bytes at %u, but there are %zu", size,
				 offset, view->size);
	*used = (size_t)offset + size;
	inner = view_part(view, offset, size, "%s", "");
	if (size < 4 || memcmp(inner.data, "BC\xC0\xDE", 4))
		return view_fail(r, view, offset, "no bitcode inside the bitcode wrapper");
	return reader_add(r, &inner, TALLY_IMAGE_BITCODE, COMPRESSION_NONE, NULL, 0);
}

static bool read_raw_bitcode(struct reader *r, const struct view *view, size_t *used)
{
	/* Raw bitcode does not say how long it is. */
	*used = view->size;
	return reader_add(r, view, TALLY_IMAGE_BITCODE, COMPRESSION_NONE, NULL, 0);
}

static bool read_segment_wrapper(struct reader *r, const struct view *view, size_t *used)
{
	*used = view->size;
	return view_fail(r, view, 0,
			 "this is the wrapper that points to a fatbin in a process's memory; "
			 "the fatbin itself is what can be read");
}

static const struct {
	const char *magic;
	size_t length;
	bool (*read)(struct reader *r, const struct view *view, size_t *used);
	bool alternatives; /* its entries are one module for different chips */
} formats[] = {
	{"\x50\xED\x55\xBA", 4, read_fatbin, true},
	{"\xB1\x43\x62\x46", 4, read_segment_wrapper, false}, /* CUDA */
	{"FPIH", 4, read_segment_wrapper, false},	      /* HIP */
	{"__CLANG_OFFLOAD_BUNDLE__", 24, read_bundle, true},
	{"CCOB", 4, read_compressed_bundle, true},
	{"\x10\xFF\x10\xAD", 4, read_offload_binary, true},
	{"\x7F"
	 "ELF",
	 4, read_elf, false},
	{"\xDE\xC0\x17\x0B", 4, read_wrapped_bitcode, false},
	{"BC\xC0\xDE", 4, read_raw_bitcode, false},
};

static bool read_one(struct reader *r, const struct view *view, size_t *used)
{
	enum tally_image_kind kind;

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		bool ok;

		if (view->size < formats[i].length ||
		    memcmp(view->data, formats[i].magic, formats[i].length))
			continue;
		if (r->depth == READER_DEPTH_MAX)
			return view_fail(r, view, 0, "containers nested more than %d deep",
					 READER_DEPTH_MAX);
		r->depth++;
		if (formats[i].alternatives && !r->alternatives++)
			r->module++;
		ok = formats[i].read(r, view, used);
		r->alternatives -= formats[i].alternatives;
		r->depth--;
		return ok;
	}
	*used = view->size;
	kind = text_kind(view);
	if (kind != TALLY_IMAGE_UNKNOWN)
		return reader_add(r, view, kind, COMPRESSION_NONE, NULL, 0);
	return view_fail(r, view, 0,
			 "neither PTX, LLVM bitcode or IR, a fatbin, an offload bundle nor an ELF "
			 "file");
}

bool read_any(struct reader *r, const struct view *view)
{
	size_t used;

	return read_one(r, view, &used);
}

bool read_sequence(struct reader *r, const struct view *view)
{
	size_t at = 0;

	for (unsigned n = 0;; n++) {
		struct view part;
		size_t used = 0;

		while (at < view->size && !view->data[at])
			at++;
		if (at == view->size)
			return true;
		part = n ? view_part(view, at, view->size - at, "[%u]", n)
			 : view_part(view, at, view->size - at, "%s", "");
		if (!read_one(r, &part, &used))
			return false;
		if (!used || used > view->size - at)
			return view_fail(r, view, at, "an empty container");
		at += used;
	}
}

bool tally_container_read(const char *path, const void *data, size_t size,
			  struct tally_images *images, struct tally_error *error)
{
	struct tally_error ignored = {0};
	struct reader r = {.path = path, .images = images, .error = error ? error : &ignored};
	struct view all = {.data = data, .size = size};
	bool ok;

	*images = (struct tally_images){0};
	if (!size)
		return tally_fail_at(error, path, 0, 0, "the file is empty");
	ok = read_sequence(&r, &all);
	if (ok && !images->count)
		ok = tally_fail_at(error, path, 0, 0, "there is no device code in it");
	if (!ok)
		tally_images_free(images);
	return ok;
}
