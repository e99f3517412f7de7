/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CPU lowering share: one run of it, and its steps in their order. */
#ifndef TALLY_BACKENDS_CPU_LOWER_INTERNAL_H
#define TALLY_BACKENDS_CPU_LOWER_INTERNAL_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/cpu/kernel_abi.h"
#include "ir_passes/flow.h"
#include "ir_passes/ir.h"
#include "ir_passes/reach.h"

struct cpu_kernel {
	char *name;
	unsigned index;	       /* names its functions: k3.thread, k3.run, k3.start */
	LLVMValueRef function; /* as it came; gone once it has a thread function */
	/*
	 * The kernel for one thread, with everything inlined:
	 * void (ptr params, ptr block, ptr thread, i32 x, i32 y, i32 z, i32 linear)
	 */
	LLVMValueRef thread;
	LLVMValueRef entry;		/* run_block or start */
	struct tally_cpu_kernel record; /* pointers in it unused */
	unsigned regions;		/* how many loop nests, or 0 */
	const char *reason;		/* why its threads are coroutines */
	struct tally_cpu_param *params;
};

/* Parameters of a thread function. */
enum { CPU_PARAMS, CPU_BLOCK, CPU_THREAD, CPU_X, CPU_Y, CPU_Z, CPU_LINEAR, CPU_THREAD_PARAMS };

struct cpu_lowering {
	LLVMModuleRef module;
	LLVMContextRef context;
	LLVMBuilderRef builder;
	LLVMTypeRef void_type, ptr, i1, i8, i32, i64;
	LLVMTargetMachineRef machine;
	const struct tally_lower_options *options;
	struct tally_error *error;
	struct cpu_kernel *kernels;
	size_t kernel_count;
};

/* The steps. Each returns false with an error. */

/* emit.c: the target machine for options->target. */
bool cpu_create_machine(struct cpu_lowering *l);
/* kernels.c: finds the kernels and lays out their parameters (neutral data layout still in force).
 */
bool cpu_find_kernels(struct cpu_lowering *l);
/* numerics.c: arithmetic that gives the same bits everywhere, and never traps. */
bool cpu_prepare_numerics(struct cpu_lowering *l);
/* half.c: 16-bit floating point that the target would do with calls or with flushing. */
bool cpu_prepare_half(struct cpu_lowering *l);
/* What code generation may call for bfloats; behind all steps that rename or remove functions. */
bool cpu_define_runtime(struct cpu_lowering *l);
/* matrix.c: bodies of the matrix operations that the module declares. */
bool cpu_make_matrix(struct cpu_lowering *l);
/* math.c: what the textual libraries leave to libm and the executor. With `all`, an operation that
 * still has no meaning is an error. */
bool cpu_resolve_math(struct cpu_lowering *l, bool all);
/* calls.c: inlines what can be; what cannot gets the thread's record as a last parameter. */
bool cpu_inline(struct cpu_lowering *l);
bool cpu_thread_contexts(struct cpu_lowering *l);
/* kernels.c: kernels become thread functions. */
bool cpu_make_threads(struct cpu_lowering *l);
/* ... and say of each load of a parameter, fields of structures too, that nobody writes it. */
void cpu_mark_params(struct cpu_lowering *l, struct cpu_kernel *kernel);
/* shared.c: shared variables become places in the block's shared memory. */
bool cpu_place_shared(struct cpu_lowering *l);
/* polls.c: a loop that waits for memory to change lets others run with every turn. */
bool cpu_yield_in_polls(struct cpu_lowering *l);
/* local.c: private memory below 4 GiB for kernels that keep its addresses in 32 bits. */
bool cpu_place_local(struct cpu_lowering *l);
/* addresses.c: integer address arithmetic becomes pointers that loops can be vectorised over. */
void cpu_clear_addresses(struct cpu_lowering *l, LLVMValueRef function);
/* loop.c, coroutine.c: the entry of a kernel. */
bool cpu_make_loop(struct cpu_lowering *l, struct cpu_kernel *kernel);
bool cpu_make_coroutine(struct cpu_lowering *l, struct cpu_kernel *kernel);
bool cpu_is_coroutine(const struct cpu_kernel *kernel);
/*
 * loop.c: prints a loop nest over the block's threads, x innermost, from the end of a block of IR
 * named `entry` to the start of one named `done`. `thread` is the text that runs one thread, of
 * %x, %y, %z and %linear; the innermost loop has metadata node `loop`. Needs %x.size and so on.
 */
void cpu_print_nest(struct tally_buffer *text, const char *thread, unsigned loop);
/* For templates of tally_buffer_print(): %x.size, %y.size and %z.size from the block. */
#define CPU_BLOCK_SIZES                                                                            \
	"  %%x.at = getelementptr inbounds i8, ptr %%block, i64 80\n"                              \
	"  %%y.at = getelementptr inbounds i8, ptr %%block, i64 84\n"                              \
	"  %%z.at = getelementptr inbounds i8, ptr %%block, i64 88\n"                              \
	"  %%x.size = load i32, ptr %%x.at, align 4, !range !1, !invariant.load !0\n"              \
	"  %%y.size = load i32, ptr %%y.at, align 4, !range !1, !invariant.load !0\n"              \
	"  %%z.size = load i32, ptr %%z.at, align 4, !range !1, !invariant.load !0\n"
/* Text: %size bytes from the block's arena of frames (struct tally_cpu_block): from %here to
 * %behind where that %fits; where not, the executor is asked, which goes to %begin with %new, or to
 * %fail. */
#define CPU_FRAME_HERE                                                                             \
	"  %%next.at = getelementptr inbounds i8, ptr %%block, i64 24\n"                           \
	"  %%limit.at = getelementptr inbounds i8, ptr %%block, i64 32\n"                          \
	"  %%here = load ptr, ptr %%next.at, align 8\n"                                            \
	"  %%limit = load ptr, ptr %%limit.at, align 8\n"                                          \
	"  %%behind = getelementptr i8, ptr %%here, i64 %%size\n"                                  \
	"  %%fits = icmp ule ptr %%behind, %%limit\n"
#define CPU_FRAME_ASK                                                                              \
	"ask:\n"                                                                                   \
	"  %%services = load ptr, ptr %%block, align 8, !invariant.load !0\n"                      \
	"  %%frame = load ptr, ptr %%services, align 8, !invariant.load !0\n"                      \
	"  %%new = call ptr %%frame(ptr %%block, i64 %%size)\n"                                    \
	"  %%none = icmp eq ptr %%new, null\n"                                                     \
	"  br i1 %%none, label %%fail, label %%begin\n"
/* seams.c: barriers at the ends of loops that all threads go through together, if `any` are worth
 * it; and away with them, for a kernel that does not become regions. */
bool cpu_make_seams(struct cpu_lowering *l, struct cpu_kernel *kernel, bool *any);
bool cpu_remove_seams(struct cpu_lowering *l, struct cpu_kernel *kernel);
/* regions.c: fields of the block and parameters are loaded once, at the start; before a look at
 * what is the same for all threads. */
bool cpu_hoist_fields(struct cpu_lowering *l, struct cpu_kernel *kernel);
/* suspensions.c: why a kernel does not become regions whatever its flow, or NULL. */
const char *cpu_no_regions(LLVMValueRef thread);
/* Whether `i` suspends its thread. Where nothing forbids regions: what reads a barrier's result
 * gets it from tally.cpu.count, and then a suspension becomes tally.cpu.meet(1 for each thread that
 * is to be counted). For tally_visit_instructions(); `data` is the struct cpu_lowering. */
bool cpu_is_suspension(LLVMValueRef i);
bool cpu_replace_result(LLVMValueRef i, void *data);
bool cpu_replace_suspension(LLVMValueRef i, void *data);
/*
 * regions.c: the entry of a kernel whose only synchronisation is of whole blocks, as loops between
 * its barriers. With a `reason` set in the kernel it does not qualify, and is as it was.
 */
bool cpu_make_regions(struct cpu_lowering *l, struct cpu_kernel *kernel);
/* frame.c: what a coroutine keeps in its frame. */
bool cpu_keep_values(struct cpu_lowering *l, LLVMValueRef function);
/* table.c: before anything is folded, what the host may write; at the end, tally_cpu_module. */
bool cpu_open_variables(struct cpu_lowering *l);
bool cpu_make_table(struct cpu_lowering *l);
/* emit.c: bytes in the form that was asked for. */
bool cpu_emit(struct cpu_lowering *l, struct tally_buffer *out);

/* uniform.c: the rules for a thread function whose blocks end at its barriers (each barrier is the
 * last thing before a plain branch, and what it branches to has no other way in). Of its walks'
 * marks bit 0 says reached, bit 1 past a barrier. */
extern const struct tally_flow_rules cpu_flow_rules;
/* Marks in `seen` what can be reached from the end of `block` without coming through it again. */
void cpu_flow_reach(struct tally_flow *flow, LLVMBasicBlockRef block);
/* After that, for a value of the block: whether a barrier can lie between it and this use. */
bool cpu_flow_crosses(const struct tally_flow *flow, LLVMValueRef value, LLVMUseRef use);

/* context.c: values that live across a barrier become slots. */
struct cpu_slot {
	LLVMValueRef variable; /* alloca in the thread function */
	LLVMTypeRef type;      /* in memory */
	bool once;	       /* the same for all threads: one for the block */
	bool own;	       /* a private variable of the kernel: used in place */
	uint64_t offset;       /* once: in the block's; else to be multiplied by the threads */
	uint64_t bytes;	       /* of one thread */
};
struct cpu_context_layout {
	struct cpu_slot *slots;
	size_t count;
	uint64_t once_bytes, thread_bytes;
};
enum { CPU_ONCE_ARRIVED = 16 }; /* bytes at its start: threads counted in a barrier */
bool cpu_make_context(struct cpu_lowering *l, struct tally_flow *flow,
		      struct cpu_context_layout *layout);

/* region.c: region `index` as a function for one thread,
 * i32 (ptr params, ptr block, ptr context, ptr in, ptr out, i64 threads, i32 x, y, z, linear),
 * that starts at block `start`: `in` and `out` are the block's values before and after it, and it
 * returns the region that comes next, or 0. `next` has the region's number for each block that one
 * starts at, else 0. NULL when out of memory. */
LLVMValueRef cpu_make_region(struct cpu_lowering *l, struct cpu_kernel *kernel,
			     struct tally_flow *flow, const struct cpu_context_layout *layout,
			     size_t start, const unsigned *next, unsigned index);

/* Helpers. */

/* The offset of the field of the thread's record that `pointer` is, or SIZE_MAX. */
size_t cpu_record_field(LLVMValueRef thread, LLVMValueRef pointer);
/* Links the textual module `text`, with the module's data layout, into the module. A fault in it is
 * ours, not the input's. */
bool cpu_link_text(struct cpu_lowering *l, const char *text);
/* Loads a field of the block or of a thread's record; fields do not change while code runs. */
LLVMValueRef cpu_load_field(struct cpu_lowering *l, LLVMTypeRef type, LLVMValueRef base,
			    size_t offset, const char *name);
/* Whether anything calls the function of that name from within `function`. */
bool cpu_calls(LLVMValueRef function, const char *name);
/* The record of the running thread, or the block, in a thread function or any other with a context
 * parameter. Built at the builder's place where need be. */
LLVMValueRef cpu_context(struct cpu_lowering *l, LLVMValueRef function);
LLVMValueRef cpu_block(struct cpu_lowering *l, LLVMValueRef function);
/* Builds a suspension without operands (a yield, the barrier of all threads) at the builder's
 * place. Returns the call. */
LLVMValueRef cpu_build_suspension(struct cpu_lowering *l, LLVMValueRef thread,
				  enum tally_cpu_operation operation);
/* Splits the block of `i` so that `i` starts the second half. Returns the first half, which has no
 * terminator yet. */
LLVMBasicBlockRef cpu_split_before(struct cpu_lowering *l, LLVMValueRef i);
/* Runs passes over one function of a kernel. */
bool cpu_run_passes(struct cpu_lowering *l, const struct cpu_kernel *kernel, LLVMValueRef function,
		    const char *passes);
/* Erases the marks of where a private variable is alive. */
void cpu_drop_lifetimes(LLVMValueRef variable);
/* Marks the memory accesses of `function` as independent from thread to thread: members of the
 * access group that the first instruction of `pattern` is in. */
void cpu_mark_independent(struct cpu_lowering *l, LLVMValueRef function, LLVMValueRef pattern);
/* The kernel whose thread function this is, or NULL. */
struct cpu_kernel *cpu_kernel_of(struct cpu_lowering *l, LLVMValueRef function);

#endif
