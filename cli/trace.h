/* SPDX-License-Identifier: Apache-2.0 */
/* What `tally trace` collects (trace.c) and how it becomes a Chrome trace (trace_json.c). */
#ifndef TALLY_CLI_TRACE_H
#define TALLY_CLI_TRACE_H

#include "base/buffer.h"
#include "cli/reports.h"

/* One program on one device, and what it recorded in the order of time. */
struct trace_program {
	const struct tally_reported *who;
	struct tally_trace_event *events;
	size_t count;
	uint64_t lost; /* events that were overwritten or dropped before they could be read */
};

struct trace {
	uint64_t begin_ns, end_ns;
	struct trace_program *programs;
	unsigned program_count;
};

/*
 * Appends the whole trace as one JSON object in Chrome's Trace Event Format, which Perfetto
 * (ui.perfetto.dev) and chrome://tracing read. A process row for each program; in it one thread row
 * for the spans in which it had work, one for those in which it had to give way, and two for each
 * stream: what ran, and the calls that launched it. The form is documented in docs/trace.md.
 */
void trace_json(const struct trace *trace, struct tally_buffer *out);

#endif
