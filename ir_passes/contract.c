/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of the neutral IR contract (docs/ir-contract.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Target.h>

#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/launch_abi.h"

LLVMModuleRef tally_module_create(const char *name, LLVMContextRef context)
{
	LLVMModuleRef module = LLVMModuleCreateWithNameInContext(name, context);

	LLVMSetDataLayout(module, TALLY_DATA_LAYOUT);
	return module;
}

const char *tally_attribute(LLVMValueRef function, const char *name)
{
	LLVMAttributeRef attribute = LLVMGetStringAttributeAtIndex(
		function, LLVMAttributeFunctionIndex, name, strlen(name));
	unsigned length;

	return attribute ? LLVMGetStringAttributeValue(attribute, &length) : NULL;
}

void tally_attribute_set(LLVMValueRef function, const char *name, const char *value)
{
	LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
				LLVMCreateStringAttribute(LLVMGetTypeContext(LLVMTypeOf(function)),
							  name, strlen(name), value,
							  strlen(value)));
}

bool tally_is_kernel(LLVMValueRef function)
{
	return tally_attribute(function, TALLY_ATTR_KERNEL) != NULL;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool address_space_known(unsigned space)
{
	return space == TALLY_AS_GENERIC || space == TALLY_AS_GLOBAL || space == TALLY_AS_SHARED ||
	       space == TALLY_AS_CONSTANT || space == TALLY_AS_PRIVATE;
}

static bool check_layout(LLVMModuleRef module, struct tally_error *error)
{
	if (strcmp(LLVMGetDataLayoutStr(module), TALLY_DATA_LAYOUT))
		return tally_fail(error, "module has data layout '%s', not the neutral one",
				  LLVMGetDataLayoutStr(module));
	if (*LLVMGetTarget(module))
		return tally_fail(error, "module has target triple '%s'; neutral IR has none",
				  LLVMGetTarget(module));
	if (LLVMGetFirstGlobalAlias(module))
		return tally_fail(error, "alias '%s': neutral IR has none",
				  tally_name(LLVMGetFirstGlobalAlias(module)));
	if (LLVMGetFirstGlobalIFunc(module))
		return tally_fail(error, "ifunc '%s': neutral IR has none",
				  tally_name(LLVMGetFirstGlobalIFunc(module)));
	return true;
}

static bool is_zero_array(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMArrayTypeKind && LLVMGetArrayLength2(type) == 0;
}

static bool check_shared(LLVMValueRef global, struct tally_error *error)
{
	const char *name = tally_name(global);
	LLVMValueRef value = LLVMGetInitializer(global);

	if (!value) {
		if (!is_zero_array(LLVMGlobalGetValueType(global)))
			return tally_fail(
				error,
				"shared variable '%s' is declared but not defined (only "
				"zero-length arrays, dynamic shared memory, are external)",
				name);
		return true;
	}
	if (LLVMGetLinkage(global) != LLVMInternalLinkage &&
	    LLVMGetLinkage(global) != LLVMPrivateLinkage)
		return tally_fail(error, "shared variable '%s' is not internal", name);
	if (!LLVMIsUndef(value))
		return tally_fail(error, "shared variable '%s' has an initialiser", name);
	return true;
}

static bool check_global(LLVMValueRef global, struct tally_error *error)
{
	unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(global));
	const char *name = tally_name(global);

	if (starts_with(name, "llvm."))
		return true; /* llvm.used and its kind: lists for the compiler */
	if (LLVMIsThreadLocal(global))
		return tally_fail(error, "variable '%s' is thread local", name);
	if (space == TALLY_AS_SHARED)
		return check_shared(global, error);
	if (space != TALLY_AS_GLOBAL && space != TALLY_AS_CONSTANT)
		return tally_fail(error,
				  "variable '%s' is in address space %u (1, 3 or 4 expected)", name,
				  space);
	if (!LLVMGetInitializer(global))
		return tally_fail(error, "variable '%s' is declared but not defined", name);
	switch (LLVMGetLinkage(global)) {
	case LLVMExternalLinkage:
	case LLVMInternalLinkage:
	case LLVMPrivateLinkage:
		return true;
	default:
		return tally_fail(error, "variable '%s' is neither external nor internal", name);
	}
}

static bool is_locked(LLVMValueRef function)
{
	return tally_attribute(function, TALLY_ATTR_VENDOR) &&
	       tally_attribute(function, TALLY_ATTR_LOCKED);
}

/* Whether only calls in functions that are locked to a vendor use a vendor's intrinsic. */
static bool used_under_locks(LLVMValueRef intrinsic)
{
	TALLY_EACH_USE (intrinsic, use) {
		LLVMValueRef user = LLVMGetUser(use);

		if (!LLVMIsACallInst(user) ||
		    !is_locked(LLVMGetBasicBlockParent(LLVMGetInstructionParent(user))))
			return false;
	}
	return LLVMGetFirstUse(intrinsic) != NULL;
}

static bool check_declaration(LLVMValueRef function, struct tally_error *error)
{
	const char *name = tally_name(function);
	const struct tally_operation *operation;
	LLVMTypeRef type = LLVMGlobalGetValueType(function);

	if (starts_with(name, "llvm.")) {
		if (tally_is_machine_intrinsic(name) && !used_under_locks(function))
			return tally_fail(error, "vendor intrinsic '%s' in neutral IR", name);
		return true;
	}
	if (!starts_with(name, "tally."))
		return tally_fail(error, "function '%s' is called but not defined", name);
	operation = tally_operation_find(name);
	if (!operation)
		return tally_fail(error, "'%s' is no operation of the contract", name);
	if (type != tally_operation_type(LLVMGetTypeContext(type), operation)) {
		char *text = LLVMPrintTypeToString(type);

		tally_fail(error, "operation '%s' is declared as '%s' (the contract: %s)", name,
			   text, operation->signature);
		LLVMDisposeMessage(text);
		return false;
	}
	return true;
}

/* "8", "8,1,1": `count` positive numbers, or fewer when `fewer`. */
static bool numbers_ok(const char *text, int count, bool fewer)
{
	int n = 0;

	while (n < count) {
		char *end;
		unsigned long value = strtoul(text, &end, 10);

		if (end == text || *text < '0' || *text > '9' || value == 0 || value > 0x7fffffff)
			return false;
		n++;
		if (!*end)
			return n == count || fewer;
		if (*end != ',')
			return false;
		text = end + 1;
	}
	return false;
}

static bool check_value(LLVMValueRef kernel, const char *attribute, int count,
			struct tally_error *error)
{
	const char *value = tally_attribute(kernel, attribute);

	if (value && !numbers_ok(value, count, false))
		return tally_fail(error, "kernel '%s': attribute \"%s\"=\"%s\" is not %s",
				  tally_name(kernel), attribute, value,
				  count == 1 ? "a positive number" : "three positive numbers");
	return true;
}

/* A transformed entry ends in a `struct tally_launch`. */
static bool check_variant(LLVMValueRef kernel, struct tally_error *error)
{
	const char *variant = tally_attribute(kernel, TALLY_ATTR_VARIANT);
	unsigned count = LLVMCountParams(kernel);
	LLVMModuleRef module = LLVMGetGlobalParent(kernel);
	LLVMTypeRef type;

	if (!variant)
		return true;
	if (strcmp(variant, "slice") && strcmp(variant, "guard") &&
	    strcmp(variant, "slice,guard") && strcmp(variant, "persist"))
		return tally_fail(error, "kernel '%s': unknown variant '%s'", tally_name(kernel),
				  variant);
	if (!tally_attribute(kernel, TALLY_ATTR_OF))
		return tally_fail(error, "kernel '%s': variant without \"%s\"", tally_name(kernel),
				  TALLY_ATTR_OF);
	type = count ? tally_param_byval(kernel, count - 1) : NULL;
	if (!type ||
	    LLVMABISizeOfType(LLVMGetModuleDataLayout(module), type) != sizeof(struct tally_launch))
		return tally_fail(error,
				  "kernel '%s': its last parameter is no struct tally_launch",
				  tally_name(kernel));
	return true;
}

static bool check_kernel(LLVMValueRef kernel, struct tally_error *error)
{
	const char *name = tally_name(kernel), *warp = tally_attribute(kernel, TALLY_ATTR_WARP);
	LLVMTypeRef type = LLVMGlobalGetValueType(kernel);

	if (LLVMIsDeclaration(kernel))
		return tally_fail(error, "kernel '%s' has no body", name);
	if (LLVMGetTypeKind(LLVMGetReturnType(type)) != LLVMVoidTypeKind ||
	    LLVMIsFunctionVarArg(type))
		return tally_fail(error, "kernel '%s' returns a value or takes variable arguments",
				  name);
	if (LLVMGetFunctionCallConv(kernel) != LLVMCCallConv)
		return tally_fail(error, "kernel '%s' has calling convention %u, not C's", name,
				  LLVMGetFunctionCallConv(kernel));
	if (LLVMGetLinkage(kernel) != LLVMExternalLinkage)
		return tally_fail(error, "kernel '%s' is not externally visible", name);
	if (LLVMGetFirstUse(kernel))
		return tally_fail(error, "kernel '%s' is called or has its address taken", name);
	if (!warp || (strcmp(warp, "32") && strcmp(warp, "64")))
		return tally_fail(error, "kernel '%s': \"%s\" must be \"32\" or \"64\"", name,
				  TALLY_ATTR_WARP);
	for (unsigned k = 0; k < LLVMCountParams(kernel); k++) {
		if (!LLVMTypeIsSized(LLVMTypeOf(LLVMGetParam(kernel, k))))
			return tally_fail(error, "kernel '%s': parameter %u has no size", name, k);
		if (tally_param_byval(kernel, k) && !tally_param_attribute(kernel, k, "align"))
			return tally_fail(error,
					  "kernel '%s': parameter %u is byval without an alignment",
					  name, k);
	}
	return check_value(kernel, TALLY_ATTR_MAXNTID, 3, error) &&
	       check_value(kernel, TALLY_ATTR_REQNTID, 3, error) &&
	       check_value(kernel, TALLY_ATTR_CLUSTER, 3, error) &&
	       check_value(kernel, TALLY_ATTR_MINCTAPERSM, 1, error) &&
	       check_value(kernel, TALLY_ATTR_MAXNREG, 1, error) &&
	       check_value(kernel, TALLY_ATTR_MAXCLUSTER, 1, error) && check_variant(kernel, error);
}

static bool check_device_function(LLVMValueRef function, struct tally_error *error)
{
	static const char *const forbidden[] = {"noinline", "optnone"};
	const char *name = tally_name(function);

	if (LLVMGetLinkage(function) != LLVMInternalLinkage &&
	    LLVMGetLinkage(function) != LLVMPrivateLinkage)
		return tally_fail(error, "device function '%s' is not internal", name);
	for (size_t k = 0; k < sizeof forbidden / sizeof *forbidden; k++)
		if (tally_has_attribute(function, forbidden[k]))
			return tally_fail(error, "device function '%s' is marked %s", name,
					  forbidden[k]);
	return true;
}

/* Sync scopes of the contract as this context numbers them. */
enum { SCOPE_COUNT = 5, SCOPE_CLUSTER = 4 };

struct walk {
	LLVMValueRef function;
	unsigned scopes[SCOPE_COUNT];
	struct tally_error *error;
};

static bool violation(struct walk *walk, LLVMValueRef instruction, const char *what)
{
	char text[256];

	return tally_fail(walk->error, "function '%s': %s: %s", tally_name(walk->function), what,
			  tally_instruction_text(instruction, text, sizeof text));
}

static bool check_call(struct walk *walk, LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	size_t length;

	if (LLVMIsAInlineAsm(callee)) {
		/* An empty string is a compiler barrier on every machine. */
		const char *text = LLVMGetInlineAsmAsmString(callee, &length);

		if (text && length && !is_locked(walk->function))
			return violation(walk, call,
					 "inline asm in a function that is not locked to a vendor");
		return true;
	}
	if (LLVMIsAFunction(callee) &&
	    LLVMGlobalGetValueType(callee) != LLVMGetCalledFunctionType(call))
		return violation(walk, call, "call with another type than the function's");
	return true;
}

static bool check_scope(struct walk *walk, LLVMValueRef instruction)
{
	unsigned scope = LLVMGetAtomicSyncScopeID(instruction);

	for (int k = 0; k < SCOPE_COUNT; k++) {
		if (scope != walk->scopes[k])
			continue;
		if (k == SCOPE_CLUSTER && !is_locked(walk->function))
			return violation(walk, instruction,
					 "cluster scope in a function not locked to a vendor");
		return true;
	}
	return violation(walk, instruction, "sync scope is not of the contract");
}

static bool check_pointer(struct walk *walk, LLVMValueRef instruction, LLVMTypeRef type)
{
	if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
		type = LLVMGetElementType(type);
	if (LLVMGetTypeKind(type) == LLVMPointerTypeKind &&
	    !address_space_known(LLVMGetPointerAddressSpace(type)) && !is_locked(walk->function))
		return violation(walk, instruction, "address space is not of the contract");
	return true;
}

static bool check_instruction(LLVMValueRef instruction, void *data)
{
	struct walk *walk = data;

	if (!check_pointer(walk, instruction, LLVMTypeOf(instruction)))
		return false;
	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMInvoke:
	case LLVMCallBr:
	case LLVMResume:
	case LLVMLandingPad:
	case LLVMCatchPad:
	case LLVMCleanupPad:
	case LLVMCatchSwitch:
	case LLVMCatchRet:
	case LLVMCleanupRet:
	case LLVMVAArg:
		return violation(walk, instruction, "instruction is not of the contract");
	case LLVMAlloca:
		if (LLVMGetPointerAddressSpace(LLVMTypeOf(instruction)) != TALLY_AS_GENERIC)
			return violation(walk, instruction, "alloca outside address space 0");
		return true;
	case LLVMCall:
		return check_call(walk, instruction);
	case LLVMLoad:
	case LLVMStore:
		if (!LLVMGetAlignment(instruction))
			return violation(walk, instruction, "access without an alignment");
		if (!check_pointer(walk, instruction,
				   LLVMTypeOf(LLVMGetOperand(
					   instruction, LLVMIsAStoreInst(instruction) ? 1 : 0))))
			return false;
		return LLVMGetOrdering(instruction) == LLVMAtomicOrderingNotAtomic ||
		       check_scope(walk, instruction);
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
	case LLVMFence:
		return check_scope(walk, instruction);
	default:
		return true;
	}
}

static bool check_function(LLVMValueRef function, struct tally_error *error)
{
	static const char *const bound[] = {"target-cpu", "target-features"};
	static const char *const scopes[SCOPE_COUNT] = {"", "singlethread", "device", "block",
							"cluster"};
	struct walk walk = {.function = function, .error = error};
	LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(function));

	if (starts_with(tally_name(function), "tally.") && !tally_is_kernel(function))
		return tally_fail(error, "operation '%s' is defined in neutral IR",
				  tally_name(function));
	for (size_t k = 0; k < sizeof bound / sizeof *bound; k++)
		if (tally_attribute(function, bound[k]))
			return tally_fail(error, "function '%s' carries \"%s\"",
					  tally_name(function), bound[k]);
	if (LLVMHasPersonalityFn(function))
		return tally_fail(error, "function '%s' handles exceptions", tally_name(function));
	if (!(tally_is_kernel(function) ? check_kernel(function, error)
					: check_device_function(function, error)))
		return false;
	for (int k = 0; k < SCOPE_COUNT; k++)
		walk.scopes[k] = LLVMGetSyncScopeID(context, scopes[k], strlen(scopes[k]));
	return tally_visit_instructions(function, check_instruction, &walk);
}

/* Whatever a locked function is called from is locked too. */
static bool check_locks(LLVMValueRef function, struct tally_error *error)
{
	if (LLVMIsDeclaration(function) || !is_locked(function))
		return true;
	TALLY_EACH_USE (function, use) {
		LLVMValueRef user = LLVMGetUser(use), caller;

		if (!LLVMIsACallInst(user))
			continue;
		caller = LLVMGetBasicBlockParent(LLVMGetInstructionParent(user));
		if (!is_locked(caller))
			return tally_fail(error,
					  "function '%s' calls '%s', which is locked to %s by %s, "
					  "but is not locked itself",
					  tally_name(caller), tally_name(function),
					  tally_attribute(function, TALLY_ATTR_VENDOR),
					  tally_attribute(function, TALLY_ATTR_LOCKED));
	}
	return true;
}

bool tally_contract_verify(LLVMModuleRef module, struct tally_error *error)
{
	if (!check_layout(module, error) || !tally_verify_ir(module, "parsing", error))
		return false;
	TALLY_EACH_GLOBAL (module, global)
		if (!check_global(global, error))
			return false;
	TALLY_EACH_FUNCTION (module, function) {
		if (LLVMIsDeclaration(function) && !tally_is_kernel(function)
			    ? !check_declaration(function, error)
			    : !check_function(function, error))
			return false;
	}
	TALLY_EACH_FUNCTION (module, function)
		if (!check_locks(function, error))
			return false;
	return true;
}
