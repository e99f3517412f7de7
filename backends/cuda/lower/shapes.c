/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes that LLVM's optimiser and instruction selection prefer and ptxas does not know as well as
 * those it was given: each is one instruction of a machine, and comes out as several. Found on the
 * corpus (docs/lowering.md).
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/ir.h"

static bool is_constant(LLVMValueRef v, unsigned long long value)
{
	return LLVMIsAConstantInt(v) && LLVMConstIntGetZExtValue(v) == value;
}

static unsigned width_of(LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);

	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

static bool is_op(LLVMValueRef v, LLVMOpcode opcode)
{
	return LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == opcode;
}

/* The bit that `compare` asks for: (x & bit) != 0 or == bit. 0: something else. Bit 0 stays LLVM's,
 * which needs no shift for it. */
static unsigned long long asked_bit(LLVMValueRef compare, LLVMValueRef *x)
{
	LLVMValueRef masked = LLVMGetOperand(compare, 0), other = LLVMGetOperand(compare, 1);
	LLVMIntPredicate predicate = LLVMGetICmpPredicate(compare);
	unsigned long long bit;

	if (!is_op(masked, LLVMAnd) || (width_of(masked) != 32 && width_of(masked) != 64) ||
	    !LLVMIsAConstantInt(LLVMGetOperand(masked, 1)))
		return 0;
	*x = LLVMGetOperand(masked, 0);
	bit = LLVMConstIntGetZExtValue(LLVMGetOperand(masked, 1));
	if (bit < 2 || bit & (bit - 1))
		return 0;
	return (predicate == LLVMIntNE && is_constant(other, 0)) ||
			       (predicate == LLVMIntEQ && is_constant(other, bit))
		       ? bit
		       : 0;
}

/* One LOP3 that gives a predicate. Selection makes a shift, a mask and a compare of it. */
static bool test_bit(LLVMValueRef compare, unsigned long long bit, LLVMValueRef x,
		     LLVMBuilderRef builder)
{
	LLVMTypeRef i1 = LLVMTypeOf(compare);
	unsigned width;
	char text[128];

	width = width_of(x);
	snprintf(text, sizeof text,
		 "{ .reg .b%u %%tb; and.b%u %%tb, $1, %llu; setp.ne.b%u $0, %%tb, 0; }", width,
		 width, bit, width);
	LLVMPositionBuilderBefore(builder, compare);
	x = tally_cuda_build_assembly(builder, i1, &x, 1, text, strlen(text), false);
	if (x)
		tally_replace(compare, x);
	return x != NULL;
}

/* What a loop adds to `counter`, a phi, in `block`: the sum that comes round, or NULL. */
static LLVMValueRef step_of(LLVMValueRef counter, LLVMBasicBlockRef block)
{
	if (!LLVMIsAPHINode(counter))
		return NULL;
	for (unsigned k = 0; k < LLVMCountIncoming(counter); k++) {
		LLVMValueRef sum = LLVMGetIncomingValue(counter, k);

		if (is_op(sum, LLVMAdd) && LLVMGetInstructionParent(sum) == block &&
		    LLVMGetOperand(sum, 0) == counter && LLVMIsAConstantInt(LLVMGetOperand(sum, 1)))
			return sum;
	}
	return NULL;
}

/* Whether `counter PREDICATE limit` says of the sum what it says of the counter. */
static bool keeps_order(LLVMIntPredicate predicate, LLVMValueRef sum, long long limit,
			long long step)
{
	const long long most = width_of(sum) == 32 ? INT32_MAX : INT64_MAX / 2;

	switch (predicate) {
	case LLVMIntEQ:
	case LLVMIntNE:
		return true;
	case LLVMIntULT:
	case LLVMIntUGT:
		return LLVMGetNUW(sum) && limit >= 0 && step >= 0 && limit <= most - step;
	case LLVMIntSLT:
	case LLVMIntSGT:
		return LLVMGetNSW(sum) && limit <= most - (step > 0 ? step : 0) &&
		       limit >= -most - (step < 0 ? step : 0);
	default:
		return false;
	}
}

/* The end of a loop asks for the number that comes round, not for that of this round: then ptxas
 * knows how often it runs, and unrolls it. */
static void ask_next(LLVMValueRef compare, LLVMBuilderRef builder)
{
	LLVMBasicBlockRef block = LLVMGetInstructionParent(compare);
	LLVMValueRef counter = LLVMGetOperand(compare, 0), limit = LLVMGetOperand(compare, 1);
	LLVMValueRef sum, end = LLVMGetBasicBlockTerminator(block);
	LLVMUseRef use = LLVMGetFirstUse(compare);
	LLVMIntPredicate predicate = LLVMGetICmpPredicate(compare);
	long long step, bound;

	if (!LLVMIsAConstantInt(limit) || (width_of(limit) != 32 && width_of(limit) != 64) ||
	    !use || LLVMGetNextUse(use) || LLVMGetUser(use) != end)
		return;
	sum = step_of(counter, block);
	if (!sum)
		return;
	step = LLVMConstIntGetSExtValue(LLVMGetOperand(sum, 1));
	bound = LLVMConstIntGetSExtValue(limit);
	if (!keeps_order(predicate, sum, bound, step))
		return;
	LLVMPositionBuilderBefore(builder, end);
	limit = LLVMConstInt(LLVMTypeOf(sum), (unsigned long long)bound + (unsigned long long)step,
			     1);
	tally_replace(compare, LLVMBuildICmp(builder, predicate, sum, limit, ""));
}

/* x ^ (p ? -1 : 0), which `@p not` became: a choice again, of which ptxas makes one instruction. */
static void choose_complement(LLVMValueRef exclusive, LLVMBuilderRef builder)
{
	for (unsigned k = 0; k < 2; k++) {
		LLVMValueRef mask = LLVMGetOperand(exclusive, k);
		LLVMValueRef x = LLVMGetOperand(exclusive, 1 - k);

		if (!is_op(mask, LLVMSExt) || width_of(LLVMGetOperand(mask, 0)) != 1 ||
		    width_of(x) < 32)
			continue;
		LLVMPositionBuilderBefore(builder, exclusive);
		tally_replace(exclusive, LLVMBuildSelect(builder, LLVMGetOperand(mask, 0),
							 LLVMBuildNot(builder, x, ""), x, ""));
		return;
	}
}

/* zext(low) | zext(high) << 16: one PRMT, as `mov.b32 d, {low, high}`. */
static void pack_halves(LLVMValueRef either, LLVMBuilderRef builder)
{
	LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(either));
	LLVMTypeRef pair = LLVMVectorType(LLVMInt16TypeInContext(context), 2);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(context);

	for (unsigned k = 0; k < 2 && width_of(either) == 32; k++) {
		LLVMValueRef low = LLVMGetOperand(either, k), v;
		LLVMValueRef high = LLVMGetOperand(either, 1 - k);

		if (!is_op(high, LLVMShl) || !is_constant(LLVMGetOperand(high, 1), 16))
			continue;
		high = LLVMGetOperand(high, 0);
		if (!is_op(low, LLVMZExt) || width_of(LLVMGetOperand(low, 0)) != 16 ||
		    !is_op(high, LLVMZExt) || width_of(LLVMGetOperand(high, 0)) != 16)
			continue;
		LLVMPositionBuilderBefore(builder, either);
		v = LLVMBuildInsertElement(builder, LLVMGetPoison(pair), LLVMGetOperand(low, 0),
					   LLVMConstInt(i32, 0, 0), "");
		v = LLVMBuildInsertElement(builder, v, LLVMGetOperand(high, 0),
					   LLVMConstInt(i32, 1, 0), "");
		tally_replace(either, LLVMBuildBitCast(builder, v, i32, ""));
		return;
	}
}

/* Puts a shift right by a constant that selection does not see into in front of `user`, whose first
 * operand it becomes. False: out of memory. */
static bool hide_shift(LLVMValueRef user, LLVMValueRef shift, LLVMBuilderRef builder)
{
	LLVMValueRef x = LLVMGetOperand(shift, 0), v;
	unsigned long long by = LLVMConstIntGetZExtValue(LLVMGetOperand(shift, 1));
	char text[48];

	if (by >= width_of(shift))
		return true;
	snprintf(text, sizeof text, "shr.u%u $0, $1, %llu;", width_of(shift), by);
	LLVMPositionBuilderBefore(builder, user);
	v = tally_cuda_build_assembly(builder, LLVMTypeOf(shift), &x, 1, text, strlen(text), false);
	if (v)
		LLVMSetOperand(user, 0, v);
	return v != NULL;
}

/* Whether `v` is (x >> a) OPERATION b of the machine's integers, with constants. */
static bool is_behind_shift(LLVMValueRef v)
{
	LLVMValueRef shift = LLVMGetOperand(v, 0), other = LLVMGetOperand(v, 1);

	return (width_of(v) == 32 || width_of(v) == 64) && LLVMIsAConstantInt(other) &&
	       is_op(shift, LLVMLShr) && LLVMIsAConstantInt(LLVMGetOperand(shift, 1));
}

/*
 * x >> a & mask of the lowest bits stays two instructions. Selection makes a bfe.u32 of them, which
 * is two of the machine's again, and the mask is no longer one that a LOP3 can take along.
 */
static bool keep_field(LLVMValueRef both, LLVMBuilderRef builder)
{
	unsigned long long bits;

	if (!is_behind_shift(both))
		return true;
	bits = LLVMConstIntGetZExtValue(LLVMGetOperand(both, 1));
	return !bits || bits & (bits + 1) || hide_shift(both, LLVMGetOperand(both, 0), builder);
}

/* x >> a << b stays two shifts, as of the number of a warp an address: selection makes a shift and
 * a mask of them (a selection 64 registers instead of 56). */
static bool keep_shifts(LLVMValueRef left, LLVMBuilderRef builder)
{
	return !is_behind_shift(left) || hide_shift(left, LLVMGetOperand(left, 0), builder);
}

/* Comparisons of floats as PTX calls them. */
static const struct {
	LLVMRealPredicate predicate;
	const char *name;
} comparisons[] = {
	{LLVMRealOEQ, "eq"},  {LLVMRealOGT, "gt"},  {LLVMRealOGE, "ge"},  {LLVMRealOLT, "lt"},
	{LLVMRealOLE, "le"},  {LLVMRealONE, "ne"},  {LLVMRealORD, "num"}, {LLVMRealUNO, "nan"},
	{LLVMRealUEQ, "equ"}, {LLVMRealUGT, "gtu"}, {LLVMRealUGE, "geu"}, {LLVMRealULT, "ltu"},
	{LLVMRealULE, "leu"}, {LLVMRealUNE, "neu"},
};

/* (half)(a < b), as set.lt.f16.f16: of one instruction ptxas has the number, and no predicate. */
static bool give_number(LLVMValueRef number, LLVMBuilderRef builder)
{
	LLVMValueRef test = LLVMGetOperand(number, 0), operands[2], v;
	LLVMTypeRef type = LLVMTypeOf(number);
	char text[64];
	size_t k = 0;

	if (LLVMGetTypeKind(type) != LLVMHalfTypeKind || !is_op(test, LLVMFCmp) ||
	    LLVMTypeOf(LLVMGetOperand(test, 0)) != type)
		return true;
	while (k < sizeof comparisons / sizeof *comparisons &&
	       comparisons[k].predicate != LLVMGetFCmpPredicate(test))
		k++;
	if (k == sizeof comparisons / sizeof *comparisons)
		return true;
	snprintf(text, sizeof text, "set.%s.f16.f16 $0, $1, $2;", comparisons[k].name);
	operands[0] = LLVMGetOperand(test, 0);
	operands[1] = LLVMGetOperand(test, 1);
	LLVMPositionBuilderBefore(builder, number);
	v = tally_cuda_build_assembly(builder, type, operands, 2, text, strlen(text), false);
	if (v)
		tally_replace(number, v);
	return v != NULL;
}

/* `n` without a change of its width. */
static LLVMValueRef amount_of(LLVMValueRef n)
{
	return is_op(n, LLVMZExt) || is_op(n, LLVMTrunc) ? LLVMGetOperand(n, 0) : n;
}

/* The amount of umin(n, most), or NULL. */
static LLVMValueRef clamped(LLVMValueRef n, unsigned most)
{
	const char *name = LLVMIsACallInst(n) ? tally_called_name(n) : NULL;

	return name && !strncmp(name, "llvm.umin.", 10) && is_constant(LLVMGetOperand(n, 1), most)
		       ? LLVMGetOperand(n, 0)
		       : NULL;
}

static bool build_shift(LLVMValueRef old, LLVMBuilderRef builder, LLVMValueRef a, LLVMValueRef n,
			const char *name)
{
	LLVMValueRef inputs[] = {a, n}, v;
	char text[48];

	snprintf(text, sizeof text, "%s%u $0, $1, $2;", name, width_of(a));
	LLVMPositionBuilderBefore(builder, old);
	v = tally_cuda_build_assembly(builder, LLVMTypeOf(a), inputs, 2, text, strlen(text), false);
	if (v)
		tally_replace(old, v);
	return v != NULL;
}

/*
 * The machine's shifts clamp; neutral IR says so round them, and once that is mixed with what
 * stands beside it nobody finds it again. As PTX was lifted: n < bits ? a << n : 0, a >> umin(n,
 * bits - 1).
 */
static bool visit_shift(LLVMValueRef i, void *builder)
{
	unsigned bits = width_of(i);
	LLVMValueRef test, shift, n;

	if (bits != 16 && bits != 32 && bits != 64)
		return true;
	if (is_op(i, LLVMAShr)) {
		n = clamped(amount_of(LLVMGetOperand(i, 1)), bits - 1);
		return !n || build_shift(i, builder, LLVMGetOperand(i, 0), n, "shr.s");
	}
	if (!is_op(i, LLVMSelect) || !is_constant(LLVMGetOperand(i, 2), 0))
		return true;
	test = LLVMGetOperand(i, 0);
	shift = LLVMGetOperand(i, 1);
	if ((!is_op(shift, LLVMShl) && !is_op(shift, LLVMLShr)) || !is_op(test, LLVMICmp) ||
	    LLVMGetICmpPredicate(test) != LLVMIntULT || !is_constant(LLVMGetOperand(test, 1), bits))
		return true;
	n = LLVMGetOperand(test, 0);
	return width_of(n) != 32 || amount_of(LLVMGetOperand(shift, 1)) != n ||
	       build_shift(i, builder, LLVMGetOperand(shift, 0), n,
			   is_op(shift, LLVMShl) ? "shl.b" : "shr.u");
}

static bool visit(LLVMValueRef instruction, void *data)
{
	unsigned long long bit;
	LLVMValueRef x;

	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMICmp:
		bit = asked_bit(instruction, &x);
		if (bit)
			return test_bit(instruction, bit, x, data);
		ask_next(instruction, data);
		return true;
	case LLVMXor:
		choose_complement(instruction, data);
		return true;
	case LLVMOr:
		pack_halves(instruction, data);
		return true;
	case LLVMAnd:
		return keep_field(instruction, data);
	case LLVMShl:
		return keep_shifts(instruction, data);
	case LLVMUIToFP:
		return give_number(instruction, data);
	default:
		return true;
	}
}

static bool visit_all(LLVMModuleRef module, bool (*what)(LLVMValueRef i, void *builder),
		      struct tally_error *error)
{
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		ok = ok && tally_visit_instructions(function, what, builder);
	LLVMDisposeBuilder(builder);
	return ok || tally_fail(error, "out of memory");
}

bool tally_cuda_shapes(LLVMModuleRef module, struct tally_error *error)
{
	return visit_all(module, visit, error);
}

bool tally_cuda_shifts(LLVMModuleRef module, struct tally_error *error)
{
	return visit_all(module, visit_shift, error);
}

/*
 * Conversions that clamp. The machine's do so by themselves; LLVM's operation gives 0 for a NaN,
 * the machine 0 or, where 64 bits are on either side, the bit of the sign alone.
 */
static const struct {
	const char *operation, *machine;
	bool zero; /* the machine gives 0 for a NaN */
} conversions[] = {
	{"llvm.fptosi.sat.i32.f32", "llvm.nvvm.f2i.rz", true},
	{"llvm.fptoui.sat.i32.f32", "llvm.nvvm.f2ui.rz", true},
	{"llvm.fptosi.sat.i64.f32", "llvm.nvvm.f2ll.rz", false},
	{"llvm.fptoui.sat.i64.f32", "llvm.nvvm.f2ull.rz", false},
	{"llvm.fptosi.sat.i32.f64", "llvm.nvvm.d2i.rz", false},
	{"llvm.fptoui.sat.i32.f64", "llvm.nvvm.d2ui.rz", false},
	{"llvm.fptosi.sat.i64.f64", "llvm.nvvm.d2ll.rz", false},
	{"llvm.fptoui.sat.i64.f64", "llvm.nvvm.d2ull.rz", false},
};

/* `isnan(x) ? sign bit : call`, the only user of `call`: what the machine gives. Or NULL. */
static LLVMValueRef asked_sign(LLVMValueRef call, LLVMValueRef x)
{
	LLVMUseRef use = LLVMGetFirstUse(call);
	LLVMValueRef user = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL, test;

	if (!user || !is_op(user, LLVMSelect) || LLVMGetOperand(user, 2) != call ||
	    !is_constant(LLVMGetOperand(user, 1), 1ull << (width_of(call) - 1)))
		return NULL;
	test = LLVMGetOperand(user, 0);
	return is_op(test, LLVMFCmp) && LLVMGetFCmpPredicate(test) == LLVMRealUNO &&
			       LLVMGetOperand(test, 0) == x && LLVMGetOperand(test, 1) == x
		       ? user
		       : NULL;
}

static void convert(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef call,
		    const char *name, bool zero)
{
	LLVMValueRef x = LLVMGetOperand(call, 0), result, sign, function;
	LLVMTypeRef in = LLVMTypeOf(x), type = LLVMFunctionType(LLVMTypeOf(call), &in, 1, 0);

	function = LLVMGetNamedFunction(module, name);
	if (!function)
		function = LLVMAddFunction(module, name, type);
	LLVMPositionBuilderBefore(builder, call);
	result = LLVMBuildCall2(builder, type, function, &x, 1, "");
	sign = zero ? NULL : asked_sign(call, x);
	if (sign) {
		LLVMReplaceAllUsesWith(sign, result);
		return;
	}
	if (!zero)
		result = LLVMBuildSelect(builder, LLVMBuildFCmp(builder, LLVMRealUNO, x, x, ""),
					 LLVMConstNull(LLVMTypeOf(call)), result, "");
	LLVMReplaceAllUsesWith(call, result);
}

void tally_cuda_conversions(LLVMModuleRef module)
{
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));

	for (size_t k = 0; k < sizeof conversions / sizeof *conversions; k++) {
		LLVMValueRef function = LLVMGetNamedFunction(module, conversions[k].operation);

		if (!function)
			continue;
		TALLY_EACH_USE (function, use)
			if (LLVMIsACallInst(LLVMGetUser(use)))
				convert(module, builder, LLVMGetUser(use), conversions[k].machine,
					conversions[k].zero);
	}
	LLVMDisposeBuilder(builder);
}
