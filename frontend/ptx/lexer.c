/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text to tokens: see lexer.h. */
#include "frontend/ptx/lexer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_lexer_start(struct ptx_lexer *lexer, const char *file, const char *text, size_t size,
		     struct tally_error *error)
{
	*lexer = (struct ptx_lexer){
		.file = file,
		.at = text,
		.end = text + size,
		.line_start = text,
		.line = 1,
		.error = error,
	};
	ptx_next(lexer);
}

static void enter_segment(struct ptx_lexer *lexer, const struct tally_ptx_segment *segment)
{
	lexer->at = segment->from;
	lexer->end = segment->to;
	lexer->line_start = segment->line_start;
	lexer->line = segment->line;
	lexer->next = segment + 1;
}

void ptx_lexer_start_part(struct ptx_lexer *lexer, const char *file,
			  const struct tally_ptx_part *part, struct tally_error *error)
{
	*lexer = (struct ptx_lexer){.file = file, .error = error};
	enter_segment(lexer, part->segments);
	lexer->last = part->segments + part->count;
	ptx_next(lexer);
}

bool ptx_syntax(struct ptx_lexer *lexer, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	tally_fail_at(lexer->error, lexer->file, lexer->token.line, lexer->token.column, "%s",
		      message);
	lexer->failed = true;
	lexer->token.kind = PTX_END;
	lexer->at = lexer->end;
	return false;
}

static bool is_name_start(int c)
{
	return isalpha(c) || c == '_' || c == '$' || c == '%';
}

static bool is_name(int c)
{
	return isalnum(c) || c == '_' || c == '$';
}

static int peek(const struct ptx_lexer *lexer, size_t ahead)
{
	return (size_t)(lexer->end - lexer->at) > ahead ? (unsigned char)lexer->at[ahead] : 0;
}

static void newline(struct ptx_lexer *lexer)
{
	lexer->line++;
	lexer->line_start = lexer->at + 1;
}

/* Whether only blanks stand before the lexer in its line. */
static bool opens_line(const struct ptx_lexer *lexer)
{
	for (const char *c = lexer->line_start; c < lexer->at; c++)
		if (*c != ' ' && *c != '\t')
			return false;
	return true;
}

/* At its beginning. */
static void skip_comment(struct ptx_lexer *lexer)
{
	const struct ptx_token start = {.line = lexer->line,
					.column = (unsigned)(lexer->at - lexer->line_start) + 1};

	lexer->at += 2;
	while (lexer->at < lexer->end && !(*lexer->at == '*' && peek(lexer, 1) == '/')) {
		if (*lexer->at == '\n')
			newline(lexer);
		lexer->at++;
	}
	if (lexer->at < lexer->end) {
		lexer->at += 2;
		return;
	}
	lexer->token = start;
	ptx_syntax(lexer, "comment without an end");
}

/* Skips white space, comments and preprocessor lines; true when there was any. */
static bool skip_space(struct ptx_lexer *lexer)
{
	const char *from = lexer->at;

	while (lexer->at < lexer->end) {
		int c = peek(lexer, 0);
		if (c == '\n') {
			newline(lexer);
			lexer->at++;
		} else if (isspace(c)) {
			lexer->at++;
		} else if ((c == '/' && peek(lexer, 1) == '/') || (c == '#' && opens_line(lexer))) {
			while (lexer->at < lexer->end && *lexer->at != '\n')
				lexer->at++;
		} else if (c == '/' && peek(lexer, 1) == '*') {
			skip_comment(lexer);
		} else {
			break;
		}
	}
	return lexer->at != from;
}

/* 0fXXXXXXXX and 0dXXXXXXXXXXXXXXXX: the bits of a float or a double. */
static bool lex_float_bits(struct ptx_lexer *lexer, struct ptx_token *token)
{
	int kind = tolower(peek(lexer, 1));
	size_t digits = kind == 'f' ? 8 : kind == 'd' ? 16 : 0;
	char text[17] = "";

	if (peek(lexer, 0) != '0' || !digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (!isxdigit(peek(lexer, 2 + i)))
			return false;
		text[i] = (char)peek(lexer, 2 + i);
	}
	token->kind = PTX_FLOAT;
	token->value = strtoull(text, NULL, 16);
	token->single = kind == 'f';
	if (token->single) {
		uint32_t bits = (uint32_t)token->value;
		float real;
		memcpy(&real, &bits, sizeof real);
		token->real = real;
	} else {
		memcpy(&token->real, &token->value, sizeof token->real);
	}
	lexer->at += 2 + digits;
	return true;
}

static bool is_decimal_real(const struct ptx_lexer *lexer)
{
	size_t i = 0;

	while (isdigit(peek(lexer, i)))
		i++;
	if (peek(lexer, i) == '.')
		return isdigit(peek(lexer, i + 1)) || !is_name_start(peek(lexer, i + 1));
	int c = tolower(peek(lexer, i));
	return c == 'e' && (isdigit(peek(lexer, i + 1)) || strchr("+-", peek(lexer, i + 1)));
}

/* Digits are copied out: the text need not end with a NUL where a number stands last. */
static bool lex_decimal_real(struct ptx_lexer *lexer, struct ptx_token *token)
{
	char text[128];
	size_t n = 0;

	while (n < sizeof text - 1 && (isalnum(peek(lexer, n)) || peek(lexer, n) == '.' ||
				       (n && tolower(text[n - 1]) == 'e' &&
					strchr("+-", peek(lexer, n)) && peek(lexer, n)))) {
		text[n] = (char)peek(lexer, n);
		n++;
	}
	text[n] = '\0';
	char *end;
	token->real = strtod(text, &end);
	memcpy(&token->value, &token->real, sizeof token->value);
	token->kind = PTX_FLOAT;
	lexer->at += end - text;
	return end != text;
}

static bool lex_integer(struct ptx_lexer *lexer, struct ptx_token *token)
{
	unsigned base = 10;
	bool any = false;

	if (peek(lexer, 0) == '0') {
		int c = tolower(peek(lexer, 1));
		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		lexer->at += base == 8 ? 1 : 2;
		any = base == 8;
	}
	for (;; lexer->at++) {
		int c = tolower(peek(lexer, 0));
		unsigned digit = isdigit(c)   ? (unsigned)c - '0'
				 : isalpha(c) ? (unsigned)c - 'a' + 10
					      : 99;
		if (digit >= base)
			break;
		if (token->value > (UINT64_MAX - digit) / base)
			return ptx_syntax(lexer, "integer constant does not fit into 64 bits");
		token->value = token->value * base + digit;
		any = true;
	}
	token->kind = PTX_INT;
	token->is_unsigned = token->value > INT64_MAX;
	if (peek(lexer, 0) == 'U') {
		token->is_unsigned = true;
		lexer->at++;
	}
	if (!any || is_name(peek(lexer, 0)))
		return ptx_syntax(lexer, "malformed number");
	return true;
}

static bool lex_string(struct ptx_lexer *lexer, struct ptx_token *token)
{
	lexer->at++;
	token->text = lexer->at;
	while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
		lexer->at += *lexer->at == '\\' && lexer->end - lexer->at > 1 ? 2 : 1;
	if (peek(lexer, 0) != '"')
		return ptx_syntax(lexer, "string without a closing quote");
	token->kind = PTX_STRING;
	token->length = (size_t)(lexer->at - token->text);
	lexer->at++;
	return true;
}

/* A dot and a word, with `::word` parts that belong to it (.shared::cluster, .L2::128B). */
static void lex_dot(struct ptx_lexer *lexer, struct ptx_token *token)
{
	lexer->at++;
	token->kind = PTX_DOT;
	token->text = lexer->at;
	while (is_name(peek(lexer, 0)) ||
	       (peek(lexer, 0) == ':' && peek(lexer, 1) == ':' && is_name(peek(lexer, 2))))
		lexer->at += peek(lexer, 0) == ':' ? 2 : 1;
	token->length = (size_t)(lexer->at - token->text);
}

static void lex_punct(struct ptx_lexer *lexer, struct ptx_token *token)
{
	static const char pairs[][3] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
	int first = peek(lexer, 0), second = peek(lexer, 1);

	token->kind = PTX_PUNCT;
	token->punct = first;
	lexer->at++;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (first == pairs[i][0] && second == pairs[i][1]) {
			token->punct = first << 8 | second;
			lexer->at++;
			return;
		}
	if (!first || !strchr("{}[]()<>,;:+-*/%!~&|^?=@", first))
		ptx_syntax(lexer,
			   isprint(first) ? "unexpected character '%c'" : "unexpected byte 0x%02x",
			   first);
}

void ptx_next(struct ptx_lexer *lexer)
{
	struct ptx_token *token = &lexer->token;
	bool space = skip_space(lexer);

	while (lexer->at >= lexer->end && lexer->next != lexer->last && !lexer->failed) {
		enter_segment(lexer, lexer->next);
		skip_space(lexer);
		space = true;
	}
	*token = (struct ptx_token){
		.kind = PTX_END,
		.text = lexer->at,
		.line = lexer->line,
		.column = (unsigned)(lexer->at - lexer->line_start) + 1,
		.adjacent = !space,
	};
	if (lexer->failed || lexer->at >= lexer->end)
		return;
	int c = peek(lexer, 0);
	if (is_name_start(c) && (c != '%' || is_name(peek(lexer, 1)))) {
		token->kind = PTX_NAME;
		do
			lexer->at++;
		while (is_name(peek(lexer, 0)));
	} else if (isdigit(c)) {
		if (!lex_float_bits(lexer, token)) {
			if (is_decimal_real(lexer))
				lex_decimal_real(lexer, token);
			else
				lex_integer(lexer, token);
		}
	} else if (c == '.' && is_name(peek(lexer, 1))) {
		lex_dot(lexer, token);
		return;
	} else if (c == '"') {
		lex_string(lexer, token);
		return;
	} else {
		lex_punct(lexer, token);
	}
	if (!lexer->failed)
		token->length = (size_t)(lexer->at - token->text);
}
