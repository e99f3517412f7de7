/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_spans.h"

#include <stdlib.h>
#include <string.h>

/* A writer may have recorded two spans that overlap (it is another program, and may be broken):
 * what the search relies on is made true here. */
static void add(struct trace_spans *spans, uint64_t begin, uint64_t end, unsigned program)
{
	struct trace_span span = {begin, end, program};
	const struct trace_span *last = NULL;

	if (spans->all.size)
		last = (const struct trace_span *)(spans->all.data + spans->all.size) - 1;
	if (last && last->program == program && span.begin < last->end)
		span.begin = last->end;
	if (span.end < span.begin)
		span.end = span.begin;
	tally_buffer_append(&spans->all, &span, sizeof span);
}

static void find_program(struct trace_spans *spans, const struct trace *trace, unsigned program)
{
	const struct trace_program *p = &trace->programs[program];
	uint64_t since = 0;

	for (size_t n = 0; n < p->count; n++) {
		const struct tally_trace_event *e = &p->events[n];

		if (e->kind == TALLY_TRACE_ACTIVE && !since) {
			since = e->time_ns;
		} else if (e->kind == TALLY_TRACE_IDLE) {
			if (!since)
				since = e->value && e->value < e->time_ns ? e->time_ns - e->value
									  : trace->begin_ns;
			add(spans, since, e->time_ns, program);
			since = 0;
		}
	}
	if (since)
		add(spans, since, trace->end_ns, program);
}

bool trace_spans_find(struct trace_spans *spans, const struct trace *trace)
{
	memset(spans, 0, sizeof *spans);
	spans->first = calloc(trace->program_count + 1, sizeof *spans->first);
	if (!spans->first)
		return false;
	for (unsigned i = 0; i < trace->program_count; i++) {
		find_program(spans, trace, i);
		spans->first[i + 1] = spans->all.size / sizeof(struct trace_span);
	}
	return !spans->all.failed;
}

void trace_spans_free(struct trace_spans *spans)
{
	tally_buffer_free(&spans->all);
	free(spans->first);
	spans->first = NULL;
}

const struct trace_span *trace_spans_of(const struct trace_spans *spans, unsigned program,
					size_t *count)
{
	const size_t first = spans->first[program];

	*count = spans->first[program + 1] - first;
	/* NULL and 0 where nobody has a span. */
	return *count ? (const struct trace_span *)spans->all.data + first : NULL;
}

/* The last of `count` spans that began at `at` or before, or NULL. Of one program's spans it is
 * also the one that ended last. */
static const struct trace_span *last_before(const struct trace_span *spans, size_t count,
					    uint64_t at)
{
	size_t low = 0;

	for (size_t high = count; low < high;) {
		const size_t middle = low + (high - low) / 2;

		if (spans[middle].begin <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &spans[low - 1] : NULL;
}

/* Whether `a` explains better than `b` who was in front at `at`. */
static bool better(const struct trace_span *a, const struct trace_span *b, uint64_t at)
{
	const bool open = a->end >= at;

	if (open != (b->end >= at))
		return open;
	return open ? a->begin > b->begin : a->end > b->end;
}

const struct trace_span *trace_spans_cause(const struct trace_spans *spans,
					   const struct trace *trace, unsigned program, uint64_t at)
{
	const struct tally_reported *held = trace->programs[program].who;
	const struct trace_span *best = NULL;

	for (unsigned i = 0; i < trace->program_count; i++) {
		const struct tally_reported *who = trace->programs[i].who;
		const struct trace_span *all, *s;
		size_t count;

		if (i == program || who->priority <= held->priority ||
		    memcmp(who->device, held->device, sizeof who->device))
			continue;
		all = trace_spans_of(spans, i, &count);
		s = last_before(all, count, at);
		if (s && (!best || better(s, best, at)))
			best = s;
	}
	return best;
}
