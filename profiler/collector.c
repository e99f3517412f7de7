/* SPDX-License-Identifier: Apache-2.0 */
/* The thread between the reports and the store: see collector.h. */
#include "profiler/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "profiler/report.h"
#include "profiler/store.h"

#define PATIENCE  60		/* rounds for a report that cannot be written */
#define PERIOD_NS 1000000000ll	/* between two writings */
#define OFFER_NS  60000000000ll /* before what is offered is made anew while programs run */
#define FIRST_WAIT_NS                                                                              \
	100000000ll /* a program that joins waits so long for the store to be read                 \
		     */
#define OFFERS 8    /* devices, drivers and compilers that are kept ready */

/* A report that is followed. The thread's alone once it is in the list, but for `left`. */
struct followed {
	struct followed *next;
	uint64_t joined_ns;
	int pid;
	const struct tally_report *report;
	struct tally_origin origin;
	bool left;			     /* the program is gone: once more, then no more */
	unsigned failures;		     /* since it left */
	uint64_t written[TALLY_REPORT_ROWS]; /* tally_report_changes() of what the store has */
};

/* What is ready to be handed to a program. */
struct offer {
	struct tally_origin origin;
	int fd;
	uint64_t size; /* 0: this place is free */
};

struct tally_collector {
	char folder[PATH_MAX];
	void (*log)(const char *line);
	struct tally_store *store; /* the thread's; NULL: none, or given up */
	bool complained;
	bool orphans; /* programs that left may have runs that are not ended */
	pthread_t thread;

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed;
	bool loaded, stop, hurry;
	struct followed *followed;
	struct offer offers[OFFERS];
	int handed; /* what the last program was given: it has its own by the next; -1: none */
};

static void say(struct tally_collector *c, const char *format, const char *what)
{
	char line[1400];

	snprintf(line, sizeof line, format, what);
	if (c->log)
		c->log(line);
}

/* ------------------------------------------------------------------------------------- the store
 */

static void open_store(struct tally_collector *c)
{
	struct tally_error error = {0};
	char note[256];
	unsigned left;

	c->store = tally_store_open(c->folder, note, &error);
	if (*note)
		say(c, "profiles: %s", note);
	if (!c->store)
		say(c, "profiles are not kept: %s", error.message);
	else if (!tally_store_end_orphans(c->store, &left, &error) ||
		 !tally_store_trim(c->store, &error))
		say(c, "profiles: %s", error.message);
}

/* An error of the store: a damaged one is begun anew, everything else may pass (a full disk). */
static void complain(struct tally_collector *c, const struct tally_error *error)
{
	tally_store_rollback(c->store);
	if (!c->complained)
		say(c, "profiles cannot be written now: %s", error->message);
	c->complained = true;
	if (!tally_store_damaged(c->store))
		return;
	tally_store_close(c->store);
	open_store(c);
	c->complained = false;
	pthread_mutex_lock(&c->lock);
	for (struct followed *f = c->followed; f; f = f->next)
		memset(f->written, 0, sizeof f->written);
	pthread_mutex_unlock(&c->lock);
}

/* The rows that changed since they were written. */
static bool put_rows(struct tally_collector *c, struct followed *f, uint64_t *written,
		     struct tally_error *error)
{
	unsigned end = tally_report_rows(f->report);
	struct tally_row row;

	for (unsigned i = 0; i < end; i++) {
		/* Before the row: what changes between the two is written the next time. */
		uint64_t changes = tally_report_changes(f->report, i);

		written[i] = changes;
		if (changes == f->written[i] || !tally_report_read(f->report, i, &row))
			continue;
		if (!tally_store_put(c->store, f->report->id, f->pid, &f->origin, &row, error))
			return false;
	}
	return true;
}

/* One transaction for a report. True when there is nothing of it left to be written. */
static bool write_report(struct tally_collector *c, struct followed *f)
{
	static uint64_t written[TALLY_REPORT_ROWS]; /* this thread's */
	struct tally_error error = {0};

	if (!c->store)
		return true;
	if (tally_store_begin(c->store, &error) && put_rows(c, f, written, &error) &&

	    tally_store_commit(c->store, &error)) {
		memcpy(f->written, written, sizeof f->written);
		c->complained = false;
		return true;
	}
	complain(c, &error);
	return false;
}

static bool has_changed(const struct followed *f)
{
	unsigned end = tally_report_rows(f->report);

	for (unsigned i = 0; i < end; i++)
		if (tally_report_changes(f->report, i) != f->written[i])
			return true;
	return false;
}

/* ------------------------------------------------------------------------------------- the offers
 */

struct gathered {
	struct tally_row *rows;
	size_t count;
};

static bool gather(void *context, const struct tally_stored *stored)
{
	struct gathered *g = context;

	if (!g->rows)
		g->rows = malloc(TALLY_PROFILES_MAX * sizeof *g->rows);
	if (!g->rows)
		return false;
	g->rows[g->count++] = stored->row;
	return g->count < TALLY_PROFILES_MAX;
}

/* Puts an offer where the one of the same origin is, else on a free place, else on the oldest. */
static void place(struct tally_collector *c, const struct offer *offer)
{
	struct offer *to = NULL;

	pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < OFFERS && !to; i++)
		if (!memcmp(&c->offers[i].origin, &offer->origin, sizeof offer->origin))
			to = &c->offers[i];
	for (unsigned i = 0; i < OFFERS && !to; i++)
		if (!c->offers[i].size)
			to = &c->offers[i];
	if (!to) {
		close(c->offers[0].fd);
		memmove(&c->offers[0], &c->offers[1], (OFFERS - 1) * sizeof c->offers[0]);
		to = &c->offers[OFFERS - 1];
	} else if (to->size) {
		close(to->fd);
	}
	*to = *offer;
	pthread_mutex_unlock(&c->lock);
}

static void make_offer(struct tally_collector *c, const struct tally_origin *origin)
{
	struct offer offer = {.origin = *origin};
	struct tally_error error = {0};
	struct gathered g = {0};

	if (c->store && tally_store_each(c->store, origin, gather, &g, &error) && g.count) {
		offer.fd = tally_profiles_make(origin, g.rows, g.count, &offer.size, &error);
		if (offer.fd >= 0)
			place(c, &offer);
	}
	free(g.rows);
	if (tally_failed(&error))
		say(c, "profiles: %s", error.message);
}

struct origins {
	struct tally_origin origin[OFFERS];
	unsigned count;
};

static bool note_origin(void *context, const struct tally_origin *origin)
{
	struct origins *o = context;

	o->origin[o->count++] = *origin;
	return o->count < OFFERS;
}

static void load_offers(struct tally_collector *c)
{
	struct origins o = {.count = 0};
	struct tally_error error = {0};

	if (c->store && !tally_store_origins(c->store, note_origin, &o, &error))
		say(c, "profiles: %s", error.message);
	for (unsigned i = 0; i < o.count; i++)
		make_offer(c, &o.origin[i]);
	pthread_mutex_lock(&c->lock);
	c->loaded = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

/* ------------------------------------------------------------------------------------- the thread
 */

static void drop(struct tally_collector *c, struct followed *f)
{
	struct followed **p = &c->followed;

	pthread_mutex_lock(&c->lock);
	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	pthread_mutex_unlock(&c->lock);
	tally_report_unmap(f->report);
	free(f);
}

/* One round over all reports. `last`: tallyd ends, and nobody will write later. */
static void round_of_all(struct tally_collector *c, bool last, bool offer)
{
	struct followed *f, *next;

	pthread_mutex_lock(&c->lock);
	f = c->followed; /* new ones come in front of it */
	pthread_mutex_unlock(&c->lock);
	for (; f; f = next) {
		struct tally_origin origin = f->origin;
		bool left, more;

		pthread_mutex_lock(&c->lock);
		left = f->left;
		next = f->next;
		pthread_mutex_unlock(&c->lock);
		more = has_changed(f);
		if (more && !write_report(c, f) && !last && (!left || ++f->failures < PATIENCE))
			continue;
		if (left || (offer && more))
			make_offer(c, &origin);
		if (left)
			drop(c, f);
		c->orphans |= left;
	}
}

/* A run ends with its process, not with the membership: who comes back goes on counting where it
 * was. Those that left are looked at until all of them are gone. */
static void end_runs(struct tally_collector *c)
{
	struct tally_error error = {0};
	unsigned left = 0;

	if (!c->orphans || !c->store)
		return;
	if (tally_store_end_orphans(c->store, &left, &error))
		c->orphans = left > 0;
	else
		complain(c, &error);
}

/* Sleeps for the period, or until somebody left, or, while there is nothing to look at, until
 * somebody comes; false when tallyd ends. */
static bool sleep_on(struct tally_collector *c)
{
	struct timespec until;
	bool stop, late = false;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PERIOD_NS / 1000000000;
	pthread_mutex_lock(&c->lock);
	while (!c->stop && !c->hurry && !late) {
		if (c->followed || c->orphans)
			late = pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT;
		else
			pthread_cond_wait(&c->changed, &c->lock);
	}
	c->hurry = false;
	stop = c->stop;
	pthread_mutex_unlock(&c->lock);
	return !stop;
}

static void *collect(void *argument)
{
	struct tally_collector *c = argument;
	uint64_t offered_ns;

	open_store(c);
	load_offers(c);
	offered_ns = tally_now();
	while (sleep_on(c)) {
		bool offer = tally_now() - offered_ns > (uint64_t)OFFER_NS;

		if (offer)
			offered_ns = tally_now();
		round_of_all(c, false, offer);
		end_runs(c);
	}
	/* Programs that still run are not ended: the next tallyd hears of them again. */
	round_of_all(c, true, false);
	end_runs(c);
	tally_store_close(c->store);
	c->store = NULL;
	return NULL;
}

struct tally_collector *tally_collector_start(const char *folder, void (*log)(const char *line),
					      struct tally_error *error)
{
	struct tally_collector *c = calloc(1, sizeof *c);
	pthread_condattr_t monotonic;
	sigset_t all, before;
	int failed;

	if (!c) {
		tally_fail(error, "out of memory");
		return NULL;
	}
	snprintf(c->folder, sizeof c->folder, "%s", folder);
	c->log = log;
	c->handed = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&c->thread, NULL, collect, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		return c;
	tally_fail(error, "cannot start a thread: %s", strerror(failed));
	free(c);
	return NULL;
}

void tally_collector_stop(struct tally_collector *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	while (c->followed)
		drop(c, c->followed);
	for (unsigned i = 0; i < OFFERS; i++)
		if (c->offers[i].size)
			close(c->offers[i].fd);
	if (c->handed >= 0)
		close(c->handed);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ------------------------------------------------------------------------------- the daemon's loop
 */

static struct followed *follow(const struct tally_daemon_member *member, struct tally_error *error)
{
	struct followed *f = calloc(1, sizeof *f);

	if (!f) {
		tally_fail(error, "out of memory");
		return NULL;
	}
	f->report = tally_report_map(member->attachment.fd, error);
	if (!f->report) {
		free(f);
		return NULL;
	}
	f->joined_ns = member->joined_ns;
	f->pid = member->pid;
	f->origin =
		tally_origin_of(f->report->device_name, f->report->driver, f->report->transform);
	return f;
}

/* The offer for `origin`, as a descriptor that stays open until the next program comes. Locked. */
static void hand_out(struct tally_collector *c, const struct tally_origin *origin,
		     struct tally_attachment *answer)
{
	if (c->handed >= 0)
		close(c->handed);
	c->handed = -1;
	for (unsigned i = 0; i < OFFERS; i++) {
		const struct offer *o = &c->offers[i];

		if (!o->size || memcmp(&o->origin, origin, sizeof *origin))
			continue;
		c->handed = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		if (c->handed >= 0)
			*answer =
				(struct tally_attachment){c->handed, TALLY_PROFILES_KIND, o->size};
	}
}

void tally_collector_joined(void *collector, const struct tally_daemon_member *member,
			    struct tally_attachment *answer)
{
	struct tally_collector *c = collector;
	struct tally_error error = {0};
	struct timespec until;
	struct followed *f;

	if (!c || !member->attachment.size || member->attachment.kind != TALLY_REPORT_KIND)
		return;
	f = follow(member, &error);
	if (!f) {
		say(c, "a program's report is ignored: %s", error.message);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += FIRST_WAIT_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&c->lock);
	/* Only the first program may meet a store that is still being read. */
	while (!c->loaded && !pthread_cond_timedwait(&c->changed, &c->lock, &until))
		;
	f->next = c->followed;
	c->followed = f;
	pthread_cond_broadcast(&c->changed);
	hand_out(c, &f->origin, answer);
	pthread_mutex_unlock(&c->lock);
}

void tally_collector_left(void *collector, const struct tally_daemon_member *member)
{
	struct tally_collector *c = collector;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	for (struct followed *f = c->followed; f; f = f->next)
		f->left |= f->joined_ns == member->joined_ns;
	c->hurry = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}
