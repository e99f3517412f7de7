/* SPDX-License-Identifier: Apache-2.0 */
/* Lifts a file of any kind and prints the neutral IR: what the end-to-end tests look at. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "frontend/frontend.h"

int main(int argc, char **argv)
{
	LLVMContextRef context = LLVMContextCreate();
	struct tally_buffer file = {0};
	struct tally_error error = {0};
	struct tally_lift_options options = {.target = argc > 2 ? argv[2] : NULL};
	LLVMModuleRef module = NULL;
	char *text;

	if (argc < 2)
		return 2;
	options.file = argv[1];
	if (tally_file_read(argv[1], &file, &error))
		module = tally_frontend_lift(context, argv[1], file.data, file.size, &options,
					     &error);
	tally_buffer_free(&file);
	if (!module) {
		tally_error_print(&error, argv[0]);
		LLVMContextDispose(context);
		return 1;
	}
	text = LLVMPrintModuleToString(module);
	fputs(text, stdout);
	LLVMDisposeMessage(text);
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
	return 0;
}
