/* SPDX-License-Identifier: Apache-2.0 */
/* Plans launches from what is known of their kernels; see profile.h. */
#include "backends/cuda/interpose/profile.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"

/* A kernel that is launched with ever new grids keeps this many apart; the rest share the last. */
#define CONFIGURATIONS 256

void tally_cost_learn(struct tally_cost *c, uint64_t ns)
{
	uint64_t known = atomic_load_explicit(&c->ns, memory_order_relaxed);

	/* What comes in between only makes a sample longer, so shorter ones count for more. */
	if (known)
		ns = ns < known ? (known + ns) / 2 : (7 * known + ns) / 8;
	atomic_store_explicit(&c->ns, ns ? ns : 1, memory_order_relaxed);
}

static uint64_t pack(const struct tally_choice *choice)
{
	return (uint64_t)choice->slice << 32 | (uint64_t)choice->reason << 8 | choice->level;
}

static struct tally_choice unpack(uint64_t word)
{
	return (struct tally_choice){(enum tally_level)(word & 0xff),
				     (enum tally_reason)(word >> 8 & 0xff), (uint32_t)(word >> 32)};
}

static struct tally_configuration *create(struct tally_device *d, struct tally_kernel *k,
					  const struct tally_dimensions *at)
{
	const struct tally_module *from =
		k->module && k->module->parent ? k->module->parent : k->module;
	struct tally_configuration *c = calloc(1, sizeof *c);
	struct tally_row_key key;

	if (!c)
		return NULL;
	key = tally_report_key(from ? from->hash : NULL, k->hash, at->grid, at->block, at->shared);
	c->kernel = k;
	c->at = *at;
	c->row = tally_report_row(d->report, &key, k->name);
	c->stored = tally_profiles_find(atomic_load(&d->profiles), &key);
	c->blocks = (uint64_t)at->grid[0] * at->grid[1] * at->grid[2];
	/* Slices have one dimension: they would make a grid legal that the driver has to refuse. */
	c->splits = c->blocks && c->blocks <= INT32_MAX && at->grid[0] <= INT32_MAX &&
		    at->grid[1] <= 65535 && at->grid[2] <= 65535;
	if (c->stored) {
		c->whole.ns = tally_stats_mean(&c->stored->level[TALLY_LEVEL_GATE], c->blocks);
		c->guarded.ns = tally_stats_mean(
			&c->stored->level[tally_kernel_opaque(k) ? TALLY_LEVEL_OPAQUE
								 : TALLY_LEVEL_GUARD],
			c->blocks);
	}
	atomic_store(&c->kernel_state, -1);
	c->next = atomic_load(&k->configurations);
	while (!atomic_compare_exchange_weak(&k->configurations, &c->next, c))
		;
	atomic_fetch_add(&k->configuration_count, 1);
	return c;
}

static bool same(const struct tally_dimensions *a, const struct tally_dimensions *b)
{
	return !memcmp(a, b, sizeof *a);
}

struct tally_configuration *tally_configuration_of(struct tally_device *d, struct tally_kernel *k,
						   const struct tally_dimensions *at)
{
	struct tally_configuration *c = atomic_load_explicit(&k->last, memory_order_acquire);

	if (c && same(&c->at, at))
		return c;
	for (c = atomic_load_explicit(&k->configurations, memory_order_acquire); c; c = c->next)
		if (same(&c->at, at))
			break;
	if (!c && atomic_load(&k->configuration_count) < CONFIGURATIONS)
		c = create(d, k, at);
	if (c)
		atomic_store_explicit(&k->last, c, memory_order_release);
	return c;
}

void tally_configurations_free(struct tally_kernel *k)
{
	struct tally_configuration *c = atomic_load(&k->configurations), *next;

	atomic_store(&k->last, NULL);
	atomic_store(&k->configurations, NULL);
	atomic_store(&k->configuration_count, 0);
	for (; c; c = next) {
		next = c->next;
		free(c);
	}
}

/* How many blocks of the kernel, or of its other form, the device runs at the same time; 0: the
 * driver does not say. */
static uint64_t wave(struct tally_device *d, const struct tally_configuration *c, void *kernel)
{
	int threads = (int)(c->at.block[0] * c->at.block[1] * c->at.block[2]), blocks = 0, sms = 0;

	if (TALLY_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, kernel, threads,
								      c->at.shared) ||
	    TALLY_DRIVER(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
					       d->ordinal))
		return 0;
	return (uint64_t)blocks * (uint64_t)sms;
}

/* A grid that was made to be on the device as a whole may have one block too many once the kernel
 * needs more registers: then its blocks could wait for one that never starts. */
static void measure_wave(struct tally_device *d, struct tally_configuration *c)
{
	void *original = atomic_load(&c->kernel->handle), *form = c->kernel->variant;
	uint64_t whole;

	if (!form)
		form = original;
	if (c->waved == form)
		return;
	c->waved = form;
	c->wave = whole = wave(d, c, form);
	if (form != original)
		whole = wave(d, c, original);
	c->crowded = c->wave < c->blocks && c->blocks <= whole;
}

/* Which forms can be had. A kernel of machine code that nobody has patched yet counts as one that
 * was, so that the choice says whether it is worth it; but not before it was timed. */
static uint32_t forms_of(const struct tally_configuration *c, const struct tally_known *known,
			 bool stoppable, bool patchable)
{
	uint32_t forms = TALLY_LEVEL_BIT(TALLY_LEVEL_GATE);

	if (stoppable)
		forms |= c->kernel->opaque ? TALLY_LEVEL_BIT(TALLY_LEVEL_OPAQUE)
					   : TALLY_LEVEL_BIT(TALLY_LEVEL_GUARD) |
						     TALLY_LEVEL_BIT(TALLY_LEVEL_SLICE);
	else if (patchable && tally_known_timed(known))
		forms |= TALLY_LEVEL_BIT(TALLY_LEVEL_OPAQUE);
	return forms;
}

/* Chooses for the launches to come. Whether this one is to be timed. `patchable`: the kernel's
 * machine code, or NULL. */
static bool choose(struct tally_device *d, struct tally_configuration *c, bool stoppable,
		   struct tally_module *patchable, enum tally_reason barred)
{
	const struct tally_choice_options options = {.bound_ns = tally_process.config.bound_ns};
	struct tally_choice before = unpack(atomic_load(&c->choice));
	struct tally_decision decision;
	struct tally_known known;

	tally_known_gather(&known, c->row, c->stored);
	known.allowed = forms_of(c, &known, stoppable, patchable);
	if (known.allowed != TALLY_LEVEL_BIT(TALLY_LEVEL_GATE))
		measure_wave(d, c);
	known.wave = c->wave;
	known.barred = barred;
	if (c->crowded) {
		known.allowed = TALLY_LEVEL_BIT(TALLY_LEVEL_GATE);
		known.barred = TALLY_WHY_CROWDED;
	}
	known.current = before;
	decision = tally_choose(&known, &options);
	if (tally_process.config.level == TALLY_RUN_GUARD && (stoppable || patchable) &&
	    !c->crowded)
		decision.choice = (struct tally_choice){
			c->kernel->opaque || patchable ? TALLY_LEVEL_OPAQUE : TALLY_LEVEL_GUARD,
			TALLY_WHY_ASKED, 0};
	if (patchable && decision.choice.level == TALLY_LEVEL_OPAQUE) {
		/* Only to see how long it would take it is not worth patching. */
		if (decision.choice.reason != TALLY_WHY_EXPLORING)
			tally_opaque_ask(patchable);
		decision.choice = (struct tally_choice){TALLY_LEVEL_GATE, TALLY_WHY_COMPILING, 0};
	}
	if (pack(&decision.choice) != pack(&before)) {
		atomic_store_explicit(&c->choice, pack(&decision.choice), memory_order_relaxed);
		tally_report_choose(c->row, &decision.choice);
		if (decision.choice.level != before.level)
			tally_report_trace(d->report, TALLY_TRACE_CHOICE, 0, c->row,
					   decision.choice.level);
	}
	if (decision.choice.reason == TALLY_WHY_EXPLORING)
		tally_report_count(d->report, TALLY_COUNT_EXPLORED, 1);
	return decision.measure;
}

/* What earlier runs measured is no reason not to look whether it is still so; a launch that is far
 * from the bound is timed less often than the choice would have it. */
static bool worth_timing(const struct tally_configuration *c, uint64_t n, bool measure)
{
	uint64_t ns = atomic_load_explicit(&c->whole.ns, memory_order_relaxed);

	return n < 8 || (measure && (n < 32 || n % 1024 == 0 || ns > TALLY_UNIT_NS / 4));
}

/* Whether to choose anew before launch `n`: less often than the choice would have it where it had
 * but one answer, or where the kernel is so short that choosing costs something. */
static bool due(const struct tally_configuration *c, uint64_t n, bool stoppable)
{
	bool whole =
		(atomic_load_explicit(&c->choice, memory_order_relaxed) & 0xff) == TALLY_LEVEL_GATE;

	return tally_choice_due(n) &&
	       (n < 32 || n % 1024 == 0 || (stoppable && (!whole || n % 256 == 0)));
}

void tally_plan(struct tally_plan *plan, struct tally_device *d, struct tally_kernel *k,
		const struct tally_dimensions *at, enum tally_reason barred)
{
	struct tally_configuration *c = k ? tally_configuration_of(d, k, at) : NULL;
	bool stoppable;
	uint64_t n;
	int state;

	*plan = (struct tally_plan){.configuration = c};
	if (!c)
		return;
	n = atomic_load_explicit(&c->launches, memory_order_relaxed);
	atomic_store_explicit(&c->launches, n + 1, memory_order_relaxed);
	stoppable = tally_kernel_stoppable(k) && c->splits;
	state = atomic_load_explicit(&k->state, memory_order_relaxed);
	if (due(c, n, stoppable) ||
	    atomic_load_explicit(&c->kernel_state, memory_order_relaxed) != state) {
		atomic_store_explicit(&c->kernel_state, state, memory_order_relaxed);
		plan->measure = choose(d, c, stoppable && !barred,
				       barred || !c->splits ? NULL : tally_kernel_unasked(k),
				       barred	   ? barred
				       : stoppable ? TALLY_WHY_NONE
				       : c->splits ? tally_kernel_barred(k)
						   : TALLY_WHY_ATTRIBUTES);
		plan->measure = worth_timing(c, n, plan->measure);
	}
	if (tally_report_tracing(d->report))
		plan->measure = true;
	plan->choice = unpack(atomic_load_explicit(&c->choice, memory_order_relaxed));
	/* The choice may be one of launches of the same kernel that could be split. */
	if (plan->choice.level != TALLY_LEVEL_GATE && (!stoppable || barred))
		plan->choice = (struct tally_choice){TALLY_LEVEL_GATE, barred, 0};
}

uint64_t tally_plan_ns(const struct tally_plan *plan)
{
	const struct tally_configuration *c = plan->configuration;
	bool whole = plan->choice.level == TALLY_LEVEL_GATE;
	uint64_t ps;

	if (!c)
		return TALLY_UNIT_NS;
	ps = atomic_load_explicit(&c->kernel->block_ps, memory_order_relaxed);
	return tally_cost_ns(whole ? &c->whole : &c->guarded,
			     tally_cost_ns(whole ? &c->guarded : &c->whole,
					   ps ? ps * c->blocks / 1000 + 1 : TALLY_UNIT_NS));
}
