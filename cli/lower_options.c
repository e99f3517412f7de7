/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower's command line. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <llvm-c/Core.h>

#include "base/buffer.h"
#include "base/number.h"
#include "base/options.h"
#include "cli/lower.h"
#include "cli/lower_options.h"
#include "cli/targets.h"

/* What --print-after knows: lifting, then the passes. */
static void pass_names(struct tally_buffer *out)
{
	tally_buffer_print(out, "lift");
	for (const struct tally_pass_entry *pass = tally_passes; pass->name; pass++)
		tally_buffer_print(out, ", %s", pass->name);
}

static bool check_pass(const char *name, struct tally_error *error)
{
	struct tally_buffer known = {0};
	bool found = !strcmp(name, "lift");

	for (const struct tally_pass_entry *pass = tally_passes; pass->name; pass++)
		found |= !strcmp(name, pass->name);
	if (found)
		return true;
	pass_names(&known);
	tally_fail(error, "no pass '%s' (there are: %s)", name, known.data ? known.data : "");
	tally_buffer_free(&known);
	return false;
}

static const char help_before_passes[] =
	"usage: tally-lower INPUT --target TARGET [options]\n"
	"\n"
	"Compiles GPU kernels for another or the same device, sliceable and stoppable\n"
	"between blocks. INPUT is LLVM bitcode or IR of clang (CUDA, HIP), PTX, a fatbin, an\n"
	"executable or library that carries one, or - for stdin.\n"
	"\n"
	"  -t, --target T       what to compile for (below)\n"
	"  --transform LIST     of slice, guard, persist; or none (the default)\n"
	"  --transform opaque   the guard, put into NVIDIA machine code: INPUT is a cubin, or\n"
	"                       holds one for TARGET, and so is the output\n"
	"  --kernel NAME        only this kernel\n"
	"  --emit FORM          ptx, asm, obj or ir; default: what the driver loads\n"
	"  -o, --output FILE    default: stdout (no code objects to a terminal)\n"
	"  -O, --optimise LEVEL 0 to 3, default 2\n"
	"  --list               show what INPUT holds, and its kernels\n"
	"  --classify           show which transforms each kernel takes, and why not others\n"
	"  --keep-going         a kernel that cannot be transformed stays whole, one that is\n"
	"                       refused by the target is left out, each with a warning\n"
	"  --print-after PASS   the IR after a pass (";

static const char help_after_passes[] =
	")\n"
	"  --verify             check the IR contract after each pass\n"
	"  --lift               NVIDIA: PTX goes through IR also where its text could stay\n"
	"  --coroutines         CPU: a coroutine for each thread of all kernels with barriers\n"
	"  --stats              time of each step and registers of each kernel\n"
	"  --timeout S          give up after S seconds; 0, the default: never\n"
	"  --ptx-version M.N    NVIDIA: of PTX to write (6.0 to 9.0); default: the target's\n"
	"                       oldest that has what the code needs\n"
	"  --memory MIB         give up beyond it (4096 and 256 x INPUT's size; 0: never)\n"
	"  --jobs N             NVIDIA: lower parts of a large PTX file in N processes;\n"
	"                       default: one for each processor\n"
	"  --libdevice FILE     NVIDIA's maths library, libdevice.10.bc\n"
	"  --rocm-device-libs D AMD's maths libraries, folder of ocml.bc\n"
	"  --help, --version\n"
	"\n"
	"targets: ";

static void print_help(struct tally_buffer *out)
{
	tally_buffer_print(out, "%s", help_before_passes);
	pass_names(out);
	tally_buffer_print(out, "%s", help_after_passes);
	tally_targets_print(out, " ");
	tally_buffer_print(out, "\n");
}

static void print_version(struct tally_buffer *out)
{
	unsigned major, minor, patch;

	LLVMGetVersion(&major, &minor, &patch);
	tally_buffer_print(out, "tally-lower %s (LLVM %u.%u.%u)\n", TALLY_VERSION, major, minor,
			   patch);
}

static bool read_number(const char *option, const char *text, unsigned long most, unsigned *value,
			struct tally_error *error)
{
	unsigned long number = 0;

	if (!tally_parse_whole(text, 0, most, &number))
		return tally_fail(error, "%s: '%s' is no number from 0 to %lu", option, text, most);
	*value = (unsigned)number;
	return true;
}

/* Each takes one option's value: struct tally_option. */
static bool read_optimise(void *settings, const char *value, struct tally_error *error)
{
	struct lower_options *options = settings;
	unsigned level = 0;

	if (!read_number("-O", value, 3, &level, error))
		return false;
	options->lower.optimise = (int)level;
	return true;
}

/* `opaque` is none of the passes'. */
static bool read_transforms(void *settings, const char *list, struct tally_error *error)
{
	static const char opaque[] = "opaque";
	const size_t length = sizeof opaque - 1;
	struct lower_options *options = settings;

	options->passes.transforms = 0;
	options->opaque = !strcmp(list, opaque);
	if (options->opaque)
		return true;
	for (const char *word = list; word; word = strchr(word, ',')) {
		word += *word == ',';
		if (!strncmp(word, opaque, length) && (!word[length] || word[length] == ','))
			return tally_fail(error, "transform 'opaque' does not go with others");
	}
	return tally_transforms_parse(list, &options->passes.transforms, error);
}

static bool read_emit(void *settings, const char *value, struct tally_error *error)
{
	const int first = TALLY_EMIT_DEFAULT + 1;
	struct lower_options *options = settings;
	int form =
		tally_option_word("--emit", value, lower_emits + first, LOWER_EMITS - first, error);

	options->lower.emit = (enum tally_emit)(first + form);
	return form >= 0;
}

static bool read_print_after(void *settings, const char *value, struct tally_error *error)
{
	struct lower_options *options = settings;

	options->print_after = value;
	return check_pass(value, error);
}

static bool read_timeout(void *settings, const char *value, struct tally_error *error)
{
	struct lower_options *options = settings;

	return read_number("--timeout", value, 1000000, &options->timeout, error);
}

/* "8.6" as 86. */
static bool read_ptx_version(void *settings, const char *value, struct tally_error *error)
{
	struct lower_options *options = settings;
	unsigned major, minor;
	int end = 0;

	if (sscanf(value, "%1u.%1u%n", &major, &minor, &end) != 2 || value[end])
		return tally_fail(error, "--ptx-version: '%s' is no version such as 8.6", value);
	options->lower.ptx = major * 10 + minor;
	return true;
}

static bool read_memory(void *settings, const char *value, struct tally_error *error)
{
	struct lower_options *options = settings;

	return read_number("--memory", value, 1u << 30, &options->memory, error);
}

static bool read_jobs(void *settings, const char *value, struct tally_error *error)
{
	struct lower_options *options = settings;

	return read_number("--jobs", value, 1024, &options->jobs, error) &&
	       (options->jobs || tally_fail(error, "--jobs: 0 processes do nothing"));
}

#define FLAG(name, field)	  TALLY_OPTION_FLAG(name, 0, struct lower_options, field)
#define TEXT(name, letter, field) TALLY_OPTION_TEXT(name, letter, struct lower_options, field)

static const struct tally_option rows[] = {
	[LOWER_OPTION_TARGET] = TEXT("target", 't', target),
	[LOWER_OPTION_OUTPUT] = TEXT("output", 'o', output),
	[LOWER_OPTION_OPTIMISE] = TALLY_OPTION_READ("optimise", 'O', read_optimise),
	[LOWER_OPTION_LIST] = FLAG("list", list),
	[LOWER_OPTION_CLASSIFY] = FLAG("classify", classify),
	[LOWER_OPTION_TRANSFORM] = TALLY_OPTION_READ("transform", 0, read_transforms),
	[LOWER_OPTION_KERNEL] = TEXT("kernel", 0, passes.kernel),
	[LOWER_OPTION_EMIT] = TALLY_OPTION_READ("emit", 0, read_emit),
	[LOWER_OPTION_PRINT_AFTER] = TALLY_OPTION_READ("print-after", 0, read_print_after),
	[LOWER_OPTION_VERIFY] = FLAG("verify", passes.verify),
	[LOWER_OPTION_KEEP_GOING] = FLAG("keep-going", keep_going),
	[LOWER_OPTION_LIFT] = FLAG("lift", lift),
	[LOWER_OPTION_STATS] = FLAG("stats", lower.stats),
	[LOWER_OPTION_COROUTINES] = FLAG("coroutines", lower.coroutines),
	[LOWER_OPTION_TIMEOUT] = TALLY_OPTION_READ("timeout", 0, read_timeout),
	[LOWER_OPTION_PTX_VERSION] = TALLY_OPTION_READ("ptx-version", 0, read_ptx_version),
	[LOWER_OPTION_MEMORY] = TALLY_OPTION_READ("memory", 0, read_memory),
	[LOWER_OPTION_JOBS] = TALLY_OPTION_READ("jobs", 0, read_jobs),
	[LOWER_OPTION_LIBDEVICE] = TEXT("libdevice", 0, lower.libdevice),
	[LOWER_OPTION_ROCM] = TEXT("rocm-device-libs", 0, lower.rocm_device_libs),
	[LOWER_OPTION_END] = {NULL},
};

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

bool lower_options_parse(int argc, char **argv, struct lower_options *options, bool *done,
			 struct tally_error *error)
{
	struct tally_buffer help = {0}, version = {0};
	int first = -1;

	*options = (struct lower_options){
		.lower.optimise = 2, .memory = LOWER_MEMORY_BY_SIZE, .jobs = processors()};
	print_help(&help);
	print_version(&version);
	if (help.failed || version.failed)
		tally_fail(error, "out of memory");
	else
		first = tally_options_read(&(struct tally_command_line){.program = "tally-lower",
									.help = help.data,
									.version = version.data,
									.options = rows,
									.most_arguments = 1,
									.given = &options->given},
					   argc, argv, options, error);
	tally_buffer_free(&help);
	tally_buffer_free(&version);
	*done = !first;
	if (first <= 0)
		return *done;
	if (first < argc)
		options->input = argv[first];
	options->passes.required = !options->keep_going;
	return lower_options_check(options, rows, error);
}
