/* SPDX-License-Identifier: Apache-2.0 */
/* The process as a whole: start, devices, fork, exit. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/burst.h"
#include "backends/cuda/interpose/graphs.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "backends/cuda/interpose/waits.h"
#include "base/futex.h"

#define CHANGED_NS 20000000

_Atomic int tally_mode;
struct tally_process tally_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tally_warn_once(_Atomic bool *said, const char *format, ...)
{
	char line[1400] = "tally: ";
	va_list arguments;
	size_t length = strlen(line);
	int saved = errno;

	if (atomic_exchange(said, true))
		return;
	va_start(arguments, format);
	vsnprintf(line + length, sizeof line - length - 1, format, arguments);
	va_end(arguments);
	length = strlen(line);
	line[length++] = '\n';
	/* Not through stdio: the program's own streams are its own. */
	if (write(STDERR_FILENO, line, length) < 0)
		errno = saved;
	errno = saved;
}

bool tally_thread_start(void *(*function)(void *), void *argument, size_t stack)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, stack);
	failed = pthread_create(&thread, &attributes, function, argument);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !failed;
}

unsigned long tally_thread(void)
{
	static __thread unsigned long id __attribute__((tls_model("initial-exec")));

	/* Threads end and their ids come again; nothing of ours does. */
	static _Atomic unsigned long last;
	if (!id)
		id = atomic_fetch_add(&last, 1) + 1;
	return id;
}

static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

/*
 * A forked child has one thread and, if the parent used the driver, a driver that answers nothing
 * but errors. Nothing of the parent's is touched or freed: locks may be held by threads that are
 * not here. A child that starts CUDA itself begins from nothing.
 */
static void forked(void)
{
	memset(&tally_process, 0, sizeof tally_process);
	pthread_mutex_init(&tally_process.lock, NULL);
	pthread_mutex_init(&once, NULL);
	tally_activity_forked();
	tally_kernels_forked();
	tally_compile_forked();
	tally_opaque_forked();
	tally_links_forked();
	tally_graphs_forked();
	tally_streams_forked();
	tally_waits_forked();
	tally_events_forked();
	atomic_store(&tally_mode, TALLY_UNKNOWN);
}

/*
 * Runs before the driver's own exit handlers (it is registered after them). From here on nobody
 * stops us and we stop nobody: what was stopped is started again, and the monitor, which must not
 * call a driver that is going away, ends.
 */
static void leaving(void)
{
	if (atomic_exchange(&tally_mode, TALLY_OFF) != TALLY_ON)
		return;
	tally_compile_leave();
	tally_opaque_leave();
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next) {
		struct tally_client *client = atomic_load(&d->client);

		tally_guard_leave(d);
		tally_ahead_leave(d);
		tally_lock(d);
		tally_activity_publish(d);
		tally_unlock(d);
		tally_burst_look(d);
		if (client) {
			tally_client_set_overlap(client, TALLY_OVERLAP_CLOSED);
			tally_client_set_active(client, false);
		}
	}
}

bool tally_start(void)
{
	static bool handlers;
	int mode;

	pthread_mutex_lock(&once);
	mode = atomic_load(&tally_mode);
	if (mode == TALLY_UNKNOWN) {
		tally_config_read(&tally_process.config);
		mode = tally_process.config.scheduled ? TALLY_ON : TALLY_OFF;
		if (mode == TALLY_ON && !handlers) {
			handlers = true;
			pthread_atfork(tally_opaque_before_fork, tally_opaque_after_fork, forked);
			atexit(leaving);
		}
		if (mode == TALLY_ON)
			tally_activity_start();
		if (mode == TALLY_ON)
			tally_process.cpu_target =
				(const char *(*)(void))tally_driver_lookup("tallyCpuTarget");
		if (mode == TALLY_ON)
			tally_process.cpu_background =
				(void (*)(void))tally_driver_lookup("tallyCpuBackground");
		atomic_store(&tally_mode, mode);
	}
	pthread_mutex_unlock(&once);
	return mode == TALLY_ON;
}

void tally_changed(struct tally_device *d)
{
	atomic_fetch_add(&d->changes, 1);
	if (d->sleepers)
		tally_futex_wake(&d->changes, INT_MAX, TALLY_FUTEX_PRIVATE);
}

void tally_wait_changed(struct tally_device *d)
{
	uint32_t seen = atomic_load(&d->changes);

	d->sleepers++;
	tally_unlock(d);
	/* A bound, so that nothing that nobody told is for ever. */
	tally_futex_wait(&d->changes, seen, CHANGED_NS, TALLY_FUTEX_PRIVATE);
	tally_lock(d);
	d->sleepers--;
}

struct tally_slot *tally_slot(struct tally_device *device)
{
	static struct tally_slot nobody;
	struct tally_client *client = atomic_load_explicit(&device->client, memory_order_acquire);

	return client ? tally_client_slot(client) : &nobody;
}

static struct tally_device *find(CUdevice ordinal)
{
	struct tally_device *d = atomic_load_explicit(&tally_process.devices, memory_order_acquire);

	while (d && d->ordinal != ordinal)
		d = d->next;
	return d;
}

/* Drivers before CUDA 12 do not know the question. */
static enum tally_sharing sharing_of(const struct tally_device *d)
{
	int server;

	if (d->cpu)
		return TALLY_SHARING_CPU;
	if (TALLY_DRIVER(cuDeviceGetAttribute)(&server, CU_DEVICE_ATTRIBUTE_MPS_ENABLED,
					       d->ordinal))
		return TALLY_SHARING_UNKNOWN;
	return server ? TALLY_SHARING_SERVER : TALLY_SHARING_SLICES;
}

static struct tally_device *create(CUdevice ordinal)
{
	struct tally_device *d = calloc(1, sizeof *d);
	CUuuid uuid;

	if (!d)
		return NULL;
	d->ordinal = ordinal;
	d->cpu = tally_process.cpu_target != NULL;
	if (!TALLY_DRIVER(cuDeviceGetUuid_v2)(&uuid, ordinal) ||
	    !TALLY_DRIVER(cuDeviceGetUuid)(&uuid, ordinal))
		memcpy(d->uuid, uuid.bytes, sizeof d->uuid);
	TALLY_DRIVER(cuDeviceGetName)(d->name, sizeof d->name, ordinal);
	d->sharing = sharing_of(d);
	d->lock.spins = !d->cpu;
	pthread_mutex_init(&d->activity_lock, NULL);
	return d;
}

struct tally_device *tally_device_of(CUdevice ordinal)
{
	struct tally_device *d = find(ordinal);

	if (d)
		return d;
	pthread_mutex_lock(&tally_process.lock);
	d = find(ordinal);
	if (!d) {
		d = create(ordinal);
		if (d && tally_reporting_start(d) && tally_burst_start(d) &&
		    (!tally_process.config.ahead || tally_ahead_start(d)) &&
		    tally_monitor_start(d)) {
			d->next = atomic_load(&tally_process.devices);
			atomic_store_explicit(&tally_process.devices, d, memory_order_release);
		} else {
			if (d) {
				tally_report_destroy(d->report);
				free(d->burst);
				free(d->ahead);
			}
			free(d);
			d = NULL;
		}
	}
	pthread_mutex_unlock(&tally_process.lock);
	return d;
}
