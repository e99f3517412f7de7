/* SPDX-License-Identifier: Apache-2.0 */
/* Lifts a PTX file, verifies the contract, prints the IR: what the script tests run. */
#include <llvm-c/Core.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "frontend/frontend.h"
#include "ir_passes/contract.h"

int main(int argc, char **argv)
{
	struct tally_error error = {0};
	struct tally_buffer text = {0};
	bool quiet = argc == 3 && !strcmp(argv[1], "-q");
	const char *path = argc > 1 ? argv[argc - 1] : "-";
	struct tally_lift_options options = {.file = path, .verify = true};
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = NULL;
	char *ir;

	if (tally_file_read(path, &text, &error))
		module = tally_ptx_lift(context, text.data ? text.data : "", text.size, &options,
					&error);
	if (!module || !tally_contract_verify(module, &error)) {
		tally_error_print(&error, "lift_tool");
	} else if (!quiet) {
		ir = LLVMPrintModuleToString(module);
		fputs(ir, stdout);
		LLVMDisposeMessage(ir);
	}
	if (module)
		LLVMDisposeModule(module);
	LLVMContextDispose(context);
	tally_buffer_free(&text);
	return tally_failed(&error);
}
