/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a PTX file: types, scopes, register ranges. */
#include <ctype.h>
#include <string.h>

#include "frontend/ptx/ptx.h"

static const struct {
	const char *name;
	unsigned bits;
	enum ptx_kind kind;
} types[] = {{"", 0, PTX_OTHER},
#define T(name, bits, kind) {#name, bits, PTX_##kind},
	     PTX_TYPES(T)
#undef T
};

enum ptx_type ptx_type_find(const char *text, size_t length)
{
	for (size_t i = 1; i < sizeof types / sizeof *types; i++)
		if (strlen(types[i].name) == length && !memcmp(types[i].name, text, length))
			return (enum ptx_type)i;
	return PTX_NO_TYPE;
}

const char *ptx_type_name(enum ptx_type type)
{
	return types[type].name;
}

unsigned ptx_type_bits(enum ptx_type type)
{
	return types[type].bits;
}

enum ptx_kind ptx_type_kind(enum ptx_type type)
{
	return types[type].kind;
}

bool ptx_type_is_opaque(enum ptx_type type)
{
	return type == PTX_texref || type == PTX_samplerref || type == PTX_surfref;
}

bool ptx_has(const struct ptx_statement *s, const char *modifier)
{
	for (unsigned i = 0; i < s->modifiers; i++)
		if (!strcmp(s->modifier[i], modifier))
			return true;
	return false;
}

static unsigned bucket_of(const char *name, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619u;
	return (hash ^ hash >> 15) % PTX_BUCKETS;
}

static struct ptx_symbol *find_exact(struct ptx_module *module, const char *name, size_t length)
{
	struct ptx_symbol *s = module->bucket[bucket_of(name, length)];

	while (s && (strlen(s->name) != length || memcmp(s->name, name, length)))
		s = s->hash_next;
	return s;
}

struct ptx_symbol *ptx_add(struct ptx_module *module, const char *name, size_t length,
			   enum ptx_symbol_kind kind, unsigned depth)
{
	struct ptx_symbol *s = ptx_arena_alloc(&module->arena, sizeof *s);
	struct ptx_symbol **link = &module->bucket[bucket_of(name, length)];

	if (!s || !(s->name = ptx_arena_text(&module->arena, name, length)))
		return NULL;
	s->kind = kind;
	s->vector = 1;
	s->elements = 1;
	s->depth = depth;
	/* Inner scopes first, so that the first hit is the visible one. */
	while (*link && (*link)->depth > depth)
		link = &(*link)->hash_next;
	s->hash_next = *link;
	*link = s;
	s->scope_next = module->scope[depth];
	module->scope[depth] = s;
	return s;
}

void ptx_assign(struct ptx_symbol *symbol, const struct ptx_symbol *common)
{
	struct ptx_symbol old = *symbol;

	*symbol = *common;
	symbol->name = old.name;
	symbol->depth = old.depth;
	symbol->hash_next = old.hash_next;
	symbol->scope_next = old.scope_next;
	symbol->next = old.next;
	symbol->elements = 1;
	symbol->vector = common->vector ? common->vector : 1;
}

/* %r12 of `.reg .b32 %r<100>` becomes a register of its own when it is first named. */
struct ptx_symbol *ptx_find(struct ptx_module *module, const char *name, size_t length)
{
	struct ptx_symbol *s = find_exact(module, name, length);
	size_t prefix = length;
	uint64_t number = 0;

	if (s && s->kind != PTX_RANGE)
		return s;
	while (prefix && isdigit((unsigned char)name[prefix - 1]))
		prefix--;
	if (prefix == length || length - prefix > 9 || (name[prefix] == '0' && length - prefix > 1))
		return NULL;
	for (size_t i = prefix; i < length; i++)
		number = number * 10 + (unsigned)(name[i] - '0');
	struct ptx_symbol *range = find_exact(module, name, prefix);
	while (range && (range->kind != PTX_RANGE || number >= range->range ||
			 strlen(range->name) != prefix || memcmp(range->name, name, prefix)))
		range = range->hash_next;
	if (!range || !(s = ptx_add(module, name, length, PTX_VARIABLE, range->depth)))
		return NULL;
	s->space = range->space;
	s->type = range->type;
	s->vector = range->vector;
	s->line = range->line;
	s->column = range->column;
	return s;
}

bool ptx_scope_open(struct ptx_module *module)
{
	if (module->depth == PTX_MAX_DEPTH)
		return false;
	module->depth++;
	return true;
}

static void unlink_symbol(struct ptx_module *module, struct ptx_symbol *s)
{
	struct ptx_symbol **link = &module->bucket[bucket_of(s->name, strlen(s->name))];

	while (*link && *link != s)
		link = &(*link)->hash_next;
	if (*link)
		*link = s->hash_next;
}

const struct ptx_symbol *ptx_undefined_label(const struct ptx_module *module)
{
	const struct ptx_symbol *s = module->scope[module->depth];

	while (s && (s->kind != PTX_LABEL || s->defined))
		s = s->scope_next;
	return s;
}

/* Takes the names of the innermost scope out of the table; operands keep their symbols. */
bool ptx_scope_close(struct ptx_module *module)
{
	struct ptx_symbol *symbols = module->scope[module->depth];

	for (struct ptx_symbol *s = symbols; s; s = s->scope_next)
		unlink_symbol(module, s);
	module->scope[module->depth] = NULL;
	module->depth--;
	for (struct ptx_symbol *s = symbols; s; s = s->scope_next) {
		if (s->kind != PTX_LABEL || s->defined || s->from)
			continue;
		s->from = find_exact(module, s->name, strlen(s->name));
		if (s->from && s->from->kind == PTX_LABEL)
			continue;
		s->from = ptx_add(module, s->name, strlen(s->name), PTX_LABEL, module->depth);
		if (!s->from)
			return false;
		s->from->line = s->line;
		s->from->column = s->column;
	}
	return true;
}

void ptx_module_free(struct ptx_module *module)
{
	ptx_arena_free(&module->arena);
}
