/* SPDX-License-Identifier: Apache-2.0 */
/* The contract: its table, and a verifier that accepts what it must and names what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "tests/ir_passes/ir_test.h"

#define KERNEL "#0 = { \"tally.kernel\" \"tally.warp\"=\"32\" }\n"

static void table_has_no_name_twice(void **state)
{
	const struct tally_operation *a, *b;

	for (size_t i = 0; (a = tally_operation_at(i)); i++) {
		assert_ptr_equal(tally_operation_find(a->name), a);
		for (size_t j = i + 1; (b = tally_operation_at(j)); j++)
			assert_string_not_equal(a->name, b->name);
	}
}

static void find_answers_families(void **state)
{
	assert_string_equal(tally_operation_find("tally.math.erf.f32")->signature, "ff");
	assert_string_equal(tally_operation_find("tally.math.remquo.f64")->signature, "dddp");
	assert_string_equal(tally_operation_find("tally.cvt.rm.bf16.f32")->signature, "yf");
	assert_string_equal(tally_operation_find("tally.barrier")->signature, "vii");
	assert_int_equal(tally_operation_find("tally.barrier")->kind, TALLY_OP_CONVERGENT);
	assert_null(tally_operation_find("tally.math.erf"));
	assert_null(tally_operation_find("tally.nonsense"));
	assert_null(tally_operation_find("printf"));
}

static void every_declaration_verifies(void **state)
{
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = tally_module_create("all", context);
	struct tally_error error = {0};
	const struct tally_operation *operation;

	for (size_t i = 0; (operation = tally_operation_at(i)); i++)
		assert_non_null(tally_operation_declare(module, operation->name));
	assert_true(tally_contract_verify(module, &error));
	assert_null(tally_operation_declare(module, "tally.nonsense"));
	assert_true(ir_test_contains(module,
				     "declare { i32, i1 } @tally.shuffle.up(i32, i32, i32, i32)"));
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

static void good_module_passes(void **state)
{
	static const char text[] = IR_LAYOUT
		"@s = internal addrspace(3) global [64 x i32] undef, align 4\n"
		"@dyn = external addrspace(3) global [0 x i8], align 16\n"
		"@counter = addrspace(1) global i32 0, align 4\n"
		"@table = internal addrspace(4) constant [2 x i32] [i32 1, i32 2], align 4\n"
		"%big = type { i64, [4 x i32] }\n"
		"define void @k(ptr addrspace(1) %p, ptr byval(%big) align 8 %b) #0 {\n"
		"  %a = alloca i32, align 4\n"
		"  %x = call i32 @tally.block.id.x()\n"
		"  %v = call i32 @helper(i32 %x)\n"
		"  %o = atomicrmw add ptr addrspace(1) @counter, i32 %v syncscope(\"device\") "
		"monotonic, align 4\n"
		"  fence syncscope(\"block\") seq_cst\n"
		"  call void @tally.barrier(i32 0, i32 0)\n"
		"  store i32 %o, ptr %a, align 4\n"
		"  ret void\n}\n"
		"define internal i32 @helper(i32 %x) {\n"
		"  %c = call i32 @llvm.ctpop.i32(i32 %x)\n  ret i32 %c\n}\n"
		"declare i32 @llvm.ctpop.i32(i32)\n"
		"declare i32 @tally.block.id.x()\ndeclare void @tally.barrier(i32, i32)\n"
		"attributes " KERNEL;
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = ir_test_parse(context, text);
	struct tally_error error = {0};

	if (!tally_contract_verify(module, &error))
		fail_msg("%s", error.message);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

/* What has no neutral meaning stays where the function says so. */
static void locked_function_keeps_its_intrinsics(void **state)
{
	static const char text[] = IR_LAYOUT
		"define void @k(ptr addrspace(3) %p) #0 {\n"
		"  call void @llvm.nvvm.fence.sc.cluster()\n"
		"  %q = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %p, "
		"i32 0)\n  ret void\n}\n"
		"declare void @llvm.nvvm.fence.sc.cluster()\n"
		"declare ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3), i32)\n"
		"attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" "
		"\"tally.vendor\"=\"nvidia\" \"tally.locked\"=\"mapa at a.cu:1:2\" }\n";
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = ir_test_parse(context, text);
	struct tally_error error = {0};

	if (!tally_contract_verify(module, &error))
		fail_msg("%s", error.message);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

/* Each breaks one rule; the message names what is wrong. */
static const struct {
	const char *rule, *text, *message;
} violations[] = {
	{"triple", IR_LAYOUT "target triple = \"nvptx64-nvidia-cuda\"\n", "target triple"},
	{"layout", "target datalayout = \"e-i64:64\"\n", "data layout"},
	{"alias", IR_LAYOUT "@a = addrspace(1) global i32 0\n@b = alias i32, ptr addrspace(1) @a\n",
	 "alias 'b'"},
	{"global space", IR_LAYOUT "@a = global i32 0\n", "variable 'a' is in address space 0"},
	{"shared init", IR_LAYOUT "@a = internal addrspace(3) global i32 7\n",
	 "has an initialiser"},
	{"shared extern", IR_LAYOUT "@a = external addrspace(3) global [3 x i32]\n",
	 "shared variable 'a' is declared but not defined"},
	{"shared linkage", IR_LAYOUT "@a = addrspace(3) global i32 undef\n", "not internal"},
	{"undefined variable", IR_LAYOUT "@a = external addrspace(1) global i32\n",
	 "variable 'a' is declared but not defined"},
	{"unknown call",
	 IR_LAYOUT "define void @k() #0 { call void @foo() ret void }\n"
		   "declare void @foo()\nattributes " KERNEL,
	 "function 'foo' is called but not defined"},
	{"unknown operation", IR_LAYOUT "declare void @tally.foo()\n",
	 "'tally.foo' is no operation"},
	{"operation type", IR_LAYOUT "declare i64 @tally.thread.id.x()\n",
	 "operation 'tally.thread.id.x' is declared as 'i64 ()'"},
	{"operation body", IR_LAYOUT "define internal i32 @tally.sm.id() { ret i32 0 }\n",
	 "operation 'tally.sm.id' is defined"},
	{"nvvm", IR_LAYOUT "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n", "vendor intrinsic"},
	{"amdgcn", IR_LAYOUT "declare i32 @llvm.amdgcn.workitem.id.x()\n", "vendor intrinsic"},
	{"nvvm unlocked",
	 IR_LAYOUT "define void @k() #0 { call void @llvm.nvvm.fence.sc.cluster() ret void }\n"
		   "declare void @llvm.nvvm.fence.sc.cluster()\nattributes " KERNEL,
	 "vendor intrinsic 'llvm.nvvm.fence.sc.cluster'"},
	{"kernel result", IR_LAYOUT "define i32 @k() #0 { ret i32 0 }\nattributes " KERNEL,
	 "kernel 'k' returns"},
	{"kernel convention",
	 IR_LAYOUT "define ptx_kernel void @k() #0 { ret void }\nattributes " KERNEL,
	 "calling convention"},
	{"kernel linkage", IR_LAYOUT "define weak void @k() #0 { ret void }\nattributes " KERNEL,
	 "kernel 'k' is not externally visible"},
	{"kernel called",
	 IR_LAYOUT "define void @k() #0 { ret void }\n"
		   "define internal void @f() { call void @k() ret void }\nattributes " KERNEL,
	 "kernel 'k' is called"},
	{"kernel warp",
	 IR_LAYOUT "define void @k() #0 { ret void }\nattributes #0 = { \"tally.kernel\" }\n",
	 "tally.warp"},
	{"maxntid",
	 IR_LAYOUT "define void @k() #0 { ret void }\n"
		   "attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" "
		   "\"tally.maxntid\"=\"256\" }\n",
	 "\"tally.maxntid\"=\"256\" is not three positive numbers"},
	{"byval alignment",
	 IR_LAYOUT "define void @k(ptr byval(i64) %p) #0 { ret void }\nattributes " KERNEL,
	 "byval without an alignment"},
	{"variant of",
	 IR_LAYOUT "define void @k() #0 { ret void }\n"
		   "attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" "
		   "\"tally.variant\"=\"slice\" }\n",
	 "variant without \"tally.of\""},
	{"variant parameter",
	 IR_LAYOUT "define void @k(i32 %x) #0 { ret void }\n"
		   "attributes #0 = { \"tally.kernel\" \"tally.warp\"=\"32\" "
		   "\"tally.variant\"=\"slice\" \"tally.of\"=\"k\" }\n",
	 "no struct tally_launch"},
	{"device linkage", IR_LAYOUT "define void @f() { ret void }\n",
	 "device function 'f' is not internal"},
	{"noinline", IR_LAYOUT "define internal void @f() noinline { ret void }\n",
	 "marked noinline"},
	{"target-cpu",
	 IR_LAYOUT "define internal void @f() \"target-cpu\"=\"sm_80\" { ret void }\n",
	 "carries \"target-cpu\""},
	{"asm",
	 IR_LAYOUT "define internal void @f() { call void asm \"wgmma;\", \"\"() ret void }\n",
	 "function 'f': inline asm in a function that is not locked"},
	{"lock of the caller",
	 IR_LAYOUT "define void @k() #0 { call void @f() ret void }\n"
		   "define internal void @f() \"tally.vendor\"=\"nvidia\" "
		   "\"tally.locked\"=\"wgmma at a.cu:1:2\" { ret void }\nattributes " KERNEL,
	 "function 'k' calls 'f', which is locked to nvidia by wgmma at a.cu:1:2"},
	{"scope",
	 IR_LAYOUT "define internal void @f() { fence syncscope(\"agent\") seq_cst ret void }\n",
	 "function 'f': sync scope is not of the contract: fence syncscope(\"agent\") seq_cst"},
	{"cluster scope",
	 IR_LAYOUT "define internal void @f() { fence syncscope(\"cluster\") seq_cst ret void }\n",
	 "cluster scope"},
	{"pointer space",
	 IR_LAYOUT "define internal i32 @f(ptr addrspace(7) %p) {\n"
		   "  %x = load i32, ptr addrspace(7) %p, align 4\n  ret i32 %x\n}\n",
	 "address space is not of the contract"},
	{"alloca space",
	 IR_LAYOUT "define internal void @f() {\n"
		   "  %a = alloca i32, align 4, addrspace(5)\n  ret void\n}\n",
	 "alloca outside address space 0"},
	{"va_arg",
	 IR_LAYOUT "define internal i32 @f(ptr %l) {\n  %x = va_arg ptr %l, i32\n  ret i32 %x\n}\n",
	 "instruction is not of the contract"},
};

static void each_violation_is_named(void **state)
{
	for (size_t k = 0; k < sizeof violations / sizeof *violations; k++) {
		LLVMContextRef context = LLVMContextCreate();
		LLVMModuleRef module = ir_test_parse(context, violations[k].text);
		struct tally_error error = {0};

		if (tally_contract_verify(module, &error))
			fail_msg("rule '%s' was not checked", violations[k].rule);
		if (!strstr(error.message, violations[k].message))
			fail_msg("rule '%s': message is '%s'", violations[k].rule, error.message);
		LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
}

static void locks_reach_kernels(void **state)
{
	static const char text[] =
		IR_LAYOUT "define void @k() #0 { call void @g() ret void }\n"
			  "define void @free() #0 { ret void }\n"
			  "define internal void @g() { call void @f() ret void }\n"
			  "define internal void @f() \"tally.vendor\"=\"nvidia\" "
			  "\"tally.locked\"=\"x at y:1:2\" {\n"
			  "  call void asm \"wgmma;\", \"\"()\n  ret void\n}\n"
			  "attributes " KERNEL;
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = ir_test_parse(context, text);
	struct tally_error error = {0};

	assert_false(tally_contract_verify(module, &error));
	tally_propagate_locks(module);
	error.message[0] = '\0';
	assert_true(tally_contract_verify(module, &error));
	assert_string_equal(tally_attribute(LLVMGetNamedFunction(module, "k"), TALLY_ATTR_LOCKED),
			    "x at y:1:2");
	assert_null(tally_attribute(LLVMGetNamedFunction(module, "free"), TALLY_ATTR_LOCKED));
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

static bool used_by_instruction(LLVMValueRef constant)
{
	TALLY_EACH_USE (constant, u)
		if (LLVMIsAInstruction(LLVMGetUser(u)) || used_by_instruction(LLVMGetUser(u)))
			return true;
	return false;
}

static LLVMValueRef give(LLVMBuilderRef builder, LLVMValueRef global, void *data)
{
	return data;
}

static void global_is_replaced_in_constants(void **state)
{
	static const char text[] =
		IR_LAYOUT "@s = internal addrspace(3) global [64 x i32] undef, align 4\n"
			  "@other = internal addrspace(3) global i32 undef, align 4\n"
			  "define void @k(i1 %c, ptr addrspace(3) %base) #0 {\n"
			  "entry:\n  br i1 %c, label %a, label %b\n"
			  "a:\n  br label %b\n"
			  "b:\n"
			  "  %p = phi ptr [ addrspacecast (ptr addrspace(3) getelementptr (i8, ptr "
			  "addrspace(3) @s, i64 8) to ptr), %entry ], [ null, %a ]\n"
			  "  store i32 1, ptr %p, align 4\n"
			  "  store i32 ptrtoint (ptr addrspace(3) @s to i32), ptr addrspace(3) "
			  "@other, align 4\n"
			  "  store <2 x ptr addrspace(3)> <ptr addrspace(3) @s, ptr addrspace(3) "
			  "null>, ptr %p, align 8\n"
			  "  ret void\n}\n"
			  "attributes " KERNEL;
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = ir_test_parse(context, text);
	struct tally_error error = {0};
	LLVMValueRef global = LLVMGetNamedGlobal(module, "s");
	LLVMValueRef parameter = LLVMGetParam(LLVMGetNamedFunction(module, "k"), 1);
	int uses = 0;

	assert_true(tally_replace_global(global, give, parameter));
	if (!tally_contract_verify(module, &error))
		fail_msg("%s", error.message);
	assert_false(used_by_instruction(global));
	TALLY_EACH_USE (parameter, u)
		uses++;
	assert_int_equal(uses, 3);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_has_no_name_twice),
		cmocka_unit_test(find_answers_families),
		cmocka_unit_test(every_declaration_verifies),
		cmocka_unit_test(good_module_passes),
		cmocka_unit_test(locked_function_keeps_its_intrinsics),
		cmocka_unit_test(each_violation_is_named),
		cmocka_unit_test(locks_reach_kernels),
		cmocka_unit_test(global_is_replaced_in_constants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
