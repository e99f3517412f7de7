/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of PTX (PTX ISA 5.1, 11.1, 11.4): heads, directives, bodies. */
#include "frontend/ptx/parser.h"

static bool three_numbers(struct ptx_parser *p, unsigned *out)
{
	for (int i = 0; i < 3; i++) {
		uint64_t n;
		if (i && !ptx_accept(p, ',')) {
			out[i] = 1;
			continue;
		}
		if (!ptx_unsigned_constant(p, &n, INT32_MAX, "the size"))
			return false;
		out[i] = (unsigned)n;
	}
	return true;
}

/* Performance-tuning and other directives between a function's head and its body. */
static bool function_directives(struct ptx_parser *p, struct ptx_function *f)
{
	static const char *const plain[] = {"noreturn", "explicitcluster", "blocksareclusters",
					    "abi_preserve_all"};
	const struct {
		const char *name;
		unsigned *value;
	} numbers[] = {{"minnctapersm", &f->minctapersm},
		       {"maxnreg", &f->maxnreg},
		       {"maxclusterrank", &f->maxclusterrank},
		       {"maxnctapersm", NULL},
		       {"abi_preserve", NULL},
		       {"abi_preserve_control", NULL}};
	uint64_t n;

	while (p->lexer.token.kind == PTX_DOT) {
		unsigned *sizes = ptx_is_dot(p, "maxntid")	       ? f->maxntid
				  : ptx_is_dot(p, "reqntid")	       ? f->reqntid
				  : ptx_is_dot(p, "reqnctapercluster") ? f->cluster
								       : NULL;
		bool known = sizes != NULL, done;

		if (!ptx_pragma_or_loc(p, &done))
			return false;
		if (done)
			continue;
		if (ptx_is_dot(p, "noreturn"))
			f->no_return = true;
		for (size_t i = 0; !known && i < sizeof plain / sizeof *plain; i++)
			if (ptx_accept_dot(p, plain[i]))
				goto next;
		for (size_t i = 0; !known && i < sizeof numbers / sizeof *numbers; i++)
			if (ptx_accept_dot(p, numbers[i].name)) {
				if (!ptx_unsigned_constant(p, &n, INT32_MAX, "the number"))
					return false;
				if (numbers[i].value)
					*numbers[i].value = (unsigned)n;
				goto next;
			}
		if (!sizes)
			return ptx_unexpected(p, "a function directive or '{'");
		ptx_next(&p->lexer);
		if (!three_numbers(p, sizes))
			return false;
	next:;
	}
	return true;
}

static struct ptx_function *new_function(struct ptx_parser *p, const struct ptx_symbol *linkage)
{
	const struct ptx_token *t = &p->lexer.token;
	struct ptx_function *f = ptx_new(p, sizeof *f);
	struct ptx_symbol *s;

	if (!f)
		return NULL;
	if (t->kind != PTX_NAME) {
		ptx_unexpected(p, "a function's name");
		return NULL;
	}
	f->line = t->line;
	f->column = t->column;
	s = ptx_find(p->module, t->text, t->length);
	if (s && s->kind != PTX_FUNCTION) {
		ptx_syntax(&p->lexer, "'%s' is declared already as something else", s->name);
		return NULL;
	}
	if (!s) {
		s = ptx_add(p->module, t->text, t->length, PTX_FUNCTION, 0);
		if (!s) {
			ptx_syntax(&p->lexer, "the file needs too much memory");
			return NULL;
		}
	}
	s->is_extern |= linkage->is_extern;
	s->is_weak |= linkage->is_weak;
	s->is_visible |= linkage->is_visible;
	f->symbol = s;
	f->name = s->name;
	ptx_next(&p->lexer);
	return f;
}

bool ptx_labels_defined(struct ptx_parser *p)
{
	const struct ptx_symbol *s = ptx_undefined_label(p->module);

	if (!s)
		return true;
	p->lexer.token.line = s->line;
	p->lexer.token.column = s->column;
	return ptx_syntax(&p->lexer, "label '%s' is not defined", s->name);
}

static bool function_body(struct ptx_parser *p, struct ptx_function *f)
{
	if (f->symbol->function && f->symbol->function->has_body) {
		p->lexer.token.line = f->line;
		p->lexer.token.column = f->column;
		return ptx_syntax(&p->lexer, "function '%s' is defined twice", f->name);
	}
	f->has_body = true;
	p->function = f;
	if (!ptx_block(p))
		return false;
	p->function = NULL;
	return ptx_expect(p, '}') && ptx_labels_defined(p);
}

bool ptx_function_directive(struct ptx_parser *p, const struct ptx_symbol *linkage, bool is_entry)
{
	struct ptx_symbol *results = NULL;
	struct ptx_function *f;

	ptx_next(&p->lexer);
	if (!ptx_scope_open(p->module))
		return ptx_syntax(&p->lexer, "scopes are nested too deeply");
	while (ptx_is_dot(p, "attribute")) {
		while (p->lexer.token.kind != PTX_END && !ptx_is_punct(p, ')'))
			ptx_next(&p->lexer);
		ptx_expect(p, ')');
	}
	if (!is_entry && ptx_is_punct(p, '(') && !ptx_parameter_list(p, &results))
		return false;
	f = new_function(p, linkage);
	if (!f)
		return false;
	f->is_entry = is_entry;
	f->results = results;
	if (ptx_is_punct(p, '(') && !ptx_parameter_list(p, &f->parameters))
		return false;
	p->rolled = &f->rolled;
	if (!function_directives(p, f))
		return false;
	p->rolled = &p->module->rolled;
	if (ptx_accept(p, '{')) {
		if (!function_body(p, f))
			return false;
	} else if (!ptx_accept(p, ';') && !is_entry) {
		return ptx_unexpected(p, "'{' or ';'");
	}
	ptx_scope_close(p->module);
	if (f->has_body || !f->symbol->function)
		f->symbol->function = f;
	*p->module->last_function = f;
	p->module->last_function = &f->next;
	return true;
}
