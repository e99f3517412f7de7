/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share. */
#ifndef TALLY_PROFILER_STORE_INTERNAL_H
#define TALLY_PROFILER_STORE_INTERNAL_H

#include <limits.h>
#include <sqlite3.h>

#include "profiler/store.h"

enum tally_sql {
	TALLY_SQL_DEVICE,
	TALLY_SQL_KERNEL,
	TALLY_SQL_MEASURE,
	TALLY_SQL_RUN,
	TALLY_SQL_RUNS,
	TALLY_SQL_RUN_MEASURES,
	TALLY_SQL_ENDED,
	TALLY_SQL_FORGET_MEASURES,
	TALLY_SQL_FORGET_RUN,
	TALLY_SQL_COUNT,
};

/* A number of C in SQL. */
#define TALLY_SQL_STRING(x) #x
#define TALLY_SQL_NUMBER(x) TALLY_SQL_STRING(x)

/* The columns of a kernel's place and shape, which are part of its key. */
#define TALLY_SQL_PLACE "grid_x,grid_y,grid_z,block_x,block_y,block_z,shared"

/* The columns of struct tally_stats, as tally_store_read_stats() wants them. */
#define TALLY_SQL_STATS "launches,samples,ns,blocks,ns_min,stops,drain_ns,stop"

struct tally_store {
	sqlite3 *db;
	char path[PATH_MAX];
	bool damaged;
	sqlite3_stmt *statement[TALLY_SQL_COUNT]; /* prepared when first used */
	int64_t device;				  /* the number of device_origin; 0: unknown */
	struct tally_origin device_origin;
};

/* Runs `text`, one or more statements without results. */
bool tally_store_execute(struct tally_store *store, const char *text, struct tally_error *error);

/* The database's last error; always false. */
bool tally_store_fail(struct tally_store *store, struct tally_error *error);

/* Of an INSERT ... RETURNING, or a SELECT of one number: -1 when it failed or there is none. The
 * statement, which may be NULL, is reset. */
int64_t tally_store_number(struct tally_store *store, sqlite3_stmt *statement);

/* store_read.c: the stats in the columns from `first` on. */
void tally_store_read_stats(sqlite3_stmt *statement, int first, struct tally_stats *stats);

#endif
