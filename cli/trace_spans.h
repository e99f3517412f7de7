/* SPDX-License-Identifier: Apache-2.0 */
/* When the programs of a recording had work on their device, and who held whom (trace_json.c). */
#ifndef TALLY_CLI_TRACE_SPANS_H
#define TALLY_CLI_TRACE_SPANS_H

#include "cli/trace.h"

/* A span in which a program had work on the device; tally_now()'s nanoseconds. */
struct trace_span {
	uint64_t begin, end;
	unsigned program; /* of the trace */
};

/* The spans of all programs, by program and time: those of program i are all[first[i]] up to
 * all[first[i + 1]], and none of them begins before the one in front of it has ended. */
struct trace_spans {
	struct tally_buffer all; /* struct trace_span */
	size_t *first;
};

/* Finds the spans as far as the recording shows them. End with trace_spans_free(), also after it
 * returned false: out of memory. */
bool trace_spans_find(struct trace_spans *spans, const struct trace *trace);
void trace_spans_free(struct trace_spans *spans);

/* The spans of one program, `count` of them. */
const struct trace_span *trace_spans_of(const struct trace_spans *spans, unsigned program,
					size_t *count);

/*
 * Why `program` had to give way at `at`: the span of a more urgent program on its device that was
 * open then (the one that began last), else the one that ended last before: the monitor may have
 * acted on a claim that was given up meanwhile. NULL: none was recorded. Takes a binary search of
 * each program's spans.
 */
const struct trace_span *trace_spans_cause(const struct trace_spans *spans,
					   const struct trace *trace, unsigned program,
					   uint64_t at);

#endif
