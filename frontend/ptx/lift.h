/* SPDX-License-Identifier: Apache-2.0 */
/* What the lifter's files share: state, operands as LLVM values, and the way errors are told. */
#ifndef TALLY_FRONTEND_PTX_LIFT_H
#define TALLY_FRONTEND_PTX_LIFT_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

#include "frontend/ptx/instruction.h"
#include "frontend/ptx/ptx.h"

struct ptx_lift {
	struct ptx_module *ptx;
	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder;	      /* at the statement being lifted */
	LLVMBuilderRef entry_builder; /* at the end of the entry block: allocas, parameters */
	struct ptx_function *function;
	LLVMValueRef value;	 /* its LLVM function */
	LLVMValueRef carry;	 /* alloca of CC.CF, made when used */
	LLVMBasicBlockRef after; /* where the last conditional branch does not go */
	LLVMValueRef place;	 /* what keeps a block of the source (places.c); NULL: nothing */
	const char *file;
	struct tally_error *error;
	bool failed;
	unsigned f32_ftz, f32_plain; /* arithmetic of either kind in this function */
	LLVMDIBuilderRef debug;	     /* NULL: no lines */
	LLVMMetadataRef debug_unit, debug_scope, debug_file;
	LLVMTypeRef i1, i8, i16, i32, i64, f16, bf16, f32, f64;
};

/*
 * The first error stays, and `failed` is set: values of a failed read are poison and writes do
 * nothing, so lowering functions need not look. All return false.
 */
bool ptx_fail(struct ptx_lift *l, const struct ptx_statement *s, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool ptx_fail_at(struct ptx_lift *l, unsigned line, unsigned column, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* operand.c */
LLVMTypeRef ptx_llvm_type(struct ptx_lift *l, enum ptx_type type);    /* f16x2: <2 x half> */
LLVMTypeRef ptx_storage_type(struct ptx_lift *l, enum ptx_type type); /* f16x2: i32 */
LLVMTypeRef ptx_int_type(struct ptx_lift *l, unsigned bits);
/* The bits of `v` as type `to`: bitcast, truncated, or extended (with the sign when `sign`). */
LLVMValueRef ptx_as(struct ptx_lift *l, LLVMValueRef v, LLVMTypeRef to, bool sign);
/* Operand `o` as a value of `type`. */
LLVMValueRef ptx_value(struct ptx_lift *l, const struct ptx_statement *s,
		       const struct ptx_operand *o, enum ptx_type type);
LLVMValueRef ptx_source(struct ptx_lift *l, const struct ptx_statement *s, unsigned index,
			enum ptx_type type);
/* Writes to operand `o`, or to destination `index`; `type` says whether a wider register is filled
 * with the sign. True unless the lift failed. */
bool ptx_assign_to(struct ptx_lift *l, const struct ptx_statement *s, const struct ptx_operand *o,
		   LLVMValueRef value, enum ptx_type type);
bool ptx_result(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef value,
		enum ptx_type type);
/* The elements of a vector operand (or the operand itself): how many, at most `limit`. */
unsigned ptx_elements(struct ptx_lift *l, const struct ptx_statement *s,
		      const struct ptx_operand *o, const struct ptx_operand **out, unsigned limit);
/* Pointer to what a register, variable or parameter is kept in. */
LLVMValueRef ptx_place(struct ptx_lift *l, struct ptx_symbol *symbol);
LLVMValueRef ptx_alloca(struct ptx_lift *l, LLVMTypeRef type, unsigned align, const char *name);

/* memory.c */
enum ptx_space ptx_space_of(const struct ptx_statement *s);
/* The pointer of memory operand `o`, in the address space of `space`. */
LLVMValueRef ptx_pointer(struct ptx_lift *l, const struct ptx_statement *s,
			 const struct ptx_operand *o, enum ptx_space space);
/* The address `base` of a variable and what the operand adds to it: a + 4, a[4], a[%r1+4]. */
LLVMValueRef ptx_element(struct ptx_lift *l, const struct ptx_statement *s,
			 const struct ptx_operand *o, LLVMValueRef base);
/* LLVM's sync scope of .cta .gpu .sys (default .gpu for atomics), locking for .cluster. */
unsigned ptx_scope(struct ptx_lift *l, const struct ptx_statement *s, const char *fallback);
LLVMAtomicOrdering ptx_order(const struct ptx_statement *s);

/* special.c: special registers; false when `name` is none. */
bool ptx_special(struct ptx_lift *l, const struct ptx_statement *s, const char *name,
		 LLVMValueRef *value);

/* float.c */
LLVMValueRef ptx_flush(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v,
		       enum ptx_type type); /* when the statement has .ftz */
LLVMValueRef ptx_saturate(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v);
LLVMValueRef ptx_compare_float(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef a,
			       LLVMValueRef b);
LLVMValueRef ptx_splat(LLVMTypeRef type, double value);
/* A call of an LLVM intrinsic overloaded for the type of its first argument. */
LLVMValueRef ptx_intrinsic(struct ptx_lift *l, const char *name, unsigned count, LLVMValueRef a,
			   LLVMValueRef b, LLVMValueRef c);
LLVMValueRef ptx_operation(struct ptx_lift *l, const char *name, unsigned count, LLVMValueRef a,
			   LLVMValueRef b, LLVMValueRef c, LLVMValueRef d);

/* call.c, function.c, variable.c */
LLVMTypeRef ptx_parameter_type(struct ptx_lift *l, const struct ptx_symbol *parameter);
LLVMTypeRef ptx_function_type(struct ptx_lift *l, const struct ptx_function *f);
bool ptx_declare_function(struct ptx_lift *l, struct ptx_function *f);
bool ptx_lift_function(struct ptx_lift *l, struct ptx_function *f);
bool ptx_lift_statements(struct ptx_lift *l, struct ptx_function *f);
bool ptx_declare_variable(struct ptx_lift *l, struct ptx_symbol *s);
bool ptx_initialise_variable(struct ptx_lift *l, struct ptx_symbol *s);
LLVMBasicBlockRef ptx_new_block(struct ptx_lift *l, const char *name);
LLVMBasicBlockRef ptx_label_block(struct ptx_lift *l, struct ptx_symbol *label);
/* Emits the function's return from the places of its results. */
void ptx_build_return(struct ptx_lift *l);

/* vendor.c */
bool ptx_lower_vendor(struct ptx_lift *l, const struct ptx_statement *s);
/* The address of a texture, sampler or surface: ptxas takes it in a mov.u64 alone. Locks. */
LLVMValueRef ptx_opaque_address(struct ptx_lift *l, const struct ptx_statement *s,
				const char *name);
void ptx_lock(struct ptx_lift *l, const struct ptx_statement *s, const char *what);

/* places.c: from `start` on, the block that the builder is at the beginning of stays where
 * `keep_place` is called, unless `drop_place` is before anything else is in it; `end`, after the
 * passes that would take it out, forgets all of them. */
void ptx_places_start(struct ptx_lift *l);
void ptx_keep_place(struct ptx_lift *l);
void ptx_drop_place(struct ptx_lift *l);
void ptx_places_end(LLVMModuleRef module);

/* provenance.c: integers that were pointers become pointers again. */
void ptx_restore_pointers(LLVMValueRef function);

/* debug.c: .file and .loc as LLVM's debug lines. */
void ptx_debug_start(struct ptx_lift *l);
void ptx_debug_function(struct ptx_lift *l, const struct ptx_function *f);
void ptx_debug_line(struct ptx_lift *l, const struct ptx_statement *s);
void ptx_debug_end(struct ptx_lift *l);

#endif
