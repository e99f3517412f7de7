/* SPDX-License-Identifier: Apache-2.0 */
/* The code cache: finds a result, waits for whoever makes it, or makes it. See cache.h. */
#include "cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cache/internal.h"

/* Longer than a worker may take: a holder of the lock that is still there after this is stuck. */
#define LOCK_PATIENCE_NS UINT64_C(150000000000)

/*
 * What only this process knows: requests that were refused, and results that found no place on the
 * disk and stay in a memory file. Entries are added in front, never changed and never removed, so
 * that no lock is needed (one might be held by another thread when the application forks).
 */
struct remembered {
	struct remembered *next;
	struct tally_hash key;
	struct tally_error refused; /* or, when not failed: */
	int fd;
	uint64_t inode; /* of fd: the application may have closed and reused it */
};

static struct remembered *_Atomic memory;

static uint64_t inode_of(int fd)
{
	struct statx info;

	return statx(fd, "", AT_EMPTY_PATH, STATX_INO, &info) == 0 ? info.stx_ino : 0;
}

static void remember(struct tally_hash key, int fd, const struct tally_error *refused)
{
	struct remembered *r = calloc(1, sizeof *r);

	if (!r)
		return;
	r->key = key;
	r->fd = fd;
	r->inode = fd >= 0 ? inode_of(fd) : 0;
	if (refused)
		r->refused = *refused;
	r->next = atomic_load(&memory);
	while (!atomic_compare_exchange_weak(&memory, &r->next, r))
		;
}

static enum tally_cache_answer recall(struct tally_hash key, char path[PATH_MAX],
				      struct tally_error *error)
{
	enum tally_cache_answer answer = TALLY_CACHE_MISSING;

	for (const struct remembered *r = atomic_load(&memory); r && !answer; r = r->next) {
		if (strcmp(r->key.hex, key.hex))
			continue;
		if (tally_failed(&r->refused)) {
			answer = TALLY_CACHE_REFUSED;
			if (error && !tally_failed(error))
				*error = r->refused;
		} else if (inode_of(r->fd) == r->inode) {
			answer = TALLY_CACHE_FOUND;
			snprintf(path, PATH_MAX, "/proc/self/fd/%d", r->fd);
		}
	}
	return answer;
}

/* The folder, made when missing; false when nothing can be kept there. In a world-writable parent
 * somebody else may have made it first: code from there would be run as ours. */
static bool usable_folder(char folder[PATH_MAX])
{
	struct tally_error ignored = {0};
	struct statx info;

	return tally_cache_folder(folder, &ignored) && tally_make_folders(folder, &ignored) &&
	       statx(AT_FDCWD, folder, 0, STATX_UID | STATX_MODE, &info) == 0 &&
	       info.stx_uid == geteuid() && !(info.stx_mode & 022) &&
	       access(folder, W_OK | X_OK) == 0;
}

/*
 * Takes the request's lock, or learns that the result is there meanwhile. Asks again and again
 * instead of sleeping in flock(): a holder that died may have left the lock to a child that the
 * application forked at the wrong moment, and then nobody would ever wake us. Returns the lock's
 * descriptor, or -1 (result there, no lock to be had, patience over).
 */
static int take_lock(const char *lock_path, const char *result, struct tally_hash key, bool *there)
{
	uint64_t end = tally_now() + LOCK_PATIENCE_NS;
	struct timespec pause = {.tv_nsec = 1000000};
	int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	while (fd >= 0) {
		bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
		int why = errno;
		*there = tally_cache_take(result, key);
		if (locked)
			return fd;
		if (*there || why != EWOULDBLOCK || tally_now() > end)
			break;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 30000000)
			pause.tv_nsec *= 2;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Removed before it is released: a later lock file of the same name is another one, but whoever
 * gets this one finds the result first. */
static void release_lock(int fd, const char *lock_path)
{
	if (fd < 0)
		return;
	unlink(lock_path);
	flock(fd, LOCK_UN); /* for copies of fd in forked children too */
	close(fd);
}

/* Compiles, and keeps the result in `folder` (NULL: there is none) or in memory. */
static bool make(const char *lower, const struct tally_cache_request *request,
		 struct tally_hash key, const char *folder, const char *name, char path[PATH_MAX],
		 struct tally_error *error)
{
	struct tally_error why = {0};
	int fd;
	enum tally_worker_end end = tally_worker_run(lower, request, &fd, &why);

	if (end == TALLY_WORKER_KILLED) {
		/* Out of memory, somebody's mistake: worth one more attempt. */
		why = (struct tally_error){0};
		end = tally_worker_run(lower, request, &fd, &why);
	}
	if (end != TALLY_WORKER_DONE) {
		if (end == TALLY_WORKER_REFUSED || end == TALLY_WORKER_LATE)
			remember(key, -1, &why);
		return tally_fail_at(error, why.file[0] ? why.file : NULL, why.line, why.column,
				     "%s", why.message);
	}
	if (folder && tally_cache_keep(fd, path, key)) {
		close(fd);
		tally_cache_evict(folder, name);
		return true;
	}
	snprintf(path, PATH_MAX, "/proc/self/fd/%d", fd);
	remember(key, fd, NULL);
	return true;
}

/* Where a request's result is, or would be. */
struct place {
	char lower[PATH_MAX], folder[PATH_MAX], lock[PATH_MAX], name[64];
	struct tally_hash key;
	bool on_disk; /* there is a folder for it; `folder`, `lock` and the path are set */
};

/* Works out the place; TALLY_CACHE_FOUND or REFUSED where that already is the answer. */
static enum tally_cache_answer locate(const struct tally_cache_request *request,
				      struct place *place, char path[PATH_MAX],
				      struct tally_error *error)
{
	enum tally_cache_answer answer;

	place->on_disk = false;
	if (!request->image || !request->size) {
		tally_fail(error, "there is no image to compile");
		return TALLY_CACHE_REFUSED;
	}
	if (!tally_cache_find_lower(place->lower, error))
		return TALLY_CACHE_REFUSED;
	place->key = tally_cache_key(request, place->lower);
	answer = recall(place->key, path, error);
	if (answer)
		return answer;
	snprintf(place->name, sizeof place->name, "%s%s", place->key.hex,
		 tally_cache_extension(request));
	place->on_disk = usable_folder(place->folder) &&
			 snprintf(path, PATH_MAX, "%s/%s", place->folder, place->name) < PATH_MAX &&
			 snprintf(place->lock, PATH_MAX, "%s/%s.lock", place->folder,
				  place->key.hex) < PATH_MAX;
	return place->on_disk && tally_cache_take(path, place->key) ? TALLY_CACHE_FOUND
								    : TALLY_CACHE_MISSING;
}

enum tally_cache_answer tally_cache_find(const struct tally_cache_request *request,
					 char path[PATH_MAX], struct tally_error *error)
{
	struct place place;

	return locate(request, &place, path, error);
}

bool tally_cache_get(const struct tally_cache_request *request, char path[PATH_MAX],
		     struct tally_error *error)
{
	struct place place;
	enum tally_cache_answer answer = locate(request, &place, path, error);

	if (answer)
		return answer == TALLY_CACHE_FOUND;
	if (!place.on_disk)
		return make(place.lower, request, place.key, NULL, place.name, path, error);
	bool there = false;
	int lock = take_lock(place.lock, path, place.key, &there);
	if (!there) {
		/* Another thread of ours may have been refused, or kept it in memory, meanwhile. */
		answer = recall(place.key, path, error);
		there = answer == TALLY_CACHE_FOUND ||
			(answer == TALLY_CACHE_MISSING &&
			 make(place.lower, request, place.key, place.folder, place.name, path,
			      error));
	}
	release_lock(lock, place.lock);
	return there;
}
