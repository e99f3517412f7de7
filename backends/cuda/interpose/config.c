/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that `tally run` sets; docs/man/libtally.7 is their reference. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/state.h"
#include "sched/policy_slo.h"

static bool priority(const char *text, int *value)
{
	char *end;
	long n;

	if (!strcmp(text, "high")) {
		*value = TALLY_PRIORITY_HIGH;
		return true;
	}
	if (!strcmp(text, "best-effort")) {
		*value = TALLY_PRIORITY_BEST_EFFORT;
		return true;
	}
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || end == text || n < -1000000 || n > 1000000)
		return false;
	*value = (int)n;
	return true;
}

static const char *const levels[] = {
	[TALLY_RUN_AUTO] = "auto", [TALLY_RUN_GATE] = "gate", [TALLY_RUN_GUARD] = "guard", NULL};
static const char *const compiles[] = {[TALLY_COMPILE_AUTO] = "auto",
				       [TALLY_COMPILE_WAIT] = "wait",
				       [TALLY_COMPILE_BACKGROUND] = "background",
				       NULL};
static const char *const graphs[] = {[TALLY_GRAPHS_AUTO] = "auto",
				     [TALLY_GRAPHS_WHOLE] = "whole",
				     [TALLY_GRAPHS_NODES] = "nodes",
				     NULL};

/* Which of `words` the variable has, and `otherwise` when it has none of them. */
static int word(const char *variable, const char *text, const char *const words[], int otherwise)
{
	static _Atomic bool said;

	if (!text || !*text)
		return otherwise;
	for (int i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	tally_warn_once(&said, "%s is \"%s\", which is no known value; the default is used",
			variable, text);
	return otherwise;
}

void tally_config_read(struct tally_config *config)
{
	static _Atomic bool said, said_slo;
	const char *text = getenv("TALLY_PRIORITY"), *depth = getenv("TALLY_DEPTH");
	const char *slo = getenv("TALLY_SLO");
	const char *guard = getenv("TALLY_GUARD"), *bound = getenv("TALLY_BOUND_US");

	*config = (struct tally_config){.depth = 2, .name = getenv("TALLY_NAME")};
	if (!config->name || !*config->name)
		config->name = program_invocation_short_name;
	if (!text || !*text)
		return;
	if (!priority(text, &config->priority)) {
		tally_warn_once(&said,
				"TALLY_PRIORITY is \"%s\": neither a number, \"high\" nor "
				"\"best-effort\"; the program runs unscheduled",
				text);
		return;
	}
	config->scheduled = true;
	if (slo && *slo && config->priority >= TALLY_PRIORITY_HIGH &&
	    !(config->slo = tally_slo_budget(slo)))
		tally_warn_once(&said_slo,
				"TALLY_SLO is \"%s\", not a number from 1.001 to 100: "
				"there is no budget, lower priorities always give way",
				slo);
	config->settles = config->priority >= TALLY_PRIORITY_HIGH;
	config->guards = guard && *guard ? strcmp(guard, "0") : !config->settles;
	if (depth && atoi(depth) > 0)
		config->depth = (unsigned)atoi(depth);
	if (bound && atof(bound) > 0)
		config->bound_ns = (uint64_t)(atof(bound) * 1000);
	config->level = word("TALLY_LEVEL", getenv("TALLY_LEVEL"), levels, TALLY_RUN_AUTO);
	config->compile =
		word("TALLY_COMPILE", getenv("TALLY_COMPILE"), compiles, TALLY_COMPILE_AUTO);
	config->graphs = word("TALLY_GRAPHS", getenv("TALLY_GRAPHS"), graphs, TALLY_GRAPHS_AUTO);
}
