/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times pieces of work while the program runs: two events around a piece, read when the piece is
 * known done by other means, so that nobody ever waits for a measurement.
 */
#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/resolve.h"

/*
 * A piece between two events lasts longer than it does by itself (some 5 us on an H200), which for
 * a short kernel is most of it. How much longer, two events say that have nothing between them: the
 * first samples of a device have a third one. The least of several counts, for what the device and
 * the host do meanwhile only makes it longer.
 */
#define PAIRS 8
/* Nothing is shorter than this because of that. */
#define LEAST_NS 500

/* Whether the stream has the event; makes it when it is first needed. */
static bool put(CUevent *event, CUstream stream)
{
	return (*event || !TALLY_DRIVER(cuEventCreate)(event, CU_EVENT_DEFAULT)) &&
	       !TALLY_DRIVER(cuEventRecord)(*event, stream);
}

static bool distance(CUevent from, CUevent to, uint64_t *ns)
{
	float ms = 0;

	if (TALLY_DRIVER(cuEventElapsedTime)(&ms, from, to) || !(ms >= 0))
		return false;
	*ns = (uint64_t)((double)ms * 1e6);
	return true;
}

static void learn_events(struct tally_device *d, uint64_t ns)
{
	if (!d->event_pairs++ || ns < d->events_ns)
		d->events_ns = ns;
}

/* What a piece took, of which the events say that it took `ns`. */
static uint64_t by_itself(const struct tally_device *d, uint64_t ns)
{
	if (ns >= d->events_ns + LEAST_NS)
		return ns - d->events_ns;
	return ns < LEAST_NS ? ns : LEAST_NS;
}

struct tally_sample *tally_sample_begin(struct tally_stream *stream)
{
	struct tally_context *c = stream->context;
	struct tally_sample *s = c->samples, *end = s + TALLY_SAMPLES;

	if (!s)
		return NULL;
	while (s < end && s->stream)
		s++;
	if (s == end)
		return NULL;
	if (!s->end && TALLY_DRIVER(cuEventCreate)(&s->end, CU_EVENT_DEFAULT))
		return NULL;
	s->pair = c->device->event_pairs < PAIRS && put(&s->before, stream->handle);
	if (!put(&s->begin, stream->handle))
		return NULL;
	s->stream = stream;
	s->cost = NULL;
	s->configuration = NULL;
	s->loads = false;
	s->mark = 0;
	s->closings = c->device->closings;
	return s;
}

void tally_sample_of(struct tally_sample *s, struct tally_configuration *c, enum tally_level level)
{
	uint32_t bit = TALLY_LEVEL_BIT(level);

	s->configuration = c;
	s->level = level;
	s->loads = c && !(atomic_fetch_or(&c->kernel->ran, bit) & bit);
}

bool tally_sample_end(struct tally_sample *s)
{
	if (!TALLY_DRIVER(cuEventRecord)(s->end, s->stream->handle))
		return true;
	tally_sample_drop(s);
	return false;
}

static void learn(const struct tally_sample *s, uint64_t ns)
{
	struct tally_configuration *c = s->configuration;

	if (s->blocks && s->blocks < s->whole)
		tally_cost_learn(s->cost,
				 (uint64_t)((double)ns * (double)s->whole / (double)s->blocks));
	else
		tally_cost_learn(s->cost, ns);
	if (!c)
		return;
	tally_report_sample(c->row, s->level, ns, s->blocks);
	atomic_store_explicit(&c->kernel->block_ps, ns * 1000 / s->blocks + 1,
			      memory_order_relaxed);
}

void tally_sample_take(struct tally_sample *s)
{
	struct tally_device *d = s->stream->context->device;
	/* While somebody more urgent ran, it says more about that than about the piece. */
	bool undisturbed = s->closings == d->closings;
	uint64_t ns = 0;
	bool known;

	if (undisturbed && s->pair && distance(s->before, s->begin, &ns))
		learn_events(d, ns);
	known = undisturbed && distance(s->begin, s->end, &ns);
	if (known)
		ns = by_itself(d, ns);
	if (known && !s->loads)
		learn(s, ns);
	if (s->configuration)
		tally_report_trace(d->report, TALLY_TRACE_END, s->stream->number,
				   s->configuration->row, known ? ns : 0);
	tally_sample_drop(s);
}

void tally_samples_marked(struct tally_stream *stream, uint32_t mark)
{
	struct tally_sample *s = stream->context->samples;

	for (unsigned i = 0; s && i < TALLY_SAMPLES; i++, s++)
		if (s->stream == stream && s->mark && (int32_t)(mark - s->mark) >= 0)
			tally_sample_take(s);
}

void tally_samples_forget(struct tally_stream *stream)
{
	struct tally_sample *s = stream->context->samples;

	for (unsigned i = 0; s && i < TALLY_SAMPLES; i++, s++)
		if (s->stream == stream)
			tally_sample_drop(s);
}

static bool gone(const struct tally_sample *s)
{
	return s->configuration && !atomic_load(&s->configuration->kernel->handle);
}

/* Those of `cost`, or (NULL) of kernels that are gone. */
static void forget(const struct tally_cost *cost)
{
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next) {
		tally_lock(d);
		for (struct tally_context *c = d->contexts; c; c = c->next)
			for (unsigned i = 0; c->samples && i < TALLY_SAMPLES; i++) {
				struct tally_sample *s = &c->samples[i];

				if (s->stream && (cost ? s->cost == cost : gone(s)))
					tally_sample_drop(s);
			}
		tally_unlock(d);
	}
}

void tally_samples_forget_gone(void)
{
	forget(NULL);
}

void tally_samples_forget_cost(const struct tally_cost *cost)
{
	forget(cost);
}
