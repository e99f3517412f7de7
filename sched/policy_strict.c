/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to give way under strict priority: a pure function of the board, run by every program. */
#include <string.h>

#include "sched/board.h"

static bool same_device(const struct tally_slot *mine, const struct tally_slot *other)
{
	return tally_slot_used(other) && !memcmp(mine->device, other->device, sizeof mine->device);
}

/* Whether `other`, of higher priority, asks `mine` to give way. */
static bool holds_lower(const struct tally_slot *other)
{
	uint32_t overlap = atomic_load(&other->overlap);

	if (atomic_load(&other->lapsed) || overlap == TALLY_OVERLAP_OPEN)
		return false;
	return overlap == TALLY_OVERLAP_HELD || atomic_load(&other->active);
}

int tally_policy_strict_holder(const struct tally_board *board, unsigned slot)
{
	const struct tally_slot *mine = &board->slots[slot];
	uint32_t end = atomic_load_explicit(&board->slots_end, memory_order_acquire);
	bool my_turn = atomic_load(&mine->turn);
	int holder = -1;

	if (!tally_slot_used(mine))
		return -1;
	for (uint32_t i = 0; i < end && i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *other = &board->slots[i];
		bool holds;

		if (i == slot || other->priority < mine->priority || !same_device(mine, other))
			continue;
		/* An equal holds us only while it has the turn and uses it: whoever is idle never
		 * keeps the device from working, and nobody waits before tallyd's first look. */
		if (other->priority == mine->priority)
			holds = !my_turn && tally_slot_claims(other) && atomic_load(&other->turn);
		else
			holds = holds_lower(other);
		if (holds && (holder < 0 || other->priority > board->slots[holder].priority))
			holder = (int)i;
	}
	return holder;
}

bool tally_policy_strict_rivals(const struct tally_board *board, unsigned slot)
{
	const struct tally_slot *mine = &board->slots[slot];
	uint32_t end = atomic_load_explicit(&board->slots_end, memory_order_acquire);

	for (uint32_t i = 0; i < end && i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *other = &board->slots[i];

		if (other->priority < mine->priority && atomic_load(&other->active) &&
		    same_device(mine, other))
			return true;
	}
	return false;
}

bool tally_policy_strict_must_yield(const struct tally_board *board, unsigned slot)
{
	return tally_policy_strict_holder(board, slot) >= 0;
}
