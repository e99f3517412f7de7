/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which a program can meet libtally.so; the first is not at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/device.h"

const char *const bench_way_names[BENCH_ALL_WAYS] = {
	"without libtally.so",
	"preloaded without a priority",
	"preloaded as high priority",
	"preloaded as best effort",
	"preloaded as best effort without tallyd",
	"preloaded as best effort, every launch guarded",
	"preloaded as high priority, traced",
	"preloaded as best effort, traced",
};

const char *const *bench_way_environment(int way)
{
	static char preload[4096];
	static const char *const environments[BENCH_ALL_WAYS][5] = {
		{"LD_PRELOAD", "TALLY_PRIORITY"},
		{preload, "TALLY_PRIORITY"},
		{preload, "TALLY_PRIORITY=high"},
		{preload, "TALLY_PRIORITY=best-effort"},
		{preload, "TALLY_PRIORITY=best-effort", "TALLY_SOCKET=/nonexistent/tallyd.sock"},
		{preload, "TALLY_PRIORITY=best-effort", "TALLY_LEVEL=guard"},
		{preload, "TALLY_PRIORITY=high"},
		{preload, "TALLY_PRIORITY=best-effort"},
	};
	const char *library = getenv("BENCH_PRELOAD"), *socket = getenv("TALLY_SOCKET");

	if (!library || access(library, R_OK) || !socket || access(socket, R_OK))
		bench_fail("start it by bench/run.sh, which starts a tallyd of its own");
	snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
	return environments[way];
}

char **bench_way_arguments(int way, char **program)
{
	static char tally[4096], *arguments[16];
	unsigned n = 0;

	if (way < BENCH_TRACED_HIGH)
		return program;
	const char *library = getenv("BENCH_PRELOAD"), *slash = strrchr(library, '/');
	snprintf(tally, sizeof tally, "%.*s/../bin/tally", (int)(slash - library), library);
	arguments[n++] = tally;
	arguments[n++] = "trace";
	arguments[n++] = "-o";
	arguments[n++] = "/dev/null";
	/* All that is recorded is read; the memory for it is not what is measured. */
	arguments[n++] = "--events";
	arguments[n++] = "100000";
	arguments[n++] = "--";
	while (*program)
		arguments[n++] = *program++;
	arguments[n] = NULL;
	return arguments;
}
