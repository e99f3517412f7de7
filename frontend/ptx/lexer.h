/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text to tokens (PTX ISA chapter 4, "Syntax"). */
#ifndef TALLY_FRONTEND_PTX_LEXER_H
#define TALLY_FRONTEND_PTX_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "frontend/frontend.h"

enum ptx_token_kind {
	PTX_END,   /* also after an error: every loop over tokens ends by itself */
	PTX_NAME,  /* add  %r12  $L__BB0_1 */
	PTX_DOT,   /* .global  .L2::128B : the text is what follows the dot */
	PTX_INT,   /* 12  0x1f  017  0b11  12U */
	PTX_FLOAT, /* 0f3F800000  0d3FF0000000000000  1.5 */
	PTX_STRING,
	PTX_PUNCT, /* one of the characters, or << >> <= >= == != && || as `punct` pairs */
};

struct ptx_token {
	enum ptx_token_kind kind;
	const char *text;
	size_t length;
	unsigned line, column;
	bool adjacent;	  /* nothing stands between it and the token before */
	int punct;	  /* PTX_PUNCT: the character, or first << 8 | second */
	uint64_t value;	  /* PTX_INT */
	bool is_unsigned; /* PTX_INT: U suffix or beyond INT64_MAX */
	double real;	  /* PTX_FLOAT */
	bool single;	  /* PTX_FLOAT: 0f form; `value` has the bits */
};

struct ptx_lexer {
	const char *file, *at, *end, *line_start;
	unsigned line;
	struct tally_error *error;
	const struct tally_ptx_segment *next, *last; /* what follows `end`, of a part */
	bool failed;
	struct ptx_token token; /* the current one */
};

void ptx_lexer_start(struct ptx_lexer *lexer, const char *file, const char *text, size_t size,
		     struct tally_error *error);

/* The same for a part of a text. */
void ptx_lexer_start_part(struct ptx_lexer *lexer, const char *file,
			  const struct tally_ptx_part *part, struct tally_error *error);

/* Moves to the next token. */
void ptx_next(struct ptx_lexer *lexer);

/* Reports an error at the current token and ends the token stream. Always false. */
bool ptx_syntax(struct ptx_lexer *lexer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
