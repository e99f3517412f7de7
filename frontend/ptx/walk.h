/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module level of PTX text, item by item, and the tokens of the items that hold code or data
 * (PTX ISA chapter 4, "Syntax", and chapter 11, "Directives"): braces are matched and names noted,
 * nothing is understood.
 */
#ifndef TALLY_FRONTEND_PTX_WALK_H
#define TALLY_FRONTEND_PTX_WALK_H

#include "frontend/ptx/lexer.h"

enum ptx_item_kind {
	PTX_ITEM_ALWAYS,   /* the header, .file, .pragma: belongs to every part */
	PTX_ITEM_NEVER,	   /* .section: nobody reads it */
	PTX_ITEM_VARIABLE, /* of the module */
	PTX_ITEM_FUNCTION, /* .func, declared or defined */
	PTX_ITEM_ENTRY,
	PTX_ITEM_OTHER, /* a token that begins none of these, with the braces that it opens */
};

struct ptx_name {
	const char *text; /* NULL: there is none */
	size_t length;
};

/* Where in a function a token stands. */
enum ptx_place {
	PTX_IN_HEAD,	   /* also the semicolon of one that is only declared */
	PTX_IN_PARAMETERS, /* with their parentheses, also those of what is returned */
	PTX_AT_OPEN,	   /* the brace in front of the body */
	PTX_IN_BODY,
	PTX_AT_CLOSE, /* the brace behind it */
};

struct ptx_walk {
	struct ptx_lexer lexer; /* the current token */
	struct ptx_name version, target;
	bool plain_target; /* nothing else behind .target */
	const char *body;  /* what follows the header */

	/* The current item. */
	enum ptx_item_kind kind;
	struct ptx_token first; /* its first token */
	enum ptx_place place;	/* of the current token, in functions */
	unsigned depth; /* brackets that are open: braces in functions, of all kinds in variables */

	/* Inside walk.c. */
	unsigned parentheses;
	bool in_pragma, over;
	struct tally_error ignored;
};

/* In front of the first item. The text has to outlive the walk; it need not end with a NUL. */
void ptx_walk_start(struct ptx_walk *walk, const char *text, size_t size);

/*
 * Moves to the next item: false where there is none, or the text is no tokens (lexer.failed). The
 * current token is its last word of those that say what it is (.entry, .func, .global, ...); of
 * kinds that have no tokens to look at the one behind it.
 */
bool ptx_walk_item(struct ptx_walk *walk);

/* Moves to the next token of a function or a variable: false behind its last, where the current one
 * is the next item's first. */
bool ptx_walk_token(struct ptx_walk *walk);

/* Whether the text ended inside of the item. */
bool ptx_walk_broken(const struct ptx_walk *walk);

/* Where a token begins: a word's text stands behind its dot. */
static inline const char *ptx_token_begin(const struct ptx_token *token)
{
	return token->text - (token->kind == PTX_DOT);
}

/* Whether it is this word, this character. */
bool ptx_token_is(const struct ptx_token *token, enum ptx_token_kind kind, const char *word);
static inline bool ptx_token_is_punct(const struct ptx_token *token, int c)
{
	return token->kind == PTX_PUNCT && token->punct == c;
}

#endif
