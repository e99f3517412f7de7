/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's side of the report: see report.h. Lives inside other people's programs. */
#include "profiler/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory_file.h"
#include "profiler/internal.h"

/* Every report of the process, for the handler that runs in a forked child. */
struct mapped {
	struct tally_report *report;
	struct mapped *next;
};
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapped *list;

static void before_fork(void)
{
	pthread_mutex_lock(&list_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&list_lock);
}

/* The child is a program of its own: what it writes through saved pointers must not count for its
 * parent. */
static void after_fork_child(void)
{
	for (struct mapped *m = list; m; m = m->next)
		mmap(m->report, sizeof *m->report, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	pthread_mutex_unlock(&list_lock);
}

static void install_handlers(void)
{
	static _Atomic bool installed;

	if (!atomic_exchange(&installed, true))
		pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static struct tally_report *map_new(int *fd)
{
	size_t size = sizeof(struct tally_report);
	void *memory = MAP_FAILED;

	*fd = tally_memory_file("tally-report", MFD_ALLOW_SEALING, size);
	/* Sealed, so that nobody who maps it can be hit by its shrinking. */
	if (*fd >= 0 && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t new_id(const void *report)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof id, GRND_NONBLOCK) != sizeof id)
		id = tally_now() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32 ^
		     (uintptr_t)report;
	return id ? id : 1;
}

struct tally_report *tally_report_create(const struct tally_report_identity *identity, int *fd)
{
	struct mapped *m = malloc(sizeof *m);
	struct tally_report *r;

	*fd = -1;
	install_handlers();
	r = m ? map_new(fd) : NULL;
	if (!r) {
		free(m);
		return NULL;
	}
	r->version = TALLY_REPORT_VERSION;
	r->size = sizeof *r;
	r->id = new_id(r);
	r->pid = getpid();
	r->priority = identity->priority;
	r->started_ns = tally_now();
	memcpy(r->device, identity->device, sizeof r->device);
	tally_report_text(r->name, sizeof r->name, identity->name);
	tally_report_text(r->device_name, sizeof r->device_name, identity->device_name);
	tally_report_text(r->driver, sizeof r->driver, identity->driver);
	tally_report_text(r->transform, sizeof r->transform, identity->transform);
	strcpy(r->rows[0].name, "(other kernels)");
	atomic_store(&r->rows[0].ready, 1);
	atomic_store(&r->rows_end, 1);
	r->magic = TALLY_REPORT_MAGIC;

	pthread_mutex_lock(&list_lock);
	*m = (struct mapped){r, list};
	list = m;
	pthread_mutex_unlock(&list_lock);
	return r;
}

void tally_report_destroy(struct tally_report *r)
{
	struct mapped **p, *m;

	if (!r)
		return;
	pthread_mutex_lock(&list_lock);
	for (p = &list; *p && (*p)->report != r; p = &(*p)->next)
		;
	m = *p;
	if (m)
		*p = m->next;
	pthread_mutex_unlock(&list_lock);
	free(m);
	munmap(r, sizeof *r);
}

struct tally_row_key tally_report_key(const uint64_t image[2], uint64_t kernel,
				      const unsigned grid[3], const unsigned block[3],
				      unsigned shared)
{
	return (struct tally_row_key){.image = {image ? image[0] : 0, image ? image[1] : 0},
				      .kernel = kernel,
				      .grid = {grid[0], grid[1], grid[2]},
				      .block = {block[0], block[1], block[2]},
				      .shared = shared};
}

/* A row that is nobody's yet, or 0: the table is full. */
static unsigned reserve(struct tally_report *r)
{
	uint32_t end = atomic_load_explicit(&r->rows_end, memory_order_relaxed);

	do
		if (end >= TALLY_REPORT_ROWS)
			return 0;
	while (!atomic_compare_exchange_weak_explicit(&r->rows_end, &end, end + 1,
						      memory_order_acquire, memory_order_relaxed));
	return end;
}

/* Another thread made the row first. If somebody reserved one meanwhile ours stays unused. */
static void give_back(struct tally_report *r, unsigned number)
{
	uint32_t end = number + 1;

	atomic_compare_exchange_strong_explicit(&r->rows_end, &end, number, memory_order_release,
						memory_order_relaxed);
}

static struct tally_report_row *rest(struct tally_report *r)
{
	tally_report_count(r, TALLY_COUNT_ROWS_LOST, 1);
	return &r->rows[0];
}

static struct tally_report_row *insert(struct tally_report *r, unsigned place,
				       const struct tally_row_key *key, const char *name)
{
	unsigned number = reserve(r);
	struct tally_report_row *row = &r->rows[number];

	if (!number)
		return rest(r);
	row->number = number;
	row->key = *key;
	row->key.zero = 0;
	tally_report_text(row->name, sizeof row->name, name);
	for (unsigned i = 0; i < TALLY_REPORT_INDEX; i++) {
		uint16_t found = 0;

		if (atomic_compare_exchange_strong_explicit(&r->index[place], &found,
							    (uint16_t)number, memory_order_acq_rel,
							    memory_order_acquire)) {
			atomic_store_explicit(&row->ready, 1, memory_order_release);
			return row;
		}
		if (tally_key_equal(&r->rows[found].key, key)) {
			give_back(r, number);
			return &r->rows[found];
		}
		place = (place + 1) % TALLY_REPORT_INDEX;
	}
	return rest(r);
}

struct tally_report_row *tally_report_row(struct tally_report *r, const struct tally_row_key *key,
					  const char *name)
{
	unsigned place = (unsigned)(tally_key_hash(key) % TALLY_REPORT_INDEX);

	for (unsigned i = 0; i < TALLY_REPORT_INDEX; i++) {
		unsigned at = (place + i) % TALLY_REPORT_INDEX;
		uint16_t n = atomic_load_explicit(&r->index[at], memory_order_acquire);

		if (!n)
			return insert(r, at, key, name);
		if (tally_key_equal(&r->rows[n].key, key))
			return &r->rows[n];
	}
	return rest(r);
}

void tally_report_choose(struct tally_report_row *row, const struct tally_choice *choice)
{
	uint64_t packed = (uint64_t)choice->level | (uint64_t)choice->reason << 8 |
			  (uint64_t)choice->slice << 32;

	atomic_store_explicit(&row->choice, packed, memory_order_relaxed);
}

struct tally_choice tally_report_choice(const struct tally_report_row *row)
{
	return tally_choice_unpack(atomic_load_explicit(&row->choice, memory_order_relaxed));
}

#define ADD(field, n) atomic_fetch_add_explicit(&(field), (n), memory_order_relaxed)

void tally_report_sample(struct tally_report_row *row, enum tally_level level, uint64_t ns,
			 uint64_t blocks)
{
	struct tally_report_stats *s = &row->level[level];
	uint64_t whole = tally_key_blocks(&row->key), least, scaled;

	if (!blocks)
		return;
	scaled = whole == blocks || !whole ? ns : tally_scale(ns, whole, blocks);
	if (!scaled)
		scaled = 1; /* 0 means none */
	ADD(s->ns, ns);
	ADD(s->blocks, blocks);
	least = atomic_load_explicit(&s->ns_min, memory_order_relaxed);
	while ((!least || scaled < least) &&
	       !atomic_compare_exchange_weak_explicit(&s->ns_min, &least, scaled,
						      memory_order_relaxed, memory_order_relaxed))
		;
	/* Last: who sees the sample sees its sums. */
	atomic_fetch_add_explicit(&s->samples, 1, memory_order_release);
}

void tally_report_stop(struct tally_report *r, struct tally_report_row *row, enum tally_level level,
		       uint64_t latency_ns, uint64_t drain_ns)
{
	ADD(r->stop[tally_bucket(&tally_fine, latency_ns)], 1);
	if (!row)
		return;
	ADD(row->level[level].stop[tally_bucket(&tally_coarse, latency_ns)], 1);
	ADD(row->level[level].drain_ns, drain_ns);
	atomic_fetch_add_explicit(&row->level[level].stops, 1, memory_order_release);
}

void tally_report_trace_until(struct tally_report *r, uint64_t until_ns)
{
	uint64_t now = atomic_load(&r->trace_until_ns);

	while (now < until_ns && !atomic_compare_exchange_weak(&r->trace_until_ns, &now, until_ns))
		;
}

/* Ends the recording when its time is over, unless somebody asked for more meanwhile. */
static bool wanted(struct tally_report *r, uint64_t now_ns)
{
	uint64_t until = atomic_load_explicit(&r->trace_until_ns, memory_order_relaxed);

	if (!until || now_ns < until)
		return until != 0;
	return !atomic_compare_exchange_strong(&r->trace_until_ns, &until, 0) && until > now_ns;
}

/* Released: who reads one of the new fields finds the busy stamp when he looks at it again. */
#define PUT(field, n) atomic_store_explicit(&(field), (n), memory_order_release)

void tally_report_record(struct tally_report *r, enum tally_event_kind kind, uint64_t time_ns,
			 uint32_t stream, const struct tally_report_row *row, uint64_t value)
{
	uint64_t now_ns = tally_now(), n;
	struct tally_report_record *e;

	if (!wanted(r, now_ns))
		return;
	n = ADD(r->trace_head, 1);
	e = &r->trace[n % TALLY_REPORT_TRACE];
	/* Somebody who was here a whole ring ago has not finished: his stamp must not end up on our
	 * event. */
	if (atomic_exchange_explicit(&e->stamp, TALLY_STAMP_BUSY, memory_order_acquire) ==
	    TALLY_STAMP_BUSY) {
		tally_report_count(r, TALLY_COUNT_TRACE_DROPPED, 1);
		return;
	}
	PUT(e->time_ns, time_ns ? time_ns : now_ns);
	PUT(e->value, value);
	PUT(e->row, row ? row->number : 0);
	PUT(e->stream, stream);
	PUT(e->kind, (uint32_t)kind);
	atomic_store_explicit(&e->stamp, TALLY_STAMP(n), memory_order_release);
}
