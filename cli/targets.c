/* SPDX-License-Identifier: Apache-2.0 */
/* The table of lowerings that tally-lower offers: one line a vendor. */
#include "cli/targets.h"

#include <string.h>

const struct tally_lowering *const tally_lowerings[] = {
#ifdef TALLY_HAVE_CUDA_LOWER
	&tally_lowering_cuda,
#endif
#ifdef TALLY_HAVE_HIP_LOWER
	&tally_lowering_hip,
#endif
#ifdef TALLY_HAVE_CPU_LOWER
	&tally_lowering_cpu,
#endif
	NULL,
};

void tally_targets_print(struct tally_buffer *out, const char *separator)
{
	const char *between = "";

	for (size_t k = 0; tally_lowerings[k]; k++)
		for (const char *const *t = tally_lowerings[k]->targets; *t; t++) {
			tally_buffer_print(out, "%s%s", between, *t);
			between = separator;
		}
}

const struct tally_lowering *tally_lowering_find(const char *target, struct tally_error *error)
{
	struct tally_buffer known = {0};

	for (size_t k = 0; tally_lowerings[k]; k++)
		for (const char *const *t = tally_lowerings[k]->targets; *t; t++)
			if (!strcmp(*t, target))
				return tally_lowerings[k];
	tally_targets_print(&known, ", ");
	tally_fail(error, "unknown target '%s' (known: %s)", target, known.data);
	tally_buffer_free(&known);
	return NULL;
}
