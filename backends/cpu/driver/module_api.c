/* SPDX-License-Identifier: Apache-2.0 */
/* The API's functions about modules and libraries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/module.h"

/* JIT options: only the logs mean something here; they are filled when the compiler refuses. */
static void fill_logs(unsigned count, CUjit_option *options, void **values,
		      const struct tally_error *why)
{
	char *error_log = NULL, text[1400] = "";
	size_t size = 0;
	int size_at = -1;

	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
			error_log = values[i];
		} else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
			size = (size_t)values[i] & UINT32_MAX;
			size_at = (int)i;
		} else if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
			values[i] = NULL;
		}
	}
	if (tally_failed(why) && why->line)
		snprintf(text, sizeof text, "%s:%u:%u: error: %s\n", why->file, why->line,
			 why->column, why->message);
	else if (tally_failed(why))
		snprintf(text, sizeof text, "error: %s\n", why->message);
	if (size_at < 0)
		return;
	size_t length = strlen(text);
	if (error_log && size) {
		length = length < size ? length : size - 1;
		memcpy(error_log, text, length);
		error_log[length] = '\0';
	}
	values[size_at] = (void *)length;
}

/* PTX is compiled at once: a program that gives it wants to know whether it is right. */
static bool wants_eager(const void *image, unsigned options)
{
	return options ||
	       (image && *(const char *)image && strchr(" \t\r\n/.", *(const char *)image));
}

static CUresult load(CUmodule *result, const void *image, unsigned count, CUjit_option *options,
		     void **values)
{
	struct tally_error why = {0};
	struct module *module = NULL;

	if (!result || (count && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult error = module_new(image, 0, false, wants_eager(image, count), &why, &module);
	fill_logs(count, options, values, &why);
	if (!error)
		*result = (CUmodule)module;
	return error;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
			    CUjit_option *options, void **optionValues)
{
	return load(module, image, numOptions, options, optionValues);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return load(module, fatCubin, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	struct tally_error why = {0};
	struct module *loaded;

	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult error = module_new_from_file(fname, false, true, &why, &loaded);
	if (!error)
		*module = (CUmodule)loaded;
	return error;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	struct module *module;
	CUresult error = module_check(hmod, false, &module);

	if (!error && module->library)
		error = CUDA_ERROR_INVALID_HANDLE; /* belongs to its library */
	return error ? error : module_delete(module);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	const char *text = getenv("CUDA_MODULE_LOADING");
	*mode = text && !strcmp(text, "EAGER") ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

static CUresult get_function(void **result, const void *handle, bool library, const char *name)
{
	struct module *module;
	struct function *function;
	CUresult error = module_check(handle, library, &module);

	if (!error && (!result || !name))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = module_function(module, name, &function);
	if (!error)
		*result = function;
	return error;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	return get_function((void **)hfunc, hmod, false, name);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	struct module *module;
	CUresult error = module_check(mod, false, &module);

	if (!error && !count)
		error = CUDA_ERROR_INVALID_VALUE;
	return error ? error : module_list(module, NULL, 0, count);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct module *module;
	unsigned count;
	CUresult error = module_check(mod, false, &module);

	if (!error && (!functions || !numFunctions))
		error = CUDA_ERROR_INVALID_VALUE;
	return error ? error
		     : module_list(module, (struct function **)functions, numFunctions, &count);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct module *module;
	CUresult error = module_check(hmod, false, &module);

	if (!error && !name)
		error = CUDA_ERROR_INVALID_VALUE;
	return error ? error : module_variable(module, name, dptr, bytes);
}

/* --- libraries --- */

/* The library as the calling thread's device has it. */
static CUresult check_here(CUlibrary library, struct module **module)
{
	struct context *context;
	CUresult error = module_check(library, true, module);

	if (!error && context_current(&context, false) == CUDA_SUCCESS)
		*module = library_on(*module, context->device);
	return error || *module ? error : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_preserved(CUlibraryOption *options, void **values, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			return true;
	return false;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
			   void **jitOptionsValues, unsigned int numJitOptions,
			   CUlibraryOption *libraryOptions, void **libraryOptionValues,
			   unsigned int numLibraryOptions)
{
	struct tally_error why = {0};
	struct module *module;

	if (!library || (numJitOptions && (!jitOptions || !jitOptionsValues)) ||
	    (numLibraryOptions && !libraryOptions))
		return CUDA_ERROR_INVALID_VALUE;
	bool eager = !is_preserved(libraryOptions, libraryOptionValues, numLibraryOptions) &&
		     wants_eager(code, numJitOptions);
	CUresult error = module_new(code, 0, true, eager, &why, &module);
	fill_logs(numJitOptions, jitOptions, jitOptionsValues, &why);
	if (!error)
		*library = (CUlibrary)module;
	return error;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
			       void **jitOptionsValues, unsigned int numJitOptions,
			       CUlibraryOption *libraryOptions, void **libraryOptionValues,
			       unsigned int numLibraryOptions)
{
	struct tally_error why = {0};
	struct module *module;

	if (!library || (numJitOptions && (!jitOptions || !jitOptionsValues)))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult error = module_new_from_file(fileName, true, true, &why, &module);
	fill_logs(numJitOptions, jitOptions, jitOptionsValues, &why);
	if (!error)
		*library = (CUlibrary)module;
	return error;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	struct module *module;
	CUresult error = module_check(library, true, &module);

	return error ? error : module_delete(module);
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	return get_function((void **)pKernel, library, true, name);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	struct module *module;
	CUresult error = module_check(lib, true, &module);

	if (!error && !count)
		error = CUDA_ERROR_INVALID_VALUE;
	return error ? error : module_list(module, NULL, 0, count);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct module *module;
	unsigned count;
	CUresult error = module_check(lib, true, &module);

	if (!error && (!kernels || !numKernels))
		error = CUDA_ERROR_INVALID_VALUE;
	return error ? error : module_list(module, (struct function **)kernels, numKernels, &count);
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct module *module;
	CUresult error = check_here(library, &module);

	if (!error && !pMod)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = module_load(module);
	if (!error)
		*pMod = (CUmodule)module;
	return error;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct module *module;
	CUresult error = check_here(library, &module);

	if (!error && !name)
		error = CUDA_ERROR_INVALID_VALUE;
	return error ? error : module_variable(module, name, dptr, bytes);
}

/* Every variable can be reached from the host: a managed one is like the others. */
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	return cuLibraryGetGlobal(dptr, bytes, library, name);
}
