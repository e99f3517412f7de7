/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small helpers over LLVM's C API that the frontends, the passes and the lowerings share. All of
 * them work on one LLVM context and so belong to its thread; none owns anything beyond its return.
 */
#ifndef TALLY_IR_PASSES_IR_H
#define TALLY_IR_PASSES_IR_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "ir_passes/classify.h"
#include "ir_passes/contract.h"

/* Loops over the functions and globals of a module, the blocks of a function, the instructions of a
 * block. The loop's body may erase or replace the current element, not the next one. */
#define TALLY_EACH_FUNCTION(module, f)                                                             \
	for (LLVMValueRef f = LLVMGetFirstFunction(module),                                        \
			  f##_next = f ? LLVMGetNextFunction(f) : NULL;                            \
	     f; f = f##_next, f##_next = f ? LLVMGetNextFunction(f) : NULL)
#define TALLY_EACH_GLOBAL(module, g)                                                               \
	for (LLVMValueRef g = LLVMGetFirstGlobal(module),                                          \
			  g##_next = g ? LLVMGetNextGlobal(g) : NULL;                              \
	     g; g = g##_next, g##_next = g ? LLVMGetNextGlobal(g) : NULL)
#define TALLY_EACH_BLOCK(function, b)                                                              \
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function),                               \
			       b##_next = b ? LLVMGetNextBasicBlock(b) : NULL;                     \
	     b; b = b##_next, b##_next = b ? LLVMGetNextBasicBlock(b) : NULL)
#define TALLY_EACH_INSTRUCTION(block, i)                                                           \
	for (LLVMValueRef i = LLVMGetFirstInstruction(block),                                      \
			  i##_next = i ? LLVMGetNextInstruction(i) : NULL;                         \
	     i; i = i##_next, i##_next = i ? LLVMGetNextInstruction(i) : NULL)
#define TALLY_EACH_USE(value, u)                                                                   \
	for (LLVMUseRef u = LLVMGetFirstUse(value), u##_next = u ? LLVMGetNextUse(u) : NULL; u;    \
	     u = u##_next, u##_next = u ? LLVMGetNextUse(u) : NULL)

/*
 * Calls `visit` for every instruction that `function` holds at the time of the call. The list is
 * taken first, so `visit` may erase, insert and split as it likes as long as it erases no other
 * instruction of the list than its own. Stops and returns false when `visit` does.
 */
bool tally_visit_instructions(LLVMValueRef function, bool (*visit)(LLVMValueRef i, void *data),
			      void *data);

/* The function that a call instruction names, or NULL (no call, indirect, inline asm). */
LLVMValueRef tally_called_function(LLVMValueRef instruction);
/* Its name, or NULL. Owned by the module. */
const char *tally_called_name(LLVMValueRef instruction);

/* The operation's LLVM type; the contract's declaration attributes put onto any function. */
LLVMTypeRef tally_operation_type(LLVMContextRef context, const struct tally_operation *operation);
void tally_operation_attributes(LLVMValueRef function, const struct tally_operation *operation);
/* The table by index, NULL after its end: for tests and tools that list it. */
const struct tally_operation *tally_operation_at(size_t index);

/* Builds a call of operation `name` at the builder's place; declares it when needed. */
LLVMValueRef tally_build_operation(LLVMBuilderRef builder, LLVMModuleRef module, const char *name,
				   LLVMValueRef *arguments, unsigned count);
/* Builds a call of the LLVM intrinsic `name` ("llvm.ctpop") overloaded for `types`. */
LLVMValueRef tally_build_intrinsic(LLVMBuilderRef builder, LLVMModuleRef module, const char *name,
				   LLVMTypeRef *types, unsigned type_count, LLVMValueRef *arguments,
				   unsigned count);

/* Replaces all uses of `instruction` by `value` (NULL: it has none) and erases it. */
void tally_replace(LLVMValueRef instruction, LLVMValueRef value);

/* Enum attributes of the function itself ("alwaysinline", 0) by name. */
void tally_add_attribute(LLVMValueRef function, const char *name, unsigned long long value);
void tally_remove_attribute(LLVMValueRef function, const char *name);
bool tally_has_attribute(LLVMValueRef function, const char *name);
/* An attribute of parameter `index` (0 is the first); NULL when absent. */
LLVMAttributeRef tally_param_attribute(LLVMValueRef function, unsigned index, const char *name);
/* The type of a `byval(T)` parameter, or NULL. */
LLVMTypeRef tally_param_byval(LLVMValueRef function, unsigned index);
/* Alignment of a parameter's bytes in the packed parameter buffer. */
unsigned tally_param_alignment(LLVMModuleRef module, LLVMValueRef function, unsigned index);
/* Size in bytes of a parameter there. */
unsigned long long tally_param_size(LLVMModuleRef module, LLVMValueRef function, unsigned index);
/* Bytes from the first to past the last parameter there. */
unsigned long long tally_params_size(LLVMModuleRef module, LLVMValueRef function);

/* Copies the attributes of the function itself and of its first `params` parameters. */
void tally_copy_attributes(LLVMValueRef from, LLVMValueRef to, unsigned params);
/* Removes what binds a function to a target or keeps it from being inlined: target-cpu,
 * target-features, noinline, optnone, uniform-work-group-size, frame-pointer and the like. LLVM's
 * intrinsics keep theirs. */
void tally_strip_target_attributes(LLVMValueRef function);

/* The name of a function, global, block or instruction; "" when it has none. Owned by LLVM. */
static inline const char *tally_name(LLVMValueRef value)
{
	size_t length;

	return LLVMGetValueName2(value, &length);
}

/* Whether `name` is an intrinsic of one machine (machine_names.c). All others are portable. */
bool tally_is_machine_intrinsic(const char *name);

/* What some text in inline asm says of the kernel that holds it. */
struct tally_asm_sign {
	const char *text;
	enum tally_class class;
	bool whole; /* such a kernel must run whole */
};
/* The first sign in `text`, or NULL. */
const struct tally_asm_sign *tally_asm_sign(const char *text, size_t length);

/* Function attributes that speak of one machine or of how it was compiled for; NULL ends them. */
extern const char *const tally_machine_attributes[];

/* Whether it calls what no name says. */
bool tally_calls_through_pointer(LLVMValueRef function);

/* In a kernel or body: where `instruction` is the `unreachable` behind a call of tally.exit, both
 * become a return. For tally_visit_instructions(): the call has been visited before. */
void tally_exit_to_return(LLVMValueRef instruction);

/* Moves all blocks of `from` to the end of `to`, and uses of its parameters to `to`'s parameters of
 * the same index. `from` is left as a declaration. */
void tally_move_body(LLVMValueRef from, LLVMValueRef to);

/*
 * Replaces `global` wherever an instruction uses it, inside constant expressions and aggregates too
 * (those become instructions), by the value that `make` builds at the builder's place: before the
 * user, or for a phi at the end of the block that the value comes from. The value has the global's
 * type and must not be a constant. Uses in other globals' initialisers stay, and so may constants
 * that nothing uses. False when a constant has a form that cannot be rebuilt.
 */
typedef LLVMValueRef tally_make_value(LLVMBuilderRef builder, LLVMValueRef global, void *data);
bool tally_replace_global(LLVMValueRef global, tally_make_value *make, void *data);

/* "tally.vendor" and "tally.locked" from functions to the kernels that reach them. */
void tally_propagate_locks(LLVMModuleRef module);

/* The instruction as one line of IR text, at most `size` bytes with the NUL. Returns `text`. */
const char *tally_instruction_text(LLVMValueRef instruction, char *text, size_t size);

/* Debug place of an instruction. False (and untouched results) when it has none. */
bool tally_instruction_place(LLVMValueRef instruction, const char **file, size_t *length,
			     unsigned *line, unsigned *column);

/* LLVMVerifyModule as an error value; `what` names the step that made the module. */
bool tally_verify_ir(LLVMModuleRef module, const char *what, struct tally_error *error);

#endif
