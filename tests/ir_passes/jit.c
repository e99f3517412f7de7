/* SPDX-License-Identifier: Apache-2.0 */
/* Runs neutral IR on the host through LLVM's JIT, so that tests compare results and not only text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <llvm-c/LLJIT.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "tests/ir_passes/ir_test.h"
#include "tests/ir_passes/jit.h"

struct ir_jit {
	LLVMOrcLLJITRef lljit;
};

static void check(LLVMErrorRef failure)
{
	if (!failure)
		return;
	fprintf(stderr, "jit: %s\n", LLVMGetErrorMessage(failure));
	exit(1);
}

LLVMContextRef ir_jit_context(void)
{
	return LLVMContextCreate();
}

struct ir_jit *ir_jit_create(LLVMContextRef context, LLVMModuleRef module, const char *support)
{
	struct ir_jit *jit = calloc(1, sizeof *jit);
	LLVMOrcDefinitionGeneratorRef generator;
	LLVMOrcThreadSafeContextRef safe;
	LLVMOrcJITDylibRef library;

	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	check(LLVMOrcCreateLLJIT(&jit->lljit, NULL));
	library = LLVMOrcLLJITGetMainJITDylib(jit->lljit);
	check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
		&generator, LLVMOrcLLJITGetGlobalPrefix(jit->lljit), NULL, NULL));
	LLVMOrcJITDylibAddGenerator(library, generator);
	LLVMSetDataLayout(module, LLVMOrcLLJITGetDataLayoutStr(jit->lljit));
	LLVMSetTarget(module, LLVMOrcLLJITGetTripleString(jit->lljit));
	if (support) {
		LLVMModuleRef other = ir_test_parse(context, support);

		LLVMSetDataLayout(other, LLVMGetDataLayoutStr(module));
		LLVMSetTarget(other, LLVMGetTarget(module));
		if (LLVMLinkModules2(module, other))
			exit(1);
	}
	safe = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(context);
	check(LLVMOrcLLJITAddLLVMIRModule(jit->lljit, library,
					  LLVMOrcCreateNewThreadSafeModule(module, safe)));
	LLVMOrcDisposeThreadSafeContext(safe);
	return jit;
}

struct ir_jit *ir_jit_of_file(const char *file, const char *support)
{
	LLVMContextRef context = ir_jit_context();
	char path[512];

	snprintf(path, sizeof path, "%s/%s", TALLY_SOURCE_DIR, file);
	return ir_jit_create(context, ir_test_parse_file(context, path), support);
}

void *ir_jit_lookup(struct ir_jit *jit, const char *name)
{
	LLVMOrcExecutorAddress address;

	check(LLVMOrcLLJITLookup(jit->lljit, &address, name));
	return (void *)(uintptr_t)address;
}

void ir_jit_destroy(struct ir_jit *jit)
{
	check(LLVMOrcDisposeLLJIT(jit->lljit));
	free(jit);
}

int ir_jit_teardown(void **state)
{
	ir_jit_destroy(*state);
	return 0;
}
