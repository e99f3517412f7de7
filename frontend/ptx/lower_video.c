/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD video instructions (PTX ISA 9.7.18) on all bytes or halves of their registers. */
#include <string.h>

#include "frontend/ptx/lift.h"

/* The lanes of a register, widened so that no operation overflows. */
static LLVMValueRef lanes(struct ptx_lift *l, const struct ptx_statement *s, unsigned index,
			  enum ptx_type type, unsigned count)
{
	LLVMTypeRef narrow = LLVMVectorType(ptx_int_type(l, 32 / count), count);
	LLVMTypeRef wide = LLVMVectorType(l->i32, count);
	LLVMValueRef v = LLVMBuildBitCast(l->builder, ptx_source(l, s, index, PTX_b32), narrow, "");

	return ptx_type_kind(type) == PTX_SIGNED ? LLVMBuildSExt(l->builder, v, wide, "")
						 : LLVMBuildZExt(l->builder, v, wide, "");
}

static LLVMValueRef all(LLVMTypeRef type, int64_t value)
{
	LLVMValueRef e[4];
	unsigned n = LLVMGetVectorSize(type);

	for (unsigned i = 0; i < n; i++)
		e[i] = LLVMConstInt(LLVMGetElementType(type), (uint64_t)value, 1);
	return LLVMConstVector(e, n);
}

static LLVMValueRef operate(struct ptx_lift *l, const char *op, LLVMValueRef a, LLVMValueRef b)
{
	if (!strcmp(op, "add"))
		return LLVMBuildAdd(l->builder, a, b, "");
	if (!strcmp(op, "min"))
		return ptx_intrinsic(l, "llvm.smin", 2, a, b, NULL);
	if (!strcmp(op, "max"))
		return ptx_intrinsic(l, "llvm.smax", 2, a, b, NULL);
	a = LLVMBuildSub(l->builder, a, b, "");
	if (!strcmp(op, "sub"))
		return a;
	return ptx_intrinsic(l, "llvm.abs", 2, a, LLVMConstInt(l->i1, 0, 0), NULL);
}

/* vset{2,4}.atype.btype.cmp: 1 or 0 in each lane. All lanes are signed 32-bit numbers by now. */
static LLVMValueRef compare(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef a,
			    LLVMValueRef b)
{
	static const struct {
		const char *name;
		LLVMIntPredicate predicate;
	} table[] = {
		{"eq", LLVMIntEQ},  {"ne", LLVMIntNE},	{"lt", LLVMIntSLT},
		{"le", LLVMIntSLE}, {"gt", LLVMIntSGT}, {"ge", LLVMIntSGE},
	};
	size_t i = 0;

	while (!ptx_has(s, table[i].name))
		i++;
	return LLVMBuildZExt(l->builder, LLVMBuildICmp(l->builder, table[i].predicate, a, b, ""),
			     LLVMTypeOf(a), "");
}

/* v{op}{2,4}.dtype.atype.btype{.sat} d, a, b, c and, with .add, the sum of all lanes and c. */
bool ptx_lower_simd(struct ptx_lift *l, const struct ptx_statement *s)
{
	unsigned count = (unsigned)(s->name[strlen(s->name) - 1] - '0'), bits = 32 / count;
	bool set = !strcmp(s->row->operation, "set");
	bool sign = ptx_type_kind(s->type[0]) == PTX_SIGNED;
	LLVMTypeRef narrow = LLVMVectorType(ptx_int_type(l, bits), count);
	LLVMValueRef a = lanes(l, s, 1, s->type[set ? 0 : 1], count);
	LLVMValueRef b = lanes(l, s, 2, s->type[set ? 1 : 2], count);
	LLVMValueRef v = set ? compare(l, s, a, b) : operate(l, s->row->operation, a, b);

	if (ptx_has(s, "sat")) {
		int64_t low = sign ? -((int64_t)1 << (bits - 1)) : 0;
		int64_t high = ((int64_t)1 << (bits - sign)) - 1;
		v = ptx_intrinsic(l, "llvm.smax", 2, v, all(LLVMTypeOf(v), low), NULL);
		v = ptx_intrinsic(l, "llvm.smin", 2, v, all(LLVMTypeOf(v), high), NULL);
	}
	if (ptx_has(s, "add")) {
		v = ptx_intrinsic(l, "llvm.vector.reduce.add", 1, v, NULL, NULL);
		v = LLVMBuildAdd(l->builder, v, ptx_source(l, s, 3, PTX_b32), "");
	} else {
		v = LLVMBuildTrunc(l->builder, v, narrow, "");
	}
	return ptx_result(l, s, ptx_as(l, v, l->i32, false), PTX_b32);
}
