/* SPDX-License-Identifier: Apache-2.0 */
/* The module level of PTX (PTX ISA chapter 11): directives, functions, and the parser's helpers. */
#include <ctype.h>
#include <string.h>

#include "frontend/ptx/parser.h"

bool ptx_is_punct(const struct ptx_parser *p, int c)
{
	return p->lexer.token.kind == PTX_PUNCT && p->lexer.token.punct == c;
}

bool ptx_is_dot(const struct ptx_parser *p, const char *word)
{
	const struct ptx_token *t = &p->lexer.token;

	return t->kind == PTX_DOT && strlen(word) == t->length && !memcmp(word, t->text, t->length);
}

bool ptx_accept(struct ptx_parser *p, int c)
{
	if (!ptx_is_punct(p, c))
		return false;
	ptx_next(&p->lexer);
	return true;
}

bool ptx_accept_dot(struct ptx_parser *p, const char *word)
{
	if (!ptx_is_dot(p, word))
		return false;
	ptx_next(&p->lexer);
	return true;
}

bool ptx_unexpected(struct ptx_parser *p, const char *wanted)
{
	const struct ptx_token *t = &p->lexer.token;
	int length = t->length > 40 ? 40 : (int)t->length;

	if (t->kind == PTX_END)
		return ptx_syntax(&p->lexer, "expected %s before the end of the file", wanted);
	return ptx_syntax(&p->lexer, "expected %s, not '%s%.*s'", wanted,
			  t->kind == PTX_DOT ? "." : "", length, t->text);
}

bool ptx_expect(struct ptx_parser *p, int c)
{
	char wanted[] = {'\'', (char)c, '\'', '\0'};

	return ptx_accept(p, c) || ptx_unexpected(p, wanted);
}

void ptx_append(struct ptx_parser *p, struct ptx_statement *s)
{
	if (p->function->last)
		p->function->last->next = s;
	else
		p->function->first = s;
	p->function->last = s;
}

void *ptx_new(struct ptx_parser *p, size_t size)
{
	void *memory = ptx_arena_alloc(&p->module->arena, size);

	if (!memory)
		ptx_syntax(&p->lexer, "the file needs too much memory");
	return memory;
}

const char *ptx_take_text(struct ptx_parser *p)
{
	const struct ptx_token t = p->lexer.token;
	char *text = ptx_new(p, t.length + 1);

	if (!text)
		return NULL;
	memcpy(text, t.text, t.length);
	ptx_next(&p->lexer);
	return text;
}

/* .file 1 "name.cu" {, time, size} */
static bool file_directive(struct ptx_parser *p)
{
	struct ptx_file_name *file = ptx_new(p, sizeof *file);
	uint64_t number, ignored;

	ptx_next(&p->lexer);
	if (!file || !ptx_unsigned_constant(p, &number, UINT32_MAX, "the file number"))
		return false;
	if (p->lexer.token.kind != PTX_STRING)
		return ptx_unexpected(p, "a file name");
	file->number = (unsigned)number;
	if (!(file->name = ptx_take_text(p)))
		return false;
	while (ptx_accept(p, ','))
		if (!ptx_unsigned_constant(p, &ignored, UINT64_MAX, "the number"))
			return false;
	file->next = p->module->files;
	p->module->files = file;
	return true;
}

/* .section .debug_info { ... }: debug information of the original compiler; .loc is kept instead */
static bool section_directive(struct ptx_parser *p)
{
	ptx_next(&p->lexer);
	while (p->lexer.token.kind != PTX_END && !ptx_is_punct(p, '{'))
		ptx_next(&p->lexer);
	while (p->lexer.token.kind != PTX_END && !ptx_is_punct(p, '}'))
		ptx_next(&p->lexer);
	return ptx_expect(p, '}');
}

/* "nounroll" (PTX ISA 12.1): of the file, of a function, or of the loop whose header this is. Other
 * pragmas are hints to one release of ptxas. */
static void pragma(struct ptx_parser *p, const struct ptx_token *t)
{
	static const char nounroll[] = "nounroll";

	if (t->length != strlen(nounroll) || memcmp(t->text, nounroll, t->length))
		return;
	if (!p->function && p->rolled)
		*p->rolled = true;
	else if (p->header)
		p->header->rolled = true;
}

static bool pragma_directive(struct ptx_parser *p)
{
	do {
		ptx_next(&p->lexer);
		if (p->lexer.token.kind != PTX_STRING)
			return ptx_unexpected(p, "a string");
		pragma(p, &p->lexer.token);
		ptx_next(&p->lexer);
	} while (ptx_is_punct(p, ','));
	return ptx_expect(p, ';');
}

/* .loc 1 12 3 {, function_name label {+ n}, inlined_at 1 5 7}: the innermost place is kept. */
static bool loc_directive(struct ptx_parser *p)
{
	uint64_t n[3] = {0};
	struct ptx_statement *s = ptx_new(p, sizeof *s);

	ptx_next(&p->lexer);
	for (int i = 0; i < 3; i++) {
		if (p->lexer.token.kind != PTX_INT) {
			if (i == 2) /* the column may be missing */
				break;
			return ptx_unexpected(p, "a number");
		}
		n[i] = p->lexer.token.value;
		ptx_next(&p->lexer);
	}
	unsigned line = p->lexer.token.line;
	bool extra = ptx_is_punct(p, ',');
	while (extra && p->lexer.token.kind != PTX_END && p->lexer.token.line == line)
		ptx_next(&p->lexer);
	if (!s || !p->function)
		return s != NULL;
	s->kind = PTX_S_LOC;
	s->loc_file = (unsigned)n[0];
	s->loc_line = (unsigned)n[1];
	s->loc_column = (unsigned)n[2];
	p->module->has_loc = true;
	ptx_append(p, s);
	return true;
}

bool ptx_pragma_or_loc(struct ptx_parser *p, bool *done)
{
	*done = true;
	if (ptx_is_dot(p, "loc"))
		return loc_directive(p);
	if (ptx_is_dot(p, "pragma"))
		return pragma_directive(p);
	if (ptx_is_dot(p, "file"))
		return file_directive(p);
	if (ptx_is_dot(p, "section"))
		return section_directive(p);
	*done = false;
	return true;
}

/* .alias name, target; */
static bool alias(struct ptx_parser *p)
{
	struct ptx_alias *a = ptx_new(p, sizeof *a);

	ptx_next(&p->lexer);
	if (!a || p->lexer.token.kind != PTX_NAME)
		return ptx_unexpected(p, "a function's name");
	a->line = p->lexer.token.line;
	a->column = p->lexer.token.column;
	a->alias = ptx_find(p->module, p->lexer.token.text, p->lexer.token.length);
	if (!a->alias || a->alias->kind != PTX_FUNCTION)
		return ptx_syntax(&p->lexer, ".alias of a function that is not declared");
	ptx_next(&p->lexer);
	if (!ptx_expect(p, ','))
		return false;
	if (p->lexer.token.kind != PTX_NAME)
		return ptx_unexpected(p, "a function's name");
	a->target = ptx_take_text(p);
	a->next = p->module->aliases;
	p->module->aliases = a;
	return ptx_expect(p, ';');
}

static bool is_name(const struct ptx_token *t, const char *name)
{
	return t->length == strlen(name) && !memcmp(t->text, name, t->length);
}

/* The number that starts at `text`; `end`: behind it. */
static unsigned digits(const char *text, const char **end)
{
	unsigned n = 0;

	for (; isdigit((unsigned char)*text) && n < 10000; text++)
		n = 10 * n + (unsigned)(*text - '0');
	*end = text;
	return n;
}

/* 64 for 6.4 */
static unsigned version_of(const struct ptx_token *t)
{
	const char *end;
	unsigned major = digits(t->text, &end);

	return 10 * major + (*end == '.' ? digits(end + 1, &end) : 0);
}

static bool header(struct ptx_parser *p, bool *done)
{
	struct ptx_lexer *l = &p->lexer;
	const char *end;

	*done = true;
	if (ptx_accept_dot(p, "version")) {
		if (l->token.kind != PTX_FLOAT && l->token.kind != PTX_INT)
			return ptx_unexpected(p, "a version");
		p->module->version = version_of(&l->token);
		ptx_next(l);
		return true;
	}
	if (ptx_accept_dot(p, "target")) {
		do {
			if (l->token.kind != PTX_NAME)
				return ptx_unexpected(p, "a target");
			if (l->token.length > 3 && !memcmp(l->token.text, "sm_", 3))
				p->module->machine = digits(l->token.text + 3, &end);
			p->module->independent |= is_name(&l->token, "texmode_independent");
			ptx_next(l);
		} while (ptx_accept(p, ','));
		return true;
	}
	if (ptx_accept_dot(p, "address_size")) {
		if (l->token.kind != PTX_INT || l->token.value != 64)
			return ptx_unexpected(p, "64 (32-bit PTX is not supported)");
		ptx_next(l);
		return true;
	}
	*done = false;
	return true;
}

static bool directive(struct ptx_parser *p)
{
	struct ptx_symbol linkage = {0};
	bool done;

	if (!header(p, &done) || done)
		return !p->lexer.failed;
	if (!ptx_pragma_or_loc(p, &done) || done)
		return !p->lexer.failed;
	if (ptx_is_dot(p, "alias"))
		return alias(p);
	for (;;) {
		bool *flag = ptx_is_dot(p, "visible")  ? &linkage.is_visible
			     : ptx_is_dot(p, "extern") ? &linkage.is_extern
			     : ptx_is_dot(p, "weak")   ? &linkage.is_weak
			     : ptx_is_dot(p, "common") ? &linkage.is_common
						       : NULL;
		if (!flag)
			break;
		*flag = true;
		ptx_next(&p->lexer);
	}
	if (ptx_is_dot(p, "entry") || ptx_is_dot(p, "func"))
		return ptx_function_directive(p, &linkage, ptx_is_dot(p, "entry"));
	if (ptx_is_space(p) && !ptx_is_dot(p, "reg"))
		return ptx_declaration(p, &linkage);
	return ptx_unexpected(p, "a directive");
}

static void start(struct ptx_module *module, const char *file, size_t size)
{
	module->file = file;
	module->arena.limit = (size_t)1 << 20;
	/* A statement of a few characters makes at most some hundred bytes. */
	module->arena.limit += size > SIZE_MAX / 512 ? SIZE_MAX / 2 : size * 256;
	module->address_size = 64;
	if (!module->last_function)
		module->last_function = &module->functions;
}

bool ptx_parse(struct ptx_module *module, const char *file, const char *text, size_t size,
	       const struct tally_ptx_part *part, struct tally_error *error)
{
	struct ptx_parser p = {.module = module, .rolled = &module->rolled};

	start(module, file, part ? part->bytes : size);
	if (part)
		ptx_lexer_start_part(&p.lexer, file, part, error);
	else
		ptx_lexer_start(&p.lexer, file, text, size, error);
	if (!ptx_is_dot(&p, "version"))
		return ptx_unexpected(&p, "'.version' (is this PTX?)");
	while (p.lexer.token.kind != PTX_END)
		if (!directive(&p))
			return false;
	return !p.lexer.failed;
}

bool ptx_parse_body(struct ptx_module *module, struct ptx_function *function_, const char *file,
		    const char *text, size_t size, struct tally_error *error)
{
	struct ptx_parser p = {.module = module, .function = function_};

	start(module, file, size);
	ptx_lexer_start(&p.lexer, file, text, size, error);
	function_->has_body = true;
	if (!ptx_block(&p))
		return false;
	if (p.lexer.token.kind != PTX_END)
		return ptx_unexpected(&p, "a statement");
	return !p.lexer.failed && ptx_labels_defined(&p);
}
