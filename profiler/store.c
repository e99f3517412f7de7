/* SPDX-License-Identifier: Apache-2.0 */
/* The store's file: opening it whatever is there. See store.h. */
#include "profiler/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/store_internal.h"

#define APPLICATION_ID 0x54614c79 /* "TaLy" */
#define BUSY_MS	       1000	  /* how long to wait for another process that writes */
#define LOCK_MS	       5000	  /* and for one that opens the store, looking through all of it */
#define LOCK_STEP_MS   5

static const char schema[] =
	"CREATE TABLE device(id INTEGER PRIMARY KEY, name TEXT NOT NULL, driver TEXT NOT NULL,"
	" transform TEXT NOT NULL, UNIQUE(name,driver,transform));"
	"CREATE TABLE kernel(id INTEGER PRIMARY KEY, device INTEGER NOT NULL REFERENCES device,"
	" image TEXT NOT NULL, kernel INTEGER NOT NULL, name TEXT NOT NULL, grid_x INTEGER,"
	" grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER,"
	" shared INTEGER, level INTEGER, reason INTEGER, slice INTEGER, seen INTEGER NOT NULL,"
	" UNIQUE(device,image,kernel," TALLY_SQL_PLACE "));"
	"CREATE INDEX kernel_seen ON kernel(seen);"
	"CREATE TABLE measure(kernel INTEGER NOT NULL, level INTEGER NOT NULL, run INTEGER NOT "
	"NULL,"
	" launches INTEGER, samples INTEGER, ns INTEGER, blocks INTEGER, ns_min INTEGER,"
	" stops INTEGER, drain_ns INTEGER, stop BLOB, PRIMARY KEY(kernel,level,run)) WITHOUT ROWID;"
	"CREATE INDEX measure_run ON measure(run);"
	"CREATE TABLE run(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL);"
	"PRAGMA application_id=" TALLY_SQL_NUMBER(
		APPLICATION_ID) ";"
				"PRAGMA user_version=" TALLY_SQL_NUMBER(TALLY_STORE_VERSION) ";";

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

int64_t tally_store_number(struct tally_store *s, sqlite3_stmt *statement)
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
	number = tally_store_number(s, statement);
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
