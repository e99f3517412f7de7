/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores, copies and addresses (PTX ISA 9.7.9). */
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

enum { MAX_LANES = 8 };

enum ptx_space ptx_space_of(const struct ptx_statement *s)
{
	const char *space = ptx_pick(s, "space");

	return !space			      ? PTX_GENERIC
	       : !strncmp(space, "shared", 6) ? PTX_SHARED
	       : !strcmp(space, "global")     ? PTX_GLOBAL
	       : !strcmp(space, "const")      ? PTX_CONST
	       : !strcmp(space, "local")      ? PTX_LOCAL
					      : PTX_PARAM;
}

static unsigned address_space(enum ptx_space space, bool narrow)
{
	switch (space) {
	case PTX_GLOBAL:
		return TALLY_AS_GLOBAL;
	case PTX_SHARED:
		return TALLY_AS_SHARED;
	case PTX_CONST:
		return TALLY_AS_CONSTANT;
	case PTX_LOCAL:
		return narrow ? TALLY_AS_PRIVATE : TALLY_AS_GENERIC;
	default:
		return TALLY_AS_GENERIC;
	}
}

/* What is behind a variable's address: a number of bytes, or of elements in a register. */
static LLVMValueRef element_offset(struct ptx_lift *l, const struct ptx_statement *s,
				   const struct ptx_operand *o)
{
	LLVMValueRef v = LLVMConstInt(l->i64, o->bits, 0);

	if (!o->index)
		return v;
	v = ptx_value(l, s, o->index, PTX_b32);
	v = LLVMBuildMul(l->builder, v, LLVMConstInt(l->i32, ptx_type_bits(o->symbol->type) / 8, 0),
			 "");
	v = LLVMBuildAdd(l->builder, v, LLVMConstInt(l->i32, (uint32_t)o->bits, 0), "");
	return LLVMBuildZExt(l->builder, v, l->i64, "");
}

LLVMValueRef ptx_element(struct ptx_lift *l, const struct ptx_statement *s,
			 const struct ptx_operand *o, LLVMValueRef base)
{
	LLVMValueRef offset;

	if (!o->bits && !o->index)
		return base;
	offset = element_offset(l, s, o);
	return LLVMBuildGEP2(l->builder, l->i8, base, &offset, 1, "");
}

LLVMValueRef ptx_pointer(struct ptx_lift *l, const struct ptx_statement *s,
			 const struct ptx_operand *o, enum ptx_space space)
{
	struct ptx_symbol *base = o->symbol;
	LLVMValueRef offset = LLVMConstInt(l->i64, o->bits, 0), address;
	LLVMTypeRef poison = LLVMPointerTypeInContext(l->context, address_space(space, false));
	bool narrow;

	if (!o->name) /* a constant address */
		return LLVMBuildIntToPtr(l->builder, offset, poison, "");
	if (!base || base->kind != PTX_VARIABLE) {
		ptx_fail(l, s, base ? "'%s' is no address" : "'%s' is not declared", o->name);
		return LLVMGetPoison(poison);
	}
	if (base->space != PTX_REG) {
		address = ptx_place(l, base);
		if (!address) {
			ptx_fail(l, s, "'%s' cannot be used here", o->name);
			return LLVMGetPoison(poison);
		}
		return ptx_element(l, s, o, address);
	}
	narrow = ptx_type_bits(base->type) == 32;
	if (!narrow && ptx_type_bits(base->type) != 64) {
		ptx_fail(l, s, "register '%s' is no address: it has %u bits", o->name,
			 ptx_type_bits(base->type));
		return LLVMGetPoison(poison);
	}
	/* The operand's own offset is added here, not by ptx_value. */
	struct ptx_operand plain = {.kind = PTX_O_NAME,
				    .name = o->name,
				    .symbol = base,
				    .line = o->line,
				    .column = o->column};
	address = ptx_value(l, s, &plain, narrow ? PTX_b32 : PTX_b64);
	if (o->bits)
		address = LLVMBuildAdd(l->builder, address,
				       LLVMConstInt(LLVMTypeOf(address), o->bits, 0), "");
	return LLVMBuildIntToPtr(l->builder, address,
				 LLVMPointerTypeInContext(l->context, address_space(space, narrow)),
				 "");
}

unsigned ptx_scope(struct ptx_lift *l, const struct ptx_statement *s, const char *fallback)
{
	const char *scope = ptx_pick(s, "scope"), *name;

	if (!scope)
		scope = fallback;
	name = !strcmp(scope, "cta")			       ? "block"
	       : !strcmp(scope, "gpu") || !strcmp(scope, "gl") ? "device"
	       : !strcmp(scope, "cluster")		       ? "cluster"
							       : "";
	if (!strcmp(scope, "cluster"))
		ptx_lock(l, s, s->opcode);
	return LLVMGetSyncScopeID(l->context, name, strlen(name));
}

LLVMAtomicOrdering ptx_order(const struct ptx_statement *s)
{
	if (ptx_has(s, "acquire"))
		return LLVMAtomicOrderingAcquire;
	if (ptx_has(s, "release"))
		return LLVMAtomicOrderingRelease;
	if (ptx_has(s, "acq_rel"))
		return LLVMAtomicOrderingAcquireRelease;
	if (ptx_has(s, "sc"))
		return LLVMAtomicOrderingSequentiallyConsistent;
	return LLVMAtomicOrderingMonotonic;
}

static bool is_atomic(const struct ptx_statement *s)
{
	return ptx_has(s, "relaxed") || ptx_has(s, "acquire") || ptx_has(s, "release") ||
	       ptx_has(s, "mmio");
}

static bool is_vector(LLVMValueRef access)
{
	LLVMTypeRef type = LLVMIsAStoreInst(access) ? LLVMTypeOf(LLVMGetOperand(access, 0))
						    : LLVMTypeOf(access);

	return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

/*
 * A vector with an order is one access of its whole size on every machine, and programs rely on it
 * (CUB's look-back reads a state and its value so), though the ISA only promises each element. LLVM
 * has no such atomic access: it becomes a volatile one, which is neither split nor merged, with a
 * fence for what relaxed order does not say.
 */
static void fence_vector(struct ptx_lift *l, const struct ptx_statement *s, unsigned lanes)
{
	LLVMAtomicOrdering order = ptx_order(s);

	if (lanes > 1 && is_atomic(s) && order != LLVMAtomicOrderingMonotonic)
		LLVMBuildFenceSyncScope(l->builder, order, ptx_scope(l, s, "sys"), "");
}

/* One load or store with what the modifiers ask for. `volatile` is the system's relaxed order. */
static void set_access(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef access,
		       unsigned align)
{
	LLVMSetAlignment(access, align);
	if (ptx_has(s, "volatile") || ptx_has(s, "mmio"))
		LLVMSetVolatile(access, 1);
	if (is_atomic(s) && is_vector(access)) {
		LLVMSetVolatile(access, 1);
		ptx_scope(l, s, "sys"); /* locks where a machine lacks it */
	} else if (is_atomic(s)) {
		LLVMSetOrdering(access, ptx_order(s));
		LLVMSetAtomicSyncScopeID(access, ptx_scope(l, s, "sys"));
	}
	if (ptx_has(s, "nc")) {
		LLVMSetMetadata(
			access, LLVMGetMDKindIDInContext(l->context, "invariant.load", 14),
			LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
	}
}

/* What a vector access is aligned to: all of it, but .param and variables only by elements. */
static unsigned alignment(const struct ptx_operand *o, enum ptx_space space, unsigned bytes,
			  unsigned lanes)
{
	bool named = o->symbol && o->symbol->space != PTX_REG;

	return space == PTX_PARAM || named ? bytes : bytes * lanes;
}

static LLVMValueRef step(struct ptx_lift *l, LLVMValueRef pointer, unsigned bytes)
{
	LLVMValueRef offset = LLVMConstInt(l->i64, bytes, 0);

	return bytes ? LLVMBuildGEP2(l->builder, l->i8, pointer, &offset, 1, "") : pointer;
}

static unsigned lanes_of(struct ptx_lift *l, const struct ptx_statement *s,
			 const struct ptx_operand *o, const struct ptx_operand **e)
{
	const char *vec = ptx_pick(s, "vec");
	unsigned n = ptx_elements(l, s, o, e, MAX_LANES), want = vec ? (unsigned)(vec[1] - '0') : 1;

	if (!l->failed && n != want)
		ptx_fail(l, s, "%u elements where %u are moved", n, want);
	return l->failed ? 0 : n;
}

/* Another block's memory. */
static bool only_vendor(const struct ptx_statement *s)
{
	return ptx_has(s, "shared::cluster");
}

bool ptx_lower_load(struct ptx_lift *l, const struct ptx_statement *s)
{
	const struct ptx_operand *e[MAX_LANES];
	enum ptx_space space = ptx_space_of(s);
	unsigned n = lanes_of(l, s, s->operand[0], e), bytes = ptx_type_bits(s->type[0]) / 8;
	LLVMTypeRef t = ptx_storage_type(l, s->type[0]);
	LLVMValueRef pointer, v;

	if (only_vendor(s))
		return ptx_lower_vendor(l, s);
	pointer = ptx_pointer(l, s, s->operand[1], space);
	if (l->failed)
		return false;
	if (n > 1) {
		v = LLVMBuildLoad2(l->builder, LLVMVectorType(t, n), pointer, "");
		set_access(l, s, v, alignment(s->operand[1], space, bytes, n));
		fence_vector(l, s, n);
		for (unsigned i = 0; i < n; i++)
			ptx_assign_to(l, s, e[i],
				      LLVMBuildExtractElement(l->builder, v,
							      LLVMConstInt(l->i32, i, 0), ""),
				      s->type[0]);
		return !l->failed;
	}
	/* All addresses first: a destination may be the base of the next. */
	LLVMValueRef values[MAX_LANES];
	for (unsigned i = 0; i < n; i++) {
		values[i] = LLVMBuildLoad2(l->builder, t, step(l, pointer, i * bytes), "");
		set_access(l, s, values[i], bytes);
	}
	for (unsigned i = 0; i < n; i++)
		ptx_assign_to(l, s, e[i], values[i], s->type[0]);
	return !l->failed;
}

static bool has_sink(const struct ptx_operand **e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (e[i]->kind == PTX_O_SINK)
			return true;
	return false;
}

/* {%r1, _, %r2, _}: nothing is written where a sink stands (.v8.b32 and .v4.b64 alone have them).
 */
static bool store_some(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef pointer,
		       const struct ptx_operand **e, unsigned n)
{
	unsigned bytes = ptx_type_bits(s->type[0]) / 8;
	LLVMTypeRef t = ptx_storage_type(l, s->type[0]);

	if (n * bytes != 32)
		return ptx_fail(l, s, "a sink in a vector of less than 32 bytes");
	for (unsigned i = 0; i < n; i++) {
		LLVMValueRef v;

		if (e[i]->kind == PTX_O_SINK)
			continue;
		v = ptx_as(l, ptx_value(l, s, e[i], s->type[0]), t, false);
		set_access(l, s, LLVMBuildStore(l->builder, v, step(l, pointer, i * bytes)), bytes);
	}
	return !l->failed;
}

bool ptx_lower_store(struct ptx_lift *l, const struct ptx_statement *s)
{
	const struct ptx_operand *e[MAX_LANES];
	enum ptx_space space = ptx_space_of(s);
	unsigned n = lanes_of(l, s, s->operand[1], e), bytes = ptx_type_bits(s->type[0]) / 8;
	LLVMTypeRef t = ptx_storage_type(l, s->type[0]);
	LLVMValueRef pointer, v;

	if (only_vendor(s))
		return ptx_lower_vendor(l, s);
	pointer = ptx_pointer(l, s, s->operand[0], space);
	if (l->failed)
		return false;
	if (has_sink(e, n))
		return store_some(l, s, pointer, e, n);
	if (n > 1) {
		v = LLVMGetPoison(LLVMVectorType(t, n));
		fence_vector(l, s, n);
		for (unsigned i = 0; i < n; i++)
			v = LLVMBuildInsertElement(
				l->builder, v,
				ptx_as(l, ptx_value(l, s, e[i], s->type[0]), t, false),
				LLVMConstInt(l->i32, i, 0), "");
		set_access(l, s, LLVMBuildStore(l->builder, v, pointer),
			   alignment(s->operand[0], space, bytes, n));
		return !l->failed;
	}
	for (unsigned i = 0; i < n; i++) {
		v = ptx_as(l, ptx_value(l, s, e[i], s->type[0]), t, false);
		set_access(l, s, LLVMBuildStore(l->builder, v, step(l, pointer, i * bytes)), bytes);
	}
	return !l->failed;
}
