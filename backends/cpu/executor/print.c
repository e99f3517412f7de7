/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's device-side printf: a format and a buffer of packed arguments. Each argument lies at its
 * natural alignment; integers are 4 or 8 bytes (long is 8), floating point is double, pointers 8.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/executor/internal.h"
#include "base/buffer.h"

struct arguments {
	const char *base;
	size_t offset;
	int taken;
};

static uint64_t take(struct arguments *arguments, size_t bytes)
{
	uint64_t value = 0;

	arguments->offset = (arguments->offset + bytes - 1) / bytes * bytes;
	memcpy(&value, arguments->base + arguments->offset, bytes);
	arguments->offset += bytes;
	arguments->taken++;
	return value;
}

/* One conversion: `flags`, width and precision as text for the C library, then the length and the
 * conversion letter. */
struct conversion {
	char text[64];
	size_t length;
	bool wide;	 /* the integer is 8 bytes */
	unsigned narrow; /* h: 16, hh: 8, else 0 */
};

static void add(struct conversion *conversion, char c)
{
	if (conversion->length + 8 < sizeof conversion->text)
		conversion->text[conversion->length++] = c;
}

static void add_number(struct conversion *conversion, int number)
{
	char digits[16];

	snprintf(digits, sizeof digits, "%d", number);
	for (const char *p = digits; *p; p++)
		add(conversion, *p);
}

static const char *parse_length(struct conversion *conversion, const char *p)
{
	for (; *p && strchr("hlLqjzt", *p); p++) {
		if (*p == 'h')
			conversion->narrow = conversion->narrow ? 8 : 16;
		else
			conversion->wide = true;
	}
	return p;
}

static const char *parse(struct conversion *conversion, const char *p, struct arguments *arguments)
{
	memset(conversion, 0, sizeof *conversion);
	add(conversion, '%');
	for (; *p && strchr("-+ #0", *p); p++)
		add(conversion, *p);
	for (;; p++) {
		if (*p == '*')
			add_number(conversion, (int)take(arguments, 4));
		else if ((*p >= '0' && *p <= '9') || *p == '.')
			add(conversion, *p);
		else
			break;
	}
	return parse_length(conversion, p);
}

static int64_t take_integer(const struct conversion *conversion, struct arguments *arguments,
			    bool is_signed)
{
	uint64_t value = take(arguments, conversion->wide ? 8 : 4);

	if (conversion->narrow == 16)
		return is_signed ? (int16_t)value : (uint16_t)value;
	if (conversion->narrow == 8)
		return is_signed ? (int8_t)value : (uint8_t)value;
	if (conversion->wide)
		return (int64_t)value;
	return is_signed ? (int32_t)value : (int64_t)(uint32_t)value;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void convert(struct tally_buffer *out, struct conversion *conversion, char letter,
		    struct arguments *arguments)
{
	char *end = conversion->text + conversion->length;
	uint64_t raw;
	double number;

	switch (letter) {
	case 'd':
	case 'i':
		strcpy(end, PRId64);
		tally_buffer_print(out, conversion->text,
				   take_integer(conversion, arguments, true));
		break;
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		strcpy(end, PRIu64);
		end[strlen(end) - 1] = letter;
		tally_buffer_print(out, conversion->text,
				   take_integer(conversion, arguments, false));
		break;
	case 'c':
		strcpy(end, "c");
		tally_buffer_print(out, conversion->text, (int)take(arguments, 4));
		break;
	case 's':
		strcpy(end, "s");
		raw = take(arguments, 8);
		tally_buffer_print(out, conversion->text,
				   raw ? (const char *)(uintptr_t)raw : "(null)");
		break;
	case 'p':
		strcpy(end, "p");
		tally_buffer_print(out, conversion->text, (void *)(uintptr_t)take(arguments, 8));
		break;
	default: /* a A e E f F g G */
		end[0] = letter;
		end[1] = '\0';
		raw = take(arguments, 8);
		memcpy(&number, &raw, sizeof number);
		tally_buffer_print(out, conversion->text, number);
	}
}

/* Returns what CUDA's vprintf returns: the number of arguments, or a negative value. Writes once,
 * under the stream's lock, into the process's own stdout: it is the program that prints. */
int tally_cpu_print(const char *format, const void *packed)
{
	struct arguments arguments = {.base = packed};
	struct tally_buffer out = {0};
	bool written;

	if (!format)
		return -1;
	for (const char *p = format; *p;) {
		size_t plain = strcspn(p, "%");
		struct conversion conversion;

		tally_buffer_append(&out, p, plain);
		p += plain;
		if (!*p)
			break;
		if (p[1] == '%') {
			tally_buffer_append(&out, "%", 1);
			p += 2;
			continue;
		}
		const char *letter = parse(&conversion, p + 1, &arguments);

		if (!*letter || !strchr("diuxXocspaAeEfFgG", *letter)) {
			/* Not a conversion (or %n, which kernels may not use): shown as it is. */
			tally_buffer_append(&out, p, 1);
			p++;
			continue;
		}
		convert(&out, &conversion, *letter, &arguments);
		p = letter + 1;
	}
	written = !out.failed && (!out.size || fwrite(out.data, out.size, 1, stdout) == 1);
	tally_buffer_free(&out);
	return written ? arguments.taken : -2;
}
