/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of PTX instructions (PTX ISA 6). */
#include <string.h>

#include "frontend/ptx/parser.h"

static bool operand_list(struct ptx_parser *p, struct ptx_operand *list, int closing)
{
	struct ptx_operand **link = &list->first;

	ptx_next(&p->lexer);
	while (!ptx_is_punct(p, closing)) {
		if (!(*link = ptx_operand(p)))
			return false;
		link = &(*link)->next;
		if (!ptx_accept(p, ','))
			break;
	}
	return ptx_expect(p, closing);
}

/* +4, -8, +-4 behind an address */
static bool offset(struct ptx_parser *p, struct ptx_operand *o)
{
	struct ptx_constant c;

	if (!ptx_is_punct(p, '+') && !ptx_is_punct(p, '-'))
		return true;
	if (!ptx_constant(p, &c))
		return false;
	if (c.is_real)
		return ptx_syntax(&p->lexer, "an address plus a real number");
	o->bits = c.bits;
	return true;
}

/*
 * array[4], array[%r1], array[%r1+4] (PTX ISA 6.4.2): elements of the type that the array is
 * declared of, whatever its dimensions. ptxas counts them in 32 bits.
 */
static bool array_element(struct ptx_parser *p, struct ptx_operand *o)
{
	unsigned size = ptx_type_bits(o->symbol->type) / 8;
	struct ptx_constant c = {0};

	ptx_next(&p->lexer);
	o->indexed = true;
	if (p->lexer.token.kind != PTX_NAME) {
		if (!ptx_constant(p, &c))
			return false;
	} else {
		struct ptx_operand *index = ptx_operand(p);

		if (!index)
			return false;
		c.bits = index->bits;
		index->bits = 0;
		o->index = index;
	}
	if (c.is_real)
		return ptx_syntax(&p->lexer, "an array's element is counted in integers");
	o->bits = c.bits * size;
	return ptx_expect(p, ']');
}

/* %r1.b3210, %r1.h1: which parts of a register (video instructions). */
static bool selector(struct ptx_parser *p, struct ptx_operand *o)
{
	const struct ptx_token *t = &p->lexer.token;
	size_t digits = t->kind == PTX_DOT && t->length > 1 ? t->length - 1 : 0;

	if (!digits || !t->adjacent || (*t->text != 'b' && *t->text != 'h'))
		return true;
	for (size_t i = 1; i <= digits; i++)
		if (t->text[i] < '0' || t->text[i] > '7')
			return true;
	return (o->selector = ptx_take_text(p)) != NULL;
}

/* Element `c` of a vector register, as an operand. */
static bool element(struct ptx_parser *p, struct ptx_operand *o, const char *vector, char c)
{
	size_t length = strlen(vector);
	char *whole = ptx_new(p, length + 3);

	if (!whole)
		return false;
	memcpy(whole, vector, length);
	whole[length] = '.';
	whole[length + 1] = c;
	o->kind = PTX_O_NAME;
	o->name = whole;
	o->symbol = ptx_find(p->module, whole, length + 2);
	return o->symbol || ptx_syntax(&p->lexer, "'%s' has no element '%c'", vector, c);
}

/* .r .g .b .a are .x .y .z .w (PTX ISA 6.4.3). */
static char element_name(char c)
{
	static const char rgba[] = "rgba";
	const char *which = c ? strchr(rgba, c) : NULL;

	return which ? "xyzw"[which - rgba] : c;
}

/* A vector register is all its elements, or the one that .x .y .z .w or .r .g .b .a name. */
static bool vector_register(struct ptx_parser *p, struct ptx_operand *o)
{
	const struct ptx_token *t = &p->lexer.token;
	struct ptx_operand **link = &o->first;

	if (t->kind == PTX_DOT && t->adjacent && t->length == 1) {
		if (!element(p, o, o->name, element_name(*t->text)))
			return false;
		ptx_next(&p->lexer);
		return true;
	}
	for (unsigned i = 0; i < o->symbol->vector; i++, link = &(*link)->next) {
		struct ptx_operand *e = *link = ptx_new(p, sizeof *e);

		if (!e || !element(p, e, o->name, "xyzw"[i]))
			return false;
		e->line = o->line;
		e->column = o->column;
	}
	o->kind = PTX_O_VECTOR;
	return true;
}

bool ptx_operand_name(struct ptx_parser *p, struct ptx_operand *o)
{
	struct ptx_token t = p->lexer.token;

	o->symbol = ptx_find(p->module, t.text, t.length);
	o->name = ptx_take_text(p);
	if (o->name && o->kind == PTX_O_NAME && o->symbol && o->symbol->kind == PTX_VARIABLE &&
	    o->symbol->space == PTX_REG && o->symbol->vector > 1)
		return vector_register(p, o);
	if (o->name && o->name[0] == '%' && p->lexer.token.kind == PTX_DOT &&
	    p->lexer.token.length == 1) {
		size_t length = strlen(o->name);
		char *whole = ptx_new(p, length + 3);
		if (!whole)
			return false;
		memcpy(whole, o->name, length);
		whole[length] = '.';
		whole[length + 1] = element_name(*p->lexer.token.text);
		o->name = whole;
		o->symbol = NULL;
		ptx_next(&p->lexer);
	}
	return o->name && selector(p, o);
}

/* [a+4], [a], [4], and the vendor's [tensor, {x, y}] */
static bool memory(struct ptx_parser *p, struct ptx_operand *o)
{
	o->kind = PTX_O_MEMORY;
	ptx_next(&p->lexer);
	if (p->lexer.token.kind == PTX_NAME) {
		if (!ptx_operand_name(p, o) || !offset(p, o))
			return false;
	} else {
		struct ptx_constant c;
		if (!ptx_constant(p, &c))
			return false;
		o->bits = c.bits;
	}
	for (struct ptx_operand **link = &o->first; ptx_accept(p, ',');) {
		if (!(*link = ptx_operand(p)))
			return false;
		link = &(*link)->next;
	}
	return ptx_expect(p, ']');
}

static bool number(struct ptx_parser *p, struct ptx_operand *o)
{
	struct ptx_constant c;

	if (!ptx_constant(p, &c))
		return false;
	o->kind = c.is_real ? PTX_O_FLOAT : PTX_O_INT;
	o->bits = c.bits;
	o->real = c.real;
	o->single = c.single;
	return true;
}

/* -%r1 of vmad: the minus is taken when a register follows. */
static bool minus_register(struct ptx_parser *p)
{
	struct ptx_lexer saved = p->lexer;

	if (!ptx_accept(p, '-'))
		return false;
	if (p->lexer.token.kind == PTX_NAME && *p->lexer.token.text == '%')
		return true;
	p->lexer = saved;
	return false;
}

/* !%p1: before a number it is the constant expression's. */
static bool not_register(struct ptx_parser *p)
{
	struct ptx_lexer saved = p->lexer;

	if (!ptx_accept(p, '!'))
		return false;
	if (p->lexer.token.kind == PTX_NAME)
		return true;
	p->lexer = saved;
	return false;
}

static bool operand(struct ptx_parser *p, struct ptx_operand *o)
{
	const struct ptx_token *t = &p->lexer.token;

	if (not_register(p) || minus_register(p))
		o->negated = true;
	if (t->kind == PTX_NAME && t->length == 1 && *t->text == '_') {
		o->kind = PTX_O_SINK;
		ptx_next(&p->lexer);
		return true;
	}
	if (t->kind == PTX_NAME && !ptx_is_warp_size(p)) {
		o->kind = PTX_O_NAME;
		if (!ptx_operand_name(p, o))
			return false;
		if (ptx_is_punct(p, '[') && o->symbol && o->symbol->kind == PTX_VARIABLE &&
		    o->symbol->space != PTX_REG)
			return array_element(p, o);
		return o->kind == PTX_O_VECTOR || offset(p, o);
	}
	if (ptx_is_punct(p, '{')) {
		o->kind = PTX_O_VECTOR;
		return operand_list(p, o, '}');
	}
	if (p->in_call && ptx_is_punct(p, '(')) {
		o->kind = PTX_O_LIST;
		return operand_list(p, o, ')');
	}
	if (ptx_is_punct(p, '['))
		return memory(p, o);
	if (t->kind == PTX_INT || t->kind == PTX_FLOAT || t->kind == PTX_NAME ||
	    (t->kind == PTX_PUNCT && t->punct < 0x80 && strchr("-+~!(", t->punct)))
		return number(p, o);
	return ptx_unexpected(p, "an operand");
}

struct ptx_operand *ptx_operand(struct ptx_parser *p)
{
	struct ptx_operand *o = ptx_new(p, sizeof *o);
	bool ok;

	if (!o)
		return NULL;
	if (p->nesting >= PTX_MAX_DEPTH) {
		ptx_syntax(&p->lexer, "operand is nested too deeply");
		return NULL;
	}
	p->nesting++;
	o->line = p->lexer.token.line;
	o->column = p->lexer.token.column;
	o->text = p->lexer.token.text;
	ok = operand(p, o);
	/* Where the next token starts is past white space too; the vendor's printer trims it. */
	o->length = (size_t)(p->lexer.token.text - o->text);
	if (ok && ptx_accept(p, '|'))
		ok = (o->second = ptx_operand(p)) != NULL;
	p->nesting--;
	return ok ? o : NULL;
}
