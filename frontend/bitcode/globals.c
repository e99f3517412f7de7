/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: into the contract's address spaces and linkages. */
#include <llvm-c/Comdat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "frontend/bitcode/mapping.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

/* Lists that clang leaves for its own back half; they would keep dead things alive. */
static const char *const compiler_lists[] = {"llvm.used", "llvm.compiler.used",
					     "llvm.embedded.module", "llvm.global_dtors"};

/* Library functions that the tables map, or special.c lifts, whether they come with a body or not.
 */
static bool is_replaced(const char *name)
{
	return bitcode_mapping_is_library(name) || !strcmp(name, "__atomic_work_item_fence") ||
	       !strncmp(name, "__ockl_printf_", 14);
}

bool bitcode_drop_libraries(struct lift *lift)
{
	TALLY_EACH_FUNCTION (lift->module, function) {
		LLVMValueRef declared;
		char name[160];

		if (LLVMIsDeclaration(function) || !is_replaced(bitcode_name(function)))
			continue;
		/* A declaration of the same name takes its place. Mapped names are short. */
		snprintf(name, sizeof(name), "%s", bitcode_name(function));
		LLVMSetValueName2(function, "", 0);
		declared = LLVMAddFunction(lift->module, name, LLVMGlobalGetValueType(function));
		LLVMReplaceAllUsesWith(function, declared);
		LLVMDeleteFunction(function);
	}
	return true;
}

/* Address space 0 means global memory for a CUDA variable: a twin in 1 takes its place. */
static LLVMValueRef move_to_global(struct lift *lift, LLVMValueRef global)
{
	LLVMTypeRef type = LLVMGlobalGetValueType(global);
	LLVMValueRef twin = LLVMAddGlobalInAddressSpace(lift->module, type, "", TALLY_AS_GLOBAL);
	/* The host finds it by this name, which it may only take when the other is gone. */
	char *name = strdup(bitcode_name(global));

	LLVMSetInitializer(twin, LLVMGetInitializer(global));
	LLVMSetLinkage(twin, LLVMGetLinkage(global));
	LLVMSetGlobalConstant(twin, LLVMIsGlobalConstant(global));
	LLVMSetUnnamedAddress(twin, LLVMGetUnnamedAddress(global));
	LLVMSetAlignment(twin, LLVMGetAlignment(global));
	LLVMSetExternallyInitialized(twin, LLVMIsExternallyInitialized(global));
	LLVMReplaceAllUsesWith(global, LLVMConstAddrSpaceCast(twin, LLVMTypeOf(global)));
	LLVMDeleteGlobal(global);
	if (name)
		LLVMSetValueName2(twin, name, strlen(name));
	free(name);
	return twin;
}

static void set_shared(LLVMValueRef global)
{
	LLVMTypeRef type = LLVMGlobalGetValueType(global);
	bool dynamic = LLVMGetTypeKind(type) == LLVMArrayTypeKind && !LLVMGetArrayLength2(type);

	if (dynamic) {
		LLVMSetInitializer(global, NULL);
		LLVMSetLinkage(global, LLVMExternalLinkage);
	} else if (LLVMGetInitializer(global)) {
		LLVMSetInitializer(global, LLVMGetUndef(type));
		LLVMSetLinkage(global, LLVMInternalLinkage);
	}
}

/*
 * AMD's link-time compiler has put a kernel's shared variables into one with a fixed address in
 * 32 bits, and a name that looks like a list for the compiler. It is a variable like any other.
 */
static void undo_lds_layout(struct lift *lift, LLVMValueRef global)
{
	const char *kind = "absolute_symbol", *name = bitcode_name(global);
	char renamed[300];

	LLVMGlobalEraseMetadata(
		global, LLVMGetMDKindIDInContext(lift->context, kind, (unsigned)strlen(kind)));
	if (strncmp(name, "llvm.amdgcn.", 12))
		return;
	snprintf(renamed, sizeof(renamed), "%s", name + strlen("llvm."));
	LLVMSetValueName2(global, renamed, strlen(renamed));
}

static void set_linkage(LLVMValueRef global)
{
	LLVMLinkage linkage = LLVMGetLinkage(global);

	if (LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == TALLY_AS_SHARED)
		set_shared(global);
	else if (linkage != LLVMInternalLinkage && linkage != LLVMPrivateLinkage)
		LLVMSetLinkage(global, LLVMExternalLinkage);
	LLVMSetComdat(global, NULL);
	LLVMSetVisibility(global, LLVMDefaultVisibility);
	LLVMSetSection(global, "");
	/* externally_initialized stays: the host writes even what is constant here. */
}

static bool drop_aliases(struct lift *lift)
{
	LLVMValueRef alias;

	if (LLVMGetFirstGlobalIFunc(lift->module))
		return tally_fail_at(lift->error, lift->options->file, 0, 0,
				     "ifunc '%s' cannot be lifted",
				     bitcode_name(LLVMGetFirstGlobalIFunc(lift->module)));
	while ((alias = LLVMGetFirstGlobalAlias(lift->module))) {
		LLVMReplaceAllUsesWith(alias, LLVMAliasGetAliasee(alias));
		LLVMDeleteGlobal(alias);
	}
	return true;
}

bool bitcode_globals(struct lift *lift)
{
	LLVMValueRef constructors = LLVMGetNamedGlobal(lift->module, "llvm.global_ctors");

	if (constructors && LLVMGetInitializer(constructors) &&
	    LLVMGetNumOperands(LLVMGetInitializer(constructors)))
		return tally_fail_at(lift->error, lift->options->file, 0, 0,
				     "device variables with constructors cannot be lifted");
	if (constructors)
		LLVMDeleteGlobal(constructors);
	for (size_t i = 0; i < sizeof(compiler_lists) / sizeof(*compiler_lists); i++) {
		LLVMValueRef list = LLVMGetNamedGlobal(lift->module, compiler_lists[i]);

		if (list)
			LLVMDeleteGlobal(list);
	}
	if (!drop_aliases(lift))
		return false;
	TALLY_EACH_GLOBAL (lift->module, global) {
		LLVMValueRef kept = global;

		/* clang's name for the compilation; its host half looks for nothing of it. */
		if (!strncmp(bitcode_name(global), "__hip_cuid_", 11) && !LLVMGetFirstUse(global)) {
			LLVMDeleteGlobal(global);
			continue;
		}
		if (LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == TALLY_AS_GENERIC &&
		    LLVMGetInitializer(global))
			kept = move_to_global(lift, global);
		if (lift->vendor == BITCODE_AMD)
			undo_lds_layout(lift, kept);
		set_linkage(kept);
	}
	return true;
}
