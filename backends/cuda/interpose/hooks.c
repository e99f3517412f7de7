/* SPDX-License-Identifier: Apache-2.0 */
/* The hook table's rows and the lookups over them; see hooks.h. */
#include "backends/cuda/interpose/hooks.h"

#include <string.h>

#define ROW(base_, symbol_, since_, per_thread_)                                                   \
	[TALLY_HOOK_##symbol_] = {base_, #symbol_, (void *)symbol_, since_, per_thread_},
#define ROW_PLAIN(base, symbol, since) ROW(base, symbol, since, false)
#define ROW_PTSZ(base, symbol, since)                                                              \
	ROW(base, symbol, since, false)                                                            \
	ROW(base, symbol##_ptsz, since, true)
#define ROW_PTDS(base, symbol, since)                                                              \
	ROW(base, symbol, since, false)                                                            \
	ROW(base, symbol##_ptds, since, true)

const struct tally_hook_row tally_hook_rows[TALLY_HOOK_COUNT] = {
#define HOOK(kind, base, version, since, flavour, stream, bytes, parameters, arguments)            \
	ROW_##flavour(#base, base##version, since)
#include "backends/cuda/interpose/hooks.def"
};

static const char *const uses[] = {
#define USES(symbol) #symbol,
#include "backends/cuda/interpose/hooks.def"
};

/* The names are few and asked for once each: a walk needs no second, sorted copy of the table. */
enum tally_hook tally_hook_by_symbol(const char *symbol)
{
	unsigned i;

	for (i = 0; i < TALLY_HOOK_COUNT; i++)
		if (!strcmp(tally_hook_rows[i].symbol, symbol))
			break;
	return i;
}

enum tally_hook tally_hook_by_request(const char *base, int cuda_version, cuuint64_t flags)
{
	bool wanted = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	enum tally_hook best = TALLY_HOOK_COUNT;
	int since = 0;

	for (unsigned i = 0; i < TALLY_HOOK_COUNT; i++) {
		const struct tally_hook_row *row = &tally_hook_rows[i];

		/* Rows of one flavour have no per-thread twin: take them whatever is wanted, but
		 * let a twin of the same version win. */
		if (row->since > cuda_version || row->since < since ||
		    (row->per_thread && !wanted) || strcmp(row->base, base))
			continue;
		best = i;
		since = row->since;
	}
	return best;
}

const char *tally_driver_symbol(enum tally_hook function)
{
	return function < TALLY_HOOK_COUNT ? tally_hook_rows[function].symbol
					   : uses[function - TALLY_HOOK_COUNT];
}
