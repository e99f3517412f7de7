/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer: see buffer.h. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct tally_buffer *buffer, size_t more)
{
	size_t need, capacity = buffer->capacity ? buffer->capacity : 256;

	if (buffer->failed || __builtin_add_overflow(buffer->size, more, &need) ||
	    __builtin_add_overflow(need, 1, &need))
		return !(buffer->failed = true);
	while (capacity < need)
		if (__builtin_mul_overflow(capacity, 2, &capacity))
			return !(buffer->failed = true);
	if (capacity != buffer->capacity) {
		char *data = realloc(buffer->data, capacity);
		if (!data)
			return !(buffer->failed = true);
		buffer->data = data;
		buffer->capacity = capacity;
	}
	return true;
}

void tally_buffer_free(struct tally_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct tally_buffer){0};
}

void tally_buffer_append(struct tally_buffer *buffer, const void *bytes, size_t size)
{
	if (!reserve(buffer, size))
		return;
	if (size)
		memcpy(buffer->data + buffer->size, bytes, size);
	buffer->size += size;
	buffer->data[buffer->size] = '\0';
}

void tally_buffer_print(struct tally_buffer *buffer, const char *format, ...)
{
	va_list arguments, again;

	va_start(arguments, format);
	va_copy(again, arguments);
	int size = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (size >= 0 && reserve(buffer, (size_t)size)) {
		vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, again);
		buffer->size += (size_t)size;
	}
	va_end(again);
}

/* Bytes of the UTF-8 sequence at `c`, 0 when it is none (overlong forms and surrogates included).
 */
static unsigned utf8_length(const unsigned char *c)
{
	unsigned length = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

	if (c[0] > 0xf4)
		return 0;
	for (unsigned i = 1; i < length; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	return length;
}

/* A control character of 8 bits (ECMA-48's C1): as UTF-8, or as a byte alone. */
static bool is_c1(const unsigned char *c, unsigned length)
{
	return length ? length == 2 && c[0] == 0xc2 && c[1] < 0xa0 : c[0] >= 0x80 && c[0] < 0xa0;
}

void tally_text_plain(char *text, const char *keep)
{
	unsigned char *c = (unsigned char *)text;

	while (*c) {
		unsigned length = utf8_length(c), all = length ? length : 1;
		bool strange = is_c1(c, length) || *c == 0x7f || (*c < 0x20 && !strchr(keep, *c));

		for (unsigned i = 0; strange && i < all; i++)
			c[i] = '?';
		c += all;
	}
}

void tally_buffer_json(struct tally_buffer *buffer, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		unsigned length = utf8_length(c);
		if (*c == '"' || *c == '\\')
			tally_buffer_print(buffer, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			tally_buffer_print(buffer, "\\u%04x", *c);
		else if (length &&
			 is_c1(c, length)) /* valid JSON, but it is also read on terminals */
			tally_buffer_print(buffer, "\\u%04x", c[1]);
		else if (!length) /* JSON is UTF-8; names and paths need not be */
			tally_buffer_print(buffer, "\\ufffd");
		else
			tally_buffer_append(buffer, c, length);
		c += length ? length : 1;
	}
}
