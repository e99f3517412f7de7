/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what is loaded for an image: see images.h. */
#include "backends/cuda/interpose/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "base/file.h"
#include "base/hash.h"

/* Of larger images only the ends are hashed for the profile: they are read lazily by the driver. */
#define HASH_WHOLE (1024 * 1024)
#define HASH_ENDS  (64 * 1024)

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

void *tally_image_read(const char *path, size_t *size, struct tally_error *error)
{
	struct tally_buffer buffer = {0};

	if (!tally_file_read(path, &buffer, error) || buffer.failed || !buffer.size) {
		tally_fail(error, "cannot read %s", path);
		tally_buffer_free(&buffer);
		return NULL;
	}
	if (size)
		*size = buffer.size;
	return buffer.data;
}

static void hash_image(struct tally_loading *l)
{
	const char *bytes = l->image;

	if (l->size <= HASH_WHOLE) {
		l->hash[0] = tally_hash_64(bytes, l->size);
	} else {
		l->hash[0] = tally_hash_64(bytes, HASH_ENDS);
		l->hash[1] = tally_hash_64(bytes + l->size - HASH_ENDS, HASH_ENDS);
	}
	l->hash[1] ^= l->size;
}

static void cannot(struct tally_loading *l, enum tally_reason barred, const char *message)
{
	static _Atomic bool said;

	l->barred = barred;
	tally_warn_once(&said,
			"kernels of this program cannot be stopped between blocks, only between "
			"launches: %s",
			message);
}

static bool in_background(const struct tally_loading *l)
{
	switch (tally_process.config.compile) {
	case TALLY_COMPILE_WAIT:
		return false;
	case TALLY_COMPILE_BACKGROUND:
		return true;
	default:
		return l->facts.variables == TALLY_NO;
	}
}

/* Looks for the transformed image, or has it made. */
static void transform(struct tally_loading *l)
{
	struct tally_cache_request request = {l->image, l->size, l->target, TALLY_TRANSFORM};
	enum tally_cache_answer answer;
	struct tally_error error = {0};
	char path[PATH_MAX];

	answer = tally_cache_find(&request, path, &error);
	if (answer == TALLY_CACHE_MISSING && in_background(l)) {
		l->later = true;
		return;
	}
	if (answer == TALLY_CACHE_FOUND ||
	    (answer == TALLY_CACHE_MISSING && tally_cache_get(&request, path, &error)))
		l->other = tally_image_read(path, NULL, &error);
	if (!l->other)
		cannot(l, TALLY_WHY_NOT_COMPILED, error.message);
}

unsigned tally_target_arch(const char *target)
{
	unsigned arch;

	return sscanf(target, "sm_%u", &arch) == 1 ? arch : 0;
}

/* Large libraries carry text for the newest devices alone: that is not even worth hashing them. */
static bool too_new(const struct tally_loading *l)
{
	unsigned device = tally_target_arch(l->target);

	return device && l->facts.arch > device;
}

/* There is machine code alone, or text that this device cannot run (`why`). */
static void machine_code(struct tally_loading *l, const char *why)
{
	enum tally_reason barred = TALLY_WHY_NO_CODE;

	l->machine_code = tally_opaque_allowed(l, &barred);
	if (!l->machine_code)
		cannot(l, barred, why);
}

void tally_loading_data(struct tally_loading *l, const void *image)
{
	const char *text;

	if (!image || !tally_process.config.guards)
		return;
	l->known = true;
	if (!l->size && !tally_image_size(image, &l->image, &l->size)) {
		cannot(l, TALLY_WHY_NO_CODE, "an image of unknown kind");
		return;
	}
	hash_image(l);
	if (tally_process.config.level == TALLY_RUN_GATE) {
		l->barred = TALLY_WHY_ASKED;
		return;
	}
	text = tally_linked_text(l->image, l->size);
	if (text) {
		l->image = text;
		l->size = strlen(text);
	}
	l->facts = tally_image_peek(l->image, l->size);
	if (!find_target(l->target, sizeof l->target))
		cannot(l, TALLY_WHY_NOT_COMPILED, "the driver does not say what the device is");
	else if (!l->facts.liftable)
		machine_code(l, "an image holds machine code alone");
	else if (too_new(l))
		machine_code(l, "an image's text is for newer devices");
	else
		transform(l);
}

void tally_loading_file(struct tally_loading *l, const char *path)
{
	struct tally_error error = {0};

	if (!path || !tally_process.config.guards || !tally_file_read(path, &l->file, &error))
		return;
	l->image = l->file.data;
	l->size = l->file.size;
	if (l->size)
		tally_loading_data(l, l->file.data);
}

static struct tally_report *report(void)
{
	struct tally_context *c = tally_context_current();

	return c ? c->device->report : NULL;
}

bool tally_loading_took(struct tally_loading *l, CUresult result)
{
	static _Atomic bool said;
	struct tally_report *r;

	if (!result)
		return true;
	tally_warn_once(&said,
			"the driver refused a transformed image (error %d); its kernels can be "
			"stopped only between launches",
			result);
	r = report();
	if (r)
		tally_report_count(r, TALLY_COUNT_DRIVER_REFUSED, 1);
	free(l->other);
	l->other = NULL;
	l->barred = TALLY_WHY_DRIVER;
	return false;
}

void tally_loading_done(struct tally_loading *l, CUresult result, void *handle, bool library)
{
	struct tally_module *m = NULL;
	struct tally_report *r;

	if (l->known && !result && (m = tally_module_add(handle, library, NULL))) {
		memcpy(m->hash, l->hash, sizeof m->hash);
		m->image = l->other;
		atomic_store(&m->variants, l->other ? handle : NULL);
		if (l->machine_code && !(m->machine_code = tally_opaque_remember(l)))
			l->barred = TALLY_WHY_NO_CODE;
		tally_module_is(m,
				l->other	  ? TALLY_MODULE_STOPPABLE
				: l->later	  ? TALLY_MODULE_COMPILING
				: m->machine_code ? TALLY_MODULE_MACHINE_CODE
						  : TALLY_MODULE_WHOLE,
				l->barred);
		if (l->later)
			tally_compile_start(m, l);
		r = report();
		if (r) {
			tally_report_count(r, TALLY_COUNT_IMAGES, 1);
			if (!l->later)
				tally_report_count(r,
						   l->other ? TALLY_COUNT_COMPILED
							    : TALLY_COUNT_NOT_COMPILED,
						   1);
		}
	}
	if (!m)
		free(l->other);
	tally_buffer_free(&l->file);
}
