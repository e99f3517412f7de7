/* SPDX-License-Identifier: Apache-2.0 */
/* Where tallyd's socket is, and whether its folder can be trusted: see client.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sched/client.h"

static bool folder_of(const char *path, char folder[PATH_MAX], struct tally_error *error)
{
	const char *slash = strrchr(path, '/');

	/* Absolute, because programs and the daemon change their working folders. */
	if (*path != '/' || !slash[1])
		return tally_fail(error, "the socket path \"%s\" is not an absolute path of a file",
				  path);
	if (slash - path >= PATH_MAX)
		return tally_fail(error, "the socket path is too long");
	snprintf(folder, PATH_MAX, "%.*s", (int)(slash - path), path);
	if (slash == path)
		strcpy(folder, "/");
	return true;
}

bool tally_socket_folder(const char *path, bool make, struct tally_error *error)
{
	char folder[PATH_MAX];
	struct statx is;

	if (!folder_of(path, folder, error))
		return false;
	if (make && mkdir(folder, 0700) && errno != EEXIST)
		return tally_fail(error, "cannot make the socket folder %s: %s", folder,
				  strerror(errno));
	/* statx, because stat and its kin are newer symbols than an old glibc has. A symbolic link
	 * is not followed: in /tmp anybody may have put it there. */
	if (statx(AT_FDCWD, folder, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MODE | STATX_UID,
		  &is)) {
		if (errno == ENOENT && !make)
			return true;
		return tally_fail(error, "cannot look at the socket folder %s: %s", folder,
				  strerror(errno));
	}
	if (!S_ISDIR(is.stx_mode))
		return tally_fail(error, "the socket folder %s is not a folder", folder);
	if (is.stx_uid != geteuid())
		return tally_fail(error,
				  "the socket folder %s belongs to user %u, not to us (%u): remove "
				  "it or set TALLY_SOCKET",
				  folder, is.stx_uid, geteuid());
	if (is.stx_mode & 077)
		return tally_fail(error, "the socket folder %s is open to others (mode %04o): %s",
				  folder, is.stx_mode & 07777,
				  is.stx_mode & S_ISVTX
					  ? "put the socket into a folder of your own in it"
					  : "chmod 700 it or set TALLY_SOCKET");
	return true;
}

bool tally_socket_path(char *path, size_t size, struct tally_error *error)
{
	const char *chosen = getenv("TALLY_SOCKET");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int length;

	/* An XDG_RUNTIME_DIR that is not there (su, containers) counts as not set. */
	if (chosen && *chosen)
		length = snprintf(path, size, "%s", chosen);
	else if (runtime && *runtime == '/' && !access(runtime, W_OK | X_OK))
		length = snprintf(path, size, "%s/tally/tallyd.sock", runtime);
	else
		length = snprintf(path, size, "/tmp/tally-%u/tallyd.sock", geteuid());
	if (length < 0 || (size_t)length >= size)
		return tally_fail(error, "the socket path is too long");
	return tally_socket_folder(path, false, error);
}
