/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors through which kernels come in. A program that may have to stop in the middle of a
 * launch gets the transformed image, which holds the original kernels too, so that its device
 * variables stay one set. Where that fails the original is loaded and its kernels run whole.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"

/* Doors in: `from` and `source` say where the image is, `instead` loads loading.other. */
#define LOAD(symbol, library, handle, from, source, parameters, arguments, instead)                \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		struct tally_loading loading = {.caller = __builtin_return_address(0)};            \
		CUresult result = CUDA_ERROR_UNKNOWN;                                              \
                                                                                                   \
		if (tally_enter() && tally_on())                                                   \
			tally_loading_##from(&loading, source);                                    \
		if (loading.other)                                                                 \
			result = instead;                                                          \
		if (!loading.other || !tally_loading_took(&loading, result))                       \
			result = TALLY_REAL(symbol) arguments;                                     \
		tally_loading_done(&loading, result, handle ? (void *)*handle : NULL, library);    \
		tally_leave();                                                                     \
		return result;                                                                     \
	}

LOAD(cuModuleLoad, false, module, file, fname, (CUmodule * module, const char *fname),
     (module, fname), TALLY_REAL(cuModuleLoadData)(module, loading.other))
LOAD(cuModuleLoadData, false, module, data, image, (CUmodule * module, const void *image),
     (module, image), TALLY_REAL(cuModuleLoadData)(module, loading.other))
LOAD(cuModuleLoadDataEx, false, module, data, image,
     (CUmodule * module, const void *image, unsigned int numOptions, CUjit_option *options,
      void **optionValues),
     (module, image, numOptions, options, optionValues),
     TALLY_REAL(cuModuleLoadDataEx)(module, loading.other, numOptions, options, optionValues))
LOAD(cuModuleLoadFatBinary, false, module, data, fatCubin,
     (CUmodule * module, const void *fatCubin), (module, fatCubin),
     TALLY_REAL(cuModuleLoadData)(module, loading.other))
LOAD(cuLibraryLoadData, true, library, data, code,
     (CUlibrary * library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
      unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
      unsigned int numLibraryOptions),
     (library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
      libraryOptionValues, numLibraryOptions),
     TALLY_REAL(cuLibraryLoadData)(library, loading.other, jitOptions, jitOptionsValues,
				   numJitOptions, libraryOptions, libraryOptionValues,
				   numLibraryOptions))
LOAD(cuLibraryLoadFromFile, true, library, file, fileName,
     (CUlibrary * library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
      unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
      unsigned int numLibraryOptions),
     (library, fileName, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
      libraryOptionValues, numLibraryOptions),
     TALLY_REAL(cuLibraryLoadData)(library, loading.other, jitOptions, jitOptionsValues,
				   numJitOptions, libraryOptions, libraryOptionValues,
				   numLibraryOptions))

/* Doors to what is inside: what a call that succeeded gave is remembered by `remember`, with the
 * module's record as `m`. */
#define GET(symbol, owner, parameters, arguments, remember)                                        \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = TALLY_REAL(symbol) arguments;                                    \
		struct tally_module *m = ours && !result ? tally_module_find(owner) : NULL;        \
                                                                                                   \
		if (m)                                                                             \
			remember;                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}

GET(cuModuleGetFunction, hmod, (CUfunction * hfunc, CUmodule hmod, const char *name),
    (hfunc, hmod, name), tally_kernel_add(*hfunc, m, false, name))
GET(cuLibraryGetKernel, library, (CUkernel * pKernel, CUlibrary library, const char *name),
    (pKernel, library, name), tally_kernel_add(*pKernel, m, true, name))
GET(cuLibraryGetModule, library, (CUmodule * pMod, CUlibrary library), (pMod, library),
    tally_module_add(*pMod, false, m))
/* Whoever has a variable's address may write it at any time. */
GET(cuModuleGetGlobal_v2, hmod,
    (CUdeviceptr * dptr, size_t *bytes, CUmodule hmod, const char *name), (dptr, bytes, hmod, name),
    tally_module_asked(m))
GET(cuLibraryGetGlobal, library,
    (CUdeviceptr * dptr, size_t *bytes, CUlibrary library, const char *name),
    (dptr, bytes, library, name), tally_module_asked(m))
GET(cuLibraryGetManaged, library,
    (CUdeviceptr * dptr, size_t *bytes, CUlibrary library, const char *name),
    (dptr, bytes, library, name), tally_module_asked(m))

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	bool ours = tally_enter() && tally_on();
	CUresult result = TALLY_REAL(cuKernelGetFunction)(pFunc, kernel);
	struct tally_kernel *k = ours && !result ? tally_kernel_find(kernel) : NULL;

	if (k)
		tally_kernel_add(*pFunc, k->module, false, k->name);
	tally_leave();
	return result;
}

/*
 * Lists. A transformed image holds each kernel twice, and the program is to see what it would see
 * without us: the original ones. Names tell which those are.
 */
static bool is_variant(const char *name)
{
	size_t length = strlen(name), suffix = sizeof TALLY_SUFFIX - 1;

	return length > suffix && !strcmp(name + length - suffix, TALLY_SUFFIX);
}

typedef CUresult name_function(const char **name, void *handle);

/* Remembers up to `most` of the `count` handles that are the program's own, in their order, in
 * `handles`. Returns how many of its own there are. */
static unsigned keep_own(struct tally_module *m, name_function *name_of, void **all, unsigned count,
			 void **handles, unsigned most)
{
	unsigned own = 0;
	const char *name;

	for (unsigned i = 0; i < count; i++) {
		if (!name_of(&name, all[i]) && name && is_variant(name))
			continue;
		if (own < most) {
			tally_kernel_add(all[i], m, m->library, name);
			handles[own] = all[i];
		}
		own++;
	}
	return own;
}

/* A pair of doors: how many there are, and which. */
#define LIST(count_symbol, list_symbol, name_symbol, owner_type, handle_type)                      \
	static unsigned own_##list_symbol(owner_type owner, handle_type *handles, unsigned most)   \
	{                                                                                          \
		struct tally_module *m = tally_module_find(owner);                                 \
		handle_type *all = NULL;                                                           \
		unsigned count = 0, own = 0;                                                       \
                                                                                                   \
		if (m && !TALLY_REAL(count_symbol)(&count, owner))                                 \
			all = calloc(count + 1, sizeof *all);                                      \
		if (all && !TALLY_REAL(list_symbol)(all, count, owner))                            \
			own = keep_own(m, (name_function *)TALLY_DRIVER(name_symbol),              \
				       (void **)all, count, (void **)handles, most);               \
		free(all);                                                                         \
		return own;                                                                        \
	}                                                                                          \
	CUresult count_symbol(unsigned *count, owner_type owner)                                   \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = TALLY_REAL(count_symbol)(count, owner);                          \
		unsigned own = ours && !result ? own_##list_symbol(owner, NULL, 0) : 0;            \
                                                                                                   \
		if (own)                                                                           \
			*count = own;                                                              \
		tally_leave();                                                                     \
		return result;                                                                     \
	}                                                                                          \
	CUresult list_symbol(handle_type *handles, unsigned most, owner_type owner)                \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = CUDA_SUCCESS;                                                    \
                                                                                                   \
		if (!ours || !handles || !most || !own_##list_symbol(owner, handles, most))        \
			result = TALLY_REAL(list_symbol)(handles, most, owner);                    \
		tally_leave();                                                                     \
		return result;                                                                     \
	}

LIST(cuModuleGetFunctionCount, cuModuleEnumerateFunctions, cuFuncGetName, CUmodule, CUfunction)
LIST(cuLibraryGetKernelCount, cuLibraryEnumerateKernels, cuKernelGetName, CUlibrary, CUkernel)

/* What was loaded beside a module goes with it. */
static void unload_beside(const struct tally_module *m, void *handle)
{
	void *beside = atomic_load(&m->variants);

	if (!beside || beside == handle)
		return;
	if (m->library)
		TALLY_DRIVER(cuLibraryUnload)(beside);
	else
		TALLY_DRIVER(cuModuleUnload)(beside);
}

/* Both doors out: whatever runs is finished first, the image that was kept goes with the module. */
#define UNLOAD(symbol, type)                                                                       \
	CUresult symbol(type handle)                                                               \
	{                                                                                          \
		struct tally_gone gone = {0};                                                      \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on()) {                                                 \
			tally_drain_all();                                                         \
			gone = tally_module_forget(handle);                                        \
		}                                                                                  \
		if (gone.modules) {                                                                \
			tally_compile_forget(gone.modules, NULL);                                  \
			unload_beside(gone.modules, handle);                                       \
		}                                                                                  \
		result = TALLY_REAL(symbol)(handle);                                               \
		tally_gone_release(&gone);                                                         \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
UNLOAD(cuModuleUnload, CUmodule)
UNLOAD(cuLibraryUnload, CUlibrary)
