/* SPDX-License-Identifier: Apache-2.0 */
/* A program's membership: see client.h. Lives inside other people's programs: libc only. */
#include "sched/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sched/grace.h"
#include "sched/wire.h"

/*
 * A board that this client is or was a member of. Other threads read the current one without a
 * lock, so an old one is never unmapped before the client ends: a daemon that dies is rare, and a
 * view costs 80 KiB of address space.
 */
struct view {
	struct tally_board *board;
	struct tally_slot *slot;
	unsigned index;
	struct view *older;
};

struct tally_client {
	_Atomic(struct view *) view;
	_Atomic bool attached; /* false: nobody decides anything for us */
	_Atomic uint32_t active, overlap;
	uint64_t grace_ns; /* as in the options */
	struct tally_grace grace;
	_Atomic uint64_t idle_since_ns; /* when the last burst ended; 0: there was none */
	int fd;				/* -1: none */
	pid_t pid;
	struct tally_wire join;
	int attachment; /* -1: none */
	uint64_t attachment_inode;
	struct tally_attachment given;
	char socket[PATH_MAX];
	struct tally_client *next;
};

/* Every client of the process, for the handler that runs in a forked child. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally_client *list;

/* The inode behind a descriptor, 0: none. (statx, because stat's symbol is newer than glibc 2.31.)
 */
static uint64_t inode_of(int fd)
{
	struct statx is;

	return fd >= 0 && !statx(fd, "", AT_EMPTY_PATH, STATX_INO, &is) ? is.stx_ino : 0;
}

/* Descriptors of a program are not safe from it: one that closes all that it does not know may have
 * given our number to something else. */
static bool attachment_is_ours(const struct tally_client *client)
{
	uint64_t inode = inode_of(client->attachment);

	return inode && inode == client->attachment_inode;
}

static void before_fork(void)
{
	pthread_mutex_lock(&list_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&list_lock);
}

/*
 * The child is a program of its own: it must not speak for its parent. The inherited socket would
 * keep the parent's membership alive after the parent's death, so it is closed; the board is
 * replaced by private memory in the same place, so that late stores and saved slot pointers reach
 * nobody.
 */
static void after_fork_child(void)
{
	for (struct tally_client *client = list; client; client = client->next) {
		atomic_store(&client->attached, false);
		atomic_store(&client->active, 0);
		atomic_store(&client->overlap, TALLY_OVERLAP_CLOSED);
		if (client->fd >= 0)
			close(client->fd);
		client->fd = -1;
		if (attachment_is_ours(client))
			close(client->attachment);
		client->attachment = -1;
		for (struct view *v = atomic_load(&client->view); v; v = v->older)
			mmap(v->board, sizeof *v->board, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	pthread_mutex_unlock(&list_lock);
}

/* Not pthread_once(), whose symbol is newer than glibc 2.31, and not under list_lock, which a fork
 * takes after the lock that registering takes. */
static void install_handlers(void)
{
	static _Atomic bool installed;

	if (!atomic_exchange(&installed, true))
		pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* How long others keep away after the burst that ends now. */
static uint64_t grace_of(const struct tally_client *client)
{
	if (client->grace_ns == TALLY_GRACE_LEARNT)
		return tally_grace_ns(&client->grace);
	return client->grace_ns < TALLY_GRACE_MOST_NS ? client->grace_ns : TALLY_GRACE_MOST_NS;
}

static void mark(struct tally_client *client, struct view *view, uint32_t active)
{
	struct tally_slot *slot = view->slot;
	uint64_t grace = !active && atomic_load(&slot->active) ? grace_of(client) : 0;
	uint64_t now = grace ? tally_board_now() : 0;

	/* Before "idle" is said: nobody may slip in between. */
	if (grace)
		atomic_store_explicit(&slot->quiet_until_ns, now + grace, memory_order_relaxed);
	if (atomic_exchange(&slot->active, active) == active)
		return;
	/* It runs, so it is not stopped any more, whether tallyd has seen that or not. */
	if (active && atomic_load_explicit(&slot->lapsed, memory_order_relaxed))
		atomic_store(&slot->lapsed, 0);
	tally_board_changed(view->board);
	/* Others give way from here on: the bookkeeping comes after. */
	if (!now)
		now = tally_board_now();
	if (active) {
		atomic_store_explicit(&slot->active_since_ns, now, memory_order_relaxed);
		atomic_fetch_add_explicit(&slot->bursts, 1, memory_order_relaxed);
		uint64_t idle = atomic_load_explicit(&client->idle_since_ns, memory_order_relaxed);
		if (client->grace_ns == TALLY_GRACE_LEARNT && idle && idle < now)
			tally_grace_pause(&client->grace, now - idle);
		return;
	}
	atomic_store_explicit(&client->idle_since_ns, now, memory_order_relaxed);
	atomic_store_explicit(&slot->grace_ns, grace, memory_order_relaxed);
	uint64_t since = atomic_exchange_explicit(&slot->active_since_ns, 0, memory_order_relaxed);
	if (since && since < now)
		atomic_fetch_add_explicit(&slot->active_ns, now - since, memory_order_relaxed);
}

/* Tells others only when it changes something for them: not while the program is idle, unless they
 * are held, or were. */
static void mark_overlap(struct view *view, uint32_t overlap)
{
	struct tally_slot *slot = view->slot;
	uint32_t before = atomic_exchange(&slot->overlap, overlap);

	if (before != overlap && (before == TALLY_OVERLAP_HELD || overlap == TALLY_OVERLAP_HELD ||
				  atomic_load(&slot->active)))
		tally_board_changed(view->board);
}

/* Brings the slot to what the client wants, whoever else (another thread, a reconnect) does the
 * same at this moment: the last to leave has seen the last wish. */
static void settle(struct tally_client *client)
{
	uint32_t active;

	do {
		active = atomic_load(&client->active);
		mark(client, atomic_load(&client->view), active);
	} while (active != atomic_load(&client->active));
}

/* Forgets what the last tallyd gave, if nobody took it. */
static void drop_given(struct tally_client *client)
{
	if (client->given.size)
		close(client->given.fd);
	client->given = (struct tally_attachment){0};
}

static bool join(struct tally_client *client, struct tally_error *error)
{
	struct tally_wire answer, request = client->join;
	struct tally_wire_fds fds = TALLY_WIRE_NO_FDS;
	bool attach = attachment_is_ours(client);

	struct view *view = calloc(1, sizeof *view);
	if (!view)
		return tally_fail(error, "out of memory");
	if (!attach)
		request.attachment_size = 0;
	int fd = tally_wire_ask(client->socket, &request, attach ? client->attachment : -1, &answer,
				&fds, NULL, error);
	if (fd < 0) {
		free(view);
		return false;
	}
	drop_given(client);
	if (fds.attachment >= 0)
		client->given = (struct tally_attachment){fds.attachment, answer.attachment_kind,
							  answer.attachment_size};
	view->board = tally_board_map(fds.board, answer.board_size, true, error);
	if (!view->board || answer.slot >= TALLY_BOARD_SLOTS) {
		tally_fail(error, "tallyd gave a place that the board does not have");
		if (view->board)
			munmap(view->board, sizeof *view->board);
		close(fd);
		free(view);
		return false;
	}
	view->index = answer.slot;
	view->slot = &view->board->slots[answer.slot];

	pthread_mutex_lock(&list_lock);
	client->fd = fd;
	client->pid = getpid();
	view->older = atomic_load(&client->view);
	atomic_store(&client->view, view);
	pthread_mutex_unlock(&list_lock);

	mark_overlap(view, atomic_load(&client->overlap));
	settle(client);
	atomic_store(&client->attached, true);
	return true;
}

/* Names are shown in tables: no control characters, and cut where a buffer ends. */
static void copy_name(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
	for (; *to; to++)
		if ((unsigned char)*to < ' ' || *to == 0x7f)
			*to = '?';
}

/* A copy of the program's descriptor, so that it is ours to close. False when it is none. */
static bool keep_attachment(struct tally_client *client, const struct tally_attachment *attachment,
			    struct tally_error *error)
{
	client->attachment = -1;
	if (!attachment->size)
		return true;
	client->attachment = fcntl(attachment->fd, F_DUPFD_CLOEXEC, 0);
	client->attachment_inode = inode_of(client->attachment);
	if (!client->attachment_inode)
		return tally_fail(error, "cannot keep the attachment: %s", strerror(errno));
	client->join.attachment_kind = attachment->kind;
	client->join.attachment_size = attachment->size;
	return true;
}

static void release(struct tally_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	if (attachment_is_ours(client))
		close(client->attachment);
	drop_given(client);
	free(client);
}

struct tally_client *tally_client_connect(const struct tally_client_options *options,
					  struct tally_error *error)
{
	struct tally_client *client = calloc(1, sizeof *client);

	if (!client) {
		tally_fail(error, "out of memory");
		return NULL;
	}
	client->fd = -1;
	client->grace_ns = options->grace_ns;
	client->join = (struct tally_wire){.magic = TALLY_WIRE_MAGIC,
					   .version = TALLY_BOARD_VERSION,
					   .type = TALLY_WIRE_JOIN,
					   .priority = options->priority};
	memcpy(client->join.device, options->device, sizeof client->join.device);
	copy_name(client->join.name, sizeof client->join.name, options->name);
	copy_name(client->join.device_name, sizeof client->join.device_name, options->device_name);
	bool ok;
	if (options->socket) {
		ok = snprintf(client->socket, sizeof client->socket, "%s", options->socket) <
		     (int)sizeof client->socket;
		ok = ok ? tally_socket_folder(client->socket, false, error)
			: tally_fail(error, "the socket path is too long");
	} else {
		ok = tally_socket_path(client->socket, sizeof client->socket, error);
	}
	install_handlers();
	ok = keep_attachment(client, &options->attachment, error) && ok;
	if (!ok || !join(client, error)) {
		release(client);
		return NULL;
	}
	pthread_mutex_lock(&list_lock);
	client->next = list;
	list = client;
	pthread_mutex_unlock(&list_lock);
	return client;
}

bool tally_client_reconnect(struct tally_client *client, struct tally_error *error)
{
	if (tally_client_check(client))
		return true;
	pthread_mutex_lock(&list_lock);
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	pthread_mutex_unlock(&list_lock);
	return join(client, error);
}

struct tally_attachment tally_client_given(struct tally_client *client)
{
	struct tally_attachment given = client->given;

	client->given = (struct tally_attachment){0};
	return given;
}

void tally_client_disconnect(struct tally_client *client)
{
	if (!client)
		return;
	pthread_mutex_lock(&list_lock);
	for (struct tally_client **p = &list; *p; p = &(*p)->next) {
		if (*p == client) {
			*p = client->next;
			break;
		}
	}
	pthread_mutex_unlock(&list_lock);
	/* Not left to tallyd: others go on even if it is slow or gone. */
	if (client->pid == getpid()) {
		tally_client_set_overlap(client, TALLY_OVERLAP_CLOSED);
		tally_client_set_active(client, false);
	}
	for (struct view *v = atomic_load(&client->view); v;) {
		struct view *older = v->older;
		munmap(v->board, sizeof *v->board);
		free(v);
		v = older;
	}
	release(client);
}

void tally_client_set_active(struct tally_client *client, bool active)
{
	if (atomic_exchange(&client->active, active) != active)
		settle(client);
}

void tally_client_set_overlap(struct tally_client *client, enum tally_overlap overlap)
{
	if (atomic_exchange(&client->overlap, overlap) != overlap)
		mark_overlap(atomic_load(&client->view), overlap);
}

bool tally_client_rivals(const struct tally_client *client)
{
	struct view *view = atomic_load(&client->view);

	return tally_policy_strict_rivals(view->board, view->index);
}

bool tally_client_must_yield(const struct tally_client *client)
{
	if (!atomic_load_explicit(&client->attached, memory_order_acquire))
		return false;
	struct view *view = atomic_load(&client->view);
	return tally_policy_strict_must_yield(view->board, view->index, tally_board_now());
}

uint64_t tally_client_held_until(const struct tally_client *client)
{
	struct view *view = atomic_load(&client->view);

	if (!atomic_load_explicit(&client->attached, memory_order_acquire))
		return 0;
	return tally_policy_strict_until(view->board, view->index, tally_board_now());
}

struct tally_slot *tally_client_slot(struct tally_client *client)
{
	return atomic_load(&client->view)->slot;
}

uint64_t tally_client_trace_until(const struct tally_client *client)
{
	return atomic_load(&atomic_load(&client->view)->board->trace_until_ns);
}

uint32_t tally_client_epoch(const struct tally_client *client)
{
	return atomic_load(&atomic_load(&client->view)->board->epoch);
}

void tally_client_wait(struct tally_client *client, uint32_t seen, int64_t timeout_ns)
{
	struct view *view = atomic_load(&client->view);

	tally_board_wait(view->board, view->slot, seen, timeout_ns);
}

bool tally_client_check(struct tally_client *client)
{
	char byte;

	if (!atomic_load(&client->attached))
		return false;
	/* The pid catches a clone() that ran no fork handlers. */
	if (client->pid == getpid()) {
		ssize_t n = recv(client->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
		if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
			return true;
	}
	atomic_store(&client->attached, false);
	return false;
}
