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
#include "ir_passes/ir.h"

struct cpu_kernel {
	char name[4096];
	unsigned index;	       /* names its functions: k3.thread, k3.run, k3.start */
	LLVMValueRef function; /* as it came; gone once it has a thread function */
	/*
	 * The kernel for one thread, with everything inlined:
	 * void (ptr params, ptr block, ptr thread, i32 x, i32 y, i32 z, i32 linear)
	 */
	LLVMValueRef thread;
	LLVMValueRef entry;		/* run_block or start */
	struct tally_cpu_kernel record; /* pointers in it unused */
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
/* local.c: private memory below 4 GiB for kernels that keep its addresses in 32 bits. */
bool cpu_place_local(struct cpu_lowering *l);
/* addresses.c: integer address arithmetic becomes pointers that loops can be vectorised over. */
void cpu_clear_addresses(struct cpu_lowering *l, LLVMValueRef function);
/* loop.c, coroutine.c: the entry of a kernel. */
bool cpu_make_loop(struct cpu_lowering *l, struct cpu_kernel *kernel);
bool cpu_make_coroutine(struct cpu_lowering *l, struct cpu_kernel *kernel);
bool cpu_is_coroutine(const struct cpu_kernel *kernel);
/* frame.c: what a coroutine keeps in its frame. */
bool cpu_keep_values(struct cpu_lowering *l, LLVMValueRef function);
/* table.c: before anything is folded, what the host may write; at the end, tally_cpu_module. */
bool cpu_open_variables(struct cpu_lowering *l);
bool cpu_make_table(struct cpu_lowering *l);
/* emit.c: bytes in the form that was asked for. */
bool cpu_emit(struct cpu_lowering *l, struct tally_buffer *out);

/* Helpers. */

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
/* The kernel whose thread function this is, or NULL. */
struct cpu_kernel *cpu_kernel_of(struct cpu_lowering *l, LLVMValueRef function);

#endif
