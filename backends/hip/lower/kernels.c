/* SPDX-License-Identifier: Apache-2.0 */
/* Neutral kernels and memory in AMDGPU's form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "backends/hip/lower/hip_lower.h"
#include "ir_passes/ir.h"

enum { KERNEL_CALLING_CONVENTION = 91, MOST_THREADS = 1024 };

static unsigned attribute_kind(const char *name)
{
	return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

/* Pointers among a kernel's arguments are global ones; byval bytes lie in the argument segment. */
static LLVMTypeRef param_type(LLVMContextRef context, LLVMValueRef kernel, unsigned index)
{
	LLVMTypeRef type = LLVMTypeOf(LLVMGetParam(kernel, index));

	if (tally_param_byval(kernel, index))
		return LLVMPointerTypeInContext(context, TALLY_AS_CONSTANT);
	if (LLVMGetTypeKind(type) == LLVMPointerTypeKind &&
	    LLVMGetPointerAddressSpace(type) == TALLY_AS_GENERIC)
		return LLVMPointerTypeInContext(context, TALLY_AS_GLOBAL);
	return type;
}

static LLVMValueRef create_like(LLVMModuleRef module, LLVMValueRef kernel)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	unsigned count = LLVMCountParams(kernel);
	LLVMTypeRef *types = calloc(count + 1, sizeof *types);
	LLVMValueRef made;

	if (!types)
		return NULL;
	for (unsigned k = 0; k < count; k++)
		types[k] = param_type(context, kernel, k);
	made = LLVMAddFunction(module, "",
			       LLVMFunctionType(LLVMVoidTypeInContext(context), types, count, 0));
	free(types);
	tally_copy_attributes(kernel, made, count);
	for (unsigned k = 0; k < count; k++) {
		LLVMTypeRef byval = tally_param_byval(kernel, k);

		if (!byval)
			continue;
		LLVMRemoveEnumAttributeAtIndex(made, k + 1, attribute_kind("byval"));
		LLVMAddAttributeAtIndex(
			made, k + 1,
			LLVMCreateTypeAttribute(context, attribute_kind("byref"), byval));
	}
	return made;
}

/* Moves the blocks; parameters of another type are cast at the entry. */
static void move_body(LLVMValueRef from, LLVMValueRef to)
{
	LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(to));
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
	LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(context, to, "entry"), last = entry;
	LLVMMetadataRef subprogram = LLVMGetSubprogram(from);

	TALLY_EACH_BLOCK (from, block) {
		LLVMMoveBasicBlockAfter(block, last);
		last = block;
	}
	LLVMPositionBuilderAtEnd(builder, entry);
	for (unsigned k = 0; k < LLVMCountParams(to); k++) {
		LLVMValueRef old = LLVMGetParam(from, k), new = LLVMGetParam(to, k);

		if (LLVMTypeOf(new) != LLVMTypeOf(old))
			new = LLVMBuildAddrSpaceCast(builder, new, LLVMTypeOf(old), "");
		LLVMReplaceAllUsesWith(old, new);
	}
	LLVMBuildBr(builder, LLVMGetNextBasicBlock(entry));
	LLVMDisposeBuilder(builder);
	if (subprogram) {
		LLVMSetSubprogram(from, NULL);
		LLVMSetSubprogram(to, subprogram);
	}
}

/* Product of "x,y,z". */
static unsigned long product(const char *text)
{
	unsigned long value = 1;

	for (; *text; text += strspn(text, ",")) {
		char *end;

		value *= strtoul(text, &end, 10);
		text = end;
	}
	return value;
}

static void set_sizes(LLVMValueRef kernel)
{
	const char *exact = tally_attribute(kernel, TALLY_ATTR_REQNTID);
	const char *most = tally_attribute(kernel, TALLY_ATTR_MAXNTID);
	unsigned long least = exact ? product(exact) : 1;
	unsigned long greatest = exact ? least : most ? product(most) : MOST_THREADS;
	char text[48];

	if (greatest > MOST_THREADS)
		greatest = MOST_THREADS;
	if (least > greatest)
		least = greatest;
	snprintf(text, sizeof text, "%lu,%lu", least, greatest);
	tally_attribute_set(kernel, "amdgpu-flat-work-group-size", text);
	tally_attribute_set(kernel, "uniform-work-group-size", "true");
}

static bool convert_kernel(LLVMModuleRef module, LLVMValueRef kernel, struct tally_error *error)
{
	LLVMValueRef made = create_like(module, kernel);
	size_t length;
	char *name;

	if (!made)
		return tally_fail(error, "out of memory");
	move_body(kernel, made);
	name = strdup(LLVMGetValueName2(kernel, &length));
	LLVMDeleteFunction(kernel);
	if (!name)
		return tally_fail(error, "out of memory");
	LLVMSetValueName2(made, name, length);
	free(name);
	LLVMSetFunctionCallConv(made, KERNEL_CALLING_CONVENTION);
	LLVMSetVisibility(made, LLVMProtectedVisibility);
	set_sizes(made);
	return true;
}

struct rewrite {
	LLVMContextRef context;
	LLVMBuilderRef builder;
	unsigned device, block, agent, workgroup; /* sync scope numbers */
};

/* The data layout puts what the builder makes into private memory; users see a generic pointer. */
static void convert_alloca(struct rewrite *r, LLVMValueRef old)
{
	LLVMValueRef size = LLVMGetOperand(old, 0), new, generic;
	bool single = LLVMIsAConstantInt(size) && LLVMConstIntGetZExtValue(size) == 1;

	if (LLVMGetPointerAddressSpace(LLVMTypeOf(old)) == TALLY_AS_PRIVATE)
		return;
	LLVMPositionBuilderBefore(r->builder, old);
	new = single ? LLVMBuildAlloca(r->builder, LLVMGetAllocatedType(old), "")
		     : LLVMBuildArrayAlloca(r->builder, LLVMGetAllocatedType(old), size, "");
	LLVMSetAlignment(new, LLVMGetAlignment(old));
	generic = LLVMBuildAddrSpaceCast(
		r->builder, new, LLVMPointerTypeInContext(r->context, TALLY_AS_GENERIC), "");
	tally_replace(old, generic);
}

static void convert_scope(struct rewrite *r, LLVMValueRef instruction)
{
	unsigned scope = LLVMGetAtomicSyncScopeID(instruction);

	if (scope == r->device)
		LLVMSetAtomicSyncScopeID(instruction, r->agent);
	else if (scope == r->block)
		LLVMSetAtomicSyncScopeID(instruction, r->workgroup);
}

static bool visit(LLVMValueRef instruction, void *data)
{
	struct rewrite *r = data;
	const char *called;

	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMAlloca:
		convert_alloca(r, instruction);
		return true;
	case LLVMLoad:
	case LLVMStore:
		if (LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic)
			convert_scope(r, instruction);
		return true;
	case LLVMFence:
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		convert_scope(r, instruction);
		return true;
	case LLVMCall:
		/* Lifetimes name allocas that are others now; they only help the stack's colouring.
		 */
		called = tally_called_name(instruction);
		if (called && !strncmp(called, "llvm.lifetime.", strlen("llvm.lifetime.")))
			LLVMInstructionEraseFromParent(instruction);
		return true;
	default:
		return true;
	}
}

static unsigned scope_number(LLVMContextRef context, const char *name)
{
	return LLVMGetSyncScopeID(context, name, strlen(name));
}

static bool convert_memory(LLVMModuleRef module, struct tally_error *error)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	struct rewrite r = {.context = context,
			    .builder = LLVMCreateBuilderInContext(context),
			    .device = scope_number(context, "device"),
			    .block = scope_number(context, "block"),
			    .agent = scope_number(context, "agent"),
			    .workgroup = scope_number(context, "workgroup")};
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		ok = ok && tally_visit_instructions(function, visit, &r);
	LLVMDisposeBuilder(r.builder);
	TALLY_EACH_GLOBAL (module, global)
		if (LLVMGetPointerAddressSpace(LLVMTypeOf(global)) != TALLY_AS_SHARED &&
		    LLVMGetLinkage(global) == LLVMExternalLinkage)
			LLVMSetVisibility(global, LLVMProtectedVisibility);
	return ok || tally_fail(error, "out of memory");
}

bool tally_hip_kernels(LLVMModuleRef module, struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, function)
		if (tally_is_kernel(function) &&
		    LLVMGetFunctionCallConv(function) != KERNEL_CALLING_CONVENTION &&
		    !convert_kernel(module, function, error))
			return false;
	return convert_memory(module, error);
}
