/* SPDX-License-Identifier: Apache-2.0 */
/* The store's file: opening it whatever is there, and what is written to it. See store.h. */
#include "profiler/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/store_internal.h"

#define APPLICATION_ID 0x54614c79 /* "TaLy" */
#define BUSY_MS	       1000	  /* how long to wait for another process that writes */
#define LOCK_MS	       5000	  /* and for one that opens the store, looking through all of it */
#define LOCK_STEP_MS   5

#define STRING(x)  #x
#define NUMBER(x)  STRING(x)
#define PLACE_KEYS "grid_x,grid_y,grid_z,block_x,block_y,block_z,shared"

static const char schema[] =
	"CREATE TABLE device(id INTEGER PRIMARY KEY, name TEXT NOT NULL, driver TEXT NOT NULL,"
	" transform TEXT NOT NULL, UNIQUE(name,driver,transform));"
	"CREATE TABLE kernel(id INTEGER PRIMARY KEY, device INTEGER NOT NULL REFERENCES device,"
	" image TEXT NOT NULL, kernel INTEGER NOT NULL, name TEXT NOT NULL, grid_x INTEGER,"
	" grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER,"
	" shared INTEGER, level INTEGER, reason INTEGER, slice INTEGER, seen INTEGER NOT NULL,"
	" UNIQUE(device,image,kernel," PLACE_KEYS "));"
	"CREATE INDEX kernel_seen ON kernel(seen);"
	"CREATE TABLE measure(kernel INTEGER NOT NULL, level INTEGER NOT NULL, run INTEGER NOT "
	"NULL,"
	" launches INTEGER, samples INTEGER, ns INTEGER, blocks INTEGER, ns_min INTEGER,"
	" stops INTEGER, drain_ns INTEGER, stop BLOB, PRIMARY KEY(kernel,level,run)) WITHOUT ROWID;"
	"CREATE INDEX measure_run ON measure(run);"
	"CREATE TABLE run(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL);"
	"PRAGMA application_id=" NUMBER(APPLICATION_ID) ";"
							"PRAGMA user_version=" NUMBER(
								TALLY_STORE_VERSION) ";";

static const char *const sql[TALLY_SQL_COUNT] = {
	[TALLY_SQL_DEVICE] = "INSERT INTO device(name,driver,transform) VALUES(?1,?2,?3)"
			     " ON CONFLICT DO UPDATE SET name=name RETURNING id",
	[TALLY_SQL_KERNEL] =
		"INSERT INTO kernel(device,image,kernel," PLACE_KEYS
		",name,level,reason,slice,seen)"
		" VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)"
		" ON CONFLICT(device,image,kernel," PLACE_KEYS
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

bool tally_store_fail(struct tally_store *s, struct tally_error *error)
{
	int code = sqlite3_errcode(s->db) & 0xff;

	s->damaged |= code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
	return tally_fail(error, "%s: %s", s->path, sqlite3_errmsg(s->db));
}

bool tally_store_execute(struct tally_store *s, const char *text, struct tally_error *error)
{
	return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK ||
	       tally_store_fail(s, error);
}

/* Of an INSERT ... RETURNING, or a SELECT of one number: -1 when it failed or there is none. */
static int64_t one_number(struct tally_store *s, sqlite3_stmt *statement)
{
	int64_t number = -1;

	if (statement && sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	/* To the end: only then is what it wrote there. */
	if (number >= 0 && sqlite3_step(statement) != SQLITE_DONE)
		number = -1;
	if (statement)
		sqlite3_reset(statement);
	return number;
}

static int64_t pragma(struct tally_store *s, const char *text)
{
	sqlite3_stmt *statement = NULL;
	int64_t number;

	sqlite3_prepare_v2(s->db, text, -1, &statement, NULL);
	number = one_number(s, statement);
	sqlite3_finalize(statement);
	return number;
}

static bool checks(struct tally_store *s)
{
	sqlite3_stmt *statement = NULL;
	bool ok;

	sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &statement, NULL);
	ok = statement && sqlite3_step(statement) == SQLITE_ROW &&
	     !strcmp((const char *)sqlite3_column_text(statement, 0), "ok");
	sqlite3_finalize(statement);
	return ok;
}

enum found {
	FOUND_OURS,
	FOUND_OTHER,   /* a database of somebody else, or of another version */
	FOUND_DAMAGED, /* or no database at all */
	FOUND_FAILED,  /* see the error */
};

static enum found look(struct tally_store *s, struct tally_error *error)
{
	int64_t id = pragma(s, "PRAGMA application_id"), tables;
	int code = sqlite3_errcode(s->db) & 0xff;

	if (id < 0 && (code == SQLITE_CORRUPT || code == SQLITE_NOTADB))
		return FOUND_DAMAGED;
	tables = id < 0 ? -1 : pragma(s, "SELECT count(*) FROM sqlite_schema");
	if (tables < 0) {
		tally_store_fail(s, error);
		return s->damaged ? FOUND_DAMAGED : FOUND_FAILED;
	}
	if (!id && !tables)
		return FOUND_OURS;
	if (id != APPLICATION_ID || pragma(s, "PRAGMA user_version") != TALLY_STORE_VERSION)
		return FOUND_OTHER;
	return checks(s) ? FOUND_OURS : FOUND_DAMAGED;
}

/* What is in the file, which may have been made by the opening: all at one moment, for others may
 * be making its tables. */
static enum found inspect(struct tally_store *s, struct tally_error *error)
{
	enum found found;

	sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL);
	found = look(s, error);
	tally_store_rollback(s);
	return found;
}

/* The tables, unless another process made them in the same moment. */
static bool make_tables(struct tally_store *s, struct tally_error *error)
{
	if (!tally_store_begin(s, error))
		return false;
	if (pragma(s, "SELECT count(*) FROM sqlite_schema") == 0 &&
	    !tally_store_execute(s, schema, error)) {
		tally_store_rollback(s);
		return false;
	}
	return tally_store_commit(s, error);
}

static struct tally_store *open_file(const char *path, int flags, struct tally_error *error)
{
	struct tally_store *s = calloc(1, sizeof *s);

	if (!s) {
		tally_fail(error, "out of memory");
		return NULL;
	}
	snprintf(s->path, sizeof s->path, "%s", path);
	if (sqlite3_open_v2(path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) {
		sqlite3_extended_result_codes(s->db, 0);
		sqlite3_busy_timeout(s->db, BUSY_MS);
		return s;
	}
	tally_fail(error, "%s: %s", path, s->db ? sqlite3_errmsg(s->db) : "out of memory");
	tally_store_close(s);
	return NULL;
}

static bool path_in(const char *folder, char path[PATH_MAX], struct tally_error *error)
{
	return snprintf(path, PATH_MAX, "%s/" TALLY_STORE_FILE, folder) < PATH_MAX - 16 ||
	       tally_fail(error, "the path of the cache folder is too long");
}

/* Nobody else's business; SQLite would make it readable for all, and its other files are made like
 * it. */
static void make_private(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

static bool put_aside(const char *path, struct tally_error *error)
{
	char from[PATH_MAX + 16], to[PATH_MAX + 16];

	snprintf(to, sizeof to, "%s.aside", path);
	if (rename(path, to))
		return tally_fail(error, "cannot rename %s: %s", path, strerror(errno));
	/* The log belongs to the file; SQLite makes the index of the log anew. */
	snprintf(from, sizeof from, "%s-wal", path);
	snprintf(to, sizeof to, "%s.aside-wal", path);
	if (rename(from, to))
		unlink(to);
	snprintf(from, sizeof from, "%s-shm", path);
	unlink(from);
	return true;
}

/*
 * One process at a time opens the store: what one finds the next could be replacing, and SQLite
 * waits for nobody while it changes to the log. A lock of the folder, which ends with its holder;
 * -1 where there is none to be had (some network file systems), or not within the time.
 */
static int lock_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned ms = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB); ms += LOCK_STEP_MS) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || ms >= LOCK_MS) {
			close(fd);
			return -1;
		}
		poll(NULL, 0, LOCK_STEP_MS);
	}
	return fd;
}

static struct tally_store *open_locked(const char *folder, char note[256],
				       struct tally_error *error)
{
	static const char *const what[] = {[FOUND_OTHER] = "is no store of this version of Tally",
					   [FOUND_DAMAGED] = "is damaged"};
	char path[PATH_MAX];

	if (!path_in(folder, path, error))
		return NULL;
	make_private(path);
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		struct tally_store *s =
			open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error);
		enum found found = s ? inspect(s, error) : FOUND_FAILED;

		if (found == FOUND_OURS &&
		    tally_store_execute(s, "PRAGMA journal_mode=WAL", error) &&
		    tally_store_execute(s, "PRAGMA synchronous=NORMAL", error) &&
		    make_tables(s, error))
			return s;
		tally_store_close(s);
		if (found == FOUND_OURS || found == FOUND_FAILED)
			return NULL;
		*error = (struct tally_error){0};
		if (!put_aside(path, error))
			return NULL;
		make_private(path);
		snprintf(note, 256, "%.150s %s: put aside as %s.aside, measurements begin anew",
			 path, what[found], TALLY_STORE_FILE);
	}
	tally_fail(error, "%s changes while it is being opened", path);
	return NULL;
}

struct tally_store *tally_store_open(const char *folder, char note[256], struct tally_error *error)
{
	struct tally_store *s;
	int fd;

	note[0] = '\0';
	if (!tally_make_folders(folder, error))
		return NULL;
	fd = lock_folder(folder);
	s = open_locked(folder, note, error);
	if (fd >= 0)
		close(fd);
	return s;
}

struct tally_store *tally_store_read(const char *folder, bool *absent, struct tally_error *error)
{
	char path[PATH_MAX];
	struct tally_store *s;
	enum found found;

	*absent = false;
	if (!path_in(folder, path, error))
		return NULL;
	if (access(path, F_OK) && errno == ENOENT) {
		*absent = true;
		tally_fail(error, "%s: nothing was measured yet", path);
		return NULL;
	}
	s = open_file(path, SQLITE_OPEN_READONLY, error);
	if (!s)
		return NULL;
	found = inspect(s, error);
	if (found == FOUND_OURS)
		return s;
	if (found != FOUND_FAILED)
		tally_fail(error,
			   "%s: no store of this version of Tally, or damaged; tallyd puts it "
			   "aside when it starts",
			   path);
	tally_store_close(s);
	return NULL;
}

void tally_store_close(struct tally_store *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < TALLY_SQL_COUNT; i++)
		sqlite3_finalize(s->statement[i]);
	sqlite3_close(s->db);
	free(s);
}

bool tally_store_damaged(const struct tally_store *s)
{
	return s->damaged;
}

bool tally_store_begin(struct tally_store *s, struct tally_error *error)
{
	/* Between transactions another process may have forgotten the device. */
	s->device = 0;
	return tally_store_execute(s, "BEGIN IMMEDIATE", error);
}

bool tally_store_commit(struct tally_store *s, struct tally_error *error)
{
	return tally_store_execute(s, "COMMIT", error);
}

void tally_store_rollback(struct tally_store *s)
{
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
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
	s->device = one_number(s, q);
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
	return one_number(s, q);
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

void tally_store_read_stats(sqlite3_stmt *q, int first, struct tally_stats *stats)
{
	uint64_t *numbers[] = {&stats->launches, &stats->samples, &stats->ns,	   &stats->blocks,
			       &stats->ns_min,	 &stats->stops,	  &stats->drain_ns};

	*stats = (struct tally_stats){0};
	for (int i = 0; i < 7; i++)
		*numbers[i] = (uint64_t)sqlite3_column_int64(q, first + i);
	if (sqlite3_column_bytes(q, first + 7) == sizeof stats->stop)
		memcpy(stats->stop, sqlite3_column_blob(q, first + 7), sizeof stats->stop);
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
