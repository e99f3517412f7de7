/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as Chrome trace JSON; see trace.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kernel_name.h"
#include "cli/status.h"
#include "cli/trace_writer.h"

#define MOST_PIDS 4194304u /* Linux has no larger pid */

unsigned trace_pid(const struct trace *t, unsigned index)
{
	unsigned same = 0;

	for (unsigned i = 0; i < index; i++)
		same += t->programs[i].who->pid == t->programs[index].who->pid;
	return (unsigned)t->programs[index].who->pid + same * MOST_PIDS;
}

void trace_event(struct trace_writer *w, const char *phase, unsigned pid, unsigned tid, uint64_t at)
{
	uint64_t ns = at > w->trace->begin_ns ? at - w->trace->begin_ns : 0;

	tally_buffer_print(w->out,
			   "%s\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03u",
			   w->separator, phase, pid, tid, ns / 1000, (unsigned)(ns % 1000));
	w->separator = ",";
}

void trace_slice(struct trace_writer *w, unsigned tid, uint64_t begin, uint64_t end)
{
	uint64_t ns = end > begin ? end - begin : 0;

	trace_event(w, "X", w->pid, tid, begin);
	tally_buffer_print(w->out, ",\"dur\":%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

void trace_name_row(struct trace_writer *w, unsigned tid, const char *format, unsigned number)
{
	trace_event(w, "M", w->pid, tid, w->trace->begin_ns);
	tally_buffer_print(w->out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
	tally_buffer_print(w->out, format, number);
	tally_buffer_print(w->out, "\"}}");
	trace_event(w, "M", w->pid, tid, w->trace->begin_ns);
	tally_buffer_print(w->out, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}",
			   tid);
}

static void dimensions(struct tally_buffer *out, const char *name, const uint32_t d[3])
{
	tally_buffer_print(out, ",\"%s\":[%u,%u,%u]", name, d[0], d[1], d[2]);
}

const char *trace_kernel(struct trace_writer *w, uint32_t row)
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

static void held(struct trace_writer *w, uint64_t begin, uint64_t end)
{
	const struct trace_span *why = trace_spans_cause(&w->spans, w->trace, w->index, begin);

	trace_slice(w, TRACE_ROW_HELD, begin, end);
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

static void name_program(struct trace_writer *w)
{
	const struct tally_reported *who = w->program->who;

	trace_event(w, "M", w->pid, 0, w->trace->begin_ns);
	tally_buffer_print(w->out, ",\"name\":\"process_name\",\"args\":{\"name\":\"");
	tally_buffer_json(w->out, who->name);
	tally_buffer_print(w->out, ", priority %d, pid %d", who->priority, who->pid);
	if (*who->device_name) {
		tally_buffer_print(w->out, ", ");
		tally_buffer_json(w->out, who->device_name);
	}
	tally_buffer_print(w->out, "\"}}");
	/* The most urgent on top. */
	trace_event(w, "M", w->pid, 0, w->trace->begin_ns);
	tally_buffer_print(w->out,
			   ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%ld}}",
			   -(long)who->priority);
	trace_name_row(w, TRACE_ROW_ACTIVE, "active", 0);
	trace_name_row(w, TRACE_ROW_HELD, "held", 0);
}

static void program(struct trace_writer *w)
{
	const struct trace_program *p = w->program;
	uint64_t closed = 0, last_closed = 0;
	size_t count;
	const struct trace_span *all = trace_spans_of(&w->spans, w->index, &count);

	name_program(w);
	for (size_t i = 0; i < count; i++) {
		trace_slice(w, TRACE_ROW_ACTIVE, all[i].begin, all[i].end);
		tally_buffer_print(w->out, ",\"name\":\"active\"}");
	}
	for (size_t n = 0; n < p->count; n++) {
		const struct tally_trace_event *e = &p->events[n];

		if (e->kind == TALLY_TRACE_ACTIVE)
			continue;
		if (e->kind == TALLY_TRACE_IDLE) {
			trace_all_over(w, e->time_ns);
			continue;
		}
		if (e->kind == TALLY_TRACE_GATE_CLOSED) {
			closed = last_closed = closed ? closed : e->time_ns;
		} else if (e->kind == TALLY_TRACE_GATE_OPEN) {
			held(w, closed ? closed : w->trace->begin_ns, e->time_ns);
			closed = 0;
		} else {
			trace_stream_event(w, e, last_closed);
		}
	}
	if (closed)
		held(w, closed, w->trace->end_ns);
	trace_streams_end(w);
}

static void release_program(struct trace_writer *w)
{
	for (unsigned i = 0; i < TALLY_REPORT_ROWS; i++)
		free(w->names[i]);
	memset(w->names, 0, sizeof w->names);
	free(w->streams);
	w->streams = NULL;
	w->stream_count = 0;
	w->in_flight = 0;
}

static void summary(struct trace_writer *w)
{
	const struct trace *t = w->trace;

	tally_buffer_print(w->out,
			   "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"tally\":\"%s\","
			   "\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"programs\":[",
			   TALLY_VERSION, t->begin_ns, t->end_ns);
	for (unsigned i = 0; i < t->program_count; i++) {
		const struct trace_program *p = &t->programs[i];

		tally_buffer_print(w->out, "%s\n{\"pid\":%d,\"row\":%u,\"name\":\"", i ? "," : "",
				   p->who->pid, trace_pid(t, i));
		tally_buffer_json(w->out, p->who->name);
		tally_buffer_print(w->out,
				   "\",\"priority\":%d,\"events\":%zu,\"lost\":%" PRIu64 "}",
				   p->who->priority, p->count, p->lost);
	}
	tally_buffer_print(w->out, "]}}\n");
}

void trace_json(const struct trace *trace, struct tally_buffer *out)
{
	struct trace_writer *w = calloc(1, sizeof *w);

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
		w->pid = trace_pid(trace, i);
		program(w);
		release_program(w);
	}
	summary(w);
end:
	trace_spans_free(&w->spans);
	free(w);
}
