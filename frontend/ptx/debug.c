/* SPDX-License-Identifier: Apache-2.0 */
/* .file and .loc as LLVM's line tables: errors and debuggers name the CUDA source. */
#include <string.h>

#include "frontend/ptx/lift.h"

void ptx_debug_start(struct ptx_lift *l)
{
	if (!l->ptx->has_loc)
		return;
	l->debug = LLVMCreateDIBuilder(l->module);
	l->debug_file = LLVMDIBuilderCreateFile(l->debug, l->file, strlen(l->file), "", 0);
	l->debug_unit = LLVMDIBuilderCreateCompileUnit(
		l->debug, LLVMDWARFSourceLanguageC_plus_plus, l->debug_file, "tally", 5, 1, "", 0,
		0, "", 0, LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
	LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
			  LLVMValueAsMetadata(LLVMConstInt(l->i32, LLVMDebugMetadataVersion(), 0)));
}

static LLVMMetadataRef file_of(struct ptx_lift *l, unsigned number)
{
	const struct ptx_file_name *f = l->ptx->files;

	while (f && f->number != number)
		f = f->next;
	return f ? LLVMDIBuilderCreateFile(l->debug, f->name, strlen(f->name), "", 0)
		 : l->debug_file;
}

static void set_line(struct ptx_lift *l, LLVMMetadataRef place)
{
	LLVMSetCurrentDebugLocation2(l->builder, place);
	LLVMSetCurrentDebugLocation2(l->entry_builder, NULL);
}

void ptx_debug_function(struct ptx_lift *l, const struct ptx_function *f)
{
	const struct ptx_statement *loc = f->first;
	LLVMMetadataRef file, type;

	l->debug_scope = NULL;
	if (!l->debug)
		return;
	set_line(l, NULL);
	while (loc && loc->kind != PTX_S_LOC)
		loc = loc->next;
	if (!loc)
		return;
	file = file_of(l, loc->loc_file);
	type = LLVMDIBuilderCreateSubroutineType(l->debug, file, NULL, 0, LLVMDIFlagZero);
	l->debug_scope = LLVMDIBuilderCreateFunction(l->debug, file, f->name, strlen(f->name), "",
						     0, file, loc->loc_line, type, !f->is_entry, 1,
						     loc->loc_line, LLVMDIFlagZero, 1);
	LLVMSetSubprogram(l->value, l->debug_scope);
	/* A call without a place would be rejected in a function that has lines. */
	set_line(l, LLVMDIBuilderCreateDebugLocation(l->context, loc->loc_line, 0, l->debug_scope,
						     NULL));
}

void ptx_debug_line(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMMetadataRef scope = l->debug_scope;

	if (!scope)
		return;
	scope = LLVMDIBuilderCreateLexicalBlockFile(l->debug, scope, file_of(l, s->loc_file), 0);
	set_line(l, LLVMDIBuilderCreateDebugLocation(l->context, s->loc_line, s->loc_column, scope,
						     NULL));
}

void ptx_debug_end(struct ptx_lift *l)
{
	if (!l->debug)
		return;
	LLVMDIBuilderFinalize(l->debug);
	LLVMDisposeDIBuilder(l->debug);
	l->debug = NULL;
}
