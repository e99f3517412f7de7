/* SPDX-License-Identifier: Apache-2.0 */
/* The thread between the reports and the store: see collector.h. */
#include "profiler/collector.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "profiler/offers.h"
#include "profiler/report.h"
#include "profiler/store.h"

#define PATIENCE  60		/* rounds for a report that cannot be written */
#define PERIOD_NS 1000000000ll	/* between two writings */
#define OFFER_NS  60000000000ll /* before what is offered is made anew while programs run */
#define FIRST_WAIT_NS                                                                              \
	100000000ll /* a program that joins waits so long for the store to be read                 \
		     */

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

struct tally_collector {
	char folder[PATH_MAX];
	void (*log)(const char *line);
	struct tally_store *store; /* the thread's; NULL: none, or given up */
	bool complained;
	struct tally_offers offers;
	bool orphans; /* programs that left may have runs that are not ended */
	pthread_t thread;

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed;
	bool loaded, stop, hurry;
	struct followed *followed;
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

/* ------------------------------------------------------------------------------------- the thread
 */

static void make_offer(struct tally_collector *c, const struct tally_origin *origin)
{
	struct tally_error error = {0};

	if (c->store && !tally_offers_make(&c->offers, c->store, origin, &error))
		say(c, "profiles: %s", error.message);
}

static void load_offers(struct tally_collector *c)
{
	struct tally_error error = {0};

	if (c->store && !tally_offers_load(&c->offers, c->store, &error))
		say(c, "profiles: %s", error.message);
	pthread_mutex_lock(&c->lock);
	c->loaded = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

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

/* What is left of it once there is no thread. */
static void release(struct tally_collector *c)
{
	tally_offers_close(&c->offers);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
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
	tally_offers_init(&c->offers);
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
	release(c);
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
	release(c);
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
	tally_offers_give(&c->offers, &f->origin, answer);
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
