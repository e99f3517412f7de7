/* SPDX-License-Identifier: Apache-2.0 */
/* tally top: a live view of who shares the devices. */
#include "cli/top.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/options.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "sched/client.h"

static const char help[] =
	"usage: tally top [options]\n"
	"\n"
	"Shows the programs that share devices, live: who runs, who is held by whom, how quickly "
	"they\n"
	"stop, and what the kernels of the selected one run as and why.\n"
	"\n"
	"options:\n"
	"  -i, --interval SECONDS   time between two looks, 0.05 to 3600 (default: 1)\n"
	"  -p, --program WHICH      select this program: its pid, or its name\n"
	"  -s, --sort BY            priority, time, launches, stops or name (default: "
	"priority)\n"
	"  -t, --totals             numbers since each program's start instead of the interval's "
	"rates\n"
	"  -b, --batch              frames as plain text, one after the other, for scripts\n"
	"  -n, --frames N           end after N frames\n"
	"      --once               one frame as plain text, of averages since each program's "
	"start\n"
	"  --help, --version\n"
	"\n"
	"keys: up, down (or k, j) select a program; s sorts; t totals or rates; p pauses; ? "
	"helps;\n"
	"q leaves.\n"
	"\n"
	"exit status: 0, also when no tallyd runs (it is waited for); 1 on errors.\n";

struct settings {
	double interval_s;
	const char *program; /* NULL: the most urgent */
	enum top_sort sort;
	bool totals, batch;
	unsigned long frames; /* 0: no limit */
};

/* What goes on between two frames. */
struct session {
	struct settings settings;
	struct tally_reports reports;
	char socket[PATH_MAX];
	struct top_screen screen;
	struct top_model model;
	bool found; /* --program has been found and selected */
	bool gone;  /* the user wants to leave */
};

static bool read_interval(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return tally_parse_number(value, 0.05, 3600, &s->interval_s) ||
	       tally_fail(error, "--interval wants seconds from 0.05 to 3600, not \"%s\"", value);
}

static bool read_frames(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return tally_parse_whole(value, 1, 1000000000, &s->frames) ||
	       tally_fail(error, "--frames wants a whole number from 1, not \"%s\"", value);
}

static bool read_sort(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;
	int sort = tally_option_word("--sort", value, top_sort_names, TOP_SORTS, error);

	s->sort = (enum top_sort)sort;
	return sort >= 0;
}

static bool once(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	s->batch = true;
	s->frames = 1;
	return true;
}

static const struct tally_option options[] = {
	TALLY_OPTION_READ("interval", 'i', read_interval),
	TALLY_OPTION_TEXT("program", 'p', struct settings, program),
	TALLY_OPTION_READ("sort", 's', read_sort),
	TALLY_OPTION_FLAG("totals", 't', struct settings, totals),
	TALLY_OPTION_FLAG("batch", 'b', struct settings, batch),
	TALLY_OPTION_READ("frames", 'n', read_frames),
	TALLY_OPTION_ACT("once", 0, once),
	{NULL},
};

static void select_wanted(struct session *s)
{
	const char *wanted = s->settings.program;
	char *end;

	if (!wanted || s->found)
		return;
	long pid = strtol(wanted, &end, 10);
	for (unsigned i = 0; i < s->model.program_count; i++) {
		const struct top_program *p = &s->model.programs[i];

		if ((end != wanted && !*end && p->pid == pid) || !strcmp(p->name, wanted)) {
			top_model_select(&s->model, i);
			s->found = true;
			return;
		}
	}
}

static bool look(struct session *s, struct tally_error *error)
{
	if (!tally_reports_update(&s->reports, error))
		return false;
	s->model.socket = s->socket;
	top_model_look(&s->model, &s->reports, tally_board_now());
	select_wanted(s);
	top_model_look_at_kernels(&s->model, &s->reports);
	return true;
}

static void sleep_until(uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / 1000000000),
				       (long)(until_ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static int batch(struct session *s, struct tally_error *error)
{
	bool ok = true;

	for (unsigned long n = 0; ok && (!s->settings.frames || n < s->settings.frames); n++) {
		struct tally_buffer out = {0};

		if (n)
			sleep_until(s->model.now_ns + (uint64_t)(s->settings.interval_s * 1e9));
		if (!look(s, error))
			return 1;
		top_screen_draw(&s->screen, &s->model, &out);
		if (out.failed)
			ok = tally_fail(error, "out of memory");
		else if (fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout))
			ok = tally_fail(error, "cannot write: %s", strerror(errno));
		tally_buffer_free(&out);
	}
	return ok ? 0 : 1;
}

static bool draw(struct session *s, struct tally_error *error)
{
	struct tally_buffer out = {0};
	bool ok;

	tally_terminal_size(&s->screen.columns, &s->screen.rows);
	tally_buffer_print(&out, "\x1b[H");
	top_screen_draw(&s->screen, &s->model, &out);
	ok = !out.failed && tally_terminal_write(&out);
	tally_buffer_free(&out);
	return ok || tally_fail(error, "cannot write to the terminal: %s", strerror(errno));
}

/* Whether another program is selected now. */
static bool move(struct session *s, int key)
{
	unsigned before = top_model_selected(&s->model), at = before;
	unsigned end = s->model.program_count;

	if (key == TALLY_KEY_UP || key == 'k')
		at -= at > 0;
	else if (key == TALLY_KEY_DOWN || key == 'j')
		at += at + 1 < end;
	else
		at = key == TALLY_KEY_HOME || key == TALLY_KEY_PAGE_UP || !end ? 0 : end - 1;
	top_model_select(&s->model, at);
	s->found = true;
	return at != before;
}

/* What a key does; whether the model has to look again. */
static bool press(struct session *s, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
	case TALLY_KEY_GONE:
		s->gone = true;
		return false;
	case '?':
	case 'h':
		s->screen.help = !s->screen.help;
		return false;
	case 's':
		s->model.sort = (s->model.sort + 1) % TOP_SORTS;
		top_model_sort(&s->model);
		return false;
	case 't':
		s->model.totals = !s->model.totals;
		return !s->screen.paused;
	case 'p':
	case ' ':
		s->screen.paused = !s->screen.paused;
		return !s->screen.paused;
	case 'j':
	case 'k':
	case TALLY_KEY_UP:
	case TALLY_KEY_DOWN:
	case TALLY_KEY_HOME:
	case TALLY_KEY_END:
	case TALLY_KEY_PAGE_UP:
	case TALLY_KEY_PAGE_DOWN:
		if (move(s, key))
			top_model_look_at_kernels(&s->model, &s->reports);
		return false;
	default:
		return false;
	}
}

static int live(struct session *s, struct tally_error *error)
{
	const uint64_t interval = (uint64_t)(s->settings.interval_s * 1e9);
	unsigned long frames = 0;

	if (!tally_terminal_open(error))
		return 1;
	for (bool again = true; !s->gone;) {
		if (again && !look(s, error))
			break;
		frames += again;
		if (!draw(s, error) || (s->settings.frames && frames >= s->settings.frames))
			break;
		int key = tally_terminal_key(s->model.now_ns + interval);
		if (key == TALLY_KEY_NONE && s->screen.paused)
			key = tally_terminal_key(UINT64_MAX);
		again = key == TALLY_KEY_NONE || press(s, key);
	}
	tally_terminal_close();
	return tally_failed(error) ? 1 : 0;
}

int tally_command_top(int argc, char **argv)
{
	static struct session s = {.settings = {.interval_s = 1}}; /* large */
	const struct tally_command_line line = {.program = "tally top",
						.help = help,
						.version = TALLY_COMMAND_VERSION,
						.options = options};
	struct tally_error error = {0};
	int status = 1, first = tally_options_read(&line, argc, argv, &s.settings, &error);

	if (first < 0)
		tally_error_print(&error, "tally top");
	if (first <= 0)
		return first ? 1 : 0;
	s.model.sort = s.settings.sort;
	s.model.totals = s.settings.totals;
	s.screen = (struct top_screen){.utf8 = tally_terminal_utf8(),
				       .attributes = !s.settings.batch,
				       .colours = !s.settings.batch && tally_terminal_colours()};
	if (tally_socket_path(s.socket, sizeof s.socket, &error)) {
		s.reports.socket = s.socket;
		status = s.settings.batch ? batch(&s, &error) : live(&s, &error);
		/* Live it may still come; frames for a script do not wait for it. */
		if (!status && s.settings.batch && s.settings.program && !s.found) {
			tally_fail(&error, "no program of that pid or name: %s",
				   s.settings.program);
			status = 1;
		}
		tally_reports_close(&s.reports);
	}
	top_model_free(&s.model);
	if (tally_failed(&error))
		tally_error_print(&error, "tally top");
	return status;
}
