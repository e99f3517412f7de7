/* SPDX-License-Identifier: Apache-2.0 */
/* The choice, from made-up kernels: a device in simulated time whose answers are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/choice.h"
#include "profiler/report.h"

#define ALL ((1u << TALLY_LEVELS) - 1)
#define US  1000u

static const struct tally_choice_options paper; /* all of them the defaults */

static struct tally_known kernel(uint64_t blocks, uint32_t threads, uint64_t wave, uint32_t allowed)
{
	return (struct tally_known){
		.blocks = blocks, .threads = threads, .wave = wave, .allowed = allowed};
}

static void measured(struct tally_known *k, enum tally_level level, uint64_t ns)
{
	k->level[level].samples = 50;
	k->level[level].ns = ns;
}

static void stopped(struct tally_known *k, enum tally_level level, uint64_t p99)
{
	k->level[level].stops = 500;
	k->level[level].stop_p50_ns = p99 / 2;
	k->level[level].stop_p90_ns = p99 / 4 * 3;
	k->level[level].stop_p99_ns = p99;
}

static void expect_(const struct tally_known *k, const struct tally_choice_options *o,
		    enum tally_level level, enum tally_reason reason, int line)
{
	struct tally_decision d = tally_choose(k, o);

	if (d.choice.level != level || d.choice.reason != reason)
		fail_msg("line %d: %s because %s", line, tally_level_word(d.choice.level),
			 tally_reason_word(d.choice.reason));
}
#define expect(k, level, reason)                                                                   \
	expect_(k, &paper, TALLY_LEVEL_##level, TALLY_WHY_##reason, __LINE__)

static void test_short_kernels_run_as_they_are(void **state)
{
	struct tally_known k = kernel(2000, 256, 1056, TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD));

	(void)state;
	measured(&k, TALLY_LEVEL_GATE, 12 * US);
	measured(&k, TALLY_LEVEL_GUARD, 13 * US);
	expect(&k, GATE, SHORT);
	/* As long as the bound: still; longer: not. */
	measured(&k, TALLY_LEVEL_GATE, TALLY_BOUND_NS);
	measured(&k, TALLY_LEVEL_GUARD, TALLY_BOUND_NS + 300);
	expect(&k, GATE, SHORT);
	measured(&k, TALLY_LEVEL_GATE, TALLY_BOUND_NS + 1);
	stopped(&k, TALLY_LEVEL_GUARD, 25 * US);
	expect(&k, GUARD, LONG);
}

static void test_long_kernels_are_guarded(void **state)
{
	/* 4 waves of 5 us each would do; 20 us until they notice, 5 for a block, 4224 x 1.2 ns. */
	struct tally_known k = kernel(4224, 128, 1056, TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD));

	(void)state;
	measured(&k, TALLY_LEVEL_GATE, 40 * US);
	measured(&k, TALLY_LEVEL_GUARD, 41 * US);
	k.level[TALLY_LEVEL_GUARD].ns = 24 * US;
	expect(&k, GUARD, LONG);
	struct tally_decision d = tally_choose(&k, &paper);
	assert_int_equal(d.stop_ns, 20 * US + 6 * US + 5068);
	assert_false(d.stop_measured);
	assert_int_equal(d.duration_ns, 24 * US);
	/* What was measured counts, not what was worked out. */
	stopped(&k, TALLY_LEVEL_GUARD, 28 * US);
	d = tally_choose(&k, &paper);
	assert_int_equal(d.stop_ns, 28 * US);
	assert_true(d.stop_measured);
	stopped(&k, TALLY_LEVEL_GUARD, 39 * US);
	expect(&k, GUARD, OVER_BOUND);
	stopped(&k, TALLY_LEVEL_GUARD, 79 * US); /* seldom so late */
	expect(&k, GUARD, OVER_BOUND);
	stopped(&k, TALLY_LEVEL_GUARD, 120 * US); /* usually later than its end */
	expect(&k, GATE, OVER_BOUND);
}

static void test_huge_grids_are_sliced(void **state)
{
	struct tally_known k =
		kernel(1000000, 256, 1056,
		       TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD) | TALLY_LEVEL_BIT(TALLY_LEVEL_SLICE));

	(void)state;
	measured(&k, TALLY_LEVEL_GUARD, 2000 * US);
	expect(&k, SLICE, MANY_BLOCKS);
	struct tally_decision d = tally_choose(&k, &paper);
	/* Whole waves; notice 20 us, a block 2.1 us, and the slice is skipped in the rest. */
	assert_int_equal(d.choice.slice % 1056, 0);
	assert_in_range(d.choice.slice, 1056, 9500 * US / 2400);
	assert_true(d.stop_ns <= TALLY_BOUND_NS);
	/* A grid that is skipped in time is not sliced. */
	k.blocks = 2112;
	measured(&k, TALLY_LEVEL_GUARD, 8 * US);
	k.current = (struct tally_choice){TALLY_LEVEL_GUARD, TALLY_WHY_FASTEST, 0};
	assert_int_not_equal(tally_choose(&k, &paper).choice.level, TALLY_LEVEL_SLICE);
}

static void test_persistent_where_slices_cost_too_much(void **state)
{
	struct tally_known k =
		kernel(1000000, 1024, 264, ALL & ~TALLY_LEVEL_BIT(TALLY_LEVEL_OPAQUE));

	(void)state;
	measured(&k, TALLY_LEVEL_GUARD, 20000 * US);
	measured(&k, TALLY_LEVEL_SLICE, 24000 * US);
	measured(&k, TALLY_LEVEL_PERSIST, 21000 * US);
	expect(&k, PERSIST, MANY_BLOCKS);
	/* It turns out slower than the slices are. */
	measured(&k, TALLY_LEVEL_PERSIST, 30000 * US);
	expect(&k, SLICE, MANY_BLOCKS);
	/* A device where skipping costs nothing: the cheapest. */
	struct tally_choice_options o = {.skip_ps = 1};
	expect_(&k, &o, TALLY_LEVEL_GUARD, TALLY_WHY_LONG, __LINE__);
}

static void test_what_cannot_be_stopped(void **state)
{
	struct tally_known k = kernel(5000, 256, 1056, 0);

	(void)state;
	k.barred = TALLY_WHY_NO_CODE;
	expect(&k, GATE, NO_CODE); /* not measured yet, and it does not matter */
	measured(&k, TALLY_LEVEL_GATE, 500 * US);
	expect(&k, GATE, NO_CODE);
	measured(&k, TALLY_LEVEL_GATE, 5 * US);
	expect(&k, GATE, SHORT);
	/* Its code can be patched: the place for it. */
	k.allowed = TALLY_LEVEL_BIT(TALLY_LEVEL_OPAQUE);
	measured(&k, TALLY_LEVEL_GATE, 35 * US);
	k.level[TALLY_LEVEL_OPAQUE].samples = 0;
	k.blocks = 2112;
	stopped(&k, TALLY_LEVEL_OPAQUE, 25 * US);
	expect(&k, OPAQUE, LONG);
	/* All blocks at once. */
	k = kernel(132, 256, 132, ALL);
	measured(&k, TALLY_LEVEL_GATE, 900 * US);
	expect(&k, GATE, ONE_WAVE);
	assert_int_equal(tally_choose(&k, &paper).stop_ns, 900 * US);
}

/* Patched machine code: a decision of 0.42 us a block, and cheaper skipping. */
static void test_machine_code(void **state)
{
	/* 100 waves of 10 us: 4 % slower, and any block soon at its end. */
	struct tally_known k = kernel(13200, 256, 132, TALLY_LEVEL_BIT(TALLY_LEVEL_OPAQUE));
	struct tally_decision d;

	(void)state;
	measured(&k, TALLY_LEVEL_GATE, 1000 * US);
	d = tally_choose(&k, &paper);
	assert_int_equal(d.choice.level, TALLY_LEVEL_OPAQUE);
	assert_int_equal(d.duration_ns, 1042 * US);
	assert_int_equal(d.stop_ns, 20 * US + 10 * US + 13200 * 1418 / 1000);
	assert_int_equal(d.choice.reason, TALLY_WHY_OVER_BOUND);
	k.blocks = 660;
	measured(&k, TALLY_LEVEL_GATE, 50 * US);
	expect(&k, OPAQUE, LONG);
	/* Over the bound, and on average as it is nothing would be won: 20 us, a block of 12. */
	measured(&k, TALLY_LEVEL_GATE, 60 * US);
	expect(&k, GATE, OVER_BOUND);
	measured(&k, TALLY_LEVEL_GATE, 90 * US);
	expect(&k, OPAQUE, OVER_BOUND);
	/* Short ones stay as they are, also to try; none is sliced: each slice has the whole grid.
	 */
	measured(&k, TALLY_LEVEL_GATE, 30 * US);
	expect(&k, GATE, SHORT);
	k.launches = 5000;
	measured(&k, TALLY_LEVEL_OPAQUE, 29 * US); /* whatever was measured */
	expect(&k, GATE, SHORT);
	k = kernel(400000, 256, 1056, TALLY_LEVEL_BIT(TALLY_LEVEL_OPAQUE));
	measured(&k, TALLY_LEVEL_GATE, 1600 * US);
	d = tally_choose(&k, &paper);
	assert_int_equal(d.choice.level, TALLY_LEVEL_OPAQUE);
	assert_int_equal(d.choice.slice, 0);
	/* So many tiny blocks that skipping them takes nearly as long as running them. */
	measured(&k, TALLY_LEVEL_GATE, 800 * US);
	expect(&k, GATE, OVER_BOUND);
	/* A persistent kernel: as many blocks as run at once. */
	k = kernel(132, 384, 132, TALLY_LEVEL_BIT(TALLY_LEVEL_OPAQUE));
	measured(&k, TALLY_LEVEL_GATE, 2600 * US);
	expect(&k, GATE, ONE_WAVE);
}

static void test_before_anything_is_measured(void **state)
{
	struct tally_known k = kernel(100, 256, 0, ALL);

	(void)state;
	expect(&k, GATE, UNMEASURED); /* few blocks: as it is */
	assert_true(tally_choose(&k, &paper).measure);
	assert_int_equal(tally_choose(&k, &paper).stop_ns, 0);
	k = kernel(3000, 256, 0, ALL);
	expect(&k, GUARD, UNMEASURED); /* several waves: better safe */
	k = kernel(3000, 256, 4000, ALL);
	expect(&k, GATE, UNMEASURED);
	k = kernel(1000000, 256, 0, ALL);
	expect(&k, SLICE, UNMEASURED);
	assert_true(tally_choose(&k, &paper).choice.slice >= 512);
	k = kernel(1000000, 256, 0, TALLY_LEVEL_BIT(TALLY_LEVEL_PERSIST));
	expect(&k, PERSIST, UNMEASURED);
	k = kernel(1000000, 256, 0, 0);
	expect(&k, GATE, UNMEASURED);
}

static void test_a_fence_costs(void **state)
{
	struct tally_known k = kernel(2112, 256, 1056, TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD));
	struct tally_choice_options o = {.fence_ns = 12 * US};

	(void)state;
	measured(&k, TALLY_LEVEL_GATE, 10 * US);
	measured(&k, TALLY_LEVEL_GUARD, 11 * US);
	stopped(&k, TALLY_LEVEL_GUARD, 25 * US);
	expect(&k, GATE, SHORT);
	expect_(&k, &o, TALLY_LEVEL_GUARD, TALLY_WHY_FASTEST, __LINE__);
	/* A generous bound changes what is short. */
	o = (struct tally_choice_options){.bound_ns = 5 * US};
	assert_int_equal(tally_choose(&k, &o).choice.reason, TALLY_WHY_OVER_BOUND);
}

/* The largest of a few stops is what else the machine did; of many it is the kernel's. */
static void test_one_late_stop_of_a_few(void **state)
{
	struct tally_known k = kernel(1320, 256, 132, TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD));
	struct tally_level_known *l = &k.level[TALLY_LEVEL_GUARD];

	(void)state;
	measured(&k, TALLY_LEVEL_GATE, 60 * US);
	measured(&k, TALLY_LEVEL_GUARD, 61 * US);
	expect(&k, GUARD, LONG);
	*l = (struct tally_level_known){.samples = 50,
					.ns = 61 * US,
					.stops = 15,
					.stop_p50_ns = 900 * US,
					.stop_p90_ns = 900 * US,
					.stop_p99_ns = 900 * US};
	expect(&k, GUARD, LONG); /* too few to be believed */
	l->stops = 16;
	expect(&k, GATE, OVER_BOUND);
	l->stop_p50_ns = 22 * US;
	l->stop_p90_ns = 26 * US;
	expect(&k, GUARD, LONG);
	assert_int_equal(tally_choose(&k, &paper).stop_ns, 26 * US);
	l->stops = 128;
	expect(&k, GUARD, OVER_BOUND);
	assert_int_equal(tally_choose(&k, &paper).stop_ns, 900 * US);
}

/* Where nothing is in time a form that stops a little sooner is not taken at any price. */
static void test_over_the_bound_the_price_counts(void **state)
{
	struct tally_known k =
		kernel(13200, 256, 132,
		       TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD) | TALLY_LEVEL_BIT(TALLY_LEVEL_PERSIST));

	(void)state;
	measured(&k, TALLY_LEVEL_GATE, 9000 * US);
	measured(&k, TALLY_LEVEL_GUARD, 9000 * US);
	measured(&k, TALLY_LEVEL_PERSIST, 20000 * US);
	stopped(&k, TALLY_LEVEL_GUARD, 110 * US);
	stopped(&k, TALLY_LEVEL_PERSIST, 100 * US);
	expect(&k, GUARD, OVER_BOUND);
	stopped(&k, TALLY_LEVEL_GUARD, 150 * US);
	expect(&k, PERSIST, OVER_BOUND);
	measured(&k, TALLY_LEVEL_PERSIST, 9000 * US);
	stopped(&k, TALLY_LEVEL_GUARD, 100 * US);
	k.current = (struct tally_choice){TALLY_LEVEL_PERSIST, TALLY_WHY_OVER_BOUND, 0};
	expect(&k, PERSIST, OVER_BOUND);
	/* A block takes as long in every form: the one that was disturbed less tells. */
	k = kernel(264, 256, 132, TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD));
	measured(&k, TALLY_LEVEL_GATE, 500 * US);
	measured(&k, TALLY_LEVEL_GUARD, 1100 * US);
	expect(&k, GUARD, OVER_BOUND);
}

static void test_small_differences_do_not_flip(void **state)
{
	struct tally_known k =
		kernel(2112, 128, 1056,
		       TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD) | TALLY_LEVEL_BIT(TALLY_LEVEL_PERSIST));

	(void)state;
	measured(&k, TALLY_LEVEL_GATE, 500 * US);
	measured(&k, TALLY_LEVEL_GUARD, 100 * US);
	measured(&k, TALLY_LEVEL_PERSIST, 97 * US);
	stopped(&k, TALLY_LEVEL_GUARD, 25 * US);
	stopped(&k, TALLY_LEVEL_PERSIST, 25 * US);
	k.current = (struct tally_choice){TALLY_LEVEL_GUARD, TALLY_WHY_LONG, 0};
	expect(&k, GUARD, LONG);
	k.current = (struct tally_choice){0};
	expect(&k, PERSIST, FASTEST);
	k.current = (struct tally_choice){TALLY_LEVEL_GUARD, TALLY_WHY_LONG, 0};
	measured(&k, TALLY_LEVEL_PERSIST, 90 * US);
	expect(&k, PERSIST, FASTEST);
	/* What is being explored has no claim to stay. */
	k.current = (struct tally_choice){TALLY_LEVEL_GUARD, TALLY_WHY_EXPLORING, 0};
	measured(&k, TALLY_LEVEL_PERSIST, 97 * US);
	expect(&k, PERSIST, FASTEST);
}

static void test_predictions(void **state)
{
	struct tally_known k = kernel(1000, 256, 0, ALL);

	(void)state;
	assert_int_equal(tally_predict(&k, TALLY_LEVEL_GUARD, 500), 0);
	measured(&k, TALLY_LEVEL_GATE, 100 * US);
	assert_int_equal(tally_predict(&k, TALLY_LEVEL_GATE, 500), 50 * US);
	assert_in_range(tally_predict(&k, TALLY_LEVEL_GUARD, 500), 50 * US, 52 * US);
	measured(&k, TALLY_LEVEL_GUARD, 200 * US);
	assert_int_equal(tally_predict(&k, TALLY_LEVEL_GUARD, 500), 100 * US);
	assert_int_equal(tally_predict(&(struct tally_known){0}, TALLY_LEVEL_GATE, 5), 0);
	/* What an H200 was measured to take. */
	assert_int_equal(tally_skip_ps(128), 1200);
	assert_int_equal(tally_skip_ps(256), 2400);
	assert_in_range(tally_skip_ps(512), 4700, 4800);
	assert_in_range(tally_skip_ps(1024), 9400, 9600);
	assert_int_equal(tally_skip_ps(32), 1200);
}

/* A device in simulated time: what each form of a kernel really takes. */
struct device {
	uint64_t ns[TALLY_LEVELS], stop[TALLY_LEVELS]; /* 0: the form cannot be had */
	uint64_t run[TALLY_LEVELS];		       /* launches that ran in each form */
};

/* Runs `launches` launches as a backend would: chooses when due, times what it is told to, and a
 * stop comes every 10th launch. */
static enum tally_level simulate(struct device *d, struct tally_known *k, uint64_t launches)
{
	struct tally_decision now = {0};

	for (unsigned i = 0; i < TALLY_LEVELS; i++)
		if (d->ns[i])
			k->allowed |= TALLY_LEVEL_BIT(i);
	for (uint64_t n = 0; n < launches; n++, k->launches++) {
		bool due = tally_choice_due(k->launches);
		if (due) {
			now = tally_choose(k, &paper);
			k->current = now.choice;
		}
		struct tally_level_known *l = &k->level[now.choice.level];
		assert_true(d->ns[now.choice.level] > 0);
		d->run[now.choice.level]++;
		if (due && now.measure) {
			l->ns = (l->ns * l->samples + d->ns[now.choice.level]) / (l->samples + 1);
			l->samples++;
		}
		if (n % 10 == 9) {
			l->stops++;
			l->stop_p50_ns = l->stop_p90_ns = l->stop_p99_ns =
				d->stop[now.choice.level];
		}
	}
	return now.choice.level;
}

static void test_it_finds_the_best_form(void **state)
{
	(void)state;
	/* Each once the best of those in time. */
	static const struct {
		uint64_t blocks, ns[TALLY_LEVELS], stop[TALLY_LEVELS];
		enum tally_level best;
	} cases[] = {
		{1320,
		 {20 * US, 22 * US, 30 * US, 25 * US},
		 {20 * US, 21 * US, 21 * US, 21 * US},
		 TALLY_LEVEL_GATE},
		{1320,
		 {60 * US, 61 * US, 70 * US, 66 * US},
		 {60 * US, 29 * US, 28 * US, 26 * US},
		 TALLY_LEVEL_GUARD},
		{13200,
		 {600 * US, 610 * US, 640 * US, 900 * US},
		 {600 * US, 57 * US, 28 * US, 26 * US},
		 TALLY_LEVEL_SLICE},
		{13200,
		 {600 * US, 610 * US, 900 * US, 640 * US},
		 {600 * US, 57 * US, 28 * US, 26 * US},
		 TALLY_LEVEL_PERSIST},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tally_known k = kernel(cases[i].blocks, 256, 132, 0);
		struct device d = {0};
		memcpy(d.ns, cases[i].ns, sizeof d.ns);
		memcpy(d.stop, cases[i].stop, sizeof d.stop);
		enum tally_level end = simulate(&d, &k, 900);
		if (end != cases[i].best)
			fail_msg("case %u ended as %s", i, tally_level_word(end));
		/* Once it knows, nearly everything runs so; the rest measures. */
		memset(d.run, 0, sizeof d.run);
		simulate(&d, &k, 20000);
		if (d.run[cases[i].best] < 17000)
			fail_msg("case %u: %u of 20000 in the best form", i,
				 (unsigned)d.run[cases[i].best]);
	}
}

static void test_it_follows_a_kernel_that_changes(void **state)
{
	struct tally_known k = kernel(4224, 128, 1056, 0);
	struct device d = {.ns = {15 * US, 16 * US}, .stop = {15 * US, 25 * US}};

	(void)state;
	assert_int_equal(simulate(&d, &k, 200), TALLY_LEVEL_GATE);
	d.ns[TALLY_LEVEL_GATE] = 400 * US;
	d.ns[TALLY_LEVEL_GUARD] = 410 * US;
	d.stop[TALLY_LEVEL_GATE] = 400 * US;
	assert_int_equal(simulate(&d, &k, 2000), TALLY_LEVEL_GUARD);
}

static void test_what_earlier_runs_left(void **state)
{
	struct tally_report_identity identity = {.name = "t"};
	unsigned grid[3] = {2112, 1, 1}, block[3] = {128, 1, 1};
	struct tally_row_key key = tally_report_key(NULL, 9, grid, block, 0);
	struct tally_row stored = {.key = key};
	struct tally_known k;
	int fd;

	(void)state;
	struct tally_report *report = tally_report_create(&identity, &fd);
	struct tally_report_row *row = tally_report_row(report, &key, "k");
	stored.level[TALLY_LEVEL_GATE] =
		(struct tally_stats){.samples = 10, .ns = 1000 * US, .blocks = 21120};
	stored.level[TALLY_LEVEL_GUARD] = (struct tally_stats){.stops = 20, .stop = {[9] = 20}};

	tally_known_gather(&k, NULL, NULL);
	assert_int_equal(k.blocks, 0);
	tally_known_gather(&k, row, NULL);
	assert_int_equal(k.blocks, 2112);
	assert_int_equal(k.threads, 128);
	k.allowed = TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD);
	expect(&k, GUARD, UNMEASURED);
	/* The first launch of a later run is right without a measurement. */
	tally_known_gather(&k, row, &stored);
	k.allowed = TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD);
	assert_int_equal(k.level[TALLY_LEVEL_GATE].ns, 100 * US);
	assert_int_equal(k.launches, 0);
	expect(&k, GUARD, LONG);
	/* What this run measures itself counts alone. */
	for (unsigned i = 0; i < 4; i++) {
		tally_report_launch(row, TALLY_LEVEL_GATE);
		tally_report_sample(row, TALLY_LEVEL_GATE, 9 * US, 2112);
	}
	tally_known_gather(&k, row, &stored);
	assert_int_equal(k.level[TALLY_LEVEL_GATE].ns, 9 * US);
	assert_int_equal(k.launches, 4);
	expect(&k, GATE, SHORT);
	tally_report_destroy(report);
	close(fd);
}

/* Whatever is known, the answer is a form that can be had, with a slice if it is one. */
static void test_any_input(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 200000; round++) {
		struct tally_known k;
		struct tally_choice_options o;
		uint64_t *words[] = {(uint64_t *)&k, (uint64_t *)&o};
		size_t sizes[] = {sizeof k / 8, sizeof o / 8};

		for (unsigned w = 0; w < 2; w++)
			for (size_t i = 0; i < sizes[w]; i++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				words[w][i] = seed >> 33 & 1 ? 0 : seed >> (seed >> 58);
			}
		k.current.level = seed % TALLY_LEVELS;
		struct tally_decision d = tally_choose(&k, &o);
		assert_true(d.choice.level == TALLY_LEVEL_GATE ||
			    k.allowed & TALLY_LEVEL_BIT(d.choice.level));
		assert_true((d.choice.level == TALLY_LEVEL_SLICE) == (d.choice.slice > 0));
		if (d.choice.level == TALLY_LEVEL_SLICE)
			assert_true(d.choice.slice < k.blocks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_kernels_run_as_they_are),
		cmocka_unit_test(test_long_kernels_are_guarded),
		cmocka_unit_test(test_huge_grids_are_sliced),
		cmocka_unit_test(test_persistent_where_slices_cost_too_much),
		cmocka_unit_test(test_what_cannot_be_stopped),
		cmocka_unit_test(test_machine_code),
		cmocka_unit_test(test_before_anything_is_measured),
		cmocka_unit_test(test_a_fence_costs),
		cmocka_unit_test(test_one_late_stop_of_a_few),
		cmocka_unit_test(test_over_the_bound_the_price_counts),
		cmocka_unit_test(test_small_differences_do_not_flip),
		cmocka_unit_test(test_predictions),
		cmocka_unit_test(test_it_finds_the_best_form),
		cmocka_unit_test(test_it_follows_a_kernel_that_changes),
		cmocka_unit_test(test_what_earlier_runs_left),
		cmocka_unit_test(test_any_input),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
