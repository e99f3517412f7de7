/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of PTX's opaque types (PTX ISA 5.3): LLVM writes them where an annotation says what
 * they are, but for their fields and the texturing mode, which are put into the text.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/contract.h"

/* How LLVM's annotations call what PTX declares. */
static const struct {
	const char *type, *annotation;
} types[] = {{"texref", "texture"}, {"samplerref", "sampler"}, {"surfref", "surface"}};

/* One operand of TALLY_MD_OPAQUE: the variable, its type, its fields as they were written. */
struct opaque {
	LLVMValueRef part[3];
};

enum { MAX_OPAQUE = 1024 };

static unsigned find(LLVMModuleRef module, struct opaque *out)
{
	LLVMValueRef node[MAX_OPAQUE];
	unsigned count = LLVMGetNamedMetadataNumOperands(module, TALLY_MD_OPAQUE), n = 0;

	if (!count || count > MAX_OPAQUE)
		return 0;
	LLVMGetNamedMetadataOperands(module, TALLY_MD_OPAQUE, node);
	for (unsigned i = 0; i < count; i++) {
		if (LLVMGetMDNodeNumOperands(node[i]) != 3)
			continue;
		LLVMGetMDNodeOperands(node[i], out[n].part);
		n += out[n].part[0] != NULL; /* a variable that was taken out is not there */
	}
	return n;
}

void tally_cuda_textures(LLVMModuleRef module)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	LLVMValueRef one = LLVMConstInt(LLVMInt32TypeInContext(context), 1, 0);
	struct opaque list[MAX_OPAQUE];
	unsigned count = find(module, list), length;

	for (unsigned i = 0; i < count; i++) {
		const char *type = LLVMGetMDString(list[i].part[1], &length);
		size_t k = 0;

		while (k + 1 < sizeof types / sizeof *types && strcmp(types[k].type, type))
			k++;
		LLVMMetadataRef annotation[] = {LLVMValueAsMetadata(list[i].part[0]),
						LLVMMDStringInContext2(context, types[k].annotation,
								       strlen(types[k].annotation)),
						LLVMValueAsMetadata(one)};
		LLVMAddNamedMetadataOperand(
			module, "nvvm.annotations",
			LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, annotation, 3)));
	}
}

/* The text from `at` (`length` bytes) becomes `with`. */
static void exchange(struct tally_buffer *out, size_t at, size_t length, const char *with)
{
	struct tally_buffer rest = {0};

	tally_buffer_append(&rest, out->data + at + length, out->size - at - length);
	out->size = at;
	tally_buffer_print(out, "%s", with);
	tally_buffer_append(out, rest.data ? rest.data : "", rest.size);
	out->failed |= rest.failed;
	tally_buffer_free(&rest);
}

/* ".samplerref name = { ... };" with the fields of the source, or none. */
static void set_fields(struct tally_buffer *out, size_t from, const struct opaque *o)
{
	unsigned length;
	size_t name_length;
	const char *name = LLVMGetValueName2(o->part[0], &name_length);
	const char *fields = LLVMGetMDString(o->part[2], &length);
	struct tally_buffer head = {0}, line = {0};
	char *at, *end;

	tally_buffer_print(&head, ".%s %s", LLVMGetMDString(o->part[1], &length), name);
	tally_buffer_print(&line, "%s%s%s", head.data ? head.data : "", *fields ? " = " : "",
			   fields);
	at = head.data ? memmem(out->data + from, out->size - from, head.data, head.size) : NULL;
	while (at && at[head.size] != ';' && at[head.size] != ' ')
		at = strstr(at + 1, head.data);
	end = at ? strchr(at, ';') : NULL;
	if (end && line.data)
		exchange(out, (size_t)(at - out->data), (size_t)(end - at), line.data);
	tally_buffer_free(&head);
	tally_buffer_free(&line);
}

void tally_cuda_texture_text(LLVMModuleRef module, struct tally_buffer *out, size_t from)
{
	static const char target[] = "\n.target ";
	struct opaque list[MAX_OPAQUE];
	unsigned count = find(module, list);
	char *line, *end;

	for (unsigned i = 0; i < count; i++)
		set_fields(out, from, &list[i]);
	if (!LLVMGetNamedMetadata(module, TALLY_MD_INDEPENDENT, strlen(TALLY_MD_INDEPENDENT)))
		return;
	line = memmem(out->data + from, out->size - from, target, strlen(target));
	end = line ? strchr(line + 1, '\n') : NULL;
	if (end)
		exchange(out, (size_t)(end - out->data), 0, ", texmode_independent");
}
