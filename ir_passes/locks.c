/* SPDX-License-Identifier: Apache-2.0 */
/* Vendor locks: a kernel that reaches a vendor's instruction carries its name and place. */
#include "ir_passes/ir.h"

/* Copies the lock of `from` to `to`; false when `to` had one already. */
static bool lock_like(LLVMValueRef from, LLVMValueRef to)
{
	const char *vendor = tally_attribute(from, TALLY_ATTR_VENDOR);
	const char *locked = tally_attribute(from, TALLY_ATTR_LOCKED);

	if (tally_attribute(to, TALLY_ATTR_VENDOR))
		return false;
	tally_attribute_set(to, TALLY_ATTR_VENDOR, vendor);
	tally_attribute_set(to, TALLY_ATTR_LOCKED, locked ? locked : "inline asm");
	return true;
}

/* Locks every function that names `function`; when its address sits in a table, every function that
 * calls through a pointer. */
static bool lock_users(LLVMModuleRef module, LLVMValueRef function)
{
	bool changed = false, address_taken = false;

	TALLY_EACH_USE (function, use) {
		LLVMValueRef user = LLVMGetUser(use);

		if (LLVMIsAInstruction(user))
			changed |= lock_like(
				function, LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)));
		if (!LLVMIsACallInst(user) || LLVMGetCalledValue(user) != function)
			address_taken = true;
	}
	if (address_taken)
		TALLY_EACH_FUNCTION (module, other)
			if (tally_calls_through_pointer(other))
				changed |= lock_like(function, other);
	return changed;
}

void tally_propagate_locks(LLVMModuleRef module)
{
	bool changed;

	do {
		changed = false;
		TALLY_EACH_FUNCTION (module, function)
			if (!LLVMIsDeclaration(function) &&
			    tally_attribute(function, TALLY_ATTR_VENDOR))
				changed |= lock_users(module, function);
	} while (changed);
}
