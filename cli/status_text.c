/* SPDX-License-Identifier: Apache-2.0 */
/* `tally status` for people: a table of who is there, and one of who was. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/kernel_name.h"
#include "cli/status.h"

#define FINISHED_SHOWN 10 /* the rest is in --json */

enum { COLUMNS = 12, LEAST = 12 };

/* Names are at the left of their columns, numbers at the right. The first and the device's make way
 * where a terminal is too narrow. */
static const struct {
	const char *title;
	bool left;
} columns[COLUMNS] = {
	{NULL, true},	      {"PID", false},
	{"PRIORITY", false},  {"DEVICE", true},
	{"SHARING", true},    {"STATE", true},
	{"LAUNCHES", false},  {"STOPS", false},
	{"RESUMES", false},   {"STOP us last/max", false},
	{"STOPPED s", false}, {"BURSTS", false},
};
static const unsigned may_shrink[] = {3, 0};

struct row {
	char cell[COLUMNS][64];
};

/* The rows of the two tables, which have the same columns. */
struct table {
	struct row rows[TALLY_BOARD_SLOTS + FINISHED_SHOWN];
	unsigned count, width[COLUMNS];
};

static void set(struct row *row, unsigned column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void set(struct row *row, unsigned column, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(row->cell[column], sizeof row->cell[column], format, arguments);
	va_end(arguments);
}

static void add(struct table *table, const struct tally_slot *slot, const char *state)
{
	struct row *row = &table->rows[table->count++];
	char uuid[37];

	tally_status_uuid(slot->device, uuid);
	set(row, 0, "%s", slot->name);
	set(row, 1, "%d", slot->pid);
	set(row, 2, "%d", slot->priority);
	set(row, 3, "%s", slot->device_name[0] ? slot->device_name : uuid);
	set(row, 4, "%s", tally_status_sharing(slot));
	set(row, 5, "%s", state);
	set(row, 6, "%" PRIu64, atomic_load(&slot->launches));
	set(row, 7, "%" PRIu64, atomic_load(&slot->stops));
	set(row, 8, "%" PRIu64, atomic_load(&slot->resumes));
	set(row, 9, "%.0f/%.0f", (double)atomic_load(&slot->stop_ns_last) / 1e3,
	    (double)atomic_load(&slot->stop_ns_max) / 1e3);
	set(row, 10, "%.2f", (double)atomic_load(&slot->stopped_ns) / 1e9);
	set(row, 11, "%" PRIu64, atomic_load(&slot->bursts));
}

/* Every column as wide as what is in it, all of them not wider than `most` where that can be (0: as
 * wide as they are). */
static void measure(struct table *table, unsigned most)
{
	unsigned total = COLUMNS - 1;

	for (unsigned c = 0; c < COLUMNS; c++) {
		unsigned *width = &table->width[c];

		*width = columns[c].title ? tally_text_columns(columns[c].title) : 8;
		for (unsigned r = 0; r < table->count; r++) {
			unsigned own = tally_text_columns(table->rows[r].cell[c]);
			*width = own > *width ? own : *width;
		}
		total += *width;
	}
	for (unsigned k = 0; most && k < sizeof may_shrink / sizeof *may_shrink; k++) {
		unsigned *width = &table->width[may_shrink[k]];
		unsigned excess = total > most ? total - most : 0;
		unsigned spare = *width > LEAST ? *width - LEAST : 0;
		unsigned taken = excess < spare ? excess : spare;

		*width -= taken;
		total -= taken;
	}
}

static void cell(const struct table *table, unsigned column, const char *text,
		 struct tally_buffer *out)
{
	unsigned width = table->width[column], own = tally_text_columns(text);

	if (!columns[column].left)
		tally_buffer_print(out, "%*s", (int)(width > own ? width - own : 0), "");
	if (columns[column].left)
		tally_text_fit(out, text, width, true);
	else
		tally_buffer_print(out, "%s", text);
	tally_buffer_print(out, "%s", column + 1 < COLUMNS ? " " : "\n");
}

static void print(const struct table *table, unsigned first, unsigned end, const char *title,
		  struct tally_buffer *out)
{
	if (first == end)
		return;
	tally_buffer_print(out, "\n");
	for (unsigned c = 0; c < COLUMNS; c++)
		cell(table, c, columns[c].title ? columns[c].title : title, out);
	for (unsigned r = first; r < end; r++)
		for (unsigned c = 0; c < COLUMNS; c++)
			cell(table, c, table->rows[r].cell[c], out);
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

/* Why each program does what it does, and its kernels. */
static void reasons(const struct tally_status_view *view, struct tally_buffer *out)
{
	const struct tally_board *board = view->board;
	const struct tally_report *report;

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

static void tables(const struct tally_status_view *view, struct table *table,
		   struct tally_buffer *out)
{
	const struct tally_board *board = view->board;
	uint64_t end = atomic_load(&board->finished_count), n = end;
	unsigned now;

	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++)
		if (tally_slot_used(&board->slots[i]))
			add(table, &board->slots[i], tally_status_state(board, i, view->now_ns));
	now = table->count;
	/* The latest first. */
	while (n && end - n < FINISHED_SHOWN) {
		n--;
		add(table, &board->finished[n % TALLY_BOARD_FINISHED], "ended");
	}
	measure(table, view->columns);
	print(table, 0, now, "PROGRAM", out);
	if (!now)
		tally_buffer_print(out, "no program uses a device now\n");
	budgets(board, out);
	if (now && view->why)
		reasons(view, out);
	print(table, now, table->count, "FINISHED", out);
	if (n)
		tally_buffer_print(out, "(and %" PRIu64 " before; --json shows the last %d)\n", n,
				   TALLY_BOARD_FINISHED);
}

void tally_status_text(const struct tally_status_view *view, struct tally_buffer *out)
{
	const struct tally_board *board = view->board;
	struct table *table;

	if (!board) {
		tally_buffer_print(out, "no tallyd runs (%s): no program shares a device\n",
				   view->socket);
		return;
	}
	tally_buffer_print(out, "tallyd %s, pid %d, up %.0f s, %s\n", TALLY_VERSION,
			   board->daemon_pid, (double)(view->now_ns - board->started_ns) / 1e9,
			   view->socket);
	table = calloc(1, sizeof *table);
	if (table)
		tables(view, table, out);
	else
		out->failed = true;
	free(table);
}
