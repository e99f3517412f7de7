/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's memory: private allocas, sync scopes, and the launch's facts behind implicit pointers. */
#include "frontend/bitcode/bitcode.h"

bool bitcode_amd_memory(struct lift *lift)
{
	return true;
}
