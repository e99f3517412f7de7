/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mathematical operations that the textual library does not define: those of libm become calls of
 * it by name; CUDA's own, directed rounding and conversions become calls of the executor's
 * services.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"

/* tally.math.NAME where NAME (NAMEf for float) is a function of libm with the same arguments. */
static const char *const libm[] = {
	"acos", "acosh",  "asin",   "asinh",  "atan",	"atanh",   "cbrt",	"ceil",
	"cos",	"cosh",	  "erf",    "erfc",   "exp",	"exp10",   "exp2",	"expm1",
	"fabs", "floor",  "j0",	    "j1",     "lgamma", "log",	   "log10",	"log1p",
	"log2", "logb",	  "rint",   "round",  "sin",	"sinh",	   "nearbyint", "sqrt",
	"tan",	"tanh",	  "tgamma", "trunc",  "y0",	"y1",	   "atan2",	"copysign",
	"fdim", "fmax",	  "fmin",   "fmod",   "hypot",	"pow",	   "nextafter", "remainder",
	"fma",	"ilogb",  "ldexp",  "scalbn", "llrint", "llround", "scalbln",	"jn",
	"yn",	"sincos", "modf",   "frexp",  "remquo",
};

/* tally.math.NAME that the executor has, by its index there. */
static const char *const own[TALLY_CPU_MATH_COUNT] = {
#define OWN_NAME(name, arguments) [TALLY_CPU_MATH_##name] = #name,
	TALLY_CPU_MATH_LIST(OWN_NAME)
#undef OWN_NAME
};

static const char *const directions[] = {"rz", "rm", "rp"};
static const char *const rounded[] = {
	[TALLY_CPU_ROUND_ADD] = "add", [TALLY_CPU_ROUND_SUB] = "sub",
	[TALLY_CPU_ROUND_MUL] = "mul", [TALLY_CPU_ROUND_DIV] = "div",
	[TALLY_CPU_ROUND_FMA] = "fma", [TALLY_CPU_ROUND_SQRT] = "sqrt",
	[TALLY_CPU_ROUND_RCP] = "rcp",
};
static const char *const conversions[] = {
	[TALLY_CPU_F64_TO_F32] = "f32.f64",   [TALLY_CPU_F32_TO_F16] = "f16.f32",
	[TALLY_CPU_F32_TO_BF16] = "bf16.f32", [TALLY_CPU_I32_TO_F32] = "f32.i32",
	[TALLY_CPU_U32_TO_F32] = "f32.u32",   [TALLY_CPU_I64_TO_F32] = "f32.i64",
	[TALLY_CPU_U64_TO_F32] = "f32.u64",   [TALLY_CPU_I64_TO_F64] = "f64.i64",
	[TALLY_CPU_U64_TO_F64] = "f64.u64",
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* The index of the first `length` bytes of `name` in a table, or -1. */
static int find(const char *const *table, size_t count, const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (table[i] && strlen(table[i]) == length && !memcmp(table[i], name, length))
			return (int)i;
	return -1;
}

/* Neither reads nor writes memory (errno does not exist for kernels), always comes back. */
static void mark_pure(LLVMValueRef function)
{
	tally_add_attribute(function, "nounwind", 0);
	tally_add_attribute(function, "willreturn", 0);
	for (unsigned i = 0; i < LLVMCountParams(function); i++)
		if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(function, i))) == LLVMPointerTypeKind)
			return;
	tally_add_attribute(function, "memory", 0);
}

static void call_libm(LLVMValueRef function, const char *name, size_t length, bool single)
{
	LLVMModuleRef module = LLVMGetGlobalParent(function);
	char symbol[64];
	LLVMValueRef known;

	snprintf(symbol, sizeof symbol, "%.*s%s", (int)length, name, single ? "f" : "");
	known = LLVMGetNamedFunction(module, symbol);
	if (known) {
		LLVMReplaceAllUsesWith(function, known);
		LLVMDeleteFunction(function);
		return;
	}
	LLVMSetValueName2(function, symbol, strlen(symbol));
	mark_pure(function);
}

/* Starts the body of an operation that calls a service: its address is left in the block's services
 * table at `offset`. */
static LLVMValueRef begin_body(struct cpu_lowering *l, LLVMValueRef function, size_t offset)
{
	LLVMTypeRef type = LLVMFunctionType(l->ptr, NULL, 0, 0);
	LLVMValueRef block = LLVMGetNamedFunction(l->module, "tally.cpu.block"), services;

	if (!block)
		block = LLVMAddFunction(l->module, "tally.cpu.block", type);
	LLVMSetLinkage(function, LLVMInternalLinkage);
	LLVMPositionBuilderAtEnd(l->builder,
				 LLVMAppendBasicBlockInContext(l->context, function, "entry"));
	block = LLVMBuildCall2(l->builder, type, block, NULL, 0, "");
	services = cpu_load_field(l, l->ptr, block, offsetof(struct tally_cpu_block, services), "");
	return cpu_load_field(l, l->ptr, services, offset, "");
}

/* Calls the service as a pure function of its arguments. */
static LLVMValueRef call_service(struct cpu_lowering *l, LLVMTypeRef result, LLVMTypeRef *types,
				 LLVMValueRef *arguments, unsigned count, LLVMValueRef service)
{
	LLVMTypeRef type = LLVMFunctionType(result, types, count, 0);
	LLVMValueRef call = LLVMBuildCall2(l->builder, type, service, arguments, count, "");
	static const char *const pure[] = {"nounwind", "willreturn", "memory"};

	LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
				 LLVMCreateStringAttribute(l->context, "tally.service", 13, "", 0));
	for (size_t i = 0; i < COUNT(pure); i++)
		LLVMAddCallSiteAttribute(
			call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
			LLVMCreateEnumAttribute(
				l->context,
				LLVMGetEnumAttributeKindForName(pure[i], strlen(pure[i])), 0));
	return call;
}

static void call_own(struct cpu_lowering *l, LLVMValueRef function, int index)
{
	LLVMTypeRef wide = LLVMDoubleTypeInContext(l->context), types[4];
	LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(function));
	unsigned count = LLVMCountParams(function);
	LLVMValueRef arguments[4], value, service;

	service = begin_body(l, function,
			     offsetof(struct tally_cpu_services, math) +
				     (size_t)index * sizeof(void *));
	for (unsigned i = 0; i < count && i < 4; i++) {
		types[i] = wide;
		arguments[i] = LLVMGetParam(function, i);
		if (result != wide)
			arguments[i] = LLVMBuildFPExt(l->builder, arguments[i], wide, "");
	}
	value = call_service(l, wide, types, arguments, count, service);
	if (result != wide)
		value = LLVMBuildFPTrunc(l->builder, value, result, "");
	LLVMBuildRet(l->builder, value);
}

/* tally.round.OPERATION.DIRECTION.TYPE */
static void call_round(struct cpu_lowering *l, LLVMValueRef function, int operation, int direction)
{
	LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(function));
	bool single = LLVMGetTypeKind(type) == LLVMFloatTypeKind;
	LLVMTypeRef types[4] = {l->i32, type, type, type};
	LLVMValueRef service, arguments[4];

	service = begin_body(l, function,
			     single ? offsetof(struct tally_cpu_services, round32)
				    : offsetof(struct tally_cpu_services, round64));
	arguments[0] = LLVMConstInt(l->i32, (unsigned)(operation * 4 + direction), 0);
	for (unsigned i = 0; i < 3; i++)
		arguments[i + 1] = i < LLVMCountParams(function) ? LLVMGetParam(function, i)
								 : LLVMConstNull(type);
	LLVMBuildRet(l->builder, call_service(l, type, types, arguments, 4, service));
}

static LLVMValueRef as_integer(struct cpu_lowering *l, LLVMValueRef value)
{
	switch (LLVMGetTypeKind(LLVMTypeOf(value))) {
	case LLVMFloatTypeKind:
		return LLVMBuildBitCast(l->builder, value, l->i32, "");
	case LLVMDoubleTypeKind:
		return LLVMBuildBitCast(l->builder, value, l->i64, "");
	default:
		return value;
	}
}

/* tally.cvt.DIRECTION.TO.FROM: all through one service, as bits. */
static void call_convert(struct cpu_lowering *l, LLVMValueRef function, int kind, int direction)
{
	LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(function)), bits;
	LLVMTypeRef types[2] = {l->i32, l->i64};
	LLVMValueRef service, arguments[2], value;

	service = begin_body(l, function, offsetof(struct tally_cpu_services, convert));
	arguments[0] = LLVMConstInt(l->i32, (unsigned)(kind * 4 + direction), 0);
	value = as_integer(l, LLVMGetParam(function, 0));
	arguments[1] =
		LLVMTypeOf(value) == l->i64 ? value : LLVMBuildZExt(l->builder, value, l->i64, "");
	value = call_service(l, l->i64, types, arguments, 2, service);
	bits = LLVMGetTypeKind(result) == LLVMDoubleTypeKind  ? l->i64
	       : LLVMGetTypeKind(result) == LLVMFloatTypeKind ? l->i32
							      : LLVMInt16TypeInContext(l->context);
	if (bits != l->i64)
		value = LLVMBuildTrunc(l->builder, value, bits, "");
	LLVMBuildRet(l->builder, LLVMBuildBitCast(l->builder, value, result, ""));
}

/* Gives `function`, a declaration, its meaning; false when its name is none of these. */
static bool resolve(struct cpu_lowering *l, LLVMValueRef function, const char *name)
{
	const char *tail = strrchr(name, '.'), *dot;
	int index, direction;

	if (!strncmp(name, "tally.math.", 11)) {
		name += 11;
		index = find(libm, COUNT(libm), name, (size_t)(tail - name));
		if (index >= 0) {
			call_libm(function, name, (size_t)(tail - name), !strcmp(tail, ".f32"));
			return true;
		}
		index = find(own, COUNT(own), name, (size_t)(tail - name));
		if (index >= 0)
			call_own(l, function, index);
		return index >= 0;
	}
	if (!strncmp(name, "tally.round.", 12)) {
		dot = strchr(name + 12, '.');
		index = find(rounded, COUNT(rounded), name + 12, (size_t)(dot - name - 12));
		direction = find(directions, COUNT(directions), dot + 1, (size_t)(tail - dot - 1));
		if (index < 0 || direction < 0)
			return false;
		call_round(l, function, index, direction);
		return true;
	}
	if (!strncmp(name, "tally.cvt.", 10)) {
		direction = find(directions, COUNT(directions), name + 10, 2);
		index = find(conversions, COUNT(conversions), name + 13, strlen(name + 13));
		if (index < 0 || direction < 0)
			return false;
		call_convert(l, function, index, direction);
		return true;
	}
	return false;
}

/* What is put in place later, once it is known which function it is in. */
static bool is_primitive(const char *name)
{
	return !strncmp(name, "tally.cpu.", 10) || !strncmp(name, "tally.thread.id.", 16) ||
	       !strcmp(name, "tally.exit");
}

bool cpu_resolve_math(struct cpu_lowering *l, bool all)
{
	TALLY_EACH_FUNCTION (l->module, function) {
		size_t length;
		const char *name = LLVMGetValueName2(function, &length);

		if (LLVMCountBasicBlocks(function) || strncmp(name, "tally.", 6) ||
		    !LLVMGetFirstUse(function) || is_primitive(name))
			continue;
		if (!resolve(l, function, name) && all)
			return tally_fail(l->error, "the CPU device has no operation '%s'", name);
	}
	return true;
}
