/* SPDX-License-Identifier: Apache-2.0 */
/* The neutral IR contract as tables, and its verifier. The prose is docs/ir-contract.md. */
#ifndef TALLY_IR_PASSES_CONTRACT_H
#define TALLY_IR_PASSES_CONTRACT_H

#include <llvm-c/Core.h>
#include <stdbool.h>

#include "base/error.h"

/* Sizes and alignments of every neutral module. */
#define TALLY_DATA_LAYOUT "e-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

enum tally_address_space {
	TALLY_AS_GENERIC = 0,
	TALLY_AS_GLOBAL = 1,
	TALLY_AS_SHARED = 3,
	TALLY_AS_CONSTANT = 4,
	TALLY_AS_PRIVATE = 5,
};

/* Attributes of kernels (string attributes; values in docs/ir-contract.md). */
#define TALLY_ATTR_KERNEL      "tally.kernel"
#define TALLY_ATTR_WARP	       "tally.warp"
#define TALLY_ATTR_MAXNTID     "tally.maxntid"
#define TALLY_ATTR_REQNTID     "tally.reqntid"
#define TALLY_ATTR_MINCTAPERSM "tally.minctapersm"
#define TALLY_ATTR_MAXNREG     "tally.maxnreg"
#define TALLY_ATTR_MAXCLUSTER  "tally.maxcluster"
#define TALLY_ATTR_CLUSTER     "tally.cluster"
#define TALLY_ATTR_VARIANT     "tally.variant"
#define TALLY_ATTR_OF	       "tally.of"
#define TALLY_ATTR_REFUSE      "tally.refuse"
#define TALLY_ATTR_WHOLE       "tally.refuse.persist"
#define TALLY_ATTR_VENDOR      "tally.vendor"
#define TALLY_ATTR_LOCKED      "tally.locked"

/* Named metadata of a module: variables that stand for textures, samplers and surfaces. */
#define TALLY_MD_OPAQUE	     "tally.opaque"
#define TALLY_MD_INDEPENDENT "tally.opaque.independent"

/* At calls of tally.barrier*: the lanes of a warp come together, or not at all. */
#define TALLY_ATTR_ALIGNED "tally.aligned"

/* The most that an operation takes (wmma.mma: 24), and that one gives. */
enum { TALLY_OPERATION_ARGUMENTS = 32, TALLY_OPERATION_RESULTS = 8 };

/*
 * One operation of the contract. `signature` is the return type then the arguments in a short code:
 * v void, b i1, s i16, i i32, l i64, h half, y bfloat, f float, d double, p ptr, g and q ptr to
 * global and to shared memory; "{ib}" the pair {i32, i1}.
 */
struct tally_operation {
	const char *name; /* "tally.barrier" */
	const char *signature;
	enum tally_operation_kind {
		TALLY_OP_PURE,	     /* no memory, may be hoisted and merged */
		TALLY_OP_READ,	     /* reads changing state (clocks): not merged */
		TALLY_OP_EFFECT,     /* has effects, not convergent (printf, malloc) */
		TALLY_OP_CONVERGENT, /* all (named) threads meet in it: never moved or cloned */
		TALLY_OP_NORETURN,
	} kind;
};

/* The operation of that name, or NULL. The `tally.math.NAME.T` family is answered too. */
const struct tally_operation *tally_operation_find(const char *name);

struct tally_matrix_form;
/* The form (matrix.h) and its number in matrix.def of a matrix operation, or NULL. */
const struct tally_matrix_form *tally_matrix_find(const char *name, unsigned *index);

/*
 * The declaration of operation `name` in `module`, made when missing, with the attributes that its
 * kind asks for (convergent, nounwind, memory(none) ...). NULL when the contract has no such name:
 * a defect of the caller, not of the input. Fetch its type with LLVMGlobalGetValueType.
 */
LLVMValueRef tally_operation_declare(LLVMModuleRef module, const char *name);

/* Makes a new, empty neutral module (data layout set). The caller owns it. */
LLVMModuleRef tally_module_create(const char *name, LLVMContextRef context);

bool tally_is_kernel(LLVMValueRef function);

/* The value of a string attribute of `function`, or NULL when it has none. The text is owned by the
 * context and followed by a NUL. */
const char *tally_attribute(LLVMValueRef function, const char *name);
void tally_attribute_set(LLVMValueRef function, const char *name, const char *value);

/* Whether `module` keeps the contract; the error names the function and the first violation. */
bool tally_contract_verify(LLVMModuleRef module, struct tally_error *error);

#endif
