/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: their parameters and attributes, and the function that is one thread of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"
#include "ir_passes/reach.h"

static uint32_t round_up(uint64_t value, uint64_t align)
{
	return (uint32_t)((value + align - 1) / align * align);
}

/* Parameters lie in the buffer as in C: in order, each at its alignment (docs/ir-contract.md). */
static bool lay_out_params(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	unsigned count = LLVMCountParams(kernel->function);
	uint32_t offset = 0;

	kernel->params = calloc(count + 1, sizeof *kernel->params);
	if (!kernel->params)
		return tally_fail(l->error, "out of memory");
	for (unsigned i = 0; i < count; i++) {
		uint32_t bytes = (uint32_t)tally_param_size(l->module, kernel->function, i);

		offset = round_up(offset, tally_param_alignment(l->module, kernel->function, i));
		kernel->params[i].offset = offset;
		kernel->params[i].bytes = bytes;
		offset += bytes;
	}
	kernel->record.param_count = count;
	kernel->record.param_bytes = offset;
	return true;
}

static void read_attributes(struct cpu_kernel *kernel)
{
	struct tally_cpu_kernel *record = &kernel->record;
	const char *variant = tally_attribute(kernel->function, TALLY_ATTR_VARIANT);
	const char *text = tally_attribute(kernel->function, TALLY_ATTR_MAXNTID);
	unsigned x = 1, y = 1, z = 1;

	record->max_threads = 1024;
	if (text && sscanf(text, "%u,%u,%u", &x, &y, &z) >= 1 && x * y * z <= 1024)
		record->max_threads = x * y * z;
	x = y = z = 1;
	text = tally_attribute(kernel->function, TALLY_ATTR_REQNTID);
	if (text && sscanf(text, "%u,%u,%u", &x, &y, &z) >= 1) {
		record->required[0] = x;
		record->required[1] = y;
		record->required[2] = z;
		if (x * y * z <= 1024)
			record->max_threads = x * y * z;
	}
	if (variant && strstr(variant, "slice"))
		record->flags |= TALLY_CPU_SLICE;
	if (variant && strstr(variant, "guard"))
		record->flags |= TALLY_CPU_GUARD;
	text = tally_attribute(kernel->function, TALLY_ATTR_REFUSE);
	if (text && strstr(text, "cooperative"))
		record->flags |= TALLY_CPU_COOPERATIVE;
}

/* The executor's warps have 32 lanes. A kernel that means 64 and can tell the difference is
 * refused: it would compute something else. */
static bool check_warp(struct cpu_lowering *l, LLVMValueRef kernel, const char *name)
{
	static const char *const prefixes[] = {
		"tally.lane",	"tally.warp.", "tally.vote.",	"tally.shuffle.",
		"tally.match.", "tally.elect", "tally.reduce.", "tally.active.mask",
	};
	const char *warp = tally_attribute(kernel, TALLY_ATTR_WARP), *found = NULL;
	struct tally_set reached = {0};
	size_t length;

	if (!warp || !strcmp(warp, "32"))
		return true;
	tally_reach(&reached, kernel);
	TALLY_EACH_FUNCTION (l->module, function)
		for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !found; i++) {
			const char *used = LLVMGetValueName2(function, &length);

			if (!strncmp(used, prefixes[i], strlen(prefixes[i])) &&
			    tally_set_has(&reached, function))
				found = used;
		}
	tally_set_free(&reached);
	return !found || tally_fail(l->error,
				    "kernel '%s' uses %s with warps of %s lanes: the CPU device "
				    "has warps of 32",
				    name, found, warp);
}

bool cpu_find_kernels(struct cpu_lowering *l)
{
	size_t count = 0;

	TALLY_EACH_FUNCTION (l->module, function)
		count += tally_is_kernel(function) && LLVMCountBasicBlocks(function);
	l->kernels = calloc(count + 1, sizeof *l->kernels);
	if (!l->kernels)
		return tally_fail(l->error, "out of memory");
	TALLY_EACH_FUNCTION (l->module, function) {
		struct cpu_kernel *kernel = &l->kernels[l->kernel_count];

		if (!tally_is_kernel(function) || !LLVMCountBasicBlocks(function))
			continue;
		kernel->index = (unsigned)l->kernel_count++;
		kernel->function = function;
		kernel->name = strdup(tally_name(function));
		if (!kernel->name)
			return tally_fail(l->error, "out of memory");
		read_attributes(kernel);
		if (!check_warp(l, function, kernel->name) || !lay_out_params(l, kernel))
			return false;
	}
	return true;
}

/* The values of a kernel's parameters, loaded at the start of its thread. */
static void load_params(struct cpu_lowering *l, struct cpu_kernel *kernel, LLVMValueRef buffer)
{
	LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(kernel->function);

	LLVMPositionBuilderBefore(l->builder, LLVMGetFirstInstruction(entry));
	for (unsigned i = 0; i < kernel->record.param_count; i++) {
		LLVMValueRef param = LLVMGetParam(kernel->function, i), value;
		LLVMValueRef offset = LLVMConstInt(l->i64, kernel->params[i].offset, 0);
		LLVMTypeRef type = LLVMTypeOf(param);

		if (!tally_param_byval(kernel->function, i)) {
			value = cpu_load_field(l, type, buffer, kernel->params[i].offset, "");
			LLVMSetAlignment(value,
					 tally_param_alignment(l->module, kernel->function, i));
		} else {
			value = LLVMBuildInBoundsGEP2(l->builder, l->i8, buffer, &offset, 1, "");
			if (LLVMGetPointerAddressSpace(type))
				value = LLVMBuildAddrSpaceCast(l->builder, value, type, "");
		}
		LLVMReplaceAllUsesWith(param, value);
	}
}

static void move_blocks(struct cpu_lowering *l, LLVMValueRef from, LLVMValueRef to)
{
	LLVMBasicBlockRef place = LLVMAppendBasicBlockInContext(l->context, to, ""), first = place;

	TALLY_EACH_BLOCK (from, block) {
		LLVMMoveBasicBlockAfter(block, place);
		place = block;
	}
	LLVMDeleteBasicBlock(first);
}

struct primitives {
	struct cpu_lowering *l;
	LLVMValueRef function;
	struct cpu_kernel *kernel; /* NULL in a function that was not inlined */
	unsigned sites;
};

/* What a primitive operation is here: a parameter, or a field of the thread's record. */
static LLVMValueRef primitive(struct primitives *p, const char *name)
{
	static const struct {
		const char *name;
		int parameter;
		size_t field;
	} fields[] = {
		{"tally.thread.id.x", CPU_X, offsetof(struct tally_cpu_thread, id)},
		{"tally.thread.id.y", CPU_Y, offsetof(struct tally_cpu_thread, id) + 4},
		{"tally.thread.id.z", CPU_Z, offsetof(struct tally_cpu_thread, id) + 8},
		{"tally.cpu.linear", CPU_LINEAR, offsetof(struct tally_cpu_thread, linear)},
	};
	struct cpu_lowering *l = p->l;

	if (!strcmp(name, "tally.cpu.thread"))
		return cpu_context(l, p->function);
	if (!strcmp(name, "tally.cpu.block"))
		return cpu_block(l, p->function);
	if (!strcmp(name, "tally.cpu.site"))
		return LLVMConstInt(l->i32, ++p->sites, 0);
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		LLVMValueRef value;

		if (strcmp(name, fields[i].name))
			continue;
		if (p->kernel)
			return LLVMGetParam(p->function, (unsigned)fields[i].parameter);
		value = cpu_load_field(l, l->i32, cpu_context(l, p->function), fields[i].field, "");
		/* One record serves all threads of a loop kernel, one after the other. */
		LLVMSetMetadata(value, LLVMGetMDKindIDInContext(l->context, "invariant.load", 14),
				NULL);
		return value;
	}
	return NULL;
}

/* Ends this thread: what follows the call in its block is dropped. The call does not return, so
 * that the block ends in `unreachable` after simplification. */
static void end_thread(struct cpu_lowering *l, LLVMValueRef call)
{
	LLVMBasicBlockRef block = LLVMGetInstructionParent(call);
	LLVMValueRef last;

	while ((last = LLVMGetLastInstruction(block)) != call)
		LLVMInstructionEraseFromParent(last);
	LLVMInstructionEraseFromParent(call);
	LLVMPositionBuilderAtEnd(l->builder, block);
	LLVMBuildRetVoid(l->builder);
}

static bool replace_primitive(LLVMValueRef i, void *data)
{
	struct primitives *p = data;
	const char *name = tally_called_name(i);
	LLVMValueRef value;

	if (!name || strncmp(name, "tally.", 6))
		return true;
	LLVMPositionBuilderBefore(p->l->builder, i);
	value = primitive(p, name);
	if (value)
		tally_replace(i, value);
	return true;
}

static void end_threads(struct cpu_lowering *l)
{
	LLVMValueRef exit = LLVMGetNamedFunction(l->module, "tally.exit");

	while (exit && LLVMGetFirstUse(exit))
		end_thread(l, LLVMGetUser(LLVMGetFirstUse(exit)));
}

static void make_thread(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	LLVMTypeRef params[CPU_THREAD_PARAMS] = {l->ptr, l->ptr, l->ptr, l->i32,
						 l->i32, l->i32, l->i32};
	LLVMTypeRef type = LLVMFunctionType(l->void_type, params, CPU_THREAD_PARAMS, 0);
	char name[64];

	snprintf(name, sizeof name, "k%u.thread", kernel->index);
	kernel->thread = LLVMAddFunction(l->module, name, type);
	LLVMSetLinkage(kernel->thread, LLVMInternalLinkage);
	tally_add_attribute(kernel->thread, "nounwind", 0);
	load_params(l, kernel, LLVMGetParam(kernel->thread, CPU_PARAMS));
	move_blocks(l, kernel->function, kernel->thread);
	LLVMDeleteFunction(kernel->function);
	kernel->function = NULL;
}

bool cpu_make_threads(struct cpu_lowering *l)
{
	for (size_t i = 0; i < l->kernel_count; i++)
		make_thread(l, &l->kernels[i]);
	TALLY_EACH_FUNCTION (l->module, function) {
		struct primitives p = {l, function, cpu_kernel_of(l, function), 0};

		if (LLVMCountBasicBlocks(function) &&
		    !tally_visit_instructions(function, replace_primitive, &p))
			return tally_fail(l->error, "out of memory");
	}
	end_threads(l);
	return true;
}

/* Whether `pointer` points at a constant place in the parameter buffer. */
static bool is_in_params(LLVMValueRef thread, LLVMValueRef pointer)
{
	for (;;) {
		if (pointer == LLVMGetParam(thread, CPU_PARAMS))
			return true;
		if (LLVMIsAGetElementPtrInst(pointer)) {
			for (int k = 1; k < LLVMGetNumOperands(pointer); k++)
				if (!LLVMIsAConstantInt(LLVMGetOperand(pointer, (unsigned)k)))
					return false;
		} else if (!LLVMIsAAddrSpaceCastInst(pointer)) {
			return false;
		}
		pointer = LLVMGetOperand(pointer, 0);
	}
}

void cpu_mark_params(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	unsigned kind = LLVMGetMDKindIDInContext(l->context, "invariant.load", 14);
	LLVMValueRef nothing =
		LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0));

	TALLY_EACH_BLOCK (kernel->thread, block)
		TALLY_EACH_INSTRUCTION (block, i)
			if (LLVMIsALoadInst(i) && !LLVMGetVolatile(i) && !LLVMIsAtomic(i) &&
			    is_in_params(kernel->thread, LLVMGetOperand(i, 0)))
				LLVMSetMetadata(i, kind, nothing);
}
