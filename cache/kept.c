/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result as it lies in the folder: what the compiler wrote, and a line behind it with the sum of
 * that. A disk that damages a file, a machine that loses its power and a hand that edits one leave
 * a name with something else behind it, which a driver may well take. The line is a comment to
 * whoever reads text, and behind the end of what ELF headers describe, so that a result needs
 * nothing to be taken off before it is loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory_file.h"
#include "cache/internal.h"

#define CHUNK 65536

/* "\n// sum 0123456789abcdef\n" */
enum { LINE_BYTES = 25 };

static void write_line(char line[LINE_BYTES + 1], uint64_t sum)
{
	snprintf(line, LINE_BYTES + 1, "\n// sum %016llx\n", (unsigned long long)sum);
}

/* All of `size` bytes at `offset`; false where they are not there. */
static bool read_at(int fd, char *bytes, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t n = pread(fd, bytes, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

/* The sum of the first `size` bytes, piece by piece: images may be large, and a file that cannot be
 * read is no signal's matter. A result under another's name has another sum. */
static bool sum_of(int fd, uint64_t size, struct tally_hash key, uint64_t *sum)
{
	char chunk[CHUNK];

	*sum = tally_hash_64(key.hex, sizeof key.hex - 1);
	for (uint64_t at = 0; at < size; at += CHUNK) {
		size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
		if (!read_at(fd, chunk, n, at))
			return false;
		*sum = tally_hash_64_on(*sum, chunk, n);
	}
	return true;
}

static bool is_whole(int fd, uint64_t size, struct tally_hash key)
{
	char expected[LINE_BYTES + 1], line[LINE_BYTES];
	uint64_t sum;

	if (size <= LINE_BYTES || !sum_of(fd, size - LINE_BYTES, key, &sum) ||
	    !read_at(fd, line, LINE_BYTES, size - LINE_BYTES))
		return false;
	write_line(expected, sum);
	return !memcmp(line, expected, LINE_BYTES);
}

bool tally_cache_take(const char *path, struct tally_hash key)
{
	struct statx info;
	bool whole;
	/* To open what is no file may take for ever. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return false;
	whole = !statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &info) &&
		S_ISREG(info.stx_mode) && is_whole(fd, info.stx_size, key);
	close(fd);
	if (whole)
		utimensat(AT_FDCWD, path, NULL, 0);
	return whole;
}

/* Copies `size` bytes from the beginning of `from`. */
static bool copy(int from, int to, off_t size)
{
	off_t offset = 0;

	while (offset < size) {
		ssize_t n = sendfile(to, from, &offset, (size_t)(size - offset));
		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
	}
	return true;
}

bool tally_cache_keep(int from, const char *path, struct tally_hash key)
{
	char temporary[PATH_MAX + 64], line[LINE_BYTES + 1];
	static _Atomic unsigned serial;
	off_t size = lseek(from, 0, SEEK_END);
	uint64_t sum;

	if (size <= 0 || !tally_within_file_limit((uint64_t)size + LINE_BYTES) ||
	    !sum_of(from, (uint64_t)size, key, &sum))
		return false;
	write_line(line, sum);
	snprintf(temporary, sizeof temporary, "%s.%d.%u.tmp", path, (int)getpid(), serial++);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool ok = copy(from, fd, size) && tally_write_all(fd, line, LINE_BYTES);
	ok = close(fd) == 0 && ok && rename(temporary, path) == 0;
	if (!ok)
		unlink(temporary);
	return ok;
}
