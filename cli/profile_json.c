/* SPDX-License-Identifier: Apache-2.0 */
/* `tally profile --json`. */
#include <inttypes.h>

#include "cli/kernel_name.h"
#include "cli/profile.h"

static void string(struct tally_buffer *out, const char *name, const char *text)
{
	tally_buffer_print(out, "\"%s\": \"", name);
	tally_buffer_json(out, text);
	tally_buffer_print(out, "\"");
}

static void level(struct tally_buffer *out, const struct tally_stats *s, uint64_t blocks)
{
	tally_buffer_print(
		out,
		"{\"launches\": %" PRIu64 ", \"samples\": %" PRIu64 ", \"mean_ns\": %" PRIu64
		", \"min_ns\": %" PRIu64 ", \"block_ps\": %" PRIu64 ", \"stops\": %" PRIu64
		", \"stop_p50_ns\": %" PRIu64 ", \"stop_p99_ns\": %" PRIu64
		", \"drain_ns\": %" PRIu64 "}",
		s->launches, s->samples, tally_stats_mean(s, blocks), s->ns_min,
		tally_stats_mean(s, 1000), s->stops, tally_quantile(&tally_coarse, s->stop, 0.5),
		tally_quantile(&tally_coarse, s->stop, 0.99),
		s->stops ? s->drain_ns / s->stops : 0);
}

static void kernel(struct tally_buffer *out, const struct tally_stored *k)
{
	const struct tally_row *row = &k->row;
	const uint32_t *grid = row->key.grid, *block = row->key.block;
	struct tally_buffer name = {0};
	const char *separator = "";

	tally_kernel_name(&name, row->name);
	tally_buffer_print(out, "      {");
	string(out, "name", name.data ? name.data : "");
	tally_buffer_print(out, ", ");
	string(out, "symbol", row->name);
	tally_buffer_print(out,
			   ", \"image\": \"%016" PRIx64 "%016" PRIx64 "\", \"grid\": [%" PRIu32
			   ", %" PRIu32 ", %" PRIu32 "], \"block\": [%" PRIu32 ", %" PRIu32
			   ", %" PRIu32 "], \"shared\": %" PRIu32 ",\n       ",
			   row->key.image[0], row->key.image[1], grid[0], grid[1], grid[2],
			   block[0], block[1], block[2], row->key.shared);
	string(out, "level", tally_level_word(row->choice.level));
	tally_buffer_print(out, ", \"slice\": %" PRIu32 ", ", row->choice.slice);
	string(out, "reason", tally_reason_word(row->choice.reason));
	tally_buffer_print(out, ", ");
	string(out, "why", tally_reason_text(row->choice.reason));
	tally_buffer_print(out,
			   ", \"launches\": %" PRIu64 ", \"time_ns\": %" PRIu64
			   ", \"seen\": %" PRId64 ",\n       \"levels\": {",
			   tally_row_launches(row), tally_row_time(row), k->seen);
	for (unsigned i = 0; i < TALLY_LEVELS; i++) {
		const struct tally_stats *s = &row->level[i];

		if (!(s->launches | s->samples | s->stops))
			continue;
		tally_buffer_print(out, "%s\"%s\": ", separator, tally_level_word(i));
		level(out, s, tally_key_blocks(&row->key));
		separator = ", ";
	}
	tally_buffer_print(out, "}}");
	tally_buffer_free(&name);
}

static void program(struct tally_buffer *out, const struct tally_report *r)
{
	char name[64];

	tally_report_text(name, sizeof name, r->name);
	tally_buffer_print(out, "  \"program\": {");
	string(out, "name", name);
	tally_buffer_print(out,
			   ", \"pid\": %d, \"stop_p50_ns\": %" PRIu64 ", \"stop_p99_ns\": %" PRIu64,
			   (int)r->pid, tally_report_stop_quantile(r, 0.5),
			   tally_report_stop_quantile(r, 0.99));
	for (unsigned i = 0; i < TALLY_COUNTER_COUNT; i++)
		tally_buffer_print(out, ", \"%s\": %" PRIu64, tally_counter_word(i),
				   tally_report_counter(r, i));
	tally_buffer_print(out, "},\n");
}

void tally_profile_json(const struct tally_profile_view *view, struct tally_buffer *out)
{
	size_t count;

	tally_buffer_print(out, "{\n  ");
	string(out, "version", TALLY_VERSION);
	tally_buffer_print(out, ",\n  ");
	string(out, "source", view->source);
	tally_buffer_print(out, ",\n");
	if (view->report)
		program(out, view->report);
	tally_buffer_print(out, "  \"devices\": [");
	for (size_t first = 0; first < view->count; first += count) {
		const struct tally_origin *origin = &view->kernels[first].origin;
		size_t shown = count = tally_profile_group(view, first);

		if (view->most && view->most < count)
			shown = view->most;
		tally_buffer_print(out, "%s\n    {", first ? "," : "");
		string(out, "device", origin->device);
		tally_buffer_print(out, ", ");
		string(out, "driver", origin->driver);
		tally_buffer_print(out, ", ");
		string(out, "compiler", origin->transform);
		tally_buffer_print(out, ", \"kernels\": [\n");
		for (size_t i = 0; i < shown; i++) {
			kernel(out, &view->kernels[first + i]);
			tally_buffer_print(out, "%s\n", i + 1 < shown ? "," : "");
		}
		tally_buffer_print(out, "    ]}");
	}
	tally_buffer_print(out, "%s]\n}\n", view->count ? "\n  " : "");
}
