/* SPDX-License-Identifier: Apache-2.0 */
/* What `tally profile` shows, in its two forms. */
#ifndef TALLY_CLI_PROFILE_H
#define TALLY_CLI_PROFILE_H

#include "base/buffer.h"
#include "profiler/report.h"
#include "profiler/store.h"

struct tally_profile_view {
	const char *source; /* the store's folder, or the program */
	/* Those of one origin stand together, in the order in which they are to be shown. */
	struct tally_stored *kernels;
	size_t count;
	size_t most;	/* shown of each origin; 0: all */
	char other[64]; /* a device that was not asked for, "" when there is none */
	const struct tally_report *report; /* of a program; NULL: the store */
};

/* Appends tables for people, or one JSON object. */
void tally_profile_text(const struct tally_profile_view *view, struct tally_buffer *out);
void tally_profile_json(const struct tally_profile_view *view, struct tally_buffer *out);

/* How many kernels from `first` on have its origin. */
size_t tally_profile_group(const struct tally_profile_view *view, size_t first);

#endif
