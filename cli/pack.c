/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, compressed as their name says; see pack.h. */
#include "cli/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"

#define GZIP_WINDOW (15 + 16) /* zlib's largest window, in a gzip file */
#define GZIP_LEVEL  6
#define ZSTD_LEVEL  3
#define PIECE	    (1u << 20)

static bool gzip(const struct tally_buffer *text, struct tally_buffer *out)
{
	z_stream z = {0};
	unsigned char *piece = malloc(PIECE);
	size_t taken = 0;
	int status = Z_MEM_ERROR;

	if (piece &&
	    deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK) {
		do {
			/* zlib counts in 32 bits. */
			if (!z.avail_in) {
				size_t left = text->size - taken;
				z.avail_in = left < PIECE ? (uInt)left : PIECE;
				z.next_in = (unsigned char *)text->data + taken;
				taken += z.avail_in;
			}
			z.next_out = piece;
			z.avail_out = PIECE;
			status = deflate(&z, taken == text->size ? Z_FINISH : Z_NO_FLUSH);
			tally_buffer_append(out, piece, PIECE - z.avail_out);
		} while (status == Z_OK || status == Z_BUF_ERROR);
		deflateEnd(&z);
	}
	free(piece);
	return status == Z_STREAM_END && !out->failed;
}

static bool zstd(const struct tally_buffer *text, struct tally_buffer *out)
{
	size_t bound = ZSTD_compressBound(text->size), size;
	void *room = malloc(bound);

	if (!room)
		return false;
	size = ZSTD_compress(room, bound, text->data, text->size, ZSTD_LEVEL);
	if (!ZSTD_isError(size))
		tally_buffer_append(out, room, size);
	free(room);
	return !ZSTD_isError(size) && !out->failed;
}

static bool ends_in(const char *path, const char *end)
{
	size_t length = strlen(path), n = strlen(end);

	return length > n && !strcmp(path + length - n, end);
}

bool tally_pack_write(const char *path, const struct tally_buffer *text, struct tally_error *error)
{
	static const struct {
		const char *end;
		bool (*pack)(const struct tally_buffer *text, struct tally_buffer *out);
	} forms[] = {{".gz", gzip}, {".zst", zstd}};
	struct tally_buffer out = {0};
	bool ok;

	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!ends_in(path, forms[i].end))
			continue;
		ok = forms[i].pack(text, &out)
			     ? tally_file_write(path, out.data, out.size, error)
			     : tally_fail(error, "cannot compress %s: out of memory", path);
		tally_buffer_free(&out);
		return ok;
	}
	return tally_file_write(path, text->data, text->size, error);
}
