/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower: whether options fit together. None is taken that would mean nothing. */
#include <string.h>

#include "cli/lower_options.h"
#include "cli/targets.h"

const char *const lower_emits[LOWER_EMITS] = {
	[TALLY_EMIT_DEFAULT] = "the default",
	[TALLY_EMIT_PTX] = "ptx",
	[TALLY_EMIT_ASM] = "asm",
	[TALLY_EMIT_OBJ] = "obj",
	[TALLY_EMIT_IR] = "ir",
};

/* What the program does: one of these at a time. */
enum mode {
	MODE_LIST = 1,
	MODE_CLASSIFY = 2,
	MODE_OPAQUE = 4,
	MODE_NEUTRAL = 8, /* no target: neutral IR, or a mere check of it */
	MODE_NVIDIA = 16,
	MODE_AMD = 32,
	MODE_CPU = 64,
	MODE_LOWER = MODE_NVIDIA | MODE_AMD | MODE_CPU,
	MODE_ANY = 127,
};

/* Where each option means something. */
static const struct {
	const char *name;
	int modes;
} options_by_number[LOWER_OPTION_END - LOWER_OPTION_FIRST] = {
#define OPTION(number, name, modes) [LOWER_OPTION_##number - LOWER_OPTION_FIRST] = {name, modes}
	OPTION(TARGET, "--target", MODE_CLASSIFY | MODE_OPAQUE | MODE_LOWER),
	OPTION(OUTPUT, "-o", MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER),
	OPTION(OPTIMISE, "-O", MODE_LOWER),
	OPTION(LIST, "--list", MODE_LIST),
	OPTION(CLASSIFY, "--classify", MODE_CLASSIFY),
	OPTION(TRANSFORM, "--transform", MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER),
	OPTION(KERNEL, "--kernel", MODE_ANY & ~MODE_LIST),
	OPTION(EMIT, "--emit", MODE_NEUTRAL | MODE_LOWER),
	OPTION(PRINT_AFTER, "--print-after", MODE_NEUTRAL | MODE_LOWER),
	OPTION(VERIFY, "--verify", MODE_CLASSIFY | MODE_NEUTRAL | MODE_LOWER),
	OPTION(KEEP_GOING, "--keep-going", MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER),
	OPTION(LIFT, "--lift", MODE_NVIDIA),
	OPTION(STATS, "--stats", MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER),
	OPTION(COROUTINES, "--coroutines", MODE_CPU),
	OPTION(TIMEOUT, "--timeout", MODE_ANY),
	OPTION(PTX_VERSION, "--ptx-version", MODE_NVIDIA),
	OPTION(MEMORY, "--memory", MODE_ANY),
	OPTION(JOBS, "--jobs", MODE_NVIDIA),
	OPTION(LIBDEVICE, "--libdevice", MODE_NVIDIA),
	OPTION(ROCM, "--rocm-device-libs", MODE_AMD),
	OPTION(HELP, "--help", MODE_ANY),
	OPTION(VERSION, "--version", MODE_ANY),
#undef OPTION
};

static enum mode mode_of(const struct lower_options *options, const struct tally_lowering *lowering)
{
	static const struct {
		const char *vendor;
		enum mode mode;
	} vendors[] = {{"nvidia", MODE_NVIDIA}, {"amd", MODE_AMD}, {"cpu", MODE_CPU}};

	if (options->list)
		return MODE_LIST;
	if (options->classify)
		return MODE_CLASSIFY;
	if (options->opaque)
		return MODE_OPAQUE;
	for (size_t k = 0; lowering && k < sizeof vendors / sizeof *vendors; k++)
		if (!strcmp(lowering->vendor, vendors[k].vendor))
			return vendors[k].mode;
	return MODE_NEUTRAL;
}

static bool misfit(const struct lower_options *options, enum mode mode, const char *option,
		   struct tally_error *error)
{
	switch (mode) {
	case MODE_LIST:
		return tally_fail(error, "--list only shows what is there: %s does not go with it",
				  option);
	case MODE_CLASSIFY:
		return tally_fail(error,
				  "--classify only shows what is there: %s does not go with it",
				  option);
	case MODE_OPAQUE:
		return tally_fail(error,
				  "--transform opaque changes machine code: %s does not go with it",
				  option);
	case MODE_NEUTRAL:
		return tally_fail(error, "%s means nothing without a --target", option);
	default:
		return tally_fail(error, "%s means nothing for target %s", option, options->target);
	}
}

static bool fail_no_target(const struct lower_options *options, struct tally_error *error)
{
	struct tally_buffer known = {0};

	tally_targets_print(&known, ", ");
	if (options->opaque)
		tally_fail(error, "--transform opaque wants the chip as --target");
	else
		tally_fail(error, "no --target (known: %s)", known.data);
	tally_buffer_free(&known);
	return false;
}

/* Neutral IR has no target, and neither has a mere look or check. */
static bool wants_target(const struct lower_options *options)
{
	return !options->list && !options->classify && options->lower.emit != TALLY_EMIT_IR &&
	       (options->opaque || !options->passes.verify || options->output ||
		options->lower.emit != TALLY_EMIT_DEFAULT);
}

bool lower_options_check(struct lower_options *options, struct tally_error *error)
{
	const struct tally_lowering *lowering = NULL;

	if (!options->input)
		return tally_fail(error, "no input (see --help)");
	if (options->target && !options->list) {
		lowering = tally_lowering_find(options->target, error);
		if (!lowering)
			return false;
	} else if (!options->target && wants_target(options)) {
		return fail_no_target(options, error);
	}
	enum mode mode = mode_of(options, lowering);
	for (size_t k = 0; k < sizeof options_by_number / sizeof *options_by_number; k++)
		if (options->given >> k & 1 && !(options_by_number[k].modes & mode))
			return misfit(options, mode, options_by_number[k].name, error);
	options->lower.target = options->target;
	if (mode == MODE_OPAQUE && strcmp(lowering->vendor, "nvidia"))
		return tally_fail(error, "target %s has no machine code that opaque can change",
				  options->target);
	if (mode & MODE_LOWER && !(lowering->emits >> options->lower.emit & 1))
		return tally_fail(error, "target %s has no such form: --emit %s", options->target,
				  lower_emits[options->lower.emit]);
	return true;
}
