/* SPDX-License-Identifier: Apache-2.0 */
/* Who held whom in a recording: against looking at every span, and on one too long for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/trace_spans.h"

enum { PROGRAMS = 5, MOST = 200 };

static uint64_t seed = 1;

static uint64_t some(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

static const struct trace_span *looked_at_all(const struct trace_spans *spans,
					      const struct trace *t, unsigned held, uint64_t at)
{
	const struct trace_span *best = NULL;

	for (unsigned i = 0; i < t->program_count; i++) {
		size_t count;
		const struct trace_span *s = trace_spans_of(spans, i, &count);

		if (i == held || t->programs[i].who->priority <= t->programs[held].who->priority ||
		    memcmp(t->programs[i].who->device, t->programs[held].who->device, 16))
			continue;
		for (; count--; s++) {
			if (s->begin > at)
				continue;
			if (!best || (s->end >= at && best->end < at) ||
			    (s->end >= at && s->begin > best->begin) ||
			    (s->end < at && best->end < at && s->end > best->end))
				best = s;
		}
	}
	return best;
}

static void test_against_all(void **state)
{
	struct tally_trace_event events[PROGRAMS][MOST];
	struct tally_reported who[PROGRAMS];
	struct trace_program programs[PROGRAMS];
	unsigned found = 0;

	for (unsigned round = 0; round < 300; round++) {
		struct trace t = {100, 3000, programs, PROGRAMS};
		struct trace_spans spans;

		memset(who, 0, sizeof who);
		memset(programs, 0, sizeof programs);
		for (unsigned i = 0; i < PROGRAMS; i++) {
			uint64_t now = 100;

			who[i].priority = (int)some(3);
			who[i].device[0] = (uint8_t)some(2);
			programs[i].who = &who[i];
			programs[i].events = events[i];
			programs[i].count = some(MOST);
			for (size_t n = 0; n < programs[i].count; n++) {
				/* An IDLE may say how long it lasted, and lie. */
				events[i][n] = (struct tally_trace_event){
					some(2) ? TALLY_TRACE_ACTIVE : TALLY_TRACE_IDLE,
					now += some(30), some(100), 0, 0};
			}
		}
		assert_true(trace_spans_find(&spans, &t));
		for (unsigned i = 0; i < PROGRAMS; i++) {
			size_t count;
			const struct trace_span *s = trace_spans_of(&spans, i, &count);

			for (size_t n = 0; n < count; n++) {
				assert_int_equal(s[n].program, i);
				assert_true(s[n].begin <= s[n].end);
				assert_true(!n || s[n - 1].end <= s[n].begin);
			}
			for (unsigned n = 0; n < 40; n++) {
				const uint64_t at = 50 + some(3100);
				const struct trace_span *a = trace_spans_cause(&spans, &t, i, at);
				const struct trace_span *b = looked_at_all(&spans, &t, i, at);

				/* Two programs may have been as good. */
				assert_int_equal(!a, !b);
				found += a != NULL;
				if (a && a->end >= at)
					assert_int_equal(a->begin, b->begin);
				if (a)
					assert_int_equal(a->end >= at, b->end >= at);
				if (a && a->end < at)
					assert_int_equal(a->end, b->end);
			}
		}
		trace_spans_free(&spans);
	}
	assert_true(found > 1000);
}

/* A day's server: half a million bursts, each of which held somebody. A look at every span for each
 * would take minutes; the test's time limit is what fails. */
static void test_long(void **state)
{
	const size_t bursts = 500000;
	struct tally_trace_event *events = calloc(2 * bursts, sizeof *events);
	struct tally_reported who[2] = {{.priority = 10}, {.priority = 0}};
	struct trace_program programs[2] = {{&who[0], events, 2 * bursts, 0}, {.who = &who[1]}};
	struct trace t = {1, 100 * bursts + 100, programs, 2};
	struct trace_spans spans;

	assert_non_null(events);
	for (size_t n = 0; n < bursts; n++) {
		events[2 * n] =
			(struct tally_trace_event){TALLY_TRACE_ACTIVE, 100 * n + 10, 0, 0, 0};
		events[2 * n + 1] =
			(struct tally_trace_event){TALLY_TRACE_IDLE, 100 * n + 50, 0, 0, 0};
	}
	assert_true(trace_spans_find(&spans, &t));
	for (size_t n = 0; n < bursts; n++) {
		const struct trace_span *s = trace_spans_cause(&spans, &t, 1, 100 * n + 20);

		assert_non_null(s);
		assert_int_equal(s->begin, 100 * n + 10);
	}
	assert_null(trace_spans_cause(&spans, &t, 1, 5));
	assert_null(trace_spans_cause(&spans, &t, 0, 1000)); /* nobody is above it */
	trace_spans_free(&spans);
	free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_all),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests_name("trace spans", tests, NULL, NULL);
}
