/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `variant`: adds K$slice, K$guard or K$slice_guard, and K$persist, thin wrappers over K's
 * body.
 */
#include <stdlib.h>
#include <string.h>

#include "ir_passes/ir.h"
#include "ir_passes/launch_abi.h"
#include "ir_passes/pass_util.h"
#include "ir_passes/passes.h"

/* One wrapper being built. */
struct wrapper {
	LLVMModuleRef module;
	LLVMContextRef context;
	LLVMBuilderRef builder;
	LLVMValueRef function, launch;
	LLVMTypeRef i1, i32, i64;
	LLVMValueRef control, lo, hi, grid[3];
	LLVMValueRef linear, block[3];
};

static LLVMValueRef load_field(struct wrapper *w, LLVMTypeRef type, size_t offset, const char *name)
{
	LLVMValueRef index = LLVMConstInt(w->i64, offset, 0), address, value;

	address = LLVMBuildInBoundsGEP2(w->builder, LLVMInt8TypeInContext(w->context), w->launch,
					&index, 1, "");
	value = LLVMBuildLoad2(w->builder, type, address, name);
	LLVMSetAlignment(value, offset % 8 ? 4 : 8);
	return value;
}

static void load_launch(struct wrapper *w)
{
	static const char *const names[] = {"grid.x", "grid.y", "grid.z"};

	w->control = load_field(w, w->i64, offsetof(struct tally_launch, control), "control");
	w->lo = load_field(w, w->i32, offsetof(struct tally_launch, lo), "lo");
	w->hi = load_field(w, w->i32, offsetof(struct tally_launch, hi), "hi");
	for (unsigned k = 0; k < 3; k++)
		w->grid[k] = load_field(w, w->i32, offsetof(struct tally_launch, grid) + 4 * k,
					names[k]);
}

static LLVMBasicBlockRef append(struct wrapper *w, const char *name)
{
	return LLVMAppendBasicBlockInContext(w->context, w->function, name);
}

/* Slices: u = lo + block id; x, y and z from u. Most grids are lines: those divide nothing. */
static void block_from_linear(struct wrapper *w)
{
	static const char *const names[] = {"block.x", "block.y", "block.z"};
	LLVMBuilderRef b = w->builder;
	LLVMBasicBlockRef start = LLVMGetInsertBlock(b), divide = append(w, "divide"),
			  join = append(w, "coordinates"), from[2] = {start, divide};
	LLVMValueRef one = LLVMConstInt(w->i32, 1, 0), zero = LLVMConstNull(w->i32), rest;
	LLVMValueRef line, divided[3], straight[3];

	straight[0] = w->linear;
	straight[1] = straight[2] = zero;
	line = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildOr(b, w->grid[1], w->grid[2], ""), one, "line");
	LLVMBuildCondBr(b, line, join, divide);

	LLVMPositionBuilderAtEnd(b, divide);
	rest = LLVMBuildUDiv(b, w->linear, w->grid[0], "");
	divided[0] = LLVMBuildSub(b, w->linear, LLVMBuildMul(b, rest, w->grid[0], ""), "");
	divided[2] = LLVMBuildUDiv(b, rest, w->grid[1], "");
	divided[1] = LLVMBuildSub(b, rest, LLVMBuildMul(b, divided[2], w->grid[1], ""), "");
	LLVMBuildBr(b, join);

	LLVMPositionBuilderAtEnd(b, join);
	for (unsigned k = 0; k < 3; k++) {
		LLVMValueRef values[2] = {straight[k], divided[k]};

		w->block[k] = LLVMBuildPhi(b, w->i32, names[k]);
		LLVMAddIncoming(w->block[k], values, from, 2);
	}
}

/* Guards run in the original grid: u from x, y and z. */
static void linear_from_block(struct wrapper *w)
{
	LLVMBuilderRef b = w->builder;
	LLVMValueRef u;

	for (unsigned k = 0; k < 3; k++)
		w->block[k] = tally_build_operation(
			b, w->module, tally_body_operations[TALLY_BODY_BLOCK + k], NULL, 0);
	u = LLVMBuildMul(b, w->block[2], w->grid[1], "");
	u = LLVMBuildMul(b, LLVMBuildAdd(b, u, w->block[1], ""), w->grid[0], "");
	w->linear = LLVMBuildAdd(b, u, w->block[0], "linear");
}

static LLVMValueRef control_pointer(struct wrapper *w)
{
	LLVMTypeRef global = LLVMPointerTypeInContext(w->context, TALLY_AS_GLOBAL);
	LLVMTypeRef generic = LLVMPointerTypeInContext(w->context, TALLY_AS_GENERIC);

	return LLVMBuildAddrSpaceCast(
		w->builder, LLVMBuildIntToPtr(w->builder, w->control, global, ""), generic, "");
}

/* lo <= u < hi as one unsigned comparison. */
static LLVMValueRef in_range(struct wrapper *w)
{
	LLVMBuilderRef b = w->builder;
	LLVMValueRef offset = LLVMBuildSub(b, w->linear, w->lo, "");

	return LLVMBuildICmp(b, LLVMIntULT, offset, LLVMBuildSub(b, w->hi, w->lo, ""), "in.range");
}

/* Branches to `leave` when this block is out of range or the guard says no. */
static void build_guard(struct wrapper *w, LLVMBasicBlockRef leave)
{
	LLVMBuilderRef b = w->builder;
	LLVMBasicBlockRef inside = append(w, "inside"), ask = append(w, "ask"),
			  go = append(w, "run");
	LLVMValueRef arguments[2], enter;

	LLVMBuildCondBr(b, in_range(w), inside, leave);
	LLVMPositionBuilderAtEnd(b, inside);
	LLVMBuildCondBr(b,
			LLVMBuildICmp(b, LLVMIntEQ, w->control, LLVMConstNull(w->i64), "unguarded"),
			go, ask);

	LLVMPositionBuilderAtEnd(b, ask);
	arguments[0] = control_pointer(w);
	arguments[1] = w->linear;
	enter = tally_build_operation(b, w->module, "tally.guard.enter", arguments, 2);
	LLVMBuildCondBr(b, enter, go, leave);
	LLVMPositionBuilderAtEnd(b, go);
}

static void call_body(struct wrapper *w, LLVMValueRef body, bool persistent)
{
	LLVMValueRef extra[TALLY_BODY_EXTRA];

	memcpy(extra + TALLY_BODY_BLOCK, w->block, sizeof w->block);
	memcpy(extra + TALLY_BODY_GRID, w->grid, sizeof w->grid);
	extra[TALLY_BODY_PERSISTENT] = LLVMConstInt(w->i1, persistent, 0);
	tally_wrapper_call(w->builder, w->function, body, extra);
}

/*
 * persist: every block of the launch is a worker that runs one block of the original grid after
 * another: the next one of the control block's counter, or, without one, every so-many-eth.
 */
static void build_worker(struct wrapper *w, LLVMValueRef body, bool meet)
{
	LLVMBuilderRef b = w->builder;
	LLVMBasicBlockRef entry = append(w, "entry"), next = append(w, "next"),
			  run = append(w, "run"), leave = append(w, "leave"), from[2];
	LLVMValueRef control, id, workers, mine, round, arguments[3], first[2], rounds[2];

	LLVMPositionBuilderAtEnd(b, leave);
	LLVMBuildRetVoid(b);
	LLVMPositionBuilderAtEnd(b, entry);
	load_launch(w);
	control = control_pointer(w);
	id = tally_build_operation(b, w->module, tally_body_operations[TALLY_BODY_BLOCK], NULL, 0);
	workers = tally_build_operation(b, w->module, tally_body_operations[TALLY_BODY_GRID], NULL,
					0);
	first[0] = LLVMBuildAdd(b, w->lo, id, "");
	rounds[0] = LLVMConstNull(w->i32);
	from[0] = entry;
	LLVMBuildBr(b, next);

	LLVMPositionBuilderAtEnd(b, next);
	mine = LLVMBuildPhi(b, w->i32, "mine");
	round = LLVMBuildPhi(b, w->i32, "round");
	arguments[0] = control;
	arguments[1] = mine;
	arguments[2] = round;
	w->linear = tally_build_operation(b, w->module, "tally.persist.next", arguments, 3);
	LLVMBuildCondBr(b, in_range(w), run, leave);

	LLVMPositionBuilderAtEnd(b, run);
	block_from_linear(w);
	call_body(w, body, true);
	if (meet)
		tally_build_operation(b, w->module, "tally.persist.finish", NULL, 0);
	first[1] = LLVMBuildAdd(b, mine, workers, "");
	rounds[1] = LLVMBuildAdd(b, round, LLVMConstInt(w->i32, 1, 0), "");
	from[1] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, next);
	LLVMAddIncoming(mine, first, from, 2);
	LLVMAddIncoming(round, rounds, from, 2);
}

static void build_blocks(struct wrapper *w, LLVMValueRef body, unsigned transforms)
{
	LLVMBuilderRef b = w->builder;
	LLVMBasicBlockRef entry = append(w, "entry"), leave = append(w, "leave");

	LLVMPositionBuilderAtEnd(b, leave);
	LLVMBuildRetVoid(b);
	LLVMPositionBuilderAtEnd(b, entry);
	load_launch(w);
	if (transforms & TALLY_SLICE) {
		LLVMValueRef id = tally_build_operation(
			b, w->module, tally_body_operations[TALLY_BODY_BLOCK], NULL, 0);

		w->linear = LLVMBuildAdd(b, w->lo, id, "linear");
	} else {
		linear_from_block(w);
	}
	if (transforms & TALLY_GUARD)
		build_guard(w, leave);
	/* After the decision: a block that is skipped divides nothing. */
	if (transforms & TALLY_SLICE)
		block_from_linear(w);
	call_body(w, body, false);
	LLVMBuildBr(b, leave);
}

/* By the set of transforms. */
static const struct {
	const char *suffix, *attribute;
} variants[] = {
	[TALLY_SLICE] = {"$slice", "slice"},
	[TALLY_GUARD] = {"$guard", "guard"},
	[TALLY_SLICE | TALLY_GUARD] = {"$slice_guard", "slice,guard"},
	[TALLY_PERSIST] = {"$persist", "persist"},
};

const char *tally_variant_suffix(unsigned transforms)
{
	return variants[transforms].suffix;
}

/* An empty variant; the builder is the caller's to dispose. */
static bool create(struct wrapper *w, LLVMModuleRef module, LLVMValueRef kernel,
		   unsigned transforms, struct tally_error *error)
{
	const char *original = tally_name(kernel);
	char *name = tally_name_with(kernel, variants[transforms].suffix);

	*w = (struct wrapper){.module = module, .context = LLVMGetModuleContext(module)};
	w->function = name ? tally_wrapper_create(module, kernel, name, true) : NULL;
	free(name);
	if (!w->function)
		return tally_fail(error, "out of memory");
	tally_attribute_set(w->function, TALLY_ATTR_VARIANT, variants[transforms].attribute);
	tally_attribute_set(w->function, TALLY_ATTR_OF, original);
	w->launch = LLVMGetParam(w->function, LLVMCountParams(w->function) - 1);
	w->i1 = LLVMInt1TypeInContext(w->context);
	w->i32 = LLVMInt32TypeInContext(w->context);
	w->i64 = LLVMInt64TypeInContext(w->context);
	w->builder = LLVMCreateBuilderInContext(w->context);
	return true;
}

static bool add_blocks(LLVMModuleRef module, LLVMValueRef kernel, LLVMValueRef body,
		       unsigned transforms, struct tally_error *error)
{
	struct wrapper w;

	if (!create(&w, module, kernel, transforms, error))
		return false;
	build_blocks(&w, body, transforms);
	LLVMDisposeBuilder(w.builder);
	return true;
}

/* A kernel whose blocks cannot follow each other in the same threads goes without; that is an error
 * only where nothing else was asked for. */
static bool add_worker(LLVMModuleRef module, LLVMValueRef kernel, LLVMValueRef body,
		       const struct tally_pass_options *options, struct tally_error *error)
{
	const char *reason = NULL;
	struct wrapper w;
	bool meet;

	if (!tally_has_shared_room(module, body, options->shared_limit))
		reason = "its shared memory leaves no room for another word";
	if (reason || !tally_make_persistent(body, &meet, &reason, error)) {
		if (!reason)
			return false;
		if (options->required && options->transforms == TALLY_PERSIST)
			return tally_fail(error, "kernel '%s' cannot be made persistent: %s",
					  tally_name(kernel), reason);
		tally_attribute_set(kernel, TALLY_ATTR_WHOLE, reason);
		return true;
	}
	if (!create(&w, module, kernel, TALLY_PERSIST, error))
		return false;
	build_worker(&w, body, meet);
	LLVMDisposeBuilder(w.builder);
	return true;
}

bool tally_pass_variant(LLVMModuleRef module, const struct tally_pass_options *options,
			struct tally_error *error)
{
	unsigned blocks = options->transforms & (TALLY_SLICE | TALLY_GUARD);

	if (!options->transforms)
		return true;
	TALLY_EACH_FUNCTION (module, kernel) {
		LLVMValueRef body;

		if (!tally_is_kernel(kernel) || tally_attribute(kernel, TALLY_ATTR_VARIANT))
			continue;
		body = tally_body_of(module, kernel);
		if (!body)
			continue;
		if (blocks && !add_blocks(module, kernel, body, blocks, error))
			return false;
		if (options->transforms & TALLY_PERSIST &&
		    !add_worker(module, kernel, body, options, error))
			return false;
	}
	return true;
}
