/* SPDX-License-Identifier: Apache-2.0 */
/* The board and the programs' reports; see reports.h. */
#include "cli/reports.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void release(struct tally_reported *r)
{
	tally_report_unmap(r->report);
	if (r->fd >= 0)
		close(r->fd);
}

static bool daemon_lives(const struct tally_reports *rs)
{
	char byte;

	return rs->board && recv(rs->observer.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

static struct tally_reported *find(const struct tally_reports *rs, uint64_t joined_ns, int pid)
{
	for (unsigned i = rs->count; i-- > 0;)
		if (rs->list[i].joined_ns == joined_ns && rs->list[i].pid == pid)
			return &rs->list[i];
	return NULL;
}

/* Adds the program of `slot` (of the board's slots or of the finished) with what it gave. */
static bool add(struct tally_reports *rs, const struct tally_slot *slot, unsigned index,
		uint32_t generation, struct tally_error *error)
{
	struct tally_attachment attachment;
	struct tally_reported *r;

	if (!TALLY_GROW(rs->list, rs->count))
		return tally_fail(error, "out of memory");
	r = &rs->list[rs->count];
	*r = (struct tally_reported){.slot = index,
				     .generation = generation,
				     .joined_ns = slot->joined_ns,
				     .pid = slot->pid,
				     .priority = slot->priority,
				     .fd = -1};
	memcpy(r->device, slot->device, sizeof r->device);
	tally_report_text(r->name, sizeof r->name, slot->name);
	tally_report_text(r->device_name, sizeof r->device_name, slot->device_name);
	if (!tally_observer_fetch(&rs->observer, slot, &attachment, error))
		return false;
	if (attachment.size) {
		r->fd = attachment.fd;
		r->report = tally_report_map(r->fd, NULL);
	}
	rs->count++;
	return true;
}

/* Who is there now. */
static bool look_at_slots(struct tally_reports *rs, struct tally_error *error)
{
	for (unsigned i = 0; i < rs->count; i++)
		rs->list[i].gone = true;
	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *slot = &rs->board->slots[i];
		uint32_t generation = atomic_load(&slot->generation);
		struct tally_reported *r;

		if (!(generation & 1))
			continue;
		r = find(rs, slot->joined_ns, slot->pid);
		if (r)
			r->gone = false;
		else if (!add(rs, slot, i, generation, error))
			return false;
	}
	return true;
}

/* Who came and went between two looks, as far as the daemon still knows. */
static bool look_at_finished(struct tally_reports *rs, struct tally_error *error)
{
	uint64_t end = atomic_load(&rs->board->finished_count), n = rs->finished_seen;

	if (end > TALLY_BOARD_FINISHED && n < end - TALLY_BOARD_FINISHED)
		n = end - TALLY_BOARD_FINISHED;
	for (; rs->keep && n < end; n++) {
		const struct tally_slot *slot = &rs->board->finished[n % TALLY_BOARD_FINISHED];

		if (find(rs, slot->joined_ns, slot->pid))
			continue;
		if (!add(rs, slot, TALLY_BOARD_SLOTS, 0, error))
			return false;
		rs->list[rs->count - 1].gone = true;
	}
	rs->finished_seen = end;
	return true;
}

static void forget_gone(struct tally_reports *rs)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < rs->count; i++) {
		if (rs->list[i].gone && !rs->keep)
			release(&rs->list[i]);
		else
			rs->list[kept++] = rs->list[i];
	}
	rs->count = kept;
}

static void lose_daemon(struct tally_reports *rs)
{
	if (rs->board)
		tally_observer_close(&rs->observer);
	rs->board = NULL;
	for (unsigned i = 0; i < rs->count; i++)
		rs->list[i].gone = true;
	forget_gone(rs);
}

bool tally_reports_update(struct tally_reports *rs, struct tally_error *error)
{
	struct tally_error cause = {0};
	bool absent;

	for (unsigned attempt = 0; attempt < 2; attempt++) {
		if (!daemon_lives(rs)) {
			lose_daemon(rs);
			if (!tally_observer_open(&rs->observer, rs->socket, &absent, error)) {
				if (!absent)
					return false;
				*error = (struct tally_error){0};
				return true;
			}
			rs->board = rs->observer.board;
			/* What ended before the first look is none of our business. */
			rs->finished_seen = atomic_load(&rs->board->finished_count);
		}
		cause = (struct tally_error){0};
		if (look_at_slots(rs, &cause) && look_at_finished(rs, &cause)) {
			forget_gone(rs);
			return true;
		}
		/* It ended while we asked: look for the next one, once. */
		lose_daemon(rs);
	}
	return tally_fail(error, "%s", cause.message);
}

const struct tally_report *tally_reports_of(const struct tally_reports *rs, unsigned slot,
					    uint32_t generation)
{
	for (unsigned i = 0; rs && i < rs->count; i++)
		if (rs->list[i].slot == slot && rs->list[i].generation == generation &&
		    !rs->list[i].gone)
			return rs->list[i].report;
	return NULL;
}

void tally_reports_close(struct tally_reports *rs)
{
	rs->keep = false;
	lose_daemon(rs);
	free(rs->list);
	*rs = (struct tally_reports){.socket = rs->socket};
}
