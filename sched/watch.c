/* SPDX-License-Identifier: Apache-2.0 */
/* Turns what changed on the board since the last look into events for a policy: see policy.h. */
#include "sched/policy.h"

enum { ABSENT, IDLE, RUNNING, HELD };

static void look_at(struct tally_watch *watch, const struct tally_policy *policy, void *state,
		    struct tally_board *board, unsigned i, uint64_t now_ns)
{
	struct tally_slot *slot = &board->slots[i];
	uint32_t generation = atomic_load(&slot->generation);
	uint8_t new_state = IDLE;

	/* Another owner since: the old one's end and the new one's arrival both count. */
	if (watch->state[i] != ABSENT && watch->generation[i] != generation) {
		policy->event(state, board, TALLY_EVENT_FINISHED, i, now_ns);
		watch->state[i] = ABSENT;
	}
	watch->generation[i] = generation;
	if (!(generation & 1))
		return;
	if (watch->state[i] == ABSENT) {
		policy->event(state, board, TALLY_EVENT_ARRIVED, i, now_ns);
		watch->state[i] = IDLE;
	}
	if (tally_slot_claims(slot))
		new_state = policy->holder(board, i, now_ns) >= 0 ? HELD : RUNNING;
	if (new_state == watch->state[i])
		return;
	watch->state[i] = new_state;
	policy->event(state, board,
		      new_state == IDLE	  ? TALLY_EVENT_IDLE
		      : new_state == HELD ? TALLY_EVENT_STOPPED
					  : TALLY_EVENT_STARTED,
		      i, now_ns);
}

static void look(struct tally_watch *watch, const struct tally_policy *policy, void *state,
		 struct tally_board *board, uint64_t now_ns)
{
	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++)
		look_at(watch, policy, state, board, i, now_ns);
}

uint64_t tally_watch_look(struct tally_watch *watch, const struct tally_policy *policy, void *state,
			  struct tally_board *board, uint64_t now_ns)
{
	uint64_t again;

	look(watch, policy, state, board, now_ns);
	again = policy->decide(state, board, now_ns);
	look(watch, policy, state, board, now_ns);
	return again;
}
