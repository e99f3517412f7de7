/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels for people; see kernel_name.h. */
#include "cli/kernel_name.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/*
 * The qualified name in front of a mangled name's template arguments and parameters (Itanium C++
 * ABI, 5.1.2: <nested-name>, <source-name>). False when it begins with anything else.
 */
static bool qualified_name(struct tally_buffer *out, const char *symbol)
{
	const char *at = symbol + 2;
	bool any = false, nested = *at == 'N';

	at += nested;
	while (nested && (*at == 'r' || *at == 'V' || *at == 'K'))
		at++;
	while (isdigit((unsigned char)*at) || *at == 'L') {
		char *end;

		at += *at == 'L'; /* internal linkage */
		size_t length = strtoul(at, &end, 10);
		if (end == at || length != strnlen(end, length))
			break;
		if (any)
			tally_buffer_append(out, "::", 2);
		if (length > 10 && !strncmp(end, "_GLOBAL__N", 10))
			tally_buffer_print(out, "(anonymous namespace)");
		else
			tally_buffer_append(out, end, length);
		any = true;
		at = end + length;
		if (!nested)
			break;
	}
	if (any)
		tally_buffer_print(out, "<...>");
	return any;
}

void tally_kernel_name(struct tally_buffer *out, const char *symbol)
{
	char *name = cplus_demangle_v3(symbol, DMGL_ANSI);

	if (name)
		tally_buffer_print(out, "%s", name);
	else if (strncmp(symbol, "_Z", 2) || !qualified_name(out, symbol))
		tally_buffer_print(out, "%s", symbol);
	free(name);
}

/* The character at `text`: its code (or the byte, where it is no UTF-8) and its length in bytes. */
static uint32_t character(const char *text, unsigned *length)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	const unsigned char *s = (const unsigned char *)text;

	for (unsigned n = 0; n < 4; n++) {
		uint32_t code = s[0] & (unsigned char)~forms[n].mask;
		unsigned i = 1;

		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		for (; i <= n && (s[i] & 0xc0) == 0x80; i++)
			code = code << 6 | (s[i] & 0x3f);
		if (i <= n || code < forms[n].least || code > 0x10ffff ||
		    (code >= 0xd800 && code < 0xe000))
			break;
		*length = n + 1;
		return code;
	}
	*length = 1;
	return '?';
}

static unsigned width(uint32_t code)
{
	int columns = code < 0x80 ? 1 : wcwidth((wchar_t)code);

	return columns < 0 ? 1 : (unsigned)columns;
}

unsigned tally_text_columns(const char *text)
{
	unsigned columns = 0, length;

	for (; *text; text += length)
		columns += width(character(text, &length));
	return columns;
}

/* Appends characters from `text` up to `end`, none of them beyond `columns`; returns the columns.
 */
static unsigned put(struct tally_buffer *out, const char *text, const char *end, unsigned columns,
		    bool utf8)
{
	unsigned used = 0, length;

	for (; text < end; text += length) {
		uint32_t code = character(text, &length);
		bool strange = code < ' ' || code == 0x7f || (code >= 0x80 && !utf8) ||
			       (code >= 0x80 && code < 0xa0) ||
			       (length == 1 && (unsigned char)*text >= 0x80);
		unsigned wide = strange ? 1 : width(code);

		if (used + wide > columns)
			break;
		used += wide;
		if (strange)
			tally_buffer_append(out, "?", 1);
		else
			tally_buffer_append(out, text, length);
	}
	return used;
}

static void fill(struct tally_buffer *out, unsigned columns)
{
	while (columns--)
		tally_buffer_append(out, " ", 1);
}

void tally_text_cut(struct tally_buffer *out, const char *text, unsigned columns, bool utf8)
{
	fill(out, columns - put(out, text, text + strlen(text), columns, utf8));
}

/* Behind the leading namespaces: "a::b::f<c::d>" -> "f<c::d>". */
static const char *unqualified(const char *name)
{
	const char *start = name;
	int depth = 0;

	for (const char *s = name; *s && (*s != '<' || depth); s++) {
		depth += (*s == '(') - (*s == ')');
		if (!depth && s[0] == ':' && s[1] == ':' && s[2])
			start = s + 2;
	}
	return start;
}

void tally_text_fit(struct tally_buffer *out, const char *text, unsigned columns, bool utf8)
{
	const char *dots = utf8 ? "\xe2\x80\xa6" : "...";
	unsigned all = tally_text_columns(text), dotted = utf8 ? 1 : 3, used, length;
	unsigned skipped = 0, front;

	if (all > columns) {
		text = unqualified(text);
		all = tally_text_columns(text);
	}
	if (all <= columns || columns <= dotted + 2) {
		tally_text_cut(out, text, columns, utf8);
		return;
	}
	/* Of a template the name tells more than its arguments, of others the end. */
	const char *arguments = strchr(text, '<');
	front = (columns - dotted) * (arguments ? 3 : 2) / (arguments ? 4 : 5);
	used = put(out, text, arguments ? arguments + 1 : text + strlen(text), front, utf8);
	tally_buffer_append(out, dots, strlen(dots));
	used += dotted;
	/* The end: as much as is left. */
	for (; all - skipped > columns - used; text += length)
		skipped += width(character(text, &length));
	tally_text_cut(out, text, columns - used, utf8);
}
