/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fuzz targets and what they share: see fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const struct fuzz_target fuzz_targets[] = {
#define X(name, what) {#name, what, fuzz_run_##name},
	FUZZ_TARGETS(X)
#undef X
		{0},
};

const struct fuzz_target *fuzz_target_find(const char *name)
{
	for (const struct fuzz_target *t = fuzz_targets; name && t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

bool fuzz_take(struct fuzz_input *input, void *to, size_t size)
{
	if (input->size < size)
		return false;
	memcpy(to, input->data, size);
	input->data += size;
	input->size -= size;
	return true;
}

void fuzz_check(bool ok, const struct tally_error *error)
{
	if (ok == tally_failed(error))
		abort();
}
