/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the store: rows of runs that go on, sums of those that ended. See store.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profiler/store_internal.h"

static const char *const sql[TALLY_SQL_COUNT] = {
	[TALLY_SQL_DEVICE] = "INSERT INTO device(name,driver,transform) VALUES(?1,?2,?3)"
			     " ON CONFLICT DO UPDATE SET name=name RETURNING id",
	[TALLY_SQL_KERNEL] =
		"INSERT INTO kernel(device,image,kernel," TALLY_SQL_PLACE
		",name,level,reason,slice,seen)"
		" VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)"
		" ON CONFLICT(device,image,kernel," TALLY_SQL_PLACE
		") DO UPDATE SET level=excluded.level,"
		" reason=excluded.reason, slice=excluded.slice, seen=excluded.seen RETURNING id",
	[TALLY_SQL_MEASURE] =
		"INSERT OR REPLACE INTO measure VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,"
		"?11)",
	[TALLY_SQL_RUN] = "INSERT OR IGNORE INTO run(id,pid) VALUES(?1,?2)",
	[TALLY_SQL_RUNS] = "SELECT id,pid FROM run",
	[TALLY_SQL_RUN_MEASURES] =
		"SELECT kernel,level," TALLY_SQL_STATS " FROM measure WHERE run=?1",
	[TALLY_SQL_ENDED] =
		"SELECT " TALLY_SQL_STATS " FROM measure WHERE kernel=?1 AND level=?2 AND run=0",
	[TALLY_SQL_FORGET_MEASURES] = "DELETE FROM measure WHERE run=?1",
	[TALLY_SQL_FORGET_RUN] = "DELETE FROM run WHERE id=?1",
};

/* Ready to be bound, or NULL (tally_store_fail() says why). */
static sqlite3_stmt *prepared(struct tally_store *s, enum tally_sql which)
{
	if (!s->statement[which])
		sqlite3_prepare_v3(s->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
				   &s->statement[which], NULL);
	if (s->statement[which])
		sqlite3_reset(s->statement[which]);
	return s->statement[which];
}

/* The device's number; a program has one, so that the last one is usually it. */
static int64_t device_id(struct tally_store *s, const struct tally_origin *origin)
{
	sqlite3_stmt *q;

	if (s->device && !memcmp(&s->device_origin, origin, sizeof *origin))
		return s->device;
	q = prepared(s, TALLY_SQL_DEVICE);
	if (!q)
		return -1;
	sqlite3_bind_text(q, 1, origin->device, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, origin->driver, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 3, origin->transform, -1, SQLITE_STATIC);
	s->device = tally_store_number(s, q);
	s->device_origin = *origin;
	if (s->device < 0)
		s->device = 0;
	return s->device ? s->device : -1;
}

static int64_t kernel_id(struct tally_store *s, int64_t device, const struct tally_row *row)
{
	sqlite3_stmt *q = prepared(s, TALLY_SQL_KERNEL);
	const struct tally_row_key *k = &row->key;
	char image[33];

	if (!q)
		return -1;
	snprintf(image, sizeof image, "%016llx%016llx", (unsigned long long)k->image[0],
		 (unsigned long long)k->image[1]);
	sqlite3_bind_int64(q, 1, device);
	sqlite3_bind_text(q, 2, image, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(q, 3, (int64_t)k->kernel);
	for (int i = 0; i < 3; i++) {
		sqlite3_bind_int64(q, 4 + i, k->grid[i]);
		sqlite3_bind_int64(q, 7 + i, k->block[i]);
	}
	sqlite3_bind_int64(q, 10, k->shared);
	sqlite3_bind_text(q, 11, row->name, -1, SQLITE_STATIC);
	sqlite3_bind_int(q, 12, (int)row->choice.level);
	sqlite3_bind_int(q, 13, (int)row->choice.reason);
	sqlite3_bind_int64(q, 14, row->choice.slice);
	sqlite3_bind_int64(q, 15, time(NULL));
	return tally_store_number(s, q);
}

static bool put_stats(struct tally_store *s, int64_t kernel, int level, uint64_t run,
		      const struct tally_stats *stats)
{
	sqlite3_stmt *q = prepared(s, TALLY_SQL_MEASURE);
	const uint64_t numbers[] = {stats->launches, stats->samples, stats->ns,	     stats->blocks,
				    stats->ns_min,   stats->stops,   stats->drain_ns};

	if (!q)
		return false;
	sqlite3_bind_int64(q, 1, kernel);
	sqlite3_bind_int(q, 2, level);
	sqlite3_bind_int64(q, 3, (int64_t)run);
	for (int i = 0; i < 7; i++)
		sqlite3_bind_int64(q, 4 + i, (int64_t)numbers[i]);
	if (stats->stops)
		sqlite3_bind_blob(q, 11, stats->stop, sizeof stats->stop, SQLITE_STATIC);
	else
		sqlite3_bind_null(q, 11);
	bool ok = sqlite3_step(q) == SQLITE_DONE;
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return ok;
}

bool tally_store_put(struct tally_store *s, uint64_t run, int pid,
		     const struct tally_origin *origin, const struct tally_row *row,
		     struct tally_error *error)
{
	sqlite3_stmt *q = prepared(s, TALLY_SQL_RUN);
	int64_t device = device_id(s, origin), kernel;
	bool ok = q && device >= 0;

	if (ok) {
		sqlite3_bind_int64(q, 1, (int64_t)run);
		sqlite3_bind_int(q, 2, pid);
		ok = sqlite3_step(q) == SQLITE_DONE;
		sqlite3_reset(q);
	}
	kernel = ok ? kernel_id(s, device, row) : -1;
	ok = kernel >= 0;
	for (int i = 0; ok && i < TALLY_LEVELS; i++) {
		const struct tally_stats *l = &row->level[i];

		if (l->launches | l->samples | l->stops)
			ok = put_stats(s, kernel, i, run, l);
	}
	return ok || tally_store_fail(s, error);
}

/* Adds what a run said of one kernel at one level to what ended ones left. */
static bool add_to_ended(struct tally_store *s, int64_t kernel, int level,
			 const struct tally_stats *stats)
{
	sqlite3_stmt *q = prepared(s, TALLY_SQL_ENDED);
	struct tally_stats sum = {0};
	int step;

	if (!q)
		return false;
	sqlite3_bind_int64(q, 1, kernel);
	sqlite3_bind_int(q, 2, level);
	step = sqlite3_step(q);
	if (step == SQLITE_ROW)
		tally_store_read_stats(q, 0, &sum);
	sqlite3_reset(q);
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		return false;
	tally_stats_add(&sum, stats);
	return put_stats(s, kernel, level, 0, &sum);
}

static bool forget(struct tally_store *s, enum tally_sql which, int64_t run)
{
	sqlite3_stmt *q = prepared(s, which);
	bool ok = q && sqlite3_bind_int64(q, 1, run) == SQLITE_OK && sqlite3_step(q) == SQLITE_DONE;

	if (q)
		sqlite3_reset(q);
	return ok;
}

/* The report says nothing more: what it said is added to what ended ones left. */
static bool end_run(struct tally_store *s, uint64_t run, struct tally_error *error)
{
	sqlite3_stmt *q = prepared(s, TALLY_SQL_RUN_MEASURES);
	bool ok = q && sqlite3_bind_int64(q, 1, (int64_t)run) == SQLITE_OK;
	int step = SQLITE_DONE;

	/* The rows that are written meanwhile are those of run 0: not among those that are read. */
	while (ok && (step = sqlite3_step(q)) == SQLITE_ROW) {
		struct tally_stats stats;

		tally_store_read_stats(q, 2, &stats);
		ok = add_to_ended(s, sqlite3_column_int64(q, 0), sqlite3_column_int(q, 1), &stats);
	}
	ok = ok && step == SQLITE_DONE;
	if (q)
		sqlite3_reset(q);
	ok = ok && forget(s, TALLY_SQL_FORGET_MEASURES, (int64_t)run) &&
	     forget(s, TALLY_SQL_FORGET_RUN, (int64_t)run);
	return ok || tally_store_fail(s, error);
}

/* The next run whose process is gone, 0: none; and how many are not. */
static int64_t orphan(struct tally_store *s, unsigned *alive)
{
	sqlite3_stmt *q = prepared(s, TALLY_SQL_RUNS);
	int64_t found = 0;

	*alive = 0;
	while (q && !found && sqlite3_step(q) == SQLITE_ROW) {
		if (kill(sqlite3_column_int(q, 1), 0) && errno == ESRCH)
			found = sqlite3_column_int64(q, 0);
		else
			++*alive;
	}
	if (q)
		sqlite3_reset(q);
	return found;
}

bool tally_store_end_orphans(struct tally_store *s, unsigned *alive, struct tally_error *error)
{
	int64_t run;

	/* Mostly there are none: then nothing is written. */
	if (!orphan(s, alive))
		return true;
	if (!tally_store_begin(s, error))
		return false;
	while ((run = orphan(s, alive)))
		if (!end_run(s, (uint64_t)run, error)) {
			tally_store_rollback(s);
			return false;
		}
	return tally_store_commit(s, error);
}
