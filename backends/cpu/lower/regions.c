/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels whose threads meet only in barriers of the whole block, and come to them together: a loop
 * nest over the threads for what lies between two barriers (a region), as for kernels without
 * barriers, and the regions one after the other as the block's uniform branches say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/lower/internal.h"
#include "base/buffer.h"

/* A loop nest over the threads; `in` is what the block's own values were before it, so that no
 * thread sees what another makes of them. */
static const char nest_begin[] =
	"declare i32 @k%1$u.r%2$u(ptr, ptr, ptr, ptr, ptr, i64, i32, i32, i32, i32)\n"
	"define i32 @k%1$u.l%2$u(ptr %%params, ptr %%block, ptr %%context, ptr %%out, i64 "
	"%%threads, "
	"i32 %%x.size, i32 %%y.size, i32 %%z.size) alwaysinline nounwind {\n"
	"entry:\n"
	"  %%in = alloca [%3$llu x i8], align 64\n"
	"  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %%in, ptr align 64 %%out, i64 %3$llu, "
	"i1 false)\n"
	"  store i32 0, ptr %%out, align 16\n";
static const char nest_call[] =
	"  %%next = call i32 @k%1$u.r%2$u(ptr %%params, ptr %%block, ptr %%context, ptr %%in, "
	"ptr %%out, i64 %%threads, i32 %%x, i32 %%y, i32 %%z, i32 %%linear)\n";
static const char nest_end[] = "  ret i32 %%next\n"
			       "}\n"
			       "!%1$u = distinct !{!%1$u, !3}\n";

/* The block: memory for what its threads keep, which comes from the arena of coroutines' frames,
 * then the regions. */
static const char whole[] =
	"declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
	"define i32 @k%1$u.run(ptr readonly align 8 dereferenceable(%2$u) %%params, "
	"ptr align 8 dereferenceable(%3$u) %%block) nounwind {\n"
	"entry:\n"
	"  %%once = alloca [%4$llu x i8], align 64\n" CPU_BLOCK_SIZES
	"  %%count.at = getelementptr inbounds i8, ptr %%block, i64 92\n"
	"  %%count = load i32, ptr %%count.at, align 4, !range !1, !invariant.load !0\n"
	"  %%count.wide = zext i32 %%count to i64\n"
	"  %%count.up = add i64 %%count.wide, 63\n"
	"  %%threads = and i64 %%count.up, -64\n"
	"  %%size = mul i64 %%threads, %5$llu\n" CPU_FRAME_HERE
	"  br i1 %%fits, label %%begin, label %%ask\n" CPU_FRAME_ASK "fail:\n"
	"  ret i32 %6$d\n"
	"begin:\n"
	"  %%context = phi ptr [ %%here, %%entry ], [ %%new, %%ask ]\n"
	"  br label %%r0\n"
	"r%7$u:\n"
	"  ret i32 0\n";

static const char metadata[] = "define void @k%1$u.group(ptr %%p) {\n"
			       "  store i8 0, ptr %%p, !llvm.access.group !4\n"
			       "  ret void\n"
			       "}\n"
			       "!0 = !{}\n"
			       "!1 = !{i32 1, i32 1025}\n"
			       "!3 = !{!\"llvm.loop.parallel_accesses\", !4}\n"
			       "!4 = distinct !{}\n";
enum { FIRST_LOOP = 10 };

/* Instructions in all regions of a kernel: that many, or that many times its own. */
enum { MOST_COPIED = 8000, ALWAYS_COPIES = 3 };

/* Loads of parameters and of the block's fields move to the entry: two of one field on two ways
 * would look like a value that depends on the way. Both can be read at any time. */
static bool hoist_field(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	LLVMValueRef thread = LLVMGetBasicBlockParent(LLVMGetInstructionParent(i)), pointer, base;
	unsigned kind = LLVMGetMDKindIDInContext(l->context, "invariant.load", 14);
	LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(thread);
	LLVMValueRef index;
	uint64_t end = 0;

	if (!LLVMIsALoadInst(i) || !LLVMGetMetadata(i, kind) || LLVMGetVolatile(i))
		return true;
	pointer = base = LLVMGetOperand(i, 0);
	if (LLVMIsAGetElementPtrInst(pointer)) {
		base = LLVMGetOperand(pointer, 0);
		index = LLVMGetOperand(pointer, 1);
		if (LLVMGetNumOperands(pointer) != 2 || !LLVMIsAConstantInt(index) ||
		    LLVMGetGEPSourceElementType(pointer) != l->i8)
			return true;
		end = LLVMConstIntGetZExtValue(index);
	}
	end += LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module), LLVMTypeOf(i));
	if (base == LLVMGetParam(thread, CPU_PARAMS) &&
	    end > cpu_kernel_of(l, thread)->record.param_bytes)
		return true;
	if (base != LLVMGetParam(thread, CPU_PARAMS) && base != LLVMGetParam(thread, CPU_BLOCK))
		return true;
	LLVMInstructionRemoveFromParent(i);
	LLVMPositionBuilderBefore(l->builder, LLVMGetFirstInstruction(entry));
	if (pointer != base) {
		pointer = LLVMInstructionClone(pointer);
		LLVMInsertIntoBuilder(l->builder, pointer);
		LLVMSetOperand(i, 0, pointer);
	}
	LLVMInsertIntoBuilder(l->builder, i);
	return true;
}

bool cpu_hoist_fields(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	if (!tally_visit_instructions(kernel->thread, hoist_field, l))
		return tally_fail(l->error, "out of memory");
	return cpu_run_passes(l, kernel, kernel->thread, "early-cse");
}

static bool split_after(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;

	if (cpu_is_suspension(i)) {
		LLVMValueRef next = LLVMGetNextInstruction(i);
		LLVMBasicBlockRef tail = LLVMGetInstructionParent(next),
				  first = cpu_split_before(l, next);

		LLVMPositionBuilderAtEnd(l->builder, first);
		LLVMBuildBr(l->builder, tail);
	}
	return true;
}

/* Numbers the regions: 0 starts at the entry, the others behind the barriers. Returns how many. */
static unsigned number_regions(const struct tally_flow *flow, unsigned *next)
{
	unsigned count = 1;

	for (size_t b = 0; b < flow->count; b++) {
		LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[b]);

		if (flow->meets[b])
			next[tally_flow_index(flow, LLVMGetSuccessor(end, 0))] = count++;
	}
	return count;
}

static size_t count_instructions(LLVMBasicBlockRef block)
{
	size_t count = 0;

	TALLY_EACH_INSTRUCTION (block, i)
		count++;
	return count;
}

/* How many instructions a region has that starts at block `start`. */
static size_t region_size(struct tally_flow *flow, size_t start)
{
	size_t depth = 0, size = 0;

	memset(flow->seen, 0, flow->count);
	flow->seen[start] = 1;
	flow->stack[depth++] = start;
	while (depth) {
		size_t b = flow->stack[--depth];

		size += count_instructions(flow->blocks[b]);
		for (size_t s = 0; !flow->meets[b] && s < tally_flow_successors(flow, b); s++) {
			size_t next = tally_flow_successor(flow, b, (unsigned)s);

			if (!flow->seen[next]++)
				flow->stack[depth++] = next;
		}
	}
	return size;
}

/*
 * Whether the regions are more code than is worth compiling: what several barriers lead to is
 * copied for each, so barriers behind conditions in a loop cost the square of their number. Stops
 * as soon as it knows.
 */
static bool is_copied_too_often(struct tally_flow *flow)
{
	size_t own = 0, copied, most;

	for (size_t b = 0; b < flow->count; b++)
		own += count_instructions(flow->blocks[b]);
	most = own * ALWAYS_COPIES > MOST_COPIED ? own * ALWAYS_COPIES : MOST_COPIED;
	copied = region_size(flow, tally_flow_index(flow, LLVMGetEntryBasicBlock(flow->function)));
	for (size_t b = 0; b < flow->count && copied <= most; b++)
		if (flow->meets[b])
			copied += region_size(flow, tally_flow_successor(flow, b, 0));
	return copied > most;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static LLVMValueRef named(struct cpu_lowering *l, const struct cpu_kernel *kernel, const char *part,
			  unsigned region)
{
	char name[64];

	snprintf(name, sizeof name, part, kernel->index, region);
	return LLVMGetNamedFunction(l->module, name);
}

/* Marks the regions that can come after one, 0 for the end. */
static void find_next(LLVMValueRef region, bool *can, unsigned count)
{
	memset(can, 0, count);
	TALLY_EACH_BLOCK (region, at) {
		LLVMValueRef end = LLVMGetBasicBlockTerminator(at);
		uint64_t next;

		if (!LLVMIsAReturnInst(end))
			continue;
		next = LLVMConstIntGetZExtValue(LLVMGetOperand(end, 0));
		can[next] = true;
	}
}

/* A region's call in the block, and the way on: a branch that is the same for all threads. */
static void print_step(struct tally_buffer *text, struct cpu_kernel *kernel, unsigned region,
		       LLVMValueRef function, bool *can, unsigned count)
{
	unsigned first = 0;

	find_next(function, can, count);
	while (first + 1 < count && !can[first])
		first++;
	tally_buffer_print(text,
			   "r%2$u:\n"
			   "  %%n%2$u = call i32 @k%1$u.l%2$u(ptr %%params, ptr %%block, "
			   "ptr %%context, ptr %%once, i64 %%threads, i32 %%x.size, i32 %%y.size, "
			   "i32 %%z.size)\n"
			   "  switch i32 %%n%2$u, label %%r%3$u [\n",
			   kernel->index, region, first ? first : count);
	for (unsigned n = first + 1; n < count; n++)
		if (can[n])
			tally_buffer_print(text, "    i32 %1$u, label %%r%1$u\n", n);
	tally_buffer_print(text, "  ]\n");
}

static void print_loop(struct tally_buffer *text, const struct cpu_kernel *kernel, unsigned region,
		       unsigned long long once)
{
	struct tally_buffer thread = {0};

	tally_buffer_print(&thread, nest_call, kernel->index, region);
	tally_buffer_print(text, nest_begin, kernel->index, region, once);
	if (thread.failed)
		text->failed = true;
	else
		cpu_print_nest(text, thread.data, FIRST_LOOP + region);
	tally_buffer_print(text, nest_end, FIRST_LOOP + region);
	tally_buffer_free(&thread);
}

static bool link_block(struct cpu_lowering *l, struct cpu_kernel *kernel,
		       const struct cpu_context_layout *layout, unsigned count)
{
	unsigned long long once = (layout->once_bytes + 15) / 16 * 16;
	struct tally_buffer text = {0};
	bool ok, *can = calloc(count + 1, sizeof *can);

	if (!can)
		return tally_fail(l->error, "out of memory");
	tally_buffer_print(&text, whole, kernel->index,
			   kernel->record.param_bytes + !kernel->record.param_bytes,
			   (unsigned)sizeof(struct tally_cpu_block), once,
			   (unsigned long long)layout->thread_bytes, TALLY_CPU_MEMORY, count);
	for (unsigned r = 0; r < count; r++)
		print_step(&text, kernel, r, named(l, kernel, "k%u.r%u", r), can, count);
	free(can);
	tally_buffer_print(&text, "}\n");
	for (unsigned r = 0; r < count; r++)
		print_loop(&text, kernel, r, once);
	tally_buffer_print(&text, metadata, kernel->index);
	ok = text.failed ? tally_fail(l->error, "out of memory") : cpu_link_text(l, text.data);
	tally_buffer_free(&text);
	return ok;
}

/* Counting threads in a barrier is the one access of a region that is not independent from thread
 * to thread: it was volatile so as not to be marked. */
static bool open_count(LLVMValueRef i, void *data)
{
	LLVMValueRef function = data, out = LLVMGetParam(function, 4);

	if ((LLVMIsALoadInst(i) && LLVMGetOperand(i, 0) == out) ||
	    (LLVMIsAStoreInst(i) && LLVMGetOperand(i, 1) == out))
		LLVMSetVolatile(i, 0);
	return true;
}

/* The regions' functions become one: values that the block keeps once become values again, and
 * branches that are the same for all threads leave the loops. */
static bool join(struct cpu_lowering *l, struct cpu_kernel *kernel, unsigned count)
{
	static const char passes[] =
		"sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg";
	LLVMValueRef group = named(l, kernel, "k%u.group", 0);

	for (unsigned r = 0; r < count; r++) {
		LLVMValueRef region = named(l, kernel, "k%u.r%u", r);

		cpu_mark_independent(l, region, group);
		if (!tally_visit_instructions(region, open_count, region))
			return tally_fail(l->error, "out of memory");
		LLVMSetLinkage(region, LLVMInternalLinkage);
		LLVMSetLinkage(named(l, kernel, "k%u.l%u", r), LLVMInternalLinkage);
	}
	LLVMDeleteFunction(group);
	kernel->entry = named(l, kernel, "k%u.run", 0);
	return tally_lower_run_pipeline(l->module, "always-inline", l->machine, l->error) &&
	       (l->options->optimise <= 0 || cpu_run_passes(l, kernel, kernel->entry, passes));
}

static bool make_block(struct cpu_lowering *l, struct cpu_kernel *kernel, struct tally_flow *flow)
{
	struct cpu_context_layout layout = {0};
	unsigned *next = calloc(flow->count + 1, sizeof *next), count;
	size_t *starts = calloc(flow->count + 1, sizeof *starts);
	bool ok = next && starts;

	ok = ok ? cpu_make_context(l, flow, &layout) : tally_fail(l->error, "out of memory");
	count = ok ? number_regions(flow, next) : 0;
	for (size_t b = 0; ok && b < flow->count; b++)
		if (next[b])
			starts[next[b]] = b;
	if (ok)
		starts[0] = tally_flow_index(flow, LLVMGetEntryBasicBlock(flow->function));
	for (unsigned r = 0; ok && r < count; r++)
		ok = cpu_make_region(l, kernel, flow, &layout, starts[r], next, r) ||
		     tally_fail(l->error, "out of memory");
	free(next);
	free(starts);
	ok = ok && link_block(l, kernel, &layout, count) && join(l, kernel, count);
	free(layout.slots);
	kernel->regions = count;
	return ok;
}

bool cpu_make_regions(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	LLVMValueRef thread = kernel->thread;
	struct tally_flow flow = {0};
	bool ok;

	kernel->reason = l->options->coroutines ? "asked for" : cpu_no_regions(thread);
	if (kernel->reason)
		return true;
	ok = cpu_hoist_fields(l, kernel) && tally_visit_instructions(thread, split_after, l) &&
	     tally_flow_open(thread, &cpu_flow_rules, &flow) && tally_flow_diverge(&flow);
	if (ok && !tally_flow_together(&flow))
		kernel->reason = "a barrier that threads may not reach together";
	else if (ok && is_copied_too_often(&flow))
		kernel->reason = "barriers whose regions would copy too much code";
	tally_flow_close(&flow);
	if (!ok || kernel->reason)
		return ok || tally_fail(l->error, "out of memory");
	if (!tally_visit_instructions(thread, cpu_replace_result, l) ||
	    !tally_visit_instructions(thread, cpu_replace_suspension, l))
		return tally_fail(l->error, "out of memory");
	cpu_clear_addresses(l, thread);
	ok = ((tally_flow_open(thread, &cpu_flow_rules, &flow) && tally_flow_diverge(&flow)) ||
	      tally_fail(l->error, "out of memory")) &&
	     make_block(l, kernel, &flow);
	tally_flow_close(&flow);
	kernel->record.flags |= TALLY_CPU_REGIONS;
	return ok;
}
