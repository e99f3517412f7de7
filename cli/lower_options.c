/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower's command line. */
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Core.h>

#include "base/number.h"
#include "cli/lower.h"
#include "cli/lower_options.h"
#include "cli/targets.h"

static const struct option long_options[] = {
	{"list", no_argument, NULL, LOWER_OPTION_LIST},
	{"classify", no_argument, NULL, LOWER_OPTION_CLASSIFY},
	{"target", required_argument, NULL, LOWER_OPTION_TARGET},
	{"transform", required_argument, NULL, LOWER_OPTION_TRANSFORM},
	{"kernel", required_argument, NULL, LOWER_OPTION_KERNEL},
	{"emit", required_argument, NULL, LOWER_OPTION_EMIT},
	{"output", required_argument, NULL, LOWER_OPTION_OUTPUT},
	{"optimise", required_argument, NULL, LOWER_OPTION_OPTIMISE},
	{"print-after", required_argument, NULL, LOWER_OPTION_PRINT_AFTER},
	{"verify", no_argument, NULL, LOWER_OPTION_VERIFY},
	{"keep-going", no_argument, NULL, LOWER_OPTION_KEEP_GOING},
	{"lift", no_argument, NULL, LOWER_OPTION_LIFT},
	{"stats", no_argument, NULL, LOWER_OPTION_STATS},
	{"coroutines", no_argument, NULL, LOWER_OPTION_COROUTINES},
	{"timeout", required_argument, NULL, LOWER_OPTION_TIMEOUT},
	{"ptx-version", required_argument, NULL, LOWER_OPTION_PTX_VERSION},
	{"memory", required_argument, NULL, LOWER_OPTION_MEMORY},
	{"jobs", required_argument, NULL, LOWER_OPTION_JOBS},
	{"libdevice", required_argument, NULL, LOWER_OPTION_LIBDEVICE},
	{"rocm-device-libs", required_argument, NULL, LOWER_OPTION_ROCM},
	{"help", no_argument, NULL, LOWER_OPTION_HELP},
	{"version", no_argument, NULL, LOWER_OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

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

static void print_help(void)
{
	struct tally_buffer targets = {0}, passes = {0};

	tally_targets_print(&targets, " ");
	fputs("usage: tally-lower INPUT --target TARGET [options]\n"
	      "\n"
	      "Compiles GPU kernels for another or the same device, sliceable and stoppable\n"
	      "between blocks. INPUT is LLVM bitcode or IR of clang (CUDA, HIP), PTX, a fatbin, "
	      "an\n"
	      "executable or library that carries one, or - for stdin.\n"
	      "\n"
	      "  --target T           what to compile for (below)\n"
	      "  --transform LIST     of slice, guard, persist; or none (the default)\n"
	      "  --transform opaque   the guard, put into NVIDIA machine code: INPUT is a cubin, "
	      "or\n"
	      "                       holds one for TARGET, and so is the output\n"
	      "  --kernel NAME        only this kernel\n"
	      "  --emit FORM          ptx, asm, obj or ir; default: what the driver loads\n"
	      "  -o, --output FILE    default: stdout (no code objects to a terminal)\n"
	      "  -O, --optimise LEVEL 0 to 3, default 2\n"
	      "  --list               show what INPUT holds, and its kernels\n"
	      "  --classify           show which transforms each kernel takes, and why not others\n"
	      "  --keep-going         a kernel that cannot be transformed stays whole, one that "
	      "is\n"
	      "                       refused by the target is left out, each with a warning\n"
	      "  --print-after PASS   the IR after a pass (",
	      stdout);
	pass_names(&passes);
	printf("%s)\n"
	       "  --verify             check the IR contract after each pass\n"
	       "  --lift               NVIDIA: PTX goes through IR also where its text could stay\n"
	       "  --coroutines         CPU: a coroutine for each thread of all kernels with "
	       "barriers\n"
	       "  --stats              time of each step and registers of each kernel\n"
	       "  --timeout S          give up after S seconds; 0, the default: never\n"
	       "  --ptx-version M.N    NVIDIA: of PTX to write (6.0 to 9.0); default: the "
	       "target's\n"
	       "                       oldest that has what the code needs\n"
	       "  --memory MIB         give up beyond it (4096 and 256 x INPUT's size; 0: never)\n"
	       "  --jobs N             NVIDIA: lower parts of a large PTX file in N processes;\n"
	       "                       default: one for each processor\n"
	       "  --libdevice FILE     NVIDIA's maths library, libdevice.10.bc\n"
	       "  --rocm-device-libs D AMD's maths libraries, folder of ocml.bc\n"
	       "  --help, --version\n"
	       "\n"
	       "targets: %s\n",
	       passes.data ? passes.data : "", targets.data ? targets.data : "none");
	tally_buffer_free(&targets);
	tally_buffer_free(&passes);
}

static void print_version(void)
{
	unsigned major, minor, patch;

	LLVMGetVersion(&major, &minor, &patch);
	printf("tally-lower %s (LLVM %u.%u.%u)\n", TALLY_VERSION, major, minor, patch);
}

static bool parse_emit(const char *text, enum tally_emit *emit, struct tally_error *error)
{
	for (size_t k = TALLY_EMIT_DEFAULT + 1; k < LOWER_EMITS; k++)
		if (!strcmp(lower_emits[k], text)) {
			*emit = (enum tally_emit)k;
			return true;
		}
	return tally_fail(error, "unknown form '%s' for --emit (known: ptx, asm, obj, ir)", text);
}

static bool parse_number(const char *option, const char *text, unsigned long most, unsigned *value,
			 struct tally_error *error)
{
	unsigned long number = 0;

	if (!tally_parse_whole(text, 0, most, &number))
		return tally_fail(error, "%s: '%s' is no number from 0 to %lu", option, text, most);
	*value = (unsigned)number;
	return true;
}

/* "8.6" as 86. */
static bool parse_version(const char *text, unsigned *version, struct tally_error *error)
{
	unsigned major, minor;
	int end = 0;

	if (sscanf(text, "%1u.%1u%n", &major, &minor, &end) != 2 || text[end])
		return tally_fail(error, "--ptx-version: '%s' is no version such as 8.6", text);
	*version = major * 10 + minor;
	return true;
}

static bool bad_option(int result, char **argv, struct tally_error *error)
{
	const char *option = argv[optind - 1];

	if (result == ':')
		return tally_fail(error, "%s wants a value (see --help)", option);
	if (optopt && optopt < 256 && strncmp(option, "--", 2))
		return tally_fail(error, "unknown option '-%c' (see --help)", optopt);
	return tally_fail(error, "unknown or ambiguous option '%s' (see --help)", option);
}

/* `opaque` is none of the passes'. */
static bool take_transforms(const char *list, struct lower_options *options,
			    struct tally_error *error)
{
	static const char opaque[] = "opaque";
	const size_t length = sizeof opaque - 1;

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

static bool take(int option, const char *value, struct lower_options *options, bool *done,
		 struct tally_error *error)
{
	unsigned number = 0;

	switch (option) {
	case LOWER_OPTION_TARGET:
		options->target = value;
		return true;
	case LOWER_OPTION_OUTPUT:
		options->output = value;
		return true;
	case LOWER_OPTION_OPTIMISE:
		if (!parse_number("-O", value, 3, &number, error))
			return false;
		options->lower.optimise = (int)number;
		return true;
	case LOWER_OPTION_LIST:
		return options->list = true;
	case LOWER_OPTION_CLASSIFY:
		return options->classify = true;
	case LOWER_OPTION_TRANSFORM:
		return take_transforms(value, options, error);
	case LOWER_OPTION_KERNEL:
		options->passes.kernel = value;
		return true;
	case LOWER_OPTION_EMIT:
		return parse_emit(value, &options->lower.emit, error);
	case LOWER_OPTION_PRINT_AFTER:
		options->print_after = value;
		return check_pass(value, error);
	case LOWER_OPTION_VERIFY:
		return options->passes.verify = true;
	case LOWER_OPTION_KEEP_GOING:
		return options->keep_going = true;
	case LOWER_OPTION_LIFT:
		return options->lift = true;
	case LOWER_OPTION_COROUTINES:
		return options->lower.coroutines = true;
	case LOWER_OPTION_STATS:
		return options->lower.stats = true;
	case LOWER_OPTION_TIMEOUT:
		return parse_number("--timeout", value, 1000000, &options->timeout, error);
	case LOWER_OPTION_PTX_VERSION:
		return parse_version(value, &options->lower.ptx, error);
	case LOWER_OPTION_MEMORY:
		return parse_number("--memory", value, 1u << 30, &options->memory, error);
	case LOWER_OPTION_JOBS:
		return parse_number("--jobs", value, 1024, &options->jobs, error) &&
		       (options->jobs || tally_fail(error, "--jobs: 0 processes do nothing"));
	case LOWER_OPTION_LIBDEVICE:
		options->lower.libdevice = value;
		return true;
	case LOWER_OPTION_ROCM:
		options->lower.rocm_device_libs = value;
		return true;
	case LOWER_OPTION_HELP:
		print_help();
		return *done = true;
	default:
		print_version();
		return *done = true;
	}
}

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

bool lower_options_parse(int argc, char **argv, struct lower_options *options, bool *done,
			 struct tally_error *error)
{
	int option;

	*options = (struct lower_options){
		.lower.optimise = 2, .memory = LOWER_MEMORY_BY_SIZE, .jobs = processors()};
	*done = false;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:O:t:", long_options, NULL)) != -1) {
		if (option == ':' || option == '?')
			return bad_option(option, argv, error);
		option = option == 't'	 ? LOWER_OPTION_TARGET
			 : option == 'o' ? LOWER_OPTION_OUTPUT
			 : option == 'O' ? LOWER_OPTION_OPTIMISE
					 : option;
		if (!take(option, optarg, options, done, error))
			return false;
		options->given |= 1u << (option - LOWER_OPTION_FIRST);
		if (*done)
			return true;
	}
	if (optind < argc)
		options->input = argv[optind++];
	if (optind < argc)
		return tally_fail(error, "more than one input: '%s' and '%s'", options->input,
				  argv[optind]);
	options->passes.required = !options->keep_going;
	return lower_options_check(options, error);
}
