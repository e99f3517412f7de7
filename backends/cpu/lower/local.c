/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private memory. As a rule it is on the stack or in the coroutine's frame, at addresses of 64
 * bits. Code may keep private addresses in 32-bit registers, though (the IR contract allows it; PTX
 * does it in old 32-bit address arithmetic). Kernels that do so get memory below 4 GiB for all
 * their private variables instead, which the executor provides (TALLY_CPU_LOW_LOCAL).
 */
#include <string.h>

#include "backends/cpu/lower/internal.h"

static bool is_private(LLVMValueRef pointer)
{
	LLVMTypeRef type = LLVMTypeOf(pointer);

	return LLVMGetTypeKind(type) == LLVMPointerTypeKind &&
	       LLVMGetPointerAddressSpace(type) == TALLY_AS_PRIVATE;
}

static bool is_32_bits(LLVMValueRef value)
{
	LLVMTypeRef type = LLVMTypeOf(value);

	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 32;
}

/* Whether an instruction cuts a private address to 32 bits, or takes one from there. */
static bool cuts_address(LLVMValueRef i)
{
	if (LLVMIsAPtrToIntInst(i) && is_private(LLVMGetOperand(i, 0))) {
		if (is_32_bits(i))
			return true;
		TALLY_EACH_USE (i, use)
			if (LLVMIsATruncInst(LLVMGetUser(use)))
				return true;
	}
	if (!LLVMIsAIntToPtrInst(i) || !is_private(i))
		return false;
	i = LLVMGetOperand(i, 0);
	return is_32_bits(i) || LLVMIsAZExtInst(i) || LLVMIsASExtInst(i);
}

void cpu_drop_lifetimes(LLVMValueRef variable)
{
	TALLY_EACH_USE (variable, use) {
		LLVMValueRef user = LLVMGetUser(use);
		const char *name = tally_called_name(user);

		if (name && !strncmp(name, "llvm.lifetime.", 14))
			LLVMInstructionEraseFromParent(user);
	}
}

/* Where the running thread's private memory is: its own part of the block's in a coroutine, the
 * same for all threads in a loop. */
static LLVMValueRef local_base(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	LLVMValueRef block = LLVMGetParam(kernel->thread, CPU_BLOCK), base, stride, offset;

	base = cpu_load_field(l, l->ptr, block, offsetof(struct tally_cpu_block, local), "local");
	if (!cpu_is_coroutine(kernel))
		return base;
	stride = cpu_load_field(l, l->i32, block, offsetof(struct tally_cpu_block, local_stride),
				"");
	offset = LLVMBuildMul(
		l->builder, LLVMBuildZExt(l->builder, stride, l->i64, ""),
		LLVMBuildZExt(l->builder, LLVMGetParam(kernel->thread, CPU_LINEAR), l->i64, ""),
		"");
	return LLVMBuildInBoundsGEP2(l->builder, l->i8, base, &offset, 1, "");
}

static uint32_t place_variable(struct cpu_lowering *l, LLVMValueRef variable, uint32_t offset,
			       LLVMValueRef base)
{
	LLVMTargetDataRef layout = LLVMGetModuleDataLayout(l->module);
	uint32_t align = LLVMGetAlignment(variable);
	LLVMValueRef index;

	align = align ? align : 16;
	offset = (offset + align - 1) / align * align;
	index = LLVMConstInt(l->i64, offset, 0);
	offset += (uint32_t)LLVMABISizeOfType(layout, LLVMGetAllocatedType(variable));
	if (base) {
		LLVMValueRef place;

		cpu_drop_lifetimes(variable);
		LLVMPositionBuilderBefore(l->builder, variable);
		place = LLVMBuildInBoundsGEP2(l->builder, l->i8, base, &index, 1, "");
		if (LLVMTypeOf(place) != LLVMTypeOf(variable))
			place = LLVMBuildAddrSpaceCast(l->builder, place, LLVMTypeOf(variable), "");
		tally_replace(variable, place);
	}
	return offset;
}

bool cpu_place_local(struct cpu_lowering *l)
{
	for (size_t k = 0; k < l->kernel_count; k++) {
		struct cpu_kernel *kernel = &l->kernels[k];
		LLVMValueRef base = NULL;
		uint32_t bytes = 0;
		bool low = false;

		TALLY_EACH_BLOCK (kernel->thread, block)
			TALLY_EACH_INSTRUCTION (block, i)
				low |= cuts_address(i);
		if (low) {
			LLVMPositionBuilderBefore(
				l->builder,
				LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(kernel->thread)));
			base = local_base(l, kernel);
			kernel->record.flags |= TALLY_CPU_LOW_LOCAL;
		}
		TALLY_EACH_BLOCK (kernel->thread, block)
			TALLY_EACH_INSTRUCTION (block, i)
				if (LLVMIsAAllocaInst(i))
					bytes = place_variable(l, i, bytes, base);
		kernel->record.local_bytes = bytes;
	}
	return true;
}
