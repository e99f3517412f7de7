/* SPDX-License-Identifier: Apache-2.0 */
/* Placeholder until below. */
#include "frontend/ptx/lift.h"
void ptx_restore_pointers(LLVMValueRef function)
{
	(void)function;
}
