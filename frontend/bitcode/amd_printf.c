/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HIP's printf. clang makes one call a piece of it (-mprintf-kind=hostcall): a beginning, the
 * format, each argument as 64 bits or as a string, every call taking the descriptor that the one
 * before gave. Here the chain becomes one tally.printf with its arguments packed as the format's
 * conversions say.
 */
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

#define ARGUMENTS_MAX 64

enum { APPEND_ARGS_VALUES = 7, APPEND_ARGS_FIRST = 2 };

/* A chain, as it is read. Values are i64, or pointers for strings. */
struct chain {
	LLVMValueRef calls[ARGUMENTS_MAX + 2];
	unsigned call_count;
	LLVMValueRef format;
	LLVMValueRef values[ARGUMENTS_MAX];
	unsigned value_count;
};

/* The append call that takes `descriptor`, or NULL. */
static LLVMValueRef next_append(LLVMValueRef descriptor)
{
	TALLY_EACH_USE (descriptor, use) {
		const char *name = tally_called_name(LLVMGetUser(use));

		if (name && !strncmp(name, "__ockl_printf_append_", 21) &&
		    LLVMGetOperand(LLVMGetUser(use), 0) == descriptor)
			return LLVMGetUser(use);
	}
	return NULL;
}

static bool take_append(struct lift *lift, struct chain *chain, LLVMValueRef call)
{
	bool is_string = strstr(tally_called_name(call), "_string_n") != NULL;
	LLVMValueRef count = LLVMGetOperand(call, 1);
	unsigned long long n;

	if (is_string && !chain->format) {
		chain->format = LLVMGetOperand(call, 1);
		return true;
	}
	if (is_string) {
		if (chain->value_count == ARGUMENTS_MAX)
			return bitcode_fail(lift, call, "printf of too many arguments");
		chain->values[chain->value_count++] = LLVMGetOperand(call, 1);
		return true;
	}
	n = LLVMIsAConstantInt(count) ? LLVMConstIntGetZExtValue(count) : APPEND_ARGS_VALUES + 1;
	if (!chain->format || n > APPEND_ARGS_VALUES || chain->value_count + n > ARGUMENTS_MAX)
		return bitcode_fail(lift, call, "a printf that cannot be read");
	for (unsigned i = 0; i < n; i++)
		chain->values[chain->value_count++] = LLVMGetOperand(call, APPEND_ARGS_FIRST + i);
	return true;
}

static bool read_chain(struct lift *lift, LLVMValueRef begin, struct chain *chain)
{
	LLVMValueRef call = begin;

	do {
		if (chain->call_count == sizeof(chain->calls) / sizeof(*chain->calls))
			return bitcode_fail(lift, call, "printf of too many arguments");
		chain->calls[chain->call_count++] = call;
		if (call != begin && !take_append(lift, chain, call))
			return false;
		call = next_append(call);
	} while (call);
	if (!chain->format)
		return bitcode_fail(lift, begin, "a printf without a format");
	return true;
}

/* Where a reader of a format stands. */
struct format {
	const char *at, *end;
	bool inside; /* behind a `*` of a conversion that goes on */
};

/* Bytes of the next argument that the format takes, 4 or 8; 8 when it takes no more. */
static unsigned next_size(struct format *f)
{
	bool wide = false;

	while (!f->inside && f->at < f->end) {
		const char *percent = memchr(f->at, '%', (size_t)(f->end - f->at));

		f->at = percent ? percent + 1 : f->end;
		f->inside = percent && f->at < f->end && *f->at != '%';
		if (percent && !f->inside && f->at < f->end)
			f->at++;
	}
	for (; f->at < f->end; f->at++) {
		if (*f->at == '*') { /* a width or precision: an int of its own */
			f->at++;
			return 4;
		}
		if (!strchr("-+ #0123456789.hlLjzt", *f->at))
			break;
		wide |= strchr("lLjzt", *f->at) != NULL;
	}
	f->inside = false;
	if (f->at == f->end)
		return 8;
	return strchr("diouxXc", *f->at++) && !wide ? 4 : 8;
}

static LLVMValueRef entry_alloca(struct lift *lift, LLVMValueRef function, unsigned bytes)
{
	LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
	LLVMTypeRef i8 = LLVMInt8TypeInContext(lift->context);
	LLVMValueRef alloca;

	LLVMPositionBuilderBefore(lift->builder, LLVMGetFirstInstruction(entry));
	alloca = LLVMBuildAlloca(lift->builder, LLVMArrayType2(i8, bytes ? bytes : 8), "");
	LLVMSetAlignment(alloca, 8);
	return alloca;
}

static void store_argument(struct lift *lift, LLVMValueRef buffer, unsigned offset,
			   LLVMValueRef value, unsigned bytes)
{
	LLVMTypeRef i8 = LLVMInt8TypeInContext(lift->context);
	LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(lift->context), offset, 0), store;

	if (bytes == 4)
		value = LLVMBuildTrunc(lift->builder, value, LLVMInt32TypeInContext(lift->context),
				       "");
	store = LLVMBuildStore(lift->builder, value,
			       LLVMBuildGEP2(lift->builder, i8, buffer, &at, 1, ""));
	LLVMSetAlignment(store, bytes);
}

static bool build_printf(struct lift *lift, struct chain *chain)
{
	LLVMValueRef last = chain->calls[chain->call_count - 1], arguments[2], result, buffer;
	unsigned sizes[ARGUMENTS_MAX], offset = 0;
	struct format format = {0};
	size_t length;

	format.at = bitcode_constant_string(chain->format, &length);
	if (!format.at)
		return bitcode_fail(lift, chain->calls[0],
				    "printf with a format that is no constant");
	format.end = format.at + strnlen(format.at, length);
	for (unsigned i = 0; i < chain->value_count; i++) {
		bool pointer = LLVMGetTypeKind(LLVMTypeOf(chain->values[i])) == LLVMPointerTypeKind;

		sizes[i] = next_size(&format);
		if (pointer)
			sizes[i] = 8;
		offset = (offset + sizes[i] - 1) / sizes[i] * sizes[i] + sizes[i];
	}
	buffer = entry_alloca(lift, bitcode_function_of(last), offset);
	LLVMPositionBuilderBefore(lift->builder, last);
	offset = 0;
	for (unsigned i = 0; i < chain->value_count; i++) {
		offset = (offset + sizes[i] - 1) / sizes[i] * sizes[i];
		store_argument(lift, buffer, offset, chain->values[i], sizes[i]);
		offset += sizes[i];
	}
	arguments[0] = chain->format;
	arguments[1] = buffer;
	result = tally_build_operation(lift->builder, lift->module, "tally.printf", arguments, 2);
	tally_replace(last, LLVMBuildZExt(lift->builder, result, LLVMTypeOf(last), ""));
	for (unsigned i = chain->call_count - 1; i-- > 0;)
		LLVMInstructionEraseFromParent(chain->calls[i]);
	return true;
}

bool bitcode_amd_printf(struct lift *lift)
{
	LLVMValueRef begin = LLVMGetNamedFunction(lift->module, "__ockl_printf_begin");

	while (begin && LLVMGetFirstUse(begin)) {
		struct chain chain = {0};

		if (!read_chain(lift, LLVMGetUser(LLVMGetFirstUse(begin)), &chain) ||
		    !build_printf(lift, &chain))
			return false;
	}
	return true;
}
