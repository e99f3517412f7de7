/* SPDX-License-Identifier: Apache-2.0 */
/* tally.math.* on NVIDIA GPUs: libdevice's functions. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "backends/cuda_toolkit.h"
#include "base/buffer.h"
#include "ir_passes/ir.h"

/* "tally.math.erf.f32" is libdevice's __nv_erff, "tally.math.erf.f64" its __nv_erf. */
static void libdevice_name(const char *operation, char *name, size_t size)
{
	const char *base = operation + strlen(TALLY_MATHS), *dot = strchr(base, '.');

	snprintf(name, size, "__nv_%.*s%s", (int)(dot ? dot - base : (long)strlen(base)), base,
		 dot && !strcmp(dot, ".f32") ? "f" : "");
}

/* Where toolkits put it. */
static const char *const below[] = {"nvvm/libdevice/libdevice.10.bc", "libdevice/libdevice.10.bc",
				    NULL};

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
		if (!tally_cuda_toolkit_file(below, path, sizeof path))
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
