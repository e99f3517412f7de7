/* SPDX-License-Identifier: Apache-2.0 */
/* Runs PTX snippets: see run.h. */
#include "run.h"

#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "case.h"
#include "frontend/frontend.h"
#include "ir_passes/contract.h"
#include "reference.h"

static LLVMModuleRef lift(LLVMContextRef context, const struct ptx_case *cases, size_t count)
{
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	struct tally_lift_options options = {.file = "cases.ptx", .verify = true};
	LLVMModuleRef module;

	tally_buffer_print(&text,
			   ".version 9.0\n.target sm_100\n.address_size 64\n"
			   ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
			   ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
			   ".extern .func free(.param .b64 p);\n"
			   ".global .align 1 .b8 text[4] = {104, 105, 33, 0};\n"
			   ".global .u32 word = 41;\n"
			   ".const .align 4 .b32 table[3] = {10, 20, 30};\n"
			   ".global .u64 pointer = generic(word)+0;\n"
			   ".shared .align 8 .b8 pool[64];\n"
			   ".func (.param .b32 r) twice(.param .b32 a)\n"
			   "{ .reg .b32 %%t; ld.param.b32 %%t, [a]; add.u32 %%t, %%t, %%t;\n"
			   "st.param.b32 [r], %%t; ret; }\n"
			   ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 a[16])\n"
			   "{ .reg .b64 %%t<2>; ld.param.v2.b64 {%%t0, %%t1}, [a];\n"
			   "st.param.b64 [r+8], %%t0; st.param.b64 [r], %%t1; ret; }\n"
			   ".func (.reg .b32 r) old(.reg .b32 a) { add.u32 r, a, 3; ret; }\n");
	for (size_t i = 0; i < count; i++)
		ptx_write_kernel(&text, i, &cases[i]);
	module = tally_ptx_lift(context, text.data, text.size, &options, &error);
	if (!module || !tally_contract_verify(module, &error)) {
		const char *line = text.data;
		for (unsigned n = 1; n < error.line && line; n++)
			line = strchr(line, '\n') + 1;
		tally_error_print(&error, "ptx_run");
		fprintf(stderr, "%.*s\n", (int)strcspn(line, "\n"), line);
		exit(1);
	}
	tally_buffer_free(&text);
	return module;
}

/* Links IR text; what it defines stays only where it is used. */
static void link_text(LLVMContextRef context, LLVMModuleRef module, const char *text, size_t size)
{
	char *message = NULL;
	LLVMModuleRef part;
	LLVMMemoryBufferRef buffer =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(text, size, "library");

	if (LLVMParseIRInContext(context, buffer, &part, &message)) {
		fprintf(stderr, "%s\n", message);
		exit(1);
	}
	LLVMSetDataLayout(part, LLVMGetDataLayoutStr(module));
	for (LLVMValueRef f = LLVMGetFirstFunction(part); f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			LLVMSetLinkage(f, LLVMLinkOnceODRLinkage);
	if (LLVMLinkModules2(module, part))
		exit(1);
}

/* Bodies in IR: results of two parts, and the portable library's where C has none below. */
static void link_bodies(LLVMContextRef context, LLVMModuleRef module)
{
	static const char *const files[] = {"copies.ll", "narrow.ll", "narrow_more.ll"};

	link_text(context, module, reference_pairs, strlen(reference_pairs));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct tally_buffer text = {0};
		struct tally_error error = {0};
		char path[512];

		snprintf(path, sizeof path, "%s/ir_passes/%s", TALLY_SOURCE_DIR, files[i]);
		if (!tally_file_read(path, &text, &error)) {
			tally_error_print(&error, "ptx_run");
			exit(1);
		}
		link_text(context, module, text.data, text.size);
		tally_buffer_free(&text);
	}
}

size_t ptx_run(const struct ptx_case *cases, size_t count)
{
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = lift(context, cases, count);
	LLVMExecutionEngineRef engine;
	char *message = NULL, name[32];
	size_t wrong = 0;

	LLVMLinkInMCJIT();
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	link_bodies(context, module);
	LLVMSetDataLayout(module, "");
	for (const struct reference_symbol *s = reference_symbols; s->name; s++)
		LLVMAddSymbol(s->name, s->address);
	struct LLVMMCJITCompilerOptions options;
	LLVMInitializeMCJITCompilerOptions(&options, sizeof options);
	options.OptLevel = 1;
	if (LLVMCreateMCJITCompilerForModule(&engine, module, &options, sizeof options, &message)) {
		fprintf(stderr, "%s\n", message);
		exit(1);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t out = 0, in[4];
		void (*kernel)(uint64_t *, uint64_t *);
		snprintf(name, sizeof name, "k%zu", i);
		kernel = (void (*)(uint64_t *, uint64_t *))LLVMGetFunctionAddress(engine, name);
		memcpy(in, cases[i].input, sizeof in);
		kernel(in, &out);
		if (out == cases[i].expected)
			continue;
		fprintf(stderr, "%s\n  inputs %llx %llx %llx %llx: %llx, expected %llx\n",
			cases[i].code, (unsigned long long)in[0], (unsigned long long)in[1],
			(unsigned long long)in[2], (unsigned long long)in[3],
			(unsigned long long)out, (unsigned long long)cases[i].expected);
		wrong++;
	}
	LLVMDisposeExecutionEngine(engine);
	LLVMContextDispose(context);
	return wrong;
}
