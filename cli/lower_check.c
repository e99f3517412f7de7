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
static const int modes_of[LOWER_OPTION_END] = {
	[LOWER_OPTION_TARGET] = MODE_CLASSIFY | MODE_OPAQUE | MODE_LOWER,
	[LOWER_OPTION_OUTPUT] = MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER,
	[LOWER_OPTION_OPTIMISE] = MODE_LOWER,
	[LOWER_OPTION_LIST] = MODE_LIST,
	[LOWER_OPTION_CLASSIFY] = MODE_CLASSIFY,
	[LOWER_OPTION_TRANSFORM] = MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER,
	[LOWER_OPTION_KERNEL] = MODE_ANY & ~MODE_LIST,
	[LOWER_OPTION_EMIT] = MODE_NEUTRAL | MODE_LOWER,
	[LOWER_OPTION_PRINT_AFTER] = MODE_NEUTRAL | MODE_LOWER,
	[LOWER_OPTION_VERIFY] = MODE_CLASSIFY | MODE_NEUTRAL | MODE_LOWER,
	[LOWER_OPTION_KEEP_GOING] = MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER,
	[LOWER_OPTION_LIFT] = MODE_NVIDIA,
	[LOWER_OPTION_STATS] = MODE_OPAQUE | MODE_NEUTRAL | MODE_LOWER,
	[LOWER_OPTION_COROUTINES] = MODE_CPU,
	[LOWER_OPTION_TIMEOUT] = MODE_ANY,
	[LOWER_OPTION_PTX_VERSION] = MODE_NVIDIA,
	[LOWER_OPTION_MEMORY] = MODE_ANY,
	[LOWER_OPTION_JOBS] = MODE_NVIDIA,
	[LOWER_OPTION_LIBDEVICE] = MODE_NVIDIA,
	[LOWER_OPTION_ROCM] = MODE_AMD,
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
	static const struct {
		enum mode mode;
		const char *why;
	} looks[] = {
		{MODE_LIST, "--list only shows what is there"},
		{MODE_CLASSIFY, "--classify only shows what is there"},
		{MODE_OPAQUE, "--transform opaque changes machine code"},
	};

	for (size_t k = 0; k < sizeof looks / sizeof *looks; k++)
		if (mode == looks[k].mode)
			return tally_fail(error, "%s: --%s does not go with it", looks[k].why,
					  option);
	if (mode == MODE_NEUTRAL)
		return tally_fail(error, "--%s means nothing without a --target", option);
	return tally_fail(error, "--%s means nothing for target %s", option, options->target);
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

bool lower_options_check(struct lower_options *options, const struct tally_option *rows,
			 struct tally_error *error)
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
	for (size_t k = 0; k < LOWER_OPTION_END; k++)
		if (options->given >> k & 1 && !(modes_of[k] & mode))
			return misfit(options, mode, rows[k].name, error);
	options->lower.target = options->target;
	if (mode == MODE_OPAQUE && strcmp(lowering->vendor, "nvidia"))
		return tally_fail(error, "target %s has no machine code that opaque can change",
				  options->target);
	if (mode & MODE_LOWER && !(lowering->emits >> options->lower.emit & 1))
		return tally_fail(error, "target %s has no such form: --emit %s", options->target,
				  lower_emits[options->lower.emit]);
	return true;
}
