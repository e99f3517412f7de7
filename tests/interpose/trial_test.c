/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial of patched code (opaque_trial.c) on a device that does as it should and on devices that
 * do not: the driver is the CPU device's, but for the compiler that it lacks; what patching would
 * make is patched_kernels.c, with a fault or without. trial.sh gives the compiler.
 */
#include "tests/interpose/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"

static char code[] = "what the driver's compiler makes of the text";

/* The driver's compiler: as NVIDIA's does, it wants a context. */
static CUresult create(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
	CUcontext current = NULL;

	(void)count, (void)options, (void)values;
	*state = (CUlinkState)code;
	return cuCtxGetCurrent(&current) || !current ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUresult add(CUlinkState state, CUjitInputType type, void *data, size_t size,
		    const char *name, unsigned int count, CUjit_option *options, void **values)
{
	(void)state, (void)name, (void)count, (void)options, (void)values;
	return type == CU_JIT_INPUT_PTX && strlen(data) + 1 == size ? CUDA_SUCCESS
								    : CUDA_ERROR_INVALID_PTX;
}

static CUresult complete(CUlinkState state, void **image, size_t *size)
{
	*image = state;
	*size = sizeof code;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUlinkState state)
{
	return state == (CUlinkState)code ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void instead(enum tally_hook function, void *by)
{
	atomic_store(&tally_driver_table[function], by);
}

int main(int argc, char **argv)
{
	CUdevice ordinal;
	CUcontext none;
	bool works;

	(void)argc;
	instead(TALLY_HOOK_cuLinkCreate_v2, (void *)create);
	instead(TALLY_HOOK_cuLinkAddData_v2, (void *)add);
	instead(TALLY_HOOK_cuLinkComplete, (void *)complete);
	instead(TALLY_HOOK_cuLinkDestroy, (void *)destroy);
	if (cuInit(0) || cuDeviceGet(&ordinal, 0) || cuDevicePrimaryCtxRetain(&context, ordinal))
		return 2;
	/* As on the thread that compiles: nothing is current. */
	tally_enter();
	works = tally_opaque_works(context, "sm_90");
	if (works != tally_opaque_works(context, "sm_90") || cuCtxGetCurrent(&none) || none)
		return 3;
	tally_leave();
	puts(works ? "works" : "does not");
	/* No trial begins once the program leaves. */
	tally_opaque_leave();
	if (tally_opaque_works(context, "sm_80"))
		return 4;
	return argv[1] && strcmp(argv[1], works ? "works" : "does not");
}
