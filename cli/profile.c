/* SPDX-License-Identifier: Apache-2.0 */
/* tally profile: what was measured of the kernels, by all programs that ran or by one of them. */
#include "cli/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/number.h"
#include "base/options.h"
#include "cache/cache.h"
#include "cli/command.h"
#include "sched/client.h"

#define SHOWN 30 /* of each device, without --limit */

static const char help[] =
	"usage: tally profile [options]\n"
	"\n"
	"Shows what was measured of each kernel in each configuration, what it runs as, and why:\n"
	"by all programs that ran, kept for each device, driver and version; or by one program.\n"
	"\n"
	"options:\n"
	"  --program WHICH   of the program with this pid or name alone, as it stands now; it "
	"runs,\n"
	"                    or was among the last few that ended\n"
	"  --device TEXT     of devices whose name holds TEXT alone\n"
	"  --sort BY         time (the default), launches, stop (latency) or name\n"
	"  --limit N         the first N of each device (default 30; 0: all; --json: all)\n"
	"  --json            one JSON object; times are whole nanoseconds\n"
	"  --reset           forget what is kept (of the devices that --device names); programs "
	"that\n"
	"                    run go on counting from their start\n"
	"  --help, --version\n"
	"\n"
	"exit status: 0, also when nothing was measured yet; 1 on errors.\n";

struct options {
	const char *program, *device;
	bool json, reset, limited;
	size_t most;
	int (*order)(const void *a, const void *b);
};

static bool append(struct tally_profile_view *view, const struct tally_stored *stored)
{
	if (!TALLY_GROW(view->kernels, view->count))
		return false;
	view->kernels[view->count++] = *stored;
	return true;
}

/* ------------------------------------------------------------------------------------- the order
 */

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_origin(const struct tally_stored *a, const struct tally_stored *b)
{
	return memcmp(&a->origin, &b->origin, sizeof a->origin);
}

static uint64_t worst_stop(const struct tally_row *row)
{
	uint64_t worst = 0;

	for (unsigned i = 0; i < TALLY_LEVELS; i++) {
		uint64_t ns = tally_quantile(&tally_coarse, row->level[i].stop, 0.99);

		worst = ns > worst ? ns : worst;
	}
	return worst;
}

static int by_name(const void *a, const void *b)
{
	const struct tally_stored *x = a, *y = b;
	int order = by_origin(x, y);

	order = order ? order : strcmp(x->row.name, y->row.name);
	return order ? order : memcmp(&x->row.key, &y->row.key, sizeof x->row.key);
}

/* The larger first; equal ones by name, so that two calls show the same. */
#define BY(name, value)                                                                            \
	static int by_##name(const void *a, const void *b)                                         \
	{                                                                                          \
		const struct tally_stored *x = a, *y = b;                                          \
		int order = by_origin(x, y);                                                       \
                                                                                                   \
		order = order ? order : descending(value(&x->row), value(&y->row));                \
		return order ? order : by_name(a, b);                                              \
	}
BY(time, tally_row_time)
BY(launches, tally_row_launches)
BY(stop, worst_stop)

static const struct {
	const char *name;
	int (*order)(const void *a, const void *b);
} orders[] = {{"time", by_time}, {"launches", by_launches}, {"stop", by_stop}, {"name", by_name}};

size_t tally_profile_group(const struct tally_profile_view *view, size_t first)
{
	size_t end = first;

	while (end < view->count && !by_origin(&view->kernels[first], &view->kernels[end]))
		end++;
	return end - first;
}

/* -------------------------------------------------------------------------------------- the store
 */

struct wanted {
	struct tally_profile_view *view;
	const char *device;
	bool failed;
};

static bool take(void *context, const struct tally_stored *stored)
{
	struct wanted *w = context;

	if (!w->device || strcasestr(stored->origin.device, w->device))
		w->failed = !append(w->view, stored);
	else
		snprintf(w->view->other, sizeof w->view->other, "%s", stored->origin.device);
	return !w->failed;
}

static bool read_store(const struct options *o, const char *folder, struct tally_profile_view *view,
		       struct tally_error *error)
{
	struct wanted wanted = {.view = view, .device = o->device};
	bool absent, ok;
	struct tally_store *store = tally_store_read(folder, &absent, error);

	if (!store && absent)
		*error = (struct tally_error){0};
	if (!store)
		return absent;
	ok = tally_store_each(store, NULL, take, &wanted, error);
	tally_store_close(store);
	return ok && (!wanted.failed || tally_fail(error, "out of memory"));
}

static bool reset(const struct options *o, const char *folder, struct tally_error *error)
{
	struct tally_error unread = {0};
	unsigned removed = 0;
	char note[256];
	bool absent, ok = true;

	/* Looked at first: forgetting makes no store. */
	tally_store_close(tally_store_read(folder, &absent, &unread));
	if (!absent) {
		struct tally_store *store = tally_store_open(folder, note, error);

		if (store && *note)
			fprintf(stderr, "tally profile: %s\n", note);
		ok = store && tally_store_reset(store, o->device, &removed, error);
		tally_store_close(store);
	}
	if (ok)
		printf("forgot what was measured of %u kernels\n", removed);
	return ok;
}

/* ------------------------------------------------------------------------------------ one program
 */

static bool is_wanted(const struct tally_slot *slot, const char *which)
{
	char *end;
	long pid = strtol(which, &end, 10);

	return (*which && !*end && pid == slot->pid) ||
	       !strncmp(slot->name, which, sizeof slot->name);
}

/* What is looked for, and what was found of it. */
struct search {
	struct tally_observer observer;
	const char *which;
	bool met; /* a program, with or without a report */
	const struct tally_report *report;
};

/* False when tallyd does not answer. */
static bool look_at(struct search *s, const struct tally_slot *slot, struct tally_error *error)
{
	struct tally_attachment left;

	if (!is_wanted(slot, s->which))
		return true;
	s->met = true;
	if (!tally_observer_fetch(&s->observer, slot, &left, error))
		return false;
	if (!left.size)
		return true;
	s->report = tally_report_map(left.fd, NULL);
	close(left.fd);
	return true;
}

/* The report of a program that is there, or else of the one that ended last. */
static bool find_report(struct search *s, struct tally_error *error)
{
	const struct tally_board *board = s->observer.board;
	uint64_t end = atomic_load(&board->finished_count);
	uint64_t first = end < TALLY_BOARD_FINISHED ? 0 : end - TALLY_BOARD_FINISHED;

	for (unsigned i = 0; i < TALLY_BOARD_SLOTS && !s->report; i++)
		if (tally_slot_used(&board->slots[i]) && !look_at(s, &board->slots[i], error))
			return false;
	for (uint64_t n = end; n > first && !s->report; n--)
		if (!look_at(s, &board->finished[(n - 1) % TALLY_BOARD_FINISHED], error))
			return false;
	if (s->report)
		return true;
	return s->met ? tally_fail(error, "%s has left no report (or it ended too long ago)",
				   s->which)
		      : tally_fail(error, "no program of that pid or name: %s", s->which);
}

static bool read_program(const struct options *o, struct tally_profile_view *view,
			 struct tally_error *error)
{
	struct search search = {.which = o->program};
	struct tally_stored stored = {.seen = 0};
	bool ok;

	if (!tally_observer_open(&search.observer, NULL, NULL, error))
		return false;
	ok = find_report(&search, error);
	tally_observer_close(&search.observer);
	view->report = search.report;
	if (!ok)
		return false;
	stored.origin = tally_origin_of(view->report->device_name, view->report->driver,
					view->report->transform);
	for (unsigned i = 0; i < tally_report_rows(view->report) && ok; i++)
		if (tally_report_changes(view->report, i) &&
		    tally_report_read(view->report, i, &stored.row))
			ok = append(view, &stored);
	return ok || tally_fail(error, "out of memory");
}

/* --------------------------------------------------------------------------------------- the rest
 */

static bool show(const struct options *o, const struct tally_profile_view *view,
		 struct tally_error *error)
{
	struct tally_buffer out = {0};
	bool ok;

	(o->json ? tally_profile_json : tally_profile_text)(view, &out);
	if (!o->json && out.data)
		tally_text_plain(out.data, "\n");
	ok = !out.failed && fwrite(out.data, 1, out.size, stdout) == out.size && !fflush(stdout);
	tally_buffer_free(&out);
	return ok || tally_fail(error, "cannot write: %s", strerror(errno));
}

static bool run(const struct options *o, struct tally_error *error)
{
	struct tally_profile_view view = {.most = o->limited || o->json ? o->most : SHOWN};
	char folder[PATH_MAX];
	bool ok = tally_cache_folder(folder, error);

	view.source = o->program ? o->program : folder;
	if (ok && o->reset)
		return reset(o, folder, error);
	ok = ok &&
	     (o->program ? read_program(o, &view, error) : read_store(o, folder, &view, error));
	if (ok && view.count)
		qsort(view.kernels, view.count, sizeof *view.kernels, o->order);
	ok = ok && show(o, &view, error);
	tally_report_unmap(view.report);
	free(view.kernels);
	return ok;
}

static bool read_limit(void *options, const char *value, struct tally_error *error)
{
	struct options *o = options;

	o->limited = tally_parse_whole(value, 0, 1000000000, &o->most);
	return o->limited || tally_fail(error, "--limit wants a whole number, not \"%s\"", value);
}

static bool read_order(void *options, const char *value, struct tally_error *error)
{
	struct options *o = options;

	for (unsigned i = 0; i < sizeof orders / sizeof *orders; i++)
		if (!strcmp(value, orders[i].name)) {
			o->order = orders[i].order;
			return true;
		}
	return tally_fail(error, "--sort wants time, launches, stop or name, not \"%s\"", value);
}

static const struct tally_option known[] = {
	TALLY_OPTION_TEXT("program", 0, struct options, program),
	TALLY_OPTION_TEXT("device", 0, struct options, device),
	TALLY_OPTION_READ("sort", 0, read_order),
	TALLY_OPTION_READ("limit", 0, read_limit),
	TALLY_OPTION_FLAG("json", 0, struct options, json),
	TALLY_OPTION_FLAG("reset", 0, struct options, reset),
	{NULL},
};

int tally_command_profile(int argc, char **argv)
{
	const struct tally_command_line line = {.program = "tally profile",
						.help = help,
						.version = TALLY_COMMAND_VERSION,
						.options = known};
	struct options o = {.order = by_time};
	struct tally_error error = {0};
	int first = tally_options_read(&line, argc, argv, &o, &error);

	if (first > 0 && o.program && (o.device || o.reset))
		tally_fail(&error, "--program goes with neither --device nor --reset");
	if (!first || (!tally_failed(&error) && run(&o, &error)))
		return 0;
	tally_error_print(&error, "tally profile");
	return 1;
}
