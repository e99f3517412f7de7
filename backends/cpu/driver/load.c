/* SPDX-License-Identifier: Apache-2.0 */
/* From an image to kernels that can be run. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cpu/driver/module.h"
#include "backends/cpu/driver/tally_cpu.h"
#include "base/file.h"
#include "base/memory_file.h"
#include "cache/cache.h"

/* What tally-lower writes for x86-64, and what libtally hands us after a transform. */
static bool is_compiled(const void *image, size_t size)
{
	Elf64_Ehdr header;

	if (size < sizeof header)
		return false;
	memcpy(&header, image, sizeof header);
	return !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_machine == EM_X86_64 &&
	       header.e_type == ET_DYN;
}

static bool is_text(const void *image)
{
	return strchr(" \t\r\n/.", *(const char *)image) != NULL;
}

/* False with errno. */
static bool within_limit(uint64_t size)
{
	if (!tally_within_file_limit(size))
		errno = EFBIG;
	return tally_within_file_limit(size);
}

static bool copy_file(int to, const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	struct stat info;
	bool ok = from >= 0 && fstat(from, &info) == 0 && within_limit((uint64_t)info.st_size);
	off_t left = ok ? info.st_size : 0;

	while (ok && left > 0) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);
		ok = n > 0 || (n < 0 && errno == EINTR);
		left -= n > 0 ? n : 0;
	}
	if (from >= 0)
		close(from);
	return ok;
}

/*
 * A module has its own variables, even when the same image is loaded twice; dlopen() takes two
 * loads of one file for one. So each load gets a memory file of its own, and a name of its own: the
 * loader also compares names, and a descriptor's number comes again. The number of the load, in
 * binary, is written into the path as "/." and "//.", which mean nothing.
 */
static void private_name(int fd, char *path, size_t size)
{
	static _Atomic unsigned serial;
	unsigned number = serial++;
	size_t length = (size_t)snprintf(path, size, "/proc/self/fd");

	do {
		length += (size_t)snprintf(path + length, size - length, "%s",
					   number & 1 ? "//." : "/.");
		number >>= 1;
	} while (number);
	snprintf(path + length, size - length, "/%d", fd);
}

static CUresult compile(const void *image, size_t size, int to, struct tally_error *why)
{
	struct tally_cache_request request = {image, size, tallyCpuTarget(), "none"};
	char path[PATH_MAX];

	/* Again when somebody cleared the cache between the answer and our reading it. */
	for (int attempt = 0; attempt < 3; attempt++) {
		if (!tally_cache_get(&request, path, why))
			return is_text(image) ? CUDA_ERROR_INVALID_PTX
					      : CUDA_ERROR_NO_BINARY_FOR_GPU;
		if (copy_file(to, path))
			return CUDA_SUCCESS;
		if (ftruncate(to, 0) != 0 || lseek(to, 0, SEEK_SET) != 0)
			break;
	}
	tally_fail(why, "cannot read %s: %s", path, strerror(errno));
	return CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult module_make_code(const void *image, size_t size, struct tally_cpu_image *code,
			  struct tally_error *why)
{
	char path[256];
	CUresult result = CUDA_SUCCESS;
	int fd = tally_memory_file("tally-kernels", 0, 0);

	if (fd < 0) {
		tally_fail(why, "no memory file for compiled kernels: %s", strerror(errno));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!is_compiled(image, size)) {
		result = compile(image, size, fd, why);
	} else if (!within_limit(size) || !tally_write_all(fd, image, size)) {
		tally_fail(why, "cannot copy compiled kernels: %s", strerror(errno));
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!result) {
		struct tally_error open_error = {0};
		private_name(fd, path, sizeof path);
		if (!tally_cpu_image_open(path, code, &open_error)) {
			/* The path is of no use to anybody. */
			const char *text = open_error.message, *at = strstr(text, path);
			tally_fail(why, "%.*s<image>%s", at ? (int)(at - text) : 0, text,
				   at ? at + strlen(path) : text);
			result = CUDA_ERROR_INVALID_IMAGE;
		}
	}
	close(fd);
	return result;
}
