/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors through which kernels come in. A program that may have to stop in the middle of a
 * launch gets the transformed image, which holds the original kernels too, so that its device
 * variables stay one set. Where that fails the original is loaded and its kernels run whole.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "base/file.h"
#include "cache/cache.h"

#define TRANSFORM "slice,guard"

/* What the current (or, before there is one, the first) device runs: "sm_90", "x86-64". */
static bool find_target(char *target, size_t size)
{
	CUdevice device = 0;
	int major = 0, minor = 0;

	if (tally_process.cpu_target) {
		snprintf(target, size, "%s", tally_process.cpu_target());
		return true;
	}
	if (TALLY_DRIVER(cuCtxGetDevice)(&device))
		device = 0;
	if (TALLY_DRIVER(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
					       device) ||
	    TALLY_DRIVER(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
					       device))
		return false;
	snprintf(target, size, "sm_%d%d", major, minor);
	return true;
}

/* The bytes at `path`, followed by a NUL (PTX is text). The caller frees them. */
static void *read_image(const char *path, struct tally_error *error)
{
	struct tally_buffer buffer = {0};

	if (!tally_file_read(path, &buffer, error) || buffer.failed || !buffer.size) {
		tally_fail(error, "cannot read %s", path);
		tally_buffer_free(&buffer);
		return NULL;
	}
	return buffer.data;
}

/* The transformed image to load instead, or NULL. Says why once, and for `size` 0 finds it out. */
static void *transform(const void *image, size_t size)
{
	static _Atomic bool said;
	struct tally_error error = {0};
	struct tally_cache_request request = {.transform = TRANSFORM};
	char target[32], path[PATH_MAX];
	void *transformed = NULL;

	if (!image || !tally_process.config.guards || !find_target(target, sizeof target))
		return NULL;
	request.target = target;
	request.image = image;
	request.size = size;
	if (!size && !tally_image_size(image, &request.image, &request.size))
		tally_fail(&error, "an image of unknown kind");
	else if (tally_cache_get(&request, path, &error))
		transformed = read_image(path, &error);
	if (!transformed)
		tally_warn_once(&said,
				"kernels of this program cannot be stopped between blocks, only "
				"between launches: %s",
				error.message);
	return transformed;
}

/* The same for an image in a file. */
static void *transform_file(const char *path)
{
	struct tally_buffer buffer = {0};
	struct tally_error error = {0};
	void *transformed = NULL;

	if (path && tally_process.config.guards && tally_file_read(path, &buffer, &error))
		transformed = transform(buffer.data, buffer.size);
	tally_buffer_free(&buffer);
	return transformed;
}

/* Whether loading the transformed image worked; then its kernels are known from here on. */
static bool loaded(CUresult result, void *owner, void *transformed)
{
	static _Atomic bool said;

	if (result) {
		tally_warn_once(&said,
				"the driver refused a transformed image (error %d); its kernels "
				"can be stopped only between launches",
				result);
		free(transformed);
		return false;
	}
	tally_module_add(owner, NULL, transformed);
	return true;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	bool ours = tally_enter() && tally_on();
	void *other = ours ? transform_file(fname) : NULL;
	CUresult result = CUDA_ERROR_UNKNOWN;

	if (other)
		result = TALLY_REAL(cuModuleLoadData)(module, other);
	if (!other || !loaded(result, *module, other))
		result = TALLY_REAL(cuModuleLoad)(module, fname);
	tally_leave();
	return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	bool ours = tally_enter() && tally_on();
	void *other = ours ? transform(image, 0) : NULL;
	CUresult result = CUDA_ERROR_UNKNOWN;

	if (other)
		result = TALLY_REAL(cuModuleLoadData)(module, other);
	if (!other || !loaded(result, *module, other))
		result = TALLY_REAL(cuModuleLoadData)(module, image);
	tally_leave();
	return result;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
			    CUjit_option *options, void **optionValues)
{
	bool ours = tally_enter() && tally_on();
	void *other = ours ? transform(image, 0) : NULL;
	CUresult result = CUDA_ERROR_UNKNOWN;

	if (other)
		result = TALLY_REAL(cuModuleLoadDataEx)(module, other, numOptions, options,
							optionValues);
	if (!other || !loaded(result, *module, other))
		result = TALLY_REAL(cuModuleLoadDataEx)(module, image, numOptions, options,
							optionValues);
	tally_leave();
	return result;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	bool ours = tally_enter() && tally_on();
	void *other = ours ? transform(fatCubin, 0) : NULL;
	CUresult result = CUDA_ERROR_UNKNOWN;

	if (other)
		result = TALLY_REAL(cuModuleLoadData)(module, other);
	if (!other || !loaded(result, *module, other))
		result = TALLY_REAL(cuModuleLoadFatBinary)(module, fatCubin);
	tally_leave();
	return result;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
			   void **jitOptionsValues, unsigned int numJitOptions,
			   CUlibraryOption *libraryOptions, void **libraryOptionValues,
			   unsigned int numLibraryOptions)
{
	bool ours = tally_enter() && tally_on();
	void *other = ours ? transform(code, 0) : NULL;
	CUresult result = CUDA_ERROR_UNKNOWN;

	if (other)
		result = TALLY_REAL(cuLibraryLoadData)(library, other, jitOptions, jitOptionsValues,
						       numJitOptions, libraryOptions,
						       libraryOptionValues, numLibraryOptions);
	if (!other || !loaded(result, *library, other))
		result = TALLY_REAL(cuLibraryLoadData)(library, code, jitOptions, jitOptionsValues,
						       numJitOptions, libraryOptions,
						       libraryOptionValues, numLibraryOptions);
	tally_leave();
	return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
			       void **jitOptionsValues, unsigned int numJitOptions,
			       CUlibraryOption *libraryOptions, void **libraryOptionValues,
			       unsigned int numLibraryOptions)
{
	bool ours = tally_enter() && tally_on();
	void *other = ours ? transform_file(fileName) : NULL;
	CUresult result = CUDA_ERROR_UNKNOWN;

	if (other)
		result = TALLY_REAL(cuLibraryLoadData)(library, other, jitOptions, jitOptionsValues,
						       numJitOptions, libraryOptions,
						       libraryOptionValues, numLibraryOptions);
	if (!other || !loaded(result, *library, other))
		result = TALLY_REAL(cuLibraryLoadFromFile)(
			library, fileName, jitOptions, jitOptionsValues, numJitOptions,
			libraryOptions, libraryOptionValues, numLibraryOptions);
	tally_leave();
	return result;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	bool ours = tally_enter() && tally_on();
	CUresult result = TALLY_REAL(cuModuleGetFunction)(hfunc, hmod, name);

	if (ours && !result && tally_module_transformed(hmod))
		tally_kernel_add(*hfunc, (struct tally_kernel_origin){.owner = hmod}, name);
	tally_leave();
	return result;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	bool ours = tally_enter() && tally_on();
	CUresult result = TALLY_REAL(cuLibraryGetKernel)(pKernel, library, name);

	if (ours && !result && tally_module_transformed(library))
		tally_kernel_add(*pKernel,
				 (struct tally_kernel_origin){library, .in_library = true,
							      .is_kernel = true},
				 name);
	tally_leave();
	return result;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	bool ours = tally_enter() && tally_on();
	CUresult result = TALLY_REAL(cuLibraryGetModule)(pMod, library);

	if (ours && !result && tally_module_transformed(library))
		tally_module_add(*pMod, library, NULL);
	tally_leave();
	return result;
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	bool ours = tally_enter() && tally_on();
	CUresult result = TALLY_REAL(cuKernelGetFunction)(pFunc, kernel);
	struct tally_kernel *k = ours && !result ? tally_kernel_find(kernel) : NULL;

	if (k)
		tally_kernel_add(*pFunc, (struct tally_kernel_origin){k->owner, .in_library = true},
				 k->name);
	tally_leave();
	return result;
}

/* Both doors out: whatever runs is finished first, the image that was kept goes with the module. */
#define UNLOAD(symbol, type)                                                                       \
	CUresult symbol(type module)                                                               \
	{                                                                                          \
		CUresult result;                                                                   \
		void *image = NULL;                                                                \
                                                                                                   \
		if (tally_enter() && tally_on()) {                                                 \
			tally_drain_all();                                                         \
			image = tally_module_forget(module);                                       \
		}                                                                                  \
		result = TALLY_REAL(symbol)(module);                                               \
		free(image);                                                                       \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
UNLOAD(cuModuleUnload, CUmodule)
UNLOAD(cuLibraryUnload, CUlibrary)
