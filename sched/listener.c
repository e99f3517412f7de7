/* SPDX-License-Identifier: Apache-2.0 */
/* The lock file and the listening socket: see listener.h. */
#include "sched/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sched/client.h"

/* Whether what has that name may be replaced: nothing, or a socket of a tallyd's kind, which one
 * that was killed has left. A mistyped path must not cost anybody a file. */
static bool check_place(const char *path, struct tally_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat is;
	bool other;
	int fd;

	if (lstat(path, &is))
		return true;
	if (!S_ISSOCK(is.st_mode))
		return tally_fail(error, "%s is there already, and is no socket", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >=
			      (int)sizeof address.sun_path) {
		if (fd >= 0)
			close(fd);
		return true; /* opening it says so */
	}
	other = connect(fd, (struct sockaddr *)&address, sizeof address) && errno == EPROTOTYPE;
	close(fd);
	return !other || tally_fail(error, "%s is another program's socket", path);
}

enum tally_claim tally_listener_claim(const char *socket_path, int *lock, struct tally_error *error)
{
	char path[PATH_MAX];

	*lock = -1;
	if (!tally_socket_folder(socket_path, true, error) || !check_place(socket_path, error))
		return TALLY_CLAIM_FAILED;
	if (snprintf(path, sizeof path, "%s.lock", socket_path) >= (int)sizeof path) {
		tally_fail(error, "the socket path is too long");
		return TALLY_CLAIM_FAILED;
	}
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		tally_fail(error, "cannot open the lock file %s: %s", path, strerror(errno));
		return TALLY_CLAIM_FAILED;
	}
	/* The file is never removed: a lock on a removed file would exclude nobody. */
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		bool taken = errno == EWOULDBLOCK;
		if (!taken)
			tally_fail(error, "cannot lock %s: %s", path, strerror(errno));
		close(fd);
		return taken ? TALLY_CLAIM_TAKEN : TALLY_CLAIM_FAILED;
	}
	*lock = fd;
	return TALLY_CLAIM_OURS;
}

bool tally_listener_holds(const char *socket_path, int lock)
{
	struct stat held, named;
	char path[PATH_MAX];

	return snprintf(path, sizeof path, "%s.lock", socket_path) < (int)sizeof path &&
	       !fstat(lock, &held) && !lstat(path, &named) && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

int tally_listener_open(const char *socket_path, struct tally_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	/* Bound under another name and renamed when it listens. */
	if (snprintf(address.sun_path, sizeof address.sun_path, "%s.new", socket_path) >=
	    (int)sizeof address.sun_path) {
		tally_fail(error, "the socket path %s is too long (at most %zu bytes)", socket_path,
			   sizeof address.sun_path - 1 - strlen(".new"));
		return -1;
	}
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		tally_fail(error, "cannot make a socket: %s", strerror(errno));
		return -1;
	}
	unlink(address.sun_path);
	mode_t mask = umask(0177);
	bool ok = !bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, 128) &&
		  !rename(address.sun_path, socket_path);
	int cause = errno;
	umask(mask);
	if (ok)
		return fd;
	tally_fail(error, "cannot serve %s: %s", socket_path, strerror(cause));
	unlink(address.sun_path);
	close(fd);
	return -1;
}
