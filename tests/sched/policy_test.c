/* SPDX-License-Identifier: Apache-2.0 */
/* The strict policy in simulated time: who runs when, on a board that nobody else writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/policy.h"

#define MS	1000000ull
#define QUANTUM (20 * MS)

/* A host with programs on it. A program runs in a step when it is active and need not give way. */
struct simulation {
	struct tally_board board;
	struct tally_watch watch;
	void *state;
	uint64_t now, next_look;
	uint64_t ran[TALLY_BOARD_SLOTS], last_ran[TALLY_BOARD_SLOTS], waited[TALLY_BOARD_SLOTS];
};

static int setup(void **state)
{
	struct simulation *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);

	memset(s, 0, sizeof *s);
	s->board.quantum_ns = QUANTUM;
	s->now = MS;
	s->state = calloc(1, tally_policy_strict.state_size);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	free(((struct simulation *)*state)->state);
	free(*state);
	return 0;
}

static void arrive(struct simulation *s, unsigned i, int priority, const char *device)
{
	struct tally_slot *slot = &s->board.slots[i];

	memset(slot->device, 0, sizeof slot->device);
	memcpy(slot->device, device, strlen(device));
	slot->priority = priority;
	slot->active = slot->turn = 0;
	slot->generation++;
	if (s->board.slots_end <= i)
		s->board.slots_end = i + 1;
	s->ran[i] = s->waited[i] = 0;
	s->last_ran[i] = s->now;
}

static void leave(struct simulation *s, unsigned i)
{
	s->board.slots[i].generation++;
	s->board.slots[i].active = s->board.slots[i].turn = 0;
}

static bool runs(struct simulation *s, unsigned i)
{
	return tally_slot_used(&s->board.slots[i]) && s->board.slots[i].active &&
	       !tally_policy_strict_must_yield(&s->board, i, s->now);
}

static void look(struct simulation *s)
{
	s->next_look =
		tally_watch_look(&s->watch, &tally_policy_strict, s->state, &s->board, s->now);
}

/* Lets `ns` pass in steps of a millisecond; the daemon looks when it said it would, or, as its loop
 * does, once a second. */
static void pass(struct simulation *s, uint64_t ns)
{
	for (uint64_t end = s->now + ns; s->now < end; s->now += MS) {
		if (s->now >= s->next_look)
			look(s);
		for (unsigned i = 0; i < s->board.slots_end; i++) {
			if (runs(s, i)) {
				s->ran[i] += MS;
				s->last_ran[i] = s->now + MS;
			} else if (s->board.slots[i].active &&
				   s->now - s->last_ran[i] > s->waited[i]) {
				s->waited[i] = s->now - s->last_ran[i];
			}
		}
	}
}

static void test_only_the_highest_level_runs(void **state)
{
	struct simulation *s = *state;

	for (unsigned i = 0; i < 7; i++) {
		arrive(s, i, (int)i * 10 - 30, "a");
		s->board.slots[i].active = 1;
	}
	for (unsigned top = 7; top-- > 0;) {
		uint64_t before = s->ran[top];
		pass(s, 100 * MS);
		for (unsigned i = 0; i < 7; i++)
			assert_int_equal(s->ran[i], i > top    ? 100 * MS
						    : i == top ? before + 100 * MS
							       : 0);
		s->board.slots[top].active = 0;
	}
}

/* Strict means strict: the lower level gets nothing while the higher one works, and everything in
 * the very moment it does not, without waiting for the daemon. */
static void test_lower_level_waits_and_resumes_at_once(void **state)
{
	struct simulation *s = *state;

	arrive(s, 0, TALLY_PRIORITY_HIGH, "a");
	arrive(s, 1, TALLY_PRIORITY_BEST_EFFORT, "a");
	s->board.slots[0].active = s->board.slots[1].active = 1;
	pass(s, 5000 * MS);
	assert_int_equal(s->ran[1], 0);
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), 0);
	s->board.slots[0].active = 0;
	assert_true(runs(s, 1));
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), -1);
	s->board.slots[0].active = 1;
	assert_false(runs(s, 1));
}

/* Who is idle may hold others for a moment still: not those who are let run beside it, and not when
 * it is stopped itself. */
static void test_idle_ones_hold_until_their_time(void **state)
{
	struct simulation *s = *state;
	struct tally_slot *high = &s->board.slots[0];

	arrive(s, 0, TALLY_PRIORITY_HIGH, "a");
	arrive(s, 1, TALLY_PRIORITY_BEST_EFFORT, "a");
	arrive(s, 2, TALLY_PRIORITY_HIGH, "b");
	s->board.slots[1].active = 1;
	assert_int_equal(tally_policy_strict_until(&s->board, 1, s->now), 0);
	high->active = 1;
	high->quiet_until_ns = s->now + 1000;
	assert_int_equal(tally_policy_strict_until(&s->board, 1, s->now), UINT64_MAX);
	high->active = 0;
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), 0);
	assert_int_equal(tally_policy_strict_until(&s->board, 1, s->now), s->now + 1000);
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now + 1000), -1);
	assert_int_equal(tally_policy_strict_until(&s->board, 1, s->now + 1000), 0);
	assert_int_equal(tally_policy_strict_holder(&s->board, 2, s->now), -1);
	high->overlap = TALLY_OVERLAP_OPEN;
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), -1);
	high->overlap = TALLY_OVERLAP_CLOSED;
	high->lapsed = 1;
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), -1);
	high->lapsed = 0;
	/* Further away than any grace: garbage, which would hold for ever. */
	high->quiet_until_ns = s->now + TALLY_GRACE_MOST_NS;
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), 0);
	high->quiet_until_ns++;
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), -1);
	high->quiet_until_ns = UINT64_MAX;
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), -1);
	assert_int_equal(tally_policy_strict_until(&s->board, 1, s->now), 0);
	high->quiet_until_ns = s->now + 1000;
	/* The later of two counts, and an active one more than both. */
	arrive(s, 3, TALLY_PRIORITY_HIGH + 1, "a");
	s->board.slots[3].quiet_until_ns = s->now + 700;
	assert_int_equal(tally_policy_strict_until(&s->board, 1, s->now), s->now + 1000);
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), 3);
	s->board.slots[3].active = 1;
	assert_int_equal(tally_policy_strict_until(&s->board, 1, s->now), UINT64_MAX);
}

static void test_equals_share_evenly(void **state)
{
	struct simulation *s = *state;

	for (unsigned n = 2; n <= 6; n++) {
		for (unsigned i = 0; i < n; i++)
			arrive(s, i, 5, "a");
		for (unsigned i = 0; i < n; i++)
			s->board.slots[i].active = 1;
		look(s);
		pass(s, n * 50 * QUANTUM);
		for (unsigned i = 0; i < n; i++) {
			assert_true(s->ran[i] >= 49 * QUANTUM && s->ran[i] <= 51 * QUANTUM);
			/* Nobody starves: at worst all others take one turn each. */
			assert_true(s->waited[i] <= (n - 1) * QUANTUM + MS);
			leave(s, i);
		}
		pass(s, MS);
	}
}

static void test_levels_and_devices_do_not_mix(void **state)
{
	struct simulation *s = *state;

	arrive(s, 0, 5, "a");
	arrive(s, 1, 5, "b");
	arrive(s, 2, 5, "a");
	arrive(s, 3, 9, "b");
	for (unsigned i = 0; i < 4; i++)
		s->board.slots[i].active = 1;
	look(s);
	pass(s, 100 * QUANTUM);
	assert_true(s->ran[0] >= 49 * QUANTUM && s->ran[0] <= 51 * QUANTUM);
	assert_int_equal(s->ran[0] + s->ran[2], 100 * QUANTUM);
	assert_int_equal(s->ran[1], 0);
	assert_int_equal(s->ran[3], 100 * QUANTUM);
}

/* A turn is given before the last one is taken back: in between nobody holds the other up. */
static void test_two_turns_hold_nobody(void **state)
{
	struct simulation *s = *state;

	for (unsigned i = 0; i < 3; i++) {
		arrive(s, i, TALLY_PRIORITY_BEST_EFFORT, "a");
		s->board.slots[i].active = 1;
		s->board.slots[i].turn = i < 2;
	}
	assert_true(runs(s, 0) && runs(s, 1));
	assert_false(runs(s, 2));
}

static void test_a_turn_stands_still_while_a_higher_level_runs(void **state)
{
	struct simulation *s = *state;

	arrive(s, 0, 0, "a");
	arrive(s, 1, 0, "a");
	arrive(s, 2, 100, "a");
	s->board.slots[0].active = s->board.slots[1].active = 1;
	look(s);
	unsigned holder = s->board.slots[0].turn ? 0 : 1;
	pass(s, QUANTUM / 2);
	assert_int_equal(s->ran[holder], QUANTUM / 2);
	s->board.slots[2].active = 1;
	look(s);
	pass(s, 50 * QUANTUM);
	assert_int_equal(s->board.slots[holder].turn, 1);
	assert_int_equal(s->ran[holder], QUANTUM / 2);
	s->board.slots[2].active = 0;
	look(s);
	pass(s, QUANTUM / 2);
	assert_int_equal(s->ran[holder], QUANTUM);
	assert_int_equal(s->ran[1 - holder], 0);
	pass(s, QUANTUM);
	assert_int_equal(s->ran[holder], QUANTUM);
	assert_int_equal(s->ran[1 - holder], QUANTUM);
}

static void test_no_turns_and_no_looks_for_one_alone(void **state)
{
	struct simulation *s = *state;

	arrive(s, 0, 0, "a");
	arrive(s, 1, 1, "a");
	s->board.slots[0].active = s->board.slots[1].active = 1;
	uint32_t epoch = s->board.epoch;
	look(s);
	assert_int_equal(s->next_look, UINT64_MAX);
	assert_int_equal(s->board.epoch, epoch);
	assert_int_equal(s->board.slots[0].turn + s->board.slots[1].turn, 0);
}

/* Whoever is idle holds nobody, turn or not. */
static void test_an_idle_holder_of_the_turn_lets_others_run(void **state)
{
	struct simulation *s = *state;

	arrive(s, 0, 0, "a");
	arrive(s, 1, 0, "a");
	s->board.slots[0].active = s->board.slots[1].active = 1;
	look(s);
	unsigned holder = s->board.slots[0].turn ? 0 : 1;
	assert_false(runs(s, 1 - holder));
	s->board.slots[holder].active = 0;
	assert_true(runs(s, 1 - holder));
	look(s);
	assert_int_equal(s->board.slots[holder].turn, 0);
	leave(s, holder);
	look(s);
	assert_true(runs(s, 1 - holder));
}

/* Who lets others run beside it holds nobody below, in any level; its equals take turns as ever. */
static void test_overlap_is_for_lower_levels(void **state)
{
	struct simulation *s = *state;

	for (unsigned i = 0; i < 4; i++) {
		arrive(s, i, i == 1 ? 100 : 100 - 20 * (int)i, "a");
		s->board.slots[i].overlap = TALLY_OVERLAP_CLOSED;
		s->board.slots[i].active = 1;
	}
	s->board.slots[1].active = 0;
	s->board.slots[0].overlap = TALLY_OVERLAP_OPEN;
	assert_true(runs(s, 0) && runs(s, 2));
	/* The strictness of the level below is its own. */
	assert_false(runs(s, 3));
	s->board.slots[2].overlap = TALLY_OVERLAP_OPEN;
	assert_true(runs(s, 3));
	/* All of those above have to agree. */
	s->board.slots[1].active = 1;
	assert_false(runs(s, 2) || runs(s, 3));
	assert_int_equal(tally_policy_strict_holder(&s->board, 3, s->now), 1);
	look(s);
	assert_int_equal(runs(s, 0) + runs(s, 1), 1);
	pass(s, 100 * QUANTUM);
	assert_true(s->ran[0] >= 48 * QUANTUM && s->ran[1] >= 48 * QUANTUM);
}

static void test_who_measures_itself_holds_lower_levels_while_idle(void **state)
{
	struct simulation *s = *state;

	arrive(s, 0, 100, "a");
	arrive(s, 1, 0, "a");
	arrive(s, 2, 100, "a");
	arrive(s, 3, 0, "b");
	s->board.slots[0].overlap = TALLY_OVERLAP_HELD;
	for (unsigned i = 1; i < 4; i++)
		s->board.slots[i].active = 1;
	assert_false(runs(s, 1));
	assert_int_equal(tally_policy_strict_holder(&s->board, 1, s->now), 0);
	assert_true(runs(s, 2) && runs(s, 3));
	s->board.slots[0].overlap = TALLY_OVERLAP_CLOSED;
	s->board.slots[2].active = 0;
	assert_true(runs(s, 1));
	assert_true(tally_policy_strict_rivals(&s->board, 0));
	assert_false(tally_policy_strict_rivals(&s->board, 1));
	s->board.slots[1].active = 0;
	assert_false(tally_policy_strict_rivals(&s->board, 0));
}

/* A stopped process holds nobody, above, below and among its equals, and its turn goes on. */
static void test_a_lapsed_claim_holds_nobody(void **state)
{
	struct simulation *s = *state;

	for (unsigned i = 0; i < 4; i++) {
		arrive(s, i, i < 1 ? 100 : 0, "a");
		s->board.slots[i].lapsed = 0;
		s->board.slots[i].active = 1;
	}
	pass(s, 5 * QUANTUM);
	assert_false(runs(s, 1) || runs(s, 2) || runs(s, 3));
	s->board.slots[0].lapsed = 1;
	pass(s, 30 * QUANTUM);
	for (unsigned i = 1; i < 4; i++)
		assert_true(s->ran[i] >= 9 * QUANTUM);
	unsigned holder = s->board.slots[1].turn ? 1 : s->board.slots[2].turn ? 2 : 3;
	s->board.slots[holder].lapsed = 1;
	uint64_t before = s->ran[1] + s->ran[2] + s->ran[3];
	pass(s, 20 * QUANTUM);
	assert_int_equal(s->board.slots[holder].turn, 0);
	assert_true(s->ran[1] + s->ran[2] + s->ran[3] - before >= 20 * QUANTUM);
	s->board.slots[0].lapsed = 0;
	assert_false(runs(s, 1) || runs(s, 2) || runs(s, 3));
}

/* Whatever programs do: the device never stands still while somebody has work, nobody runs beside a
 * higher level, and right after a look at most one of a level runs. */
static void test_invariants_under_random_programs(void **state)
{
	struct simulation *s = *state;
	static const char *const devices[] = {"a", "b", "c"};

	srand(1);
	for (unsigned round = 0; round < 20000; round++) {
		unsigned i = (unsigned)rand() % 12;
		struct tally_slot *slot = &s->board.slots[i];
		if (!tally_slot_used(slot))
			arrive(s, i, rand() % 3, devices[rand() % 3]);
		else if (rand() % 10 == 0)
			leave(s, i);
		else
			slot->active = !slot->active;
		bool looked = rand() % 2;
		s->now += (uint64_t)(rand() % 30) * MS;
		if (looked)
			look(s);
		for (unsigned a = 0; a < 12; a++) {
			const struct tally_slot *mine = &s->board.slots[a];
			if (!tally_slot_used(mine) || !mine->active)
				continue;
			bool somebody = false;
			for (unsigned b = 0; b < 12; b++) {
				const struct tally_slot *other = &s->board.slots[b];
				if (!tally_slot_used(other) || !other->active ||
				    memcmp(mine->device, other->device, 16))
					continue;
				somebody |= runs(s, b);
				assert_false(runs(s, a) && other->priority > mine->priority);
				assert_false(looked && a != b && runs(s, a) && runs(s, b));
			}
			assert_true(somebody);
		}
	}
}

static char heard[64];

static void hear(void *state, struct tally_board *board, enum tally_event event, unsigned slot,
		 uint64_t now_ns)
{
	static const char letters[] = {[TALLY_EVENT_ARRIVED] = 'a',
				       [TALLY_EVENT_STARTED] = 's',
				       [TALLY_EVENT_STOPPED] = 'x',
				       [TALLY_EVENT_IDLE] = 'i',
				       [TALLY_EVENT_FINISHED] = 'f'};
	size_t n = strlen(heard);

	assert_true(n + 2 < sizeof heard);
	heard[n] = letters[event];
	heard[n + 1] = (char)('0' + slot);
}

static uint64_t decide(void *state, struct tally_board *board, uint64_t now_ns)
{
	return now_ns + 5;
}

static void test_a_policy_hears_what_changed(void **state)
{
	static const struct tally_policy recorder = {.name = "recorder",
						     .event = hear,
						     .decide = decide,
						     .holder = tally_policy_strict_holder};
	struct simulation *s = *state;
	static const struct {
		int slot, action; /* 'a' arrive, 'l' leave, '1' active, '0' idle, 'r' replaced */
		const char *heard;
	} steps[] = {
		{0, 'a', "a0"},	  {0, '1', "s0"},   {1, 'a', "a1"}, {1, '1', "x0s1"},
		{1, '0', "s0i1"}, {1, '1', "x0s1"}, {0, '0', "i0"}, {1, 'r', "f1a1"},
		{1, 'l', "f1"},	  {0, '1', "s0"},   {0, 'l', "f0"}, {0, ' ', ""},
	};

	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		unsigned slot = (unsigned)steps[i].slot;
		memset(heard, 0, sizeof heard);
		if (steps[i].action == 'a')
			arrive(s, slot, (int)slot, "a");
		else if (steps[i].action == 'l')
			leave(s, slot);
		else if (steps[i].action == 'r') {
			leave(s, slot);
			arrive(s, slot, 1, "a");
		} else if (steps[i].action != ' ')
			s->board.slots[slot].active = steps[i].action == '1';
		assert_int_equal(tally_watch_look(&s->watch, &recorder, NULL, &s->board, 100), 105);
		assert_string_equal(heard, steps[i].heard);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_only_the_highest_level_runs),
		TEST(test_lower_level_waits_and_resumes_at_once),
		TEST(test_idle_ones_hold_until_their_time),
		TEST(test_equals_share_evenly),
		TEST(test_levels_and_devices_do_not_mix),
		TEST(test_two_turns_hold_nobody),
		TEST(test_a_turn_stands_still_while_a_higher_level_runs),
		TEST(test_no_turns_and_no_looks_for_one_alone),
		TEST(test_an_idle_holder_of_the_turn_lets_others_run),
		TEST(test_overlap_is_for_lower_levels),
		TEST(test_who_measures_itself_holds_lower_levels_while_idle),
		TEST(test_a_lapsed_claim_holds_nobody),
		TEST(test_invariants_under_random_programs),
		TEST(test_a_policy_hears_what_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
