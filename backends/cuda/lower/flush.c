/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic whose operands and result are flushed (tally.ftz.f32), or whose result is clamped to
 * [0, 1], as the one PTX instruction with .ftz and .sat that does all of it; and arithmetic that
 * may be contracted as the instruction without a rounding modifier, so that ptxas decides as it
 * would have for the original. It runs before anything is linked or optimised, while the shape that
 * the frontends give is still there.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/ir.h"

enum { MAX_OPERANDS = 3 };

/*
 * One operation by opcode or by the function that is called; `text` is the instruction up to where
 * .ftz and .sat stand, and what follows them. Those whose result needs no flush when the operands
 * are flushed are not BOTH.
 */
enum { BOTH = 1, SATURATES = 2, RESULT_ONLY = 4 };

static const struct shape {
	LLVMOpcode opcode;
	const char *callee;
	unsigned operands, flags;
	const char *text, *type;
} shapes[] = {
	{LLVMFAdd, NULL, 2, BOTH | SATURATES, "add.rn", "f32"},
	{LLVMFSub, NULL, 2, BOTH | SATURATES, "sub.rn", "f32"},
	{LLVMFMul, NULL, 2, BOTH | SATURATES, "mul.rn", "f32"},
	{LLVMFDiv, NULL, 2, BOTH, "div.rn", "f32"},
	{LLVMFAdd, NULL, 2, 0, "add.rn", "f64"},
	{LLVMFSub, NULL, 2, 0, "sub.rn", "f64"},
	{LLVMFMul, NULL, 2, 0, "mul.rn", "f64"},
	{LLVMFNeg, NULL, 1, 0, "neg", "f32"},
	{LLVMFPExt, NULL, 1, 0, "cvt", "f64.f32"},
	{LLVMFPTrunc, NULL, 1, BOTH | RESULT_ONLY, "cvt.rn", "f32.f64"},
	{LLVMCall, "llvm.fma.f32", 3, BOTH | SATURATES, "fma.rn", "f32"},
	{LLVMCall, "llvm.sqrt.f32", 1, BOTH, "sqrt.rn", "f32"},
	{LLVMCall, "llvm.fabs.f32", 1, 0, "abs", "f32"},
	{LLVMCall, "llvm.minimumnum.f32", 2, 0, "min", "f32"},
	{LLVMCall, "llvm.maximumnum.f32", 2, 0, "max", "f32"},
	{LLVMCall, "llvm.minnum.f32", 2, 0, "min", "f32"},
	{LLVMCall, "llvm.maxnum.f32", 2, 0, "max", "f32"},
	{LLVMCall, "llvm.minimum.f32", 2, 0, "min", "NaN.f32"},
	{LLVMCall, "llvm.maximum.f32", 2, 0, "max", "NaN.f32"},
	{LLVMCall, "tally.approx.rcp.f32", 1, BOTH, "rcp.approx", "f32"},
	{LLVMCall, "tally.approx.sqrt.f32", 1, BOTH, "sqrt.approx", "f32"},
	{LLVMCall, "tally.approx.rsqrt.f32", 1, BOTH, "rsqrt.approx", "f32"},
	{LLVMCall, "tally.approx.ex2.f32", 1, BOTH, "ex2.approx", "f32"},
	{LLVMCall, "tally.approx.lg2.f32", 1, BOTH, "lg2.approx", "f32"},
	{LLVMCall, "tally.approx.sin.f32", 1, BOTH, "sin.approx", "f32"},
	{LLVMCall, "tally.approx.cos.f32", 1, BOTH, "cos.approx", "f32"},
	{LLVMCall, "tally.approx.div.f32", 2, BOTH, "div.approx", "f32"},
	{LLVMCall, "tally.approx.div.full.f32", 2, BOTH, "div.full", "f32"},
#define DIRECTED(d)                                                                                \
	{LLVMCall, "tally.round.add." d ".f32", 2, BOTH | SATURATES, "add." d, "f32"},             \
		{LLVMCall, "tally.round.sub." d ".f32", 2, BOTH | SATURATES, "sub." d, "f32"},     \
		{LLVMCall, "tally.round.mul." d ".f32", 2, BOTH | SATURATES, "mul." d, "f32"},     \
		{LLVMCall, "tally.round.fma." d ".f32", 3, BOTH | SATURATES, "fma." d, "f32"},     \
		{LLVMCall, "tally.round.div." d ".f32", 2, BOTH, "div." d, "f32"},                 \
		{LLVMCall, "tally.round.sqrt." d ".f32", 1, BOTH, "sqrt." d, "f32"},               \
		{LLVMCall, "tally.round.rcp." d ".f32", 1, BOTH, "rcp." d, "f32"},                 \
		{LLVMCall, "tally.cvt." d ".f32.f64", 1, BOTH | RESULT_ONLY, "cvt." d, "f32.f64"}
	DIRECTED("rz"),
	DIRECTED("rm"),
	DIRECTED("rp"),
#undef DIRECTED
};

static const char *const compares[] = {
	[LLVMRealOEQ] = "eq",  [LLVMRealOGT] = "gt",  [LLVMRealOGE] = "ge",  [LLVMRealOLT] = "lt",
	[LLVMRealOLE] = "le",  [LLVMRealONE] = "ne",  [LLVMRealORD] = "num", [LLVMRealUNO] = "nan",
	[LLVMRealUEQ] = "equ", [LLVMRealUGT] = "gtu", [LLVMRealUGE] = "geu", [LLVMRealULT] = "ltu",
	[LLVMRealULE] = "leu", [LLVMRealUNE] = "neu",
};

static LLVMTypeRef single(LLVMValueRef v)
{
	return LLVMFloatTypeInContext(LLVMGetTypeContext(LLVMTypeOf(v)));
}

static bool converts(LLVMValueRef i, LLVMTypeKind from, LLVMTypeKind to)
{
	return LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0))) == from &&
	       LLVMGetTypeKind(LLVMTypeOf(i)) == to;
}

static const struct shape *shape_of(LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	const char *callee = opcode == LLVMCall ? tally_called_name(i) : NULL;

	if (opcode == LLVMCall && !callee)
		return NULL;
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		const struct shape *s = &shapes[k];

		if (s->opcode != opcode || (callee && strcmp(s->callee, callee)))
			continue;
		if (!strcmp(s->type, "f64.f32"))
			return converts(i, LLVMFloatTypeKind, LLVMDoubleTypeKind) ? s : NULL;
		if (!strcmp(s->type, "f32.f64"))
			return converts(i, LLVMDoubleTypeKind, LLVMFloatTypeKind) ? s : NULL;
		if (LLVMGetTypeKind(LLVMTypeOf(i)) ==
		    (strcmp(s->type, "f64") ? LLVMFloatTypeKind : LLVMDoubleTypeKind))
			return s;
	}
	return NULL;
}

static bool is_flush(LLVMValueRef v)
{
	const char *name = LLVMIsACallInst(v) ? tally_called_name(v) : NULL;

	return name && !strcmp(name, "tally.ftz.f32");
}

/* The one user of `v` when it is a call of `name` (or of `other`), or NULL. */
static LLVMValueRef only_call(LLVMValueRef v, const char *name, const char *other)
{
	LLVMUseRef use = LLVMGetFirstUse(v);
	LLVMValueRef user = use ? LLVMGetUser(use) : NULL;
	const char *called;

	if (!use || LLVMGetNextUse(use) || !LLVMIsACallInst(user))
		return NULL;
	called = tally_called_name(user);
	return called && (!strcmp(called, name) || (other && !strcmp(called, other))) ? user : NULL;
}

static bool is_number(LLVMValueRef v, double number)
{
	LLVMBool lost;

	return LLVMIsAConstantFP(v) && LLVMConstRealGetDouble(v, &lost) == number;
}

/* min(max(v, 0), 1), with v used nowhere else: the minimum. */
static LLVMValueRef saturation(LLVMValueRef v)
{
	LLVMValueRef low = only_call(v, "llvm.maximumnum.f32", "llvm.maxnum.f32"), high;

	if (!low || !is_number(LLVMGetOperand(low, 1), 0))
		return NULL;
	high = only_call(low, "llvm.minimumnum.f32", "llvm.minnum.f32");
	return high && is_number(LLVMGetOperand(high, 1), 1) ? high : NULL;
}

/* A constant that no flush changes, or what an instruction with .ftz gave. */
static bool is_flushed(LLVMValueRef v)
{
	LLVMBool lost;
	double size;

	if (LLVMIsAConstantFP(v)) {
		size = LLVMConstRealGetDouble(v, &lost);
		return !(size > -0x1p-126 && size < 0x1p-126) || size == 0;
	}
	if (LLVMIsACallInst(v) && LLVMIsAInlineAsm(LLVMGetCalledValue(v))) {
		size_t length;
		const char *text = LLVMGetInlineAsmAsmString(LLVMGetCalledValue(v), &length);

		return text && memmem(text, length, ".ftz", 4);
	}
	return false;
}

/* What the operands were before their flush; false when one was not flushed. `raw` counts flushes
 * that the new instruction saves. */
static bool operands_of(LLVMValueRef i, unsigned count, LLVMValueRef *out, unsigned *raw)
{
	*raw = 0;
	for (unsigned k = 0; k < count; k++) {
		LLVMValueRef v = LLVMGetOperand(i, k);

		if (is_flush(v)) {
			++*raw;
			v = LLVMGetOperand(v, 0);
		} else if (!is_flushed(v)) {
			return false;
		}
		out[k] = v;
	}
	return true;
}

static void place_operands(char *text, size_t size, unsigned count)
{
	size_t n = strlen(text);

	for (unsigned k = 0; k <= count && n < size; k++)
		n += (size_t)snprintf(text + n, size - n, "%s$%u", k ? ", " : " ", k);
	if (n < size)
		snprintf(text + n, size - n, ";");
}

struct flush {
	LLVMBuilderRef builder;
	bool failed;
};

static void replace(struct flush *f, LLVMValueRef root, LLVMTypeRef type, LLVMValueRef *operands,
		    unsigned count, const char *text)
{
	LLVMValueRef v;

	LLVMPositionBuilderBefore(f->builder, root);
	v = tally_cuda_build_assembly(f->builder, type, operands, count, text, strlen(text), false);
	if (!v)
		f->failed = true;
	else
		LLVMReplaceAllUsesWith(root, v);
}

/* An addition, subtraction or multiplication that PTX writes without a rounding modifier. */
static bool may_contract(LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);

	return (opcode == LLVMFAdd || opcode == LLVMFSub || opcode == LLVMFMul) &&
	       LLVMGetFastMathFlags(i) & LLVMFastMathAllowContract;
}

static void arithmetic(struct flush *f, LLVMValueRef i, const struct shape *s)
{
	LLVMValueRef operands[MAX_OPERANDS] = {0}, root = i, clamped = NULL, flushed;
	const char *base = s->text;
	unsigned raw = 0, count = s->operands, first = 0;
	bool ftz = s->flags & RESULT_ONLY || operands_of(i, count, operands, &raw);
	bool contract = may_contract(i);
	char text[96];

	flushed = s->flags & BOTH ? only_call(i, "tally.ftz.f32", NULL) : NULL;
	ftz = ftz && (s->flags & BOTH ? flushed != NULL : raw > 0);
	if (ftz && flushed)
		root = flushed;
	if (s->flags & SATURATES)
		clamped = saturation(root);
	if (clamped)
		root = clamped;
	if (!ftz && !clamped && !contract)
		return;
	for (unsigned k = 0; (!ftz || s->flags & RESULT_ONLY) && k < count; k++)
		operands[k] = LLVMGetOperand(i, k);
	if (s->opcode == LLVMFDiv && is_number(operands[0], 1)) {
		base = "rcp.rn";
		first = 1;
		count = 1;
	}
	snprintf(text, sizeof text, "%.*s%s%s.%s", contract ? 3 : (int)strlen(base), base,
		 ftz ? ".ftz" : "", clamped ? ".sat" : "", s->type);
	place_operands(text, sizeof text, count);
	replace(f, root, LLVMTypeOf(root), operands + first, count, text);
}

static void compare(struct flush *f, LLVMValueRef i)
{
	LLVMValueRef operands[2];
	unsigned raw;
	LLVMRealPredicate p = LLVMGetFCmpPredicate(i);
	char text[96];

	if (LLVMTypeOf(LLVMGetOperand(i, 0)) != single(i) || !operands_of(i, 2, operands, &raw) ||
	    !raw || p >= sizeof compares / sizeof *compares || !compares[p])
		return;
	snprintf(text, sizeof text, "setp.%s.ftz.f32", compares[p]);
	place_operands(text, sizeof text, 2);
	replace(f, i, LLVMTypeOf(i), operands, 2, text);
}

static bool visit(LLVMValueRef i, void *data)
{
	struct flush *f = data;
	const struct shape *s;

	if (LLVMGetInstructionOpcode(i) == LLVMFCmp)
		compare(f, i);
	else if ((s = shape_of(i)))
		arithmetic(f, i, s);
	return !f->failed;
}

bool tally_cuda_flush(LLVMModuleRef module, struct tally_error *error)
{
	struct flush f = {.builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module))};

	TALLY_EACH_FUNCTION (module, function)
		if (!f.failed)
			tally_visit_instructions(function, visit, &f);
	LLVMDisposeBuilder(f.builder);
	return !f.failed || tally_fail(error, "out of memory");
}
