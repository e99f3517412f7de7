/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the store, and forgetting what is in it: see store.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/report.h"
#include "profiler/store_internal.h"

static const char all_kernels[] =
	"SELECT k.id,d.name,d.driver,d.transform,k.image,k.kernel,k.name,grid_x,grid_y,grid_z,"
	"block_x,block_y,block_z,shared,k.level,reason,slice,seen,m.level," TALLY_SQL_STATS
	" FROM device d JOIN kernel k ON k.device=d.id LEFT JOIN measure m ON m.kernel=k.id"
	" WHERE ?1 IS NULL OR (d.name=?1 AND d.driver=?2 AND d.transform=?3)"
	" ORDER BY k.seen DESC,k.id";

/* Where the columns of all_kernels are. */
enum {
	ID,
	DEVICE,
	DRIVER,
	TRANSFORM,
	IMAGE,
	KERNEL,
	NAME,
	GRID,
	BLOCK = 10,
	SHARED = 13,
	LEVEL,
	REASON,
	SLICE,
	SEEN,
	MEASURED,
	STATS
};

static const char *text(sqlite3_stmt *q, int column)
{
	return (const char *)sqlite3_column_text(q, column);
}

static uint64_t hex(const char *digits)
{
	char part[17] = "";

	if (strlen(digits) >= 16)
		memcpy(part, digits, 16);
	return strtoull(part, NULL, 16);
}

static void read_kernel(sqlite3_stmt *q, struct tally_stored *to)
{
	const char *image = text(q, IMAGE);
	struct tally_row *row = &to->row;

	*to = (struct tally_stored){
		.origin = tally_origin_of(text(q, DEVICE), text(q, DRIVER), text(q, TRANSFORM)),
		.seen = sqlite3_column_int64(q, SEEN)};
	if (image && strlen(image) == 32) {
		row->key.image[0] = hex(image);
		row->key.image[1] = hex(image + 16);
	}
	row->key.kernel = (uint64_t)sqlite3_column_int64(q, KERNEL);
	for (int i = 0; i < 3; i++) {
		row->key.grid[i] = (uint32_t)sqlite3_column_int64(q, GRID + i);
		row->key.block[i] = (uint32_t)sqlite3_column_int64(q, BLOCK + i);
	}
	row->key.shared = (uint32_t)sqlite3_column_int64(q, SHARED);
	tally_report_text(row->name, sizeof row->name, text(q, NAME));
	unsigned level = (unsigned)sqlite3_column_int(q, LEVEL);
	unsigned reason = (unsigned)sqlite3_column_int(q, REASON);
	row->choice = (struct tally_choice){level < TALLY_LEVELS ? level : TALLY_LEVEL_GATE,
					    reason < TALLY_REASON_COUNT ? reason : TALLY_WHY_NONE,
					    (uint32_t)sqlite3_column_int64(q, SLICE)};
}

bool tally_store_each(struct tally_store *s, const struct tally_origin *origin,
		      bool (*each)(void *context, const struct tally_stored *stored), void *context,
		      struct tally_error *error)
{
	struct tally_stored stored;
	sqlite3_stmt *q = NULL;
	int64_t current = -1;
	bool more = true;
	int step = SQLITE_DONE;

	if (sqlite3_prepare_v2(s->db, all_kernels, -1, &q, NULL) != SQLITE_OK)
		return tally_store_fail(s, error);
	if (origin) {
		sqlite3_bind_text(q, 1, origin->device, -1, SQLITE_STATIC);
		sqlite3_bind_text(q, 2, origin->driver, -1, SQLITE_STATIC);
		sqlite3_bind_text(q, 3, origin->transform, -1, SQLITE_STATIC);
	}
	/* Several lines for each kernel: one for each level and run. */
	while (more && (step = sqlite3_step(q)) == SQLITE_ROW) {
		struct tally_stats stats;

		if (sqlite3_column_int64(q, ID) != current) {
			if (current >= 0)
				more = each(context, &stored);
			read_kernel(q, &stored);
			current = sqlite3_column_int64(q, ID);
		}
		unsigned level = (unsigned)sqlite3_column_int(q, MEASURED);
		if (sqlite3_column_type(q, MEASURED) == SQLITE_NULL || level >= TALLY_LEVELS)
			continue;
		tally_store_read_stats(q, STATS, &stats);
		tally_stats_add(&stored.row.level[level], &stats);
	}
	if (more && step == SQLITE_DONE && current >= 0)
		each(context, &stored);
	bool ok = step == SQLITE_DONE || step == SQLITE_ROW || tally_store_fail(s, error);
	sqlite3_finalize(q);
	return ok;
}

bool tally_store_origins(struct tally_store *s,
			 bool (*each)(void *context, const struct tally_origin *origin),
			 void *context, struct tally_error *error)
{
	sqlite3_stmt *q = NULL;
	int step;

	if (sqlite3_prepare_v2(s->db,
			       "SELECT d.name,d.driver,d.transform FROM device d JOIN kernel k ON"
			       " k.device=d.id GROUP BY d.id ORDER BY max(k.seen) DESC",
			       -1, &q, NULL) != SQLITE_OK)
		return tally_store_fail(s, error);
	while ((step = sqlite3_step(q)) == SQLITE_ROW) {
		struct tally_origin origin = tally_origin_of(text(q, 0), text(q, 1), text(q, 2));

		if (!each(context, &origin))
			break;
	}
	bool ok = step == SQLITE_DONE || step == SQLITE_ROW || tally_store_fail(s, error);
	sqlite3_finalize(q);
	return ok;
}

/* Runs statements that remove kernels, and takes what belonged to them along. */
static bool remove_kernels(struct tally_store *s, const char *which, const char *argument,
			   unsigned *removed, struct tally_error *error)
{
	sqlite3_stmt *q = NULL;
	bool ok;

	if (!tally_store_begin(s, error))
		return false;
	ok = sqlite3_prepare_v2(s->db, which, -1, &q, NULL) == SQLITE_OK &&
	     (!argument || sqlite3_bind_text(q, 1, argument, -1, SQLITE_STATIC) == SQLITE_OK) &&
	     sqlite3_step(q) == SQLITE_DONE;
	if (!ok)
		tally_store_fail(s, error);
	sqlite3_finalize(q);
	*removed = ok ? (unsigned)sqlite3_changes(s->db) : 0;
	ok = ok &&
	     (!*removed ||
	      tally_store_execute(s,
				  "DELETE FROM measure WHERE kernel NOT IN (SELECT id FROM kernel);"
				  "DELETE FROM device WHERE id NOT IN (SELECT device FROM kernel)",
				  error));
	if (ok && tally_store_commit(s, error))
		return true;
	tally_store_rollback(s);
	return false;
}

bool tally_store_trim(struct tally_store *s, struct tally_error *error)
{
	unsigned removed;

	return remove_kernels(s,
			      "DELETE FROM kernel WHERE id IN (SELECT id FROM kernel ORDER BY seen"
			      " DESC LIMIT -1 OFFSET " TALLY_SQL_NUMBER(TALLY_STORE_KERNELS) ")",
			      NULL, &removed, error);
}

bool tally_store_reset(struct tally_store *s, const char *device, unsigned *removed,
		       struct tally_error *error)
{
	return remove_kernels(s,
			      device ? "DELETE FROM kernel WHERE device IN (SELECT id FROM device"
				       " WHERE instr(lower(name),lower(?1)))"
				     : "DELETE FROM kernel",
			      device, removed, error);
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
