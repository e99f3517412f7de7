/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels whose threads meet no other: all threads of a block in a loop nest, x innermost. Threads
 * of a block that do not meet may run in any order or at once, so the loops carry that promise and
 * LLVM vectorises them without looking for dependences.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"
#include "base/buffer.h"

enum { THREAD_LOOP = 2 }; /* its node of metadata */

/* From the end of a block named `entry` to the start of one named `done`. */
static const char nest[] = "  br label %%plane\n"
			   "plane:\n"
			   "  %%z = phi i32 [ 0, %%entry ], [ %%z.next, %%plane.end ]\n"
			   "  %%z.row = mul nuw nsw i32 %%z, %%y.size\n"
			   "  br label %%row\n"
			   "row:\n"
			   "  %%y = phi i32 [ 0, %%plane ], [ %%y.next, %%row.end ]\n"
			   "  %%row.index = add nuw nsw i32 %%z.row, %%y\n"
			   "  %%first = mul nuw nsw i32 %%row.index, %%x.size\n"
			   "  br label %%thread\n"
			   "thread:\n"
			   "  %%x = phi i32 [ 0, %%row ], [ %%x.next, %%thread ]\n"
			   "  %%linear = add nuw nsw i32 %%first, %%x\n"
			   "%1$s"
			   "  %%x.next = add nuw nsw i32 %%x, 1\n"
			   "  %%x.more = icmp ult i32 %%x.next, %%x.size\n"
			   "  br i1 %%x.more, label %%thread, label %%row.end, !llvm.loop !%2$u\n"
			   "row.end:\n"
			   "  %%y.next = add nuw nsw i32 %%y, 1\n"
			   "  %%y.more = icmp ult i32 %%y.next, %%y.size\n"
			   "  br i1 %%y.more, label %%row, label %%plane.end\n"
			   "plane.end:\n"
			   "  %%z.next = add nuw nsw i32 %%z, 1\n"
			   "  %%z.more = icmp ult i32 %%z.next, %%z.size\n"
			   "  br i1 %%z.more, label %%plane, label %%done\n"
			   "done:\n";

static const char nest_begin[] =
	"declare void @k%1$u.thread(ptr, ptr, ptr, i32, i32, i32, i32)\n"
	"define i32 @k%1$u.run(ptr readonly align 8 dereferenceable(%3$u) %%params, "
	"ptr align 8 dereferenceable(%4$u) %%block) nounwind {\n"
	"entry:\n"
	"%2$s" CPU_BLOCK_SIZES;
static const char nest_call[] =
	"%2$s"
	"  call void @k%1$u.thread(ptr %%params, ptr %%block, ptr %3$s, i32 %%x, i32 %%y, i32 %%z, "
	"i32 %%linear)\n";
static const char nest_end[] = "  ret i32 0\n"
			       "}\n"
			       /* The way to a distinct node of metadata through the C interface. */
			       "define void @k%1$u.group(ptr %%p) {\n"
			       "  store i8 0, ptr %%p, !llvm.access.group !4\n"
			       "  ret void\n"
			       "}\n"
			       "!0 = !{}\n"
			       "!1 = !{i32 1, i32 1025}\n"
			       "!2 = distinct !{!2, !3}\n"
			       "!3 = !{!\"llvm.loop.parallel_accesses\", !4}\n"
			       "!4 = distinct !{}\n";

/* For kernels with functions that could not be inlined: the record that those look at. */
static const char record[] = "  %record = alloca [64 x i8], align 64\n"
			     "  store ptr %block, ptr %record, align 8\n";
static const char record_ids[] = "  %x.id = getelementptr inbounds i8, ptr %record, i64 16\n"
				 "  store i32 %x, ptr %x.id, align 4\n"
				 "  %y.id = getelementptr inbounds i8, ptr %record, i64 20\n"
				 "  store i32 %y, ptr %y.id, align 4\n"
				 "  %z.id = getelementptr inbounds i8, ptr %record, i64 24\n"
				 "  store i32 %z, ptr %z.id, align 4\n"
				 "  %linear.id = getelementptr inbounds i8, ptr %record, i64 28\n"
				 "  store i32 %linear, ptr %linear.id, align 4\n";

/* Whether one thread's private variables stay in memory: accesses that may be to them are not
 * independent from thread to thread, since all threads use the same memory in turn. */
static bool has_private_memory(const struct cpu_kernel *kernel)
{
	if (kernel->record.flags & TALLY_CPU_LOW_LOCAL ||
	    LLVMGetFirstUse(LLVMGetParam(kernel->thread, CPU_THREAD)))
		return true;
	TALLY_EACH_BLOCK (kernel->thread, block)
		TALLY_EACH_INSTRUCTION (block, i)
			if (LLVMIsAAllocaInst(i))
				return true;
	return false;
}

void cpu_mark_independent(struct cpu_lowering *l, LLVMValueRef function, LLVMValueRef pattern)
{
	unsigned kind = LLVMGetMDKindIDInContext(l->context, "llvm.access.group", 17);
	LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(pattern));
	LLVMValueRef group = LLVMGetMetadata(first, kind);

	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i) {
			bool memory = LLVMIsALoadInst(i) || LLVMIsAStoreInst(i);

			if (memory && !LLVMGetVolatile(i) && !LLVMIsAtomic(i))
				LLVMSetMetadata(i, kind, group);
		}
}

static LLVMValueRef named(struct cpu_lowering *l, const struct cpu_kernel *kernel, const char *part)
{
	char name[64];

	snprintf(name, sizeof name, "k%u.%s", kernel->index, part);
	return LLVMGetNamedFunction(l->module, name);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

void cpu_print_nest(struct tally_buffer *text, const char *thread, unsigned loop)
{
	tally_buffer_print(text, nest, thread, loop);
}

bool cpu_make_loop(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	bool keeps_record = LLVMGetFirstUse(LLVMGetParam(kernel->thread, CPU_THREAD)) != NULL;
	struct tally_buffer text = {0}, thread = {0};
	LLVMValueRef group;
	bool ok;

	tally_buffer_print(&text, nest_begin, kernel->index, keeps_record ? record : "",
			   kernel->record.param_bytes + !kernel->record.param_bytes,
			   (unsigned)sizeof(struct tally_cpu_block));
	tally_buffer_print(&thread, nest_call, kernel->index, keeps_record ? record_ids : "",
			   keeps_record ? "%record" : "null");
	if (!thread.failed)
		cpu_print_nest(&text, thread.data, THREAD_LOOP);
	tally_buffer_print(&text, nest_end, kernel->index);
	/* The template names the function, so it has to be visible while they are linked. */
	LLVMSetLinkage(kernel->thread, LLVMExternalLinkage);
	ok = !text.failed && !thread.failed && cpu_link_text(l, text.data);
	tally_buffer_free(&text);
	tally_buffer_free(&thread);
	if (!ok)
		return tally_fail(l->error, "out of memory");
	LLVMSetLinkage(kernel->thread, LLVMInternalLinkage);
	tally_add_attribute(kernel->thread, "alwaysinline", 0);
	kernel->entry = named(l, kernel, "run");
	group = named(l, kernel, "group");
	if (!has_private_memory(kernel))
		cpu_mark_independent(l, kernel->thread, group);
	LLVMDeleteFunction(group);
	return true;
}
