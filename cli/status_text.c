/* SPDX-License-Identifier: Apache-2.0 */
/* `tally status` for people: a table of who is there, and one of who was. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/status.h"

#define FINISHED_SHOWN 10 /* the rest is in --json */

static void header(struct tally_buffer *out, const char *title)
{
	tally_buffer_print(out, "\n%-20s %8s %8s  %-14s %-12s %-8s %9s %7s %7s %17s %9s %8s\n",
			   title, "PID", "PRIORITY", "DEVICE", "SHARING", "STATE", "LAUNCHES",
			   "STOPS", "RESUMES", "STOP us last/max", "STOPPED s", "BURSTS");
}

static void row(const struct tally_slot *slot, const char *state, struct tally_buffer *out)
{
	char uuid[37], latency[32];

	tally_status_uuid(slot->device, uuid);
	snprintf(latency, sizeof latency, "%.0f/%.0f",
		 (double)atomic_load(&slot->stop_ns_last) / 1e3,
		 (double)atomic_load(&slot->stop_ns_max) / 1e3);
	tally_buffer_print(out, "%-20.20s %8d %8d  %-14.14s %-12s %-8s", slot->name, slot->pid,
			   slot->priority, slot->device_name[0] ? slot->device_name : uuid,
			   tally_status_sharing(slot), state);
	tally_buffer_print(out, " %9" PRIu64 " %7" PRIu64 " %7" PRIu64 " %17s %9.2f %8" PRIu64 "\n",
			   atomic_load(&slot->launches), atomic_load(&slot->stops),
			   atomic_load(&slot->resumes), latency,
			   (double)atomic_load(&slot->stopped_ns) / 1e9,
			   atomic_load(&slot->bursts));
}

/* Programs with a latency budget. */
static void budgets(const struct tally_board *board, struct tally_buffer *out)
{
	bool any = false;

	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *slot = &board->slots[i];

		if (!tally_slot_used(slot) || !atomic_load(&slot->slo_budget))
			continue;
		tally_buffer_print(out, any ? "" : "\n");
		any = true;
		tally_status_slo(slot, out);
		tally_buffer_print(out, "\n");
	}
}

static void programs(const struct tally_status_view *view, struct tally_buffer *out)
{
	const struct tally_board *board = view->board;
	const struct tally_report *report;
	bool any = false;

	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		if (!tally_slot_used(&board->slots[i]))
			continue;
		if (!any)
			header(out, "PROGRAM");
		any = true;
		row(&board->slots[i], tally_status_state(board, i, view->now_ns), out);
	}
	if (!any)
		tally_buffer_print(out, "no program uses a device now\n");
	budgets(board, out);
	if (!any || !view->why)
		return;
	tally_buffer_print(out, "\n");
	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		if (!tally_slot_used(&board->slots[i]))
			continue;
		tally_status_why(view, i, out);
		tally_buffer_print(out, "\n");
		report = tally_reports_of(view->reports, i,
					  atomic_load(&board->slots[i].generation));
		if (report)
			tally_status_kernels_text(report, out);
	}
}

void tally_status_text(const struct tally_status_view *view, struct tally_buffer *out)
{
	const struct tally_board *board = view->board;

	if (!board) {
		tally_buffer_print(out, "no tallyd runs (%s): no program shares a device\n",
				   view->socket);
		return;
	}
	tally_buffer_print(out, "tallyd %s, pid %d, up %.0f s, %s\n", TALLY_VERSION,
			   board->daemon_pid, (double)(view->now_ns - board->started_ns) / 1e9,
			   view->socket);
	programs(view, out);
	uint64_t end = atomic_load(&board->finished_count), n = end;
	if (end)
		header(out, "FINISHED");
	/* The latest first. */
	while (n && end - n < FINISHED_SHOWN) {
		n--;
		row(&board->finished[n % TALLY_BOARD_FINISHED], "ended", out);
	}
	if (n)
		tally_buffer_print(out, "(and %" PRIu64 " before; --json shows the last %d)\n", n,
				   TALLY_BOARD_FINISHED);
}
