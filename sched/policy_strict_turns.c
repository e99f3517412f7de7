/* SPDX-License-Identifier: Apache-2.0 */
/* Strict priority, the daemon's half: equals take turns of one quantum each, round robin. */
#include <string.h>

#include "sched/policy.h"

/* What each program has used of its turn: only time in which it ran counts, so that a turn that a
 * higher priority cut short is not lost. */
struct strict {
	uint64_t ran_ns[TALLY_BOARD_SLOTS];
	uint64_t since_ns[TALLY_BOARD_SLOTS]; /* valid while running */
	bool running[TALLY_BOARD_SLOTS];
	uint32_t last[TALLY_BOARD_SLOTS]; /* of the group with this first slot: who had the turn */
};

static void event(void *state, struct tally_board *board, enum tally_event event, unsigned slot,
		  uint64_t now_ns)
{
	struct strict *s = state;

	if (s->running[slot])
		s->ran_ns[slot] += now_ns - s->since_ns[slot];
	s->running[slot] = event == TALLY_EVENT_STARTED;
	s->since_ns[slot] = now_ns;
	/* Who goes idle gives its turn back; used-up time is forgotten with it. */
	if (event == TALLY_EVENT_IDLE || event == TALLY_EVENT_ARRIVED ||
	    event == TALLY_EVENT_FINISHED) {
		s->ran_ns[slot] = 0;
		if (atomic_exchange(&board->slots[slot].turn, 0))
			tally_board_changed(board);
	}
}

static bool same_group(const struct tally_slot *a, const struct tally_slot *b)
{
	return tally_slot_used(b) && a->priority == b->priority &&
	       !memcmp(a->device, b->device, sizeof a->device);
}

static void give_turn(struct strict *s, struct tally_board *board, unsigned first, unsigned to,
		      uint64_t now_ns)
{
	for (unsigned i = first; i < TALLY_BOARD_SLOTS; i++)
		if (i != to && same_group(&board->slots[first], &board->slots[i]))
			atomic_store(&board->slots[i].turn, 0);
	atomic_store(&board->slots[to].turn, 1);
	s->last[first] = to;
	s->ran_ns[to] = 0;
	s->since_ns[to] = now_ns;
	tally_board_changed(board);
}

/* Decides for the group whose lowest slot is `first`; returns when to look at it again. */
static uint64_t decide_group(struct strict *s, struct tally_board *board, unsigned first,
			     uint64_t now_ns)
{
	unsigned members = 0, active = 0, next = TALLY_BOARD_SLOTS, lowest = TALLY_BOARD_SLOTS;
	int holder = -1;

	for (unsigned i = first; i < TALLY_BOARD_SLOTS; i++) {
		struct tally_slot *slot = &board->slots[i];
		if (!same_group(&board->slots[first], slot))
			continue;
		members++;
		if (!tally_slot_claims(slot))
			continue;
		active++;
		if (atomic_load(&slot->turn))
			holder = (int)i;
		if (lowest == TALLY_BOARD_SLOTS)
			lowest = i;
		if (i > s->last[first] && next == TALLY_BOARD_SLOTS)
			next = i;
	}
	if (members < 2)
		return UINT64_MAX;
	if (next == TALLY_BOARD_SLOTS)
		next = lowest;
	if (active < 2)
		return now_ns + board->quantum_ns;
	if (holder < 0) {
		give_turn(s, board, first, next, now_ns);
		return now_ns + board->quantum_ns;
	}
	/* Held itself, by a higher priority: its turn stands still. */
	if (!s->running[holder])
		return now_ns + board->quantum_ns;
	uint64_t ran = s->ran_ns[holder] + (now_ns - s->since_ns[holder]);
	if (ran < board->quantum_ns)
		return now_ns + (board->quantum_ns - ran);
	s->ran_ns[holder] = 0;
	s->since_ns[holder] = now_ns;
	give_turn(s, board, first, next, now_ns);
	return now_ns + board->quantum_ns;
}

static uint64_t decide(void *state, struct tally_board *board, uint64_t now_ns)
{
	uint64_t again = UINT64_MAX;

	for (unsigned i = 0; i < TALLY_BOARD_SLOTS; i++) {
		bool is_first = tally_slot_used(&board->slots[i]);
		for (unsigned j = 0; is_first && j < i; j++)
			is_first = !same_group(&board->slots[i], &board->slots[j]);
		if (!is_first)
			continue;
		uint64_t then = decide_group(state, board, i, now_ns);
		if (then < again)
			again = then;
	}
	return again;
}

const struct tally_policy tally_policy_strict = {
	.name = "strict",
	.summary = "higher priorities first; equals take turns",
	.state_size = sizeof(struct strict),
	.event = event,
	.decide = decide,
	.holder = tally_policy_strict_holder,
};
