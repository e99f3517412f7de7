/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: measurements of all programs that ran, in an SQLite file of the cache folder. A
 * program's report is written as it stands, again and again under the report's number, and added to
 * what ended programs left when its process is gone: whoever is killed at whatever point, nothing
 * is counted twice. For tallyd and `tally`; one thread uses a store at a time.
 */
#ifndef TALLY_PROFILER_STORE_H
#define TALLY_PROFILER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/profiles.h"

#define TALLY_STORE_FILE    "profiles.db"
#define TALLY_STORE_VERSION 1	  /* of the schema */
#define TALLY_STORE_KERNELS 50000 /* more are forgotten, those not seen for longest first */

struct tally_store;

/*
 * Opens the store in `folder` for writing, making both when they are not there. What is there but
 * is no store of this version, or is damaged, is renamed to NAME.aside (replacing an older one) and
 * a new one begun; `note` then says so in one line, and is "" otherwise. NULL with an error when
 * nothing can be written there.
 */
struct tally_store *tally_store_open(const char *folder, char note[256], struct tally_error *error);

/* Opens it for reading alone. NULL with an error; `absent` is set when there is no file yet. */
struct tally_store *tally_store_read(const char *folder, bool *absent, struct tally_error *error);

void tally_store_close(struct tally_store *store); /* NULL is allowed */

/* Whether an error of before means that the file is damaged: then close, and open anew. */
bool tally_store_damaged(const struct tally_store *store);

/* Everything between begin and commit is there after a crash, or nothing of it. */
bool tally_store_begin(struct tally_store *store, struct tally_error *error);
bool tally_store_commit(struct tally_store *store, struct tally_error *error);
void tally_store_rollback(struct tally_store *store);

/* A row of report `run` (its id) of process `pid`, as it stands now; replaces what the same run
 * said of the row before. */
bool tally_store_put(struct tally_store *store, uint64_t run, int pid,
		     const struct tally_origin *origin, const struct tally_row *row,
		     struct tally_error *error);

/*
 * Ends all runs whose process is no more: what they said is added to what earlier ones left.
 * `alive`: how many there are whose process lives. A transaction of its own.
 */
bool tally_store_end_orphans(struct tally_store *store, unsigned *alive, struct tally_error *error);

/* Forgets what is more than TALLY_STORE_KERNELS. A transaction of its own. */
bool tally_store_trim(struct tally_store *store, struct tally_error *error);

struct tally_stored {
	struct tally_origin origin;
	struct tally_row row; /* sums over all runs */
	int64_t seen;	      /* seconds since 1970 */
};

/* Calls `each` for every kernel of `origin` (NULL: of all), those seen last first, until it returns
 * false. */
bool tally_store_each(struct tally_store *store, const struct tally_origin *origin,
		      bool (*each)(void *context, const struct tally_stored *stored), void *context,
		      struct tally_error *error);

/* Calls `each` for every origin that has kernels, the one seen last first, until it returns false.
 */
bool tally_store_origins(struct tally_store *store,
			 bool (*each)(void *context, const struct tally_origin *origin),
			 void *context, struct tally_error *error);

/* Forgets the kernels of the devices whose name contains `device` (NULL: all); how many. */
bool tally_store_reset(struct tally_store *store, const char *device, unsigned *removed,
		       struct tally_error *error);

#endif
