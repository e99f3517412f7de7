/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix intrinsics of a warp (llvm.nvvm.mma.*, wmma.*, ldmatrix.*, stmatrix.*, movmatrix) as the
 * contract's operations of the same instruction: other names, and packed halves as i32.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/matrix.h"

enum { MAX_WORDS = 20, NAME = 256 };

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

/* Whether words of the intrinsic's name from `i` on are these; past them then. */
static bool skip(const struct words *w, unsigned *i, const char *first, const char *second)
{
	bool there = !strcmp(at(w, *i), first) && (!second || !strcmp(at(w, *i + 1), second));

	if (there)
		*i += second ? 2 : 1;
	return there;
}

/*
 * .kind.f8f6f4, or .mxf4nvf4[.scale.4x] of block-scaled products, as the contract spells it. What a
 * name without .scale means is the instruction's default (PTX ISA 9.7.14.3).
 */
static bool name_kind(const struct words *w, unsigned *i, bool blocks, char *out, size_t size)
{
	const char *kind = at(w, *i);
	bool quarters = !strcmp(kind, "mxf8f6f4");

	if (!blocks)
		return snprintf(out, size, "%s",
				skip(w, i, "kind", "f8f6f4") ? "kind.f8f6f4." : "") >= 0;
	++*i;
	snprintf(out, size, "kind.%s.block_scale.scale_vec.%cX.", kind,
		 strcmp(at(w, *i), "scale") ? (quarters ? '1' : '2') : *at(w, *i + 1));
	if (!strcmp(at(w, *i), "scale"))
		*i += 2;
	return *kind == 'm';
}

/*
 * mma[.xor.popc][.sp[.ordered.metadata]][.block.scale].SHAPE.row.col[KIND][.satfinite].TYPES; what
 * the sparse ones choose by a constant argument is the end of the contract's name.
 */
static bool name_mma(const struct words *w, unsigned selector, char *out, size_t size)
{
	bool bits = !strcmp(at(w, 1), "xor") || !strcmp(at(w, 1), "and"), saturated = false;
	unsigned i = bits ? 3 : 1;
	bool sparse = skip(w, &i, "sp", NULL), ordered = skip(w, &i, "ordered", "metadata");
	bool blocks = skip(w, &i, "block", "scale");
	unsigned shape = i;
	char types[64], kind[64], end[16] = "";

	i += 3;
	if (w->count < i + 1 || !name_kind(w, &i, blocks, kind, sizeof(kind)))
		return false;
	if (blocks)
		snprintf(types, sizeof(types), "%s.%s.%s.%s.%s", at(w, i), at(w, i + 1),
			 at(w, i + 2), at(w, i + 3), at(w, i + 4));
	else if (!types_of(w, i, types, sizeof(types), &saturated))
		return false;
	if (sparse)
		snprintf(end, sizeof(end), ".%u", selector);
	snprintf(out, size, "tally.mma%s%s.%s.%s.%s.%s%s%s%s%s%s%s", sparse ? ".sp" : "",
		 ordered ? ".ordered_metadata" : "", at(w, shape), at(w, shape + 1),
		 at(w, shape + 2), saturated ? "satfinite." : "", kind, types, bits ? "." : "",
		 bits ? at(w, 1) : "", bits ? ".popc" : "", end);
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

static bool operation_name(const char *intrinsic, unsigned selector, char *out, size_t size)
{
	struct words w;

	if (!split(&w, intrinsic + strlen("llvm.nvvm.")))
		return false;
	if (!strcmp(at(&w, 0), "mma"))
		return name_mma(&w, selector, out, size);
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

enum { NONE = UINT32_MAX };

/* The argument that sparse products choose by: behind the metadata, and last but for the six that
 * scale blocks. NONE: there is none such. */
static unsigned selector_at(LLVMValueRef call, const char *name)
{
	unsigned count = LLVMGetNumArgOperands(call);

	if (!strstr(name, ".mma.sp."))
		return NONE;
	return count - (strstr(name, ".block.scale.") ? 7 : 1);
}

/* The call's arguments for the operation, as other words of their size; false if it takes others.
 */
static bool take_arguments(struct lift *lift, LLVMValueRef call, unsigned left_out,
			   LLVMTypeRef type, LLVMValueRef *arguments)
{
	LLVMTypeRef parameters[TALLY_OPERATION_ARGUMENTS];
	unsigned count = LLVMCountParamTypes(type), n = 0;

	if (LLVMGetNumArgOperands(call) != count + (left_out != NONE))
		return false;
	LLVMGetParamTypes(type, parameters);
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++)
		if (i != left_out)
			arguments[n++] = LLVMGetOperand(call, i);
	for (unsigned i = 0; i < count; i++)
		if ((LLVMGetTypeKind(LLVMTypeOf(arguments[i])) == LLVMPointerTypeKind) !=
		    (LLVMGetTypeKind(parameters[i]) == LLVMPointerTypeKind))
			return false;
	LLVMPositionBuilderBefore(lift->builder, call);
	for (unsigned i = 0; i < count; i++)
		arguments[i] = as(lift, arguments[i], parameters[i]);
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
	const char *intrinsic = tally_called_name(call);
	unsigned selector = selector_at(call, intrinsic), chosen = 0;
	LLVMValueRef arguments[TALLY_OPERATION_ARGUMENTS];
	LLVMTypeRef type;
	char name[NAME];

	if (selector != NONE)
		chosen = (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(call, selector));
	/* What has no operation stays, and locks. */
	if (!operation_name(intrinsic, chosen, name, sizeof(name)) ||
	    !tally_matrix_find(name, NULL))
		return true;
	type = tally_operation_type(lift->context, tally_operation_find(name));
	if (!take_arguments(lift, call, selector, type, arguments))
		return true;
	replace(lift, call,
		tally_build_operation(lift->builder, lift->module, name, arguments,
				      LLVMCountParamTypes(type)));
	return true;
}
