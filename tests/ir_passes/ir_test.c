/* SPDX-License-Identifier: Apache-2.0 */
/* Modules from IR text, for the tests of the LLVM parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/IRReader.h>

#include "tests/ir_passes/ir_test.h"

LLVMModuleRef ir_test_parse(LLVMContextRef context, const char *text)
{
	LLVMMemoryBufferRef buffer =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "test");
	LLVMModuleRef module;
	char *message = NULL;

	if (LLVMParseIRInContext(context, buffer, &module, &message)) {
		fprintf(stderr, "test IR: %s\n%s\n", message, text);
		exit(1);
	}
	return module;
}

bool ir_test_contains(LLVMModuleRef module, const char *needle)
{
	char *text = LLVMPrintModuleToString(module);
	bool found = strstr(text, needle) != NULL;

	LLVMDisposeMessage(text);
	return found;
}

bool ir_test_function_contains(LLVMModuleRef module, const char *function, const char *needle)
{
	LLVMValueRef value = LLVMGetNamedFunction(module, function);
	char *text;
	bool found;

	if (!value)
		return false;
	text = LLVMPrintValueToString(value);
	found = strstr(text, needle) != NULL;
	LLVMDisposeMessage(text);
	return found;
}

LLVMModuleRef ir_test_parse_file(LLVMContextRef context, const char *path)
{
	LLVMMemoryBufferRef buffer;
	LLVMModuleRef module;
	char *message = NULL;

	if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &message) ||
	    LLVMParseIRInContext(context, buffer, &module, &message)) {
		fprintf(stderr, "%s: %s\n", path, message);
		exit(1);
	}
	return module;
}

uint64_t ir_test_random(void)
{
	static uint64_t state = 0x243f6a8885a308d3u;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
