/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, whole files out: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any program with kernels has; without a bound an endless input (/dev/zero, a sparse
 * file) would take all of the machine's memory. */
static const size_t file_max = (size_t)4 << 30, stream_max = (size_t)1 << 30;

static bool read_descriptor(int fd, const char *path, struct tally_buffer *out,
			    struct tally_error *error)
{
	char chunk[65536];
	struct statx info;
	/* Not fstat(): its symbol is newer than the oldest glibc that libtally.so loads with. */
	bool regular = statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &info) == 0 &&
		       S_ISREG(info.stx_mode);
	size_t most = regular ? file_max : stream_max, before = out->size;

	if (regular && info.stx_size > most)
		return tally_fail_at(error, path, 0, 0, "cannot read: more than %zu GiB",
				     most >> 30);
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tally_fail_at(error, path, 0, 0, "cannot read: %s", strerror(errno));
		if (n == 0)
			break;
		tally_buffer_append(out, chunk, (size_t)n);
		if (out->failed)
			break;
		if (out->size - before > most)
			return tally_fail_at(error, path, 0, 0, "cannot read: more than %zu GiB",
					     most >> 30);
	}
	if (out->failed)
		return tally_fail_at(error, path, 0, 0, "cannot read: out of memory");
	return true;
}

bool tally_file_read(const char *path, struct tally_buffer *out, struct tally_error *error)
{
	if (!strcmp(path, "-"))
		return read_descriptor(STDIN_FILENO, "<stdin>", out, error);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return tally_fail_at(error, path, 0, 0, "cannot open: %s", strerror(errno));
	bool ok = read_descriptor(fd, path, out, error);
	close(fd);
	return ok;
}

bool tally_write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* A zero-byte write says nothing in errno: call it a full disk. */
			errno = n ? errno : ENOSPC;
			return false;
		}
		p += n;
		size -= (size_t)n;
	}
	return true;
}

static bool cannot_write(const char *path, const char *why, struct tally_error *error)
{
	return tally_fail_at(error, path, 0, 0, "cannot write: %s", why);
}

/* A pipe, a device: written in place. A folder is none of them: it cannot be opened. */
static bool is_special(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

/* A file beside the one that it is to replace, opened, and both their names; or -1. */
static int begin(const char *path, char real[PATH_MAX], char temporary[PATH_MAX],
		 struct tally_error *error)
{
	static _Atomic unsigned serial;
	int fd;

	if (!*path)
		return cannot_write("\"\"", "that is no file's name", error), -1;
	/* The file is replaced, not the link that names it, and not one that must not be written.
	 */
	if (realpath(path, real)) {
		if (faccessat(AT_FDCWD, real, W_OK, AT_EACCESS) != 0)
			return cannot_write(path, strerror(errno), error), -1;
	} else if (snprintf(real, PATH_MAX, "%s", path) >= PATH_MAX) {
		return cannot_write(path, "the path is too long", error), -1;
	}
	if (snprintf(temporary, PATH_MAX, "%s.%d.%u.tmp", real, (int)getpid(), serial++) >=
	    PATH_MAX)
		return cannot_write(path, "the path is too long", error), -1;
	/* Not mkostemp: it makes files of mode 0600, and only O_CREAT applies the umask without
	 * a moment in which the whole process runs with another one. */
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		cannot_write(path, strerror(errno), error);
	return fd;
}

static bool write_special(const char *path, const void *data, size_t size,
			  struct tally_error *error)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && tally_write_all(fd, data, size);
	int saved = errno;

	if (fd >= 0)
		close(fd);
	return ok || cannot_write(path, strerror(saved), error);
}

bool tally_file_write(const char *path, const void *data, size_t size, struct tally_error *error)
{
	char temporary[PATH_MAX], real[PATH_MAX];

	if (!strcmp(path, "-"))
		return tally_write_all(STDOUT_FILENO, data, size) ||
		       cannot_write("<stdout>", strerror(errno), error);
	if (is_special(path))
		return write_special(path, data, size, error);
	int fd = begin(path, real, temporary, error);
	if (fd < 0)
		return false;
	bool ok = tally_write_all(fd, data, size);
	int saved = errno;
	if (close(fd) != 0 && ok) {
		ok = false;
		saved = errno;
	}
	if (ok && rename(temporary, real) != 0) {
		ok = false;
		saved = errno;
	}
	if (ok)
		return true;
	unlink(temporary);
	return cannot_write(path, strerror(saved), error);
}

bool tally_file_may_write(const char *path, struct tally_error *error)
{
	char temporary[PATH_MAX], real[PATH_MAX];
	struct stat info;
	int fd;

	if (!strcmp(path, "-"))
		return true;
	if (is_special(path)) {
		if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
			return cannot_write(path, strerror(EISDIR), error);
		return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ||
		       cannot_write(path, strerror(errno), error);
	}
	fd = begin(path, real, temporary, error);
	if (fd < 0)
		return false;
	close(fd);
	unlink(temporary);
	return true;
}

bool tally_make_folders(const char *path, struct tally_error *error)
{
	char part[PATH_MAX];

	if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
		return tally_fail_at(error, path, 0, 0, "cannot make the folder: path too long");
	for (char *c = part + 1;; c++) {
		if (*c != '/' && *c != '\0')
			continue;
		char end = *c;
		*c = '\0';
		if (mkdir(part, 0700) != 0 && errno != EEXIST)
			return tally_fail_at(error, path, 0, 0, "cannot make the folder: %s",
					     strerror(errno));
		*c = end;
		if (!end)
			return true;
	}
}
