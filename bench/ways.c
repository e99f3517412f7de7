/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which a program can meet libtally.so; the first is not at all. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/device.h"

const char *const bench_way_names[BENCH_WAYS] = {
	"without libtally.so",
	"preloaded without a priority",
	"preloaded as high priority",
	"preloaded as best effort",
	"preloaded as best effort without tallyd",
};

const char *const *bench_way_environment(int way)
{
	static char preload[4096];
	static const char *const environments[BENCH_WAYS][4] = {
		{"LD_PRELOAD", "TALLY_PRIORITY"},
		{preload, "TALLY_PRIORITY"},
		{preload, "TALLY_PRIORITY=high"},
		{preload, "TALLY_PRIORITY=best-effort"},
		{preload, "TALLY_PRIORITY=best-effort", "TALLY_SOCKET=/nonexistent/tallyd.sock"},
	};
	const char *library = getenv("BENCH_PRELOAD"), *socket = getenv("TALLY_SOCKET");

	if (!library || access(library, R_OK) || !socket || access(socket, R_OK))
		bench_fail("start it by bench/run.sh, which starts a tallyd of its own");
	snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
	return environments[way];
}
