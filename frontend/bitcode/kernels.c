/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and device functions: marks, linkage, launch bounds, attributes, parameters. */
#include <llvm-c/Comdat.h>
#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

enum { CC_PTX_KERNEL = 71, CC_AMDGPU_KERNEL = 91, CC_SPIR_KERNEL = 76 };

/* What clang says about a launch, in the attributes that LLVM 22 makes of every older form, and
 * how many of the contract's numbers it is. */
static const struct {
	const char *from, *to;
	int count;
} bounds[] = {
	{"nvvm.maxntid", TALLY_ATTR_MAXNTID, 3},
	{"nvvm.reqntid", TALLY_ATTR_REQNTID, 3},
	{"nvvm.cluster_dim", TALLY_ATTR_CLUSTER, 3},
	{"nvvm.minctasm", TALLY_ATTR_MINCTAPERSM, 1},
	{"nvvm.maxnreg", TALLY_ATTR_MAXNREG, 1},
	{"nvvm.maxclusterrank", TALLY_ATTR_MAXCLUSTER, 1},
};

/* Attributes that no other target reads. */
static bool is_vendor_attribute(const char *kind, size_t length)
{
	static const char *const prefixes[] = {"nvvm.", "amdgpu-",	    "target-", "nvptx-",
					       "hip-",	"denormal-fp-math", "tune-cpu"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (length >= strlen(prefixes[i]) &&
		    !strncmp(kind, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void strip_strings(LLVMValueRef function, LLVMAttributeIndex index)
{
	unsigned count = LLVMGetAttributeCountAtIndex(function, index);
	LLVMAttributeRef *all = calloc(count + 1, sizeof(LLVMAttributeRef));

	if (!all)
		return;
	LLVMGetAttributesAtIndex(function, index, all);
	for (unsigned i = 0; i < count; i++) {
		const char *kind;
		unsigned length;

		if (!LLVMIsStringAttribute(all[i]))
			continue;
		kind = LLVMGetStringAttributeKind(all[i], &length);
		if (is_vendor_attribute(kind, length))
			LLVMRemoveStringAttributeAtIndex(function, index, kind, length);
	}
	free(all);
}

/* "256" -> "256,1,1" where the contract has three numbers. */
static void take_bounds(LLVMValueRef kernel)
{
	for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
		const char *value = tally_attribute(kernel, bounds[i].from);
		unsigned n[3] = {1, 1, 1};
		char text[64];

		if (!value || sscanf(value, "%u,%u,%u", &n[0], &n[1], &n[2]) < 1 || !n[0])
			continue;
		if (bounds[i].count == 1)
			snprintf(text, sizeof(text), "%u", n[0]);
		else
			snprintf(text, sizeof(text), "%u,%u,%u", n[0], n[1], n[2]);
		tally_attribute_set(kernel, bounds[i].to, text);
	}
}

/* clang tells AMD's launch bounds as a range of the block's size. */
static void take_amd_bounds(LLVMValueRef kernel)
{
	const char *range = tally_attribute(kernel, "amdgpu-flat-work-group-size");
	unsigned least, most;
	char text[32];

	if (!range || sscanf(range, "%u,%u", &least, &most) != 2 || !most)
		return;
	snprintf(text, sizeof(text), "%u,1,1", most);
	tally_attribute_set(kernel, TALLY_ATTR_MAXNTID, text);
}

static bool is_kernel(LLVMValueRef function)
{
	unsigned convention = LLVMGetFunctionCallConv(function);

	return convention == CC_PTX_KERNEL || convention == CC_AMDGPU_KERNEL;
}

/* A by-value parameter needs an alignment that says where its bytes lie. */
static void align_parameters(struct lift *lift, LLVMValueRef kernel)
{
	for (unsigned i = 0; i < LLVMCountParams(kernel); i++)
		if (tally_param_byval(kernel, i) && !tally_param_attribute(kernel, i, "align"))
			LLVMAddAttributeAtIndex(
				kernel, i + 1,
				LLVMCreateEnumAttribute(
					lift->context, LLVMGetEnumAttributeKindForName("align", 5),
					tally_param_alignment(lift->module, kernel, i)));
}

/* The pointer operand's user, moved from `old` to a pointer of the generic address space. */
static bool retype_user(struct lift *lift, LLVMValueRef kernel, LLVMValueRef user, LLVMValueRef old,
			LLVMValueRef pointer);

static bool retype_users(struct lift *lift, LLVMValueRef kernel, LLVMValueRef old,
			 LLVMValueRef pointer)
{
	TALLY_EACH_USE (old, use)
		if (!retype_user(lift, kernel, LLVMGetUser(use), old, pointer))
			return false;
	return true;
}

static bool retype_copy(struct lift *lift, LLVMValueRef call, LLVMValueRef pointer)
{
	LLVMValueRef arguments[4], copy;
	LLVMTypeRef types[3];

	for (unsigned i = 0; i < 4; i++)
		arguments[i] = LLVMGetOperand(call, i);
	arguments[1] = pointer;
	for (unsigned i = 0; i < 3; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	LLVMPositionBuilderBefore(lift->builder, call);
	copy = tally_build_intrinsic(lift->builder, lift->module, "llvm.memcpy", types, 3,
				     arguments, 4);
	for (unsigned i = 1; i <= 2; i++) {
		LLVMAttributeRef align = LLVMGetCallSiteEnumAttribute(
			call, i, LLVMGetEnumAttributeKindForName("align", 5));

		if (align)
			LLVMAddCallSiteAttribute(copy, i, align);
	}
	LLVMInstructionEraseFromParent(call);
	return true;
}

static bool retype_user(struct lift *lift, LLVMValueRef kernel, LLVMValueRef user, LLVMValueRef old,
			LLVMValueRef pointer)
{
	const char *callee = tally_called_name(user);
	LLVMValueRef twin, indices[16];
	unsigned count;

	if (LLVMIsALoadInst(user)) {
		LLVMSetOperand(user, 0, pointer);
		return true;
	}
	if (LLVMIsAAddrSpaceCastInst(user) &&
	    LLVMGetPointerAddressSpace(LLVMTypeOf(user)) == TALLY_AS_GENERIC) {
		tally_replace(user, pointer);
		return true;
	}
	if (callee && !strncmp(callee, "llvm.memcpy.", 12) && LLVMGetOperand(user, 1) == old)
		return retype_copy(lift, user, pointer);
	count = (unsigned)LLVMGetNumOperands(user);
	if (!LLVMIsAGetElementPtrInst(user) || count > 16)
		return bitcode_fail(lift, user,
				    "the address of a by-value parameter is used in a way that "
				    "cannot be lifted");
	for (unsigned i = 1; i < count; i++)
		indices[i - 1] = LLVMGetOperand(user, i);
	LLVMPositionBuilderBefore(lift->builder, user);
	twin = LLVMBuildGEP2(lift->builder, LLVMGetGEPSourceElementType(user), pointer, indices,
			     count - 1, "");
	if (!retype_users(lift, kernel, user, twin))
		return false;
	LLVMInstructionEraseFromParent(user);
	return true;
}

/*
 * AMD passes structures as `byref(T)` pointers to constant memory; the contract has `byval(T)` and
 * a generic pointer. Returns the kernel with its parameters so, or NULL with an error.
 */
static LLVMValueRef byref_to_byval(struct lift *lift, LLVMValueRef kernel)
{
	unsigned count = LLVMCountParams(kernel), changed = 0;
	LLVMTypeRef *types = calloc(count + 1, sizeof(LLVMTypeRef));
	LLVMTypeRef generic = LLVMPointerTypeInContext(lift->context, TALLY_AS_GENERIC);
	LLVMValueRef twin = kernel;
	size_t length;
	char *name;

	if (!types) {
		tally_fail_at(lift->error, lift->options->file, 0, 0, "out of memory");
		return NULL;
	}
	for (unsigned i = 0; i < count; i++) {
		bool byref = tally_param_attribute(kernel, i, "byref") != NULL;

		types[i] = byref ? generic : LLVMTypeOf(LLVMGetParam(kernel, i));
		changed += byref;
	}
	if (changed) {
		name = strdup(LLVMGetValueName2(kernel, &length));
		twin = LLVMAddFunction(
			lift->module, "",
			LLVMFunctionType(LLVMVoidTypeInContext(lift->context), types, count, 0));
		tally_copy_attributes(kernel, twin, count);
		for (unsigned i = 0; i < count && twin; i++) {
			LLVMAttributeRef byref = tally_param_attribute(kernel, i, "byref");
			LLVMAttributeIndex at = i + 1;

			if (!byref)
				continue;
			LLVMRemoveEnumAttributeAtIndex(twin, at,
						       LLVMGetEnumAttributeKindForName("byref", 5));
			LLVMAddAttributeAtIndex(
				twin, at,
				LLVMCreateTypeAttribute(lift->context,
							LLVMGetEnumAttributeKindForName("byval", 5),
							LLVMGetTypeAttributeValue(byref)));
			if (!retype_users(lift, kernel, LLVMGetParam(kernel, i),
					  LLVMGetParam(twin, i)))
				twin = NULL;
		}
		if (twin) {
			LLVMSetSubprogram(twin, LLVMGetSubprogram(kernel));
			tally_move_body(kernel, twin);
			LLVMSetSubprogram(kernel, NULL);
			LLVMReplaceAllUsesWith(kernel, twin);
			LLVMDeleteFunction(kernel);
			LLVMSetValueName2(twin, name, length);
		}
		free(name);
	}
	free(types);
	return twin;
}

bool bitcode_kernels(struct lift *lift)
{
	unsigned kernels = 0;

	TALLY_EACH_FUNCTION (lift->module, function) {
		LLVMValueRef kernel = function;

		if (!is_kernel(function) || LLVMIsDeclaration(function))
			continue;
		kernels++;
		take_bounds(kernel);
		if (lift->vendor == BITCODE_AMD) {
			take_amd_bounds(kernel);
			kernel = byref_to_byval(lift, kernel);
			if (!kernel)
				return false;
		}
		tally_attribute_set(kernel, TALLY_ATTR_KERNEL, "");
		tally_attribute_set(kernel, TALLY_ATTR_WARP, "32");
		LLVMSetFunctionCallConv(kernel, LLVMCCallConv);
		LLVMSetLinkage(kernel, LLVMExternalLinkage);
		align_parameters(lift, kernel);
	}
	if (!kernels)
		return tally_fail_at(lift->error, lift->options->file, 0, 0,
				     "there is no kernel in it");
	return true;
}

/* Attributes of clang's functions that the contract forbids or that stop being true once vendor
 * intrinsics are something else (what memory they touch, whether they return). */
static const char *const untrue[] = {"nosync", "nofree",       "willreturn",
				     "memory", "speculatable", "nocreateundeforpoison"};

/* Device libraries have functions of LLVM's own fast convention, which need not be any target's. */
static void use_c_convention(LLVMValueRef function)
{
	LLVMSetFunctionCallConv(function, LLVMCCallConv);
	TALLY_EACH_USE (function, use)
		if (tally_called_function(LLVMGetUser(use)) == function)
			LLVMSetInstructionCallConv(LLVMGetUser(use), LLVMCCallConv);
}

bool bitcode_functions(struct lift *lift)
{
	TALLY_EACH_FUNCTION (lift->module, function) {
		if (LLVMIsDeclaration(function)) {
			LLVMSetVisibility(function, LLVMDefaultVisibility);
			continue;
		}
		for (size_t i = 0; i < sizeof(untrue) / sizeof(*untrue); i++)
			tally_remove_attribute(function, untrue[i]);
		tally_strip_target_attributes(function);
		strip_strings(function, LLVMAttributeFunctionIndex);
		for (unsigned i = 0; i < LLVMCountParams(function); i++)
			strip_strings(function, i + 1);
		LLVMSetComdat(function, NULL);
		LLVMSetSection(function, "");
		LLVMSetVisibility(function, LLVMDefaultVisibility);
		LLVMSetDLLStorageClass(function, LLVMDefaultStorageClass);
		if (!tally_is_kernel(function)) {
			LLVMSetLinkage(function, LLVMInternalLinkage);
			use_c_convention(function);
		}
	}
	return true;
}

/* ---- the width of a warp ---- */

/* Operations whose result hangs on the width. */
static const char *const lane_operations[] = {
	"tally.lane.",	"tally.lanemask.", "tally.warp.",   "tally.vote.", "tally.shuffle.",
	"tally.match.", "tally.reduce.",   "tally.active.", "tally.elect", "llvm.amdgcn.",
};

static bool is_lane_operation(const char *name)
{
	for (size_t i = 0; i < sizeof(lane_operations) / sizeof(*lane_operations); i++)
		if (!strncmp(name, lane_operations[i], strlen(lane_operations[i])))
			return true;
	return false;
}

/* Marks every function that uses `function`, by a call or an address; those and so on. */
static void mark_users(LLVMValueRef function)
{
	TALLY_EACH_USE (function, use) {
		LLVMValueRef user = LLVMGetUser(use), caller;

		if (!LLVMIsAInstruction(user))
			continue;
		caller = bitcode_function_of(user);
		if (tally_attribute(caller, TALLY_ATTR_WARP) &&
		    !strcmp(tally_attribute(caller, TALLY_ATTR_WARP), "64"))
			continue;
		tally_attribute_set(caller, TALLY_ATTR_WARP, "64");
		mark_users(caller);
	}
}

/*
 * A kernel compiled for wavefronts of 64 means 64 only where it can tell: when it reaches a lane
 * operation. All others run with any width and say 32, which every target has.
 */
bool bitcode_warps(struct lift *lift)
{
	if (!lift->wave64)
		return true;
	TALLY_EACH_FUNCTION (lift->module, function)
		if (is_lane_operation(bitcode_name(function)))
			mark_users(function);
	TALLY_EACH_FUNCTION (lift->module, function)
		if (!tally_is_kernel(function))
			LLVMRemoveStringAttributeAtIndex(function, LLVMAttributeFunctionIndex,
							 TALLY_ATTR_WARP, strlen(TALLY_ATTR_WARP));
	return true;
}
