/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of earlier runs, ready to be handed out; see offers.h. */
#include "profiler/offers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tally_offers_init(struct tally_offers *offers)
{
	*offers = (struct tally_offers){.handed = -1};
	pthread_mutex_init(&offers->lock, NULL);
}

void tally_offers_close(struct tally_offers *offers)
{
	for (unsigned i = 0; i < TALLY_OFFERS; i++)
		if (offers->offer[i].size)
			close(offers->offer[i].fd);
	if (offers->handed >= 0)
		close(offers->handed);
	pthread_mutex_destroy(&offers->lock);
}

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
static void place(struct tally_offers *offers, const struct tally_offer *offer)
{
	struct tally_offer *to = NULL;

	pthread_mutex_lock(&offers->lock);
	for (unsigned i = 0; i < TALLY_OFFERS && !to; i++)
		if (!memcmp(&offers->offer[i].origin, &offer->origin, sizeof offer->origin))
			to = &offers->offer[i];
	for (unsigned i = 0; i < TALLY_OFFERS && !to; i++)
		if (!offers->offer[i].size)
			to = &offers->offer[i];
	if (!to) {
		close(offers->offer[0].fd);
		memmove(&offers->offer[0], &offers->offer[1],
			(TALLY_OFFERS - 1) * sizeof offers->offer[0]);
		to = &offers->offer[TALLY_OFFERS - 1];
	} else if (to->size) {
		close(to->fd);
	}
	*to = *offer;
	pthread_mutex_unlock(&offers->lock);
}

bool tally_offers_make(struct tally_offers *offers, struct tally_store *store,
		       const struct tally_origin *origin, struct tally_error *error)
{
	struct tally_offer offer = {.origin = *origin};
	struct gathered g = {0};

	if (tally_store_each(store, origin, gather, &g, error) && g.count) {
		offer.fd = tally_profiles_make(origin, g.rows, g.count, &offer.size, error);
		if (offer.fd >= 0)
			place(offers, &offer);
	}
	free(g.rows);
	return !tally_failed(error);
}

struct origins {
	struct tally_origin origin[TALLY_OFFERS];
	unsigned count;
};

static bool note_origin(void *context, const struct tally_origin *origin)
{
	struct origins *o = context;

	o->origin[o->count++] = *origin;
	return o->count < TALLY_OFFERS;
}

bool tally_offers_load(struct tally_offers *offers, struct tally_store *store,
		       struct tally_error *error)
{
	struct origins o = {.count = 0};
	bool ok = tally_store_origins(store, note_origin, &o, error);

	for (unsigned i = 0; i < o.count; i++)
		ok &= tally_offers_make(offers, store, &o.origin[i], error);
	return ok;
}

void tally_offers_give(struct tally_offers *offers, const struct tally_origin *origin,
		       struct tally_attachment *answer)
{
	pthread_mutex_lock(&offers->lock);
	if (offers->handed >= 0)
		close(offers->handed);
	offers->handed = -1;
	for (unsigned i = 0; i < TALLY_OFFERS; i++) {
		const struct tally_offer *o = &offers->offer[i];

		if (!o->size || memcmp(&o->origin, origin, sizeof *origin))
			continue;
		offers->handed = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		if (offers->handed >= 0)
			*answer = (struct tally_attachment){offers->handed, TALLY_PROFILES_KIND,
							    o->size};
	}
	pthread_mutex_unlock(&offers->lock);
}
