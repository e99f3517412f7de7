/* SPDX-License-Identifier: Apache-2.0 */
/* What a vendor's intrinsic or library function means in neutral IR: the form of the tables. */
#ifndef TALLY_FRONTEND_BITCODE_MAPPING_H
#define TALLY_FRONTEND_BITCODE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * One row. `signature` is the return type, then the arguments, in the codes of contract.h
 * (v b i l h f d p and {ib}) and
 *   c i8   s i16   y bfloat   H <2 x half>   Y <2 x bfloat>   F <2 x float>   I <2 x i16>   B <4 x
 * i8> G S K P   pointers to address spaces 1 (global), 3 (shared), 4 (constant), 5 (private) `body`
 * is either the name of a function ("tally.…" or "llvm.…") that is called with the same arguments,
 * or IR text that computes %r from the arguments %a, %b, %c …
 */
struct bitcode_mapping {
	const char *name;
	const char *signature;
	const char *body;
};

struct bitcode_table {
	const char *name; /* for messages and tests: "nvvm" */
	const struct bitcode_mapping *rows;
	size_t count;
};

extern const struct bitcode_table bitcode_table_nvvm;	   /* llvm.nvvm.* */
extern const struct bitcode_table bitcode_table_nvvm_half; /* the same on half and bfloat */
extern const struct bitcode_table bitcode_table_libdevice; /* __nv_* */
extern const struct bitcode_table bitcode_table_amdgcn;	   /* llvm.amdgcn.*, __ockl_* */
extern const struct bitcode_table bitcode_table_wave32;	   /* lane operations of 32 lanes */
extern const struct bitcode_table bitcode_table_ocml;	   /* __ocml_* */
extern const struct bitcode_table bitcode_table_runtime;   /* vprintf, malloc, assertions … */

/* All of them, NULL after the last. */
const struct bitcode_table *bitcode_table_at(size_t index);

/* The row of that name, or NULL. Names are looked up in a sorted index made on first use; callers
 * are of one thread (LLVM contexts are, too). */
const struct bitcode_mapping *bitcode_mapping_find(const char *name);

/* Whether calls of that function are mapped even where the module brings its own body (the device
 * libraries, which clang links in). */
bool bitcode_mapping_is_library(const char *name);

/* Appends the type of one code at *code as IR text and moves *code behind it. */
void bitcode_type_print(struct tally_buffer *out, const char **code);

#define BITCODE_TABLE(symbol, text, array)                                                         \
	const struct bitcode_table symbol = {text, array, sizeof(array) / sizeof(*(array))}

#endif
