/* SPDX-License-Identifier: Apache-2.0 */
/* See jit.h. */
#include "tests/fuzz/jit.h"

#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <stdio.h>
#include <stdlib.h>

static void need(LLVMErrorRef failure, const char *what)
{
	if (!failure)
		return;
	fprintf(stderr, "%s: %s\n", what, LLVMGetErrorMessage(failure));
	abort();
}

void *fuzz_load(const struct tally_buffer *object, struct tally_cpu_image *image)
{
	LLVMOrcLLJITRef jit;
	LLVMOrcExecutorAddress address;
	LLVMMemoryBufferRef bytes =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(object->data, object->size, "kernels");

	need(LLVMOrcCreateLLJIT(&jit, NULL), "LLJIT");
	need(LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), bytes), "object");
	need(LLVMOrcLLJITLookup(jit, &address, TALLY_CPU_MODULE_SYMBOL), "lookup");
	image->handle = NULL;
	image->module = (const struct tally_cpu_module *)(uintptr_t)address;
	if (image->module->version != TALLY_CPU_ABI_VERSION)
		abort();
	return jit;
}

void fuzz_unload(void *handle)
{
	need(LLVMOrcDisposeLLJIT(handle), "dispose");
}
