/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling while the program runs. Its module is loaded as it came and its kernels run whole; when
 * the stoppable forms are there they are loaded as a second module beside it. That is allowed only
 * where the two share nothing: a module with variables on the device would have them twice. One
 * thread does it all, one image after another, and ends when there is none.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"

struct job {
	struct job *next;
	struct tally_module *module;
	CUcontext context; /* of the module; NULL: a library */
	void *image;	   /* ours */
	size_t size;
	char target[32];
	enum tally_fact variables;
	uint64_t began;		/* ns */
	_Atomic bool cancelled; /* nobody wants it any more */
};

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct job *queued, *current; /* the first one is being compiled: `current` too */
static bool running;

/* Held while a second module is loaded and made known: whoever takes a module away waits. */
static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;
static bool all_over;

void tally_compile_forked(void)
{
	pthread_mutex_init(&queue_lock, NULL);
	pthread_mutex_init(&publish_lock, NULL);
	queued = current = NULL;
	running = all_over = false;
}

static void free_job(struct job *job)
{
	free(job->image);
	free(job);
}

/* The device to count on: any that the program uses. */
static struct tally_report *report(void)
{
	struct tally_device *d = atomic_load(&tally_process.devices);

	return d ? d->report : NULL;
}

/* Loads `image` the way the program's module was loaded. Publish lock held. */
static bool load_beside(const struct job *job, const void *image)
{
	struct tally_module *m = job->module;
	CUlibrary library = NULL;
	CUmodule module = NULL;
	CUcontext popped;
	CUresult result;

	if (m->library) {
		result = TALLY_DRIVER(cuLibraryLoadData)(&library, image, NULL, NULL, 0, NULL, NULL,
							 0);
		atomic_store(&m->variants, result ? NULL : library);
		return !result;
	}
	if (TALLY_DRIVER(cuCtxPushCurrent_v2)(job->context))
		return false;
	result = TALLY_DRIVER(cuModuleLoadData)(&module, image);
	TALLY_DRIVER(cuCtxPopCurrent_v2)(&popped);
	atomic_store(&m->variants, result ? NULL : module);
	return !result;
}

static void publish(struct job *job, void *image, size_t size)
{
	struct tally_module *m = job->module;
	struct tally_report *r = report();

	/* An image that could not be looked into is known by what was made of it. */
	if (job->variables == TALLY_MAYBE)
		job->variables = tally_image_peek(image, size).variables;
	pthread_mutex_lock(&publish_lock);
	if (all_over || atomic_load(&job->cancelled)) {
		free(image);
	} else if (job->variables != TALLY_NO || atomic_load(&m->asked)) {
		free(image);
		tally_module_is(m, TALLY_MODULE_WHOLE, TALLY_WHY_VARIABLES);
	} else if (!load_beside(job, image)) {
		free(image);
		tally_module_is(m, TALLY_MODULE_WHOLE, TALLY_WHY_DRIVER);
	} else {
		m->image = image;
		tally_module_is(m, TALLY_MODULE_STOPPABLE, TALLY_WHY_NONE);
		if (r) {
			tally_report_count(r, TALLY_COUNT_COMPILED, 1);
			tally_report_count(r, TALLY_COUNT_COMPILE_NS, tally_now() - job->began);
		}
	}
	pthread_mutex_unlock(&publish_lock);
}

static void compile(struct job *job)
{
	struct tally_cache_request request = {job->image, job->size, job->target, TALLY_TRANSFORM};
	static _Atomic bool said;
	struct tally_error error = {0};
	struct tally_report *r = report();
	char path[PATH_MAX];
	void *image = NULL;
	size_t size;

	if (tally_cache_get(&request, path, &error))
		image = tally_image_read(path, &size, &error);
	if (image) {
		publish(job, image, size);
		return;
	}
	if (!atomic_load(&job->cancelled))
		tally_module_is(job->module, TALLY_MODULE_WHOLE, TALLY_WHY_NOT_COMPILED);
	if (r)
		tally_report_count(r, TALLY_COUNT_NOT_COMPILED, 1);
	tally_warn_once(&said,
			"kernels of this program cannot be stopped between blocks, only between "
			"launches: %s",
			error.message);
}

static void *work(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)unused;
	/* The driver's own hooks on exported functions are not the program's calls. */
	tally_enter();
	TALLY_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
	pthread_mutex_lock(&queue_lock);
	while (queued) {
		current = queued;
		queued = current->next;
		pthread_mutex_unlock(&queue_lock);
		if (!atomic_load(&current->cancelled))
			compile(current);
		pthread_mutex_lock(&queue_lock);
		free_job(current);
		current = NULL;
	}
	running = false;
	pthread_mutex_unlock(&queue_lock);
	return NULL;
}

void tally_compile_start(struct tally_module *module, const struct tally_loading *l)
{
	struct job *job = calloc(1, sizeof *job), **end = &queued;
	void *image = malloc(l->size + 1);

	if (!job || !image) {
		free(job);
		free(image);
		tally_module_is(module, TALLY_MODULE_WHOLE, TALLY_WHY_NOT_COMPILED);
		return;
	}
	memcpy(image, l->image, l->size);
	((char *)image)[l->size] = '\0';
	job->module = module;
	job->image = image;
	job->size = l->size;
	memcpy(job->target, l->target, sizeof job->target);
	job->variables = l->facts.variables;
	job->began = tally_now();
	if (!module->library)
		TALLY_DRIVER(cuCtxGetCurrent)(&job->context);
	pthread_mutex_lock(&queue_lock);
	while (*end)
		end = &(*end)->next;
	*end = job;
	if (!running)
		running = tally_thread_start(work, NULL);
	if (!running) {
		*end = NULL;
		free_job(job);
		tally_module_is(module, TALLY_MODULE_WHOLE, TALLY_WHY_NOT_COMPILED);
	}
	pthread_mutex_unlock(&queue_lock);
}

static void cancel(struct job *job, const struct tally_module *module, CUcontext context)
{
	if (job && (module ? job->module == module : job->context == context))
		atomic_store(&job->cancelled, true);
}

static void cancel_all(const struct tally_module *module, CUcontext context)
{
	pthread_mutex_lock(&queue_lock);
	cancel(current, module, context);
	for (struct job *job = queued; job; job = job->next)
		cancel(job, module, context);
	pthread_mutex_unlock(&queue_lock);
}

void tally_compile_forget(struct tally_module *module, CUcontext context)
{
	cancel_all(module, context);
	tally_compile_pause();
	tally_compile_resume(NULL);
}

void tally_compile_pause(void)
{
	pthread_mutex_lock(&publish_lock);
}

void tally_compile_resume(CUcontext ended)
{
	if (ended)
		cancel_all(NULL, ended);
	pthread_mutex_unlock(&publish_lock);
}

void tally_compile_leave(void)
{
	pthread_mutex_lock(&publish_lock);
	all_over = true;
	pthread_mutex_unlock(&publish_lock);
}
