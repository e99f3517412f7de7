/* SPDX-License-Identifier: Apache-2.0 */
/* The line of those who wait for room; see line.h. */
#include "backends/cuda/interpose/line.h"

/* What a place is good for beyond what the predictions say. */
#define GOOD_NS 2000000

bool tally_line_free(const struct tally_device *d, const struct tally_place *place)
{
	uint64_t now = d->line && d->line != place ? tally_now() : 0;

	for (const struct tally_place *p = d->line; p && p != place; p = p->next)
		if (now < p->until)
			return false;
	return true;
}

void tally_line_leave(struct tally_device *d, struct tally_place *place)
{
	struct tally_place **p = &d->line;

	if (!place->taken)
		return;
	while (*p != place)
		p = &(*p)->next;
	*p = place->next;
	place->taken = false;
	atomic_fetch_sub(&d->in_line, 1);
	tally_changed(d);
}

void tally_line_join(struct tally_device *d, struct tally_place *place)
{
	struct tally_place **end = &d->line;

	if (place->taken && tally_now() < place->until)
		return;
	tally_line_leave(d, place);
	while (*end)
		end = &(*end)->next;
	*place = (struct tally_place){
		.taken = true, .until = tally_now() + 2 * atomic_load(&d->queued_ns) + GOOD_NS};
	*end = place;
	atomic_fetch_add(&d->in_line, 1);
}
