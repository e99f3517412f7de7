/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling while the program runs. Its module is loaded as it came and its kernels run whole; when
 * the stoppable forms are there they are loaded as a second module beside it. That is allowed only
 * where the two share nothing: a module with variables on the device would have them twice. One
 * thread does it all, one image after another, and ends when there is none. Machine code takes the
 * same way (opaque.h): what is compiled there is what its image holds for this device.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"

/* The driver's own compiler, and what it does to load an image, run on this thread too. */
#define STACK_BYTES (8 * 1024 * 1024)

struct job {
	struct job *next;
	struct tally_module *module;
	CUcontext context; /* of the module; NULL: a library */
	CUcontext current; /* of whoever asked */
	bool opaque;	   /* machine code: the image is taken when it is the job's turn */
	void *image;	   /* ours */
	size_t size;
	char target[32];
	enum tally_fact variables, constants; /* constants: of machine code */
	uint64_t began;			      /* ns */
	_Atomic bool cancelled;		      /* nobody wants it any more */
};

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct job *queued, *current; /* the first one is being compiled: `current` too */
static bool running;

/* Held while a second module is loaded and made known: whoever takes a module away waits. */
static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t published = PTHREAD_COND_INITIALIZER;
static bool all_over;

void tally_compile_forked(void)
{
	pthread_mutex_init(&queue_lock, NULL);
	pthread_mutex_init(&publish_lock, NULL);
	pthread_cond_init(&published, NULL);
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

/* Loads `image`, which stays, the way the program's module was loaded. Publish lock held. */
static bool load_beside(const struct job *job, const void *image)
{
	CUlibraryOption stays[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
	void *yes[] = {(void *)(uintptr_t)1};
	struct tally_module *m = job->module;
	CUlibrary library = NULL;
	CUmodule module = NULL;
	CUcontext popped;
	CUresult result;

	if (m->library) {
		result = TALLY_DRIVER(cuLibraryLoadData)(&library, image, NULL, NULL, 0, stays, yes,
							 1);
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

/* The compiler's answer. Patched images are many and large: theirs stay in the cache's file. */
static void *open_image(const struct job *job, const char *path, size_t *size,
			struct tally_error *error)
{
	void *image = MAP_FAILED;
	off_t end;
	int fd;

	if (!job->opaque)
		return tally_image_read(path, size, error);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	end = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (end > 0) {
		*size = (size_t)end;
		image = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (fd >= 0)
		close(fd);
	if (image == MAP_FAILED) {
		tally_fail(error, "cannot read %s", path);
		return NULL;
	}
	return image;
}

static void close_image(const struct job *job, void *image, size_t size)
{
	if (job->opaque)
		munmap(image, size);
	else
		free(image);
}

static void keep_image(struct job *job, void *image, size_t size)
{
	struct tally_module *m = job->module;

	if (job->opaque) {
		m->machine_code->patched = image;
		m->machine_code->patched_size = size;
		m->machine_code->constants = job->constants;
	} else {
		m->image = image;
	}
}

/* Looks at what was made of the image: what it has that must not be there twice. */
static void look(struct job *job, const void *image, size_t size)
{
	struct tally_cubin_facts facts;

	if (job->opaque) {
		facts = tally_cubin_look(image, size);
		job->variables = facts.variables;
		job->constants = facts.constants;
	} else if (job->variables == TALLY_MAYBE) {
		job->variables = tally_image_peek(image, size).variables;
	}
}

/* Of machine code only constants are still a matter of who has their address. */
static bool shares(const struct job *job)
{
	return job->variables != TALLY_NO ||
	       (atomic_load(&job->module->asked) && (!job->opaque || job->constants != TALLY_NO));
}

static void publish(struct job *job, void *image, size_t size)
{
	struct tally_module *m = job->module;
	struct tally_report *r = report();

	look(job, image, size);
	pthread_mutex_lock(&publish_lock);
	if (all_over || atomic_load(&job->cancelled)) {
		close_image(job, image, size);
	} else if (shares(job)) {
		close_image(job, image, size);
		tally_module_is(m, TALLY_MODULE_WHOLE,
				job->opaque ? TALLY_WHY_SHARED : TALLY_WHY_VARIABLES);
	} else if (!load_beside(job, image)) {
		close_image(job, image, size);
		tally_module_is(m, TALLY_MODULE_WHOLE, TALLY_WHY_DRIVER);
	} else {
		keep_image(job, image, size);
		tally_module_is(m, TALLY_MODULE_STOPPABLE, TALLY_WHY_NONE);
		if (r) {
			tally_report_count(r, TALLY_COUNT_COMPILED, 1);
			tally_report_count(r, TALLY_COUNT_COMPILE_NS, tally_now() - job->began);
		}
	}
	pthread_mutex_unlock(&publish_lock);
}

static void give_up(struct job *job, enum tally_reason reason)
{
	struct tally_report *r = report();

	pthread_mutex_lock(&publish_lock);
	if (!atomic_load(&job->cancelled))
		tally_module_is(job->module, TALLY_MODULE_WHOLE, reason);
	pthread_mutex_unlock(&publish_lock);
	if (r)
		tally_report_count(r, TALLY_COUNT_NOT_COMPILED, 1);
}

/* The machine code that is to be patched: while its module is loaded its image is there. */
static bool take_code(struct job *job)
{
	const struct tally_machine_code *code;
	bool taken = false;

	pthread_mutex_lock(&publish_lock);
	code = job->module->machine_code;
	if (!all_over && !atomic_load(&job->cancelled))
		taken = tally_image_machine_code(code->image, code->size,
						 tally_target_arch(job->target), &job->image,
						 &job->size);
	pthread_mutex_unlock(&publish_lock);
	return taken;
}

/* The device of the context from which the job was asked for; NULL: the context has ended. */
static struct tally_device *device_of(const struct job *job)
{
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next) {
		const struct tally_context *c;

		tally_lock(d);
		for (c = d->contexts; c && c->handle != job->current; c = c->next)
			;
		tally_unlock(d);
		if (c)
			return d;
	}
	return NULL;
}

/* Loading takes the driver's time, and the device's: not while somebody more urgent is active. */
static void wait_for_gate(const struct job *job)
{
	struct tally_device *d = job->opaque ? device_of(job) : NULL;

	if (d)
		tally_gate_pass(d);
}

/* Nobody is left who asked: whoever asks next will be told. */
static void ask_again(const struct job *job)
{
	pthread_mutex_lock(&publish_lock);
	if (!atomic_load(&job->cancelled))
		tally_module_is(job->module, TALLY_MODULE_MACHINE_CODE, TALLY_WHY_NONE);
	pthread_mutex_unlock(&publish_lock);
}

static void compile(struct job *job)
{
	static _Atomic bool said[2];
	struct tally_cache_request request = {.target = job->target};
	struct tally_error error = {0};
	char path[PATH_MAX];
	void *image = NULL;
	size_t size;

	if (job->opaque && !device_of(job)) {
		ask_again(job);
		return;
	}
	if (job->opaque && !tally_opaque_works(job->current, job->target)) {
		give_up(job, TALLY_WHY_SELF_TEST);
		return;
	}
	if (job->opaque && !take_code(job)) {
		give_up(job, TALLY_WHY_NO_CODE);
		return;
	}
	request.image = job->image;
	request.size = job->size;
	request.transform = job->opaque ? TALLY_CACHE_OPAQUE : TALLY_TRANSFORM;
	if (tally_cache_get(&request, path, &error))
		image = open_image(job, path, &size, &error);
	if (image) {
		wait_for_gate(job);
		publish(job, image, size);
		return;
	}
	give_up(job, job->opaque ? TALLY_WHY_NOT_PATCHED : TALLY_WHY_NOT_COMPILED);
	tally_warn_once(&said[job->opaque],
			job->opaque ? "some machine code of this program cannot be stopped between "
				      "blocks, only between launches: %s"
				    : "kernels of this program cannot be stopped between blocks, "
				      "only between launches: %s",
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
		pthread_cond_broadcast(&published);
	}
	running = false;
	pthread_mutex_unlock(&queue_lock);
	return NULL;
}

/* Puts a job (NULL: out of memory) behind all others; what is missing of it is filled in. */
static void put(struct job *job, struct tally_module *module)
{
	struct job **end = &queued;

	if (!job) {
		tally_module_is(module, TALLY_MODULE_WHOLE, TALLY_WHY_NOT_COMPILED);
		return;
	}
	job->module = module;
	job->began = tally_now();
	pthread_mutex_lock(&queue_lock);
	while (*end)
		end = &(*end)->next;
	*end = job;
	if (!running)
		running = tally_thread_start(work, NULL, STACK_BYTES);
	if (!running) {
		*end = NULL;
		free_job(job);
		tally_module_is(module, TALLY_MODULE_WHOLE, TALLY_WHY_NOT_COMPILED);
	}
	pthread_mutex_unlock(&queue_lock);
}

void tally_compile_start(struct tally_module *module, const struct tally_loading *l)
{
	struct job *job = calloc(1, sizeof *job);
	void *image = malloc(l->size + 1);

	if (job && image) {
		memcpy(image, l->image, l->size);
		((char *)image)[l->size] = '\0';
		job->image = image;
		job->size = l->size;
		memcpy(job->target, l->target, sizeof job->target);
		job->variables = l->facts.variables;
		if (!module->library)
			TALLY_DRIVER(cuCtxGetCurrent)(&job->context);
	} else {
		free(image);
		free(job);
		job = NULL;
	}
	put(job, module);
}

void tally_compile_patch(struct tally_module *module)
{
	struct job *job = calloc(1, sizeof *job);

	if (job) {
		job->opaque = true;
		memcpy(job->target, module->machine_code->target, sizeof job->target);
		job->context = module->context;
		TALLY_DRIVER(cuCtxGetCurrent)(&job->current);
	}
	put(job, module);
}

void tally_compile_wait(struct tally_module *module)
{
	pthread_mutex_lock(&queue_lock);
	while (running && atomic_load(&module->form) == TALLY_MODULE_COMPILING)
		pthread_cond_wait(&published, &queue_lock);
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
