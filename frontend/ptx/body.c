/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of PTX functions (PTX ISA 4.3, 7): instructions, labels, scopes. */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/instruction.h"
#include "frontend/ptx/parser.h"

/* The label of that name in the function, made when it is met first (a forward branch). */
static struct ptx_symbol *find_label(struct ptx_parser *p, const char *text, size_t length,
				     unsigned line, unsigned column)
{
	struct ptx_symbol *s = ptx_find(p->module, text, length);

	if (s && s->kind == PTX_LABEL)
		return s;
	s = ptx_add(p->module, text, length, PTX_LABEL, p->module->depth);
	if (!s) {
		ptx_syntax(&p->lexer, "the file needs too much memory");
		return NULL;
	}
	s->line = line;
	s->column = column;
	return s;
}

static bool modifiers(struct ptx_parser *p, struct ptx_statement *s, const char *from)
{
	unsigned types = 0;
	const char *end = p->lexer.token.text;

	while (p->lexer.token.kind == PTX_DOT) {
		const struct ptx_token t = p->lexer.token;
		enum ptx_type type = ptx_type_find(t.text, t.length);
		if (s->modifiers == PTX_MAX_MODIFIERS || (type && types == 4))
			return ptx_syntax(&p->lexer, "too many modifiers");
		if (type)
			s->type[types++] = type;
		if (!(s->modifier[s->modifiers++] = ptx_take_text(p)))
			return false;
		end = t.text + t.length;
	}
	char *opcode = ptx_new(p, (size_t)(end - from) + 1);
	if (!opcode)
		return false;
	/* As written but for white space before a dot. */
	for (char *out = opcode; from < end; from++)
		if ((unsigned char)*from > ' ')
			*out++ = *from;
	s->opcode = opcode;
	return true;
}

static bool instruction(struct ptx_parser *p, struct ptx_operand *guard)
{
	struct ptx_statement *s = ptx_new(p, sizeof *s);
	const char *from = p->lexer.token.text;

	if (!s)
		return false;
	s->kind = PTX_S_INSTRUCTION;
	s->line = p->lexer.token.line;
	s->column = p->lexer.token.column;
	s->guard = guard;
	if (p->lexer.token.kind != PTX_NAME)
		return ptx_unexpected(p, "an instruction");
	if (!(s->name = ptx_take_text(p)) || !modifiers(p, s, from))
		return false;
	p->in_call = !strcmp(s->name, "call");
	while (!ptx_is_punct(p, ';')) {
		if (s->operands == PTX_MAX_OPERANDS)
			return ptx_syntax(&p->lexer, "too many operands");
		if (!(s->operand[s->operands++] = ptx_operand(p)))
			return false;
		if (!ptx_accept(p, ','))
			break;
	}
	/* The last instruction of an asm string may lack its semicolon. */
	if (p->lexer.token.kind != PTX_END || p->module->depth > 1 || p->lexer.failed)
		if (!ptx_expect(p, ';'))
			return false;
	struct ptx_operand *target = s->operands ? s->operand[0] : NULL;
	if (!strcmp(s->name, "bra") && target && target->kind == PTX_O_NAME &&
	    !(target->symbol = find_label(p, target->name, strlen(target->name), target->line,
					  target->column)))
		return false;
	p->header = NULL;
	ptx_append(p, s);
	return true;
}

static bool guarded(struct ptx_parser *p)
{
	struct ptx_operand *guard = ptx_new(p, sizeof *guard);

	ptx_next(&p->lexer);
	if (!guard)
		return false;
	guard->line = p->lexer.token.line;
	guard->column = p->lexer.token.column;
	guard->negated = ptx_accept(p, '!');
	guard->kind = PTX_O_NAME;
	if (p->lexer.token.kind != PTX_NAME)
		return ptx_unexpected(p, "a predicate");
	return ptx_operand_name(p, guard) && instruction(p, guard);
}

/* One more target of the list: a label of this function, or a function that is declared. */
static bool add_target(struct ptx_parser *p, struct ptx_symbol *list, bool labels, const char *text,
		       size_t length)
{
	const struct ptx_token *t = &p->lexer.token;
	struct ptx_symbol *target = labels ? find_label(p, text, length, t->line, t->column)
					   : ptx_find(p->module, text, length);
	unsigned n = list->targets;

	if (!target && labels)
		return false;
	if (!target || (!labels && target->kind != PTX_FUNCTION))
		return ptx_syntax(&p->lexer, "'%.*s' is no function", (int)length, text);
	if (!(n & (n - 1))) { /* as long as a power of two is: double it */
		struct ptx_symbol **more = ptx_new(p, (n ? 2 * n : 1) * sizeof *more);
		if (!more)
			return false;
		if (n)
			memcpy(more, list->target, n * sizeof *more);
		list->target = more;
	}
	list->target[list->targets++] = target;
	return true;
}

/* N<3>: N0, N1, N2. */
static bool add_targets(struct ptx_parser *p, struct ptx_symbol *list, bool labels,
			const char *prefix)
{
	size_t length = strlen(prefix);
	char *text = ptx_new(p, length + 16);
	uint64_t n;

	if (!text || !ptx_unsigned_range(p, &n))
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (!add_target(p, list, labels, text,
				(size_t)snprintf(text, length + 16, "%s%u", prefix, (unsigned)i)))
			return false;
	return true;
}

/* .branchtargets a, b; .calltargets f, g; */
static bool targets(struct ptx_parser *p, struct ptx_symbol *s, bool labels)
{
	s->kind = PTX_TARGETS;
	do {
		const char *text;

		ptx_next(&p->lexer);
		if (p->lexer.token.kind != PTX_NAME)
			return ptx_unexpected(p, "a label");
		if (!(text = ptx_take_text(p)))
			return false;
		if (ptx_is_punct(p, '<') ? !add_targets(p, s, labels, text)
					 : !add_target(p, s, labels, text, strlen(text)))
			return false;
	} while (ptx_is_punct(p, ','));
	return ptx_expect(p, ';');
}

/* name: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn; */
static bool prototype(struct ptx_parser *p, struct ptx_symbol *s)
{
	struct ptx_function *f = ptx_new(p, sizeof *f);

	ptx_next(&p->lexer);
	if (!f || !ptx_scope_open(p->module))
		return ptx_syntax(&p->lexer, "scopes are nested too deeply");
	s->kind = PTX_PROTOTYPE;
	s->function = f;
	f->symbol = s;
	f->name = s->name;
	if (ptx_is_punct(p, '(') && !ptx_parameter_list(p, &f->results))
		return false;
	if (p->lexer.token.kind != PTX_NAME)
		return ptx_unexpected(p, "'_'");
	ptx_next(&p->lexer);
	if (ptx_is_punct(p, '(') && !ptx_parameter_list(p, &f->parameters))
		return false;
	while (p->lexer.token.kind == PTX_DOT || p->lexer.token.kind == PTX_INT) {
		f->no_return |= ptx_is_dot(p, "noreturn");
		ptx_next(&p->lexer);
	}
	ptx_scope_close(p->module);
	return ptx_expect(p, ';');
}

static bool label(struct ptx_parser *p, struct ptx_token t)
{
	struct ptx_symbol *s = find_label(p, t.text, t.length, t.line, t.column);
	struct ptx_statement *statement = ptx_new(p, sizeof *statement);

	/* An inner scope's label of the same name is another one. */
	if (s && s->depth < p->module->depth)
		s = ptx_add(p->module, t.text, t.length, PTX_LABEL, p->module->depth);
	if (!s || !statement)
		return false;
	if (s->defined) {
		p->lexer.token.line = t.line;
		p->lexer.token.column = t.column;
		return ptx_syntax(&p->lexer, "label '%s' is defined twice", s->name);
	}
	s->defined = true;
	if (ptx_is_dot(p, "branchtargets") || ptx_is_dot(p, "calltargets"))
		return targets(p, s, ptx_is_dot(p, "branchtargets"));
	if (ptx_is_dot(p, "callprototype"))
		return prototype(p, s);
	statement->kind = PTX_S_LABEL;
	statement->line = t.line;
	statement->column = t.column;
	statement->label = p->header = s;
	ptx_append(p, statement);
	return true;
}

/* A name followed by a colon is a label; anything else that starts with a name an instruction. */
static bool label_or_instruction(struct ptx_parser *p)
{
	struct ptx_lexer saved = p->lexer;

	ptx_next(&p->lexer);
	if (ptx_accept(p, ':'))
		return label(p, saved.token);
	if (p->lexer.failed)
		return false;
	p->lexer = saved;
	return instruction(p, NULL);
}

static bool statement(struct ptx_parser *p)
{
	static const struct ptx_symbol no_linkage;
	bool done;

	if (ptx_is_punct(p, '@'))
		return guarded(p);
	if (p->lexer.token.kind == PTX_NAME)
		return label_or_instruction(p);
	if (ptx_accept(p, ';'))
		return true;
	if (!ptx_pragma_or_loc(p, &done) || done)
		return !p->lexer.failed;
	if (ptx_is_space(p))
		return ptx_declaration(p, &no_linkage);
	return ptx_unexpected(p, "a statement");
}

/* Scopes are a counter, not recursion: the stack does not grow with the input. */
bool ptx_block(struct ptx_parser *p)
{
	unsigned outer = p->module->depth;

	while (p->lexer.token.kind != PTX_END) {
		if (ptx_is_punct(p, '}')) {
			if (p->module->depth == outer)
				return true;
			if (!ptx_scope_close(p->module))
				return ptx_syntax(&p->lexer, "the file needs too much memory");
			ptx_next(&p->lexer);
		} else if (ptx_accept(p, '{')) {
			if (!ptx_scope_open(p->module))
				return ptx_syntax(&p->lexer, "scopes are nested too deeply");
		} else if (!statement(p)) {
			return false;
		}
	}
	if (!p->lexer.failed && p->module->depth != outer)
		return ptx_unexpected(p, "'}'");
	return !p->lexer.failed;
}
