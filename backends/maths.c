/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM's maths intrinsics that a target cannot select become calls of tally.math.*. */
#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "ir_passes/ir.h"

/* How an intrinsic's arguments and result go over to tally.math.NAME. */
enum shape {
	PLAIN,	  /* the same arguments and result */
	INTEGER,  /* result is an integer: NAME gives i64 */
	SCALED,	  /* T, then an integer of any width: NAME takes i32 */
	TWO_PART, /* {T, x}: NAME gives the first, the second through a pointer */
	TWO_OUT,  /* {T, T}: NAME gives both through pointers */
};

static const struct intrinsic {
	const char *base, *name;
	enum shape shape;
} intrinsics[] = {
	{"sin", "sin", PLAIN},
	{"cos", "cos", PLAIN},
	{"tan", "tan", PLAIN},
	{"asin", "asin", PLAIN},
	{"acos", "acos", PLAIN},
	{"atan", "atan", PLAIN},
	{"atan2", "atan2", PLAIN},
	{"sinh", "sinh", PLAIN},
	{"cosh", "cosh", PLAIN},
	{"tanh", "tanh", PLAIN},
	{"exp", "exp", PLAIN},
	{"exp2", "exp2", PLAIN},
	{"exp10", "exp10", PLAIN},
	{"log", "log", PLAIN},
	{"log2", "log2", PLAIN},
	{"log10", "log10", PLAIN},
	{"pow", "pow", PLAIN},
	{"powi", "powi", SCALED},
	{"ldexp", "ldexp", SCALED},
	{"lrint", "llrint", INTEGER},
	{"llrint", "llrint", INTEGER},
	{"lround", "llround", INTEGER},
	{"llround", "llround", INTEGER},
	{"frexp", "frexp", TWO_PART},
	{"modf", "modf", TWO_PART},
	{"sincos", "sincos", TWO_OUT},
	{"sincospi", "sincospi", TWO_OUT},
};

struct rewrite {
	LLVMModuleRef module;
	LLVMContextRef context;
	LLVMBuilderRef builder;
	LLVMValueRef function;
	bool (*selectable)(const char *name, LLVMTypeRef type);
};

static const struct intrinsic *find(const char *called)
{
	const char *base = called + strlen("llvm."), *dot;
	size_t length;

	if (strncmp(called, "llvm.", 5))
		return NULL;
	dot = strchr(base, '.');
	length = dot ? (size_t)(dot - base) : strlen(base);
	for (size_t k = 0; k < sizeof intrinsics / sizeof *intrinsics; k++)
		if (strlen(intrinsics[k].base) == length &&
		    !strncmp(intrinsics[k].base, base, length))
			return &intrinsics[k];
	return NULL;
}

/* The float type in which NAME is computed: f32 and f64 as they are, narrower ones in f32. */
static LLVMTypeRef computed_in(struct rewrite *r, LLVMTypeRef scalar)
{
	return LLVMGetTypeKind(scalar) == LLVMDoubleTypeKind ? scalar
							     : LLVMFloatTypeInContext(r->context);
}

static LLVMValueRef convert(struct rewrite *r, LLVMValueRef value, LLVMTypeRef to)
{
	LLVMTypeRef from = LLVMTypeOf(value);

	if (from == to)
		return value;
	if (LLVMGetTypeKind(to) == LLVMIntegerTypeKind)
		return LLVMBuildIntCast2(r->builder, value, to, 1, "");
	return LLVMBuildFPCast(r->builder, value, to, "");
}

/* Out-parameters live in the entry block, so that loops do not grow the stack. */
static LLVMValueRef make_slot(struct rewrite *r, LLVMTypeRef type)
{
	LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(r->function);
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(r->context);
	LLVMValueRef slot;

	LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(entry));
	slot = LLVMBuildAlloca(builder, type, "");
	LLVMDisposeBuilder(builder);
	if (LLVMGetPointerAddressSpace(LLVMTypeOf(slot)) == TALLY_AS_GENERIC)
		return slot;
	return LLVMBuildAddrSpaceCast(r->builder, slot,
				      LLVMPointerTypeInContext(r->context, TALLY_AS_GENERIC), "");
}

static LLVMValueRef call_math(struct rewrite *r, const char *name, LLVMTypeRef type,
			      LLVMValueRef *arguments, unsigned count)
{
	char operation[64];

	snprintf(operation, sizeof operation, "tally.math.%s.%s", name,
		 LLVMGetTypeKind(type) == LLVMDoubleTypeKind ? "f64" : "f32");
	return tally_build_operation(r->builder, r->module, operation, arguments, count);
}

/* One element: `arguments` are scalars; `result` is the intrinsic's scalar result type. */
static LLVMValueRef rewrite_scalar(struct rewrite *r, const struct intrinsic *intrinsic,
				   LLVMValueRef *arguments, unsigned count, LLVMTypeRef result)
{
	LLVMTypeRef type = computed_in(r, LLVMTypeOf(arguments[0]));
	LLVMTypeRef i32 = LLVMInt32TypeInContext(r->context), second;
	LLVMValueRef value, slots[2], pair;

	for (unsigned k = 0; k < count; k++)
		arguments[k] =
			convert(r, arguments[k], intrinsic->shape == SCALED && k == 1 ? i32 : type);
	switch (intrinsic->shape) {
	case TWO_PART:
		second = LLVMStructGetTypeAtIndex(result, 1);
		if (LLVMGetTypeKind(second) != LLVMIntegerTypeKind)
			second = type;
		arguments[count] = slots[1] = make_slot(r, second);
		value = call_math(r, intrinsic->name, type, arguments, count + 1);
		slots[1] = LLVMBuildLoad2(r->builder, second, slots[1], "");
		break;
	case TWO_OUT:
		second = type;
		arguments[count] = slots[0] = make_slot(r, type);
		arguments[count + 1] = slots[1] = make_slot(r, type);
		call_math(r, intrinsic->name, type, arguments, count + 2);
		value = LLVMBuildLoad2(r->builder, type, slots[0], "");
		slots[1] = LLVMBuildLoad2(r->builder, type, slots[1], "");
		break;
	default:
		return convert(r, call_math(r, intrinsic->name, type, arguments, count), result);
	}
	pair = LLVMBuildInsertValue(r->builder, LLVMGetPoison(result),
				    convert(r, value, LLVMStructGetTypeAtIndex(result, 0)), 0, "");
	return LLVMBuildInsertValue(
		r->builder, pair, convert(r, slots[1], LLVMStructGetTypeAtIndex(result, 1)), 1, "");
}

static bool is_vector(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

static LLVMValueRef element(struct rewrite *r, LLVMValueRef value, unsigned index)
{
	if (!is_vector(LLVMTypeOf(value)))
		return value;
	return LLVMBuildExtractElement(
		r->builder, value, LLVMConstInt(LLVMInt32TypeInContext(r->context), index, 0), "");
}

/* The scalar result type of a vector intrinsic. */
static LLVMTypeRef scalar_result(struct rewrite *r, LLVMTypeRef result)
{
	LLVMTypeRef members[2];

	if (is_vector(result))
		return LLVMGetElementType(result);
	if (LLVMGetTypeKind(result) != LLVMStructTypeKind)
		return result;
	for (unsigned k = 0; k < 2; k++) {
		members[k] = LLVMStructGetTypeAtIndex(result, k);
		if (is_vector(members[k]))
			members[k] = LLVMGetElementType(members[k]);
	}
	return LLVMStructTypeInContext(r->context, members, 2, 0);
}

/* Puts element `index` into the whole result. */
static LLVMValueRef put(struct rewrite *r, LLVMValueRef whole, LLVMValueRef part, unsigned index)
{
	LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(r->context), index, 0);

	if (is_vector(LLVMTypeOf(whole)))
		return LLVMBuildInsertElement(r->builder, whole, part, at, "");
	for (unsigned k = 0; k < 2; k++) {
		LLVMValueRef vector = LLVMBuildExtractValue(r->builder, whole, k, "");
		LLVMValueRef scalar = LLVMBuildExtractValue(r->builder, part, k, "");

		vector = LLVMBuildInsertElement(r->builder, vector, scalar, at, "");
		whole = LLVMBuildInsertValue(r->builder, whole, vector, k, "");
	}
	return whole;
}

static LLVMValueRef rewrite_all(struct rewrite *r, const struct intrinsic *intrinsic,
				LLVMValueRef instruction, unsigned count)
{
	LLVMTypeRef result = LLVMTypeOf(instruction), type;
	LLVMValueRef arguments[6], whole = LLVMGetPoison(result);

	type = LLVMTypeOf(LLVMGetOperand(instruction, 0));
	if (!is_vector(type)) {
		for (unsigned k = 0; k < count; k++)
			arguments[k] = LLVMGetOperand(instruction, k);
		return rewrite_scalar(r, intrinsic, arguments, count, result);
	}
	for (unsigned e = 0; e < LLVMGetVectorSize(type); e++) {
		for (unsigned k = 0; k < count; k++)
			arguments[k] = element(r, LLVMGetOperand(instruction, k), e);
		whole = put(
			r, whole,
			rewrite_scalar(r, intrinsic, arguments, count, scalar_result(r, result)),
			e);
	}
	return whole;
}

static bool visit(LLVMValueRef instruction, void *data)
{
	static const struct intrinsic remainder = {"frem", "fmod", PLAIN};
	struct rewrite *r = data;
	const struct intrinsic *intrinsic = NULL;
	const char *called = tally_called_name(instruction);
	unsigned count = 2;
	LLVMTypeRef type;

	if (called) {
		intrinsic = find(called);
		count = LLVMGetNumArgOperands(instruction);
	} else if (LLVMGetInstructionOpcode(instruction) == LLVMFRem) {
		intrinsic = &remainder;
	}
	if (!intrinsic)
		return true;
	type = LLVMTypeOf(LLVMGetOperand(instruction, 0));
	if (r->selectable &&
	    r->selectable(intrinsic->base, is_vector(type) ? LLVMGetElementType(type) : type))
		return true;
	LLVMPositionBuilderBefore(r->builder, instruction);
	tally_replace(instruction, rewrite_all(r, intrinsic, instruction, count));
	return true;
}

/* Whether any function of the module could hold something to rewrite. */
static bool worth_looking(LLVMModuleRef module, LLVMValueRef function)
{
	size_t length;

	if (LLVMIsDeclaration(function))
		return find(LLVMGetValueName2(function, &length)) != NULL;
	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i)
			if (LLVMGetInstructionOpcode(i) == LLVMFRem)
				return true;
	return false;
}

bool tally_lower_maths(LLVMModuleRef module, bool (*selectable)(const char *name, LLVMTypeRef type),
		       struct tally_error *error)
{
	struct rewrite r = {.module = module,
			    .context = LLVMGetModuleContext(module),
			    .selectable = selectable};
	bool needed = false, ok = true;

	TALLY_EACH_FUNCTION (module, function)
		needed = needed || worth_looking(module, function);
	if (!needed)
		return true;
	r.builder = LLVMCreateBuilderInContext(r.context);
	TALLY_EACH_FUNCTION (module, function) {
		if (LLVMIsDeclaration(function))
			continue;
		r.function = function;
		ok = ok && tally_visit_instructions(function, visit, &r);
	}
	LLVMDisposeBuilder(r.builder);
	return ok || tally_fail(error, "out of memory");
}

unsigned tally_lower_rename_maths(LLVMModuleRef module,
				  void (*name)(const char *operation, char *text, size_t size))
{
	unsigned renamed = 0;

	TALLY_EACH_FUNCTION (module, function) {
		char text[96];
		LLVMValueRef other;

		if (!LLVMIsDeclaration(function) ||
		    strncmp(tally_name(function), TALLY_MATHS, strlen(TALLY_MATHS)))
			continue;
		name(tally_name(function), text, sizeof text);
		other = LLVMGetNamedFunction(module, text);
		if (!other)
			other = LLVMAddFunction(module, text, LLVMGlobalGetValueType(function));
		LLVMReplaceAllUsesWith(function, other);
		LLVMDeleteFunction(function);
		renamed++;
	}
	return renamed;
}
