/* SPDX-License-Identifier: Apache-2.0 */
/* What `tally status` shows, in its two forms. */
#ifndef TALLY_CLI_STATUS_H
#define TALLY_CLI_STATUS_H

#include "base/buffer.h"
#include "cli/reports.h"
#include "profiler/level.h"
#include "sched/board.h"

struct tally_status_view {
	const struct tally_board *board;     /* NULL: no daemon */
	const struct tally_reports *reports; /* of its programs; NULL: none */
	const char *socket;
	uint64_t now_ns;
	bool why;
	unsigned columns; /* of the terminal that shows it; 0: there is none */
};

/* Appends a table for people, or one JSON object. */
void tally_status_text(const struct tally_status_view *view, struct tally_buffer *out);
void tally_status_json(const struct tally_status_view *view, struct tally_buffer *out);

/* "running", "held" (active, gives way) or "idle", at `now_ns`. */
const char *tally_status_state(const struct tally_board *board, unsigned slot, uint64_t now_ns);

/* Appends one sentence that explains the state of `slot`: who holds it, and by what rule. */
void tally_status_why(const struct tally_status_view *view, unsigned slot,
		      struct tally_buffer *out);

/* How the program's work meets that of others: "time-slicing", "mps", "cpu-device", "unknown". */
const char *tally_status_sharing(const struct tally_slot *slot);

/* Of a program with a latency budget: appends a sentence that says what it comes to and why lower
 * priorities may or may not run beside it now; the same as members of its JSON object (for programs
 * without a budget too). */
void tally_status_slo(const struct tally_slot *slot, struct tally_buffer *out);
void tally_status_slo_json(const struct tally_slot *slot, struct tally_buffer *out);

/* A time for people: "31 us", "1.2 ms". */
void tally_status_duration(struct tally_buffer *out, uint64_t ns);

/* What a report tells of the program's kernels: lines for people, the most time first; and members
 * of the program's JSON object. */
void tally_status_kernels_text(const struct tally_report *report, struct tally_buffer *out);
void tally_status_kernels_json(const struct tally_report *report, struct tally_buffer *out);

/* What a kernel runs as, in a word: "original", "guarded", "sliced 128" ... */
void tally_runs_as(char *text, size_t size, const struct tally_choice *choice);

/* The UUID as 8-4-4-4-12 hex digits. */
void tally_status_uuid(const uint8_t device[16], char text[37]);

#endif
