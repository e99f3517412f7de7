/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a global by a value computed at run time, inside constant expressions too. */
#include <stdlib.h>

#include "ir_passes/ir.h"

struct replacement {
	LLVMBuilderRef builder;
	LLVMValueRef global;
	tally_make_value *make;
	void *data;
	bool failed;
};

enum { MOST_OPERANDS = 64 };

static LLVMValueRef rebuild(struct replacement *r, LLVMValueRef constant);

/* The operands of `constant` with the global replaced; false when none of them holds it. */
static bool rebuild_operands(struct replacement *r, LLVMValueRef constant, LLVMValueRef *operands)
{
	unsigned count = (unsigned)LLVMGetNumOperands(constant);
	bool changed = false;

	if (count > MOST_OPERANDS) {
		r->failed = true;
		return false;
	}
	for (unsigned k = 0; k < count; k++) {
		operands[k] = rebuild(r, LLVMGetOperand(constant, k));
		changed |= operands[k] != LLVMGetOperand(constant, k);
	}
	return changed;
}

static LLVMValueRef rebuild_aggregate(struct replacement *r, LLVMTypeRef type,
				      LLVMValueRef *operands, unsigned count)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(type));
	LLVMValueRef value = LLVMGetPoison(type);

	for (unsigned k = 0; k < count; k++)
		value = LLVMGetTypeKind(type) == LLVMVectorTypeKind
				? LLVMBuildInsertElement(r->builder, value, operands[k],
							 LLVMConstInt(i32, k, 0), "")
				: LLVMBuildInsertValue(r->builder, value, operands[k], k, "");
	return value;
}

static LLVMValueRef rebuild_expression(struct replacement *r, LLVMValueRef expression,
				       LLVMValueRef *operands, unsigned count)
{
	LLVMOpcode opcode = LLVMGetConstOpcode(expression);

	switch (opcode) {
	case LLVMGetElementPtr:
		return LLVMBuildGEP2(r->builder, LLVMGetGEPSourceElementType(expression),
				     operands[0], operands + 1, count - 1, "");
	case LLVMAdd:
	case LLVMSub:
	case LLVMXor:
	case LLVMMul:
		return LLVMBuildBinOp(r->builder, opcode, operands[0], operands[1], "");
	case LLVMExtractElement:
		return LLVMBuildExtractElement(r->builder, operands[0], operands[1], "");
	case LLVMInsertElement:
		return LLVMBuildInsertElement(r->builder, operands[0], operands[1], operands[2],
					      "");
	case LLVMTrunc:
	case LLVMPtrToInt:
	case LLVMIntToPtr:
	case LLVMBitCast:
	case LLVMAddrSpaceCast:
		return LLVMBuildCast(r->builder, opcode, operands[0], LLVMTypeOf(expression), "");
	default:
		r->failed = true;
		return expression;
	}
}

static LLVMValueRef rebuild(struct replacement *r, LLVMValueRef constant)
{
	LLVMValueRef operands[MOST_OPERANDS];
	unsigned count;

	if (constant == r->global)
		return r->make(r->builder, constant, r->data);
	if (!LLVMIsAConstant(constant) || LLVMIsAGlobalValue(constant))
		return constant;
	count = (unsigned)LLVMGetNumOperands(constant);
	if (!count || !rebuild_operands(r, constant, operands))
		return constant;
	if (LLVMIsAConstantExpr(constant))
		return rebuild_expression(r, constant, operands, count);
	return rebuild_aggregate(r, LLVMTypeOf(constant), operands, count);
}

static void replace_in_phi(struct replacement *r, LLVMValueRef phi)
{
	unsigned count = LLVMCountIncoming(phi);

	for (unsigned k = 0; k < count; k++) {
		LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, k);
		LLVMValueRef old = LLVMGetOperand(phi, k), value;

		if (!LLVMIsAConstant(old))
			continue;
		LLVMPositionBuilderBefore(r->builder, LLVMGetBasicBlockTerminator(from));
		value = rebuild(r, old);
		/* Every entry of one block must have one and the same value. */
		for (unsigned j = k; value != old && j < count; j++)
			if (LLVMGetIncomingBlock(phi, j) == from && LLVMGetOperand(phi, j) == old)
				LLVMSetOperand(phi, j, value);
	}
}

static void replace_in(struct replacement *r, LLVMValueRef user)
{
	int count = LLVMGetNumOperands(user);

	if (LLVMIsAPHINode(user)) {
		replace_in_phi(r, user);
		return;
	}
	LLVMPositionBuilderBefore(r->builder, user);
	for (int k = 0; k < count; k++) {
		LLVMValueRef old = LLVMGetOperand(user, k), value;

		if (!old || !LLVMIsAConstant(old))
			continue;
		value = rebuild(r, old);
		if (value != old)
			LLVMSetOperand(user, k, value);
	}
}

/* The distinct users of a value, as a list that the caller frees. */
static LLVMValueRef *list_users(LLVMValueRef value, size_t *count)
{
	size_t uses = 0;
	LLVMValueRef *users;

	TALLY_EACH_USE (value, u)
		uses++;
	users = calloc(uses + 1, sizeof *users);
	*count = 0;
	TALLY_EACH_USE (value, u) {
		bool again = !users;

		for (size_t k = 0; !again && k < *count; k++)
			again = users[k] == LLVMGetUser(u);
		if (!again)
			users[(*count)++] = LLVMGetUser(u);
	}
	return users;
}

static void replace_users(struct replacement *r, LLVMValueRef value)
{
	size_t count;
	LLVMValueRef *users = list_users(value, &count);

	for (size_t k = 0; k < count; k++) {
		if (LLVMIsAInstruction(users[k]))
			replace_in(r, users[k]);
		else if (LLVMIsAConstant(users[k]) && !LLVMIsAGlobalValue(users[k]))
			replace_users(r, users[k]);
	}
	free(users);
}

bool tally_replace_global(LLVMValueRef global, tally_make_value *make, void *data)
{
	struct replacement r = {.global = global, .make = make, .data = data};

	r.builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(global)));
	replace_users(&r, global);
	LLVMDisposeBuilder(r.builder);
	return !r.failed;
}
