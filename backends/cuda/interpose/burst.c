/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring bursts: see burst.h. */
#include "backends/cuda/interpose/burst.h"

#include <stdlib.h>
#include <unistd.h>

#include "sched/policy_slo.h"

#define MIXED 8 /* launches of a burst that its kind is told by, beside their number */

/* Activity lock, but for what is atomic. */
struct tally_burst {
	struct tally_slo slo;
	enum tally_overlap overlap;   /* as the board has it */
	uint64_t began_ns, opened_ns; /* opened: 0 when others may not run beside it */
	uint64_t looked_ns;	      /* the monitor's last look at which it still went on */
	uint64_t launches;	      /* of the device, before it */
	uint64_t open_ns, judged;     /* over all bursts */
	_Atomic bool disturbed;

	/* Threads that launch at once may lose each other's part: the burst then counts as one of
	 * another kind, which the rough key is for. */
	_Atomic uint64_t mixture;
};

bool tally_burst_start(struct tally_device *d)
{
	if (!tally_process.config.slo)
		return true;
	d->burst = calloc(1, sizeof *d->burst);
	if (!d->burst)
		return false;
	tally_slo_init(&d->burst->slo, tally_process.config.slo / 1000.0,
		       tally_now() ^ (uint64_t)getpid() << 32);
	return true;
}

static uint64_t scramble(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15;
	return x ^ x >> 29;
}

void tally_burst_mix(struct tally_device *d, const void *what, const unsigned grid[3])
{
	struct tally_burst *b = d->burst;
	unsigned left = atomic_load_explicit(&d->mixing, memory_order_relaxed);
	uint64_t mixture;

	if (!left)
		return;
	atomic_store_explicit(&d->mixing, left - 1, memory_order_relaxed);
	/* A sum: streams and threads come in any order. */
	mixture = scramble((uintptr_t)what ^
			   scramble((uint64_t)grid[0] << 32 ^ grid[1] << 16 ^ grid[2]));
	atomic_store_explicit(&b->mixture,
			      atomic_load_explicit(&b->mixture, memory_order_relaxed) + mixture,
			      memory_order_relaxed);
}

static void set_overlap(struct tally_device *d, enum tally_overlap overlap)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);

	d->burst->overlap = overlap;
	if (client)
		tally_client_set_overlap(client, overlap);
}

void tally_burst_begin(struct tally_device *d)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);
	struct tally_burst *b = d->burst;

	if (!b)
		return;
	atomic_store_explicit(&b->mixture, 0, memory_order_relaxed);
	atomic_store_explicit(&d->mixing, MIXED, memory_order_relaxed);
	atomic_store_explicit(&b->disturbed, false, memory_order_relaxed);
	b->began_ns = b->looked_ns = tally_now();
	set_overlap(d,
		    tally_slo_begin(&b->slo, b->began_ns, client && tally_client_rivals(client)));
	b->opened_ns = b->overlap == TALLY_OVERLAP_OPEN ? b->began_ns : 0;
}

/* A number in steps of an eighth. */
static uint64_t roughly(uint64_t n)
{
	unsigned bits = 0;

	while (n >> bits >= 16)
		bits++;
	return (uint64_t)bits << 8 | n >> bits;
}

static void count_open(struct tally_burst *b, uint64_t now)
{
	if (b->opened_ns)
		b->open_ns += now - b->opened_ns;
	b->opened_ns = 0;
}

void tally_burst_end(struct tally_device *d, uint64_t launches, bool seen)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);
	struct tally_burst *b = d->burst;
	struct tally_slo_burst burst;
	enum tally_overlap overlap;
	uint64_t now, n;

	if (!b)
		return;
	now = tally_now();
	n = launches - b->launches;
	b->launches = launches;
	burst = (struct tally_slo_burst){
		.key = scramble(atomic_load_explicit(&b->mixture, memory_order_relaxed) + n) | 1,
		.rough_key = scramble(~roughly(n)) | 1,
		.ns = now - b->began_ns,
		/* The monitor knows the end of a long one well enough. */
		.seen = seen || (now - b->looked_ns) * 20 < now - b->began_ns,
		.disturbed = atomic_load_explicit(&b->disturbed, memory_order_relaxed),
		.rivals = client && tally_client_rivals(client),
	};
	count_open(b, now);
	b->judged += burst.seen && !burst.disturbed;
	overlap = tally_slo_end(&b->slo, &burst, now);
	/* Open and closed are the same while the program is idle: the next burst says which. */
	if (overlap == TALLY_OVERLAP_HELD || b->overlap == TALLY_OVERLAP_HELD)
		set_overlap(d, overlap);
}

void tally_burst_disturbed(struct tally_device *d)
{
	if (d->burst)
		atomic_store_explicit(&d->burst->disturbed, true, memory_order_relaxed);
}

static uint32_t thousandths(double x)
{
	return x < 4e6 ? (uint32_t)(x * 1000 + 0.5) : UINT32_MAX;
}

static void publish(struct tally_device *d)
{
	const struct tally_burst *b = d->burst;
	struct tally_slot *slot = tally_slot(d);

	atomic_store_explicit(&slot->slo_budget, tally_process.config.slo, memory_order_relaxed);
	atomic_store_explicit(&slot->slo_mean, thousandths(tally_slo_mean(&b->slo)),
			      memory_order_relaxed);
	atomic_store_explicit(&slot->slo_p99, thousandths(tally_slo_p99(&b->slo)),
			      memory_order_relaxed);
	atomic_store_explicit(&slot->slo_reason, tally_slo_reason(&b->slo), memory_order_relaxed);
	atomic_store_explicit(&slot->slo_judged, b->judged, memory_order_relaxed);
	atomic_store_explicit(&slot->overlap_ns, b->open_ns, memory_order_relaxed);
}

void tally_burst_look(struct tally_device *d)
{
	struct tally_burst *b = d->burst;
	uint64_t now;

	if (!b)
		return;
	pthread_mutex_lock(&d->activity_lock);
	now = tally_now();
	if (atomic_load(&d->active)) {
		b->looked_ns = now;
		if (tally_slo_runaway(&b->slo, now)) {
			count_open(b, now);
			set_overlap(d, TALLY_OVERLAP_CLOSED);
		}
	} else if (b->overlap == TALLY_OVERLAP_HELD &&
		   tally_slo_idle(&b->slo, now) != TALLY_OVERLAP_HELD) {
		set_overlap(d, TALLY_OVERLAP_CLOSED);
	}
	publish(d);
	pthread_mutex_unlock(&d->activity_lock);
}
