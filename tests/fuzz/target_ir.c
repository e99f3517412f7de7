/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clang's IR and bitcode give neutral IR or one error. LLVM's own readers trust what they read and
 * may crash: that is contained by the worker process, and is not what is looked for here. So a
 * child reads and verifies first, and only what it survives goes on to our code.
 */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/IRReader.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend/frontend.h"
#include "ir_passes/contract.h"
#include "tests/fuzz/fuzz.h"

#define READ_SECONDS 10

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
	(void)info, (void)data;
}

static bool is_text(const uint8_t *data, size_t size)
{
	return size < 4 || (memcmp(data, "BC\300\336", 4) && memcmp(data, "\336\300\27\13", 4));
}

/* In the child: whether LLVM reads it. */
static void read_alone(const char *data, size_t size, bool text)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
	LLVMContextRef context = LLVMContextCreate();
	LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(data, size, "fuzz");
	LLVMModuleRef module = NULL;
	char *message = NULL;

	/* Ends at once and says nothing. */
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		signal(signals[i], SIG_DFL);
	close(STDERR_FILENO);
	alarm(READ_SECONDS);
	LLVMContextSetDiagnosticHandler(context, on_diagnostic, NULL);
	if (text ? LLVMParseIRInContext(context, buffer, &module, &message)
		 : LLVMParseBitcodeInContext2(context, buffer, &module))
		_exit(1);
	_exit(LLVMVerifyModule(module, LLVMReturnStatusAction, &message) ? 1 : 0);
}

static bool llvm_reads(const char *data, size_t size, bool text)
{
	int status;
	pid_t child = fork();

	if (!child)
		read_alone(data, size, text);
	while (child > 0 && waitpid(child, &status, 0) < 0)
		;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

void fuzz_run_ir(const uint8_t *data, size_t size)
{
	const struct tally_lift_options options = {.file = "fuzz.ll"};
	bool text = is_text(data, size);
	struct tally_error error = {0};
	LLVMContextRef context;
	LLVMModuleRef module;
	char *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	copy[size] = '\0';
	if (llvm_reads(copy, size, text)) {
		context = LLVMContextCreate();
		LLVMContextSetDiagnosticHandler(context, on_diagnostic, NULL);
		module = tally_bitcode_lift(context, copy, size, text, &options, &error);
		fuzz_check(module, &error);
		if (module)
			LLVMDisposeModule(module);
		LLVMContextDispose(context);
	}
	free(copy);
}
