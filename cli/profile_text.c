/* SPDX-License-Identifier: Apache-2.0 */
/* `tally profile` for people: a table for each device, and what its words mean. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/kernel_name.h"
#include "cli/profile.h"
#include "cli/status.h"

/* "12.3" or "-": microseconds. */
static const char *us(char *text, size_t size, uint64_t ns)
{
	if (!ns)
		snprintf(text, size, "-");
	else
		snprintf(text, size, ns < 100000 ? "%.1f" : "%.0f", (double)ns / 1e3);
	return text;
}

static void append_shape(struct tally_buffer *out, const uint32_t n[3])
{
	tally_buffer_print(out, "%" PRIu32, n[0]);
	if (n[1] != 1 || n[2] != 1)
		tally_buffer_print(out, "x%" PRIu32, n[1]);
	if (n[2] != 1)
		tally_buffer_print(out, "x%" PRIu32, n[2]);
}

static void append_row(const struct tally_row *row, uint64_t of_all_ns, struct tally_buffer *out)
{
	const struct tally_stats *s = &row->level[row->choice.level];
	uint64_t ns = tally_row_time(row), launches = tally_row_launches(row);
	char mean[32], p50[32], p99[32], runs[32], stop[72];
	struct tally_buffer shape = {0};

	tally_runs_as(runs, sizeof runs, &row->choice);
	us(mean, sizeof mean, launches ? ns / launches : 0);
	snprintf(stop, sizeof stop, "%s/%s",
		 us(p50, sizeof p50, tally_quantile(&tally_coarse, s->stop, 0.5)),
		 us(p99, sizeof p99, tally_quantile(&tally_coarse, s->stop, 0.99)));
	append_shape(&shape, row->key.grid);
	tally_buffer_print(&shape, " x ");
	append_shape(&shape, row->key.block);
	tally_buffer_print(
		out, "%9.3f %5.1f%% %9" PRIu64 " %9s %8" PRIu64 "  %-16s %-13s %17s  %-22s ",
		(double)ns / 1e9, of_all_ns ? 100.0 * (double)ns / (double)of_all_ns : 0.0,
		launches, mean, s->samples, runs, tally_reason_word(row->choice.reason), stop,
		shape.data ? shape.data : "");
	tally_buffer_free(&shape);
	tally_kernel_name(out, row->name);
	tally_buffer_print(out, "\n");
}

static void append_group(const struct tally_profile_view *view, size_t first, size_t count,
			 struct tally_buffer *out)
{
	const struct tally_origin *origin = &view->kernels[first].origin;
	size_t shown = view->most && view->most < count ? view->most : count;
	uint64_t ns = 0;

	for (size_t i = 0; i < count; i++)
		ns += tally_row_time(&view->kernels[first + i].row);
	tally_buffer_print(out, "%s (driver %s, compiler %s): %zu kernels, %.3f s\n\n",
			   *origin->device ? origin->device : "unnamed device", origin->driver,
			   origin->transform, count, (double)ns / 1e9);
	tally_buffer_print(out, "%9s %6s %9s %9s %8s  %-16s %-13s %17s  %-22s %s\n", "TIME s",
			   "SHARE", "LAUNCHES", "MEAN us", "SAMPLES", "RUNS AS", "WHY",
			   "STOP us p50/p99", "GRID x BLOCK", "KERNEL");
	for (size_t i = 0; i < shown; i++)
		append_row(&view->kernels[first + i].row, ns, out);
	if (shown < count)
		tally_buffer_print(out, "%9s and %zu more (--limit 0 shows all)\n", "...",
				   count - shown);
	tally_buffer_print(out, "\n");
}

/* Of a program: how long it took to stop, and what else it counted. */
static void append_program(const struct tally_profile_view *view, struct tally_buffer *out)
{
	const struct tally_report *r = view->report;
	char p50[32], p99[32], name[64];

	tally_report_text(name, sizeof name, r->name);
	tally_buffer_print(out, "%s (pid %d): stops us p50/p99 %s/%s\n", name, (int)r->pid,
			   us(p50, sizeof p50, tally_report_stop_quantile(r, 0.5)),
			   us(p99, sizeof p99, tally_report_stop_quantile(r, 0.99)));
	for (unsigned i = 0; i < TALLY_COUNTER_COUNT; i++)
		if (tally_report_counter(r, i))
			tally_buffer_print(out, "%15" PRIu64 "  %s\n", tally_report_counter(r, i),
					   tally_counter_text(i));
	tally_buffer_print(out, "\n");
}

static void append_words(const struct tally_profile_view *view, struct tally_buffer *out)
{
	bool used[TALLY_REASON_COUNT] = {false};

	for (size_t i = 0; i < view->count; i++)
		used[view->kernels[i].row.choice.reason] = true;
	for (unsigned i = 0; i < TALLY_REASON_COUNT; i++)
		if (used[i])
			tally_buffer_print(out, "%-14s %s\n", tally_reason_word(i),
					   tally_reason_text(i));
}

void tally_profile_text(const struct tally_profile_view *view, struct tally_buffer *out)
{
	size_t count;

	if (view->report)
		append_program(view, out);
	for (size_t first = 0; first < view->count; first += count) {
		count = tally_profile_group(view, first);
		append_group(view, first, count, out);
	}
	if (view->count)
		append_words(view, out);
	else
		tally_buffer_print(
			out,
			*view->other ? "nothing was measured on such a device, but on %s (%s)\n"
				     : "nothing was measured yet%s (%s)\n",
			view->other, view->source);
}
