/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broken or hostile program writes into its report and its place on the board: everything
 * that reads them (tallyd, `tally top`, status, profile, trace) shows something and goes on.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/status.h"
#include "cli/top.h"
#include "cli/trace.h"
#include "profiler/profiles.h"
#include "profiler/report.h"
#include "tests/fuzz/fuzz.h"

#define SLOTS 3

struct change {
	uint8_t what;	 /* which structure */
	uint8_t element; /* which of several */
	uint16_t offset; /* in it */
	uint64_t value;
};

static struct tally_report *report;
static struct tally_report *untouched;
static struct tally_board *board;
static int report_fd = -1;

static void start(void)
{
	const struct tally_report_identity identity = {.name = "fuzz", .device_name = "device"};

	report = tally_report_create(&identity, &report_fd);
	untouched = calloc(1, sizeof *untouched);
	board = calloc(1, sizeof *board);
	if (!report || !untouched || !board || report_fd < 0)
		abort();
	/* Some kernels to begin with. */
	for (unsigned i = 0; i < 4; i++) {
		const unsigned grid[3] = {i + 1, 1, 1}, block[3] = {32, 1, 1};
		const struct tally_row_key key = tally_report_key(NULL, i, grid, block, 0);
		struct tally_report_row *row = tally_report_row(report, &key, "_Z6kernelPf");

		for (unsigned level = 0; level < TALLY_LEVELS; level++) {
			tally_report_launch(row, (enum tally_level)level);
			tally_report_sample(row, (enum tally_level)level, 1000, 1);
			tally_report_stop(report, row, (enum tally_level)level, 20000, 100);
		}
	}
	memcpy(untouched, report, sizeof *untouched);
}

static void set(void *object, size_t size, const struct change *c)
{
	size_t at = c->offset % size, n = sizeof c->value < size - at ? sizeof c->value : size - at;

	memcpy((char *)object + at, &c->value, n);
}

/* Only what a program can write: of the report all, of the board its own slots. */
static void apply(const struct change *c, unsigned *events)
{
	struct tally_report_record *e;

	switch (c->what % 4) {
	case 0:
		set(report, offsetof(struct tally_report, index), c);
		break;
	case 1:
		set(&report->rows[c->element % 8], sizeof *report->rows, c);
		break;
	case 2:
		set(&board->slots[c->element % SLOTS], sizeof *board->slots, c);
		break;
	default: /* an event, whole */
		e = &report->trace[*events % TALLY_REPORT_TRACE];
		atomic_store(&e->kind, c->element % (TALLY_TRACE_KINDS + 1));
		atomic_store(&e->time_ns, c->value >> 32);
		atomic_store(&e->value, c->value & 0xffffffff);
		atomic_store(&e->row, c->offset & 15);
		atomic_store(&e->stream, c->offset >> 4);
		atomic_store(&e->stamp, (uint32_t)(*events)++ | 0x80000000u);
		atomic_store(&report->trace_head, *events);
	}
}

static void look_at_board(const struct tally_reports *reports)
{
	static struct top_model model; /* large, and it remembers the last look */
	static const struct top_screen screens[] = {
		{.columns = 80, .rows = 24, .attributes = true, .colours = true, .utf8 = true},
		{.columns = 20, .rows = 3},
		{.columns = 200},
	};
	struct tally_buffer out = {0};
	const struct tally_status_view view = {.board = board,
					       .reports = reports,
					       .socket = "socket",
					       .now_ns = 1000000000,
					       .why = true};

	tally_status_text(&view, &out);
	tally_status_json(&view, &out);
	for (unsigned sort = 0; sort < TOP_SORTS; sort++) {
		model.sort = (enum top_sort)sort;
		model.totals = sort & 1;
		model.socket = "socket";
		top_model_look(&model, reports, 1000000000 + sort * 1000);
		top_model_look_at_kernels(&model, reports);
		top_screen_draw(&screens[sort % 3], &model, &out);
	}
	top_model_free(&model);
	tally_buffer_free(&out);
}

#define MOST_ROWS 2050 /* of one program: two, and two for each of 1,024 streams */

static void count_rows(const char *json)
{
	unsigned rows = 0;

	while ((json = strstr(json, "\"thread_name\""))) {
		json++;
		if (++rows > MOST_ROWS)
			abort(); /* each stream takes some KiB: they have a limit */
	}
}

static void look_at_trace(struct tally_reported *who)
{
	struct tally_trace_cursor cursor = {.ended = who->gone};
	struct tally_buffer events = {0}, out = {0};
	struct tally_trace_event event;

	while (tally_trace_next(report, &cursor, &event))
		tally_buffer_append(&events, &event, sizeof event);
	struct trace_program program = {.who = who,
					.events = (struct tally_trace_event *)events.data,
					.count = events.size / sizeof event,
					.lost = cursor.lost};
	const struct trace trace = {
		.begin_ns = 100, .end_ns = 5000, .programs = &program, .program_count = 1};

	trace_json(&trace, &out);
	if (!out.failed && out.data[out.size - 1] != '\n')
		abort();
	if (program.count > MOST_ROWS / 2)
		count_rows(out.data);
	tally_buffer_free(&out);
	tally_buffer_free(&events);
}

void fuzz_run_report(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct tally_error error = {0};
	const struct tally_report *mapped;
	struct change c;
	unsigned events = 0;

	if (!report)
		start();
	memcpy(report, untouched, offsetof(struct tally_report, index));
	memcpy(report->rows, untouched->rows, 8 * sizeof *report->rows);
	memset(board, 0, sizeof *board);
	for (unsigned i = 0; i < SLOTS; i++) {
		atomic_store(&board->slots[i].generation, 1);
		board->slots[i].priority = (int)i * 50;
		strcpy(board->slots[i].name, "program");
	}
	atomic_store(&board->slots_end, SLOTS);
	while (events < 4096 && fuzz_take(&input, &c.what, 1) && fuzz_take(&input, &c.element, 1) &&
	       fuzz_take(&input, &c.offset, 2) && fuzz_take(&input, &c.value, 8))
		apply(&c, &events);
	mapped = tally_report_map(report_fd, &error);
	fuzz_check(mapped, &error);
	if (!mapped)
		return;
	struct tally_reported list[SLOTS] = {{.slot = 0, .fd = -1}};
	struct tally_reports reports = {.board = board, .list = list, .count = SLOTS};

	for (unsigned i = 0; i < SLOTS; i++)
		list[i] = (struct tally_reported){.slot = i,
						  .generation =
							  atomic_load(&board->slots[i].generation),
						  .priority = (int)i,
						  .pid = (int)i,
						  .gone = false,
						  .name = "program",
						  .fd = -1,
						  .report = i == 2 ? NULL : mapped};
	look_at_board(&reports);
	list[1].gone = true;
	look_at_trace(&list[size & 1]);
	tally_report_unmap(mapped);
	for (unsigned i = 0; i < events; i++)
		atomic_store(&report->trace[i % TALLY_REPORT_TRACE].stamp, 0);
}
