/* SPDX-License-Identifier: Apache-2.0 */
/* Inline PTX of bitcode: lifted through the instruction table and run, or left and locked. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>

#include "frontend/frontend.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

static LLVMModuleRef parse(LLVMContextRef context, const char *ir)
{
	LLVMMemoryBufferRef buffer =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, strlen(ir), "asm.ll");
	LLVMModuleRef module;
	char *message = NULL;

	if (LLVMParseIRInContext(context, buffer, &module, &message))
		fail_msg("%s", message);
	LLVMSetDataLayout(module, TALLY_DATA_LAYOUT);
	return module;
}

struct all {
	LLVMModuleRef module;
	struct tally_error error;
	bool ok;
};

static bool lift_one(LLVMValueRef i, void *data)
{
	struct tally_lift_options options = {.file = "app.bc"};
	struct all *all = data;

	if (LLVMIsACallInst(i) && LLVMIsAInlineAsm(LLVMGetCalledValue(i)))
		all->ok &= tally_ptx_lift_asm(all->module, i, &options, &all->error);
	return true;
}

static struct all lift(LLVMContextRef context, const char *ir)
{
	struct all all = {.module = parse(context, ir), .ok = true};

	tally_visit_instructions(LLVMGetNamedFunction(all.module, "f"), lift_one, &all);
	return all;
}

static int has_asm(LLVMModuleRef module)
{
	char *text = LLVMPrintModuleToString(module);
	int found = strstr(text, " asm ") != NULL;

	LLVMDisposeMessage(text);
	return found;
}

static const struct {
	const char *body;
	uint64_t a, b, expected;
} runs[] = {
	{"%r = call i64 asm \"add.u64 $0, $1, $2;\", \"=l,l,l\"(i64 %a, i64 %b)", 3, 4, 7},
	/* no semicolon at the end, a comment, an immediate, a register that is read and written */
	{"%r = call i64 asm \"mad.lo.u64 $0, $1, ${3:x}, $0 // sum\", \"=l,l,0,n\"(i64 %a, i64 %b, "
	 "i32 10)",
	 3, 4, 34},
	/* two ways of one instruction and a branch each */
	{"%r = call i64 asm sideeffect \"{ .reg .pred %p; setp.lt.u64 %p, $1, $2; @%p bra $$LESS; "
	 "mov.u64 $0, 200; bra $$END; $$LESS: mov.u64 $0, 100; $$END: }\", \"=l,l,l\"(i64 %a, i64 "
	 "%b)",
	 9, 4, 200},
	/* two results, registers of its own, a branch, percent names */
	{"%s = call { i64, i64 } asm sideeffect \"{ .reg .pred %p; .reg .b64 t; setp.lt.u64 %p, "
	 "$2, $3;\\0A"
	 "mov.u64 t, 100; @%p bra $$LESS; mov.u64 t, 200; $$LESS: add.u64 $0, t, $2; mov.u64 $1, "
	 "5; }\", "
	 "\"=&l,=l,l,l,~{memory}\"(i64 %a, i64 %b)\n"
	 "%x = extractvalue { i64, i64 } %s, 0\n%y = extractvalue { i64, i64 } %s, 1\n%r = add i64 "
	 "%x, %y",
	 3, 4, 108},
	{"%c = trunc i64 %a to i32\n%d = trunc i64 %b to i32\n"
	 "%s = call i32 asm \"add.cc.u32 $0, $1, $2; addc.u32 $0, 0, 0;\", \"=r,r,r\"(i32 %c, i32 "
	 "%d)\n"
	 "%r = zext i32 %s to i64",
	 0xffffffff, 1, 1},
	{"%p = alloca i64\nstore i64 %a, ptr %p\n"
	 "%s = call i64 asm sideeffect \"ld.relaxed.gpu.b64 $0,[$1];\", \"=l,l,~{memory}\"(ptr "
	 "%p)\n"
	 "%r = add i64 %s, %b",
	 30, 4, 34},
	/* not volatile, and nobody asks for its result; but it writes memory */
	{"%p = alloca i64\nstore i64 %a, ptr %p\n"
	 "%s = call i64 asm \"atom.add.u64 $0,[$1],$2;\", \"=l,l,l,~{memory}\"(ptr %p, i64 %b)\n"
	 "%r = load i64, ptr %p",
	 30, 4, 34},
	{"%h = trunc i64 %a to i16\n%f = bitcast i16 %h to half\n"
	 "%s = call half asm \"{add.f16 $0,$1,$1;\\0A}\", \"=h,h\"(half %f)\n"
	 "%t = bitcast half %s to i16\n%r = zext i16 %t to i64",
	 0x3c00, 0, 0x4000},
};

static void runs_lifted(void **state)
{
	LLVMLinkInMCJIT();
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		char ir[2048], *message;
		LLVMContextRef context = LLVMContextCreate();
		LLVMExecutionEngineRef engine;
		uint64_t (*f)(uint64_t, uint64_t), r;
		snprintf(ir, sizeof ir, "define i64 @f(i64 %%a, i64 %%b) {\n%s\nret i64 %%r\n}\n",
			 runs[i].body);
		struct all all = lift(context, ir);
		if (!all.ok || has_asm(all.module))
			fail_msg("case %zu: %s", i, all.error.message);
		assert_true(tally_verify_ir(all.module, "asm", &all.error));
		LLVMSetDataLayout(all.module, "");
		assert_false(LLVMCreateJITCompilerForModule(&engine, all.module, 1, &message));
		f = (uint64_t (*)(uint64_t, uint64_t))LLVMGetFunctionAddress(engine, "f");
		r = f(runs[i].a, runs[i].b);
		if (r != runs[i].expected)
			fail_msg("case %zu: %llx, expected %llx", i, (unsigned long long)r,
				 (unsigned long long)runs[i].expected);
		LLVMDisposeExecutionEngine(engine);
		LLVMContextDispose(context);
	}
}

static const struct {
	const char *body, *locked;
} locks[] = {
	{"call void asm sideeffect \"wgmma.fence.sync.aligned;\", \"~{memory}\"()",
	 "wgmma.fence.sync.aligned at app.bc"},
	{"call void asm sideeffect \"brandnew.thing $0;\", \"l\"(i64 %a)",
	 "brandnew.thing at app.bc"},
	{"%x = call i32 asm sideeffect \"mov.u32 $0, %cluster_ctarank;\", \"=r\"()",
	 "%cluster_ctarank at app.bc"},
	/* the carry flag goes from one string to the next: both must stay */
	{"%x = call i64 asm sideeffect \"add.cc.u64 $0, $1, $1;\", \"=l,l\"(i64 %a)",
	 "add.cc.u64 at app.bc"},
	{"%x = call i64 asm sideeffect \"addc.u64 $0, $1, $1;\", \"=l,l\"(i64 %a)",
	 "addc.u64 at app.bc"},
	{"%p = alloca i64\ncall void asm sideeffect \"st.u64 $0, 1;\", \"=*m\"(ptr "
	 "elementtype(i64) %p)",
	 "inline asm with an operand of another kind at app.bc"},
};

static void locks_others(void **state)
{
	for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
		char ir[1024];
		LLVMContextRef context = LLVMContextCreate();
		snprintf(ir, sizeof ir, "define void @f(i64 %%a) {\n%s\nret void\n}\n",
			 locks[i].body);
		struct all all = lift(context, ir);
		LLVMValueRef f = LLVMGetNamedFunction(all.module, "f");
		if (!all.ok || !has_asm(all.module))
			fail_msg("case %zu: %s", i, all.error.message);
		assert_string_equal(tally_attribute(f, TALLY_ATTR_VENDOR), "nvidia");
		assert_string_equal(tally_attribute(f, TALLY_ATTR_LOCKED), locks[i].locked);
		assert_null(LLVMGetNextFunction(f)); /* nothing half-built stays */
		LLVMDisposeModule(all.module);
		LLVMContextDispose(context);
	}
}

/* Equal strings share one helper. */
static void shares(void **state)
{
	LLVMContextRef context = LLVMContextCreate();
	struct all all =
		lift(context, "define i64 @f(i64 %a) {\n"
			      "%x = call i64 asm \"add.u64 $0, $1, 1;\", \"=l,l\"(i64 %a)\n"
			      "%y = call i64 asm \"add.u64 $0, $1, 1;\", \"=l,l\"(i64 %x)\n"
			      "ret i64 %y\n}\n");
	LLVMValueRef f = LLVMGetNamedFunction(all.module, "f");

	assert_true(all.ok);
	assert_non_null(LLVMGetNextFunction(f));
	assert_null(LLVMGetNextFunction(LLVMGetNextFunction(f)));
	LLVMDisposeModule(all.module);
	LLVMContextDispose(context);
}

/* Nothing is kept, or locked, for a result that nobody uses. */
static void drops_unused(void **state)
{
	LLVMContextRef context = LLVMContextCreate();
	struct all all = lift(context, "define void @f() {\n%x = call i32 asm \"mov.u32 $0, "
				       "%reserved_smem_offset_1;\", \"=r\"()\nret void\n}\n");

	assert_true(all.ok);
	assert_false(has_asm(all.module));
	assert_null(tally_attribute(LLVMGetNamedFunction(all.module, "f"), TALLY_ATTR_VENDOR));
	LLVMDisposeModule(all.module);
	LLVMContextDispose(context);
}

static void refuses_nonsense(void **state)
{
	LLVMContextRef context = LLVMContextCreate();
	struct all all = lift(context, "define void @f() {\ncall void asm sideeffect "
				       "\"add.u32 ,,,;\", \"\"()\nret void\n}\n");

	assert_false(all.ok);
	assert_string_equal(all.error.file, "app.bc");
	assert_non_null(strstr(all.error.message, "inline asm, 1:9: expected an operand"));
	LLVMDisposeModule(all.module);
	LLVMContextDispose(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_lifted),	    cmocka_unit_test(locks_others),
		cmocka_unit_test(shares),	    cmocka_unit_test(drops_unused),
		cmocka_unit_test(refuses_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
