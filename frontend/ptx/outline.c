/* SPDX-License-Identifier: Apache-2.0 */
/* Where the kernels of a PTX file stand, from its tokens alone: see outline.h. */
#include "frontend/ptx/outline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ptx/lexer.h"
#include "ir_passes/classify.h"
#include "ir_passes/ir.h"

static const char launch_word[] = "reqnctapercluster";

/* What the directive at module level is that the scan is in. */
enum place { PLACE_OTHER, PLACE_ENTRY, PLACE_FUNCTION };

struct scan {
	struct ptx_lexer lexer;
	struct ptx_outline *outline;
	struct ptx_entry entry; /* the one that is being read */
	enum place place;
	unsigned depth, parentheses;
	bool started;		       /* entry.start is known */
	bool cluster;		       /* the entry asks for clusters */
	struct ptx_token opcode, type; /* the last name that may be one, the last word behind it */
	struct ptx_token before;       /* the token before the current one */
	bool ok;
};

static size_t offset(const struct scan *s, const struct ptx_token *t)
{
	/* A word's text starts behind its dot. */
	return (size_t)(t->text - s->outline->text) - (t->kind == PTX_DOT);
}

static bool is(const struct ptx_token *t, enum ptx_token_kind kind, const char *word)
{
	return t->kind == kind && strlen(word) == t->length && !memcmp(word, t->text, t->length);
}

static bool is_punct(const struct ptx_token *t, int c)
{
	return t->kind == PTX_PUNCT && t->punct == c;
}

/* Room for one more of `count` elements: arrays grow by doubling. */
static bool grow(void *array, size_t count, size_t size)
{
	void **place = array, *more;

	if (count & (count - 1))
		return true;
	more = realloc(*place, (count ? 2 * count : 1) * size);
	if (more)
		*place = more;
	return more != NULL;
}

static void version(struct scan *s)
{
	unsigned major = 0, minor = 0;

	/* The text need not end with a NUL, but something stands behind a version. */
	for (const char *c = s->lexer.token.text, *end = c + s->lexer.token.length; c < end; c++)
		if (*c == '.')
			major = minor, minor = 0;
		else if (*c >= '0' && *c <= '9' && minor < 100)
			minor = minor * 10 + (unsigned)(*c - '0');
	s->outline->version = major * 10 + minor;
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
	if (s->place == PLACE_FUNCTION)
		s->ok = false;
	else if (!s->entry.reason)
		s->entry.reason = tally_class_texts[sign->class].reason;
}

/* %ctaid or %nctaid; the token behind it is the coordinate. */
static void block_read(struct scan *s, const struct ptx_token *t)
{
	struct ptx_outline *o = s->outline;
	const struct ptx_token *x = &s->lexer.token;
	bool plain = is(&s->opcode, PTX_NAME, "mov") &&
		     (is(&s->type, PTX_DOT, "u32") || is(&s->type, PTX_DOT, "b32") ||
		      is(&s->type, PTX_DOT, "s32"));
	unsigned which = is(t, PTX_NAME, "%nctaid") ? 3 : 0;

	if (s->place == PLACE_FUNCTION || !plain || x->kind != PTX_DOT || !x->adjacent ||
	    x->length != 1 || *x->text < 'x' || *x->text > 'z' ||
	    !grow(&o->read, o->reads, sizeof *o->read)) {
		s->ok = false;
		return;
	}
	which += (unsigned)(*x->text - 'x');
	o->read[o->reads++] = (struct ptx_read){offset(s, t), t->length + 2, which};
}

static void body_token(struct scan *s)
{
	const struct ptx_token t = s->lexer.token;

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
		ptx_next(&s->lexer);
		block_read(s, &t);
	} else if (*t.text != '%') {
		s->opcode = t;
		s->type = (struct ptx_token){0};
	}
}

static void begin_entry(struct scan *s)
{
	size_t start = s->started ? s->entry.start : offset(s, &s->lexer.token);

	ptx_next(&s->lexer);
	s->place = PLACE_ENTRY;
	s->cluster = false;
	s->entry = (struct ptx_entry){.start = start,
				      .name = offset(s, &s->lexer.token),
				      .name_length = s->lexer.token.length,
				      .first_read = s->outline->reads};
	s->ok &= s->lexer.token.kind == PTX_NAME;
}

static void end_entry(struct scan *s)
{
	struct ptx_outline *o = s->outline;

	s->entry.end = offset(s, &s->lexer.token);
	s->entry.reads = o->reads - s->entry.first_read;
	if (s->cluster)
		s->entry.reason = tally_class_texts[TALLY_CLASS_CLUSTER].reason;
	if (grow(&o->entry, o->entries, sizeof *o->entry))
		o->entry[o->entries++] = s->entry;
	else
		s->ok = false;
}

static void head_token(struct scan *s)
{
	static const char *const linkage[] = {"visible", "extern", "weak", "common"};
	const struct ptx_token t = s->lexer.token;

	if (s->place == PLACE_ENTRY) {
		if (is_punct(&t, '('))
			s->parentheses++;
		else if (is_punct(&t, ')') && s->parentheses && !--s->parentheses &&
			 !s->entry.parameters)
			s->entry.parameters = offset(s, &t);
		else if (s->parentheses)
			s->entry.has_parameters = true;
		s->cluster |= is(&t, PTX_DOT, launch_word);
		return;
	}
	if (s->place != PLACE_OTHER)
		return;
	for (size_t k = 0; k < sizeof linkage / sizeof *linkage; k++)
		if (!s->started && is(&t, PTX_DOT, linkage[k])) {
			s->started = true;
			s->entry.start = offset(s, &t);
		}
	if (is(&t, PTX_DOT, "entry")) {
		begin_entry(s);
	} else if (is(&t, PTX_DOT, "func")) {
		s->place = PLACE_FUNCTION;
	} else if (is(&t, PTX_DOT, "version")) {
		ptx_next(&s->lexer);
		version(s);
	} else if (is(&t, PTX_DOT, "target")) {
		ptx_next(&s->lexer);
		snprintf(s->outline->target, sizeof s->outline->target, "%.*s",
			 (int)s->lexer.token.length, s->lexer.token.text);
	}
}

static void end_directive(struct scan *s)
{
	s->place = PLACE_OTHER;
	s->started = false;
	s->parentheses = 0;
}

/* Whether a name is one that a copy or what stands round it has: somebody's text may be ours. */
static bool is_ours(const struct ptx_token *t)
{
	static const char *const starts[] = {"%tally_", "tally$launch"};
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

static void token(struct scan *s)
{
	const struct ptx_token t = s->lexer.token;

	s->outline->ours |= t.kind == PTX_NAME && is_ours(&t);
	if (is_punct(&t, '{')) {
		if (!s->depth++ && s->place == PLACE_ENTRY)
			s->entry.body = offset(s, &t) + 1;
	} else if (is_punct(&t, '}')) {
		s->ok &= s->depth > 0;
		if (!s->ok || --s->depth)
			return;
		if (s->place == PLACE_ENTRY)
			end_entry(s);
		end_directive(s);
	} else if (s->depth) {
		if (s->place != PLACE_OTHER)
			body_token(s);
	} else if (is_punct(&t, ';')) {
		end_directive(s);
	} else {
		head_token(s);
	}
}

bool ptx_outline(struct ptx_outline *outline, const char *text, size_t size)
{
	struct tally_error ignored = {0};
	struct scan s = {.outline = outline, .ok = true};

	*outline = (struct ptx_outline){.text = text, .size = size};
	ptx_lexer_start(&s.lexer, "", text, size, &ignored);
	while (s.ok && s.lexer.token.kind != PTX_END) {
		token(&s);
		s.before = s.lexer.token;
		ptx_next(&s.lexer);
	}
	return s.ok && !s.lexer.failed && !s.depth && outline->version && outline->target[0];
}

void ptx_outline_free(struct ptx_outline *outline)
{
	free(outline->entry);
	free(outline->read);
	*outline = (struct ptx_outline){0};
}
