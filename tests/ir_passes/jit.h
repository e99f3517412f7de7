/* SPDX-License-Identifier: Apache-2.0 */
/* Runs neutral IR on the host through LLVM's JIT, so that tests compare results and not only text.
 */
#ifndef TALLY_TESTS_IR_JIT_H
#define TALLY_TESTS_IR_JIT_H

#include <llvm-c/Core.h>

/*
 * Compiles `module` (consumed) together with `support` (IR text or NULL: bodies for tally.*
 * operations) and keeps it until the program ends. `context` must have been made by
 * ir_jit_context(). A failure ends the test program with LLVM's message.
 */
LLVMContextRef ir_jit_context(void);
struct ir_jit *ir_jit_create(LLVMContextRef context, LLVMModuleRef module, const char *support);
void *ir_jit_lookup(struct ir_jit *jit, const char *name);
void ir_jit_destroy(struct ir_jit *jit);

/* The same for `file` of the source tree. */
struct ir_jit *ir_jit_of_file(const char *file, const char *support);

/* A group's teardown: its setup has left the JIT in *state. */
int ir_jit_teardown(void **state);

#endif
