/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be guarded of the machine code in libraries: each image of each chip is patched; those
 * of one chip are also given to the driver, and each kernel is asked for. A line of JSON for each
 * chip.
 *
 *   survey [--load sm_90] [--jobs N] [--keep FOLDER] LIBRARY...
 *
 * --keep writes every 100th patched image of a chip there, for a disassembler, and the original
 * beside it, for tests/sass/check.py.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#include "backends/cuda/sass/patch.h"
#include "base/file.h"
#include "frontend/frontend.h"

enum { CHIPS = 256, KEEP_EVERY = 100, FATBIN_HEADER = 16, ENTRY_HEADER = 64 };

/* Of one chip, shared by all workers. */
struct counts {
	atomic_ulong images, refused_images, kernels, reason[TALLY_SASS_REASON_COUNT];
	atomic_ulong bytes, patched_bytes, ns; /* of images that were patched */
	atomic_ulong loaded, resolved, failed;
	char first_failure[256], first_refusal[256];
};

static struct counts *counts;
static const char *load_target, *keep;
static unsigned jobs = 1;

static struct {
	CUresult (*init)(unsigned);
	CUresult (*device_get)(CUdevice *, int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set)(CUcontext);
	CUresult (*load)(CUlibrary *, const void *, CUjit_option *, void **, unsigned,
			 CUlibraryOption *, void **, unsigned);
	CUresult (*unload)(CUlibrary);
	CUresult (*kernel)(CUkernel *, CUlibrary, const char *);
	CUresult (*function)(CUfunction *, CUkernel);
	CUresult (*parameter)(CUkernel, size_t, size_t *, size_t *);
} driver;

static bool open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUcontext context;
	CUdevice device;
	const struct {
		const char *name;
		void *where;
	} names[] = {{"cuInit", &driver.init},
		     {"cuDeviceGet", &driver.device_get},
		     {"cuDevicePrimaryCtxRetain", &driver.retain},
		     {"cuCtxSetCurrent", &driver.set},
		     {"cuLibraryLoadData", &driver.load},
		     {"cuLibraryUnload", &driver.unload},
		     {"cuLibraryGetKernel", &driver.kernel},
		     {"cuKernelGetFunction", &driver.function},
		     {"cuKernelGetParamInfo", &driver.parameter}};

	for (size_t k = 0; library && k < sizeof names / sizeof *names; k++) {
		void *symbol = dlsym(library, names[k].name);

		memcpy(names[k].where, &symbol, sizeof symbol);
		if (!symbol)
			return false;
	}
	return library && !driver.init(0) && !driver.device_get(&device, 0) &&
	       !driver.retain(&context, device) && !driver.set(context);
}

static void note_failure(struct counts *c, const char *what, const char *name, int result)
{
	if (!atomic_fetch_add(&c->failed, 1))
		snprintf(c->first_failure, sizeof c->first_failure, "%s %.180s: %d", what, name,
			 result);
}

/* The last parameter of a guarded kernel is the launch's: 16 bytes. */
static bool has_launch_parameter(CUkernel kernel)
{
	size_t offset, size = 0, last = 0;

	for (size_t k = 0; !driver.parameter(kernel, k, &offset, &size); k++)
		last = size;
	return last == 16;
}

static void load(struct counts *c, const struct tally_buffer *image,
		 const struct tally_sass_report *report)
{
	CUlibrary library;
	CUresult result = driver.load(&library, image->data, NULL, NULL, 0, NULL, NULL, 0);

	if (result) {
		note_failure(c, "cuLibraryLoadData", report->kernel->name, result);
		return;
	}
	atomic_fetch_add(&c->loaded, 1);
	for (size_t k = 0; k < report->count; k++) {
		const char *name = report->kernel[k].name;
		CUkernel kernel;
		CUfunction function;

		result = driver.kernel(&kernel, library, name);
		if (!result)
			result = driver.function(&function, kernel);
		if (!result && has_launch_parameter(kernel) != !report->kernel[k].reason)
			result = -1;
		if (result)
			note_failure(c, "kernel", name, result);
		else
			atomic_fetch_add(&c->resolved, 1);
	}
	driver.unload(library);
}

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec;
}

static void patch(unsigned chip, const struct tally_image *image)
{
	struct counts *c = &counts[chip];
	struct tally_sass_report report;
	struct tally_buffer out = {0};
	struct tally_error error = {0};
	char target[16], path[4096];
	unsigned long began = now();

	snprintf(target, sizeof target, "sm_%u", chip);
	unsigned long number = atomic_fetch_add(&c->images, 1);
	bool ok = tally_sass_patch(image->data, image->size, target, NULL, &out, &report, &error);
	atomic_fetch_add(&c->ns, now() - began);
	atomic_fetch_add(&c->kernels, report.count);
	for (size_t k = 0; k < report.count; k++)
		atomic_fetch_add(&c->reason[report.kernel[k].reason], 1);
	for (size_t k = 0; k < report.count; k++)
		if (report.kernel[k].reason && !c->first_refusal[0])
			snprintf(c->first_refusal, sizeof c->first_refusal, "%.120s: %s",
				 report.kernel[k].name,
				 tally_sass_reason_text(report.kernel[k].reason));
	if (ok) {
		atomic_fetch_add(&c->bytes, image->size);
		atomic_fetch_add(&c->patched_bytes, out.size);
		snprintf(path, sizeof path, "%s/sm_%u.%lu.cubin", keep, chip, number);
		if (keep && number % KEEP_EVERY == 0) {
			tally_file_write(path, out.data, out.size, &error);
			snprintf(path, sizeof path, "%s/sm_%u.%lu.original", keep, chip, number);
			tally_file_write(path, image->data, image->size, &error);
		}
		if (load_target && !strcmp(target, load_target))
			load(c, &out, &report);
	} else {
		if (!atomic_fetch_add(&c->refused_images, 1))
			snprintf(c->first_refusal, sizeof c->first_refusal, "%.250s",
				 error.message);
	}
	tally_buffer_free(&out);
	tally_sass_report_free(&report);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof value);
	return value;
}

/* One entry as a fatbin of its own, so that only its bytes are decompressed. */
static void read_entry(const char *path, const uint8_t *entry, uint64_t size, unsigned chip)
{
	uint8_t *alone = malloc(FATBIN_HEADER + size);
	struct tally_images images = {0};
	struct tally_error error = {0};

	if (!alone)
		exit(1);
	memcpy(alone, "\x50\xED\x55\xBA\x01\x00\x10\x00", 8);
	memcpy(alone + 8, &size, 8);
	memcpy(alone + FATBIN_HEADER, entry, size);
	if (tally_container_read(path, alone, FATBIN_HEADER + size, &images, &error))
		patch(chip, &images.image[0]);
	else
		tally_error_print(&error, "survey");
	tally_images_free(&images);
	free(alone);
}

/* All fatbins of a file: worker `mine` takes every so-many-eth image of machine code. */
static void read_library(const char *path, unsigned mine)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat info;
	unsigned number = 0;

	if (fd < 0 || fstat(fd, &info)) {
		fprintf(stderr, "survey: error: cannot open %s\n", path);
		exit(1);
	}
	uint64_t size = (uint64_t)info.st_size;
	const uint8_t *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		exit(1);
	for (uint64_t at = 0; at + FATBIN_HEADER < size; at += 8) {
		uint64_t length;

		if (memcmp(file + at, "\x50\xED\x55\xBA\x01\x00\x10\x00", 8))
			continue;
		memcpy(&length, file + at + 8, 8);
		if (length > size - at - FATBIN_HEADER)
			continue;
		uint64_t entry = at + FATBIN_HEADER, end = entry + length;
		while (entry + ENTRY_HEADER <= end) {
			uint64_t all = (uint64_t)get32(file + entry + 4) + get32(file + entry + 8);
			unsigned chip = get32(file + entry + 28);

			if (all < ENTRY_HEADER || all > end - entry)
				break;
			if ((get32(file + entry) & 0xffff) == 2 && chip < CHIPS &&
			    number++ % jobs == mine)
				read_entry(path, file + entry, all, chip);
			entry += all;
		}
		at += FATBIN_HEADER + (length & ~(uint64_t)7) - 8;
	}
	munmap((void *)(uintptr_t)file, size);
}

static void print(const char *what, unsigned chip, const struct counts *c)
{
	struct tally_buffer text = {0};

	tally_buffer_print(&text,
			   "{\"what\": \"%s\", \"chip\": \"sm_%u\", \"images\": %lu, "
			   "\"refused_images\": %lu, \"kernels\": %lu, ",
			   what, chip, c->images, c->refused_images, c->kernels);
	for (int r = 0; r < TALLY_SASS_REASON_COUNT; r++)
		if (c->reason[r])
			tally_buffer_print(&text, "\"%s\": %lu, ",
					   tally_sass_reason_text((enum tally_sass_reason)r),
					   c->reason[r]);
	tally_buffer_print(&text,
			   "\"bytes\": %lu, \"patched_bytes\": %lu, \"cpu_s\": %.3f, \"loaded\": "
			   "%lu, \"resolved\": %lu, \"failed\": %lu, \"first_failure\": \"",
			   c->bytes, c->patched_bytes, (double)c->ns * 1e-9, c->loaded, c->resolved,
			   c->failed);
	tally_buffer_json(&text, c->first_failure);
	tally_buffer_print(&text, "\", \"first_refusal\": \"");
	tally_buffer_json(&text, c->first_refusal);
	printf("%s\"}\n", text.data);
	tally_buffer_free(&text);
}

/* One library by all workers. */
static bool survey(const char *path)
{
	const char *slash = strrchr(path, '/');
	bool ok = true;

	memset(counts, 0, CHIPS * sizeof *counts);
	for (unsigned k = 0; k < jobs; k++)
		if (fork() == 0) {
			if (load_target && !open_driver()) {
				fprintf(stderr, "survey: error: no driver to load with\n");
				_exit(1);
			}
			read_library(path, k);
			_exit(0);
		}
	for (int status; wait(&status) > 0;)
		ok &= status == 0;
	for (unsigned chip = 0; chip < CHIPS; chip++)
		if (counts[chip].images)
			print(slash ? slash + 1 : path, chip, &counts[chip]);
	fflush(stdout);
	return ok;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"load", 1, NULL, 'l'}, {"jobs", 1, NULL, 'j'}, {"keep", 1, NULL, 'k'}, {0}};
	bool ok = true;

	for (int option; (option = getopt_long(argc, argv, "", known, NULL)) >= 0;)
		switch (option) {
		case 'l':
			load_target = optarg;
			break;
		case 'j':
			jobs = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'k':
			keep = optarg;
			break;
		default:
			return 1;
		}
	counts = mmap(NULL, CHIPS * sizeof *counts, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED || !jobs || optind == argc) {
		fprintf(stderr, "survey: error: no library named\n");
		return 1;
	}
	for (int k = optind; k < argc; k++)
		ok &= survey(argv[k]);
	return !ok;
}
