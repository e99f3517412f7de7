/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address arithmetic on integers, as PTX has it, becomes arithmetic on a pointer: the optimiser
 * follows getelementptr from one iteration of a loop to the next, and not inttoptr. Nor does it
 * follow a cast between address spaces, which are all one here: pointers lose theirs.
 */
#include "backends/cpu/lower/internal.h"

enum { MOST_TERMS = 16 };

/* A sum of integers, as terms with their signs. */
struct sum {
	LLVMValueRef terms[MOST_TERMS];
	bool minus[MOST_TERMS];
	unsigned count;
};

static bool add_terms(struct sum *sum, LLVMValueRef value, bool minus)
{
	if (LLVMIsABinaryOperator(value)) {
		LLVMOpcode opcode = LLVMGetInstructionOpcode(value);

		if (opcode == LLVMAdd || (opcode == LLVMOr && LLVMGetIsDisjoint(value)))
			return add_terms(sum, LLVMGetOperand(value, 0), minus) &&
			       add_terms(sum, LLVMGetOperand(value, 1), minus);
		if (opcode == LLVMSub)
			return add_terms(sum, LLVMGetOperand(value, 0), minus) &&
			       add_terms(sum, LLVMGetOperand(value, 1), !minus);
	}
	if (sum->count == MOST_TERMS)
		return false;
	sum->terms[sum->count] = value;
	sum->minus[sum->count++] = minus;
	return true;
}

/* Whether `value` is a kernel parameter: a load from the parameter buffer. */
static bool is_parameter(LLVMValueRef function, LLVMValueRef value)
{
	LLVMValueRef address;

	if (!LLVMIsALoadInst(value))
		return false;
	address = LLVMGetOperand(value, 0);
	if (LLVMIsAGetElementPtrInst(address))
		address = LLVMGetOperand(address, 0);
	return address == LLVMGetParam(function, CPU_PARAMS);
}

/*
 * The term that is the pointer: one that was made from a pointer, else a kernel parameter. Any
 * other choice would be right too, as an integer's provenance is not known; these are the ones that
 * do not change from thread to thread.
 */
static int find_base(LLVMValueRef function, const struct sum *sum)
{
	for (unsigned i = 0; i < sum->count; i++)
		if (!sum->minus[i] && LLVMIsAPtrToIntInst(sum->terms[i]))
			return (int)i;
	for (unsigned i = 0; i < sum->count; i++)
		if (!sum->minus[i] && is_parameter(function, sum->terms[i]))
			return (int)i;
	return -1;
}

struct clear {
	struct cpu_lowering *l;
	LLVMValueRef function;
};

static bool clear(LLVMValueRef i, void *data)
{
	struct clear *c = data;
	struct cpu_lowering *l = c->l;
	LLVMValueRef pointer, offset = NULL, base;
	struct sum sum = {.count = 0};
	int chosen;

	if (!LLVMIsAIntToPtrInst(i) || LLVMTypeOf(LLVMGetOperand(i, 0)) != l->i64 ||
	    !add_terms(&sum, LLVMGetOperand(i, 0), false) || sum.count < 2)
		return true;
	chosen = find_base(c->function, &sum);
	if (chosen < 0)
		return true;
	LLVMPositionBuilderBefore(l->builder, i);
	base = sum.terms[chosen];
	if (LLVMIsAPtrToIntInst(base) && LLVMTypeOf(LLVMGetOperand(base, 0)) == LLVMTypeOf(i))
		pointer = LLVMGetOperand(base, 0);
	else
		pointer = LLVMBuildIntToPtr(l->builder, base, LLVMTypeOf(i), "");
	for (unsigned t = 0; t < sum.count; t++) {
		if ((int)t == chosen)
			continue;
		if (!offset)
			offset = sum.minus[t] ? LLVMBuildNeg(l->builder, sum.terms[t], "")
					      : sum.terms[t];
		else
			offset = sum.minus[t] ? LLVMBuildSub(l->builder, offset, sum.terms[t], "")
					      : LLVMBuildAdd(l->builder, offset, sum.terms[t], "");
	}
	tally_replace(i, LLVMBuildGEP2(l->builder, l->i8, pointer, &offset, 1, ""));
	return true;
}

/* `pointer`, of any address space, as one of space 0; built at the builder's place. */
static LLVMValueRef flat(struct cpu_lowering *l, LLVMValueRef pointer)
{
	if (LLVMIsAAddrSpaceCastInst(pointer) && LLVMTypeOf(LLVMGetOperand(pointer, 0)) == l->ptr)
		return LLVMGetOperand(pointer, 0);
	return LLVMBuildAddrSpaceCast(l->builder, pointer, l->ptr, "");
}

/* What the access `i` says of its memory by the address space stays said. */
static void keep_constant(struct cpu_lowering *l, LLVMValueRef i, LLVMTypeRef pointer)
{
	if (LLVMIsALoadInst(i) && LLVMGetPointerAddressSpace(pointer) == TALLY_AS_CONSTANT &&
	    !LLVMGetVolatile(i))
		LLVMSetMetadata(
			i, LLVMGetMDKindIDInContext(l->context, "invariant.load", 14),
			LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
}

static bool flatten(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = ((struct clear *)data)->l;
	unsigned at = LLVMIsAStoreInst(i) ? 1 : 0;
	bool address = LLVMIsAGetElementPtrInst(i) || LLVMIsAIntToPtrInst(i);
	LLVMTypeRef type = LLVMTypeOf(i);
	LLVMValueRef same;

	if (address && type != l->ptr && LLVMGetTypeKind(type) == LLVMPointerTypeKind) {
		LLVMPositionBuilderBefore(l->builder, i);
		if (LLVMIsAIntToPtrInst(i)) {
			same = LLVMBuildIntToPtr(l->builder, LLVMGetOperand(i, 0), l->ptr, "");
		} else {
			LLVMValueRef base = flat(l, LLVMGetOperand(i, 0)), indices[8];
			unsigned count = (unsigned)LLVMGetNumOperands(i) - 1;

			if (count > 8)
				return true;
			for (unsigned k = 0; k < count; k++)
				indices[k] = LLVMGetOperand(i, k + 1);
			same = LLVMBuildGEPWithNoWrapFlags(
				l->builder, LLVMGetGEPSourceElementType(i), base, indices, count,
				"", LLVMGEPGetNoWrapFlags(i));
		}
		tally_replace(i, LLVMBuildAddrSpaceCast(l->builder, same, type, ""));
	} else if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) ||
		   LLVMIsAAtomicCmpXchgInst(i)) {
		type = LLVMTypeOf(LLVMGetOperand(i, at));
		if (type == l->ptr)
			return true;
		LLVMPositionBuilderBefore(l->builder, i);
		LLVMSetOperand(i, at, flat(l, LLVMGetOperand(i, at)));
		keep_constant(l, i, type);
	}
	return true;
}

void cpu_clear_addresses(struct cpu_lowering *l, LLVMValueRef function)
{
	struct clear c = {l, function};

	tally_visit_instructions(function, clear, &c);
	tally_visit_instructions(function, flatten, &c);
}
