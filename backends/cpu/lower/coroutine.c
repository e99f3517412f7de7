/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels whose threads meet: each thread is a coroutine (LLVM's switched-resume lowering). The
 * frame comes from the block's arena, so nobody destroys it. Each tally.cpu.suspend stops the
 * thread and returns to the executor, which reads the thread's record, and resumes it when what it
 * waits for has come.
 */
#include <stdio.h>
#include <string.h>

#include <llvm-c/Transforms/PassBuilder.h>

#include "backends/cpu/lower/internal.h"
#include "base/buffer.h"

static const char start[] =
	"declare void @k%1$u.thread(ptr, ptr, ptr, i32, i32, i32, i32)\n"
	"declare token @llvm.coro.id(i32, ptr, ptr, ptr)\n"
	"declare i64 @llvm.coro.size.i64()\n"
	"declare ptr @llvm.coro.begin(token, ptr)\n"
	"declare void @llvm.coro.end(ptr, i1, token)\n"
	"define ptr @k%1$u.start(ptr %%params, ptr %%thread) nounwind presplitcoroutine {\n"
	"entry:\n"
	"  %%id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)\n"
	"  %%block = load ptr, ptr %%thread, align 8, !invariant.load !0\n"
	"  %%exact = call i64 @llvm.coro.size.i64()\n"
	"  %%more = add i64 %%exact, 63\n"
	"  %%size = and i64 %%more, -64\n" CPU_FRAME_HERE
	"  br i1 %%fits, label %%take, label %%ask\n"
	"take:\n"
	"  store ptr %%behind, ptr %%next.at, align 8\n"
	"  br label %%begin\n" CPU_FRAME_ASK "fail:\n"
	"  ret ptr null\n"
	"begin:\n"
	"  %%memory = phi ptr [ %%here, %%take ], [ %%new, %%ask ]\n"
	"  %%handle = call ptr @llvm.coro.begin(token %%id, ptr %%memory)\n"
	"  %%x.at = getelementptr inbounds i8, ptr %%thread, i64 16\n"
	"  %%y.at = getelementptr inbounds i8, ptr %%thread, i64 20\n"
	"  %%z.at = getelementptr inbounds i8, ptr %%thread, i64 24\n"
	"  %%linear.at = getelementptr inbounds i8, ptr %%thread, i64 28\n"
	"  %%x = load i32, ptr %%x.at, align 4, !range !1, !invariant.load !0\n"
	"  %%y = load i32, ptr %%y.at, align 4, !range !1, !invariant.load !0\n"
	"  %%z = load i32, ptr %%z.at, align 4, !range !1, !invariant.load !0\n"
	"  %%linear = load i32, ptr %%linear.at, align 4, !range !1, !invariant.load !0\n"
	"  call void @k%1$u.thread(ptr %%params, ptr %%block, ptr %%thread, i32 %%x, i32 %%y, i32 "
	"%%z, i32 %%linear)\n"
	"  %%state.at = getelementptr inbounds i8, ptr %%thread, i64 32\n"
	"  store i64 1, ptr %%state.at, align 8\n"
	"  br label %%end\n"
	"end:\n"
	"  call void @llvm.coro.end(ptr %%handle, i1 false, token none)\n"
	"  ret ptr %%handle\n"
	"}\n"
	"!0 = !{}\n"
	"!1 = !{i32 0, i32 1024}\n";

bool cpu_is_coroutine(const struct cpu_kernel *kernel)
{
	return cpu_calls(kernel->thread, "tally.cpu.suspend");
}

LLVMValueRef cpu_build_suspension(struct cpu_lowering *l, LLVMValueRef thread,
				  enum tally_cpu_operation operation)
{
	LLVMTypeRef type = LLVMFunctionType(l->void_type, NULL, 0, 0);
	LLVMValueRef suspend = LLVMGetNamedFunction(l->module, "tally.cpu.suspend");
	LLVMValueRef offset = LLVMConstInt(l->i64, offsetof(struct tally_cpu_thread, operation), 0);
	LLVMValueRef head = LLVMBuildInBoundsGEP2(l->builder, l->i8,
						  LLVMGetParam(thread, CPU_THREAD), &offset, 1, "");

	if (!suspend) {
		suspend = LLVMAddFunction(l->module, "tally.cpu.suspend", type);
		tally_add_attribute(suspend, "convergent", 0);
		tally_add_attribute(suspend, "nounwind", 0);
	}
	LLVMSetAlignment(LLVMBuildStore(l->builder, LLVMConstInt(l->i64, operation, 0), head), 8);
	return LLVMBuildCall2(l->builder, type, suspend, NULL, 0, "");
}

LLVMBasicBlockRef cpu_split_before(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMBasicBlockRef tail = LLVMGetInstructionParent(i);
	LLVMBasicBlockRef first = LLVMInsertBasicBlockInContext(l->context, tail, "");

	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(tail);

	/* Branches to the block go to its first half, while phis after it go on naming the second,
	 * which keeps the terminator. LLVM would change the phis too, if it found a terminator. */
	LLVMInstructionRemoveFromParent(terminator);
	LLVMReplaceAllUsesWith(LLVMBasicBlockAsValue(tail), LLVMBasicBlockAsValue(first));
	LLVMPositionBuilderAtEnd(l->builder, tail);
	LLVMInsertIntoBuilder(l->builder, terminator);
	LLVMPositionBuilderAtEnd(l->builder, first);
	for (LLVMValueRef at; (at = LLVMGetFirstInstruction(tail)) != i;) {
		LLVMInstructionRemoveFromParent(at);
		LLVMInsertIntoBuilder(l->builder, at);
	}
	return first;
}

static void suspend_at(struct cpu_lowering *l, LLVMValueRef call, LLVMBasicBlockRef end)
{
	LLVMValueRef state, branch;
	LLVMBasicBlockRef tail = LLVMGetInstructionParent(call), first = cpu_split_before(l, call);
	LLVMValueRef arguments[2] = {LLVMConstNull(LLVMTokenTypeInContext(l->context)),
				     LLVMConstNull(l->i1)};

	LLVMPositionBuilderAtEnd(l->builder, first);
	state = tally_build_intrinsic(l->builder, l->module, "llvm.coro.suspend", NULL, 0,
				      arguments, 2);
	branch = LLVMBuildSwitch(l->builder, state, end, 2);
	LLVMAddCase(branch, LLVMConstInt(l->i8, 0, 0), tail);
	LLVMAddCase(branch, LLVMConstInt(l->i8, 1, 0), end);
	LLVMInstructionEraseFromParent(call);
}

static LLVMBasicBlockRef find_block(LLVMValueRef function, const char *name)
{
	TALLY_EACH_BLOCK (function, block)
		if (!strcmp(LLVMGetBasicBlockName(block), name))
			return block;
	return NULL;
}

bool cpu_run_passes(struct cpu_lowering *l, const struct cpu_kernel *kernel, LLVMValueRef function,
		    const char *passes)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef failure = LLVMRunPassesOnFunction(function, passes, l->machine, options);
	char *message;

	LLVMDisposePassBuilderOptions(options);
	if (!failure)
		return true;
	message = LLVMGetErrorMessage(failure);
	tally_fail(l->error, "optimising '%s': %s", kernel->name, message);
	LLVMDisposeErrorMessage(message);
	return false;
}

/*
 * Optimises the thread while its suspensions are still calls in the middle of straight code. Were
 * they branches already, LLVM would sink values across them to where they are used, and all their
 * operands would have to be kept in the frame instead.
 */
static bool optimise_thread(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	static const char passes[] =
		"sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,jump-threading,"
		"correlated-propagation,simplifycfg,instcombine<no-verify-fixpoint>,reassociate,"
		"loop-mssa(loop-instsimplify,loop-simplifycfg,licm,loop-rotate,licm,"
		"simple-loop-unswitch),simplifycfg,instcombine<no-verify-fixpoint>,"
		"loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),sroa,gvn,sccp,bdce,"
		"instcombine<no-verify-fixpoint>,jump-threading,correlated-propagation,adce,"
		"memcpyopt,dse,"
		"loop-mssa(licm),simplifycfg,instcombine<no-verify-fixpoint>,loop-vectorize,loop-"
		"unroll,instcombine<no-verify-fixpoint>,"
		"simplifycfg";

	return l->options->optimise <= 0 || cpu_run_passes(l, kernel, kernel->thread, passes);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

bool cpu_make_coroutine(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	struct tally_buffer text = {0};
	LLVMBasicBlockRef end;
	LLVMValueRef suspend;
	char name[64];
	bool ok;

	if (!optimise_thread(l, kernel))
		return false;
	tally_buffer_print(&text, start, kernel->index);
	LLVMSetLinkage(kernel->thread, LLVMExternalLinkage);
	ok = !text.failed && cpu_link_text(l, text.data);
	tally_buffer_free(&text);
	if (!ok)
		return tally_fail(l->error, "out of memory");
	LLVMSetLinkage(kernel->thread, LLVMInternalLinkage);
	tally_add_attribute(kernel->thread, "alwaysinline", 0);
	snprintf(name, sizeof name, "k%u.start", kernel->index);
	kernel->entry = LLVMGetNamedFunction(l->module, name);
	/* Found before inlining brings in blocks of that name. */
	end = find_block(kernel->entry, "end");
	if (!tally_lower_run_pipeline(l->module, "always-inline", l->machine, l->error))
		return false;
	suspend = LLVMGetNamedFunction(l->module, "tally.cpu.suspend");
	TALLY_EACH_USE (suspend, use) {
		LLVMValueRef call = LLVMGetUser(use);

		if (LLVMGetBasicBlockParent(LLVMGetInstructionParent(call)) == kernel->entry)
			suspend_at(l, call, end);
	}
	return cpu_keep_values(l, kernel->entry);
}
