/* SPDX-License-Identifier: Apache-2.0 */
/* The board and the programs' reports, as `tally top`, `status` and `trace` look at them: got from
 * tallyd as daemons and programs come and go. */
#ifndef TALLY_CLI_REPORTS_H
#define TALLY_CLI_REPORTS_H

#include "profiler/report.h"
#include "sched/client.h"

/* A program that is or was on the board. */
struct tally_reported {
	unsigned slot;
	uint32_t generation; /* of the slot */
	uint64_t joined_ns;
	int pid, priority;
	char name[64], device_name[64];
	uint8_t device[16];
	bool gone;			   /* it left */
	int fd;				   /* of the report; -1: none */
	const struct tally_report *report; /* NULL: it gave none that this version reads */
};

/* One thread's. Start zeroed but for `socket` and `keep`; end with tally_reports_close(). */
struct tally_reports {
	const char *socket;		 /* the caller's */
	bool keep;			 /* programs that left stay in the list */
	const struct tally_board *board; /* NULL: no daemon runs */
	struct tally_observer observer;
	struct tally_reported *list;
	unsigned count;
	uint64_t finished_seen; /* of the board's finished programs */
};

/* Looks again: another daemon, programs that came and went. True when there is no daemon, too
 * (`board` is NULL then); false with an error when one cannot be talked to. What the list holds is
 * valid until the next call. */
bool tally_reports_update(struct tally_reports *reports, struct tally_error *error);

/* The report of the program in `slot` of that generation; NULL when it gave none, or `reports` is
 * NULL. */
const struct tally_report *tally_reports_of(const struct tally_reports *reports, unsigned slot,
					    uint32_t generation);

/* Unmaps all reports and ends the connection; the same `reports` may be looked at again. */
void tally_reports_close(struct tally_reports *reports);

#endif
