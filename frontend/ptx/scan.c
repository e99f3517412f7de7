/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a PTX file: see scan.h. */
#include "frontend/ptx/scan.h"
#include "frontend/ptx/ptx.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct scan {
	struct ptx_walk walk;
	struct ptx_contents *contents;
	struct ptx_item *item; /* being read; valid until the next one begins */
	/* An item's name begins with a percent sign. Where none does such names are registers,
	 * which are most of a file. */
	bool percent;
	bool failed;
};

static void begin(struct scan *s)
{
	struct ptx_contents *o = s->contents;
	const struct ptx_token *t = &s->walk.first;
	const char *from = ptx_token_begin(t);

	if (!TALLY_GROW(o->items, o->count)) {
		s->failed = true;
		return;
	}
	s->item = &o->items[o->count++];
	*s->item = (struct ptx_item){
		.kind = s->walk.kind,
		.segment = {.from = from, .line_start = from - (t->column - 1), .line = t->line},
		.first_use = o->use_count,
		.next = SIZE_MAX,
	};
}

/* The item ends where the current token begins. */
static void end(struct scan *s)
{
	s->item->segment.to = ptx_token_begin(&s->walk.lexer.token);
	s->item->end_use = s->contents->use_count;
}

static void use(struct scan *s, bool called)
{
	struct ptx_contents *o = s->contents;
	const struct ptx_token *t = &s->walk.lexer.token;

	if (*t->text == '%' && !s->percent)
		return;
	if (!TALLY_GROW(o->uses, o->use_count)) {
		s->failed = true;
		return;
	}
	o->uses[o->use_count++] =
		(struct ptx_use){.name = {t->text, t->length}, .item = SIZE_MAX, .called = called};
}

/* The current token is the item's name. What it names stands before all that use it. */
static void name_item(struct scan *s)
{
	const struct ptx_token *t = &s->walk.lexer.token;

	s->item->name = (struct ptx_name){t->text, t->length};
	s->percent |= *t->text == '%';
}

/* An opcode has a dot right behind it, which no name of the module ever has. */
static void note_name(struct scan *s, bool *is_call)
{
	const struct ptx_token *t = &s->walk.lexer.token;

	if (t->length == 4 && !memcmp(t->text, "call", 4))
		*is_call = true;
	else if (t->text + t->length == s->walk.lexer.end || t->text[t->length] != '.')
		use(s, *is_call);
}

static void function(struct scan *s)
{
	const struct ptx_token *t = &s->walk.lexer.token;
	bool is_call = false;

	while (!s->failed && ptx_walk_token(&s->walk)) {
		if (s->walk.place == PTX_IN_HEAD && t->kind == PTX_NAME && !s->item->name.text)
			name_item(s);
		if (s->walk.place != PTX_IN_BODY)
			continue;
		if (t->kind == PTX_NAME)
			note_name(s, &is_call);
		else if (!t->adjacent && ptx_token_is(t, PTX_DOT, "global"))
			s->contents->has_local_state = true; /* a declaration: no instruction's */
		else if (ptx_token_is_punct(t, ';'))
			is_call = false;
	}
}

/* .global .align 4 .b8 a[4] = {...}; */
static void variable(struct scan *s)
{
	const struct ptx_token *t = &s->walk.lexer.token;
	bool in_value = false;

	while (!s->failed && ptx_walk_token(&s->walk)) {
		in_value |= ptx_token_is_punct(t, '=');
		/* Several variables, x<3>: no compiler writes that. */
		if (!s->walk.depth &&
		    (ptx_token_is_punct(t, ',') || (!in_value && ptx_token_is_punct(t, '<'))))
			s->failed = true;
		/* Textures: their fields are no names of the module's. */
		if (t->kind == PTX_DOT && ptx_type_is_opaque(ptx_type_find(t->text, t->length)))
			s->failed = true;
		if (t->kind != PTX_NAME)
			continue;
		if (in_value || s->walk.depth)
			use(s, false);
		else if (!s->item->name.text)
			name_item(s);
		else
			s->failed = true;
	}
}

static void item(struct scan *s)
{
	begin(s);
	if (s->failed)
		return;
	s->contents->entries += s->walk.kind == PTX_ITEM_ENTRY;
	s->contents->functions += s->walk.kind == PTX_ITEM_FUNCTION;
	if (s->walk.kind == PTX_ITEM_ENTRY || s->walk.kind == PTX_ITEM_FUNCTION)
		function(s);
	else if (s->walk.kind == PTX_ITEM_VARIABLE)
		variable(s);
	else
		s->failed = s->walk.kind == PTX_ITEM_OTHER;
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
	struct scan s = {.contents = contents};

	*contents = (struct ptx_contents){0};
	ptx_walk_start(&s.walk, text, size);
	while (!s.failed && ptx_walk_item(&s.walk))
		item(&s);
	contents->version = s.walk.version;
	contents->target = s.walk.target;
	contents->plain_target = s.walk.plain_target;
	contents->body = s.walk.body;
	return !s.failed && !s.walk.lexer.failed && contents->version.text &&
	       contents->target.text && resolve(contents);
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
