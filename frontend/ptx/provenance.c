/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX computes addresses as integers; LLVM then loses what a pointer points into, and with it
 * aliasing, vectorisation and address spaces. Here every integer that is a pointer plus offsets
 * gets a pointer twin (getelementptr instead of add), and accesses go through the twins.
 *
 * Only sums with exactly one address in them count. Offsets that were made by subtracting addresses
 * do not: `p + (q - p)` points into q.
 */
#include <stdint.h>
#include <stdlib.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

enum state {
	NONE,
	ADDRESS = 1,	/* derived from a pointer */
	DIFFERENCE = 2, /* derived from a difference of addresses */
};

struct entry {
	LLVMValueRef value;
	unsigned state;
	unsigned space;
	LLVMValueRef twin;
};

/* The values of one function, by address; `order` keeps the instructions as they stand. */
struct map {
	struct entry *slot;
	size_t capacity, used;
	LLVMValueRef *order;
	size_t count;
	bool failed;
};

static struct entry *find(struct map *m, LLVMValueRef value)
{
	uintptr_t key = (uintptr_t)value;
	size_t i = (size_t)((key >> 4) * 0x9e3779b97f4a7c15ull >> 20) & (m->capacity - 1);

	while (m->slot[i].value && m->slot[i].value != value)
		i = (i + 1) & (m->capacity - 1);
	return &m->slot[i];
}

/* ptrtoint of a global is a constant: its pointer, or NULL. */
static LLVMValueRef constant_root(LLVMValueRef v)
{
	if (LLVMIsAConstantExpr(v) && LLVMGetConstOpcode(v) == LLVMPtrToInt)
		return LLVMGetOperand(v, 0);
	return NULL;
}

static unsigned state_of(struct map *m, LLVMValueRef v, unsigned *space)
{
	LLVMValueRef root = constant_root(v);
	struct entry *e;

	if (root) {
		*space = LLVMGetPointerAddressSpace(LLVMTypeOf(root));
		return ADDRESS;
	}
	e = find(m, v);
	*space = e->space;
	return e->value ? e->state : NONE;
}

static bool narrow_or_wide(LLVMValueRef i)
{
	unsigned to, from;

	if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMIntegerTypeKind)
		return false;
	to = LLVMGetIntTypeWidth(LLVMTypeOf(i));
	from = LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(i, 0)));
	return (to == 32 && from == 64) || (to == 64 && from == 32);
}

/* The operands through which addresses flow: [first, last). 0, 0 for other instructions. */
static void operands_of(LLVMValueRef i, unsigned *first, unsigned *last)
{
	*first = *last = 0;
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAdd:
	case LLVMSub:
	case LLVMMul:
	case LLVMShl:
	case LLVMLShr:
	case LLVMAShr:
	case LLVMAnd:
	case LLVMOr:
	case LLVMXor:
		*last = 2;
		break;
	case LLVMZExt:
	case LLVMSExt:
	case LLVMTrunc:
		*last = 1;
		break;
	case LLVMSelect:
		*first = 1;
		*last = 3;
		break;
	case LLVMPHI:
		*last = LLVMCountIncoming(i);
		break;
	default:
		break;
	}
}

static LLVMValueRef operand(LLVMValueRef i, unsigned n)
{
	return LLVMIsAPHINode(i) ? LLVMGetIncomingValue(i, n) : LLVMGetOperand(i, n);
}

/* Whether `i` hands an address on (as opposed to making some number out of it). */
static bool carries(LLVMValueRef i, unsigned n)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAdd:
	case LLVMSelect:
	case LLVMPHI:
		return true;
	case LLVMSub:
		return n == 0;
	case LLVMZExt:
	case LLVMTrunc:
		return narrow_or_wide(i);
	default:
		return false;
	}
}

/* One step forward: what `i` is, given what its operands are known to be. */
static bool spread(struct map *m, LLVMValueRef i)
{
	struct entry *e = find(m, i);
	unsigned first, last, state = e->state, space;

	operands_of(i, &first, &last);
	for (unsigned n = first; n < last; n++) {
		unsigned s = state_of(m, operand(i, n), &space);
		state |= s & DIFFERENCE;
		if (!(s & ADDRESS))
			continue;
		if (LLVMGetInstructionOpcode(i) == LLVMSub && n == 1)
			state |= DIFFERENCE;
		if (!carries(i, n))
			continue;
		if (!(state & ADDRESS))
			e->space = space;
		state |= ADDRESS;
	}
	if (state == e->state)
		return false;
	e->state = state;
	return true;
}

static bool null_constant(LLVMValueRef v)
{
	return LLVMIsAConstantInt(v) && LLVMIsNull(v);
}

/* Whether an address by spread() can have a twin, all its operands' claims being as they are. */
static bool keeps(struct map *m, LLVMValueRef i)
{
	struct entry *e = find(m, i);
	unsigned first, last, space[2] = {0}, a, b;

	operands_of(i, &first, &last);
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMPtrToInt:
		return true;
	case LLVMAdd:
	case LLVMSub:
		a = state_of(m, operand(i, 0), &space[0]);
		b = state_of(m, operand(i, 1), &space[1]);
		if (LLVMGetInstructionOpcode(i) == LLVMSub)
			return (a & ADDRESS) && !b && space[0] == e->space;
		if ((a & ADDRESS) && !b)
			return space[0] == e->space;
		return (b & ADDRESS) && !a && space[1] == e->space;
	default:
		for (unsigned n = first; n < last; n++) {
			a = state_of(m, operand(i, n), space);
			if (null_constant(operand(i, n)) &&
			    LLVMGetIntTypeWidth(LLVMTypeOf(i)) == 64)
				continue;
			if (a != ADDRESS || space[0] != e->space)
				return false;
		}
		return true;
	}
}

static LLVMTypeRef pointer_type(LLVMValueRef i, unsigned space)
{
	return LLVMPointerTypeInContext(LLVMGetTypeContext(LLVMTypeOf(i)), space);
}

static LLVMValueRef twin_of(struct map *m, LLVMValueRef v, unsigned space)
{
	LLVMValueRef root = constant_root(v);

	if (root)
		return root;
	if (null_constant(v))
		return LLVMConstIntToPtr(v, pointer_type(v, space));
	return find(m, v)->twin;
}

/* Phis first, empty, so that loops find them. */
static void make_phi(LLVMBuilderRef b, struct entry *e)
{
	LLVMPositionBuilderBefore(b, e->value);
	e->twin = LLVMBuildPhi(b, pointer_type(e->value, e->space), "");
}

static void fill_phi(struct map *m, struct entry *e)
{
	for (unsigned n = 0; n < LLVMCountIncoming(e->value); n++) {
		LLVMValueRef v = twin_of(m, LLVMGetIncomingValue(e->value, n), e->space);
		LLVMBasicBlockRef block = LLVMGetIncomingBlock(e->value, n);
		LLVMAddIncoming(e->twin, &v, &block, 1);
	}
}

/* Shared addresses are 32 bits in PTX: their offsets are signed there. */
static LLVMValueRef offset_of(LLVMBuilderRef b, LLVMValueRef offset, bool negate)
{
	LLVMTypeRef wide = LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(offset)));

	if (LLVMTypeOf(offset) != wide)
		offset = LLVMBuildSExt(b, offset, wide, "");
	return negate ? LLVMBuildNeg(b, offset, "") : offset;
}

/* False when an operand's twin is not made yet. */
static bool make_twin(struct map *m, LLVMBuilderRef b, struct entry *e)
{
	LLVMValueRef i = e->value, base, other;
	LLVMTypeRef i8 = LLVMInt8TypeInContext(LLVMGetTypeContext(LLVMTypeOf(i)));
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	unsigned space;
	bool second;

	LLVMPositionBuilderBefore(b, i);
	switch (opcode) {
	case LLVMPtrToInt:
		e->twin = LLVMGetOperand(i, 0);
		return true;
	case LLVMAdd:
	case LLVMSub:
		second = !(state_of(m, LLVMGetOperand(i, 0), &space) & ADDRESS);
		base = twin_of(m, LLVMGetOperand(i, second), e->space);
		if (!base)
			return false;
		other = offset_of(b, LLVMGetOperand(i, !second), opcode == LLVMSub);
		e->twin = LLVMBuildGEP2(b, i8, base, &other, 1, "");
		return true;
	case LLVMSelect:
		base = twin_of(m, LLVMGetOperand(i, 1), e->space);
		other = twin_of(m, LLVMGetOperand(i, 2), e->space);
		if (!base || !other)
			return false;
		e->twin = LLVMBuildSelect(b, LLVMGetOperand(i, 0), base, other, "");
		return true;
	default: /* zext, trunc: the same pointer */
		e->twin = twin_of(m, LLVMGetOperand(i, 0), e->space);
		return e->twin != NULL;
	}
}

/* Made in the order of the text; what stands before its operands waits for another round. */
static void make_twins(struct map *m, LLVMBuilderRef b)
{
	bool again = true;

	for (size_t k = 0; k < m->count; k++) {
		struct entry *e = find(m, m->order[k]);
		if ((e->state & ADDRESS) && LLVMIsAPHINode(e->value))
			make_phi(b, e);
	}
	while (again) {
		again = false;
		for (size_t k = 0; k < m->count; k++) {
			struct entry *e = find(m, m->order[k]);
			if ((e->state & ADDRESS) && !e->twin && make_twin(m, b, e))
				again = true;
		}
	}
	for (size_t k = 0; k < m->count; k++) {
		struct entry *e = find(m, m->order[k]);
		if ((e->state & ADDRESS) && LLVMIsAPHINode(e->value))
			fill_phi(m, e);
	}
}

/* An integer made from a pointer of space `from` is used as a pointer of space `to`. */
static bool castable(unsigned from, unsigned to)
{
	bool plain_from = from == TALLY_AS_GENERIC || from == TALLY_AS_GLOBAL;
	bool plain_to = to == TALLY_AS_GENERIC || to == TALLY_AS_GLOBAL;

	return from == to || (plain_from && plain_to);
}

static void use_twin(struct map *m, LLVMBuilderRef b, LLVMValueRef cast)
{
	LLVMValueRef v = LLVMGetOperand(cast, 0), twin;
	unsigned space, to = LLVMGetPointerAddressSpace(LLVMTypeOf(cast));

	if (!(state_of(m, v, &space) & ADDRESS) || !castable(space, to))
		return;
	twin = twin_of(m, v, space);
	if (!twin)
		return;
	LLVMPositionBuilderBefore(b, cast);
	if (space != to)
		twin = LLVMBuildAddrSpaceCast(b, twin, LLVMTypeOf(cast), "");
	tally_replace(cast, twin);
}

static bool interesting(LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(i);
	unsigned first, last;

	if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
		return false;
	operands_of(i, &first, &last);
	return last || LLVMGetInstructionOpcode(i) == LLVMPtrToInt;
}

static bool collect(LLVMValueRef function, struct map *m, LLVMValueRef **casts, size_t *cast_count)
{
	size_t total = 0;

	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i)
			total++;
	m->capacity = 64;
	while (m->capacity < total * 2)
		m->capacity *= 2;
	m->slot = calloc(m->capacity, sizeof *m->slot);
	m->order = calloc(total ? total : 1, sizeof *m->order);
	*casts = calloc(total ? total : 1, sizeof **casts);
	*cast_count = 0;
	if (!m->slot || !m->order || !*casts)
		return false;
	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i) {
			if (LLVMIsAIntToPtrInst(i))
				(*casts)[(*cast_count)++] = i;
			if (!interesting(i))
				continue;
			struct entry *e = find(m, i);
			e->value = i;
			m->order[m->count++] = i;
			if (LLVMGetInstructionOpcode(i) == LLVMPtrToInt) {
				e->state = ADDRESS;
				e->space = LLVMGetPointerAddressSpace(
					LLVMTypeOf(LLVMGetOperand(i, 0)));
			}
		}
	return true;
}

/* Spreads to the fixpoint, then takes back what does not hold, to the fixpoint again. */
static void solve(struct map *m)
{
	bool changed;

	do {
		changed = false;
		for (size_t k = 0; k < m->count; k++)
			changed |= spread(m, m->order[k]);
	} while (changed);
	/* An address that holds a difference too is none: `p + (q - p)`. */
	do {
		changed = false;
		for (size_t k = 0; k < m->count; k++) {
			struct entry *e = find(m, m->order[k]);
			if ((e->state & ADDRESS) &&
			    ((e->state & DIFFERENCE) || !keeps(m, e->value))) {
				e->state = DIFFERENCE;
				changed = true;
			}
		}
	} while (changed);
}

void ptx_restore_pointers(LLVMValueRef function)
{
	struct map m = {0};
	LLVMValueRef *casts = NULL;
	size_t count = 0;

	if (collect(function, &m, &casts, &count) && count) {
		LLVMBuilderRef b =
			LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(function)));
		solve(&m);
		make_twins(&m, b);
		for (size_t k = 0; k < count; k++)
			use_twin(&m, b, casts[k]);
		LLVMDisposeBuilder(b);
	}
	free(m.slot);
	free(m.order);
	free(casts);
}
