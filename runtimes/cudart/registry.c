/* SPDX-License-Identifier: Apache-2.0 */
/* What compiled programs announce before main(): images of device code, and the host addresses that
 * stand for their kernels and variables. An image is loaded when something of it is first used. */
#include "runtimes/cudart/internal.h"
#include "runtimes/cudart/registration.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The object that nvcc and clang put into the host program for each image (fatbinary_section.h). */
struct fatbin_wrapper {
	unsigned magic, version;
	const void *data;
	void *prelinked; /* version 2: what relocatable device code was linked from */
};
#define FATBIN_WRAPPER_MAGIC 0x466243b1u

struct image {
	const void *code;
	pthread_mutex_t lock;
	bool loaded;
	cudaError_t error; /* of the load */
	CUlibrary library;
};

enum entry_kind { ENTRY_KERNEL, ENTRY_VARIABLE, ENTRY_MANAGED };

struct entry {
	const void *key; /* NULL: free */
	enum entry_kind kind;
	struct image *image;	  /* NULL: a kernel that the application holds a handle of */
	CUlibrary library;	  /* that such a kernel goes with */
	const char *name;	  /* in the application's image */
	_Atomic(CUkernel) kernel; /* once looked up */
	void **managed_pointer;	  /* the host's pointer to a managed variable */
};

/* Open addressing, at most half full, entries by pointer so that they stay in place: an entry found
 * under the lock may be used without it, until the application unregisters its image. */
static struct {
	pthread_mutex_t lock;
	struct entry **slots;
	size_t capacity, count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool closing;

/* Why the latest image could not be loaded: all that a launch with the null handle can tell. */
static _Atomic(cudaError_t) load_error;

void cudart_registry_close(void)
{
	atomic_store(&closing, true);
}

void cudart_registry_fork(bool before)
{
	if (before)
		pthread_mutex_lock(&table.lock);
	else
		pthread_mutex_unlock(&table.lock);
}

static size_t slot_of(const void *key, size_t capacity)
{
	return ((size_t)key * 0x9e3779b97f4a7c15ull >> 17) & (capacity - 1);
}

static struct entry *find(const void *key)
{
	if (!table.capacity || !key)
		return NULL;
	for (size_t i = slot_of(key, table.capacity);; i = (i + 1) & (table.capacity - 1)) {
		if (!table.slots[i])
			return NULL;
		if (table.slots[i]->key == key)
			return table.slots[i];
	}
}

static void place(struct entry **slots, size_t capacity, struct entry *entry)
{
	size_t i = slot_of(entry->key, capacity);

	while (slots[i])
		i = (i + 1) & (capacity - 1);
	slots[i] = entry;
}

/* Moves all entries but those of `image` and `library` into a table of `capacity`. */
static bool rebuild(size_t capacity, const struct image *image, CUlibrary library)
{
	struct entry **slots = calloc(capacity, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < table.capacity; i++) {
		struct entry *entry = table.slots[i];

		if (entry &&
		    ((image && entry->image == image) || (library && entry->library == library))) {
			free(entry);
			table.count--;
		} else if (entry) {
			place(slots, capacity, entry);
		}
	}
	free(table.slots);
	table.slots = slots;
	table.capacity = capacity;
	return true;
}

/* Adds a copy of `model`; the table is locked for writing. A key that is there already is replaced:
 * a plug-in may be unloaded and another loaded at the same address. */
static bool add(const struct entry *model)
{
	struct entry *entry = find(model->key);

	if (!entry) {
		if (2 * (table.count + 1) > table.capacity &&
		    !rebuild(table.capacity ? 2 * table.capacity : 256, NULL, NULL))
			return false;
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return false;
		entry->key = model->key;
		place(table.slots, table.capacity, entry);
		table.count++;
	}
	entry->kind = model->kind;
	entry->image = model->image;
	entry->library = model->library;
	entry->name = model->name;
	entry->managed_pointer = model->managed_pointer;
	atomic_store(&entry->kernel, atomic_load(&model->kernel));
	return true;
}

static void add_locked(const struct entry *model)
{
	pthread_mutex_lock(&table.lock);
	if (!add(model))
		cudart_say(NULL, "out of memory, %s is lost",
			   model->name ? model->name : "a kernel");
	pthread_mutex_unlock(&table.lock);
}

cudaError_t cudart_remember_kernel(CUkernel kernel, CUlibrary library)
{
	struct entry model = {
		.key = kernel, .kind = ENTRY_KERNEL, .library = library, .kernel = kernel};
	bool added;

	pthread_mutex_lock(&table.lock);
	added = add(&model);
	pthread_mutex_unlock(&table.lock);
	return added ? cudaSuccess : cudaErrorMemoryAllocation;
}

void cudart_forget_library(CUlibrary library)
{
	pthread_mutex_lock(&table.lock);
	if (table.capacity && !rebuild(table.capacity, NULL, library))
		cudart_say(NULL, "out of memory, kernels of an unloaded library are still known");
	pthread_mutex_unlock(&table.lock);
}

static cudaError_t load(struct image *image)
{
	cudaError_t error;

	pthread_mutex_lock(&image->lock);
	if (!image->loaded) {
		CUresult result =
			image->code ? cudart_driver.cuLibraryLoadData(&image->library, image->code,
								      NULL, NULL, 0, NULL, NULL, 0)
				    : CUDA_ERROR_INVALID_IMAGE;

		image->error = cudart_error(result);
		image->loaded = true;
		if (image->error != cudaSuccess)
			atomic_store(&load_error, image->error);
	}
	error = image->error;
	pthread_mutex_unlock(&image->lock);
	return error;
}

static cudaError_t look_up_kernel(struct entry *entry, CUkernel *kernel)
{
	cudaError_t error = load(entry->image);
	CUresult result;

	if (error != cudaSuccess)
		return error;
	result = cudart_driver.cuLibraryGetKernel(kernel, entry->image->library, entry->name);
	if (result != CUDA_SUCCESS)
		return cudart_error(result);
	atomic_store(&entry->kernel, *kernel);
	return cudaSuccess;
}

static struct entry *find_locked(const void *key)
{
	struct entry *entry;

	pthread_mutex_lock(&table.lock);
	entry = find(key);
	pthread_mutex_unlock(&table.lock);
	return entry;
}

cudaError_t cudart_kernel(const void *symbol, CUkernel *kernel)
{
	struct entry *entry = find_locked(symbol);

	*kernel = NULL;
	if (!entry || entry->kind != ENTRY_KERNEL)
		return cudaErrorInvalidDeviceFunction;
	*kernel = atomic_load(&entry->kernel);
	return *kernel ? cudaSuccess : look_up_kernel(entry, kernel);
}

const void *cudart_symbol(CUfunction function, CUkernel kernel)
{
	const void *symbol = function ? (const void *)function : kernel;

	pthread_mutex_lock(&table.lock);
	for (size_t i = 0; i < table.capacity; i++) {
		const struct entry *entry = table.slots[i];
		CUkernel known = entry && entry->kind == ENTRY_KERNEL && entry->image
					 ? atomic_load(&entry->kernel)
					 : NULL;
		CUfunction of_known;

		if (!known)
			continue;
		if (known == kernel || (CUfunction)known == function ||
		    (function &&
		     cudart_driver.cuKernelGetFunction(&of_known, known) == CUDA_SUCCESS &&
		     of_known == function)) {
			symbol = entry->key;
			break;
		}
	}
	pthread_mutex_unlock(&table.lock);
	return symbol;
}

cudaError_t cudart_function(const void *symbol, CUfunction *function)
{
	CUkernel kernel;
	cudaError_t error = cudart_kernel(symbol, &kernel);

	if (error != cudaSuccess)
		return error;
	return cudart_error(cudart_driver.cuKernelGetFunction(function, kernel));
}

cudaError_t cudart_variable(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
	struct entry *entry = find_locked(symbol);
	cudaError_t error;

	if (!entry || entry->kind == ENTRY_KERNEL)
		return cudaErrorInvalidSymbol;
	error = load(entry->image);
	if (error != cudaSuccess)
		return error;
	if (entry->kind == ENTRY_MANAGED)
		return cudart_error(cudart_driver.cuLibraryGetManaged(
			address, bytes, entry->image->library, entry->name));
	return cudart_error(cudart_driver.cuLibraryGetGlobal(address, bytes, entry->image->library,
							     entry->name));
}

void **CUDARTAPI __cudaRegisterFatBinary(void *binary)
{
	const struct fatbin_wrapper *wrapper = binary;
	struct image *image = calloc(1, sizeof(*image));

	if (!image) {
		cudart_say(NULL, "out of memory, an image of device code is lost");
		return NULL;
	}
	pthread_mutex_init(&image->lock, NULL);
	if (wrapper && wrapper->magic == FATBIN_WRAPPER_MAGIC)
		image->code = wrapper->version == 1 ? wrapper->data : binary;
	return (void **)image;
}

void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle)
{
}

void CUDARTAPI __cudaUnregisterFatBinary(void **handle)
{
	struct image *image = (struct image *)handle;

	if (!image)
		return;
	pthread_mutex_lock(&table.lock);
	if (table.capacity && !rebuild(table.capacity, image, image->library))
		image = NULL; /* no memory to forget it: keep all of it */
	pthread_mutex_unlock(&table.lock);
	if (!image)
		return;
	if (image->library && !atomic_load(&closing) && cudart_start() == cudaSuccess)
		cudart_driver.cuLibraryUnload(image->library);
	pthread_mutex_destroy(&image->lock);
	free(image);
}

void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host_function,
				      char *device_function, const char *name, int thread_limit,
				      uint3 *thread, uint3 *block, dim3 *block_size,
				      dim3 *grid_size, int *warp_size)
{
	struct entry model = {.key = host_function,
			      .kind = ENTRY_KERNEL,
			      .image = (struct image *)handle,
			      .name = name};

	if (handle)
		add_locked(&model);
}

void CUDARTAPI __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
				 const char *name, int external, size_t size, int constant,
				 int global)
{
	struct entry model = {.key = host_variable,
			      .kind = ENTRY_VARIABLE,
			      .image = (struct image *)handle,
			      .name = name};

	if (handle)
		add_locked(&model);
}

void CUDARTAPI __cudaRegisterManagedVar(void **handle, void **host_pointer, char *device_address,
					const char *name, int external, size_t size, int constant,
					int global)
{
	struct entry model = {.key = host_pointer,
			      .kind = ENTRY_MANAGED,
			      .image = (struct image *)handle,
			      .name = name,
			      .managed_pointer = host_pointer};

	if (handle)
		add_locked(&model);
}

/* Called by the host code before it touches a managed variable: fills in all pointers of the image.
 * The address itself becomes a symbol too, since that is what `&variable` is in host code. */
static cudaError_t init_managed(struct image *image)
{
	cudaError_t error = load(image);
	size_t count = 0;
	struct entry **found;

	if (error != cudaSuccess)
		return error;
	pthread_mutex_lock(&table.lock);
	found = calloc(table.count + 1, sizeof(*found));
	for (size_t i = 0; found && i < table.capacity; i++) {
		struct entry *entry = table.slots[i];

		if (entry && entry->image == image && entry->managed_pointer)
			found[count++] = entry;
	}
	pthread_mutex_unlock(&table.lock);
	if (!found)
		return cudaErrorMemoryAllocation;
	for (size_t i = 0; i < count && error == cudaSuccess; i++) {
		struct entry model = {
			.kind = ENTRY_MANAGED, .image = image, .name = found[i]->name};
		CUdeviceptr address;
		size_t bytes;

		error = cudart_error(cudart_driver.cuLibraryGetManaged(
			&address, &bytes, image->library, found[i]->name));
		if (error == cudaSuccess) {
			model.key = *found[i]->managed_pointer = (void *)address;
			add_locked(&model);
		}
	}
	free(found);
	return error;
}

char CUDARTAPI __cudaInitModule(void **handle)
{
	cudaError_t error = cudart_enter();

	if (error == cudaSuccess && handle)
		error = init_managed((struct image *)handle);
	return cudart_fail(error) == cudaSuccess;
}

cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t *kernel, const void *symbol)
{
	CUDART_REQUIRE(kernel);
	CUDART_ENTER();
	return cudart_fail(cudart_kernel(symbol, kernel));
}

cudaError_t CUDARTAPI cudaGetKernel(cudaKernel_t *kernel, const void *symbol)
{
	cudaError_t error = __cudaGetKernel(kernel, symbol);
	const struct entry *entry;

	if (error != cudaSuccess)
		return error;
	entry = find_locked(symbol);
	return cudart_fail(cudart_remember_kernel(
		*kernel, entry && entry->image ? entry->image->library : NULL));
}

cudaError_t CUDARTAPI cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	CUDART_REQUIRE(function);
	CUDART_ENTER();
	return cudart_fail(cudart_function(symbol, function));
}

cudaError_t CUDARTAPI cudaGetSymbolAddress(void **pointer, const void *symbol)
{
	CUdeviceptr address;
	cudaError_t error;
	size_t bytes;

	CUDART_REQUIRE(pointer);
	CUDART_ENTER();
	error = cudart_variable(symbol, &address, &bytes);
	if (error == cudaSuccess)
		*pointer = (void *)address;
	return cudart_fail(error);
}

cudaError_t CUDARTAPI cudaGetSymbolSize(size_t *size, const void *symbol)
{
	CUdeviceptr address;

	CUDART_REQUIRE(size);
	CUDART_ENTER();
	return cudart_fail(cudart_variable(symbol, &address, size));
}

cudaError_t cudart_no_kernel(void)
{
	cudaError_t error = atomic_load(&load_error);

	return error == cudaSuccess ? cudaErrorInvalidDeviceFunction : error;
}
