/* SPDX-License-Identifier: Apache-2.0 */
/* What `tally top` knows (top_model.c) and how it shows it (top_screen.c). */
#ifndef TALLY_CLI_TOP_H
#define TALLY_CLI_TOP_H

#include "base/buffer.h"
#include "cli/reports.h"
#include "profiler/report.h"
#include "sched/board.h"

/* One program, as of the last look. Numbers of an interval are a second's (counts) or shares of the
 * interval's time; where `totals` is wanted they are since the program joined. */
struct top_program {
	unsigned slot;
	uint32_t generation;
	int pid, priority;
	const char *name;  /* the board's */
	const char *state; /* tally_status_state() */
	int holder;	   /* slot of who holds it; -1: nobody */
	uint64_t since_ns; /* for how long it has been running or held; 0: unknown */
	double gpu, held;  /* shares: ran or could have run; had to give way */
	double launches, stops, resumes;
	uint64_t stopped;		   /* stops ever: whether there are latencies */
	uint64_t stop_p50_ns, stop_p99_ns; /* 0: unknown */
};

struct top_kernel {
	char *name; /* for people; the model's */
	struct tally_row_key key;
	struct tally_choice choice;
	double count, share; /* launches; of the interval's time, 0: not timed */
	uint64_t mean_ns;    /* 0: not timed */
	uint64_t stop_p99_ns;
};

enum top_sort {
	TOP_BY_PRIORITY,
	TOP_BY_GPU,
	TOP_BY_LAUNCHES,
	TOP_BY_STOPS,
	TOP_BY_NAME,
	TOP_SORTS
};
extern const char *const top_sort_names[TOP_SORTS];

/* What was counted at an earlier look. */
struct top_past {
	uint32_t generation; /* even: nothing */
	uint64_t at_ns, active_ns, held_ns, launches, stops, resumes;
};

struct top_model {
	const struct tally_board *board; /* NULL: no daemon */
	const char *socket;
	uint64_t now_ns;
	struct top_program programs[TALLY_BOARD_SLOTS];
	unsigned program_count;
	struct top_past past[TALLY_BOARD_SLOTS];

	/* Of the selected program, the most time first. */
	struct top_kernel *kernels;
	unsigned kernel_count;
	bool reported; /* it has a report */
	uint64_t kernels_at_ns;
	uint32_t kernels_generation;
	unsigned kernels_slot;
	uint64_t launches_before[TALLY_REPORT_ROWS];

	/* What the user wants. */
	enum top_sort sort;
	bool totals;
	unsigned selected;	      /* slot */
	uint32_t selected_generation; /* even: the first of the list */
};

/* Looks at the board and starts a new interval. `reports` as just updated. */
void top_model_look(struct top_model *model, const struct tally_reports *reports, uint64_t now_ns);

/* Looks at the selected program's report. When memory runs out there are fewer kernels. */
void top_model_look_at_kernels(struct top_model *model, const struct tally_reports *reports);

/* The list's index of the selected program; 0 when it is gone. */
unsigned top_model_selected(const struct top_model *model);
void top_model_select(struct top_model *model, unsigned index);

/* Sorts the programs anew, without a look. */
void top_model_sort(struct top_model *model);

/* Frees what the looks left. */
void top_model_free(struct top_model *model);

/* How it is shown. */
struct top_screen {
	unsigned columns, rows; /* rows 0: no limit, and no line of keys (batch mode) */
	bool attributes;	/* escape sequences: bold, reverse */
	bool colours, utf8;
	bool paused, help;
	double interval_s;
};

/* Appends one frame: exactly `rows` lines where there is a limit. */
void top_screen_draw(const struct top_screen *screen, const struct top_model *model,
		     struct tally_buffer *out);

#endif
