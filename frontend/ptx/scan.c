/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a PTX file (scan.h): braces are matched and names noted, nothing is understood.
 */
#include "frontend/ptx/scan.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/ptx/lexer.h"

struct scan {
	struct ptx_lexer lexer;
	struct ptx_contents *contents;
	struct ptx_item *item; /* being read; valid until the next one begins */
	bool failed;
};

static bool is_punct(const struct scan *s, int c)
{
	return s->lexer.token.kind == PTX_PUNCT && s->lexer.token.punct == c;
}

static bool is_dot(const struct scan *s, const char *word)
{
	const struct ptx_token *t = &s->lexer.token;

	return t->kind == PTX_DOT && t->length == strlen(word) && !memcmp(t->text, word, t->length);
}

static bool at_end(const struct scan *s)
{
	return s->lexer.token.kind == PTX_END;
}

/* One more place in an array of `count`; false when memory runs out. */
static bool grow(struct scan *s, void *array, size_t count, size_t *room, size_t size)
{
	void *more;

	if (count < *room)
		return true;
	more = realloc(*(void **)array, (*room * 2 + 64) * size);
	if (!more) {
		s->failed = true;
		return false;
	}
	*(void **)array = more;
	*room = *room * 2 + 64;
	return true;
}

static void begin(struct scan *s, enum ptx_item_kind kind)
{
	struct ptx_contents *o = s->contents;
	const struct ptx_token *t = &s->lexer.token;

	if (!grow(s, &o->items, o->count, &o->room, sizeof *o->items))
		return;
	s->item = &o->items[o->count++];
	*s->item = (struct ptx_item){
		.kind = kind,
		.segment = {.from = t->text - (t->kind == PTX_DOT),
			    .line_start = t->text - (t->kind == PTX_DOT) - (t->column - 1),
			    .line = t->line},
		.first_use = o->use_count,
		.next = SIZE_MAX,
	};
}

/* The item ends where the current token begins. */
static void end(struct scan *s)
{
	const struct ptx_token *t = &s->lexer.token;

	s->item->segment.to = t->text - (t->kind == PTX_DOT);
	s->item->end_use = s->contents->use_count;
}

static void use(struct scan *s, bool called)
{
	struct ptx_contents *o = s->contents;
	const struct ptx_token *t = &s->lexer.token;

	if (*t->text == '%' || !grow(s, &o->uses, o->use_count, &o->use_room, sizeof *o->uses))
		return;
	o->uses[o->use_count++] =
		(struct ptx_use){.name = {t->text, t->length}, .item = SIZE_MAX, .called = called};
}

static void to_next(struct scan *s, int c)
{
	while (!at_end(s) && !is_punct(s, c))
		ptx_next(&s->lexer);
	ptx_next(&s->lexer);
}

/* .version 8.0, .target sm_90 {, words}, .address_size 64 */
static bool header(struct scan *s)
{
	struct ptx_contents *o = s->contents;
	bool is_version = is_dot(s, "version"), is_target = is_dot(s, "target");

	if (!is_version && !is_target && !is_dot(s, "address_size"))
		return false;
	begin(s, PTX_ITEM_ALWAYS);
	ptx_next(&s->lexer);
	if (is_version) {
		o->version = s->lexer.token.text;
		o->version_length = s->lexer.token.length;
	} else if (is_target) {
		o->target = s->lexer.token.text;
		o->target_length = s->lexer.token.length;
		o->plain_target = true;
	}
	ptx_next(&s->lexer);
	while (is_punct(s, ',')) {
		o->plain_target = false;
		ptx_next(&s->lexer);
		ptx_next(&s->lexer);
	}
	if (!s->failed)
		end(s);
	o->body = s->lexer.token.text - (s->lexer.token.kind == PTX_DOT);
	return true;
}

/* .file 1 "name" {, time, size}; .pragma "words"; */
static bool always(struct scan *s)
{
	bool is_file = is_dot(s, "file");

	if (!is_file && !is_dot(s, "pragma"))
		return false;
	begin(s, PTX_ITEM_ALWAYS);
	if (is_file) {
		ptx_next(&s->lexer);
		ptx_next(&s->lexer);
		ptx_next(&s->lexer);
		while (is_punct(s, ',')) {
			ptx_next(&s->lexer);
			ptx_next(&s->lexer);
		}
	} else {
		to_next(s, ';');
	}
	if (!s->failed)
		end(s);
	return true;
}

static bool section(struct scan *s)
{
	if (!is_dot(s, "section"))
		return false;
	begin(s, PTX_ITEM_NEVER);
	to_next(s, '}');
	if (!s->failed)
		end(s);
	return true;
}

/* An opcode has a dot right behind it, which no name of the module ever has. */
static void note_name(struct scan *s, bool *is_call)
{
	const struct ptx_token *t = &s->lexer.token;

	if (t->length == 4 && !memcmp(t->text, "call", 4))
		*is_call = true;
	else if (t->text + t->length == s->lexer.end || t->text[t->length] != '.')
		use(s, *is_call);
}

/* The statements of a body, up to and with its closing brace. */
static void body(struct scan *s)
{
	unsigned depth = 0;
	bool is_call = false;

	do {
		const struct ptx_token *t = &s->lexer.token;

		if (t->kind == PTX_NAME)
			note_name(s, &is_call);
		else if (t->kind == PTX_DOT && !t->adjacent && is_dot(s, "global"))
			s->contents->has_local_state = true; /* a declaration: no instruction's */
		else if (t->kind == PTX_PUNCT)
			depth += t->punct == '{' ? 1u : t->punct == '}' ? -1u : 0;
		if (is_punct(s, ';'))
			is_call = false;
		ptx_next(&s->lexer);
	} while (depth && !at_end(s) && !s->failed);
}

/* Past (...) */
static void parentheses(struct scan *s)
{
	unsigned depth = 0;

	do {
		depth += is_punct(s, '(') ? 1u : is_punct(s, ')') ? -1u : 0;
		ptx_next(&s->lexer);
	} while (depth && !at_end(s));
}

/* The head of a function with its performance directives, then its body or a semicolon. */
static void function(struct scan *s, bool is_entry)
{
	s->item->kind = is_entry ? PTX_ITEM_ENTRY : PTX_ITEM_FUNCTION;
	if (is_entry)
		s->contents->entries++;
	else
		s->contents->functions++;
	ptx_next(&s->lexer);
	while (!at_end(s) && !is_punct(s, '{') && !is_punct(s, ';')) {
		if (is_punct(s, '(')) {
			parentheses(s);
		} else if (is_dot(s, "pragma")) {
			to_next(s, ';');
		} else {
			if (s->lexer.token.kind == PTX_NAME && !s->item->name.text)
				s->item->name = (struct ptx_name){s->lexer.token.text,
								  s->lexer.token.length};
			ptx_next(&s->lexer);
		}
	}
	if (is_punct(s, '{'))
		body(s);
	else
		ptx_next(&s->lexer);
}

/* .global .align 4 .b8 a[4] = {...}, b; : each name after the first is an item without text. */
static void variable(struct scan *s)
{
	size_t first = s->contents->count - 1;
	bool in_value = false;
	unsigned depth = 0;

	while (!at_end(s) && !s->failed && (depth || !is_punct(s, ';'))) {
		const struct ptx_token *t = &s->lexer.token;
		int c = t->kind == PTX_PUNCT ? t->punct : 0;

		depth += c == '{' || c == '(' || c == '['   ? 1u
			 : c == '}' || c == ')' || c == ']' ? -1u
							    : 0;
		in_value = c == '=' || (in_value && (depth || c != ','));
		if (t->kind == PTX_NAME && (in_value || depth))
			use(s, false);
		else if (t->kind == PTX_NAME && !s->contents->items[first].name.text)
			s->contents->items[first].name = (struct ptx_name){t->text, t->length};
		else if (t->kind == PTX_NAME)
			s->failed = true; /* several names: no compiler writes that */
		ptx_next(&s->lexer);
	}
	ptx_next(&s->lexer);
}

static void directive(struct scan *s)
{
	static const char *const linkage[] = {"visible", "extern", "weak", "common"};
	static const char *const spaces[] = {"global", "shared", "const", "local", "param"};
	bool is_linkage = true, is_space = false;

	begin(s, PTX_ITEM_VARIABLE);
	while (is_linkage && !s->failed) {
		is_linkage = false;
		for (size_t k = 0; k < sizeof linkage / sizeof *linkage; k++)
			is_linkage |= is_dot(s, linkage[k]);
		if (is_linkage)
			ptx_next(&s->lexer);
	}
	for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
		is_space |= is_dot(s, spaces[k]);
	if (s->failed)
		return;
	if (is_dot(s, "entry") || is_dot(s, "func"))
		function(s, is_dot(s, "entry"));
	else if (is_space)
		variable(s);
	else
		s->failed = true;
	if (!s->failed)
		end(s);
}

static size_t hash(struct ptx_name name)
{
	uint64_t h = 14695981039346656037u;

	for (size_t k = 0; k < name.length; k++)
		h = (h ^ (unsigned char)name.text[k]) * 1099511628211u;
	return (size_t)(h ^ h >> 29);
}

/* The table's place of `name`, or the empty one where it belongs. */
static size_t *place_of(const struct ptx_contents *o, struct ptx_name name)
{
	size_t k = hash(name) & (o->table_size - 1);

	for (;; k = (k + 1) & (o->table_size - 1)) {
		const struct ptx_item *item = o->table[k] ? &o->items[o->table[k] - 1] : NULL;

		if (!item || (item->name.length == name.length &&
			      !memcmp(item->name.text, name.text, name.length)))
			return &o->table[k];
	}
}

static bool resolve(struct ptx_contents *o)
{
	o->table_size = 64;
	while (o->table_size < o->count * 2)
		o->table_size *= 2;
	o->table = calloc(o->table_size, sizeof *o->table);
	if (!o->table)
		return false;
	for (size_t k = 0; k < o->count; k++) {
		size_t *place = o->items[k].name.text ? place_of(o, o->items[k].name) : NULL;

		if (!place)
			continue;
		o->items[k].next = *place ? *place - 1 : SIZE_MAX;
		*place = k + 1;
	}
	for (size_t k = 0; k < o->use_count; k++)
		o->uses[k].item = *place_of(o, o->uses[k].name) - 1;
	return true;
}

bool ptx_scan(struct ptx_contents *contents, const char *text, size_t size)
{
	struct tally_error ignored = {0};
	struct scan s = {.contents = contents};

	*contents = (struct ptx_contents){.body = text};
	ptx_lexer_start(&s.lexer, "", text, size, &ignored);
	while (!at_end(&s) && !s.failed)
		if (!header(&s) && !always(&s) && !section(&s))
			directive(&s);
	return !s.failed && !s.lexer.failed && contents->version && contents->target &&
	       resolve(contents);
}

bool ptx_takes_addresses(const struct ptx_contents *contents)
{
	for (size_t k = 0; k < contents->use_count; k++) {
		const struct ptx_use *u = &contents->uses[k];
		enum ptx_item_kind kind =
			u->item == SIZE_MAX ? PTX_ITEM_NEVER : contents->items[u->item].kind;

		if ((kind == PTX_ITEM_FUNCTION && !u->called) || kind == PTX_ITEM_ENTRY)
			return true;
	}
	return false;
}

void ptx_contents_free(struct ptx_contents *contents)
{
	free(contents->items);
	free(contents->uses);
	free(contents->table);
	*contents = (struct ptx_contents){0};
}
