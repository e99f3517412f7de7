/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to give way under strict priority: a pure function of the board, run by every program. */
#include <string.h>

#include "sched/board.h"

static bool same_device(const struct tally_slot *mine, const struct tally_slot *other)
{
	return tally_slot_used(other) && !memcmp(mine->device, other->device, sizeof mine->device);
}

/* How long `other`, of higher priority, asks those below it to give way: UINT64_MAX: until it says
 * otherwise, 0: it does not. */
static uint64_t holds_lower_until(const struct tally_slot *other, uint64_t now_ns)
{
	uint32_t overlap = atomic_load(&other->overlap);
	uint64_t quiet;

	if (atomic_load(&other->lapsed) || overlap == TALLY_OVERLAP_OPEN)
		return 0;
	if (overlap == TALLY_OVERLAP_HELD || atomic_load(&other->active))
		return UINT64_MAX;
	quiet = atomic_load_explicit(&other->quiet_until_ns, memory_order_relaxed);
	return quiet > now_ns && quiet - now_ns <= TALLY_GRACE_MOST_NS ? quiet : 0;
}

/* Who holds `slot`, the most urgent one, or -1; and until when they all do. */
static int find_holder(const struct tally_board *board, unsigned slot, uint64_t now_ns,
		       uint64_t *until_ns)
{
	const struct tally_slot *mine = &board->slots[slot];
	uint32_t end = atomic_load_explicit(&board->slots_end, memory_order_acquire);
	bool my_turn = atomic_load(&mine->turn);
	int holder = -1;

	*until_ns = 0;
	if (!tally_slot_used(mine))
		return -1;
	for (uint32_t i = 0; i < end && i < TALLY_BOARD_SLOTS; i++) {
		const struct tally_slot *other = &board->slots[i];
		uint64_t until;

		if (i == slot || other->priority < mine->priority || !same_device(mine, other))
			continue;
		/* An equal holds us only while it has the turn and uses it: whoever is idle never
		 * keeps the device from working, and nobody waits before tallyd's first look. */
		if (other->priority == mine->priority)
			until = !my_turn && tally_slot_claims(other) && atomic_load(&other->turn)
					? UINT64_MAX
					: 0;
		else
			until = holds_lower_until(other, now_ns);
		if (until > *until_ns)
			*until_ns = until;
		if (until && (holder < 0 || other->priority > board->slots[holder].priority))
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

int tally_policy_strict_holder(const struct tally_board *board, unsigned slot, uint64_t now_ns)
{
	uint64_t until;

	return find_holder(board, slot, now_ns, &until);
}

bool tally_policy_strict_must_yield(const struct tally_board *board, unsigned slot, uint64_t now_ns)
{
	return tally_policy_strict_holder(board, slot, now_ns) >= 0;
}

uint64_t tally_policy_strict_until(const struct tally_board *board, unsigned slot, uint64_t now_ns)
{
	uint64_t until;

	find_holder(board, slot, now_ns, &until);
	return until;
}
