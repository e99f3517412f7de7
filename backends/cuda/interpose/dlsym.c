/* SPDX-License-Identifier: Apache-2.0 */
/* What dlsym (dlsym.S) answers: our interposers for the names of the table. */
#include <dlfcn.h>
#include <string.h>

#include "backends/cuda/interpose/resolve.h"

struct tally_answer {
	void *address;
	void *go_on; /* the dlsym to jump to instead, or NULL: `address` is the answer */
};

struct tally_answer tally_dlsym_answer(void *handle, const char *name);

static bool is_driver(const void *address)
{
	Dl_info info;
	const char *slash;

	if (!dladdr(address, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return !strncmp(slash ? slash + 1 : info.dli_fname, "libcuda.so", 10);
}

struct tally_answer tally_dlsym_answer(void *handle, const char *name)
{
	void *(*next)(void *, const char *) = tally_next_dlsym();
	struct tally_answer on = {NULL, (void *)next};
	enum tally_hook hook;
	void *found;

	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT)
		return on;
	hook = tally_hook_by_symbol(name);
	if (hook == TALLY_HOOK_COUNT)
		return on;
	if (handle == RTLD_DEFAULT) {
		/* The global scope holds our own symbol even in a program without CUDA, which may
		 * be asking whether there is any: then the honest answer is the one (and the
		 * dlerror) that it would have got without us. */
		if (tally_driver_loaded())
			return on;
		return (struct tally_answer){next(RTLD_NEXT, name), NULL};
	}
	found = next(handle, name);
	if (found == tally_hook_rows[hook].interposer && !tally_driver_loaded())
		found = next(RTLD_NEXT, name);
	if (found && is_driver(found))
		found = tally_hook_rows[hook].interposer;
	return (struct tally_answer){found, NULL};
}
