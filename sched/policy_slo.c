/* SPDX-License-Identifier: Apache-2.0 */
/* The closed loop on a latency budget: see policy_slo.h. */
#include "sched/policy_slo.h"

#define MS 1000000ull

#define ALONE_LEAST  32		/* bursts alone, before anybody may run beside the program */
#define KIND_LEAST   3		/* of one kind, before a burst is compared with it */
#define KIND_MEMORY  16		/* the mean of a kind follows its last so many */
#define SAMPLE_EVERY 48		/* bursts in the mean: 4 % are measured alone or lead in to that */
#define SAMPLE_OFTEN 8		/* the same while too little is known */
#define HOLD_NS	     (500 * MS) /* so long at most others are held for a burst that does not come */

#define EARNED	  0.009 /* units of the tail's account that a burst earns */
#define TAIL	  995	/* thousandths: p99 of the bursts alone, with room for its own error */
#define CREDIT	  250	/* bursts: what they earn is the most that an account holds */
#define TAIL_DEBT 4.0	/* units: deeper it does not go while closed, for that is not our doing */
#define OPEN_AT	  1.0	/* unit, from which on others may run again */
#define FAILED_IN 16	/* bursts: a trial that ends so soon has failed */
#define BACK_OFF  64	/* bursts until the next trial after the first failure; then doubled, */
#define BACK_OFF_DOUBLED 5	      /* so many times, */
#define BACK_OFF_NS	 (10000 * MS) /* but never longer than this */
#define UNKNOWN_COSTS	 0.05	      /* units that a burst of an unknown kind costs while open */
#define MEASURED_LEAST	 0.25

unsigned tally_slo_budget(const char *text)
{
	unsigned whole = 0, part = 0, unit = 1000;
	const char *c = text;

	for (; *c >= '0' && *c <= '9' && whole <= 100; c++)
		whole = whole * 10 + (unsigned)(*c - '0');
	if (c == text)
		return 0;
	if (*c == '.')
		for (c++; *c >= '0' && *c <= '9' && unit > 1; c++)
			part += (unsigned)(*c - '0') * (unit /= 10);
	if (*c || whole * 1000 + part <= 1000 || whole * 1000 + part > 100000)
		return 0;
	return whole * 1000 + part;
}

void tally_slo_init(struct tally_slo *slo, double budget, uint64_t seed)
{
	*slo = (struct tally_slo){.budget = budget, .random = seed | 1, .measured = 1};
	slo->tail = EARNED * CREDIT;
	slo->mean = (budget - 1) * CREDIT;
	slo->until_sample = 1;
}

static uint64_t random_below(struct tally_slo *slo, uint64_t n)
{
	slo->random ^= slo->random << 13;
	slo->random ^= slo->random >> 7;
	slo->random ^= slo->random << 17;
	return slo->random % n;
}

static bool learning(const struct tally_slo *slo)
{
	return slo->alone.count < ALONE_LEAST;
}

/* How many bursts until the next sample: uneven, so that it does not fall in with the program's own
 * rhythm. */
static unsigned next_sample(struct tally_slo *slo)
{
	uint64_t every = SAMPLE_EVERY;
	bool able = slo->measured >= MEASURED_LEAST; /* else holding others teaches nothing */

	if (able && learning(slo))
		return 1;
	if (able && slo->alone.count < TALLY_SLO_WINDOW)
		every = SAMPLE_OFTEN;
	return 1 + (unsigned)random_below(slo, 2 * every - 1);
}

/* Trials that failed are not repeated at once: what is left of the budget is for others' noise. */
static bool backing_off(const struct tally_slo *slo, uint64_t now_ns)
{
	return slo->failures &&
	       slo->bursts - slo->turned_burst < (uint64_t)BACK_OFF << (slo->failures - 1) &&
	       now_ns - slo->turned_ns < BACK_OFF_NS;
}

static void turn(struct tally_slo *slo, bool open, uint64_t now_ns)
{
	if (!open && slo->bursts - slo->turned_burst <= FAILED_IN)
		slo->failures += slo->failures <= BACK_OFF_DOUBLED;
	else if (!open)
		slo->failures = 0;
	slo->wanted_open = open;
	slo->turned_burst = slo->bursts;
	slo->turned_ns = now_ns;
}

static void decide(struct tally_slo *slo, uint64_t now_ns)
{
	bool able = !learning(slo) && slo->measured >= MEASURED_LEAST;

	if (slo->wanted_open && (!able || slo->tail < 0 || slo->mean < 0))
		turn(slo, false, now_ns);
	else if (!slo->wanted_open && able && slo->tail >= OPEN_AT &&
		 slo->mean >= (slo->budget - 1) * CREDIT / 2 && !backing_off(slo, now_ns))
		turn(slo, true, now_ns);
}

enum tally_slo_reason tally_slo_reason(const struct tally_slo *slo)
{
	if (slo->wanted_open)
		return TALLY_SLO_INSIDE;
	if (slo->measured < MEASURED_LEAST)
		return TALLY_SLO_UNMEASURED;
	if (learning(slo))
		return TALLY_SLO_LEARNING;
	if (slo->tail < OPEN_AT)
		return TALLY_SLO_TAIL_SPENT;
	if (slo->mean < (slo->budget - 1) * CREDIT / 2)
		return TALLY_SLO_MEAN_SPENT;
	return TALLY_SLO_BACKING_OFF;
}

enum tally_overlap tally_slo_begin(struct tally_slo *slo, uint64_t now_ns, bool rivals)
{
	bool held = slo->held_since_ns != 0;

	slo->bursts++;
	slo->held_since_ns = 0;
	slo->rivals = rivals;
	slo->began_ns = now_ns;
	/* The burst before led in to this one: others have been held since then. */
	slo->sample = held;
	if (held)
		slo->overlap = TALLY_OVERLAP_HELD;
	else if (!slo->wanted_open || (rivals && slo->until_sample <= 1))
		slo->overlap = TALLY_OVERLAP_CLOSED;
	else
		slo->overlap = TALLY_OVERLAP_OPEN;
	slo->opened = slo->overlap == TALLY_OVERLAP_OPEN;
	return slo->overlap;
}

static struct tally_slo_kind *find(struct tally_slo *slo, uint64_t key)
{
	for (unsigned i = 0; i < TALLY_SLO_KEYS; i++)
		if (slo->kinds[i].key == key)
			return &slo->kinds[i];
	return NULL;
}

/* The time alone of the burst's kind, else of what is roughly its kind; 0: not known. */
static double time_alone(struct tally_slo *slo, const struct tally_slo_burst *burst)
{
	const struct tally_slo_kind *kind = find(slo, burst->key);

	if (!kind || kind->count < KIND_LEAST)
		kind = find(slo, burst->rough_key);
	return kind && kind->count >= KIND_LEAST ? kind->ns : 0;
}

bool tally_slo_runaway(struct tally_slo *slo, uint64_t now_ns)
{
	double longest = 0;

	if (slo->overlap != TALLY_OVERLAP_OPEN || !slo->rivals)
		return false;
	for (unsigned i = 0; i < TALLY_SLO_KEYS; i++)
		if (slo->kinds[i].count >= KIND_LEAST && slo->kinds[i].ns > longest)
			longest = slo->kinds[i].ns;
	/* Its kind is known at its end only: it may be of the longest. */
	if ((double)(now_ns - slo->began_ns) <=
	    longest * slo->budget * tally_slo_window_quantile(&slo->alone, TAIL))
		return false;
	slo->overlap = TALLY_OVERLAP_CLOSED;
	return true;
}

/* A burst of kind `key` took `ns` alone. */
static void learn(struct tally_slo *slo, uint64_t key, double ns)
{
	struct tally_slo_kind *kind = find(slo, key);

	if (!kind) {
		kind = &slo->kinds[0];
		for (unsigned i = 1; i < TALLY_SLO_KEYS; i++)
			if (slo->kinds[i].used < kind->used)
				kind = &slo->kinds[i];
		*kind = (struct tally_slo_kind){.key = key};
	}
	kind->used = slo->bursts;
	if (kind->count >= KIND_MEMORY) {
		ns = ns > kind->ns * 1.5   ? kind->ns * 1.5
		     : ns < kind->ns / 1.5 ? kind->ns / 1.5
					   : ns;
	} else {
		kind->count++;
	}
	kind->ns += (ns - kind->ns) / kind->count;
}

/* Adds to an account: at most `most` is in it, and while nobody runs beside the program it does not
 * go into a debt deeper than `least`, which then is not of our making. */
static void add(double *account, double amount, double least, double most, bool open)
{
	double before = *account;

	*account += amount;
	if (*account > most)
		*account = most;
	if (!open && amount < 0 && *account < least)
		*account = before < least ? before : least;
}

static void judge(struct tally_slo *slo, double slowdown, bool open)
{
	double mean = tally_slo_window_mean(&slo->alone), most = (slo->budget - 1) * CREDIT;
	bool over = slowdown > slo->budget * tally_slo_window_quantile(&slo->alone, TAIL);

	add(&slo->tail, EARNED - (over ? 1 : 0), -TAIL_DEBT, EARNED * CREDIT, open);
	if (mean > 0)
		add(&slo->mean, slo->budget - slowdown / mean, -most, most, open);
}

static void measure(struct tally_slo *slo, const struct tally_slo_burst *burst, bool alone)
{
	double expected = time_alone(slo, burst);
	float slowdown = expected > 0 ? (float)((double)burst->ns / expected) : 0;

	if (expected > 0) {
		if (alone)
			tally_slo_window_add(&slo->alone, slowdown);
		tally_slo_window_add(&slo->all, slowdown);
		if (!learning(slo))
			judge(slo, (double)slowdown, slo->opened);
	} else if (slo->opened) {
		add(&slo->tail, EARNED - UNKNOWN_COSTS, -TAIL_DEBT, EARNED * CREDIT, true);
	}
	if (alone) {
		learn(slo, burst->key, (double)burst->ns);
		learn(slo, burst->rough_key, (double)burst->ns);
	}
}

enum tally_overlap tally_slo_end(struct tally_slo *slo, const struct tally_slo_burst *burst,
				 uint64_t now_ns)
{
	bool nobody = !slo->rivals && !burst->rivals;
	bool leads_in = !slo->sample && !nobody && slo->until_sample == 1;

	if (!burst->disturbed) {
		slo->measured += ((burst->seen ? 1 : 0) - slo->measured) / 64;
		if (burst->seen && burst->ns)
			measure(slo, burst, nobody || slo->sample);
	}
	if (slo->sample)
		slo->until_sample = next_sample(slo);
	else if (!nobody && slo->until_sample > 1)
		slo->until_sample--;
	decide(slo, now_ns);
	if (leads_in) {
		slo->held_since_ns = now_ns ? now_ns : 1;
		return TALLY_OVERLAP_HELD;
	}
	return slo->wanted_open ? TALLY_OVERLAP_OPEN : TALLY_OVERLAP_CLOSED;
}

enum tally_overlap tally_slo_idle(struct tally_slo *slo, uint64_t now_ns)
{
	if (slo->held_since_ns && now_ns - slo->held_since_ns > HOLD_NS) {
		slo->held_since_ns = 0;
		slo->until_sample = next_sample(slo);
	}
	if (slo->held_since_ns)
		return TALLY_OVERLAP_HELD;
	return slo->wanted_open ? TALLY_OVERLAP_OPEN : TALLY_OVERLAP_CLOSED;
}

double tally_slo_mean(const struct tally_slo *slo)
{
	double alone = tally_slo_window_mean(&slo->alone);

	return alone > 0 ? tally_slo_window_mean(&slo->all) / alone : 0;
}

double tally_slo_p99(const struct tally_slo *slo)
{
	double alone = tally_slo_window_quantile(&slo->alone, 990);

	return alone > 0 ? tally_slo_window_quantile(&slo->all, 990) / alone : 0;
}
