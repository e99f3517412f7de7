/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that turn clang's device module into a neutral one, and what they share. */
#ifndef TALLY_FRONTEND_BITCODE_BITCODE_H
#define TALLY_FRONTEND_BITCODE_BITCODE_H

#include "frontend/frontend.h"

enum bitcode_vendor { BITCODE_NEUTRAL, BITCODE_NVIDIA, BITCODE_AMD };

struct lift {
	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	const struct tally_lift_options *options;
	struct tally_error *error;
	enum bitcode_vendor vendor;
	const char *locks;    /* "nvidia", "amd": what "tally.vendor" says */
	unsigned arch;	      /* NVIDIA: __CUDA_ARCH__ of the source (800) */
	bool wave64;	      /* AMD: lanes of a wavefront that the code means */
	unsigned code_object; /* AMD: code object version (4, 5): layout of implicit args */
};

/* Every step: false with an error. They run in the order of the table in lift.c. */
typedef bool bitcode_step(struct lift *lift);

bitcode_step bitcode_drop_libraries; /* bodies of device library functions that are mapped */
bitcode_step bitcode_globals;	     /* address spaces, linkage, lists for the compiler */
bitcode_step bitcode_kernels;	     /* marks, calling convention, launch bounds, parameters */
bitcode_step bitcode_functions;	     /* linkage and attributes of device functions */
bitcode_step bitcode_amd_memory;     /* allocas, sync scopes, implicit arguments */
bitcode_step bitcode_amd_printf;     /* chains of calls to one tally.printf */
bitcode_step bitcode_special;	     /* intrinsics whose meaning hangs on their operands */
bitcode_step bitcode_map_calls;	     /* everything in the mapping tables */
bitcode_step bitcode_asm;	     /* inline PTX */
bitcode_step bitcode_locks;	     /* vendor intrinsics that are left */
bitcode_step bitcode_warps;	     /* the width that a kernel's lane operations mean */
bitcode_step bitcode_leftovers;	     /* functions that nothing defines: errors by name */

/* One call of a matrix intrinsic; what has no operation stays, and locks. */
bool bitcode_matrix(struct lift *lift, LLVMValueRef call);

/* The integer module flag `name`, or `otherwise` where there is none. */
unsigned bitcode_module_flag(struct lift *lift, const char *name, unsigned otherwise);

/* The string constant (with its length, NUL and all) that a constant points to, or NULL. */
const char *bitcode_constant_string(LLVMValueRef value, size_t *length);

/* The name of any value, for messages. Owned by the module. */
const char *bitcode_name(LLVMValueRef value);

/* The function that holds an instruction. */
LLVMValueRef bitcode_function_of(LLVMValueRef instruction);

/* Marks the function that holds `call` as locked to the module's vendor by `what`, with the place
 * where debug information tells it. The first reason stays. */
void bitcode_lock(struct lift *lift, LLVMValueRef call, const char *what);

/* Fails with `file:line:col: error: function 'f': what`, as far as the place is known. */
bool bitcode_fail(struct lift *lift, LLVMValueRef instruction, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
