/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: what was loaded, its kernels and variables by name. Compiled when first asked for. */
#include "backends/cpu/driver/module.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cache/cache.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;

CUresult module_check(const void *handle, bool library, struct module **module)
{
	REQUIRE_INIT();
	*module = (struct module *)(uintptr_t)handle;
	return handle_is(handle, HANDLE_MODULE) && (!library || (*module)->library)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_HANDLE;
}

/* A kernel of a library means that of the library for `device`; others are of one device. */
static CUresult function_on(CUdevice device, struct function **function)
{
	struct module *module = (*function)->module;

	if (!module->library || device == module->device)
		return CUDA_SUCCESS;
	module = library_on(module, device);
	return module ? module_function(module, (*function)->kernel->name, function)
		      : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult function_check_on(const void *handle, CUdevice device, struct function **function)
{
	REQUIRE_INIT();
	*function = (struct function *)(uintptr_t)handle;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return handle_is(handle, HANDLE_FUNCTION) ? function_on(device, function)
						  : CUDA_ERROR_INVALID_HANDLE;
}

CUresult function_check(const void *handle, struct function **function)
{
	struct context *context;

	/* Without a context there is nothing to launch it in: any device's will do. */
	return function_check_on(handle, context_current(&context, false) ? 0 : context->device,
				 function);
}

/* Variables are device memory: for copies and questions about pointers. */
static void register_variables(struct module *module)
{
	for (uint32_t i = 0; i < module->code.module->variable_count; i++) {
		const struct tally_cpu_variable *v = &module->code.module->variables[i];
		struct region region = {.base = (uintptr_t)v->address,
					.size = v->bytes,
					.kind = REGION_VARIABLE,
					.device = module->device,
					.context = module->context};
		if (v->bytes)
			memory_add(&region);
	}
}

static void report(const struct tally_error *why)
{
	if (why->line)
		driver_complain(NULL, "%s:%u:%u: error: %s", why->file, why->line, why->column,
				why->message);
	else
		driver_complain(NULL, "error: %s%s%s", why->file, why->file[0] ? ": " : "",
				why->message);
}

CUresult module_load(struct module *module)
{
	pthread_mutex_lock(&module->lock);
	if (!module->tried) {
		module->tried = true;
		module->failure =
			module_make_code(module->image, module->size, &module->code, &module->why);
		if (module->failure)
			report(&module->why);
		else
			register_variables(module);
		/* A library may be wanted for another device still. */
		if (!module->library || device_count() == 1) {
			if (module->image_owned)
				free((void *)(uintptr_t)module->image);
			module->image = NULL;
			module->image_owned = false;
		}
		/* Last: a child that is forked before this begins anew. */
		module->tried = true;
	}
	CUresult result = module->failure;
	pthread_mutex_unlock(&module->lock);
	return result;
}

static CUresult keep_image(struct module *module, const void *image, size_t size,
			   struct tally_error *why)
{
	const void *start = image;

	if (!size && !tally_image_size(image, &start, &size)) {
		tally_fail(why, "the image is no PTX, fatbin, ELF file or wrapped bitcode");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	module->size = size;
	module->image = start;
	/* What a wrapper points to is part of the program; other memory may go after the call. */
	if (start != image)
		return CUDA_SUCCESS;
	void *copy = malloc(size + 1);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, start, size);
	((char *)copy)[size] = '\0';
	module->image = copy;
	module->image_owned = true;
	return CUDA_SUCCESS;
}

void function_hold(struct function *function)
{
	atomic_fetch_add(&function->references, 1);
}

void function_let_go(struct function *function)
{
	if (atomic_fetch_sub(&function->references, 1) == 1)
		free(function);
}

static void free_module(struct module *module)
{
	while (module->functions) {
		struct function *function = module->functions;
		module->functions = function->next;
		handle_remove(function, HANDLE_FUNCTION);
		function->module = NULL;
		function->kernel = NULL;
		function_let_go(function);
	}
	if (module->image_owned)
		free((void *)(uintptr_t)module->image);
	handle_remove(module, HANDLE_MODULE);
	pthread_mutex_destroy(&module->lock);
	free(module);
}

CUresult module_new(const void *image, size_t size, bool library, bool eager,
		    struct tally_error *why, struct module **result)
{
	struct context *context = NULL;
	CUresult error = library ? CUDA_SUCCESS : context_current(&context, true);
	const char *mode = getenv("CUDA_MODULE_LOADING");

	if (library && !driver_initialized())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (error)
		return error;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	struct module *module = calloc(1, sizeof *module);
	if (!module || !handle_add(module, HANDLE_MODULE)) {
		free(module);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	module->library = library;
	module->context = context;
	module->device = context ? context->device : 0;
	pthread_mutex_init(&module->lock, NULL);
	error = keep_image(module, image, size, why);
	if (!error && (eager || (mode && !strcmp(mode, "EAGER")))) {
		error = module_load(module);
		*why = module->why;
	}
	if (error) {
		free_module(module);
		return error;
	}
	pthread_mutex_lock(&list_lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&list_lock);
	*result = module;
	return CUDA_SUCCESS;
}

struct module *library_on(struct module *library, CUdevice device)
{
	struct module *made;

	if (!library->library || device == library->device)
		return library;
	pthread_mutex_lock(&library->lock);
	made = library->others[device];
	if (!made && (made = calloc(1, sizeof *made)) && !handle_add(made, HANDLE_MODULE)) {
		free(made);
		made = NULL;
	}
	if (made && !library->others[device]) {
		/* The image stays the library's, which ends after it. */
		made->image = library->image;
		made->size = library->size;
		made->device = device;
		made->owner = library;
		pthread_mutex_init(&made->lock, NULL);
		library->others[device] = made;
	}
	pthread_mutex_unlock(&library->lock);
	return made;
}

CUresult module_new_from_file(const char *path, bool library, bool eager, struct tally_error *why,
			      struct module **module)
{
	struct tally_buffer file = {0};
	CUresult result;

	REQUIRE_INIT();
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!tally_file_read(path, &file, why))
		result = CUDA_ERROR_FILE_NOT_FOUND;
	else if (!file.size)
		result = CUDA_ERROR_INVALID_IMAGE;
	else
		result = module_new(file.data, file.size, library, eager, why, module);
	tally_buffer_free(&file);
	return result;
}

/* Its code, its variables and what is known of it. */
static void end(struct module *module)
{
	if (module->code.module) {
		for (uint32_t i = 0; i < module->code.module->variable_count; i++)
			memory_remove((uintptr_t)module->code.module->variables[i].address,
				      1u << REGION_VARIABLE, NULL);
		tally_cpu_image_close(&module->code);
	}
	free_module(module);
}

CUresult module_delete(struct module *module)
{
	struct module **link;

	contexts_quiesce(); /* its code may be running */
	pthread_mutex_lock(&list_lock);
	for (link = &modules; *link && *link != module; link = &(*link)->next)
		;
	bool found = *link;
	if (found)
		*link = module->next;
	pthread_mutex_unlock(&list_lock);
	if (!found)
		return CUDA_ERROR_INVALID_HANDLE;
	for (int i = 0; i < MOST_DEVICES; i++)
		if (module->others[i])
			end(module->others[i]);
	end(module);
	return CUDA_SUCCESS;
}

void modules_unload_context(const struct context *context)
{
	for (;;) {
		struct module *found;
		pthread_mutex_lock(&list_lock);
		for (found = modules; found && found->context != context; found = found->next)
			;
		pthread_mutex_unlock(&list_lock);
		if (!found || module_delete(found))
			return;
	}
}

void modules_after_fork(void)
{
	pthread_mutex_init(&list_lock, NULL);
	for (struct module *m = modules; m; m = m->next) {
		pthread_mutex_init(&m->lock, NULL);
		for (int i = 0; i < MOST_DEVICES; i++)
			if (m->others[i])
				pthread_mutex_init(&m->others[i]->lock, NULL);
	}
}

/* The handle for a kernel: always the same one. Module's lock held. */
static struct function *handle_of(struct module *module, const struct tally_cpu_kernel *kernel)
{
	struct function *function;

	for (function = module->functions; function; function = function->next)
		if (function->kernel == kernel)
			return function;
	function = calloc(1, sizeof *function);
	if (!function || !handle_add(function, HANDLE_FUNCTION)) {
		free(function);
		return NULL;
	}
	function->module = module;
	function->kernel = kernel;
	atomic_store(&function->references, 1);
	function->carveout = -1;
	if (kernel->shared_bytes < SHARED_DEFAULT)
		function->dynamic_shared = SHARED_DEFAULT - kernel->shared_bytes;
	function->next = module->functions;
	module->functions = function;
	return function;
}

CUresult module_function(struct module *module, const char *name, struct function **function)
{
	CUresult result = module_load(module);

	if (result)
		return result;
	const struct tally_cpu_kernel *kernel = tally_cpu_image_kernel(&module->code, name);
	if (!kernel)
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&module->lock);
	*function = handle_of(module, kernel);
	pthread_mutex_unlock(&module->lock);
	return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult module_variable(struct module *module, const char *name, CUdeviceptr *address,
			 size_t *bytes)
{
	CUresult result = module_load(module);

	if (result)
		return result;
	const struct tally_cpu_variable *variable = tally_cpu_image_variable(&module->code, name);
	if (!variable)
		return CUDA_ERROR_NOT_FOUND;
	if (address)
		*address = (CUdeviceptr)variable->address;
	if (bytes)
		*bytes = variable->bytes;
	return CUDA_SUCCESS;
}

CUresult module_list(struct module *module, struct function **functions, unsigned most,
		     unsigned *count)
{
	CUresult result = module_load(module);

	*count = 0;
	if (result)
		return result;
	pthread_mutex_lock(&module->lock);
	for (uint32_t i = 0; i < module->code.module->kernel_count && !result; i++) {
		const struct tally_cpu_kernel *kernel = &module->code.module->kernels[i];
		if (kernel->flags & (TALLY_CPU_SLICE | TALLY_CPU_GUARD))
			continue;
		if (functions && *count < most) {
			functions[*count] = handle_of(module, kernel);
			result = functions[*count] ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		}
		++*count;
	}
	pthread_mutex_unlock(&module->lock);
	return result;
}
