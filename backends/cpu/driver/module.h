/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and libraries: one structure, for a library is a module that belongs to no context. */
#ifndef TALLY_BACKENDS_CPU_DRIVER_MODULE_H
#define TALLY_BACKENDS_CPU_DRIVER_MODULE_H

#include "backends/cpu/driver/driver.h"

struct module {
	bool library;
	bool image_owned;	 /* `image` was copied */
	struct context *context; /* NULL for a library */
	CUdevice device;	 /* whose variables it has */
	const void *image;
	size_t size;
	pthread_mutex_t lock; /* what follows */
	bool tried;
	CUresult failure; /* of the attempt */
	struct tally_error why;
	struct tally_cpu_image code;
	struct function *functions; /* handles given out so far */
	struct module *owner;	    /* the library that this is for another device, or NULL */
	/* Of a library: itself for each other device, made when first needed. */
	struct module *others[MOST_DEVICES];
	struct module *next; /* of all modules; guarded in module.c */
};

/* Reads the image's kind and keeps it; compiles it now when `eager`. */
CUresult module_new(const void *image, size_t size, bool library, bool eager,
		    struct tally_error *why, struct module **module);
CUresult module_new_from_file(const char *path, bool library, bool eager, struct tally_error *why,
			      struct module **module);
CUresult module_delete(struct module *module);
CUresult module_check(const void *handle, bool library, struct module **module);

/* The library for a device: its variables are there once for each. NULL out of memory. */
struct module *library_on(struct module *library, CUdevice device);

/* Compiled and loaded, if it was not. */
CUresult module_load(struct module *module);
CUresult module_function(struct module *module, const char *name, struct function **function);
CUresult module_variable(struct module *module, const char *name, CUdeviceptr *address,
			 size_t *bytes);
/* The kernels that the program knows of: not the transformed variants. */
CUresult module_list(struct module *module, struct function **functions, unsigned most,
		     unsigned *count);

/* load.c: makes `code` from the image: compiles it by way of the code cache unless it is compiled
 * already, and loads a private copy. */
CUresult module_make_code(const void *image, size_t size, struct tally_cpu_image *code,
			  struct tally_error *why);

#endif
