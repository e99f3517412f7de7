/* SPDX-License-Identifier: Apache-2.0 */
/* tally status: what a program's report tells, kernel by kernel: what each runs as, and why. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/kernel_name.h"
#include "cli/status.h"

#define SHOWN 12 /* of a program; the rest is in --json */

/* A row of a report, and how much of the device's time its kernel took. */
struct ranked {
	unsigned number;
	uint64_t time, launches;
};

static int by_time(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? 1 : -1;
	if (a->launches != b->launches)
		return a->launches < b->launches ? 1 : -1;
	return (a->number > b->number) - (a->number < b->number);
}

/* The rows that were launched, the most time first; the caller's to free. NULL: none. */
static struct ranked *rank(const struct tally_report *report, unsigned *count)
{
	unsigned rows = tally_report_rows(report);
	struct ranked *list = calloc(rows + 1, sizeof *list);
	struct tally_row row;

	*count = 0;
	for (unsigned i = 0; list && i < rows; i++) {
		if (!tally_report_read(report, i, &row) || !tally_row_launches(&row))
			continue;
		list[(*count)++] =
			(struct ranked){i, tally_row_time(&row), tally_row_launches(&row)};
	}
	if (list)
		qsort(list, *count, sizeof *list, by_time);
	return list;
}

static void text_of(const struct tally_row *row, struct tally_buffer *out)
{
	const struct tally_stats *s = &row->level[row->choice.level];
	uint64_t mean = tally_stats_mean(s, tally_key_blocks(&row->key));
	const uint32_t *g = row->key.grid, *b = row->key.block;
	char as[32];

	tally_runs_as(as, sizeof as, &row->choice);
	tally_buffer_print(out, "    ");
	tally_kernel_name(out, row->name);
	tally_buffer_print(out, " <<<%ux%ux%u, %ux%ux%u>>> runs as %s: %s; %" PRIu64 " launches",
			   g[0], g[1], g[2], b[0], b[1], b[2], as,
			   tally_reason_text(row->choice.reason), tally_row_launches(row));
	if (mean) {
		tally_buffer_print(out, " of ");
		tally_status_duration(out, mean);
	}
	if (s->stops) {
		tally_buffer_print(out, ", stops in ");
		tally_status_duration(out, tally_quantile(&tally_coarse, s->stop, 0.5));
		tally_buffer_print(out, " (p99 ");
		tally_status_duration(out, tally_quantile(&tally_coarse, s->stop, 0.99));
		tally_buffer_print(out, ")");
	}
	tally_buffer_print(out, "\n");
}

void tally_status_kernels_text(const struct tally_report *report, struct tally_buffer *out)
{
	struct tally_row row;
	unsigned count;
	struct ranked *list = rank(report, &count);

	for (unsigned i = 0; i < count && i < SHOWN; i++)
		if (tally_report_read(report, list[i].number, &row))
			text_of(&row, out);
	if (count > SHOWN)
		tally_buffer_print(out, "    (and %u more; --json --why shows all)\n",
				   count - SHOWN);
	free(list);
}

static void level_json(const struct tally_row *row, unsigned level, struct tally_buffer *out)
{
	const struct tally_stats *s = &row->level[level];

	tally_buffer_print(out,
			   "\"%s\": {\"launches\": %" PRIu64 ", \"samples\": %" PRIu64
			   ", \"mean_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64
			   ", \"stops\": %" PRIu64 ", \"stop_p50_ns\": %" PRIu64
			   ", \"stop_p99_ns\": %" PRIu64 "}",
			   tally_level_word(level), s->launches, s->samples,
			   tally_stats_mean(s, tally_key_blocks(&row->key)), s->ns_min, s->stops,
			   tally_quantile(&tally_coarse, s->stop, 0.5),
			   tally_quantile(&tally_coarse, s->stop, 0.99));
}

static void json_of(const struct tally_row *row, struct tally_buffer *out)
{
	const uint32_t *g = row->key.grid, *b = row->key.block;
	struct tally_buffer name = {0};
	const char *separator = "";
	char as[32];

	tally_kernel_name(&name, row->name);
	tally_runs_as(as, sizeof as, &row->choice);
	tally_buffer_print(out, "{\"name\": \"");
	tally_buffer_json(out, name.data ? name.data : "");
	tally_buffer_print(out, "\", \"symbol\": \"");
	tally_buffer_json(out, row->name);
	tally_buffer_print(
		out,
		"\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, "
		"\"launches\": %" PRIu64 ", \"runs_as\": \"%s\", \"level\": \"%s\", \"slice\": %u, "
		"\"reason\": \"%s\", \"why\": \"%s\", \"levels\": {",
		g[0], g[1], g[2], b[0], b[1], b[2], row->key.shared, tally_row_launches(row), as,
		tally_level_word(row->choice.level), row->choice.slice,
		tally_reason_word(row->choice.reason), tally_reason_text(row->choice.reason));
	for (unsigned i = 0; i < TALLY_LEVELS; i++) {
		if (!row->level[i].launches)
			continue;
		tally_buffer_print(out, "%s", separator);
		level_json(row, i, out);
		separator = ", ";
	}
	tally_buffer_print(out, "}}");
	tally_buffer_free(&name);
}

void tally_status_kernels_json(const struct tally_report *report, struct tally_buffer *out)
{
	const char *separator = "";
	struct tally_row row;
	unsigned count;
	struct ranked *list = rank(report, &count);

	tally_buffer_print(out,
			   ", \"stop_latency_p50_ns\": %" PRIu64
			   ", \"stop_latency_p99_ns\": %" PRIu64 ", \"counters\": {",
			   tally_report_stop_quantile(report, 0.5),
			   tally_report_stop_quantile(report, 0.99));
	for (unsigned i = 0; i < TALLY_COUNTER_COUNT; i++)
		tally_buffer_print(out, "%s\"%s\": %" PRIu64, i ? ", " : "", tally_counter_word(i),
				   tally_report_counter(report, i));
	tally_buffer_print(out, "}, \"kernels\": [");
	for (unsigned i = 0; i < count; i++) {
		if (!tally_report_read(report, list[i].number, &row))
			continue;
		tally_buffer_print(out, "%s\n      ", separator);
		json_of(&row, out);
		separator = ",";
	}
	tally_buffer_print(out, "%s]", *separator ? "\n    " : "");
	free(list);
}
