/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of a lift, which PTX files and inline assembly share. */
#ifndef TALLY_FRONTEND_PTX_LIFT_INTERNAL_H
#define TALLY_FRONTEND_PTX_LIFT_INTERNAL_H

#include "frontend/ptx/lift.h"

/* Builders and types of `context`; ended by ptx_lift_end, which keeps the module. */
void ptx_lift_start(struct ptx_lift *l, LLVMContextRef context, LLVMModuleRef module);
void ptx_lift_end(struct ptx_lift *l);

/* Registers to values, integers to pointers, locks to kernels. `verify`: LLVM's verifier comes
 * first. False with an error. */
bool ptx_lift_finish(LLVMModuleRef module, bool verify, struct tally_error *error);

#endif
