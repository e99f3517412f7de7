/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the PTX parser share. */
#ifndef TALLY_FRONTEND_PTX_PARSER_H
#define TALLY_FRONTEND_PTX_PARSER_H

#include "frontend/ptx/lexer.h"
#include "frontend/ptx/ptx.h"

struct ptx_parser {
	struct ptx_lexer lexer;
	struct ptx_module *module;
	struct ptx_function *function; /* whose body is being read */
	struct ptx_symbol *header;     /* the label behind which no instruction stands yet */
	bool *rolled;		       /* what .pragma "nounroll" outside of bodies is about */
	bool in_call;		       /* parentheses are argument lists, not expressions */
	unsigned nesting;	       /* of expressions and operands */
};

/* After any failure the current token is PTX_END, so loops end by themselves. All return false
 * (NULL) on failure, with the error set. */

bool ptx_is_punct(const struct ptx_parser *p, int c);
bool ptx_is_dot(const struct ptx_parser *p, const char *word);
bool ptx_accept(struct ptx_parser *p, int c);
bool ptx_accept_dot(struct ptx_parser *p, const char *word);
bool ptx_expect(struct ptx_parser *p, int c);
/* Reports what was met where `wanted` should stand. */
bool ptx_unexpected(struct ptx_parser *p, const char *wanted);
void *ptx_new(struct ptx_parser *p, size_t size);
/* Puts the statement at the end of the function whose body is being read. */
void ptx_append(struct ptx_parser *p, struct ptx_statement *s);
const char *ptx_take_text(struct ptx_parser *p); /* the current token's text; moves on */

/* expression.c: constant expressions (PTX ISA 4.6). */
struct ptx_constant {
	bool is_real, is_unsigned, single;
	uint64_t bits;
	double real;
};
bool ptx_is_warp_size(const struct ptx_parser *p); /* WARP_SZ, a constant in spite of its letters */
bool ptx_constant(struct ptx_parser *p, struct ptx_constant *value);
bool ptx_unsigned_constant(struct ptx_parser *p, uint64_t *value, uint64_t limit, const char *what);

/* declaration.c: variables, parameters, their initialisers. */
bool ptx_is_space(const struct ptx_parser *p);
bool ptx_declaration(struct ptx_parser *p, const struct ptx_symbol *linkage);
/* <100> behind a prefix: how many names it stands for. */
bool ptx_unsigned_range(struct ptx_parser *p, uint64_t *count);
bool ptx_parameter_list(struct ptx_parser *p, struct ptx_symbol **list);

/* parse_function.c: .entry and .func, declarations and definitions. The parameters live in the
 * body's scope. */
bool ptx_function_directive(struct ptx_parser *p, const struct ptx_symbol *linkage, bool is_entry);
bool ptx_labels_defined(struct ptx_parser *p); /* all that a body branches to */

/* body.c: statements, up to the closing brace or the end of the text. parse.c: directives that may
 * stand anywhere; `done`: one of them was there. parse_operand.c. */
bool ptx_block(struct ptx_parser *p);
bool ptx_pragma_or_loc(struct ptx_parser *p, bool *done);
struct ptx_operand *ptx_operand(struct ptx_parser *p);
/* A name with the %tid.x of special registers; what it means here is looked up at once. */
bool ptx_operand_name(struct ptx_parser *p, struct ptx_operand *operand);

#endif
