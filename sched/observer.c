/* SPDX-License-Identifier: Apache-2.0 */
/* Those who ask tallyd without being members: `tally run` before it starts, `tally status`: see
 * client.h. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sched/client.h"
#include "sched/wire.h"

static bool path_or_default(const char *socket, char path[PATH_MAX], struct tally_error *error)
{
	if (!socket)
		return tally_socket_path(path, PATH_MAX, error);
	if (snprintf(path, PATH_MAX, "%s", socket) >= PATH_MAX)
		return tally_fail(error, "the socket path is too long");
	return tally_socket_folder(path, false, error);
}

bool tally_client_expect(const char *socket, bool *absent, struct tally_error *error)
{
	struct tally_wire answer, request = {.magic = TALLY_WIRE_MAGIC,
					     .version = TALLY_BOARD_VERSION,
					     .type = TALLY_WIRE_EXPECT};
	char path[PATH_MAX];

	if (absent)
		*absent = false;
	if (!path_or_default(socket, path, error))
		return false;
	int fd = tally_wire_ask(path, &request, -1, &answer, NULL, absent, error);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool tally_observer_open(struct tally_observer *observer, const char *socket, bool *absent,
			 struct tally_error *error)
{
	struct tally_wire answer, request = {.magic = TALLY_WIRE_MAGIC,
					     .version = TALLY_BOARD_VERSION,
					     .type = TALLY_WIRE_OBSERVE};
	struct tally_wire_fds fds = TALLY_WIRE_NO_FDS;
	char path[PATH_MAX];

	*observer = (struct tally_observer){.fd = -1};
	if (absent)
		*absent = false;
	if (!path_or_default(socket, path, error))
		return false;
	observer->fd = tally_wire_ask(path, &request, -1, &answer, &fds, absent, error);
	if (observer->fd < 0)
		return false;
	if (fds.attachment >= 0)
		close(fds.attachment);
	observer->board = tally_board_map(fds.board, answer.board_size, false, error);
	if (observer->board)
		return true;
	tally_observer_close(observer);
	return false;
}

void tally_observer_close(struct tally_observer *observer)
{
	if (observer->board)
		munmap((void *)observer->board, sizeof *observer->board);
	if (observer->fd >= 0)
		close(observer->fd);
	*observer = (struct tally_observer){.fd = -1};
}

/* Sends a request that is answered with at most an attachment. */
static bool ask(struct tally_observer *observer, struct tally_wire *request,
		struct tally_attachment *attachment, struct tally_error *error)
{
	struct tally_wire answer;
	struct tally_wire_fds fds = TALLY_WIRE_NO_FDS;

	request->magic = TALLY_WIRE_MAGIC;
	request->version = TALLY_BOARD_VERSION;
	int status = tally_wire_send(observer->fd, request, fds);
	ssize_t size = status ? status : tally_wire_receive(observer->fd, &answer, &fds);

	*attachment = (struct tally_attachment){0};
	if (size <= 0)
		return tally_fail(error, "tallyd does not answer%s%s", size ? ": " : "",
				  size ? strerror((int)-size) : "");
	if (fds.board >= 0)
		close(fds.board);
	bool ok = tally_wire_check(&answer, size, error);
	if (ok && answer.type == TALLY_WIRE_REFUSED)
		ok = tally_fail(error, "tallyd refused: %s", answer.text);
	if (!ok && fds.attachment >= 0)
		close(fds.attachment);
	else if (fds.attachment >= 0)
		*attachment = (struct tally_attachment){fds.attachment, answer.attachment_kind,
							answer.attachment_size};
	return ok;
}

bool tally_observer_fetch(struct tally_observer *observer, const struct tally_slot *slot,
			  struct tally_attachment *attachment, struct tally_error *error)
{
	struct tally_wire request = {.type = TALLY_WIRE_FETCH, .joined_ns = slot->joined_ns};

	return ask(observer, &request, attachment, error);
}

bool tally_observer_trace(struct tally_observer *observer, uint64_t until_ns,
			  struct tally_error *error)
{
	struct tally_wire request = {.type = TALLY_WIRE_TRACE, .until_ns = until_ns};
	struct tally_attachment none;
	bool ok = ask(observer, &request, &none, error);

	if (none.size)
		close(none.fd);
	return ok;
}

const struct tally_board *tally_client_observe(const char *socket, bool *absent,
					       struct tally_error *error)
{
	struct tally_observer observer;
	const struct tally_board *board;

	if (!tally_observer_open(&observer, socket, absent, error))
		return NULL;
	board = observer.board;
	observer.board = NULL;
	tally_observer_close(&observer);
	return board;
}
