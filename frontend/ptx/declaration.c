/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of PTX (PTX ISA 5.4): variables of every space, parameters, initialisers. */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/parser.h"

/* No device has more memory in one address range; it keeps size arithmetic far from overflow. */
#define MAX_ELEMENTS ((uint64_t)1 << 40)

static const struct {
	const char *word;
	enum ptx_space space;
} spaces[] = {
	{"reg", PTX_REG},     {"global", PTX_GLOBAL}, {"shared", PTX_SHARED},
	{"const", PTX_CONST}, {"local", PTX_LOCAL},   {"param", PTX_PARAM},
};

static enum ptx_space space_of(const struct ptx_parser *p)
{
	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (ptx_is_dot(p, spaces[i].word))
			return spaces[i].space;
	return PTX_GENERIC;
}

bool ptx_is_space(const struct ptx_parser *p)
{
	return space_of(p) != PTX_GENERIC;
}

/* .attribute(.managed), .attribute(.unified(1, 2)): a hint for the driver. */
static bool skip_attribute(struct ptx_parser *p)
{
	unsigned open = 0;

	if (!ptx_expect(p, '('))
		return false;
	for (open = 1; open && p->lexer.token.kind != PTX_END; ptx_next(&p->lexer))
		open += ptx_is_punct(p, '(') ? 1u : ptx_is_punct(p, ')') ? -1u : 0;
	return !open || ptx_unexpected(p, "')'");
}

/* The type part: .align 8 .v2 .f32, and a parameter's .ptr .global .align 4. */
static bool type_part(struct ptx_parser *p, struct ptx_symbol *s)
{
	while (p->lexer.token.kind == PTX_DOT) {
		const struct ptx_token *t = &p->lexer.token;
		enum ptx_type type = ptx_type_find(t->text, t->length);
		if (type && s->type)
			return ptx_unexpected(p, "one type only");
		if (type) {
			s->type = type;
		} else if (ptx_is_dot(p, "align")) {
			uint64_t align;
			ptx_next(&p->lexer);
			if (!ptx_unsigned_constant(p, &align, 1 << 20, "the alignment"))
				return false;
			if (!align || align & (align - 1))
				return ptx_syntax(&p->lexer, "the alignment is no power of two");
			/* After .ptr it is that of what the parameter points to. */
			if (!s->is_pointer)
				s->align = (unsigned)align;
			continue;
		} else if (ptx_is_dot(p, "ptr")) {
			s->is_pointer = true;
		} else if (ptx_is_dot(p, "v2") || ptx_is_dot(p, "v4") || ptx_is_dot(p, "v8")) {
			s->vector = (unsigned)(t->text[1] - '0');
		} else if (ptx_is_dot(p, "attribute")) {
			ptx_next(&p->lexer);
			if (!skip_attribute(p))
				return false;
			continue;
		} else if (!s->is_pointer || !ptx_is_space(p)) {
			return ptx_unexpected(p, "a type");
		}
		ptx_next(&p->lexer);
	}
	return s->type || ptx_unexpected(p, "a type");
}

static bool dimensions(struct ptx_parser *p, struct ptx_symbol *s)
{
	bool open_first = false;

	s->dimensions = 0;
	while (ptx_accept(p, '[')) {
		uint64_t n = 0;
		bool open = ptx_is_punct(p, ']');
		if (!open && !ptx_unsigned_constant(p, &n, MAX_ELEMENTS, "the array size"))
			return false;
		if (open && s->is_array)
			return ptx_syntax(&p->lexer, "only the first dimension may be open");
		open_first |= open;
		s->is_array = true;
		if (n && s->elements > MAX_ELEMENTS / n)
			return ptx_syntax(&p->lexer, "the array is too large");
		if (s->dimensions == PTX_MAX_DIMENSIONS)
			return ptx_syntax(&p->lexer, "the array has too many dimensions");
		s->elements *= open ? 1 : n;
		s->dimension[s->dimensions++] = n;
		if (!ptx_expect(p, ']'))
			return false;
	}
	if (open_first)
		s->elements = 0;
	return true;
}

static struct ptx_value *initialiser(struct ptx_parser *p);

static bool initialiser_list(struct ptx_parser *p, struct ptx_value *list)
{
	struct ptx_value **link = &list->first;

	list->kind = PTX_V_LIST;
	ptx_next(&p->lexer);
	while (!ptx_is_punct(p, '}')) {
		if (!(*link = initialiser(p)))
			return false;
		link = &(*link)->next;
		if (!ptx_accept(p, ','))
			break;
	}
	return ptx_expect(p, '}');
}

/* name, name+4, generic(name)+4 */
static bool initialiser_address(struct ptx_parser *p, struct ptx_value *v)
{
	struct ptx_constant offset = {0};

	v->kind = PTX_V_ADDRESS;
	v->name = ptx_take_text(p);
	if (v->name && !strcmp(v->name, "generic") && ptx_accept(p, '(')) {
		v->generic = true;
		if (p->lexer.token.kind != PTX_NAME)
			return ptx_unexpected(p, "a variable");
		v->name = ptx_take_text(p);
		if (!ptx_expect(p, ')'))
			return false;
	}
	if ((ptx_is_punct(p, '+') || ptx_is_punct(p, '-')) && !ptx_constant(p, &offset))
		return false;
	if (offset.is_real)
		return ptx_syntax(&p->lexer, "an address plus a real number");
	v->bits = offset.bits;
	return v->name != NULL;
}

/* 0xff00(name), 0xff00(1000+5): one byte of an address or of a number. */
static bool masked(struct ptx_parser *p, struct ptx_value *v, uint64_t mask)
{
	unsigned shift = 0;
	struct ptx_constant c;

	while (shift < 64 && mask != (uint64_t)0xff << shift)
		shift += 8;
	if (shift == 64)
		return ptx_syntax(&p->lexer,
				  "the mask is not one byte, 0xff to 0xff00000000000000");
	if (p->lexer.token.kind == PTX_NAME) {
		v->mask = mask;
		return initialiser_address(p, v) && ptx_expect(p, ')');
	}
	if (!ptx_constant(p, &c))
		return false;
	if (c.is_real)
		return ptx_syntax(&p->lexer, "a byte of a real number");
	v->bits = c.bits >> shift & 0xff;
	return ptx_expect(p, ')');
}

static struct ptx_value *initialiser(struct ptx_parser *p)
{
	struct ptx_value *v = ptx_new(p, sizeof *v);
	struct ptx_constant c;
	bool ok;

	if (!v)
		return NULL;
	if (p->nesting >= PTX_MAX_DEPTH) {
		ptx_syntax(&p->lexer, "initialiser is nested too deeply");
		return NULL;
	}
	p->nesting++;
	v->line = p->lexer.token.line;
	v->column = p->lexer.token.column;
	if (ptx_is_punct(p, '{')) {
		ok = initialiser_list(p, v);
	} else if (p->lexer.token.kind == PTX_NAME) {
		ok = initialiser_address(p, v);
	} else {
		ok = ptx_constant(p, &c);
		v->kind = c.is_real ? PTX_V_FLOAT : PTX_V_INT;
		v->bits = c.bits;
		v->real = c.real;
		if (ok && !c.is_real && ptx_accept(p, '('))
			ok = masked(p, v, c.bits);
	}
	p->nesting--;
	return ok ? v : NULL;
}

/* An open array takes its first dimension from its initialiser. */
static bool close_array(struct ptx_parser *p, struct ptx_symbol *s)
{
	uint64_t n = 0;

	if (!s->is_array || s->dimension[0] || !s->initialiser)
		return true;
	for (const struct ptx_value *v = s->initialiser->first; v; v = v->next)
		n++;
	s->dimension[0] = s->elements = n;
	for (unsigned i = 1; i < s->dimensions; i++) {
		if (s->dimension[i] && s->elements > MAX_ELEMENTS / s->dimension[i])
			return ptx_syntax(&p->lexer, "the array is too large");
		s->elements *= s->dimension[i];
	}
	return true;
}

static void append_variable(struct ptx_parser *p, struct ptx_symbol *s)
{
	struct ptx_function *f = p->function;
	struct ptx_symbol ***last = f ? &f->last_variable : &p->module->last_variable;

	if (!*last)
		*last = f ? &f->variables : &p->module->variables;
	**last = s;
	*last = &s->next;
}

/* A second declaration of a module's variable (extern, then the definition) is the same thing. */
static struct ptx_symbol *redeclared(struct ptx_parser *p, const struct ptx_symbol *linkage)
{
	struct ptx_symbol *old;

	if (p->function)
		return NULL;
	old = ptx_find(p->module, p->lexer.token.text, p->lexer.token.length);
	if (old && old->kind == PTX_VARIABLE && old->space == linkage->space &&
	    (old->is_extern || linkage->is_extern))
		return old;
	return NULL;
}

/* The elements of a vector register are registers of their own: v.x, v.y. */
static bool add_elements(struct ptx_parser *p, const struct ptx_symbol *v)
{
	char name[256];

	for (unsigned i = 0; i < v->vector; i++) {
		int n = snprintf(name, sizeof name, "%s.%c", v->name, "xyzw"[i % 4]);
		struct ptx_symbol *e, common = *v;

		if (n >= (int)sizeof name || v->vector > 4)
			return ptx_syntax(&p->lexer, "the vector register cannot be named");
		e = ptx_add(p->module, name, (size_t)n, PTX_VARIABLE, p->module->depth);
		if (!e)
			return ptx_syntax(&p->lexer, "the file needs too much memory");
		common.vector = 1;
		ptx_assign(e, &common);
	}
	return true;
}

bool ptx_unsigned_range(struct ptx_parser *p, uint64_t *count)
{
	if (!ptx_expect(p, '<'))
		return false;
	if (p->lexer.token.kind != PTX_INT)
		return ptx_unexpected(p, "a number of names");
	*count = p->lexer.token.value;
	if (*count > 100000000)
		return ptx_syntax(&p->lexer, "too many names");
	ptx_next(&p->lexer);
	return ptx_expect(p, '>');
}

/* x<3> in memory: x0, x1, x2, which are there whether somebody names them or not. */
static bool range_variables(struct ptx_parser *p, const struct ptx_symbol *range)
{
	size_t room = strlen(range->name) + 16;
	char *name = ptx_new(p, room);

	for (uint32_t i = 0; name && i < range->range; i++) {
		size_t length = (size_t)snprintf(name, room, "%s%u", range->name, (unsigned)i);
		struct ptx_symbol *s =
			ptx_add(p->module, name, length, PTX_VARIABLE, p->module->depth);

		if (!s)
			return ptx_syntax(&p->lexer, "the file needs too much memory");
		ptx_assign(s, range);
		s->kind = PTX_VARIABLE;
		append_variable(p, s);
	}
	return name != NULL;
}

/* { addr_mode_0 = clamp_to_border, filter_mode = nearest }: kept as it stands. */
static bool fields(struct ptx_parser *p, struct ptx_symbol *s)
{
	const char *from = p->lexer.token.text;
	char *text;

	if (!ptx_expect(p, '{'))
		return false;
	while (p->lexer.token.kind != PTX_END && !ptx_is_punct(p, '}'))
		ptx_next(&p->lexer);
	text = ptx_new(p, (size_t)(p->lexer.token.text - from) + 2);
	if (!text || !ptx_is_punct(p, '}'))
		return ptx_unexpected(p, "'}'");
	memcpy(text, from, (size_t)(p->lexer.token.text - from) + 1);
	s->fields = text;
	return ptx_expect(p, '}');
}

static bool one_name(struct ptx_parser *p, const struct ptx_symbol *common)
{
	const struct ptx_token *t = &p->lexer.token;
	struct ptx_symbol *s;
	bool again;

	if (t->kind != PTX_NAME)
		return ptx_unexpected(p, "a name");
	s = redeclared(p, common);
	again = s != NULL;
	if (!s)
		s = ptx_add(p->module, t->text, t->length, PTX_VARIABLE, p->module->depth);
	if (!s)
		return ptx_syntax(&p->lexer, "the file needs too much memory");
	if (!again || !common->is_extern)
		ptx_assign(s, common);
	s->line = t->line;
	s->column = t->column;
	ptx_next(&p->lexer);
	if (ptx_is_punct(p, '<')) {
		uint64_t n;
		if (!ptx_unsigned_range(p, &n))
			return false;
		s->kind = PTX_RANGE;
		s->range = (uint32_t)n;
		return s->space == PTX_REG || range_variables(p, s);
	}
	s->elements = 1;
	s->is_array = false;
	if (!dimensions(p, s))
		return false;
	if (ptx_accept(p, '=')) {
		if (s->space != PTX_GLOBAL && s->space != PTX_CONST)
			return ptx_syntax(&p->lexer, "only .global and .const have initialisers");
		if (ptx_type_is_opaque(s->type) ? !fields(p, s)
						: !(s->initialiser = initialiser(p)))
			return false;
		if (!close_array(p, s))
			return false;
	}
	if (s->space == PTX_REG && s->vector > 1)
		return add_elements(p, s);
	if (s->space != PTX_REG && !again)
		append_variable(p, s);
	return true;
}

/* Textures, samplers and surfaces are variables of the module (PTX ISA 5.3). */
static bool opaque_place(struct ptx_parser *p, const struct ptx_symbol *s)
{
	if (!ptx_type_is_opaque(s->type) || (s->space == PTX_GLOBAL && !p->function))
		return true;
	return ptx_syntax(&p->lexer, ".%s variables are .global and stand outside of functions",
			  ptx_type_name(s->type));
}

bool ptx_declaration(struct ptx_parser *p, const struct ptx_symbol *linkage)
{
	struct ptx_symbol common = *linkage;

	common.kind = PTX_VARIABLE;
	common.vector = 1;
	common.space = space_of(p);
	ptx_next(&p->lexer);
	if (!type_part(p, &common) || !opaque_place(p, &common))
		return false;
	do {
		if (!one_name(p, &common))
			return false;
	} while (ptx_accept(p, ','));
	return ptx_expect(p, ';');
}

/* ( .param .u64 .ptr .global .align 4 name, .param .align 8 .b8 name[16], .reg .b32 r ) */
bool ptx_parameter_list(struct ptx_parser *p, struct ptx_symbol **list)
{
	struct ptx_symbol **link = list;

	if (!ptx_expect(p, '('))
		return false;
	while (!ptx_is_punct(p, ')')) {
		struct ptx_symbol common = {.kind = PTX_VARIABLE, .vector = 1};
		struct ptx_symbol *s;
		common.space = space_of(p);
		if (common.space != PTX_PARAM && common.space != PTX_REG)
			return ptx_unexpected(p, "'.param'");
		ptx_next(&p->lexer);
		if (!type_part(p, &common))
			return false;
		if (ptx_type_is_opaque(common.type))
			return ptx_syntax(&p->lexer,
					  "no launch sets a parameter of type .%s; use a .global "
					  "variable or a 64-bit handle",
					  ptx_type_name(common.type));
		if (p->lexer.token.kind != PTX_NAME)
			return ptx_unexpected(p, "a parameter's name");
		s = ptx_add(p->module, p->lexer.token.text, p->lexer.token.length, PTX_VARIABLE,
			    p->module->depth);
		if (!s)
			return ptx_syntax(&p->lexer, "the file needs too much memory");
		common.line = p->lexer.token.line;
		common.column = p->lexer.token.column;
		ptx_assign(s, &common);
		ptx_next(&p->lexer);
		if (!dimensions(p, s))
			return false;
		*link = s;
		link = &s->next;
		if (!ptx_accept(p, ','))
			break;
	}
	return ptx_expect(p, ')');
}
