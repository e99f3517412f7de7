/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the report: see report.h. The writer goes on meanwhile, or died in the
 * middle of a store, or is not what it says: nothing that stands there is used as an index or a
 * length before it was looked at, and everything is read once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buffer.h"
#include "profiler/internal.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* Events behind an unfinished one before it is given up: its thread may only have been interrupted.
 */
#define PATIENCE 1024

static const struct {
	const char *word, *text;
} counters[TALLY_COUNTER_COUNT] = {
#define NAMES(name, word, text) [TALLY_COUNT_##name] = {word, text},
	TALLY_COUNTERS(NAMES)
#undef NAMES
};

static const char *const events[TALLY_TRACE_KINDS] = {
#define NAME(name, word, value) [TALLY_TRACE_##name] = word,
	TALLY_EVENTS(NAME)
#undef NAME
};

const char *tally_counter_word(enum tally_counter counter)
{
	return (unsigned)counter < TALLY_COUNTER_COUNT ? counters[counter].word : "?";
}

const char *tally_counter_text(enum tally_counter counter)
{
	return (unsigned)counter < TALLY_COUNTER_COUNT ? counters[counter].text : "?";
}

const char *tally_event_word(enum tally_event_kind kind)
{
	return (unsigned)kind < TALLY_TRACE_KINDS ? events[kind] : "?";
}

void tally_report_text(char *to, size_t size, const char *from)
{
	size_t length = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", length);
	to[length] = '\0';
	tally_text_plain(to, "");
}

struct tally_choice tally_choice_unpack(uint64_t packed)
{
	struct tally_choice c = {packed & 0xff, packed >> 8 & 0xff, (uint32_t)(packed >> 32)};

	if ((unsigned)c.level >= TALLY_LEVELS)
		c.level = TALLY_LEVEL_GATE;
	if ((unsigned)c.reason >= TALLY_REASON_COUNT)
		c.reason = TALLY_WHY_NONE;
	return c;
}

bool tally_report_is(int fd)
{
	int wanted = F_SEAL_SHRINK | F_SEAL_GROW, seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & wanted) == wanted &&
	       lseek(fd, 0, SEEK_END) == (off_t)sizeof(struct tally_report);
}

static bool check(int fd, struct tally_error *error)
{
	return tally_report_is(fd) || tally_fail(error, "not a report of this version");
}

const struct tally_report *tally_report_map(int fd, struct tally_error *error)
{
	struct tally_report *r;

	if (!check(fd, error))
		return NULL;
	r = mmap(NULL, sizeof *r, PROT_READ, MAP_SHARED, fd, 0);
	if (r == MAP_FAILED) {
		tally_fail(error, "cannot map a report: %s", strerror(errno));
		return NULL;
	}
	if (r->magic == TALLY_REPORT_MAGIC && r->version == TALLY_REPORT_VERSION &&
	    r->size == sizeof *r)
		return r;
	munmap(r, sizeof *r);
	tally_fail(error, "not a report of this version");
	return NULL;
}

void tally_report_unmap(const struct tally_report *r)
{
	if (r)
		munmap((void *)r, sizeof *r);
}

unsigned tally_report_rows(const struct tally_report *r)
{
	uint32_t end = atomic_load_explicit(&r->rows_end, memory_order_acquire);

	return end < TALLY_REPORT_ROWS ? end : TALLY_REPORT_ROWS;
}

static void read_stats(const struct tally_report_stats *from, struct tally_stats *to)
{
	/* First: what these count is in the sums by then. */
	to->samples = atomic_load_explicit(&from->samples, memory_order_acquire);
	to->stops = atomic_load_explicit(&from->stops, memory_order_acquire);
	to->launches = LOAD(from->launches);
	to->ns = LOAD(from->ns);
	to->blocks = LOAD(from->blocks);
	to->ns_min = LOAD(from->ns_min);
	to->drain_ns = LOAD(from->drain_ns);
	for (unsigned i = 0; i < TALLY_COARSE; i++)
		to->stop[i] = LOAD(from->stop[i]);
}

bool tally_report_read_row(const struct tally_report_row *row, struct tally_row *to)
{
	if (atomic_load_explicit(&row->ready, memory_order_acquire) != 1)
		return false;
	to->key = row->key;
	to->key.zero = 0;
	tally_report_text(to->name, sizeof to->name, row->name);
	to->choice = tally_report_choice(row);
	for (unsigned i = 0; i < TALLY_LEVELS; i++)
		read_stats(&row->level[i], &to->level[i]);
	return true;
}

bool tally_report_read(const struct tally_report *r, unsigned number, struct tally_row *to)
{
	return number < TALLY_REPORT_ROWS && tally_report_read_row(&r->rows[number], to);
}

uint64_t tally_report_changes(const struct tally_report *r, unsigned number)
{
	uint64_t n = 0;

	for (unsigned i = 0; number < TALLY_REPORT_ROWS && i < TALLY_LEVELS; i++) {
		const struct tally_report_stats *s = &r->rows[number].level[i];

		n += LOAD(s->launches) + LOAD(s->samples) + LOAD(s->stops);
	}
	return n;
}

uint64_t tally_report_counter(const struct tally_report *r, enum tally_counter counter)
{
	return LOAD(r->counters[counter]);
}

uint64_t tally_report_stop_quantile(const struct tally_report *r, double q)
{
	uint32_t counts[TALLY_FINE];

	for (unsigned i = 0; i < TALLY_FINE; i++)
		counts[i] = LOAD(r->stop[i]);
	return tally_quantile(&tally_fine, counts, q);
}

/* Whether record n is whole, and its copy if so. */
static bool copy_event(const struct tally_report *r, uint64_t n, struct tally_trace_event *to)
{
	const struct tally_report_record *e = &r->trace[n % TALLY_REPORT_TRACE];
	uint32_t kind;

	if (atomic_load_explicit(&e->stamp, memory_order_acquire) != TALLY_STAMP(n))
		return false;
	/* Acquired: a field of the next lap brings that lap's busy stamp with it. */
	to->time_ns = atomic_load_explicit(&e->time_ns, memory_order_acquire);
	to->value = atomic_load_explicit(&e->value, memory_order_acquire);
	to->row = atomic_load_explicit(&e->row, memory_order_acquire);
	to->stream = atomic_load_explicit(&e->stream, memory_order_acquire);
	kind = atomic_load_explicit(&e->kind, memory_order_acquire);
	to->kind = (enum tally_event_kind)kind;
	return LOAD(e->stamp) == TALLY_STAMP(n) && kind < TALLY_TRACE_KINDS &&
	       to->row < TALLY_REPORT_ROWS;
}

bool tally_trace_next(const struct tally_report *r, struct tally_trace_cursor *c,
		      struct tally_trace_event *event)
{
	for (;;) {
		uint64_t head = atomic_load_explicit(&r->trace_head, memory_order_acquire);

		if (c->next >= head)
			return false;
		if (head - c->next > TALLY_REPORT_TRACE) {
			c->lost += head - TALLY_REPORT_TRACE - c->next;
			c->next = head - TALLY_REPORT_TRACE;
		}
		if (copy_event(r, c->next, event)) {
			c->next++;
			return true;
		}
		if (!c->ended && head - c->next < PATIENCE)
			return false;
		c->lost++;
		c->next++;
	}
}

bool tally_trace_request(int fd, uint64_t until_ns, struct tally_error *error)
{
	struct tally_report *r;

	if (!check(fd, error))
		return false;
	/* The header alone: nothing else is a reader's to write. */
	r = mmap(NULL, offsetof(struct tally_report, trace_head), PROT_READ | PROT_WRITE,
		 MAP_SHARED, fd, 0);
	if (r == MAP_FAILED)
		return tally_fail(error, "cannot map a report: %s", strerror(errno));
	tally_report_trace_until(r, until_ns);
	munmap(r, offsetof(struct tally_report, trace_head));
	return true;
}
