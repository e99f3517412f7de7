/* SPDX-License-Identifier: Apache-2.0 */
/* Exact decompression: all of the input, into all of the declared size, or an error. */
#include <limits.h>
#include <lz4.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "frontend/container/reader.h"

const char *const compression_names[] = {"", "lz4", "zstd", "zlib"};

/*
 * What one compressed byte can become at most, so that a damaged size does not ask for memory that
 * the data could never fill. LZ4: a length byte counts 255. Deflate: 1032. Zstandard: a 3-byte
 * block header and one byte give a run of 128 KiB.
 */
static const unsigned ratio_max[] = {1, 256, 1 << 17, 1032};

static bool run(const struct view *view, enum compression how, uint8_t *out, size_t size)
{
	uLongf zlib_size = size;
	size_t got;

	switch (how) {
	case COMPRESSION_LZ4:
		return LZ4_decompress_safe((const char *)view->data, (char *)out, (int)view->size,
					   (int)size) == (int)size;
	case COMPRESSION_ZSTD:
		got = ZSTD_decompress(out, size, view->data, view->size);
		return !ZSTD_isError(got) && got == size;
	case COMPRESSION_ZLIB:
		return uncompress(out, &zlib_size, view->data, view->size) == Z_OK &&
		       zlib_size == size;
	case COMPRESSION_NONE:
		break;
	}
	return false;
}

uint8_t *decompress(struct reader *r, const struct view *view, enum compression how, uint64_t size)
{
	uint8_t *out;

	if (size > READER_BYTES_MAX - r->bytes || view->size > INT_MAX) {
		view_fail(r, view, 0, "%llu bytes when decompressed: more than 1 GiB in one file",
			  (unsigned long long)size);
		return NULL;
	}
	if (!size || size / ratio_max[how] > view->size) {
		view_fail(r, view, 0, "damaged: %zu bytes of %s cannot become %llu", view->size,
			  compression_names[how], (unsigned long long)size);
		return NULL;
	}
	r->bytes += size;
	out = malloc(size + 1);
	if (!out) {
		view_fail(r, view, 0, "out of memory");
		return NULL;
	}
	if (!run(view, how, out, size)) {
		view_fail(r, view, 0, "damaged: its %zu bytes of %s do not decompress to %llu",
			  view->size, compression_names[how], (unsigned long long)size);
		free(out);
		return NULL;
	}
	out[size] = 0;
	return out;
}
