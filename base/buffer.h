/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer that is also a C string. */
#ifndef TALLY_BASE_BUFFER_H
#define TALLY_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Start as `struct tally_buffer b = {0};`, end with tally_buffer_free(). `data` is always followed
 * by a NUL (or is NULL while empty). When memory runs out the buffer remembers it in `failed`,
 * keeps what it had, and ignores later appends, so that a writer checks once at its end.
 */
struct tally_buffer {
	char *data;
	size_t size, capacity;
	bool failed;
};

/* Frees the bytes. The buffer is then as it began, and may be used again. */
void tally_buffer_free(struct tally_buffer *buffer);
void tally_buffer_append(struct tally_buffer *buffer, const void *bytes, size_t size);
void tally_buffer_print(struct tally_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends `text` as the inside of a JSON string (no quotes round it). */
void tally_buffer_json(struct tally_buffer *buffer, const char *text);

/*
 * Puts a '?' for every byte of what a terminal would obey instead of showing it: control characters
 * of 7 and 8 bits, but for those in `keep`. For whatever others chose (names of programs and
 * kernels) before it is shown.
 */
void tally_text_plain(char *text, const char *keep);

#endif
