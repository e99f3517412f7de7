/* SPDX-License-Identifier: Apache-2.0 */
/* tally status: who shares the devices, who waits for whom and why, and what it cost. */
#include "cli/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "sched/client.h"

static const char help[] =
	"usage: tally status [--json] [--why]\n"
	"\n"
	"Shows the programs that share devices under Tally, and the last ones that ended.\n"
	"\n"
	"options:\n"
	"  --json    one JSON object; times are whole nanoseconds\n"
	"  --why     explain, for each program, why it runs or waits, and for its kernels what "
	"they\n"
	"            run as and why\n"
	"  --help, --version\n"
	"\n"
	"exit status: 0, also when no tallyd runs (then no program shares a device); 1 on "
	"errors.\n";

const char *tally_status_state(const struct tally_board *board, unsigned slot, uint64_t now_ns)
{
	if (!atomic_load(&board->slots[slot].active))
		return "idle";
	return tally_policy_strict_holder(board, slot, now_ns) < 0 ? "running" : "held";
}

void tally_status_duration(struct tally_buffer *out, uint64_t ns)
{
	if (ns < 1000000)
		tally_buffer_print(out, "%.0f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		tally_buffer_print(out, "%.1f ms", (double)ns / 1e6);
	else
		tally_buffer_print(out, "%.1f s", (double)ns / 1e9);
}

static void append_since(struct tally_buffer *out, const char *before, uint64_t since_ns,
			 uint64_t now_ns)
{
	if (!since_ns || since_ns > now_ns)
		return;
	tally_buffer_print(out, "%s", before);
	tally_status_duration(out, now_ns - since_ns);
}

/* The most urgent program that is active above `index` and lets it run, or -1. */
static int lets_run(const struct tally_board *board, unsigned index)
{
	const struct tally_slot *mine = &board->slots[index];
	int found = -1;

	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *other = &board->slots[i];

		if (tally_slot_used(other) && other->priority > mine->priority &&
		    tally_slot_claims(other) &&
		    atomic_load(&other->overlap) == TALLY_OVERLAP_OPEN &&
		    !memcmp(mine->device, other->device, sizeof mine->device) &&
		    (found < 0 || other->priority > board->slots[found].priority))
			found = (int)i;
	}
	return found;
}

static void append_holder(const struct tally_status_view *view, const struct tally_slot *slot,
			  const struct tally_slot *other, struct tally_buffer *out)
{
	bool active = atomic_load(&other->active);

	tally_buffer_print(out, "%s %s (pid %d, priority %d)",
			   atomic_load(&slot->active) ? "is held by" : "would wait for",
			   other->name, other->pid, other->priority);
	if (other->priority == slot->priority) {
		tally_buffer_print(out, ": they are equals, and it has the turn");
	} else if (atomic_load(&other->overlap) == TALLY_OVERLAP_HELD) {
		tally_buffer_print(out, ": it measures how long it takes alone");
	} else if (!active) {
		tally_buffer_print(out,
				   ": it is idle, and others keep away for %.0f us after its "
				   "bursts, because the next often follows",
				   (double)atomic_load(&other->grace_ns) / 1e3);
	} else {
		tally_buffer_print(out, ": higher priorities go first, and it is active");
		append_since(out, " for ", active ? atomic_load(&other->active_since_ns) : 0,
			     view->now_ns);
	}
	append_since(out, "; stopped for ", atomic_load(&slot->stopped_since_ns), view->now_ns);
}

void tally_status_why(const struct tally_status_view *view, unsigned index,
		      struct tally_buffer *out)
{
	const struct tally_slot *slot = &view->board->slots[index];
	int holder = tally_policy_strict_holder(view->board, index, view->now_ns);
	int beside = lets_run(view->board, index);

	tally_buffer_print(out, "%s (pid %d, priority %d) ", slot->name, slot->pid, slot->priority);
	if (atomic_load(&slot->lapsed)) {
		tally_buffer_print(out, "is stopped by a signal: it holds nobody until it goes on");
	} else if (holder >= 0) {
		append_holder(view, slot, &view->board->slots[holder], out);
	} else if (!atomic_load(&slot->active)) {
		uint64_t grace = atomic_load(&slot->grace_ns);

		tally_buffer_print(out, "is idle: it has no work on the device");
		if (grace)
			tally_buffer_print(out, "; others keep away for %.0f us after its bursts",
					   (double)grace / 1e3);
	} else {
		tally_buffer_print(out, "runs");
		append_since(out, " for ", atomic_load(&slot->active_since_ns), view->now_ns);
		if (beside >= 0)
			tally_buffer_print(out, " beside %s (pid %d): its latency budget allows it",
					   view->board->slots[beside].name,
					   view->board->slots[beside].pid);
		else if (atomic_load(&slot->turn))
			tally_buffer_print(out, ": it has the turn among its equals");
		else
			tally_buffer_print(out, ": nothing more urgent is active on its device");
	}
}

void tally_runs_as(char *text, size_t size, const struct tally_choice *choice)
{
	static const char *const words[TALLY_LEVELS] = {
		[TALLY_LEVEL_GATE] = "original", [TALLY_LEVEL_GUARD] = "guarded",
		[TALLY_LEVEL_SLICE] = "sliced",	 [TALLY_LEVEL_PERSIST] = "persistent",
		[TALLY_LEVEL_OPAQUE] = "opaque",
	};
	unsigned level = choice->level;

	if (level == TALLY_LEVEL_SLICE && choice->slice)
		snprintf(text, size, "%s %u", words[level], choice->slice);
	else
		snprintf(text, size, "%s", level < TALLY_LEVELS ? words[level] : "?");
}

void tally_status_uuid(const uint8_t device[16], char text[37])
{
	for (unsigned i = 0; i < 16; i++)
		text += sprintf(text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
				device[i]);
}

static int show(const struct tally_status_view *view, bool json)
{
	struct tally_buffer out = {0};

	(json ? tally_status_json : tally_status_text)(view, &out);
	if (!json && out.data)
		tally_text_plain(out.data, "\n");
	bool ok =
		!out.failed && fwrite(out.data, 1, out.size, stdout) == out.size && !fflush(stdout);
	tally_buffer_free(&out);
	if (!ok)
		fprintf(stderr, "tally status: error: cannot write: %s\n", strerror(errno));
	return ok ? 0 : 1;
}

struct settings {
	bool json, why;
};

static const struct tally_option options[] = {
	TALLY_OPTION_FLAG("json", 0, struct settings, json),
	TALLY_OPTION_FLAG("why", 0, struct settings, why),
	{NULL},
};

int tally_command_status(int argc, char **argv)
{
	const struct tally_command_line line = {.program = "tally status",
						.help = help,
						.version = TALLY_COMMAND_VERSION,
						.options = options};
	struct settings settings = {0};
	struct tally_error error = {0};
	char socket[PATH_MAX];
	struct tally_reports reports = {.socket = socket};
	struct tally_status_view view;
	int first = tally_options_read(&line, argc, argv, &settings, &error);

	if (!first)
		return 0;
	if (first > 0 && tally_socket_path(socket, sizeof socket, &error))
		tally_reports_update(&reports, &error);
	if (tally_failed(&error)) {
		tally_error_print(&error, "tally status");
		return 1;
	}
	view = (struct tally_status_view){.socket = socket,
					  .board = reports.board,
					  .reports = &reports,
					  .now_ns = tally_board_now(),
					  .why = settings.why};
	if (isatty(STDOUT_FILENO)) {
		unsigned rows;

		tally_terminal_size(&view.columns, &rows);
	}
	int status = show(&view, settings.json);
	tally_reports_close(&reports);
	return status;
}
