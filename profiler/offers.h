/* SPDX-License-Identifier: Apache-2.0 */
/* What the store has of earlier runs, ready to be handed to programs that join, by device, driver
 * and compiler (profiles.h). */
#ifndef TALLY_PROFILER_OFFERS_H
#define TALLY_PROFILER_OFFERS_H

#include <pthread.h>

#include "profiler/store.h"
#include "sched/attachment.h"

#define TALLY_OFFERS 8 /* origins that are kept ready */

struct tally_offer {
	struct tally_origin origin;
	int fd;
	uint64_t size; /* bytes; 0: this place is free */
};

struct tally_offers {
	pthread_mutex_t lock;
	struct tally_offer offer[TALLY_OFFERS];
	int handed; /* what the last program was given: it has its own by the next; -1: none */
};

void tally_offers_init(struct tally_offers *offers);

/* Closes every descriptor. No other thread uses it any more. */
void tally_offers_close(struct tally_offers *offers);

/* Makes the offer for `origin` anew, or those for the origins that were seen last. False with an
 * error: what was offered before still is. The store's thread. */
bool tally_offers_make(struct tally_offers *offers, struct tally_store *store,
		       const struct tally_origin *origin, struct tally_error *error);
bool tally_offers_load(struct tally_offers *offers, struct tally_store *store,
		       struct tally_error *error);

/* The offer for `origin`, as a descriptor that stays open until the next call; `answer` stays what
 * it is where there is none. Any thread. */
void tally_offers_give(struct tally_offers *offers, const struct tally_origin *origin,
		       struct tally_attachment *answer);

#endif
