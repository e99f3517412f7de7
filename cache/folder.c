/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's folder: where it is, what is in it, keeping it small, emptying it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/number.h"
#include "cache/internal.h"

#define DEFAULT_LIMIT_MIB 1024
#define MOST_MIB	  1000000000u
#define STALE_SECONDS	  3600 /* a temporary file this old has lost its writer */

bool tally_cache_folder(char path[PATH_MAX], struct tally_error *error)
{
	const char *own = getenv("TALLY_CACHE_DIR"), *cache = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	int length;

	/* tallyd and the programs stand in different folders. */
	if (own && *own && *own != '/')
		return tally_fail(error, "TALLY_CACHE_DIR is \"%s\", not an absolute path", own);
	if (own && *own)
		length = snprintf(path, PATH_MAX, "%s", own);
	else if (cache && *cache == '/')
		length = snprintf(path, PATH_MAX, "%s/tally", cache);
	else if (home && *home == '/')
		length = snprintf(path, PATH_MAX, "%s/.cache/tally", home);
	else
		length = snprintf(path, PATH_MAX, "/tmp/tally-%u/cache", (unsigned)getuid());
	/* Room for the names inside. */
	if (length >= PATH_MAX - 80)
		return tally_fail(error, "the path of the code cache is too long");
	return true;
}

/* The limit in bytes; the default, and false, where the variable makes no sense. */
static bool read_limit(uint64_t *bytes, struct tally_error *error)
{
	const char *text = getenv("TALLY_CACHE_SIZE");
	unsigned long mib = DEFAULT_LIMIT_MIB;
	bool ok = !text || !*text || tally_parse_whole(text, 0, MOST_MIB, &mib);

	*bytes = (uint64_t)mib << 20;
	return ok ||
	       tally_fail(error, "TALLY_CACHE_SIZE is \"%s\", not a whole number of MiB up to %u",
			  text, MOST_MIB);
}

enum kind { OTHER, RESULT, LOCK, TEMPORARY };

/* Files of ours are 32 hex digits and an extension: whatever else a user keeps there is not
 * touched. */
static enum kind kind_of(const char *name)
{
	if (strspn(name, "0123456789abcdef") != 32 || name[32] != '.')
		return OTHER;
	if (!strcmp(name + 32, ".lock"))
		return LOCK;
	size_t length = strlen(name);
	return !strcmp(name + length - 4, ".tmp") ? TEMPORARY : RESULT;
}

struct entry {
	char name[64];
	uint64_t bytes;
	int64_t used; /* nanoseconds of the epoch */
};

struct listing {
	struct entry *entry;
	size_t count;
	uint64_t bytes;
};

static void list_add(struct listing *list, const char *name, const struct statx *info)
{
	if (!TALLY_GROW(list->entry, list->count))
		return;
	struct entry *e = &list->entry[list->count++];
	snprintf(e->name, sizeof e->name, "%s", name);
	/* Blocks, not the length: the limit is about the disk. */
	e->bytes = info->stx_blocks * 512;
	e->used = info->stx_mtime.tv_sec * 1000000000 + info->stx_mtime.tv_nsec;
	list->bytes += e->bytes;
}

/* Lists the results; removes temporary files that nobody writes any more. */
static bool list_folder(const char *folder, struct listing *list, int *error_number)
{
	DIR *dir = opendir(folder);

	*list = (struct listing){0};
	*error_number = errno;
	if (!dir)
		return false;
	for (struct dirent *d; (d = readdir(dir));) {
		struct statx info;
		enum kind kind = kind_of(d->d_name);
		if (kind == OTHER || kind == LOCK ||
		    statx(dirfd(dir), d->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &info) !=
			    0 ||
		    !S_ISREG(info.stx_mode))
			continue;
		if (kind == RESULT && strlen(d->d_name) < sizeof list->entry->name)
			list_add(list, d->d_name, &info);
		else if (kind == TEMPORARY && info.stx_mtime.tv_sec + STALE_SECONDS < time(NULL))
			unlinkat(dirfd(dir), d->d_name, 0);
	}
	closedir(dir);
	return true;
}

static int by_use(const void *a, const void *b)
{
	int64_t x = ((const struct entry *)a)->used, y = ((const struct entry *)b)->used;

	return x < y ? -1 : x > y;
}

void tally_cache_evict(const char *folder, const char *keep)
{
	struct listing list;
	uint64_t limit;
	int number;

	read_limit(&limit, NULL);
	if (!list_folder(folder, &list, &number))
		return;
	if (list.bytes > limit) {
		qsort(list.entry, list.count, sizeof *list.entry, by_use);
		for (size_t i = 0; i < list.count && list.bytes > limit; i++) {
			char path[PATH_MAX];
			if (!strcmp(list.entry[i].name, keep) ||
			    snprintf(path, sizeof path, "%s/%s", folder, list.entry[i].name) >=
				    (int)sizeof path)
				continue;
			unlink(path);
			list.bytes -= list.entry[i].bytes;
		}
	}
	free(list.entry);
}

bool tally_cache_status(struct tally_cache_status *status, struct tally_error *error)
{
	char folder[PATH_MAX];
	struct listing list;
	int number;

	*status = (struct tally_cache_status){0};
	if (!read_limit(&status->limit, error) || !tally_cache_folder(folder, error))
		return false;
	if (!list_folder(folder, &list, &number))
		return number == ENOENT ||
		       tally_fail_at(error, folder, 0, 0, "cannot read: %s", strerror(number));
	status->bytes = list.bytes;
	status->files = (unsigned)list.count;
	free(list.entry);
	return true;
}

/* A lock that nobody holds is rubbish; one that is held is somebody's compile under way. */
static void remove_free_lock(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(folder, name, 0);
	close(fd);
}

bool tally_cache_clear(unsigned *removed, struct tally_error *error)
{
	char folder[PATH_MAX];
	DIR *dir;
	int failed = 0;

	*removed = 0;
	if (!tally_cache_folder(folder, error))
		return false;
	dir = opendir(folder);
	if (!dir)
		return errno == ENOENT ||
		       tally_fail_at(error, folder, 0, 0, "cannot read: %s", strerror(errno));
	for (struct dirent *d; (d = readdir(dir));) {
		enum kind kind = kind_of(d->d_name);
		if (kind == LOCK)
			remove_free_lock(dirfd(dir), d->d_name);
		if (kind != RESULT)
			continue;
		if (unlinkat(dirfd(dir), d->d_name, 0) == 0)
			++*removed;
		else if (errno != ENOENT)
			failed = errno;
	}
	closedir(dir);
	return !failed ||
	       tally_fail_at(error, folder, 0, 0, "cannot remove every file: %s", strerror(failed));
}
