/* SPDX-License-Identifier: Apache-2.0 */
/* Where the kernels of a PTX file stand, from its tokens alone: see outline.h. */
#include "frontend/ptx/outline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "frontend/ptx/walk.h"
#include "ir_passes/classify.h"
#include "ir_passes/ir.h"

static const char launch_word[] = "reqnctapercluster";

/* The declaration of a kernel's parameter that the scan is in. */
struct parameter {
	unsigned long long bytes; /* of its type, then of all elements */
	unsigned long long align; /* 0: that of its type */
	bool pointer;		  /* behind .ptr, whose alignment is that of what it points to */
};

struct scan {
	struct ptx_walk walk;
	struct parameter parameter;
	struct ptx_outline *outline;
	struct ptx_entry entry;	       /* the one that is being read */
	struct ptx_token opcode, type; /* the last name that may be one, the last word behind it */
	struct ptx_token before;       /* the token before the current one */
	bool ok;
};

static size_t offset(const struct scan *s, const struct ptx_token *t)
{
	return (size_t)(ptx_token_begin(t) - s->outline->text);
}

static bool is(const struct ptx_token *t, enum ptx_token_kind kind, const char *word)
{
	return ptx_token_is(t, kind, word);
}

/* "8.3" as 83. */
static unsigned number(struct ptx_name version)
{
	unsigned major = 0, minor = 0;

	for (const char *c = version.text, *end = c + version.length; c < end; c++)
		if (*c == '.')
			major = minor, minor = 0;
		else if (*c >= '0' && *c <= '9' && minor < 100)
			minor = minor * 10 + (unsigned)(*c - '0');
	return major * 10 + minor;
}

/* The current token is one of a body: what it says of the kernel. */
static void look_for_sign(struct scan *s, const struct ptx_token *t)
{
	const struct tally_asm_sign *sign = tally_asm_sign(t->text, t->length);

	if (!sign || !sign->whole)
		return;
	/* A name that somebody chose may hold any word. */
	if (t->kind == PTX_NAME && *t->text != '%' &&
	    strncmp(t->text, sign->text, strlen(sign->text)))
		return;
	if (s->walk.kind == PTX_ITEM_FUNCTION)
		s->ok = false;
	else if (!s->entry.reason)
		s->entry.reason = tally_class_texts[sign->class].reason;
}

/* %ctaid or %nctaid; the token behind it is the coordinate. */
static void block_read(struct scan *s, const struct ptx_token *t)
{
	struct ptx_outline *o = s->outline;
	const struct ptx_token *x = &s->walk.lexer.token;
	bool plain = is(&s->opcode, PTX_NAME, "mov") &&
		     (is(&s->type, PTX_DOT, "u32") || is(&s->type, PTX_DOT, "b32") ||
		      is(&s->type, PTX_DOT, "s32"));
	unsigned which = is(t, PTX_NAME, "%nctaid") ? 3 : 0;

	if (s->walk.kind == PTX_ITEM_FUNCTION || !plain || x->kind != PTX_DOT || !x->adjacent ||
	    x->length != 1 || *x->text < 'x' || *x->text > 'z' || !TALLY_GROW(o->read, o->reads)) {
		s->ok = false;
		return;
	}
	which += (unsigned)(*x->text - 'x');
	o->read[o->reads++] = (struct ptx_read){offset(s, t), t->length + 2, which};
}

static void body_token(struct scan *s)
{
	const struct ptx_token t = s->walk.lexer.token;

	if (t.kind != PTX_NAME && t.kind != PTX_DOT)
		return;
	look_for_sign(s, &t);
	if (t.kind == PTX_DOT) {
		bool part = t.adjacent && s->before.kind != PTX_PUNCT;

		if (part)
			s->type = t;
		else if (is(&t, PTX_DOT, "global") || is(&t, PTX_DOT, "const"))
			s->ok = false;
	} else if (is(&t, PTX_NAME, "%ctaid") || is(&t, PTX_NAME, "%nctaid")) {
		s->before = t;
		s->ok &= ptx_walk_token(&s->walk);
		block_read(s, &t);
	} else if (*t.text != '%') {
		s->opcode = t;
		s->type = (struct ptx_token){0};
	}
}

static unsigned long long whole_number(const struct ptx_token *t)
{
	char text[24], *end;
	unsigned long long value;

	snprintf(text, sizeof text, "%.*s", (int)t->length, t->text);
	value = strtoull(text, &end, 0);
	return *end && *end != 'U' ? 0 : value;
}

/* Types end in their number of bits, but for packed ones and for textures and the like, which are
 * handles of 64. */
static unsigned type_bytes(const struct ptx_token *t)
{
	unsigned bits = 0;

	for (size_t k = 0; k < t->length; k++)
		bits = t->text[k] >= '0' && t->text[k] <= '9'
			       ? bits * 10 + (unsigned)(t->text[k] - '0')
			       : 0;
	if (t->length > 2 && !memcmp(t->text + t->length - 2, "x2", 2))
		return 4;
	return bits >= 8 && bits <= 128 ? bits / 8 : 8;
}

static void end_parameter(struct scan *s)
{
	const struct parameter *p = &s->parameter;
	unsigned long long at = s->entry.parameter_bytes;

	if (p->bytes && p->align)
		s->entry.parameter_bytes = (at + p->align - 1) / p->align * p->align + p->bytes;
	s->parameter = (struct parameter){0};
}

/* A token of a kernel's list of parameters: PTX ISA 5.1.6.1, kernel function parameters. */
static void parameter_token(struct scan *s)
{
	struct parameter *p = &s->parameter;
	const struct ptx_token *t = &s->walk.lexer.token;

	if (is(&s->before, PTX_DOT, "align")) {
		if (!p->pointer)
			p->align = whole_number(t);
	} else if (ptx_token_is_punct(&s->before, '[')) {
		p->bytes *= whole_number(t);
	} else if (ptx_token_is_punct(t, ',')) {
		end_parameter(s);
	} else if (is(t, PTX_DOT, "ptr")) {
		p->pointer = true;
	} else if (t->kind == PTX_DOT && !p->bytes && !is(t, PTX_DOT, "param") &&
		   !is(t, PTX_DOT, "align")) {
		p->bytes = type_bytes(t);
		p->align = p->align ? p->align : p->bytes;
	}
}

static void head_token(struct scan *s)
{
	const struct ptx_token *t = &s->walk.lexer.token;
	struct ptx_entry *e = &s->entry;

	if (s->walk.place == PTX_IN_PARAMETERS && !s->walk.parentheses) {
		end_parameter(s);
		if (!e->parameters)
			e->parameters = offset(s, t);
	} else if (s->walk.place == PTX_IN_PARAMETERS) {
		e->has_parameters |= !ptx_token_is_punct(t, '(');
		parameter_token(s);
	} else if (t->kind == PTX_NAME && !e->name_length) {
		e->name = offset(s, t);
		e->name_length = t->length;
	} else if (is(t, PTX_DOT, launch_word)) {
		e->reason = tally_class_texts[TALLY_CLASS_CLUSTER].reason;
	}
}

static void begin_entry(struct scan *s)
{
	s->entry = (struct ptx_entry){.start = offset(s, &s->walk.first),
				      .first_read = s->outline->reads};
}

static void end_entry(struct scan *s)
{
	struct ptx_outline *o = s->outline;

	s->entry.end = offset(s, &s->walk.lexer.token);
	s->entry.reads = o->reads - s->entry.first_read;
	s->ok &= s->entry.name_length && TALLY_GROW(o->entry, o->entries);
	if (s->ok)
		o->entry[o->entries++] = s->entry;
}

/* Whether a name is one that a copy or what stands round it has: somebody's text may be ours. */
static bool is_ours(const struct ptx_token *t)
{
	static const char *const starts[] = {"%tally_", "tally$launch", "$tally"};
	static const char *const ends[] = {"$slice", "$guard", "$slice_guard"};
	bool ours = false;

	for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
		ours |= t->length >= strlen(starts[k]) &&
			!memcmp(t->text, starts[k], strlen(starts[k]));
	for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
		ours |= t->length >= strlen(ends[k]) &&
			!memcmp(t->text + t->length - strlen(ends[k]), ends[k], strlen(ends[k]));
	return ours;
}

static void function_token(struct scan *s)
{
	const bool is_entry = s->walk.kind == PTX_ITEM_ENTRY;

	if (s->walk.place == PTX_IN_BODY)
		body_token(s);
	else if (s->walk.place == PTX_AT_OPEN)
		s->entry.body = offset(s, &s->walk.lexer.token) + 1;
	else if (s->walk.place == PTX_AT_CLOSE && is_entry)
		end_entry(s);
	else if (is_entry)
		head_token(s);
}

static void item(struct scan *s)
{
	const struct ptx_token *t = &s->walk.lexer.token;
	const bool is_function =
		s->walk.kind == PTX_ITEM_ENTRY || s->walk.kind == PTX_ITEM_FUNCTION;

	if (s->walk.kind == PTX_ITEM_OTHER)
		s->outline->ours |= s->walk.first.kind == PTX_NAME && is_ours(&s->walk.first);
	if (is_function)
		begin_entry(s);
	if (is_function || s->walk.kind == PTX_ITEM_VARIABLE)
		while (s->ok && ptx_walk_token(&s->walk)) {
			s->outline->ours |= t->kind == PTX_NAME && is_ours(t);
			if (is_function)
				function_token(s);
			s->before = *t;
		}
	s->ok &= !ptx_walk_broken(&s->walk);
}

bool ptx_outline(struct ptx_outline *outline, const char *text, size_t size)
{
	struct scan s = {.outline = outline, .ok = true};
	const struct ptx_name *target = &s.walk.target;

	*outline = (struct ptx_outline){.text = text, .size = size};
	ptx_walk_start(&s.walk, text, size);
	while (s.ok && ptx_walk_item(&s.walk))
		item(&s);
	if (s.walk.version.text)
		outline->version = number(s.walk.version);
	if (target->text)
		snprintf(outline->target, sizeof outline->target, "%.*s", (int)target->length,
			 target->text);
	return s.ok && !s.walk.lexer.failed && outline->version && outline->target[0];
}

void ptx_outline_free(struct ptx_outline *outline)
{
	free(outline->entry);
	free(outline->read);
	*outline = (struct ptx_outline){0};
}
