/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces calls of mapped functions: the rows in use are printed as one IR text, linked, inlined.
 */
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "frontend/bitcode/mapping.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

/* What the replacement of FUNCTION is called until it is inlined. */
#define PREFIX "neutral."

static const struct bitcode_table *const tables[] = {
	&bitcode_table_nvvm,	&bitcode_table_nvvm_half, &bitcode_table_libdevice,
	&bitcode_table_amdgcn,	&bitcode_table_wave32,	  &bitcode_table_ocml,
	&bitcode_table_runtime,
};

const struct bitcode_table *bitcode_table_at(size_t index)
{
	return index < sizeof(tables) / sizeof(*tables) ? tables[index] : NULL;
}

static const struct bitcode_mapping **sorted;
static size_t sorted_count;

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct bitcode_mapping *const *)a)->name,
		      (*(const struct bitcode_mapping *const *)b)->name);
}

static bool make_index(void)
{
	size_t count = 0, n = 0;

	if (sorted)
		return true;
	for (size_t t = 0; bitcode_table_at(t); t++)
		count += bitcode_table_at(t)->count;
	sorted = malloc(count * sizeof(*sorted));
	if (!sorted)
		return false;
	for (size_t t = 0; bitcode_table_at(t); t++)
		for (size_t i = 0; i < bitcode_table_at(t)->count; i++)
			sorted[n++] = &bitcode_table_at(t)->rows[i];
	sorted_count = count;
	qsort(sorted, count, sizeof(*sorted), by_name);
	return true;
}

const struct bitcode_mapping *bitcode_mapping_find(const char *name)
{
	const struct bitcode_mapping key = {.name = name}, *key_pointer = &key, **found;

	if (!make_index())
		return NULL;
	found = bsearch(&key_pointer, sorted, sorted_count, sizeof(*sorted), by_name);
	return found ? *found : NULL;
}

/* Whether the row means lanes of a wavefront of 32, and so does not hold for one of 64. */
static bool needs_wave32(const struct bitcode_mapping *row)
{
	const struct bitcode_table *table = &bitcode_table_wave32;

	return row >= table->rows && row < table->rows + table->count;
}

/* The row that holds for this function in this module, or NULL. */
static const struct bitcode_mapping *row_for(struct lift *lift, LLVMValueRef function)
{
	const struct bitcode_mapping *row;

	if (!LLVMIsDeclaration(function) || !LLVMGetFirstUse(function))
		return NULL;
	row = bitcode_mapping_find(bitcode_name(function));
	return row && lift->wave64 && needs_wave32(row) ? NULL : row;
}

bool bitcode_mapping_is_library(const char *name)
{
	static const char *const prefixes[] = {"__nv_", "__ocml_", "__ockl_", "__assert"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return bitcode_mapping_find(name) != NULL;
	return false;
}

static const char *type_text(char code)
{
	static const char *const texts[128] = {
		['v'] = "void",
		['b'] = "i1",
		['c'] = "i8",
		['s'] = "i16",
		['i'] = "i32",
		['l'] = "i64",
		['h'] = "half",
		['y'] = "bfloat",
		['f'] = "float",
		['d'] = "double",
		['p'] = "ptr",
		['H'] = "<2 x half>",
		['Y'] = "<2 x bfloat>",
		['F'] = "<2 x float>",
		['I'] = "<2 x i16>",
		['B'] = "<4 x i8>",
		['G'] = "ptr addrspace(1)",
		['g'] = "ptr addrspace(1)",
		['q'] = "ptr addrspace(3)",
		['S'] = "ptr addrspace(3)",
		['K'] = "ptr addrspace(4)",
		['P'] = "ptr addrspace(5)",
	};

	return texts[(unsigned char)code & 127];
}

void bitcode_type_print(struct tally_buffer *out, const char **code)
{
	if (**code != '{') {
		tally_buffer_print(out, "%s", type_text(*(*code)++));
		return;
	}
	tally_buffer_print(out, "{");
	for (++*code; **code != '}'; ++*code)
		tally_buffer_print(out, "%s%s", (*code)[-1] == '{' ? "" : ", ", type_text(**code));
	++*code;
	tally_buffer_print(out, "}");
}

/* Appends a definition of `row` named `name` as IR text. */
static void print_mapping(struct tally_buffer *out, const struct bitcode_mapping *row,
			  const char *name)
{
	const char *code = row->signature, *arguments;
	bool is_call = !strncmp(row->body, "tally.", 6) || !strncmp(row->body, "llvm.", 5);
	bool is_void = *code == 'v';

	tally_buffer_print(out, "define ");
	bitcode_type_print(out, &code);
	arguments = code;
	tally_buffer_print(out, " @\"%s\"(", name);
	for (char letter = 'a'; *code; letter++) {
		tally_buffer_print(out, "%s", letter == 'a' ? "" : ", ");
		bitcode_type_print(out, &code);
		tally_buffer_print(out, " %%%c", letter);
	}
	tally_buffer_print(out, ") alwaysinline convergent nounwind {\n\t");
	if (is_call) {
		code = row->signature;
		tally_buffer_print(out, is_void ? "call " : "%%r = call ");
		bitcode_type_print(out, &code);
		tally_buffer_print(out, " @%s(", row->body);
		code = arguments;
		for (char letter = 'a'; *code; letter++) {
			tally_buffer_print(out, "%s", letter == 'a' ? "" : ", ");
			bitcode_type_print(out, &code);
			tally_buffer_print(out, " %%%c", letter);
		}
		tally_buffer_print(out, ")\n\tret ");
	} else {
		tally_buffer_print(out, "%s\n\tret ", row->body);
	}
	code = row->signature;
	bitcode_type_print(out, &code);
	tally_buffer_print(out, is_void ? "\n}\n" : " %%r\n}\n");
}

/* Declares the operations that `text` calls, each once. LLVM's own intrinsics need no declaration.
 */
static void print_declarations(struct tally_buffer *out, const char *text)
{
	struct tally_buffer seen = {0};

	for (const char *p = text; (p = strstr(p, "@tally."));) {
		char name[96], key[100];
		size_t n = strcspn(++p, "( \n");
		const struct tally_operation *operation;
		const char *code;

		if (n >= sizeof(name))
			continue;
		memcpy(name, p, n);
		name[n] = '\0';
		snprintf(key, sizeof(key), "@%s(", name);
		operation = tally_operation_find(name);
		if (!operation || (seen.data && strstr(seen.data, key)))
			continue;
		tally_buffer_print(&seen, "%s", key);
		code = operation->signature;
		tally_buffer_print(out, "declare ");
		bitcode_type_print(out, &code);
		tally_buffer_print(out, " @%s(", name);
		for (int k = 0; *code; k++) {
			tally_buffer_print(out, "%s", k ? ", " : "");
			bitcode_type_print(out, &code);
		}
		tally_buffer_print(out, ")\n");
	}
	tally_buffer_free(&seen);
}

static bool link_text(struct lift *lift, struct tally_buffer *text)
{
	struct tally_buffer declarations = {0};
	LLVMMemoryBufferRef memory;
	LLVMModuleRef library;
	char *message = NULL;
	bool failed;

	print_declarations(&declarations, text->data);
	tally_buffer_append(text, declarations.data, declarations.size);
	failed = text->failed || declarations.failed;
	tally_buffer_free(&declarations);
	if (failed)
		return tally_fail_at(lift->error, lift->options->file, 0, 0, "out of memory");
	memory = LLVMCreateMemoryBufferWithMemoryRangeCopy(text->data, text->size, "mapping");
	if (LLVMParseIRInContext(lift->context, memory, &library, &message)) {
		tally_fail_at(lift->error, lift->options->file, 0, 0,
			      "internal: the mapping tables do not parse: %s", message);
		LLVMDisposeMessage(message);
		return false;
	}
	LLVMSetDataLayout(library, TALLY_DATA_LAYOUT);
	TALLY_EACH_FUNCTION (library, f)
		if (tally_operation_find(bitcode_name(f)))
			tally_operation_attributes(f, tally_operation_find(bitcode_name(f)));
	if (LLVMLinkModules2(lift->module, library))
		return tally_fail_at(lift->error, lift->options->file, 0, 0,
				     "internal: the mapping tables do not link");
	return true;
}

static bool replace_uses(struct lift *lift)
{
	TALLY_EACH_FUNCTION (lift->module, function) {
		const char *name = bitcode_name(function);
		char *have, *want, replacement[300];
		LLVMValueRef neutral;

		if (!row_for(lift, function))
			continue;
		snprintf(replacement, sizeof(replacement), PREFIX "%s", name);
		neutral = LLVMGetNamedFunction(lift->module, replacement);
		if (LLVMGlobalGetValueType(neutral) != LLVMGlobalGetValueType(function)) {
			have = LLVMPrintTypeToString(LLVMGlobalGetValueType(function));
			want = LLVMPrintTypeToString(LLVMGlobalGetValueType(neutral));
			tally_fail_at(lift->error, lift->options->file, 0, 0,
				      "function '%s' has type '%s', but '%s' is known", name, have,
				      want);
			LLVMDisposeMessage(have);
			LLVMDisposeMessage(want);
			return false;
		}
		LLVMReplaceAllUsesWith(function, neutral);
		LLVMSetLinkage(neutral, LLVMInternalLinkage);
		LLVMDeleteFunction(function);
	}
	return true;
}

bool bitcode_map_calls(struct lift *lift)
{
	struct tally_buffer text = {0};
	bool ok = true;

	TALLY_EACH_FUNCTION (lift->module, function) {
		const struct bitcode_mapping *row = row_for(lift, function);
		char name[300];

		if (!row)
			continue;
		snprintf(name, sizeof(name), PREFIX "%s", row->name);
		print_mapping(&text, row, name);
	}
	if (text.size)
		ok = link_text(lift, &text) && replace_uses(lift);
	tally_buffer_free(&text);
	return ok;
}
