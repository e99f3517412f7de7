/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutations of PTX that keep most of it a text that the parser takes: whole statements made from
 * the instruction table come, go and move; operands change places; types, modifiers, registers and
 * numbers become others. The dictionary is the table itself (frontend/ptx/instructions.def).
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/instruction.h"
#include "tests/fuzz/fuzz.h"

#define STATEMENT 512 /* bytes of one that is made here */

static uint64_t state;

static unsigned random_below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (unsigned)(state >> 11) % n : 0;
}

/* ------------------------------------------------------------------ statements out of the table */

struct line {
	char text[STATEMENT];
	size_t size;
};

static void __attribute__((format(printf, 2, 3))) put(struct line *to, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(to->text + to->size, sizeof to->text - to->size, format, arguments);
	va_end(arguments);
	if (n > 0)
		to->size += (size_t)n;
	if (to->size >= sizeof to->text)
		to->size = sizeof to->text - 1;
}

/* One of the words between separators. */
static const char *pick(const char *list, size_t size, char separator, size_t *length)
{
	unsigned words = 1, wanted;

	for (size_t i = 0; i < size; i++)
		words += list[i] == separator;
	for (wanted = random_below(words); wanted; wanted--)
		list = (const char *)memchr(list, separator, size) + 1;
	*length = strcspn(list, separator == ',' ? ", ?" : "| ?");
	return list;
}

/* A modifier that a word of a row asks for: ".rn", ".u32"; the type is kept for the operands. */
static void put_word(struct line *to, const char *word, size_t length, enum ptx_type *type)
{
	bool is_type = *word == ':';
	const char *one = pick(word + is_type, length - is_type, is_type ? ',' : '|', &length);
	const char *named = ptx_words_of(one, length);

	if (named)
		one = pick(named, strlen(named), is_type ? ',' : '|', &length);
	put(to, ".%.*s", (int)length, one);
	if (is_type)
		*type = ptx_type_find(one, length);
}

/* Registers as the corpus declares them: a letter for each size and kind. */
static const char *register_of(enum ptx_type type)
{
	unsigned bits = ptx_type_bits(type);

	return type == PTX_pred	 ? "%p"
	       : type == PTX_f32 ? "%f"
	       : type == PTX_f64 ? "%e"
	       : bits == 128	 ? "%q"
	       : bits == 64	 ? "%d"
	       : bits == 16	 ? "%h"
	       : bits == 8	 ? "%b"
				 : "%r";
}

static const char *const numbers[] = {"0",
				      "1",
				      "-1",
				      "31",
				      "32",
				      "33",
				      "63",
				      "64",
				      "127",
				      "128",
				      "255",
				      "256",
				      "65535",
				      "0x7fffffff",
				      "-2147483648",
				      "4294967295",
				      "4294967296",
				      "0x7fffffffffffffff",
				      "18446744073709551615",
				      "18446744073709551616",
				      "0f7FC00000",
				      "0f00000000",
				      "0d7FF0000000000000",
				      "1e400",
				      "0b1",
				      "017"};
static const char *const memories[] = {"[%d1]", "[%d2+4]", "[%d1+-4]", "[s]",	"[s+8]",
				       "[%r1]", "[p]",	   "[g]",      "[g+4]", "[c]",
				       "[l]",	"[0]",	   "[%d1+%r1]"};
static const char *const names[] = {"L",	"M",	    "f",       "k",	   "s",
				    "g",	"c",	    "ts",      "_",	   "%tid.x",
				    "%ctaid.y", "%clock64", "%laneid", "%envreg3", "p"};

#define ANY(list) (list)[random_below(sizeof(list) / sizeof *(list))]

static void put_register(struct line *to, enum ptx_type type)
{
	static const enum ptx_type any[] = {PTX_b32, PTX_b64,  PTX_f32, PTX_f64,
					    PTX_b16, PTX_pred, PTX_b128};

	if (type == PTX_NO_TYPE || !random_below(24))
		type = ANY(any);
	put(to, "%s%u", register_of(type), random_below(4));
}

static void put_vector(struct line *to, enum ptx_type type)
{
	unsigned n = 1u << random_below(4);

	put(to, "{");
	for (unsigned i = 0; i < n; i++) {
		put(to, "%s", i ? "," : "");
		put_register(to, type);
	}
	put(to, "}");
}

static void put_operand(struct line *to, char letter, enum ptx_type type)
{
	switch (letter) {
	case 'm':
		put(to, "%s", ANY(memories));
		return;
	case 'i':
		put(to, "%s", ANY(numbers));
		return;
	case 'n':
		put(to, "%s", ANY(names));
		return;
	case 'p':
		put(to, "%s%%p%u", random_below(2) ? "!" : "", random_below(3));
		return;
	case 'D':
	case 'v':
		if (random_below(2)) {
			put_vector(to, type);
			return;
		}
		break;
	case 'P':
		put_register(to, random_below(3) ? type : PTX_pred);
		if (random_below(2))
			put(to, "|%%p%u", random_below(3));
		return;
	case 's':
		if (!random_below(4)) {
			put(to, "%s", ANY(numbers));
			return;
		}
		break;
	default:
		break;
	}
	put_register(to, type);
}

static void put_operands(struct line *to, const char *letters, enum ptx_type type)
{
	unsigned n = 0;

	for (; *letters; letters++) {
		unsigned times = *letters == '*'     ? random_below(5)
				 : letters[1] == '?' ? random_below(2)
						     : 1;

		for (; *letters != '?' && times; times--) {
			put(to, "%s", n++ ? ", " : " ");
			put_operand(to, *letters == '*' ? "dsmvpin"[random_below(7)] : *letters,
				    type);
		}
	}
}

/* A statement of a row of the table, most of the time one that it takes. */
static void make_statement(struct line *to)
{
	static unsigned rows;
	enum ptx_type type = PTX_NO_TYPE;

	while (ptx_row_at(rows))
		rows++;
	const struct ptx_row *row = ptx_row_at(random_below(rows));
	to->size = 0;
	if (!random_below(6))
		put(to, "@%s%%p%u ", random_below(2) ? "!" : "", random_below(3));
	put(to, "%s", row->name);
	for (const char *word = row->modifiers; *word;) {
		size_t length = strcspn(word, " ");
		bool optional = length && word[length - 1] == '?';

		if (length && (!optional || random_below(2)) && random_below(40))
			put_word(to, word, length - optional, &type);
		word += length;
		word += strspn(word, " ");
	}
	put_operands(to, row->operands, type);
	put(to, ";\n");
}

/* ---------------------------------------------------------------------------- changes to a text */

struct text {
	char *data;
	size_t size, room;
};

/* Replaces `length` bytes at `at` by `with`. */
static bool splice(struct text *t, size_t at, size_t length, const char *with, size_t size)
{
	if (at > t->size || length > t->size - at || t->size - length + size > t->room)
		return false;
	memmove(t->data + at + size, t->data + at + length, t->size - at - length);
	memcpy(t->data + at, with, size);
	t->size += size - length;
	return true;
}

static bool ends_statement(char c)
{
	return c == ';' || c == '{' || c == '}' || c == ':';
}

/* How many braces are open at a place. */
static unsigned depth(const struct text *t, size_t at)
{
	unsigned open = 0;

	for (size_t i = 0; i < at; i++) {
		open += t->data[i] == '{';
		open -= t->data[i] == '}' && open;
	}
	return open;
}

/* A place between two statements, of a function as a rule. */
static size_t gap(const struct text *t)
{
	size_t at = 0;

	for (unsigned attempt = 0; attempt < 4; attempt++) {
		at = random_below((unsigned)t->size);
		while (at < t->size && !ends_statement(t->data[at]))
			at++;
		at = at < t->size ? at + 1 : t->size;
		if (depth(t, at) == 1)
			break;
	}
	return at;
}

/* The statement or declaration behind a gap: up to its semicolon or brace. */
static size_t statement_length(const struct text *t, size_t at)
{
	size_t end = at;

	while (end < t->size && !ends_statement(t->data[end]))
		end++;
	return (end < t->size ? end + 1 : end) - at;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* A word (register, name, number, one modifier) near a random place; 0: none. */
static size_t word_at(const struct text *t, size_t *at)
{
	size_t begin = random_below((unsigned)t->size), end;

	while (begin < t->size && !is_word(t->data[begin]))
		begin++;
	while (begin && is_word(t->data[begin - 1]))
		begin--;
	for (end = begin; end < t->size && is_word(t->data[end]);)
		end++;
	*at = begin;
	return end - begin;
}

static bool insert(struct text *t)
{
	struct line line;
	size_t at = gap(t);

	make_statement(&line);
	return splice(t, at, 0, line.text, line.size);
}

static bool replace(struct text *t)
{
	struct line line;
	size_t at = gap(t);

	make_statement(&line);
	return splice(t, at, statement_length(t, at), line.text, line.size);
}

static bool erase(struct text *t)
{
	size_t at = gap(t);

	return splice(t, at, statement_length(t, at), "", 0);
}

static bool repeat(struct text *t)
{
	char copy[STATEMENT];
	size_t from = gap(t), length = statement_length(t, from);

	if (length > sizeof copy)
		return false;
	memcpy(copy, t->data + from, length);
	return splice(t, random_below(2) ? gap(t) : from, 0, copy, length);
}

/* A word becomes another word of the text. */
static bool swap_words(struct text *t)
{
	char copy[STATEMENT];
	size_t from, to, length = word_at(t, &from), other;

	if (!length || length > sizeof copy)
		return false;
	memcpy(copy, t->data + from, length);
	other = word_at(t, &to);
	return splice(t, to, other, copy, length);
}

/* A word becomes one of the dictionary, of the kind that it seems to be. */
static bool other_word(struct text *t)
{
	struct line line = {.size = 0};
	size_t at, length = word_at(t, &at);
	bool dot = at && t->data[at - 1] == '.';

	if (!length)
		return false;
	if (isdigit((unsigned char)t->data[at])) {
		put(&line, "%s", ANY(numbers));
	} else if (t->data[at] == '%') {
		put_register(&line, PTX_NO_TYPE);
	} else if (dot && random_below(2)) {
		put(&line, "%s", ptx_type_name((enum ptx_type)(1 + random_below(PTX_b1))));
	} else if (dot) {
		enum ptx_type type;
		unsigned row = 0;

		for (unsigned n = random_below(1000); n; n--)
			row = ptx_row_at(row + 1) ? row + 1 : 0;
		const char *words = ptx_row_at(row)->modifiers;
		if (!*words)
			return false;
		put_word(&line, words, strcspn(words, " ?"), &type);
		return splice(t, at, length, line.text + 1, line.size - 1);
	} else {
		put(&line, "%s", ANY(names));
	}
	return splice(t, at, length, line.text, line.size);
}

/* Two operands of a statement change places, or one of them goes. */
static bool move_operand(struct text *t)
{
	char copy[STATEMENT];
	size_t at = gap(t), end = at + statement_length(t, at), comma = at;
	size_t stop;

	while (comma < end && t->data[comma] != ',')
		comma++;
	for (stop = comma + 1; stop < end && t->data[stop] != ',' && t->data[stop] != ';';)
		stop++;
	if (comma >= end || stop - comma > sizeof copy)
		return false;
	memcpy(copy, t->data + comma, stop - comma);
	if (random_below(2))
		return splice(t, comma, stop - comma, "", 0);
	return splice(t, stop, 0, copy, stop - comma);
}

static bool drop_modifier(struct text *t)
{
	size_t at, length = word_at(t, &at);

	return length && at && t->data[at - 1] == '.' && splice(t, at - 1, length + 1, "", 0);
}

size_t fuzz_mutate_ptx(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	static bool (*const changes[])(struct text *) = {
		insert,	    insert,	insert,	    replace,	  erase,	repeat,
		swap_words, other_word, other_word, move_operand, drop_modifier};
	struct text t = {(char *)data, size, room};
	bool changed = false;

	state = seed * 0x9e3779b97f4a7c15u + 1;
	for (unsigned n = 1 + random_below(4); n && t.size; n--)
		changed |= ANY(changes)(&t);
	return changed ? t.size : 0;
}

size_t fuzz_cross_ptx(const uint8_t *data, size_t size, const uint8_t *other, size_t other_size,
		      uint8_t *out, size_t room, unsigned seed)
{
	struct text t = {(char *)out, size, room};
	struct text from = {(char *)(uintptr_t)other, other_size, other_size};

	if (size > room)
		return 0;
	memcpy(out, data, size);
	state = seed * 0x9e3779b97f4a7c15u + 1;
	for (unsigned n = 1 + random_below(3); n && size && other_size; n--) {
		size_t at = gap(&from), length = statement_length(&from, at);

		if (random_below(4) == 0)
			length = from.size - at < STATEMENT * 4 ? from.size - at : STATEMENT * 4;
		splice(&t, gap(&t), 0, from.data + at, length);
	}
	return t.size;
}
