/* SPDX-License-Identifier: Apache-2.0 */
/* The items of PTX text: see walk.h. */
#include "frontend/ptx/walk.h"

#include <string.h>

bool ptx_token_is(const struct ptx_token *token, enum ptx_token_kind kind, const char *word)
{
	return token->kind == kind && token->length == strlen(word) &&
	       !memcmp(token->text, word, token->length);
}

static bool at_end(const struct ptx_walk *w)
{
	return w->lexer.token.kind == PTX_END;
}

static bool is_punct(const struct ptx_walk *w, int c)
{
	return ptx_token_is_punct(&w->lexer.token, c);
}

static bool is_one_of(const struct ptx_walk *w, const char *const *words)
{
	for (; *words; words++)
		if (ptx_token_is(&w->lexer.token, PTX_DOT, *words))
			return true;
	return false;
}

static void skip(struct ptx_walk *w, unsigned tokens)
{
	while (tokens--)
		ptx_next(&w->lexer);
}

/* Past the next `c`. */
static void skip_past(struct ptx_walk *w, int c)
{
	while (!at_end(w) && !is_punct(w, c))
		ptx_next(&w->lexer);
	/* One that is missing is an open bracket. */
	w->depth = at_end(w);
	ptx_next(&w->lexer);
}

/* { ... } */
static void skip_braces(struct ptx_walk *w)
{
	do {
		w->depth += is_punct(w, '{') ? 1u : is_punct(w, '}') ? -1u : 0;
		ptx_next(&w->lexer);
	} while (w->depth && !at_end(w));
}

/* What follows a directive and its first word: `, word` any number of times. */
static bool skip_list(struct ptx_walk *w)
{
	bool any = is_punct(w, ',');

	while (is_punct(w, ','))
		skip(w, 2);
	return any;
}

/* .version 8.0, .target sm_90 {, words}, .address_size 64 */
static void header(struct ptx_walk *w)
{
	static const char *const version[] = {"version", NULL}, *const target[] = {"target", NULL};
	const bool is_version = is_one_of(w, version), is_target = is_one_of(w, target);
	struct ptx_name word;

	ptx_next(&w->lexer);
	word = (struct ptx_name){w->lexer.token.text, w->lexer.token.length};
	if (is_version)
		w->version = word;
	else if (is_target)
		w->target = word;
	ptx_next(&w->lexer);
	if (skip_list(w))
		w->plain_target = false;
	else if (is_target)
		w->plain_target = true;
	w->body = ptx_token_begin(&w->lexer.token);
}

/* .file 1 "name" {, time, size} */
static void file(struct ptx_walk *w)
{
	skip(w, 3);
	skip_list(w);
}

static void pragma(struct ptx_walk *w)
{
	skip_past(w, ';');
}

static void section(struct ptx_walk *w)
{
	skip_past(w, '}');
}

/* What nobody here knows: its end cannot be known either. */
static void other(struct ptx_walk *w)
{
	const bool closes = is_punct(w, '}');

	if (is_punct(w, '{'))
		skip_braces(w);
	else
		ptx_next(&w->lexer);
	if (closes)
		w->depth--; /* of nothing */
}

static const struct directive {
	const char *words[6];
	enum ptx_item_kind kind;
	void (*read)(struct ptx_walk *walk); /* moves behind it; NULL: by ptx_walk_token() */
} directives[] = {
	{{"version", "target", "address_size"}, PTX_ITEM_ALWAYS, header},
	{{"file"}, PTX_ITEM_ALWAYS, file},
	{{"pragma"}, PTX_ITEM_ALWAYS, pragma},
	{{"section"}, PTX_ITEM_NEVER, section},
	{{"entry"}, PTX_ITEM_ENTRY, NULL},
	{{"func"}, PTX_ITEM_FUNCTION, NULL},
	{{"global", "shared", "const", "local", "param"}, PTX_ITEM_VARIABLE, NULL},
	{{NULL}, PTX_ITEM_OTHER, other},
};

void ptx_walk_start(struct ptx_walk *w, const char *text, size_t size)
{
	*w = (struct ptx_walk){.body = text};
	ptx_lexer_start(&w->lexer, "", text, size, &w->ignored);
}

bool ptx_walk_item(struct ptx_walk *w)
{
	static const char *const linkage[] = {"visible", "extern", "weak", "common", NULL};
	const struct directive *d = directives;

	if (at_end(w))
		return false;
	w->first = w->lexer.token;
	w->place = PTX_IN_HEAD;
	w->depth = w->parentheses = 0;
	w->in_pragma = w->over = false;
	while (is_one_of(w, linkage))
		ptx_next(&w->lexer);
	while (d->words[0] && !is_one_of(w, d->words))
		d++;
	w->kind = d->kind;
	if (d->read)
		d->read(w);
	return true;
}

/* Where the new token of a function stands. */
static void place_in_function(struct ptx_walk *w)
{
	const struct ptx_token *t = &w->lexer.token;
	const int c = t->kind == PTX_PUNCT ? t->punct : 0;

	if (w->place == PTX_AT_OPEN)
		w->place = PTX_IN_BODY;
	if (w->place == PTX_IN_PARAMETERS && !w->parentheses)
		w->place = PTX_IN_HEAD;
	if (w->place == PTX_IN_BODY) {
		w->depth += c == '{' ? 1u : c == '}' ? -1u : 0;
		if (!w->depth)
			w->place = PTX_AT_CLOSE;
		w->over = !w->depth;
	} else if (c == '(' || w->parentheses) {
		w->place = PTX_IN_PARAMETERS;
		w->parentheses += c == '(' ? 1u : c == ')' ? -1u : 0;
	} else if (c == '{') {
		w->place = PTX_AT_OPEN;
		w->depth = 1;
	} else if (ptx_token_is(t, PTX_DOT, "pragma")) {
		w->in_pragma = true;
	} else if (c == ';') {
		w->over = !w->in_pragma;
		w->in_pragma = false;
	}
}

static void place_in_variable(struct ptx_walk *w)
{
	const struct ptx_token *t = &w->lexer.token;
	const int c = t->kind == PTX_PUNCT ? t->punct : 0;

	if (c == '{' || c == '(' || c == '[')
		w->depth++;
	else if (c == '}' || c == ')' || c == ']')
		w->depth--;
	w->over = c == ';' && !w->depth;
}

bool ptx_walk_token(struct ptx_walk *w)
{
	const bool over = w->over;

	ptx_next(&w->lexer);
	if (over || at_end(w))
		return false;
	(w->kind == PTX_ITEM_VARIABLE ? place_in_variable : place_in_function)(w);
	return true;
}

bool ptx_walk_broken(const struct ptx_walk *w)
{
	return w->depth || w->parentheses;
}
