/* SPDX-License-Identifier: Apache-2.0 */
/* `tally_cpu_module`: the one symbol that the object exports (backends/cpu/kernel_abi.h). */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"

static LLVMValueRef number(struct cpu_lowering *l, uint64_t value)
{
	return LLVMConstInt(l->i32, value, 0);
}

/* A constant array (or text) as an internal global; its address. */
static LLVMValueRef hold(struct cpu_lowering *l, LLVMValueRef constant)
{
	LLVMValueRef global = LLVMAddGlobal(l->module, LLVMTypeOf(constant), "");

	LLVMSetInitializer(global, constant);
	LLVMSetLinkage(global, LLVMPrivateLinkage);
	LLVMSetGlobalConstant(global, 1);
	return global;
}

static LLVMValueRef text(struct cpu_lowering *l, const char *value)
{
	return hold(l, LLVMConstStringInContext2(l->context, value, strlen(value), 0));
}

static LLVMValueRef params_of(struct cpu_lowering *l, const struct cpu_kernel *kernel)
{
	uint32_t count = kernel->record.param_count;
	LLVMTypeRef pair =
		LLVMStructTypeInContext(l->context, (LLVMTypeRef[]){l->i32, l->i32}, 2, 0);
	LLVMValueRef *items = calloc(count + 1, sizeof *items), result;

	if (!items)
		return LLVMConstNull(l->ptr);
	for (uint32_t i = 0; i < count; i++)
		items[i] = LLVMConstStructInContext(
			l->context,
			(LLVMValueRef[]){number(l, kernel->params[i].offset),
					 number(l, kernel->params[i].bytes)},
			2, 0);
	result = hold(l, LLVMConstArray2(pair, items, count));
	free(items);
	return result;
}

/* In the order of struct tally_cpu_kernel; LLVM pads a struct as C does. */
static LLVMValueRef kernel_record(struct cpu_lowering *l, const struct cpu_kernel *kernel)
{
	const struct tally_cpu_kernel *r = &kernel->record;
	LLVMValueRef none = LLVMConstNull(l->ptr);
	bool coroutine = r->flags & TALLY_CPU_COROUTINE;
	LLVMValueRef required[3] = {number(l, r->required[0]), number(l, r->required[1]),
				    number(l, r->required[2])};
	LLVMValueRef fields[] = {
		text(l, kernel->name),
		number(l, r->flags),
		number(l, r->param_count),
		number(l, r->param_bytes),
		params_of(l, kernel),
		number(l, r->shared_bytes),
		number(l, r->shared_align),
		number(l, r->local_bytes),
		number(l, r->max_threads),
		LLVMConstArray2(l->i32, required, 3),
		coroutine ? none : kernel->entry,
		coroutine ? kernel->entry : none,
	};

	return LLVMConstStructInContext(l->context, fields, sizeof fields / sizeof *fields, 0);
}

static bool is_variable(LLVMValueRef global)
{
	unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(global));

	return (space == TALLY_AS_GLOBAL || space == TALLY_AS_CONSTANT) &&
	       LLVMGetLinkage(global) == LLVMExternalLinkage && LLVMGetInitializer(global);
}

/* Device variables stay in the object, under names that no library's can meet. */
static LLVMValueRef variable_record(struct cpu_lowering *l, LLVMValueRef global)
{
	unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(global));
	LLVMTargetDataRef layout = LLVMGetModuleDataLayout(l->module);
	uint64_t bytes = LLVMABISizeOfType(layout, LLVMGlobalGetValueType(global));
	size_t length;
	LLVMValueRef name = text(l, LLVMGetValueName2(global, &length));

	LLVMSetLinkage(global, LLVMInternalLinkage);
	return LLVMConstStructInContext(l->context,
					(LLVMValueRef[]){
						name,
						LLVMConstAddrSpaceCast(global, l->ptr),
						LLVMConstInt(l->i64, bytes, 0),
						number(l, space == TALLY_AS_CONSTANT),
					},
					4, 0);
}

/* The array of `count` records (at least one, so that it has a type), or NULL for none. */
static LLVMValueRef array(struct cpu_lowering *l, LLVMValueRef *records, size_t count)
{
	if (!count)
		return LLVMConstNull(l->ptr);
	return hold(l, LLVMConstArray2(LLVMTypeOf(records[0]), records, count));
}

/* The host writes device variables, constants too: none may be folded into the code or lie in
 * read-only memory. tally.is.constant knows constants by their section. */
bool cpu_open_variables(struct cpu_lowering *l)
{
	TALLY_EACH_GLOBAL (l->module, global) {
		unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(global));

		if (is_variable(global)) {
			LLVMSetGlobalConstant(global, 0);
			LLVMSetExternallyInitialized(global, 1);
		}
		if (space == TALLY_AS_CONSTANT && LLVMGetInitializer(global)) {
			LLVMSetGlobalConstant(global, 0);
			LLVMSetSection(global, "tally_constant");
		}
	}
	return true;
}

bool cpu_make_table(struct cpu_lowering *l)
{
	LLVMValueRef *kernels, *variables, module, fields[5];
	size_t count = 0;

	TALLY_EACH_GLOBAL (l->module, global)
		count += is_variable(global);
	kernels = calloc(l->kernel_count + 1, sizeof *kernels);
	variables = calloc(count + 1, sizeof *variables);
	if (!kernels || !variables) {
		free(kernels);
		free(variables);
		return tally_fail(l->error, "out of memory");
	}
	for (size_t i = 0; i < l->kernel_count; i++) {
		LLVMSetLinkage(l->kernels[i].entry, LLVMInternalLinkage);
		kernels[i] = kernel_record(l, &l->kernels[i]);
	}
	count = 0;
	TALLY_EACH_GLOBAL (l->module, global)
		if (is_variable(global))
			variables[count++] = variable_record(l, global);
	fields[0] = number(l, TALLY_CPU_ABI_VERSION);
	fields[1] = number(l, l->kernel_count);
	fields[2] = number(l, count);
	fields[3] = array(l, kernels, l->kernel_count);
	fields[4] = array(l, variables, count);
	module = LLVMConstStructInContext(l->context, fields, 5, 0);
	free(kernels);
	free(variables);
	LLVMSetInitializer(LLVMAddGlobal(l->module, LLVMTypeOf(module), TALLY_CPU_MODULE_SYMBOL),
			   module);
	LLVMSetGlobalConstant(LLVMGetNamedGlobal(l->module, TALLY_CPU_MODULE_SYMBOL), 1);
	return true;
}
