/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's memory: private allocas, sync scopes, and the launch's facts that its code reads through
 * two pointers, the implicit kernel arguments and the dispatch packet. Layouts: LLVM's AMDGPUUsage,
 * "Kernel Argument Metadata" (code object 4 and 5) and the HSA kernel dispatch packet.
 */
#include <llvm-c/Target.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

/* ---- sync scopes ---- */

/* "-one-as" orders one address space alone; the contract's scopes order all. A wavefront has no
 * scope of its own: its block's is stronger. */
static const struct {
	const char *amd, *neutral;
} scopes[] = {
	{"agent", "device"},	{"agent-one-as", "device"},
	{"workgroup", "block"}, {"workgroup-one-as", "block"},
	{"wavefront", "block"}, {"wavefront-one-as", "block"},
	{"one-as", ""},		{"singlethread-one-as", "singlethread"},
	{"cluster", "cluster"}, {"cluster-one-as", "cluster"},
};

static unsigned scope_id(struct lift *lift, const char *name)
{
	return LLVMGetSyncScopeID(lift->context, name, strlen(name));
}

static void neutral_scope(struct lift *lift, LLVMValueRef i)
{
	unsigned scope;

	if (!LLVMIsAtomic(i) && !LLVMIsAFenceInst(i))
		return;
	scope = LLVMGetAtomicSyncScopeID(i);
	for (size_t k = 0; k < sizeof(scopes) / sizeof(*scopes); k++) {
		if (scope != scope_id(lift, scopes[k].amd))
			continue;
		LLVMSetAtomicSyncScopeID(i, scope_id(lift, scopes[k].neutral));
		if (!strcmp(scopes[k].neutral, "cluster"))
			bitcode_lock(lift, i, "cluster scope");
		return;
	}
}

/* ---- allocas ---- */

static void drop_lifetimes(LLVMValueRef alloca)
{
	TALLY_EACH_USE (alloca, use) {
		const char *callee = tally_called_name(LLVMGetUser(use));

		if (callee && !strncmp(callee, "llvm.lifetime.", 14))
			LLVMInstructionEraseFromParent(LLVMGetUser(use));
	}
}

/* An alloca in address space 5 becomes one in 0, seen as 5 where it was used as such. */
static void generic_alloca(struct lift *lift, LLVMValueRef i)
{
	LLVMTypeRef generic = LLVMPointerTypeInContext(lift->context, TALLY_AS_GENERIC);
	LLVMValueRef twin, cast;

	if (!LLVMIsAAllocaInst(i) || LLVMGetPointerAddressSpace(LLVMTypeOf(i)) == TALLY_AS_GENERIC)
		return;
	drop_lifetimes(i);
	LLVMPositionBuilderBefore(lift->builder, i);
	twin = LLVMBuildArrayAlloca(lift->builder, LLVMGetAllocatedType(i), LLVMGetOperand(i, 0),
				    "");
	LLVMSetAlignment(twin, LLVMGetAlignment(i));
	TALLY_EACH_USE (i, use) {
		LLVMValueRef user = LLVMGetUser(use);

		if (LLVMIsAAddrSpaceCastInst(user) && LLVMTypeOf(user) == generic)
			tally_replace(user, twin);
	}
	if (LLVMGetFirstUse(i)) {
		cast = LLVMBuildAddrSpaceCast(lift->builder, twin, LLVMTypeOf(i), "");
		LLVMReplaceAllUsesWith(i, cast);
	}
	LLVMInstructionEraseFromParent(i);
}

/* ---- facts of the launch ---- */

enum base { IMPLICIT, PACKET };

/* What lies where. `op`: an i32 operation; `times`: multiplied by this one; NULL: the constant. */
static const struct fact {
	enum base base;
	unsigned version; /* of the code object; 0: any */
	unsigned offset, bytes;
	const char *op, *times;
	unsigned constant;
} facts[] = {
	{IMPLICIT, 5, 0, 4, "tally.grid.size.x", NULL, 0},
	{IMPLICIT, 5, 4, 4, "tally.grid.size.y", NULL, 0},
	{IMPLICIT, 5, 8, 4, "tally.grid.size.z", NULL, 0},
	{IMPLICIT, 5, 12, 2, "tally.block.size.x", NULL, 0},
	{IMPLICIT, 5, 14, 2, "tally.block.size.y", NULL, 0},
	{IMPLICIT, 5, 16, 2, "tally.block.size.z", NULL, 0},
	{IMPLICIT, 5, 18, 2, NULL, NULL, 0}, /* the last block is as large as the others */
	{IMPLICIT, 5, 20, 2, NULL, NULL, 0},
	{IMPLICIT, 5, 22, 2, NULL, NULL, 0},
	{IMPLICIT, 5, 40, 8, NULL, NULL, 0}, /* global offsets */
	{IMPLICIT, 5, 48, 8, NULL, NULL, 0},
	{IMPLICIT, 5, 56, 8, NULL, NULL, 0},
	{IMPLICIT, 5, 64, 2, NULL, NULL, 3}, /* dimensions */
	{IMPLICIT, 5, 120, 4, "tally.shared.dynamic.size", NULL, 0},
	{IMPLICIT, 4, 0, 8, NULL, NULL, 0}, /* global offsets */
	{IMPLICIT, 4, 8, 8, NULL, NULL, 0},
	{IMPLICIT, 4, 16, 8, NULL, NULL, 0},
	{PACKET, 0, 2, 2, NULL, NULL, 3}, /* dimensions */
	{PACKET, 0, 4, 2, "tally.block.size.x", NULL, 0},
	{PACKET, 0, 6, 2, "tally.block.size.y", NULL, 0},
	{PACKET, 0, 8, 2, "tally.block.size.z", NULL, 0},
	{PACKET, 0, 12, 4, "tally.grid.size.x", "tally.block.size.x", 0},
	{PACKET, 0, 16, 4, "tally.grid.size.y", "tally.block.size.y", 0},
	{PACKET, 0, 20, 4, "tally.grid.size.z", "tally.block.size.z", 0},
};

/* What else lies there, for messages. */
static const struct {
	unsigned version, offset;
	const char *what;
} refused[] = {
	{5, 72, "printf's buffer: compile with -nogpulib, or without printf"},
	{5, 80, "host calls (printf, assert): compile with -nogpulib, or without them"},
	{5, 88, "the grid's synchronisation (cooperative launch)"},
	{5, 96, "the device heap: compile with -nogpulib"},
	{5, 104, "a queue for launches from the device"},
	{4, 24, "printf: compile with -nogpulib, or without it"},
	{4, 32, "a queue for launches from the device"},
	{4, 48, "the grid's synchronisation (cooperative launch)"},
};

static const char *why_refused(struct lift *lift, enum base base, long long offset)
{
	unsigned version = lift->code_object >= 5 ? 5 : 4;

	for (size_t i = 0; base == IMPLICIT && i < sizeof(refused) / sizeof(*refused); i++)
		if (refused[i].version == version && refused[i].offset == offset)
			return refused[i].what;
	return "no fact that is known";
}

static const char *const base_names[] = {"implicit arguments", "dispatch packet"};

static const struct fact *find_fact(struct lift *lift, enum base base, long long offset,
				    unsigned long long bytes)
{
	unsigned version = lift->code_object >= 5 ? 5 : 4;

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (facts[i].base == base && facts[i].offset == offset && facts[i].bytes == bytes &&
		    (!facts[i].version || facts[i].version == version))
			return &facts[i];
	return NULL;
}

/* The value of a load of `type` at `offset` of a base, built before `load`; NULL with an error. */
static LLVMValueRef read_fact(struct lift *lift, LLVMValueRef load, enum base base,
			      long long offset)
{
	LLVMTypeRef type = LLVMTypeOf(load);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(lift->context);
	unsigned long long bytes = LLVMABISizeOfType(LLVMGetModuleDataLayout(lift->module), type);
	const struct fact *fact = LLVMGetTypeKind(type) == LLVMIntegerTypeKind
					  ? find_fact(lift, base, offset, bytes)
					  : NULL;
	LLVMValueRef value;

	if (!fact) {
		bitcode_fail(lift, load,
			     "reads %llu bytes at %lld of AMD's %s (code object version %u), which "
			     "cannot be lifted: %s",
			     bytes, offset, base_names[base], lift->code_object,
			     why_refused(lift, base, offset));
		return NULL;
	}
	LLVMPositionBuilderBefore(lift->builder, load);
	value = fact->op ? tally_build_operation(lift->builder, lift->module, fact->op, NULL, 0)
			 : LLVMConstInt(i32, fact->constant, 0);
	if (fact->times)
		value = LLVMBuildMul(
			lift->builder, value,
			tally_build_operation(lift->builder, lift->module, fact->times, NULL, 0),
			"");
	return LLVMBuildIntCast2(lift->builder, value, type, 0, "");
}

static bool read_through(struct lift *lift, LLVMValueRef pointer, enum base base, long long offset);

/* Reads through `index ? at + scale : …` where the index chooses one of two constants: what the
 * device library does to tell the last block from the others. */
static bool read_choice(struct lift *lift, LLVMValueRef gep, LLVMValueRef choice, enum base base,
			long long offset, long long scale)
{
	long long at[2];

	for (unsigned k = 0; k < 2; k++) {
		LLVMValueRef index = LLVMGetOperand(choice, k + 1);

		if (!LLVMIsAConstantInt(index))
			return bitcode_fail(lift, gep, "address in AMD's %s is not constant",
					    base_names[base]);
		at[k] = offset + LLVMConstIntGetSExtValue(index) * scale;
	}
	TALLY_EACH_USE (gep, use) {
		LLVMValueRef load = LLVMGetUser(use), yes, no;

		if (!LLVMIsALoadInst(load))
			return bitcode_fail(lift, load, "address in AMD's %s is kept",
					    base_names[base]);
		yes = read_fact(lift, load, base, at[0]);
		no = yes ? read_fact(lift, load, base, at[1]) : NULL;
		if (!no)
			return false;
		LLVMPositionBuilderBefore(lift->builder, load);
		tally_replace(load, LLVMBuildSelect(lift->builder, LLVMGetOperand(choice, 0), yes,
						    no, ""));
	}
	LLVMInstructionEraseFromParent(gep);
	return true;
}

/* Byte offset of a struct field or array element, or false when an index is not constant. */
static bool step_offset(struct lift *lift, LLVMTypeRef *type, LLVMValueRef index, bool first,
			long long *offset)
{
	LLVMTargetDataRef layout = LLVMGetModuleDataLayout(lift->module);
	long long n;

	if (!LLVMIsAConstantInt(index))
		return false;
	n = LLVMConstIntGetSExtValue(index);
	if (first) {
		*offset += n * (long long)LLVMABISizeOfType(layout, *type);
	} else if (LLVMGetTypeKind(*type) == LLVMStructTypeKind) {
		*offset += (long long)LLVMOffsetOfElement(layout, *type, (unsigned)n);
		*type = LLVMStructGetTypeAtIndex(*type, (unsigned)n);
	} else {
		*type = LLVMGetElementType(*type);
		*offset += n * (long long)LLVMABISizeOfType(layout, *type);
	}
	return true;
}

static bool read_gep(struct lift *lift, LLVMValueRef gep, enum base base, long long offset)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
	LLVMValueRef index = LLVMGetOperand(gep, 1);

	if (LLVMGetNumOperands(gep) == 2 && LLVMIsASelectInst(index))
		return read_choice(
			lift, gep, index, base, offset,
			(long long)LLVMABISizeOfType(LLVMGetModuleDataLayout(lift->module), type));
	for (int k = 1; k < LLVMGetNumOperands(gep); k++)
		if (!step_offset(lift, &type, LLVMGetOperand(gep, (unsigned)k), k == 1, &offset))
			return bitcode_fail(lift, gep, "address in AMD's %s is not constant",
					    base_names[base]);
	if (!read_through(lift, gep, base, offset))
		return false;
	LLVMInstructionEraseFromParent(gep);
	return true;
}

/* Replaces every load through `pointer`, which is `offset` bytes into the base. */
static bool read_through(struct lift *lift, LLVMValueRef pointer, enum base base, long long offset)
{
	TALLY_EACH_USE (pointer, use) {
		LLVMValueRef user = LLVMGetUser(use), value;

		if (LLVMIsALoadInst(user)) {
			value = read_fact(lift, user, base, offset);
			if (!value)
				return false;
			tally_replace(user, value);
		} else if (LLVMIsAGetElementPtrInst(user)) {
			if (!read_gep(lift, user, base, offset))
				return false;
		} else if (LLVMIsAAddrSpaceCastInst(user)) {
			if (!read_through(lift, user, base, offset))
				return false;
			LLVMInstructionEraseFromParent(user);
		} else {
			return bitcode_fail(lift, user, "address in AMD's %s is kept",
					    base_names[base]);
		}
	}
	return true;
}

static const struct {
	const char *name;
	enum base base;
} bases[] = {
	{"llvm.amdgcn.implicitarg.ptr", IMPLICIT},
	{"llvm.amdgcn.dispatch.ptr", PACKET},
};

static bool read_bases(struct lift *lift)
{
	for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
		LLVMValueRef function = LLVMGetNamedFunction(lift->module, bases[i].name);

		if (!function)
			continue;
		TALLY_EACH_USE (function, use) {
			LLVMValueRef call = LLVMGetUser(use);

			if (!read_through(lift, call, bases[i].base, 0))
				return false;
			LLVMInstructionEraseFromParent(call);
		}
	}
	return true;
}

static bool per_instruction(LLVMValueRef instruction, void *data)
{
	neutral_scope(data, instruction);
	generic_alloca(data, instruction);
	return true;
}

bool bitcode_amd_memory(struct lift *lift)
{
	if (lift->vendor != BITCODE_AMD)
		return true;
	TALLY_EACH_FUNCTION (lift->module, function)
		tally_visit_instructions(function, per_instruction, lift);
	return read_bases(lift);
}
