/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: any bytes as PTX give a verified module or one error, and never a crash. */
#include <llvm-c/Core.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "fuzz_ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_lift_options options = {.file = "fuzz.ptx"};
	struct tally_error error = {0};
	LLVMContextRef context = LLVMContextCreate();
	char *text = malloc(size + 1);
	LLVMModuleRef module;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	module = tally_ptx_lift(context, text, size, &options, &error);
	if (module)
		LLVMDisposeModule(module);
	else if (!tally_failed(&error))
		abort(); /* a failure without a reason */
	free(text);
	LLVMContextDispose(context);
	return 0;
}
