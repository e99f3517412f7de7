/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory: a variable is a place in the block's shared memory, which lies below 4 GiB, so
 * that an address keeps its meaning in 32 bits. Variables that functions shared by several kernels
 * use lie at the same place in all of them, first; each kernel's own follow.
 */
#include <stdlib.h>

#include "backends/cpu/lower/internal.h"

struct place {
	struct cpu_lowering *l;
	LLVMValueRef global;
	bool dynamic;
	bool common;	   /* used outside of thread functions */
	uint32_t *offsets; /* by kernel */
};

/* Marks in `used` (by kernel) who uses `value`; true when a function that is no kernel's does. */
static bool find_users(struct cpu_lowering *l, LLVMValueRef value, bool *used)
{
	bool common = false;

	TALLY_EACH_USE (value, use) {
		LLVMValueRef user = LLVMGetUser(use);
		struct cpu_kernel *kernel;

		if (!LLVMIsAInstruction(user)) {
			common |= LLVMIsAGlobalVariable(user) ? true : find_users(l, user, used);
			continue;
		}
		kernel = cpu_kernel_of(l, LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)));
		if (kernel)
			used[kernel->index] = true;
		else
			common = true;
	}
	return common;
}

static bool is_dynamic(LLVMValueRef global)
{
	LLVMTypeRef type = LLVMGlobalGetValueType(global);

	return LLVMGetTypeKind(type) == LLVMArrayTypeKind && !LLVMGetArrayLength2(type);
}

/* The next aligned place in a kernel's shared memory. */
static uint32_t reserve(struct cpu_lowering *l, struct cpu_kernel *kernel, LLVMValueRef global)
{
	LLVMTypeRef type = LLVMGlobalGetValueType(global);
	LLVMTargetDataRef layout = LLVMGetModuleDataLayout(l->module);
	uint32_t align = LLVMGetAlignment(global), offset;

	if (!align)
		align = LLVMABIAlignmentOfType(layout, type);
	if (align > kernel->record.shared_align)
		kernel->record.shared_align = align;
	offset = (kernel->record.shared_bytes + align - 1) / align * align;
	if (!is_dynamic(global))
		kernel->record.shared_bytes = offset + (uint32_t)LLVMABISizeOfType(layout, type);
	return offset;
}

static bool assign(struct cpu_lowering *l, struct place *places, size_t count)
{
	for (int common = 1; common >= 0; common--)
		for (size_t p = 0; p < count; p++) {
			bool *used = calloc(l->kernel_count + 1, sizeof *used);

			if (!used)
				return tally_fail(l->error, "out of memory");
			places[p].common = find_users(l, places[p].global, used);
			for (size_t k = 0; k < l->kernel_count; k++)
				if (places[p].common == common && (common || used[k]))
					places[p].offsets[k] =
						reserve(l, &l->kernels[k], places[p].global);
			free(used);
		}
	return true;
}

static LLVMValueRef make_address(LLVMBuilderRef builder, LLVMValueRef global, void *data)
{
	const struct place *place = data;
	struct cpu_lowering *l = place->l;
	LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInsertBlock(builder)), base, offset;
	struct cpu_kernel *kernel = cpu_kernel_of(l, function);
	LLVMBuilderRef saved = l->builder;
	size_t field = place->dynamic ? offsetof(struct tally_cpu_block, dynamic)
				      : offsetof(struct tally_cpu_block, shared);

	l->builder = builder;
	base = cpu_load_field(l, LLVMTypeOf(global), cpu_block(l, function), field, "shared");
	l->builder = saved;
	offset = LLVMConstInt(l->i64, place->offsets[kernel ? kernel->index : 0], 0);
	if (place->dynamic)
		return base;
	return LLVMBuildInBoundsGEP2(builder, l->i8, base, &offset, 1, "");
}

/* Whether anything but constants that nothing uses still names it. */
static bool is_used(LLVMValueRef value)
{
	TALLY_EACH_USE (value, use) {
		LLVMValueRef user = LLVMGetUser(use);

		if (LLVMIsAInstruction(user) || LLVMIsAGlobalVariable(user) || is_used(user))
			return true;
	}
	return false;
}

static bool replace(struct cpu_lowering *l, struct place *place)
{
	size_t length;

	if (!tally_replace_global(place->global, make_address, place) || is_used(place->global))
		return tally_fail(l->error,
				  "the address of shared variable '%s' is used in a form that the "
				  "CPU device does not know (in a variable's initial value?)",
				  LLVMGetValueName2(place->global, &length));
	LLVMReplaceAllUsesWith(place->global, LLVMGetPoison(LLVMTypeOf(place->global)));
	LLVMDeleteGlobal(place->global);
	return true;
}

bool cpu_place_shared(struct cpu_lowering *l)
{
	struct place *places = NULL;
	size_t count = 0;
	bool ok;

	TALLY_EACH_GLOBAL (l->module, global)
		count += LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == TALLY_AS_SHARED;
	places = calloc(count + 1, sizeof *places);
	if (!places)
		return tally_fail(l->error, "out of memory");
	count = 0;
	ok = true;
	TALLY_EACH_GLOBAL (l->module, global) {
		if (LLVMGetPointerAddressSpace(LLVMTypeOf(global)) != TALLY_AS_SHARED)
			continue;
		places[count].l = l;
		places[count].global = global;
		places[count].dynamic = is_dynamic(global);
		places[count].offsets = calloc(l->kernel_count + 1, sizeof(uint32_t));
		ok = ok && places[count].offsets;
		count++;
	}
	ok = ok && assign(l, places, count);
	for (size_t p = 0; p < count; p++) {
		ok = ok && replace(l, &places[p]);
		free(places[p].offsets);
	}
	free(places);
	return ok || tally_fail(l->error, "out of memory");
}
