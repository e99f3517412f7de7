/* SPDX-License-Identifier: Apache-2.0 */
/* PTX, as a file or in inline assembly, gives a module that keeps the contract, before and after
 * the transforms, or one error. */
#include <llvm-c/IRReader.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/passes.h"
#include "tests/fuzz/fuzz.h"

/* What LLVM has to say goes into errors of ours. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
	(void)info, (void)data;
}

static LLVMContextRef new_context(void)
{
	LLVMContextRef context = LLVMContextCreate();

	LLVMContextSetDiagnosticHandler(context, on_diagnostic, NULL);
	return context;
}

static void transform(LLVMModuleRef module, unsigned set)
{
	const struct tally_pass_options options = {.transforms = set, .verify = true};
	struct tally_error error = {0};

	fuzz_check(tally_passes_run(module, &options, &error), &error);
}

void fuzz_run_ptx(const uint8_t *data, size_t size)
{
	static const unsigned sets[] = {TALLY_SLICE | TALLY_GUARD, TALLY_GUARD, TALLY_PERSIST,
					TALLY_SLICE | TALLY_GUARD | TALLY_PERSIST};
	struct tally_lift_options options = {.file = "fuzz.ptx"};
	struct tally_error error = {0};
	LLVMContextRef context = new_context();
	char *text = malloc(size + 1);
	LLVMModuleRef module;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	module = tally_ptx_lift(context, text, size, &options, &error);
	fuzz_check(module, &error);
	if (module) {
		if (!tally_contract_verify(module, &error))
			abort(); /* the lifter's promise */
		transform(module, sets[size % 4]);
		LLVMDisposeModule(module);
	}
	free(text);
	LLVMContextDispose(context);
}

/* A function for the text to stand in: operands of every kind of register, in and out. */
static LLVMValueRef asm_call(LLVMContextRef context, LLVMModuleRef module, char *text, size_t size)
{
	static const char constraints[] = "=r,=l,=f,=d,=h,r,l,f,d,h,n,0,~{memory}";
	LLVMTypeRef i16 = LLVMInt16TypeInContext(context), i32 = LLVMInt32TypeInContext(context),
		    i64 = LLVMInt64TypeInContext(context), f32 = LLVMFloatTypeInContext(context),
		    f64 = LLVMDoubleTypeInContext(context);
	LLVMTypeRef results[] = {i32, i64, f32, f64, i16};
	LLVMTypeRef in[] = {i32, i64, f32, f64, i16};
	LLVMTypeRef operands[] = {i32, i64, f32, f64, i16, i32, i32};
	LLVMTypeRef result = LLVMStructTypeInContext(context, results, 5, false);
	LLVMTypeRef type = LLVMFunctionType(result, in, 5, false);
	LLVMValueRef f = LLVMAddFunction(module, "f", type), values[7], call;
	LLVMBuilderRef b = LLVMCreateBuilderInContext(context);

	LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(context, f, ""));
	for (unsigned i = 0; i < 5; i++)
		values[i] = LLVMGetParam(f, i);
	values[5] = LLVMConstInt(i32, 7, false);
	values[6] = values[0];
	type = LLVMFunctionType(result, operands, 7, false);
	call = LLVMBuildCall2(b, type,
			      LLVMGetInlineAsm(type, text, size, constraints, strlen(constraints),
					       true, false, LLVMInlineAsmDialectATT, false),
			      values, 7, "");
	LLVMBuildRet(b, call);
	LLVMDisposeBuilder(b);
	return call;
}

void fuzz_run_asm(const uint8_t *data, size_t size)
{
	const struct tally_lift_options options = {.file = "fuzz.bc"};
	struct tally_error error = {0};
	LLVMContextRef context = new_context();
	LLVMModuleRef module = tally_module_create("fuzz", context);
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	/* LLVM's readers take no NUL in the middle of an asm string either. */
	LLVMValueRef call = asm_call(context, module, text, strlen(text));
	bool ok = tally_ptx_lift_asm(module, call, &options, &error);

	fuzz_check(ok, &error);
	if (ok && !tally_verify_ir(module, "inline assembly", &error))
		abort();
	free(text);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
}
