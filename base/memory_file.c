/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name: see memory_file.h. */
#include "base/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

bool tally_within_file_limit(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || size <= limit.rlim_cur;
}

/* The same file behind a descriptor above the standard three; closes the one that was given. */
static int move_up(int fd)
{
	int high, saved;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	/* The least that will do: there may be a limit of few descriptors. */
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	saved = errno;
	close(fd);
	errno = saved;
	return high;
}

int tally_memory_file(const char *name, unsigned flags, uint64_t size)
{
	int fd, saved;

	if (!tally_within_file_limit(size)) {
		errno = EFBIG;
		return -1;
	}
	fd = move_up(memfd_create(name, MFD_CLOEXEC | flags));
	if (fd < 0 || !size || !ftruncate(fd, (off_t)size))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}
