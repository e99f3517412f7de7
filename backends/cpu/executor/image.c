/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled modules: loading a shared object that the CPU lowering wrote, and names in it. */
#include <dlfcn.h>
#include <string.h>

#include "backends/cpu/executor.h"

bool tally_cpu_image_open(const char *path, struct tally_cpu_image *image,
			  struct tally_error *error)
{
	const struct tally_cpu_module *module;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return tally_fail(error, "cannot load compiled kernels: %s", dlerror());
	module = dlsym(handle, TALLY_CPU_MODULE_SYMBOL);
	if (!module) {
		dlclose(handle);
		return tally_fail(error, "%s holds no compiled kernels (no %s)", path,
				  TALLY_CPU_MODULE_SYMBOL);
	}
	if (module->version != TALLY_CPU_ABI_VERSION) {
		uint32_t version = module->version;

		dlclose(handle);
		return tally_fail(error, "%s: kernel ABI version %u, this Tally has %u", path,
				  version, TALLY_CPU_ABI_VERSION);
	}
	image->handle = handle;
	image->module = module;
	return true;
}

void tally_cpu_image_close(struct tally_cpu_image *image)
{
	if (image->handle)
		dlclose(image->handle);
	image->handle = NULL;
	image->module = NULL;
}

const struct tally_cpu_kernel *tally_cpu_image_kernel(const struct tally_cpu_image *image,
						      const char *name)
{
	for (uint32_t i = 0; i < image->module->kernel_count; i++)
		if (!strcmp(image->module->kernels[i].name, name))
			return &image->module->kernels[i];
	return NULL;
}

const struct tally_cpu_variable *tally_cpu_image_variable(const struct tally_cpu_image *image,
							  const char *name)
{
	for (uint32_t i = 0; i < image->module->variable_count; i++)
		if (!strcmp(image->module->variables[i].name, name))
			return &image->module->variables[i];
	return NULL;
}
