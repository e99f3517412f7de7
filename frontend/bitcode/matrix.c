/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix intrinsics of a warp (llvm.nvvm.mma.*, wmma.*, ldmatrix.*, stmatrix.*, movmatrix) as the
 * contract's operations of the same instruction: other names, and packed halves as i32.
 */
#include <stdio.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/matrix.h"

enum { MAX_WORDS = 16 };

struct words {
	char text[160];
	const char *word[MAX_WORDS];
	unsigned count;
};

static bool split(struct words *w, const char *name)
{
	char *save = NULL;

	w->count = 0;
	if (snprintf(w->text, sizeof(w->text), "%s", name) >= (int)sizeof(w->text))
		return false;
	for (char *p = strtok_r(w->text, ".", &save); p; p = strtok_r(NULL, ".", &save)) {
		if (w->count == MAX_WORDS)
			return false;
		w->word[w->count++] = p;
	}
	return true;
}

static const char *at(const struct words *w, unsigned i)
{
	return i < w->count ? w->word[i] : "";
}

static bool is_real(const char *type)
{
	return !strcmp(type, "f16") || !strcmp(type, "f32");
}

/* The four types, which LLVM names as far as they are not implied; .satfinite before or behind. */
static bool types_of(const struct words *w, unsigned i, char *out, size_t size, bool *saturated)
{
	const char *a, *b;

	*saturated = !strcmp(at(w, i), "satfinite");
	i += *saturated;
	if (!strcmp(at(w, w->count - 1), "satfinite"))
		*saturated = true;
	a = at(w, i);
	b = i + 1 < w->count && strcmp(at(w, i + 1), "satfinite") ? at(w, i + 1) : a;
	if (w->count >= i + 4)
		return snprintf(out, size, "%s.%s.%s.%s", a, b, at(w, i + 2), at(w, i + 3)) > 0;
	if (is_real(a)) /* d and c of a product of halves */
		return snprintf(out, size, "%s.f16.f16.%s", a, b) > 0;
	if (!strcmp(a, "bf16") || !strcmp(a, "tf32"))
		return snprintf(out, size, "f32.%s.%s.f32", a, a) > 0;
	if (!strcmp(a, "f64"))
		return snprintf(out, size, "f64.f64.f64.f64") > 0;
	return snprintf(out, size, "s32.%s.%s.s32", a, b) > 0;
}

/* mma[.xor.popc].SHAPE.row.col[.satfinite].TYPES */
static bool name_mma(const struct words *w, char *out, size_t size)
{
	bool bits = !strcmp(at(w, 1), "xor") || !strcmp(at(w, 1), "and"), saturated;
	unsigned i = bits ? 3 : 1;
	char types[64];

	if (w->count < i + 4 || !types_of(w, i + 3, types, sizeof(types), &saturated))
		return false;
	snprintf(out, size, "tally.mma.%s.%s.%s.%s%s%s%s%s", at(w, i), at(w, i + 1), at(w, i + 2),
		 saturated ? "satfinite." : "", types, bits ? "." : "", bits ? at(w, 1) : "",
		 bits ? ".popc" : "");
	return true;
}

/* wmma.SHAPE.mma[.xor.popc].row.col.TYPES[.satfinite] */
static bool name_product(const struct words *w, char *out, size_t size)
{
	bool bits = !strcmp(at(w, 3), "xor") || !strcmp(at(w, 3), "and"), saturated;
	unsigned i = bits ? 5 : 3;
	char types[64];

	if (w->count < i + 3)
		return false;
	if (is_real(at(w, i + 2)))
		snprintf(types, sizeof(types), "%s.%s", at(w, i + 2), at(w, i + 3));
	else if (!types_of(w, i + 2, types, sizeof(types), &saturated))
		return false;
	saturated = !strcmp(at(w, w->count - 1), "satfinite");
	snprintf(out, size, "tally.wmma.mma.%s%s%s.%s.%s.%s%s", bits ? at(w, 3) : "",
		 bits ? ".popc." : "", at(w, i), at(w, i + 1), at(w, 1), types,
		 saturated ? ".satfinite" : "");
	return true;
}

/* wmma.SHAPE.{load,store}.F.{row,col}[.stride].TYPE.pN */
static bool name_memory(const struct words *w, char *out, size_t size)
{
	bool stride = !strcmp(at(w, 5), "stride");
	const char *space = at(w, w->count - 1);

	if (!stride || w->count != 8) /* a stride that is implied: rare, it stays */
		return false;
	snprintf(out, size, "tally.wmma.%s.%s.%s.%s%s.%s", at(w, 2), at(w, 3), at(w, 4), at(w, 1),
		 !strcmp(space, "p3")	? ".shared"
		 : !strcmp(space, "p1") ? ".global"
					: "",
		 at(w, 6));
	return true;
}

/* {ldmatrix,stmatrix}.sync.aligned.m8n8.xN[.trans].b16.pN */
static bool name_rows(const struct words *w, char *out, size_t size)
{
	bool trans = !strcmp(at(w, 5), "trans");

	snprintf(out, size, "tally.%s.%s.%s%s.%s", at(w, 0), at(w, 3), at(w, 4),
		 trans ? ".trans" : "", at(w, 5 + trans));
	return w->count > 5;
}

static bool operation_name(const char *intrinsic, char *out, size_t size)
{
	struct words w;

	if (!split(&w, intrinsic + strlen("llvm.nvvm.")))
		return false;
	if (!strcmp(at(&w, 0), "mma"))
		return name_mma(&w, out, size);
	if (!strcmp(at(&w, 0), "wmma"))
		return !strcmp(at(&w, 2), "mma") ? name_product(&w, out, size)
						 : name_memory(&w, out, size);
	return name_rows(&w, out, size);
}

/* A value as the type that the other side has: bits for bits, another address space. */
static LLVMValueRef as(struct lift *lift, LLVMValueRef v, LLVMTypeRef type)
{
	LLVMTypeRef from = LLVMTypeOf(v);

	if (from == type)
		return v;
	if (LLVMGetTypeKind(from) == LLVMPointerTypeKind)
		return LLVMBuildAddrSpaceCast(lift->builder, v, type, "");
	return LLVMBuildBitCast(lift->builder, v, type, "");
}

/* Whether the operation takes the call's arguments as they are, or as other words of their size. */
static bool fits(LLVMValueRef call, LLVMTypeRef type)
{
	LLVMTypeRef parameters[TALLY_OPERATION_ARGUMENTS];
	unsigned count = LLVMCountParamTypes(type);

	if (LLVMGetNumArgOperands(call) != count)
		return false;
	LLVMGetParamTypes(type, parameters);
	for (unsigned i = 0; i < count; i++) {
		LLVMTypeRef from = LLVMTypeOf(LLVMGetOperand(call, i));
		bool pointer = LLVMGetTypeKind(from) == LLVMPointerTypeKind;

		if (pointer != (LLVMGetTypeKind(parameters[i]) == LLVMPointerTypeKind))
			return false;
	}
	return true;
}

static void replace(struct lift *lift, LLVMValueRef call, LLVMValueRef made)
{
	LLVMTypeRef want = LLVMTypeOf(call), have = LLVMTypeOf(made);
	LLVMValueRef v;

	if (LLVMGetTypeKind(want) == LLVMVoidTypeKind) {
		tally_replace(call, NULL);
		return;
	}
	if (LLVMGetTypeKind(want) != LLVMStructTypeKind) {
		if (LLVMGetTypeKind(have) == LLVMStructTypeKind)
			made = LLVMBuildExtractValue(lift->builder, made, 0, "");
		tally_replace(call, as(lift, made, want));
		return;
	}
	v = LLVMGetPoison(want);
	for (unsigned i = 0; i < LLVMCountStructElementTypes(want); i++) {
		LLVMValueRef e = LLVMGetTypeKind(have) == LLVMStructTypeKind
					 ? LLVMBuildExtractValue(lift->builder, made, i, "")
					 : made;
		v = LLVMBuildInsertValue(lift->builder, v,
					 as(lift, e, LLVMStructGetTypeAtIndex(want, i)), i, "");
	}
	tally_replace(call, v);
}

bool bitcode_matrix(struct lift *lift, LLVMValueRef call)
{
	LLVMTypeRef parameters[TALLY_OPERATION_ARGUMENTS], type;
	LLVMValueRef arguments[TALLY_OPERATION_ARGUMENTS];
	const struct tally_matrix_form *form;
	char name[160];

	/* What has no operation stays, and locks. */
	if (!operation_name(tally_called_name(call), name, sizeof(name)))
		return true;
	form = tally_matrix_find(name, NULL);
	if (!form)
		return true;
	type = tally_operation_type(lift->context, tally_operation_find(name));
	if (!fits(call, type))
		return true;
	LLVMGetParamTypes(type, parameters);
	LLVMPositionBuilderBefore(lift->builder, call);
	for (unsigned i = 0; i < LLVMCountParamTypes(type); i++)
		arguments[i] = as(lift, LLVMGetOperand(call, i), parameters[i]);
	replace(lift, call,
		tally_build_operation(lift->builder, lift->module, name, arguments,
				      LLVMCountParamTypes(type)));
	return true;
}
