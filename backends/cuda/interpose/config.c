/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that `tally run` sets; docs/man/libtally.7 is their reference. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/state.h"
#include "base/number.h"
#include "sched/policy_slo.h"

#define MOST_DEPTH     1000000
#define MOST_AHEAD     65536
#define LEAST_BOUND_US 0.001
#define MOST_BOUND_US  1e6
#define MOST_GRACE_US  (TALLY_GRACE_MOST_NS / 1000)

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

static const char *const opaques[] = {
	[TALLY_OPAQUE_OFF] = "off", [TALLY_OPAQUE_OPEN] = "open", [TALLY_OPAQUE_ALL] = "all", NULL};
static const char *const guards[] = {"0", "1", NULL};

/* Each is complained about on its own, once. */
enum variable {
	PRIORITY,
	SLO,
	GRACE,
	DEPTH,
	AHEAD,
	BOUND,
	GUARD,
	LEVEL,
	COMPILE,
	GRAPHS,
	OPAQUE,
	VARIABLES
};
static const char *const names[VARIABLES] = {
	[PRIORITY] = "TALLY_PRIORITY", [SLO] = "TALLY_SLO",	 [GRACE] = "TALLY_GRACE_US",
	[AHEAD] = "TALLY_AHEAD",       [DEPTH] = "TALLY_DEPTH",	 [BOUND] = "TALLY_BOUND_US",
	[GUARD] = "TALLY_GUARD",       [LEVEL] = "TALLY_LEVEL",	 [COMPILE] = "TALLY_COMPILE",
	[GRAPHS] = "TALLY_GRAPHS",     [OPAQUE] = "TALLY_OPAQUE"};

static void complain(enum variable v, const char *text, const char *wanted, const char *then)
{
	static _Atomic bool said[VARIABLES];

	tally_warn_once(&said[v], "%s is \"%s\", not %s; %s", names[v], text, wanted, then);
}

static const char is_default[] = "the default is used";

/* Empty counts as not set. */
static const char *set(const char *text)
{
	return text && *text ? text : NULL;
}

/* Which of `words` the variable is, and `otherwise` when it is none of them. */
static int word(enum variable v, const char *text, const char *const words[], int otherwise)
{
	char known[64] = "";
	size_t length = 0;

	if (!text)
		return otherwise;
	for (int i = 0; words[i]; i++) {
		if (!strcmp(text, words[i]))
			return i;
		length += (size_t)snprintf(known + length, sizeof known - length, "%s%s",
					   !i		  ? ""
					   : words[i + 1] ? ", "
							  : " or ",
					   words[i]);
	}
	complain(v, text, known, is_default);
	return otherwise;
}

void tally_config_read(struct tally_config *config)
{
	const char *text = set(getenv("TALLY_PRIORITY"));
	unsigned long depth = 2, ahead = 1024;
	double bound_us = 0, grace_us = 0;

	*config = (struct tally_config){.name = getenv("TALLY_NAME")};
	if (!config->name || !*config->name)
		config->name = program_invocation_short_name;
	config->depth = (unsigned)depth;
	if (!text)
		return;
	if (!tally_priority_parse(text, &config->priority)) {
		complain(PRIORITY, text, "high, best-effort or a whole number",
			 "the program runs unscheduled");
		return;
	}
	config->scheduled = true;
	config->settles = config->priority >= TALLY_PRIORITY_HIGH;
	if (config->settles && (text = set(getenv("TALLY_SLO"))) &&
	    !(config->slo = tally_slo_budget(text)))
		complain(SLO, text, "a number from 1.001 to 100",
			 "there is no budget, lower priorities always give way");
	/* Who may be stopped is idle whenever it waits for the device: its pauses mean nothing. */
	config->grace_ns = config->settles ? TALLY_GRACE_LEARNT : 0;
	if ((text = set(getenv("TALLY_GRACE_US"))) && strcmp(text, "auto") != 0) {
		if (tally_parse_number(text, 0, MOST_GRACE_US, &grace_us))
			config->grace_ns = (uint64_t)(grace_us * 1000);
		else
			complain(GRACE, text, "auto or a number of microseconds from 0 to 10000",
				 is_default);
	}
	config->guards = word(GUARD, set(getenv("TALLY_GUARD")), guards, !config->settles);
	if ((text = set(getenv("TALLY_DEPTH"))) && !tally_parse_whole(text, 1, MOST_DEPTH, &depth))
		complain(DEPTH, text, "a whole number from 1 to 1000000", is_default);
	config->depth = (unsigned)depth;
	if ((text = set(getenv("TALLY_AHEAD"))) && !tally_parse_whole(text, 0, MOST_AHEAD, &ahead))
		complain(AHEAD, text, "a whole number from 0 to 65536", is_default);
	/* Whose depth nobody limits never has to wait. */
	config->ahead = config->guards && !config->settles ? (unsigned)ahead : 0;
	if ((text = set(getenv("TALLY_BOUND_US"))) &&
	    !tally_parse_number(text, LEAST_BOUND_US, MOST_BOUND_US, &bound_us))
		complain(BOUND, text, "a number of microseconds from 0.001 to 1000000", is_default);
	config->bound_ns = (uint64_t)(bound_us * 1000);
	config->level = word(LEVEL, set(getenv("TALLY_LEVEL")), levels, TALLY_RUN_AUTO);
	config->compile = word(COMPILE, set(getenv("TALLY_COMPILE")), compiles, TALLY_COMPILE_AUTO);
	config->opaque = word(OPAQUE, set(getenv("TALLY_OPAQUE")), opaques, TALLY_OPAQUE_OPEN);
	config->graphs = word(GRAPHS, set(getenv("TALLY_GRAPHS")), graphs, TALLY_GRAPHS_AUTO);
}
