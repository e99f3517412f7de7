/* SPDX-License-Identifier: Apache-2.0 */
/* tally trace: records what programs do for a while, and writes it as a Chrome trace. */
#include "cli/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/number.h"
#include "base/options.h"
#include "cli/command.h"
#include "cli/pack.h"

static const char help[] =
	"usage: tally trace -o FILE [options] [--seconds N | [--] COMMAND [ARGUMENTS]]\n"
	"\n"
	"Records the launches, stops and resumes of all programs that run under Tally, and writes\n"
	"them as a trace that ui.perfetto.dev and chrome://tracing show. Until COMMAND ends, for "
	"N\n"
	"seconds, or until Ctrl-C. COMMAND is run as it is: begin it with `tally run` to trace "
	"it.\n"
	"\n"
	"options:\n"
	"  -o, --output FILE     where to; compressed when the name ends in .gz or .zst\n"
	"  -s, --seconds N       for so long, 0.01 to 86400\n"
	"      --events N        keep at most N events, the first ones (default: 2000000)\n"
	"  --help, --version\n"
	"\n"
	"exit status: COMMAND's; 0, or 1 on errors, where there is none.\n";

#define LOOK_NS	 20000000ull   /* between two looks: a ring holds 65536 events */
#define RENEW_NS 500000000ull  /* how often programs are asked to go on recording, */
#define UNTIL_NS 2000000000ull /* and for how long: they stop by themselves when we are dead */

struct settings {
	const char *output;
	double seconds; /* 0: no limit */
	double most_events;
	char **command; /* NULL: none */
};

/* Beside each program of the list: how far its ring was read. */
struct reading {
	struct tally_trace_cursor cursor;
	uint64_t dropped_before;    /* by the program itself, before we looked */
	bool known;		    /* its report is an earlier entry's: it joined another daemon */
	struct tally_buffer events; /* struct tally_trace_event, one after the other */
	size_t over;		    /* events that were beyond the limit */
};

struct recorder {
	struct settings settings;
	struct tally_reports reports;
	struct reading *readings;
	unsigned reading_count;
	size_t total;
	uint64_t begin_ns, renewed_ns;
	pid_t child; /* 0: none, or it ended */
	int child_status;
	int refused; /* the exit status where the command cannot be run; 0: it can */
};

static volatile sig_atomic_t asked; /* the last signal that asks us to end */

static void on_signal(int number)
{
	asked = number;
}

static bool read_seconds(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return tally_parse_number(value, 0.01, 86400, &s->seconds) ||
	       tally_fail(error, "--seconds wants 0.01 to 86400, not \"%s\"", value);
}

static bool read_events(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return tally_parse_number(value, 1, 1e9, &s->most_events) ||
	       tally_fail(error, "--events wants 1 to 1e9, not \"%s\"", value);
}

static const struct tally_option options[] = {
	TALLY_OPTION_TEXT("output", 'o', struct settings, output),
	TALLY_OPTION_READ("seconds", 's', read_seconds),
	TALLY_OPTION_READ("events", 0, read_events),
	{NULL},
};

/* -1: go on; otherwise the exit status. */
static int parse(int argc, char **argv, struct settings *s)
{
	const struct tally_command_line line = {.program = "tally trace",
						.help = help,
						.version = TALLY_COMMAND_VERSION,
						.options = options,
						.command_follows = true};
	struct tally_error error = {0};
	int first = tally_options_read(&line, argc, argv, s, &error);

	if (first > 0 && first < argc)
		s->command = argv + first;
	if (first > 0 && !s->output)
		tally_fail(&error, "where to? -o FILE (see tally trace --help)");
	if (s->command && s->seconds > 0)
		tally_fail(&error, "either --seconds or a command, not both");
	if (tally_failed(&error)) {
		tally_error_print(&error, "tally trace");
		return 1;
	}
	return first ? -1 : 0;
}

/* ---------------------------------------------------------------------------------- recording */

static bool keep_event(struct recorder *r, struct reading *d, const struct tally_trace_event *e)
{
	if (r->total >= (size_t)r->settings.most_events) {
		d->over++;
		return true;
	}
	tally_buffer_append(&d->events, e, sizeof *e);
	r->total++;
	return !d->events.failed;
}

/* What a program that was there before us is in the middle of. */
static void begin_in_the_middle(struct recorder *r, const struct tally_reported *who,
				struct reading *d)
{
	const struct tally_slot *slot = &r->reports.board->slots[who->slot];
	const struct tally_trace_event active = {.kind = TALLY_TRACE_ACTIVE,
						 .time_ns = r->begin_ns};
	const struct tally_trace_event held = {.kind = TALLY_TRACE_GATE_CLOSED,
					       .time_ns = r->begin_ns};

	d->cursor.next = atomic_load(&who->report->trace_head);
	d->dropped_before = tally_report_counter(who->report, TALLY_COUNT_TRACE_DROPPED);
	if (atomic_load(&slot->active_since_ns))
		keep_event(r, d, &active);
	if (atomic_load(&slot->stopped_since_ns))
		keep_event(r, d, &held);
}

/* A program that is new in the list. */
static bool meet(struct recorder *r, unsigned index, struct tally_error *error)
{
	const struct tally_reported *who = &r->reports.list[index];
	struct reading *d;

	if (!TALLY_GROW(r->readings, index))
		return tally_fail(error, "out of memory");
	d = &r->readings[index];
	*d = (struct reading){0};
	r->reading_count = index + 1;
	if (!who->report)
		return true;
	for (unsigned i = 0; i < index; i++) {
		const struct tally_reported *other = &r->reports.list[i];
		d->known |= other->report && other->report->id == who->report->id;
	}
	if (!d->known && who->joined_ns < r->begin_ns && !who->gone)
		begin_in_the_middle(r, who, d);
	return who->gone || tally_trace_request(who->fd, tally_now() + UNTIL_NS, error);
}

static bool read_ring(struct recorder *r, unsigned index)
{
	const struct tally_reported *who = &r->reports.list[index];
	struct reading *d = &r->readings[index];
	struct tally_trace_event e;

	if (!who->report || d->known)
		return true;
	d->cursor.ended = who->gone;
	while (tally_trace_next(who->report, &d->cursor, &e))
		if (!keep_event(r, d, &e))
			return false;
	return true;
}

/* One look: who is there, and what they did since the last. */
static bool look(struct recorder *r, struct tally_error *error)
{
	uint64_t now = tally_now();
	bool renew = now - r->renewed_ns >= RENEW_NS;

	if (!tally_reports_update(&r->reports, error))
		return false;
	for (unsigned i = r->reading_count; i < r->reports.count; i++)
		if (!meet(r, i, error))
			return false;
	if (renew) {
		r->renewed_ns = now;
		/* A daemon that ends meanwhile is found by the next look. */
		if (r->reports.board)
			tally_observer_trace(&r->reports.observer, now + UNTIL_NS, NULL);
		for (unsigned i = 0; i < r->reports.count; i++)
			if (r->reports.list[i].report && !r->reports.list[i].gone)
				tally_trace_request(r->reports.list[i].fd, now + UNTIL_NS, NULL);
	}
	for (unsigned i = 0; i < r->reports.count; i++)
		if (!read_ring(r, i))
			return tally_fail(error, "out of memory");
	return true;
}

static void handle_signals(bool on)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on ? on_signal : SIG_DFL};

	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaction(numbers[i], &action, NULL);
}

static bool start_command(struct recorder *r, struct tally_error *error)
{
	char **command = r->settings.command;
	int said[2], cause = 0;

	if (!command)
		return true;
	if (pipe2(said, O_CLOEXEC))
		return tally_fail(error, "cannot make a pipe: %s", strerror(errno));
	r->child = fork();
	if (r->child < 0) {
		cause = errno;
		r->child = 0;
	} else if (!r->child) {
		handle_signals(false);
		execvp(*command, command);
		cause = errno;
		_exit(write(said[1], &cause, sizeof cause) > 0 ? 127 : 126);
	}
	close(said[1]);
	/* The end of the pipe's other side is that the program runs. */
	while (r->child && read(said[0], &cause, sizeof cause) < 0 && errno == EINTR)
		;
	close(said[0]);
	if (!cause)
		return true;
	if (r->child)
		waitpid(r->child, NULL, 0);
	r->child = 0;
	r->refused = cause == ENOENT ? 127 : 126;
	return tally_fail(error, "cannot run %s: %s", *command, strerror(cause));
}

/* Whether to go on. Ctrl-C reaches the command by itself; other signals we hand on. */
static bool goes_on(struct recorder *r)
{
	int signal_number = asked, status;

	if (r->child && waitpid(r->child, &status, WNOHANG) == r->child) {
		r->child = 0;
		r->child_status =
			WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		return false;
	}
	if (signal_number && r->child && signal_number != SIGINT) {
		kill(r->child, signal_number);
		asked = 0;
		return true;
	}
	/* The command may take its time to end, and is traced meanwhile. */
	if (signal_number && !r->child)
		return false;
	return r->settings.seconds <= 0 ||
	       tally_now() - r->begin_ns < (uint64_t)(r->settings.seconds * 1e9);
}

static bool record(struct recorder *r, struct tally_error *error)
{
	bool ok;

	r->begin_ns = tally_now();
	if (!look(r, error) || !start_command(r, error))
		return false;
	if (!r->child && r->settings.seconds <= 0)
		fputs("tally trace: recording until Ctrl-C\n", stderr);
	do {
		poll(NULL, 0, (int)(LOOK_NS / 1000000));
		ok = look(r, error);
	} while (ok && goes_on(r));
	/* What happened before its end. */
	return ok && look(r, error);
}

/* ------------------------------------------------------------------------------------ writing */

static int by_time(const void *left, const void *right)
{
	const struct tally_trace_event *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* The ring's order is nearly that of time: an insertion that keeps equals in order. */
static void sort(struct tally_trace_event *events, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct tally_trace_event e = events[i];
		size_t at = i;

		/* A clock that was set from far away would make this slow; then order is moot. */
		if (i > 4096 && by_time(&events[i - 4096], &e) > 0) {
			qsort(events, count, sizeof *events, by_time);
			return;
		}
		for (; at && by_time(&events[at - 1], &e) > 0; at--)
			events[at] = events[at - 1];
		events[at] = e;
	}
}

static bool write_trace(struct recorder *r, struct tally_error *error)
{
	struct trace t = {.begin_ns = r->begin_ns, .end_ns = tally_now()};
	struct tally_buffer json = {0};
	uint64_t lost = 0;

	t.programs = calloc(r->reports.count + 1, sizeof *t.programs);
	if (!t.programs)
		return tally_fail(error, "out of memory");
	for (unsigned i = 0; i < r->reports.count; i++) {
		const struct tally_reported *who = &r->reports.list[i];
		struct reading *d = &r->readings[i];

		if (d->known)
			continue;
		struct trace_program *p = &t.programs[t.program_count++];
		*p = (struct trace_program){.who = who,
					    .events = (struct tally_trace_event *)d->events.data,
					    .count = d->events.size / sizeof *p->events,
					    .lost = d->cursor.lost + d->over};
		sort(p->events, p->count);
		if (who->report)
			p->lost += tally_report_counter(who->report, TALLY_COUNT_TRACE_DROPPED) -
				   d->dropped_before;
		lost += p->lost;
	}
	trace_json(&t, &json);
	bool ok = !json.failed ? tally_pack_write(r->settings.output, &json, error)
			       : tally_fail(error, "out of memory");
	if (ok)
		fprintf(stderr,
			"tally trace: %s: %u program%s, %zu events in %.1f s, %" PRIu64 " lost\n",
			r->settings.output, t.program_count, t.program_count == 1 ? "" : "s",
			r->total, (double)(t.end_ns - t.begin_ns) / 1e9, lost);
	tally_buffer_free(&json);
	free(t.programs);
	return ok;
}

int tally_command_trace(int argc, char **argv)
{
	struct recorder r = {.settings = {.most_events = 2e6}};
	struct tally_error error = {0};
	char socket[PATH_MAX];
	int status = parse(argc, argv, &r.settings);

	if (status >= 0)
		return status;
	r.reports = (struct tally_reports){.socket = socket, .keep = true};
	handle_signals(true);
	/* Whatever is missing is found out before the command runs. */
	bool ok = tally_file_may_write(r.settings.output, &error) &&
		  tally_socket_path(socket, sizeof socket, &error) &&
		  tally_start_daemon(socket, &error) && record(&r, &error);
	/* What was recorded is worth having even if the recording ended badly. */
	struct tally_error write_error = {0};
	if (r.begin_ns && !r.refused && !write_trace(&r, &write_error) && ok) {
		ok = false;
		error = write_error;
	}
	if (!ok)
		tally_error_print(&error, "tally trace");
	for (unsigned i = 0; i < r.reading_count; i++)
		tally_buffer_free(&r.readings[i].events);
	free(r.readings);
	tally_reports_close(&r.reports);
	return ok ? r.child_status : r.refused ? r.refused : 1;
}
