/* SPDX-License-Identifier: Apache-2.0 */
/* The program's report on a device (profiler/report.h): made with the device, left with tallyd. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "cache/cache.h"

/* The kernel module's version ("580.65.06"): the API's own changes with CUDA's releases alone. */
#define MODULE_VERSION "/sys/module/nvidia/version"

/* What measurements must not outlive: "13000 580.65.06". */
static void driver_version(const struct tally_device *d, char *text, size_t size)
{
	char module[32] = "";
	int version = 0, fd;
	ssize_t length = 0;

	TALLY_DRIVER(cuDriverGetVersion)(&version);
	fd = d->cpu ? -1 : open(MODULE_VERSION, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, module, sizeof module - 1);
		close(fd);
	}
	module[length > 0 ? length : 0] = '\0';
	module[strcspn(module, "\n")] = '\0';
	snprintf(text, size, "%d%s%s", version, *module ? " " : "", module);
}

bool tally_reporting_start(struct tally_device *d)
{
	char driver[32], compiler[32];
	struct tally_report_identity identity = {.priority = tally_process.config.priority,
						 .name = tally_process.config.name,
						 .device_name = d->name,
						 .driver = driver,
						 .transform = compiler};

	driver_version(d, driver, sizeof driver);
	tally_cache_compiler(compiler, sizeof compiler);
	memcpy(identity.device, d->uuid, sizeof identity.device);
	d->report = tally_report_create(&identity, &d->report_fd);
	return d->report != NULL;
}

struct tally_attachment tally_reporting_attachment(const struct tally_device *d)
{
	/* The program may have closed the number and opened something else under it. */
	if (!tally_report_is(d->report_fd))
		return (struct tally_attachment){0};
	return (struct tally_attachment){d->report_fd, TALLY_REPORT_KIND, sizeof *d->report};
}

void tally_reporting_joined(struct tally_device *d, struct tally_attachment given)
{
	const struct tally_report *r = d->report;
	struct tally_origin origin = tally_origin_of(r->device_name, r->driver, r->transform);

	if (tally_report_is(d->report_fd))
		close(d->report_fd);
	d->report_fd = -1;
	if (!given.size)
		return;
	/* Threads may be reading the first one: a later tallyd's is not much newer. */
	if (given.kind == TALLY_PROFILES_KIND && !atomic_load(&d->profiles))
		atomic_store(&d->profiles, tally_profiles_map(given.fd, &origin, NULL));
	close(given.fd);
}
