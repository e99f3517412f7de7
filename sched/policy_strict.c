/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to give way under strict priority: a pure function of the board, run by every program. */
#include <string.h>

#include "sched/board.h"

static bool competes(const struct tally_slot *mine, const struct tally_slot *other)
{
	return tally_slot_used(other) && atomic_load(&other->active) &&
	       !memcmp(mine->device, other->device, sizeof mine->device);
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
		if (i == slot || other->priority < mine->priority || !competes(mine, other))
			continue;
		/* An equal holds us only while it has the turn and uses it: whoever is idle never
		 * keeps the device from working, and nobody waits before tallyd's first look. */
		if (other->priority == mine->priority && (my_turn || !atomic_load(&other->turn)))
			continue;
		if (holder < 0 || other->priority > board->slots[holder].priority)
			holder = (int)i;
	}
	return holder;
}

bool tally_policy_strict_must_yield(const struct tally_board *board, unsigned slot)
{
	return tally_policy_strict_holder(board, slot) >= 0;
}
