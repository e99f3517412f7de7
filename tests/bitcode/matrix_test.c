/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every intrinsic of mma that LLVM has, dense, sparse and scaled in blocks, becomes an operation of
 * the contract: the one that the instruction's text becomes, so that no product of a warp locks its
 * kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "frontend/frontend.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

enum { AT_LEAST = 300 };

static const char prefix[] = "llvm.nvvm.mma.";

/* A kernel that calls the intrinsic; every argument is 0 of its type. */
static void print_caller(struct tally_buffer *out, LLVMContextRef context, unsigned id,
			 const char *name)
{
	LLVMTypeRef type = LLVMIntrinsicGetType(context, id, NULL, 0);
	LLVMTypeRef parameters[64];
	char *result = LLVMPrintTypeToString(LLVMGetReturnType(type));
	unsigned n = LLVMCountParamTypes(type);

	assert_true(n <= 64);
	LLVMGetParamTypes(type, parameters);
	tally_buffer_print(out, "target triple = \"nvptx64-nvidia-cuda\"\n"
				"define ptx_kernel void @k(ptr addrspace(1) %%p) {\n");
	tally_buffer_print(out, "  %%v = call %s @%s(", result, name);
	for (unsigned i = 0; i < n; i++) {
		char *t = LLVMPrintTypeToString(parameters[i]);

		tally_buffer_print(out, "%s%s %s", i ? ", " : "", t,
				   *t == 'i' ? "0" : "zeroinitializer");
		LLVMDisposeMessage(t);
	}
	tally_buffer_print(out, ")\n  store %s %%v, ptr addrspace(1) %%p, align 16\n", result);
	tally_buffer_print(out, "  ret void\n}\ndeclare %s @%s(", result, name);
	for (unsigned i = 0; i < n; i++) {
		char *t = LLVMPrintTypeToString(parameters[i]);

		tally_buffer_print(out, "%s%s", i ? ", " : "", t);
		LLVMDisposeMessage(t);
	}
	tally_buffer_print(out, ")\n");
	LLVMDisposeMessage(result);
}

static void one(unsigned id, const char *name)
{
	LLVMContextRef context = LLVMContextCreate();
	struct tally_lift_options options = {.file = "x.ll", .verify = true};
	struct tally_error error = {0};
	struct tally_buffer text = {0};
	LLVMModuleRef module;
	LLVMValueRef kernel;
	char *printed;

	print_caller(&text, context, id, name);
	module = tally_bitcode_lift(context, text.data, text.size, true, &options, &error);
	if (!module)
		fail_msg("%s: %u:%u %s", name, error.line, error.column, error.message);
	kernel = LLVMGetNamedFunction(module, "k");
	printed = LLVMPrintModuleToString(module);
	if (tally_attribute(kernel, TALLY_ATTR_LOCKED) || !strstr(printed, "@tally.mma."))
		fail_msg("%s is no operation:\n%s", name, printed);
	LLVMDisposeMessage(printed);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
	tally_buffer_free(&text);
}

static void all(void **state)
{
	/* LLVM numbers its intrinsics in the order of their names. */
	unsigned first = LLVMLookupIntrinsicID("llvm.nvvm.mma.and.popc.m16n8k128.row.col.b1", 43);
	unsigned count = 0;
	size_t length;

	assert_true(first);
	for (const char *name; name = LLVMIntrinsicGetName(first + count, &length),
			       !strncmp(name, prefix, strlen(prefix));
	     count++)
		one(first + count, name);
	assert_true(count >= AT_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
