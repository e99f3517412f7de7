/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice: see choice.h. Each form gets a duration and a stop latency, measured where there are
 * measurements, worked out from the other forms' where not; the rest is comparing.
 */
#include "profiler/choice.h"

#include "profiler/report.h"

/* Measured on an H200 (driver 580): see docs/profiler.md. */
#define NOTICE_NS 20000
#define LAUNCH_NS 4200

#define UNKNOWN_WAVE 512  /* blocks taken to run at the same time where nobody knows */
#define ENOUGH	     4	  /* samples that a level needs before its mean is believed */
#define ENOUGH_STOPS 16	  /* stops before they are believed: their p90 then, */
#define MANY_STOPS   128  /* and their p99 from so many on */
#define EXPLORE	     1024 /* launches in which forms are tried, and how often they are again */
#define MEASURE	     16	  /* samples of a level before it is timed only now and then */

/* What a form is expected to add to the kernel's time before it was measured, percent. */
static const unsigned added_percent[TALLY_LEVELS] = {
	[TALLY_LEVEL_GATE] = 0,	   [TALLY_LEVEL_GUARD] = 2,  [TALLY_LEVEL_SLICE] = 2,
	[TALLY_LEVEL_PERSIST] = 3, [TALLY_LEVEL_OPAQUE] = 0,
};

/* The decision at the beginning of a block of patched machine code, which it waits for: + 18 % of
 * blocks of 2 us, 4.3 % of 10, 1.0 % of 50. */
#define OPAQUE_BLOCK_NS 420

/* From whose time another's is worked out: the nearest relative first, the list for all. */
static const enum tally_level relatives[] = {TALLY_LEVEL_GUARD, TALLY_LEVEL_GATE, TALLY_LEVEL_SLICE,
					     TALLY_LEVEL_OPAQUE, TALLY_LEVEL_PERSIST};

/* A form with what it takes; duration and stop are 0 where nothing is known. */
struct form {
	bool possible, stop_measured;
	uint64_t duration_ns, stop_ns, cost_ns;
	uint64_t usual_ns; /* how long a stop usually takes; `stop_ns` is the worst */
	uint32_t slice;
};

static uint64_t or_else(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static uint64_t wave_of(const struct tally_known *k)
{
	return or_else(k->wave, UNKNOWN_WAVE);
}

static uint64_t waves_of(const struct tally_known *k)
{
	return or_else((k->blocks + wave_of(k) - 1) / wave_of(k), 1);
}

bool tally_one_wave(uint64_t blocks, uint64_t wave)
{
	return blocks <= or_else(wave, UNKNOWN_WAVE);
}

/* 1.2, 2.4, 4.7 and 9.4 ns for 128, 256, 512 and 1024 threads: the time goes with the warps that
 * have to be started; below 128 threads starting the block itself is what counts. */
uint64_t tally_skip_ps(uint32_t threads)
{
	return threads <= 128 ? 1200 : (uint64_t)threads * 1200 / 128;
}

/* Machine code has fewer instructions in front: 0.8 ns for small blocks, 3.7 for 1,024 threads. */
static uint64_t opaque_skip_ps(uint32_t threads)
{
	return 650 + 3 * (uint64_t)threads;
}

static uint64_t skip_ns(const struct tally_known *k, const struct tally_choice_options *o,
			enum tally_level level, uint64_t blocks)
{
	uint64_t ps = level == TALLY_LEVEL_OPAQUE ? opaque_skip_ps(k->threads)
						  : tally_skip_ps(k->threads);

	return blocks * or_else(o->skip_ps, ps) / 1000;
}

/* A whole launch at `level`; 0: nothing was ever timed. */
static uint64_t duration(const struct tally_known *k, enum tally_level level)
{
	const struct tally_level_known *l = &k->level[level];

	if (l->samples)
		return or_else(l->ns, 1);
	if (level == TALLY_LEVEL_OPAQUE && k->level[TALLY_LEVEL_GATE].samples)
		return k->level[TALLY_LEVEL_GATE].ns + waves_of(k) * OPAQUE_BLOCK_NS;
	for (unsigned i = 0; i < TALLY_LEVELS; i++) {
		enum tally_level other = relatives[i];

		if (k->level[other].samples)
			return or_else(k->level[other].ns * (100 + added_percent[level]) /
					       (100 + added_percent[other]),
				       1);
	}
	return 0;
}

/* How long one block runs, at most a whole launch: the same in every form, so the form that was
 * measured shortest tells best. */
static uint64_t block_ns(const struct tally_known *k)
{
	uint64_t whole = 0;

	for (unsigned i = 0; i < TALLY_LEVELS; i++)
		if (k->level[i].samples && (!whole || k->level[i].ns < whole))
			whole = k->level[i].ns;
	return whole / waves_of(k);
}

/* Blocks of a slice that is skipped within `budget_ns`: whole waves where the wave is known, at
 * least one wave, at least 1. */
static uint32_t slice_blocks(const struct tally_known *k, const struct tally_choice_options *o,
			     uint64_t budget_ns)
{
	uint64_t blocks = budget_ns * 1000 / or_else(o->skip_ps, tally_skip_ps(k->threads));
	uint64_t wave = wave_of(k);

	blocks -= blocks % wave;
	if (blocks < wave)
		blocks = wave;
	return blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks;
}

static uint64_t bound_of(const struct tally_choice_options *o)
{
	return or_else(o->bound_ns, TALLY_BOUND_NS);
}

/* What skipping may take, of the bound, when a block takes `block`. */
static uint64_t skip_budget(const struct tally_choice_options *o, uint64_t block)
{
	uint64_t fixed = or_else(o->notice_ns, NOTICE_NS) + block, bound = bound_of(o);

	/* Where the bound cannot be kept whatever is done, small slices still. */
	return fixed < bound ? bound - fixed : bound / 4;
}

/* Blocks that are skipped when a launch of this form stops at once. */
static uint64_t skipped(const struct tally_known *k, enum tally_level level, uint32_t slice)
{
	return level == TALLY_LEVEL_PERSIST ? 0 : level == TALLY_LEVEL_SLICE ? slice : k->blocks;
}

static void estimate(const struct tally_known *k, const struct tally_choice_options *o,
		     enum tally_level level, struct form *f)
{
	const struct tally_level_known *l = &k->level[level];
	uint64_t block = block_ns(k);

	f->possible = level == TALLY_LEVEL_GATE || k->allowed & TALLY_LEVEL_BIT(level);
	f->duration_ns = duration(k, level);

	if (level == TALLY_LEVEL_SLICE) {
		f->slice = slice_blocks(k, o, skip_budget(o, block));
		if (f->slice >= k->blocks)
			f->possible = false; /* one slice is TALLY_LEVEL_GUARD */
		else if (f->duration_ns && !l->samples)
			f->duration_ns +=
				(k->blocks - 1) / f->slice * or_else(o->launch_ns, LAUNCH_NS);
	}
	/* Nothing to stop between: the blocks are all there from the beginning. */
	if (level != TALLY_LEVEL_GATE && k->wave && k->blocks <= k->wave)
		f->possible = false;
	f->cost_ns = f->duration_ns + (level == TALLY_LEVEL_GATE ? o->fence_ns : 0);
	f->stop_ns = f->usual_ns = f->duration_ns;
	if (level == TALLY_LEVEL_GATE)
		return;
	f->stop_measured = l->stops >= ENOUGH_STOPS;
	f->stop_ns = f->stop_measured ? (l->stops < MANY_STOPS ? l->stop_p90_ns : l->stop_p99_ns)
				      : or_else(o->notice_ns, NOTICE_NS) + block +
						skip_ns(k, o, level, skipped(k, level, f->slice));
	f->usual_ns = f->stop_measured ? l->stop_p50_ns : f->stop_ns;
}

static bool in_time(const struct form *f, const struct tally_choice_options *o)
{
	return f->possible && f->stop_ns <= bound_of(o);
}

/* How soon the form that usually stops soonest does. Not the worst of a few stops: that says more
 * about what else the machine did, and a form that is not used any more would never get rid of it.
 */
static uint64_t soonest(const struct form forms[])
{
	uint64_t ns = forms[TALLY_LEVEL_GATE].usual_ns;

	for (enum tally_level i = 0; i < TALLY_LEVELS; i++)
		if (forms[i].possible && forms[i].usual_ns < ns)
			ns = forms[i].usual_ns;
	return ns;
}

/*
 * Whether machine code is worth patching and loading. Not what is short enough as it is. What does
 * not stop in time either may be met at any moment of its launch, so as it is half of its duration
 * is left on average, and something that stops no sooner is nothing won.
 */
static bool worth_patching(const struct form forms[], const struct tally_choice_options *o)
{
	const struct form *whole = &forms[TALLY_LEVEL_GATE], *patched = &forms[TALLY_LEVEL_OPAQUE];

	return !in_time(whole, o) &&
	       (in_time(patched, o) || 2 * patched->usual_ns <= whole->duration_ns);
}

/* Of those in time the cheapest; where none is, of those that stop nearly as soon as any. The one
 * that runs now stays unless another is 5 % better. */
static enum tally_level best(const struct tally_known *k, const struct tally_choice_options *o,
			     const struct form forms[])
{
	uint64_t enough = soonest(forms) / 4 * 5;
	enum tally_level cheapest = TALLY_LEVELS, now = k->current.level;
	bool good[TALLY_LEVELS], any = false;

	for (enum tally_level i = 0; i < TALLY_LEVELS; i++)
		any |= good[i] = in_time(&forms[i], o);
	for (enum tally_level i = 0; i < TALLY_LEVELS; i++) {
		if (!any)
			good[i] = forms[i].possible && forms[i].usual_ns <= enough;
		if (good[i] &&
		    (cheapest == TALLY_LEVELS || forms[i].cost_ns < forms[cheapest].cost_ns))
			cheapest = i;
	}
	if (cheapest == TALLY_LEVELS)
		return TALLY_LEVEL_GATE;
	if (k->current.reason != TALLY_WHY_NONE && k->current.reason != TALLY_WHY_EXPLORING &&
	    good[now] && forms[now].cost_ns - forms[cheapest].cost_ns <= forms[now].cost_ns / 20)
		return now;
	return cheapest;
}

/* Another form that may be as good but is not well known, or, now and then, any that is in time;
 * TALLY_LEVELS: none. */
static enum tally_level explore(const struct tally_known *k, const struct tally_choice_options *o,
				const struct form forms[], enum tally_level chosen)
{
	unsigned turn = (unsigned)(k->launches / EXPLORE % TALLY_LEVELS);
	bool again = k->launches && k->launches % EXPLORE == 0;

	for (enum tally_level i = 0; i < TALLY_LEVELS; i++) {
		const struct form *f = &forms[i];

		if (i == chosen || !in_time(f, o) ||
		    f->cost_ns > forms[chosen].cost_ns + forms[chosen].cost_ns / 3)
			continue;
		if ((k->level[i].samples < ENOUGH && k->launches < EXPLORE) || (again && i == turn))
			return i;
	}
	return TALLY_LEVELS;
}

static enum tally_reason why(const struct tally_known *k, const struct tally_choice_options *o,
			     const struct form forms[], enum tally_level level)
{
	bool none = !(k->allowed & ~TALLY_LEVEL_BIT(TALLY_LEVEL_GATE));
	bool one_wave = k->wave && k->blocks <= k->wave;

	if (level == TALLY_LEVEL_GATE && in_time(&forms[level], o))
		return TALLY_WHY_SHORT;
	if (level == TALLY_LEVEL_GATE && none)
		return k->barred;
	if (level == TALLY_LEVEL_GATE && one_wave)
		return TALLY_WHY_ONE_WAVE;
	if (!in_time(&forms[level], o))
		return TALLY_WHY_OVER_BOUND;
	if (in_time(&forms[TALLY_LEVEL_GATE], o))
		return TALLY_WHY_FASTEST;
	if (level == TALLY_LEVEL_GUARD || level == TALLY_LEVEL_OPAQUE)
		return TALLY_WHY_LONG;
	return in_time(&forms[TALLY_LEVEL_GUARD], o) ? TALLY_WHY_FASTEST : TALLY_WHY_MANY_BLOCKS;
}

/* The first launches. As it is where it cannot last long for all that its grid says; otherwise so
 * that it can be stopped, in slices where it is large. */
static enum tally_level first_form(const struct tally_known *k,
				   const struct tally_choice_options *o, const struct form forms[])
{
	uint64_t skip = skip_ns(k, o, TALLY_LEVEL_GUARD, k->blocks);

	if (tally_one_wave(k->blocks, k->wave))
		return TALLY_LEVEL_GATE;
	if (skip > skip_budget(o, 0) && forms[TALLY_LEVEL_SLICE].possible)
		return TALLY_LEVEL_SLICE;
	for (enum tally_level i = TALLY_LEVEL_GUARD; i < TALLY_LEVELS; i++)
		if (forms[i].possible)
			return i;
	return TALLY_LEVEL_GATE;
}

bool tally_known_timed(const struct tally_known *k)
{
	for (unsigned i = 0; i < TALLY_LEVELS; i++)
		if (k->level[i].samples)
			return true;
	return false;
}

struct tally_decision tally_choose(const struct tally_known *k,
				   const struct tally_choice_options *o)
{
	struct form forms[TALLY_LEVELS] = {0};
	enum tally_level level, other;
	enum tally_reason reason;

	for (enum tally_level i = 0; i < TALLY_LEVELS; i++)
		estimate(k, o, i, &forms[i]);
	if (tally_known_timed(k)) {
		forms[TALLY_LEVEL_OPAQUE].possible &= worth_patching(forms, o);
		level = best(k, o, forms);
		reason = why(k, o, forms, level);
		other = explore(k, o, forms, level);
		if (other != TALLY_LEVELS) {
			level = other;
			reason = TALLY_WHY_EXPLORING;
		}
	} else {
		bool none = !(k->allowed & ~TALLY_LEVEL_BIT(TALLY_LEVEL_GATE));

		level = first_form(k, o, forms);
		reason = none && k->barred ? k->barred : TALLY_WHY_UNMEASURED;
	}
	return (struct tally_decision){
		.choice = {level, reason, level == TALLY_LEVEL_SLICE ? forms[level].slice : 0},
		.measure = k->level[level].samples < MEASURE || k->launches % 64 == 0,
		.stop_ns = tally_known_timed(k) ? forms[level].stop_ns : 0,
		.stop_measured = forms[level].stop_measured,
		.duration_ns = forms[level].duration_ns,
	};
}

uint64_t tally_predict(const struct tally_known *k, enum tally_level level, uint64_t blocks)
{
	return tally_scale(duration(k, level), blocks, k->blocks);
}

static void know(struct tally_level_known *to, const struct tally_stats *s, uint64_t blocks)
{
	to->samples = s->samples;
	to->ns = tally_stats_mean(s, blocks);
	to->stops = s->stops;
	to->stop_p50_ns = tally_quantile(&tally_coarse, s->stop, 0.5);
	to->stop_p90_ns = tally_quantile(&tally_coarse, s->stop, 0.9);
	to->stop_p99_ns = tally_quantile(&tally_coarse, s->stop, 0.99);
}

static void known_of_row(struct tally_known *k, const struct tally_row *row)
{
	*k = (struct tally_known){.blocks = tally_key_blocks(&row->key),
				  .threads = tally_key_threads(&row->key),
				  .launches = tally_row_launches(row),
				  .current = row->choice};
	for (unsigned i = 0; i < TALLY_LEVELS; i++)
		know(&k->level[i], &row->level[i], k->blocks);
}

void tally_known_gather(struct tally_known *k, const struct tally_report_row *live,
			const struct tally_row *stored)
{
	struct tally_row now;

	*k = (struct tally_known){0};
	if (live && tally_report_read_row(live, &now))
		known_of_row(k, &now);
	if (!stored)
		return;
	k->blocks = tally_key_blocks(&stored->key);
	k->threads = tally_key_threads(&stored->key);
	/* This run's own measurements count alone as soon as there are enough: what a kernel takes
	 * depends on its data too. */
	for (unsigned i = 0; i < TALLY_LEVELS; i++) {
		struct tally_level_known *l = &k->level[i], before;

		know(&before, &stored->level[i], k->blocks);
		if (l->samples < ENOUGH && before.samples) {
			l->samples = before.samples;
			l->ns = before.ns;
		}
		if (l->stops < ENOUGH_STOPS && before.stops) {
			l->stops = before.stops;
			l->stop_p50_ns = before.stop_p50_ns;
			l->stop_p90_ns = before.stop_p90_ns;
			l->stop_p99_ns = before.stop_p99_ns;
		}
	}
}
