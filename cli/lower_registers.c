/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower --stats: registers and memory of each kernel, from the vendor's own tool. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda_toolkit.h"
#include "backends/program.h"
#include "cli/lower.h"

/* ptxas: of the toolkit that is found, else the one in PATH. */
static const char *find_ptxas(char *path, size_t size)
{
	static const char *const names[] = {"bin/ptxas", NULL};

	return tally_cuda_toolkit_file(names, path, size) ? path : "ptxas";
}

/* Prints the lines of `text` that hold `needle`, without ptxas' prefix. */
static void print_lines(const char *text, const char *const *needles)
{
	while (text && *text) {
		size_t length = strcspn(text, "\n");

		for (const char *const *needle = needles; *needle; needle++) {
			if (!memmem(text, length, *needle, strlen(*needle)))
				continue;
			fprintf(stderr, "%.*s\n", (int)length, text);
			break;
		}
		text += length + (text[length] == '\n');
	}
}

static void ptxas_registers(const struct tally_lower_options *options,
			    const struct tally_buffer *code)
{
	static const char *const needles[] = {"Compiling entry", "Used ", "bytes stack", NULL};
	char path[4096], arch[64];
	const char *argv[] = {find_ptxas(path, sizeof path),
			      "-v",
			      arch,
			      TALLY_PROGRAM_INPUT,
			      "-o",
			      "/dev/null",
			      NULL};
	struct tally_buffer messages = {0};
	struct tally_error error = {0};

	snprintf(arch, sizeof arch, "-arch=%s", options->target);
	if (tally_program_run(argv, code, NULL, &messages, &error))
		print_lines(messages.data, needles);
	else
		fprintf(stderr, "registers: not known: %s\n", error.message);
	tally_buffer_free(&messages);
}

static void readelf_registers(const struct tally_buffer *code)
{
	static const char *const needles[] = {".name:  ",
					      ".vgpr_count:",
					      ".sgpr_count:",
					      ".group_segment_fixed_size:",
					      ".private_segment_fixed_size:",
					      NULL};
	static const char *const argv[] = {"llvm-readelf-22", "--notes", TALLY_PROGRAM_INPUT, NULL};
	struct tally_buffer text = {0};
	struct tally_error error = {0};

	if (tally_program_run(argv, code, &text, NULL, &error))
		print_lines(text.data, needles);
	else
		fprintf(stderr, "registers: not known: %s\n", error.message);
	tally_buffer_free(&text);
}

void lower_registers(const char *vendor, const struct tally_lower_options *options,
		     const struct tally_buffer *code)
{
	bool loadable = options->emit == TALLY_EMIT_DEFAULT;

	if (!strcmp(vendor, "nvidia") &&
	    (loadable || options->emit == TALLY_EMIT_PTX || options->emit == TALLY_EMIT_ASM))
		ptxas_registers(options, code);
	if (!strcmp(vendor, "amd") && (loadable || options->emit == TALLY_EMIT_OBJ))
		readelf_registers(code);
}
