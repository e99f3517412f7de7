/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables did not take: inline asm, intrinsics that lock a kernel, undefined functions. */
#include <stdio.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

static bool lift_asm(LLVMValueRef instruction, void *data)
{
	struct lift *lift = data;
	LLVMValueRef called;
	const char *text;
	size_t length;

	if (!LLVMIsACallInst(instruction))
		return true;
	called = LLVMGetCalledValue(instruction);
	if (!LLVMIsAInlineAsm(called))
		return true;
	text = LLVMGetInlineAsmAsmString(called, &length);
	if (!length)
		return true; /* a barrier for the compiler alone */
	if (lift->vendor == BITCODE_NVIDIA)
		return tally_ptx_lift_asm(lift->module, instruction, lift->options, lift->error);
	/* AMD's assembly is not read: it stays as it is. */
	{
		char what[96];

		snprintf(what, sizeof(what), "inline asm '%.*s'", (int)strcspn(text, "\n;"), text);
		bitcode_lock(lift, instruction, what);
	}
	return true;
}

bool bitcode_asm(struct lift *lift)
{
	TALLY_EACH_FUNCTION (lift->module, function)
		if (!tally_visit_instructions(function, lift_asm, lift))
			return false;
	return true;
}

static bool is_vendor_intrinsic(const char *name)
{
	return !strncmp(name, "llvm.nvvm.", 10) || !strncmp(name, "llvm.amdgcn.", 12);
}

static bool lock_intrinsics(LLVMValueRef instruction, void *data)
{
	const char *name = tally_called_name(instruction);

	if (name && is_vendor_intrinsic(name))
		bitcode_lock(data, instruction, name);
	return true;
}

bool bitcode_locks(struct lift *lift)
{
	TALLY_EACH_FUNCTION (lift->module, function)
		tally_visit_instructions(function, lock_intrinsics, lift);
	tally_propagate_locks(lift->module);
	return true;
}

/* Why some well-known functions cannot be there. */
static const struct {
	const char *prefix, *why;
} reasons[] = {
	{"cudaCGSynchronize", "grid-wide synchronisation (cooperative launch) cannot be lifted"},
	{"cudaCGGet", "grid-wide synchronisation (cooperative launch) cannot be lifted"},
	{"cudaLaunchDevice", "launches from the device cannot be lifted"},
	{"cudaGetParameterBuffer", "launches from the device cannot be lifted"},
	{"__cudaCDP", "launches from the device cannot be lifted"},
	{"__ockl_grid_sync", "grid-wide synchronisation (cooperative launch) cannot be lifted"},
	{"__ockl_multi_grid", "grid-wide synchronisation (cooperative launch) cannot be lifted"},
	{"__ockl_printf", "printf over AMD's host calls cannot be lifted: build without it"},
	{"__ockl_fprintf", "printf over AMD's host calls cannot be lifted: build without it"},
	{"__printf_alloc", "printf over AMD's buffer cannot be lifted: build without it"},
	{"__ockl_image", "images and textures cannot be lifted"},
	{"__ockl_hostcall", "AMD's host calls cannot be lifted"},
	{"__nv_", "no function of libdevice that is known"},
	{"__ocml_", "no function of ocml that is known"},
};

bool bitcode_leftovers(struct lift *lift)
{
	TALLY_EACH_FUNCTION (lift->module, function) {
		const char *name = bitcode_name(function);
		const char *why = "neither defined in the module nor known (link device code that "
				  "is spread over several files first)";
		LLVMUseRef use = LLVMGetFirstUse(function);

		if (!LLVMIsDeclaration(function))
			continue;
		if (!use) {
			LLVMDeleteFunction(function);
			continue;
		}
		if (!strncmp(name, "llvm.", 5) || !strncmp(name, "tally.", 6))
			continue;
		for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
			if (!strncmp(name, reasons[i].prefix, strlen(reasons[i].prefix)))
				why = reasons[i].why;
		if (LLVMIsAInstruction(LLVMGetUser(use)))
			return bitcode_fail(lift, LLVMGetUser(use), "calls '%s': %s", name, why);
		return tally_fail_at(lift->error, lift->options->file, 0, 0,
				     "function '%s' is used: %s", name, why);
	}
	return true;
}
