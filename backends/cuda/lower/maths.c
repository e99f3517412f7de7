/* SPDX-License-Identifier: Apache-2.0 */
/* tally.math.* on NVIDIA GPUs: libdevice's functions. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "base/buffer.h"
#include "ir_passes/ir.h"

/* "tally.math.erf.f32" is libdevice's __nv_erff, "tally.math.erf.f64" its __nv_erf. */
static void libdevice_name(const char *operation, char *name, size_t size)
{
	const char *base = operation + strlen(TALLY_MATHS), *dot = strchr(base, '.');

	snprintf(name, size, "__nv_%.*s%s", (int)(dot ? dot - base : (long)strlen(base)), base,
		 dot && !strcmp(dot, ".f32") ? "f" : "");
}

/* Where toolkits put it, below the folder that a variable names or a fixed one. */
static const char *const below[] = {"/nvvm/libdevice/libdevice.10.bc",
				    "/libdevice/libdevice.10.bc"};
static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
static const char *const folders[] = {"/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda",
				      "/usr/lib/nvidia-cuda-toolkit"};

static bool try_folder(const char *folder, char *path, size_t size)
{
	for (size_t k = 0; k < sizeof below / sizeof *below; k++) {
		if (snprintf(path, size, "%s%s", folder, below[k]) < (int)size &&
		    access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* The build tree's own toolkit: build/bin/tally-lower beside build/cuda. */
static bool try_beside_program(char *path, size_t size)
{
	char program[PATH_MAX], folder[PATH_MAX + 16];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	char *slash;

	if (length <= 0)
		return false;
	program[length] = '\0';
	for (int up = 0; up < 2; up++) {
		slash = strrchr(program, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	snprintf(folder, sizeof folder, "%s/cuda", program);
	return try_folder(folder, path, size);
}

static bool find_libdevice(char *path, size_t size)
{
	for (size_t k = 0; k < sizeof variables / sizeof *variables; k++) {
		const char *folder = getenv(variables[k]);

		if (folder && *folder && try_folder(folder, path, size))
			return true;
	}
	if (try_beside_program(path, size))
		return true;
	for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
		if (try_folder(folders[k], path, size))
			return true;
	return false;
}

/* A function of libdevice's name that the module still has without a body. */
static LLVMValueRef find_open(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		if (LLVMIsDeclaration(function) && !strncmp(tally_name(function), "__nv_", 5) &&
		    LLVMGetFirstUse(function))
			return function;
	return NULL;
}

bool tally_cuda_maths(LLVMModuleRef module, const char *libdevice, struct tally_error *error)
{
	char path[PATH_MAX];
	LLVMValueRef open;

	if (!tally_lower_rename_maths(module, libdevice_name))
		return true;
	if (!libdevice) {
		if (!find_libdevice(path, sizeof path))
			return tally_fail(error,
					  "%s needs libdevice.10.bc, which is not in $CUDA_HOME or "
					  "/usr/local/cuda: install the CUDA compiler (package "
					  "cuda-nvcc or nvidia-cuda-toolkit) or name it with "
					  "--libdevice",
					  tally_name(find_open(module)));
		libdevice = path;
	}
	if (!tally_lower_link_bitcode(module, libdevice, error))
		return false;
	open = find_open(module);
	if (open)
		return tally_fail(error, "libdevice (%s) has no function %s", libdevice,
				  tally_name(open));
	return true;
}
