/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as Chrome trace JSON; see trace.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cli/kernel_name.h"
#include "cli/status.h"
#include "cli/trace.h"
#include "cli/trace_spans.h"

/* Thread rows of a process. */
enum { ROW_ACTIVE = 1, ROW_HELD = 2, ROW_STREAMS = 10 };

#define MOST_PIDS 4194304u /* Linux has no larger pid */

/* A piece that was given to the driver and is not known done. */
struct piece {
	uint32_t row;
	uint64_t start, blocks, queued;
};

#define NAMED  16  /* of launches that are drawn as one */
#define PIECES 256 /* of one stream; more than the launch protocol lets be under way */

#define STREAMS 1024 /* rows of one program */

struct stream {
	uint32_t number;
	struct piece pieces[PIECES]; /* oldest first */
	unsigned count;
	uint64_t floor; /* what is first in the stream ran from here at the earliest */
	bool stopped;
	uint32_t launch_row; /* the last launch that the program asked for, */
	uint64_t launch_at;  /* 0: its call is over */
};

struct writer {
	const struct trace *trace;
	struct tally_buffer *out;
	const char *separator;
	struct trace_spans spans;
	uint64_t flows;

	/* Of the program that is being written. */
	const struct trace_program *program;
	unsigned index, pid;
	struct stream *streams;
	unsigned stream_count;
	int in_flight;
	char *names[TALLY_REPORT_ROWS]; /* JSON text of arguments and name, made when needed */
};

/* Two programs of one pid (one process on two devices) are two rows. */
static unsigned pid_of(const struct trace *t, unsigned index)
{
	unsigned same = 0;

	for (unsigned i = 0; i < index; i++)
		same += t->programs[i].who->pid == t->programs[index].who->pid;
	return (unsigned)t->programs[index].who->pid + same * MOST_PIDS;
}

/* Begins an event: its phase, row and time; the caller appends the rest and a brace. */
static void event(struct writer *w, const char *phase, unsigned pid, unsigned tid, uint64_t at)
{
	uint64_t ns = at > w->trace->begin_ns ? at - w->trace->begin_ns : 0;

	tally_buffer_print(w->out,
			   "%s\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03u",
			   w->separator, phase, pid, tid, ns / 1000, (unsigned)(ns % 1000));
	w->separator = ",";
}

static void slice(struct writer *w, unsigned tid, uint64_t begin, uint64_t end)
{
	uint64_t ns = end > begin ? end - begin : 0;

	event(w, "X", w->pid, tid, begin);
	tally_buffer_print(w->out, ",\"dur\":%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static void name_row(struct writer *w, unsigned tid, const char *format, unsigned number)
{
	event(w, "M", w->pid, tid, w->trace->begin_ns);
	tally_buffer_print(w->out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
	tally_buffer_print(w->out, format, number);
	tally_buffer_print(w->out, "\"}}");
	event(w, "M", w->pid, tid, w->trace->begin_ns);
	tally_buffer_print(w->out, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}",
			   tid);
}

static void dimensions(struct tally_buffer *out, const char *name, const uint32_t d[3])
{
	tally_buffer_print(out, ",\"%s\":[%u,%u,%u]", name, d[0], d[1], d[2]);
}

/* The kernel's part of an event: ,"name":"...","args":{"grid":... - without the closing brace. */
static const char *kernel(struct writer *w, uint32_t row)
{
	struct tally_buffer text = {0}, name = {0};
	struct tally_row r;
	char as[32];

	if (row >= TALLY_REPORT_ROWS)
		row = 0;
	if (w->names[row])
		return w->names[row];
	if (!row || !tally_report_read(w->program->who->report, row, &r)) {
		tally_buffer_print(&text, ",\"name\":\"launch\",\"args\":{\"kernel\":null");
	} else {
		tally_kernel_name(&name, r.name);
		tally_runs_as(as, sizeof as, &r.choice);
		tally_buffer_print(&text, ",\"name\":\"");
		tally_buffer_json(&text, name.data ? name.data : "");
		tally_buffer_print(&text, "\",\"args\":{\"kernel\":\"");
		tally_buffer_json(&text, r.name);
		tally_buffer_print(&text, "\"");
		dimensions(&text, "grid", r.key.grid);
		dimensions(&text, "block", r.key.block);
		tally_buffer_print(&text, ",\"shared\":%u,\"runs_as\":\"%s\",\"why\":\"%s\"",
				   r.key.shared, as, tally_reason_text(r.choice.reason));
		tally_buffer_free(&name);
	}
	w->names[row] = text.data;
	return text.data ? text.data : ",\"name\":\"\",\"args\":{\"kernel\":null";
}

/* ------------------------------------------------------------------------------- one program */

static struct stream *stream_of(struct writer *w, uint32_t number)
{
	struct stream *s;
	bool last;

	for (unsigned i = 0; i < w->stream_count; i++)
		if (w->streams[i].number == number)
			return &w->streams[i];
	/* Each takes some KiB; a program that has so many, or a broken one, gets them in one. */
	if (w->stream_count == STREAMS)
		return &w->streams[STREAMS - 1];
	if (!TALLY_GROW(w->streams, w->stream_count)) {
		w->out->failed = true;
		return NULL;
	}
	s = &w->streams[w->stream_count];
	memset(s, 0, sizeof *s);
	s->number = number;
	last = w->stream_count == STREAMS - 1;
	name_row(w, ROW_STREAMS + 2 * w->stream_count, last ? "stream %u and others" : "stream %u",
		 number);
	name_row(w, ROW_STREAMS + 2 * w->stream_count + 1,
		 last ? "stream %u and others: launch calls" : "stream %u: launch calls", number);
	w->stream_count++;
	return s;
}

static unsigned row_of(const struct writer *w, const struct stream *s)
{
	return ROW_STREAMS + 2 * (unsigned)(s - w->streams);
}

static void counter(struct writer *w, const char *name, uint64_t at, double value)
{
	event(w, "C", w->pid, 0, at);
	tally_buffer_print(w->out, ",\"name\":\"%s\",\"args\":{\"value\":%.3f}}", name, value);
}

static void fly(struct writer *w, uint64_t at, int change)
{
	w->in_flight += change;
	if (w->in_flight < 0)
		w->in_flight = 0;
	counter(w, "in flight", at, w->in_flight);
}

/* The call that asked for a launch is over: it was given to the driver, or another one begins. */
static void end_call(struct writer *w, struct stream *s, uint64_t at)
{
	if (!s->launch_at)
		return;
	slice(w, row_of(w, s) + 1, s->launch_at, at);
	tally_buffer_print(w->out, "%s}}", kernel(w, s->launch_row));
	s->launch_at = 0;
}

static void launched(struct writer *w, struct stream *s, const struct tally_trace_event *e)
{
	end_call(w, s, e->time_ns);
	s->launch_row = e->row;
	s->launch_at = e->time_ns;
}

static void drop_oldest(struct stream *s, unsigned n)
{
	s->count -= n;
	memmove(s->pieces, s->pieces + n, s->count * sizeof *s->pieces);
}

static void ran(struct writer *w, struct stream *s, const struct piece *p, uint64_t begin,
		uint64_t end, const char *how)
{
	if (begin < s->floor)
		begin = s->floor;
	if (end < begin)
		end = begin;
	slice(w, row_of(w, s), begin, end);
	tally_buffer_print(w->out, "%s", kernel(w, p->row));
	if (p->blocks)
		tally_buffer_print(w->out, ",\"blocks\":%" PRIu64, p->blocks);
	tally_buffer_print(w->out, ",\"queued_us\":%.3f,\"end\":\"%s\"}}", (double)p->queued / 1e3,
			   how);
	s->floor = end;
}

/* Several pieces, one after the other, of which nobody knows when each ended. */
static void ran_together(struct writer *w, struct stream *s, unsigned n, uint64_t end)
{
	uint64_t begin = s->pieces[0].start > s->floor ? s->pieces[0].start : s->floor;

	if (end < begin)
		end = begin;
	slice(w, row_of(w, s), begin, end);
	tally_buffer_print(w->out, ",\"name\":\"%u launches\",\"args\":{\"end\":\"unknown\",", n);
	tally_buffer_print(w->out, "\"kernels\":[");
	for (unsigned i = 0; i < n && i < NAMED; i++) {
		struct tally_buffer name = {0};
		struct tally_row r;
		uint32_t row = s->pieces[i].row;

		if (row && tally_report_read(w->program->who->report, row, &r))
			tally_kernel_name(&name, r.name);
		tally_buffer_print(w->out, "%s\"", i ? "," : "");
		tally_buffer_json(w->out, name.data ? name.data : "launch");
		tally_buffer_print(w->out, "\"");
		tally_buffer_free(&name);
	}
	tally_buffer_print(w->out, "]}}");
	s->floor = end;
}

/* The first `n` pieces are over at `end`; nobody knows since when. */
static void give_up(struct writer *w, struct stream *s, unsigned n, uint64_t end)
{
	if (n == 1)
		ran(w, s, &s->pieces[0], s->pieces[0].start, end, "unknown");
	else if (n)
		ran_together(w, s, n, end);
	drop_oldest(s, n);
}

static void started(struct writer *w, struct stream *s, const struct tally_trace_event *e)
{
	struct piece p = {.row = e->row, .start = e->time_ns, .blocks = e->value};

	if (s->launch_at && s->launch_row == e->row)
		p.queued = e->time_ns - s->launch_at;
	end_call(w, s, e->time_ns);
	if (s->count == PIECES)
		give_up(w, s, PIECES, e->time_ns);
	s->pieces[s->count++] = p;
	fly(w, e->time_ns, 1);
}

/* A stream ends its work in order: pieces before this one whose end nobody recorded are over. */
static void ended(struct writer *w, struct stream *s, const struct tally_trace_event *e)
{
	unsigned n = 0;
	uint64_t begin, end;

	while (n < s->count && s->pieces[n].row != e->row)
		n++;
	if (n == s->count)
		return;
	give_up(w, s, n, s->pieces[n].start);
	/* The program looked later than the piece ended: what was measured begins when it could. */
	begin = s->pieces[0].start > s->floor ? s->pieces[0].start : s->floor;
	end = e->value && begin + e->value < e->time_ns ? begin + e->value : e->time_ns;
	ran(w, s, &s->pieces[0], begin, end, e->value ? "measured" : "seen");
	drop_oldest(s, 1);
	fly(w, e->time_ns, -(int)n - 1);
}

static void flow(struct writer *w, const char *phase, unsigned pid, unsigned tid, uint64_t at)
{
	event(w, phase, pid, tid, at);
	tally_buffer_print(w->out, ",\"cat\":\"stop\",\"name\":\"stop\",\"id\":%" PRIu64 "%s}",
			   w->flows, *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* `closed_at`: when the program was asked to, 0: unknown. */
static void stopped(struct writer *w, struct stream *s, const struct tally_trace_event *e,
		    uint64_t closed_at)
{
	const struct trace_span *why =
		closed_at ? trace_spans_cause(&w->spans, w->trace, w->index, closed_at) : NULL;
	const struct tally_reported *who = why ? w->trace->programs[why->program].who : NULL;

	if (s->count && !s->stopped) {
		ran(w, s, &s->pieces[0], s->pieces[0].start, e->time_ns, "stopped");
		s->stopped = true;
	}
	event(w, "i", w->pid, row_of(w, s), e->time_ns);
	tally_buffer_print(w->out, ",\"s\":\"t\",\"name\":\"stop\",\"args\":{\"latency_us\":");
	if (e->value)
		tally_buffer_print(w->out, "%.3f,\"by\":", (double)e->value / 1e3);
	else
		tally_buffer_print(w->out, "null,\"by\":");
	if (who)
		tally_buffer_print(w->out, "%d", who->pid);
	else
		tally_buffer_print(w->out, "null");
	tally_buffer_print(w->out, ",\"asked_us\":%.3f}}",
			   closed_at > w->trace->begin_ns
				   ? (double)(closed_at - w->trace->begin_ns) / 1e3
				   : 0.0);
	if (e->value)
		counter(w, "stop latency (us)", e->time_ns, (double)e->value / 1e3);
	if (!why)
		return;
	w->flows++;
	flow(w, "s", pid_of(w->trace, why->program), ROW_ACTIVE, why->begin);
	flow(w, "t", w->pid, ROW_HELD, closed_at);
	flow(w, "f", w->pid, row_of(w, s), e->time_ns - 1);
}

static void resumed(struct writer *w, struct stream *s, const struct tally_trace_event *e)
{
	s->stopped = false;
	if (s->floor < e->time_ns)
		s->floor = e->time_ns;
	event(w, "i", w->pid, row_of(w, s), e->time_ns);
	tally_buffer_print(
		w->out, ",\"s\":\"t\",\"name\":\"resume\",\"args\":{\"first_block\":%" PRIu64 "}}",
		e->value);
}

static void held(struct writer *w, uint64_t begin, uint64_t end)
{
	const struct trace_span *why = trace_spans_cause(&w->spans, w->trace, w->index, begin);

	slice(w, ROW_HELD, begin, end);
	tally_buffer_print(w->out, ",\"name\":\"held\",\"args\":{\"by\":");
	if (why) {
		tally_buffer_print(w->out, "\"");
		tally_buffer_json(w->out, w->trace->programs[why->program].who->name);
		tally_buffer_print(w->out, "\"");
	} else {
		tally_buffer_print(w->out, "null");
	}
	tally_buffer_print(w->out, "}}");
}

static void small(struct writer *w, struct stream *s, const struct tally_trace_event *e)
{
	event(w, "i", w->pid, row_of(w, s), e->time_ns);
	tally_buffer_print(w->out, ",\"s\":\"t\",\"name\":\"%s\",\"args\":{\"value\":%" PRIu64 "}}",
			   tally_event_word(e->kind), e->value);
}

static void stream_event(struct writer *w, const struct tally_trace_event *e, uint64_t closed_at)
{
	struct stream *s = stream_of(w, e->stream);

	if (!s)
		return;
	switch (e->kind) {
	case TALLY_TRACE_LAUNCH:
		launched(w, s, e);
		break;
	case TALLY_TRACE_START:
		started(w, s, e);
		break;
	case TALLY_TRACE_END:
		ended(w, s, e);
		break;
	case TALLY_TRACE_STOP:
		stopped(w, s, e, closed_at);
		break;
	case TALLY_TRACE_RESUME:
		resumed(w, s, e);
		break;
	default:
		small(w, s, e);
	}
}

static void name_program(struct writer *w)
{
	const struct tally_reported *who = w->program->who;

	event(w, "M", w->pid, 0, w->trace->begin_ns);
	tally_buffer_print(w->out, ",\"name\":\"process_name\",\"args\":{\"name\":\"");
	tally_buffer_json(w->out, who->name);
	tally_buffer_print(w->out, ", priority %d, pid %d", who->priority, who->pid);
	if (*who->device_name) {
		tally_buffer_print(w->out, ", ");
		tally_buffer_json(w->out, who->device_name);
	}
	tally_buffer_print(w->out, "\"}}");
	/* The most urgent on top. */
	event(w, "M", w->pid, 0, w->trace->begin_ns);
	tally_buffer_print(w->out,
			   ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%ld}}",
			   -(long)who->priority);
	name_row(w, ROW_ACTIVE, "active", 0);
	name_row(w, ROW_HELD, "held", 0);
}

/* The program has no work left, so that every piece is over. */
static void all_over(struct writer *w, uint64_t at)
{
	unsigned pieces = 0;

	for (unsigned i = 0; i < w->stream_count; i++) {
		struct stream *s = &w->streams[i];

		pieces += s->count;
		s->stopped = false;
		give_up(w, s, s->count, at);
	}
	if (pieces)
		fly(w, at, -(int)pieces);
}

static void program(struct writer *w)
{
	const struct trace_program *p = w->program;
	uint64_t closed = 0, last_closed = 0;
	size_t count;
	const struct trace_span *all = trace_spans_of(&w->spans, w->index, &count);

	name_program(w);
	for (size_t i = 0; i < count; i++) {
		slice(w, ROW_ACTIVE, all[i].begin, all[i].end);
		tally_buffer_print(w->out, ",\"name\":\"active\"}");
	}
	for (size_t n = 0; n < p->count; n++) {
		const struct tally_trace_event *e = &p->events[n];

		if (e->kind == TALLY_TRACE_ACTIVE)
			continue;
		if (e->kind == TALLY_TRACE_IDLE) {
			all_over(w, e->time_ns);
			continue;
		}
		if (e->kind == TALLY_TRACE_GATE_CLOSED) {
			closed = last_closed = closed ? closed : e->time_ns;
		} else if (e->kind == TALLY_TRACE_GATE_OPEN) {
			held(w, closed ? closed : w->trace->begin_ns, e->time_ns);
			closed = 0;
		} else {
			stream_event(w, e, last_closed);
		}
	}
	if (closed)
		held(w, closed, w->trace->end_ns);
	for (unsigned i = 0; i < w->stream_count; i++) {
		struct stream *s = &w->streams[i];

		end_call(w, s, w->trace->end_ns);
		if (!s->stopped)
			give_up(w, s, s->count, w->trace->end_ns);
	}
}

static void release_program(struct writer *w)
{
	for (unsigned i = 0; i < TALLY_REPORT_ROWS; i++)
		free(w->names[i]);
	memset(w->names, 0, sizeof w->names);
	free(w->streams);
	w->streams = NULL;
	w->stream_count = 0;
	w->in_flight = 0;
}

static void summary(struct writer *w)
{
	const struct trace *t = w->trace;

	tally_buffer_print(w->out,
			   "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"tally\":\"%s\","
			   "\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"programs\":[",
			   TALLY_VERSION, t->begin_ns, t->end_ns);
	for (unsigned i = 0; i < t->program_count; i++) {
		const struct trace_program *p = &t->programs[i];

		tally_buffer_print(w->out, "%s\n{\"pid\":%d,\"row\":%u,\"name\":\"", i ? "," : "",
				   p->who->pid, pid_of(t, i));
		tally_buffer_json(w->out, p->who->name);
		tally_buffer_print(w->out,
				   "\",\"priority\":%d,\"events\":%zu,\"lost\":%" PRIu64 "}",
				   p->who->priority, p->count, p->lost);
	}
	tally_buffer_print(w->out, "]}}\n");
}

void trace_json(const struct trace *trace, struct tally_buffer *out)
{
	struct writer *w = calloc(1, sizeof *w);

	if (!w) {
		out->failed = true;
		return;
	}
	w->trace = trace;
	w->out = out;
	w->separator = "";
	if (!trace_spans_find(&w->spans, trace)) {
		out->failed = true;
		goto end;
	}
	tally_buffer_print(out, "{\"traceEvents\":[");
	for (unsigned i = 0; i < trace->program_count; i++) {
		w->program = &trace->programs[i];
		w->index = i;
		w->pid = pid_of(trace, i);
		program(w);
		release_program(w);
	}
	summary(w);
end:
	trace_spans_free(&w->spans);
	free(w);
}
