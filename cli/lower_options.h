/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower's options by number: what reads them and what looks whether they fit together. */
#ifndef TALLY_CLI_LOWER_OPTIONS_H
#define TALLY_CLI_LOWER_OPTIONS_H

#include "base/options.h"
#include "cli/lower.h"

enum {
	LOWER_OPTION_TARGET,
	LOWER_OPTION_OUTPUT,
	LOWER_OPTION_OPTIMISE,
	LOWER_OPTION_LIST,
	LOWER_OPTION_CLASSIFY,
	LOWER_OPTION_TRANSFORM,
	LOWER_OPTION_KERNEL,
	LOWER_OPTION_EMIT,
	LOWER_OPTION_PRINT_AFTER,
	LOWER_OPTION_VERIFY,
	LOWER_OPTION_KEEP_GOING,
	LOWER_OPTION_LIFT,
	LOWER_OPTION_STATS,
	LOWER_OPTION_COROUTINES,
	LOWER_OPTION_TIMEOUT,
	LOWER_OPTION_PTX_VERSION,
	LOWER_OPTION_MEMORY,
	LOWER_OPTION_JOBS,
	LOWER_OPTION_LIBDEVICE,
	LOWER_OPTION_ROCM,
	LOWER_OPTION_END,
};

/* What --emit calls each enum tally_emit. */
enum { LOWER_EMITS = TALLY_EMIT_IR + 1 };
extern const char *const lower_emits[LOWER_EMITS];

/*
 * lower_check.c: what `options` ask for has to fit together; sets lower.target. `rows` are the
 * options by number: messages name them. False with an error.
 */
bool lower_options_check(struct lower_options *options, const struct tally_option *rows,
			 struct tally_error *error);

#endif
