/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies from libraries of textual IR. LLVM reads a text of what is needed alone: reading all of a
 * library for a few of its functions takes longer than a small kernel.
 */
#include "backends/library.h"

#include <stdlib.h>
#include <string.h>

#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>

#include "base/buffer.h"
#include "base/grow.h"
#include "ir_passes/ir.h"

/* A definition, declaration or variable of a library, or a line that all need (no name). */
struct item {
	const char *from, *to, *name;
	size_t length;
	bool defines, wanted;
};

struct index {
	struct item *items;
	size_t count;
	size_t *table, mask;	  /* 1 + place of the item, by its name */
	size_t *open, open_count; /* wanted, what it names not looked at yet */
	bool failed;
};

static bool begins(const char *at, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - at) >= n && !memcmp(at, word, n);
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '$' || c == '-';
}

static size_t hash(const char *name, size_t length)
{
	uint32_t h = 2166136261u;

	for (size_t k = 0; k < length; k++)
		h = (h ^ (unsigned char)name[k]) * 16777619u;
	return h ^ h >> 15;
}

static struct item *find(const struct index *x, const char *name, size_t length)
{
	for (size_t k = hash(name, length) & x->mask; x->table[k]; k = (k + 1) & x->mask) {
		struct item *i = &x->items[x->table[k] - 1];

		if (i->length == length && !memcmp(i->name, name, length))
			return i;
	}
	return NULL;
}

static void enter(struct index *x, size_t place)
{
	const struct item *i = &x->items[place];
	size_t k = hash(i->name, i->length) & x->mask;

	while (x->table[k])
		k = (k + 1) & x->mask;
	x->table[k] = place + 1;
}

static void add(struct index *x, struct item item)
{
	if (TALLY_GROW(x->items, x->count))
		x->items[x->count++] = item;
	else
		x->failed = true;
}

/* One thing of the module level that starts at the line `from`; returns where the next one may. */
static const char *read_item(struct index *x, const char *from, const char *end)
{
	const char *line_end = memchr(from, '\n', (size_t)(end - from)), *at;
	struct item item = {.from = from, .defines = begins(from, end, "define")};

	if (!line_end)
		line_end = end - 1;
	item.to = line_end + 1;
	if (*from == '\n' || *from == ';')
		return item.to;
	if (item.defines) {
		at = memmem(from, (size_t)(end - from), "\n}\n", 3);
		item.to = at ? at + 3 : end;
	}
	/* A type, metadata, attributes: no name, everybody's. */
	at = item.defines || begins(from, end, "declare") || *from == '@'
		     ? memchr(from, '@', (size_t)(line_end - from))
		     : NULL;
	if (at) {
		item.name = ++at;
		while (at < line_end && is_name(*at))
			at++;
		item.length = (size_t)(at - item.name);
	}
	item.wanted = !item.name;
	add(x, item);
	return item.to;
}

static void open_index(struct index *x, const struct tally_library *library)
{
	size_t slots = 64;

	for (const char *at = library->text; at < library->end;)
		at = read_item(x, at, library->end);
	while (slots < x->count * 2)
		slots *= 2;
	x->mask = slots - 1;
	x->table = calloc(slots, sizeof *x->table);
	x->open = calloc(x->count + 1, sizeof *x->open);
	x->failed |= !x->table || !x->open;
	for (size_t k = 0; !x->failed && k < x->count; k++)
		if (x->items[k].name)
			enter(x, k);
}

static void close_index(struct index *x)
{
	free(x->items);
	free(x->table);
	free(x->open);
}

static void want(struct index *x, struct item *item)
{
	if (!item || item->wanted)
		return;
	item->wanted = true;
	x->open[x->open_count++] = (size_t)(item - x->items);
}

/* All that wanted items name, and what that names. */
static void want_named(struct index *x)
{
	while (x->open_count) {
		const struct item *i = &x->items[x->open[--x->open_count]];
		const char *at = i->from;

		while ((at = memchr(at, '@', (size_t)(i->to - at)))) {
			const char *name = ++at;

			while (at < i->to && is_name(*at))
				at++;
			want(x, find(x, name, (size_t)(at - name)));
		}
	}
}

static bool is_operation(LLVMValueRef function)
{
	return LLVMIsDeclaration(function) && !strncmp(tally_name(function), "tally.", 6);
}

/* Whether anything is left to be defined. */
static bool is_open(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		if (is_operation(function))
			return true;
	return false;
}

/* Marks what `module` declares and the library defines. False when there is nothing. */
static bool want_declared(struct index *x, LLVMModuleRef module)
{
	bool any = false;

	TALLY_EACH_FUNCTION (module, function) {
		size_t length;
		const char *name = LLVMGetValueName2(function, &length);
		struct item *item;

		if (!is_operation(function))
			continue;
		item = find(x, name, length);
		if (!item || !item->defines)
			continue;
		want(x, item);
		any = true;
	}
	return any;
}

static LLVMModuleRef parse(const struct index *x, LLVMContextRef context, const char *name,
			   struct tally_error *error)
{
	struct tally_buffer text = {0};
	LLVMModuleRef module = NULL;
	char *message = NULL;

	for (size_t k = 0; k < x->count; k++)
		if (x->items[k].wanted)
			tally_buffer_append(&text, x->items[k].from,
					    (size_t)(x->items[k].to - x->items[k].from));
	if (text.failed) {
		tally_fail(error, "out of memory");
	} else if (LLVMParseIRInContext(
			   context,
			   LLVMCreateMemoryBufferWithMemoryRange(text.data, text.size, name, 1),
			   &module, &message)) {
		tally_fail(error, "%s: %s", name, message);
		LLVMDisposeMessage(message);
		module = NULL;
	}
	tally_buffer_free(&text);
	return module;
}

/* LLVM numbers what has no name when it emits it, and may give one number twice. */
static void name_unnamed(LLVMModuleRef library)
{
	static const char name[] = "tally.unnamed";

	TALLY_EACH_FUNCTION (library, function)
		if (!*tally_name(function)) {
			LLVMSetValueName2(function, name, strlen(name));
			LLVMSetLinkage(function, LLVMInternalLinkage);
		}
	TALLY_EACH_GLOBAL (library, global)
		if (!*tally_name(global)) {
			LLVMSetValueName2(global, name, strlen(name));
			LLVMSetLinkage(global, LLVMInternalLinkage);
		}
}

bool tally_lower_link_module(LLVMModuleRef module, LLVMModuleRef library, bool inlined,
			     const char *name, struct tally_error *error)
{
	LLVMSetTarget(library, LLVMGetTarget(module));
	LLVMSetDataLayout(library, LLVMGetDataLayoutStr(module));
	name_unnamed(library);
	TALLY_EACH_FUNCTION (library, function) {
		if (LLVMIsDeclaration(function) || LLVMGetLinkage(function) == LLVMInternalLinkage)
			continue;
		LLVMSetLinkage(function, LLVMLinkOnceODRLinkage);
		if (inlined)
			tally_add_attribute(function, "alwaysinline", 0);
	}
	if (LLVMLinkModules2(module, library))
		return tally_fail(error, "cannot link %s", name);
	return true;
}

bool tally_lower_link_library(LLVMModuleRef module, const struct tally_library *library,
			      struct tally_error *error)
{
	struct index x = {0};
	LLVMModuleRef needed = NULL;
	bool any = false;

	if (!is_open(module))
		return true;
	open_index(&x, library);
	if (!x.failed && want_declared(&x, module)) {
		any = true;
		want_named(&x);
		needed = parse(&x, LLVMGetModuleContext(module), library->name, error);
	}
	if (x.failed)
		tally_fail(error, "out of memory");
	any |= x.failed;
	close_index(&x);
	if (!any)
		return true;
	return needed && tally_lower_link_module(module, needed, true, library->name, error);
}
