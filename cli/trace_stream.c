/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as Chrome trace JSON: what ran in each stream, and the calls that launched it; see
 * trace_writer.h. */
#include <inttypes.h>
#include <string.h>

#include "base/grow.h"
#include "cli/kernel_name.h"
#include "cli/status.h"
#include "cli/trace_writer.h"

#define NAMED	16   /* of launches that are drawn as one */
#define STREAMS 1024 /* rows of one program */

static struct trace_stream *stream_of(struct trace_writer *w, uint32_t number)
{
	struct trace_stream *s;
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
	trace_name_row(w, TRACE_ROW_STREAMS + 2 * w->stream_count,
		       last ? "stream %u and others" : "stream %u", number);
	trace_name_row(w, TRACE_ROW_STREAMS + 2 * w->stream_count + 1,
		       last ? "stream %u and others: launch calls" : "stream %u: launch calls",
		       number);
	w->stream_count++;
	return s;
}

static unsigned row_of(const struct trace_writer *w, const struct trace_stream *s)
{
	return TRACE_ROW_STREAMS + 2 * (unsigned)(s - w->streams);
}

static void counter(struct trace_writer *w, const char *name, uint64_t at, double value)
{
	trace_event(w, "C", w->pid, 0, at);
	tally_buffer_print(w->out, ",\"name\":\"%s\",\"args\":{\"value\":%.3f}}", name, value);
}

static void fly(struct trace_writer *w, uint64_t at, int change)
{
	w->in_flight += change;
	if (w->in_flight < 0)
		w->in_flight = 0;
	counter(w, "in flight", at, w->in_flight);
}

/* The call that asked for a launch is over: it was given to the driver, or another one begins. */
static void end_call(struct trace_writer *w, struct trace_stream *s, uint64_t at)
{
	if (!s->launch_at)
		return;
	trace_slice(w, row_of(w, s) + 1, s->launch_at, at);
	tally_buffer_print(w->out, "%s}}", trace_kernel(w, s->launch_row));
	s->launch_at = 0;
}

static void launched(struct trace_writer *w, struct trace_stream *s,
		     const struct tally_trace_event *e)
{
	end_call(w, s, e->time_ns);
	s->launch_row = e->row;
	s->launch_at = e->time_ns;
}

static void drop_oldest(struct trace_stream *s, unsigned n)
{
	s->count -= n;
	memmove(s->pieces, s->pieces + n, s->count * sizeof *s->pieces);
}

static void ran(struct trace_writer *w, struct trace_stream *s, const struct trace_piece *p,
		uint64_t begin, uint64_t end, const char *how)
{
	if (begin < s->floor)
		begin = s->floor;
	if (end < begin)
		end = begin;
	trace_slice(w, row_of(w, s), begin, end);
	tally_buffer_print(w->out, "%s", trace_kernel(w, p->row));
	if (p->blocks)
		tally_buffer_print(w->out, ",\"blocks\":%" PRIu64, p->blocks);
	tally_buffer_print(w->out, ",\"queued_us\":%.3f,\"end\":\"%s\"}}", (double)p->queued / 1e3,
			   how);
	s->floor = end;
}

/* Several pieces, one after the other, of which nobody knows when each ended. */
static void ran_together(struct trace_writer *w, struct trace_stream *s, unsigned n, uint64_t end)
{
	uint64_t begin = s->pieces[0].start > s->floor ? s->pieces[0].start : s->floor;

	if (end < begin)
		end = begin;
	trace_slice(w, row_of(w, s), begin, end);
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
static void give_up(struct trace_writer *w, struct trace_stream *s, unsigned n, uint64_t end)
{
	if (n == 1)
		ran(w, s, &s->pieces[0], s->pieces[0].start, end, "unknown");
	else if (n)
		ran_together(w, s, n, end);
	drop_oldest(s, n);
}

static void started(struct trace_writer *w, struct trace_stream *s,
		    const struct tally_trace_event *e)
{
	struct trace_piece p = {.row = e->row, .start = e->time_ns, .blocks = e->value};

	if (s->launch_at && s->launch_row == e->row)
		p.queued = e->time_ns - s->launch_at;
	end_call(w, s, e->time_ns);
	if (s->count == TRACE_PIECES)
		give_up(w, s, TRACE_PIECES, e->time_ns);
	s->pieces[s->count++] = p;
	fly(w, e->time_ns, 1);
}

/* A stream ends its work in order: pieces before this one whose end nobody recorded are over. */
static void ended(struct trace_writer *w, struct trace_stream *s, const struct tally_trace_event *e)
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

static void flow(struct trace_writer *w, const char *phase, unsigned pid, unsigned tid, uint64_t at)
{
	trace_event(w, phase, pid, tid, at);
	tally_buffer_print(w->out, ",\"cat\":\"stop\",\"name\":\"stop\",\"id\":%" PRIu64 "%s}",
			   w->flows, *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* `closed_at`: when the program was asked to, 0: unknown. */
static void stopped(struct trace_writer *w, struct trace_stream *s,
		    const struct tally_trace_event *e, uint64_t closed_at)
{
	const struct trace_span *why =
		closed_at ? trace_spans_cause(&w->spans, w->trace, w->index, closed_at) : NULL;
	const struct tally_reported *who = why ? w->trace->programs[why->program].who : NULL;

	if (s->count && !s->stopped) {
		ran(w, s, &s->pieces[0], s->pieces[0].start, e->time_ns, "stopped");
		s->stopped = true;
	}
	trace_event(w, "i", w->pid, row_of(w, s), e->time_ns);
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
	flow(w, "s", trace_pid(w->trace, why->program), TRACE_ROW_ACTIVE, why->begin);
	flow(w, "t", w->pid, TRACE_ROW_HELD, closed_at);
	flow(w, "f", w->pid, row_of(w, s), e->time_ns - 1);
}

static void resumed(struct trace_writer *w, struct trace_stream *s,
		    const struct tally_trace_event *e)
{
	s->stopped = false;
	if (s->floor < e->time_ns)
		s->floor = e->time_ns;
	trace_event(w, "i", w->pid, row_of(w, s), e->time_ns);
	tally_buffer_print(
		w->out, ",\"s\":\"t\",\"name\":\"resume\",\"args\":{\"first_block\":%" PRIu64 "}}",
		e->value);
}

static void small(struct trace_writer *w, struct trace_stream *s, const struct tally_trace_event *e)
{
	trace_event(w, "i", w->pid, row_of(w, s), e->time_ns);
	tally_buffer_print(w->out, ",\"s\":\"t\",\"name\":\"%s\",\"args\":{\"value\":%" PRIu64 "}}",
			   tally_event_word(e->kind), e->value);
}

void trace_stream_event(struct trace_writer *w, const struct tally_trace_event *e,
			uint64_t closed_at)
{
	struct trace_stream *s = stream_of(w, e->stream);

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

void trace_all_over(struct trace_writer *w, uint64_t at)
{
	unsigned pieces = 0;

	for (unsigned i = 0; i < w->stream_count; i++) {
		struct trace_stream *s = &w->streams[i];

		pieces += s->count;
		s->stopped = false;
		give_up(w, s, s->count, at);
	}
	if (pieces)
		fly(w, at, -(int)pieces);
}

void trace_streams_end(struct trace_writer *w)
{
	for (unsigned i = 0; i < w->stream_count; i++) {
		struct trace_stream *s = &w->streams[i];

		end_call(w, s, w->trace->end_ns);
		if (!s->stopped)
			give_up(w, s, s->count, w->trace->end_ns);
	}
}
