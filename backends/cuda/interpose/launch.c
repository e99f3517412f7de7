/* SPDX-License-Identifier: Apache-2.0 */
/* The doors through which kernels go to the device. */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/burst.h"
#include "backends/cuda/interpose/graphs.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/waits.h"

/* The stream's record, or NULL: Tally keeps out. */
static inline struct tally_stream *enter(CUstream handle, bool per_thread)
{
	return tally_enter() && tally_on() ? tally_stream_given(handle, per_thread) : NULL;
}

/* What comes before every launch of which the driver is called. */
static inline void before(struct tally_stream *s)
{
	if (!s)
		return;
	tally_announce(s, true);
	tally_gate_pass(s->context->device);
}

/* A launch that was taken ahead is in the trace from when the program asked for it. */
static inline bool asked_now(void)
{
	return tally_giving != TALLY_GIVING_ENTRY;
}

static inline void after(struct tally_stream *s)
{
	if (s)
		tally_given();
	tally_leave();
}

/* A program with guards has one more way for a launch. */
struct way {
	enum tally_reason barred; /* why the launch must run whole, or TALLY_WHY_NONE */
	void **parameters, **extra;
	const CUlaunchConfig *config; /* of cuLaunchKernelEx, or NULL */
	struct tally_piece piece;
};

static bool has_guard(struct tally_stream *s)
{
	struct tally_device *d = s->context->device;
	bool has;

	tally_lock(d);
	has = (s->guard || tally_guard_memory(s)) && !s->guard->lost;
	tally_unlock(d);
	return has;
}

/* Machine code that again and again has to wait for stoppable launches in front of it, because it
 * could not skip itself, is worth patching however short it is. */
static void wish(struct tally_stream *s, const struct tally_kernel *k)
{
	enum { OFTEN = 256 }; /* a wait costs some 10 us, patching and loading 50 ms */
	struct tally_module *m = tally_kernel_unasked(k);

	if (m && tally_guard_unconfirmed(s) &&
	    atomic_fetch_add(&m->machine_code->behind, 1) == OFTEN)
		tally_opaque_ask(m);
}

/*
 * Whether the launch goes as one that can be stopped. A kernel whose original is short enough does
 * all the same when launches before it in the stream may still be stopped: the original cannot
 * skip itself, so it would have to wait for them.
 */
static bool stoppable(struct tally_stream *s, struct way *w)
{
	struct tally_plan *plan = &w->piece.plan;
	const struct tally_configuration *c = plan->configuration;

	/* Asked first: whatever runs whole here, others may be behind it. */
	if (tally_waits_behind(s) || !c || w->barred || !c->splits || c->crowded)
		return false;
	if (plan->choice.level == TALLY_LEVEL_GATE) {
		if (!tally_kernel_stoppable(c->kernel)) {
			wish(s, c->kernel);
			return false;
		}
		if (!tally_guard_unconfirmed(s))
			return false;
		plan->choice.level = c->kernel->opaque ? TALLY_LEVEL_OPAQUE : TALLY_LEVEL_GUARD;
		plan->choice.slice = 0;
	}
	return has_guard(s);
}

/* What a launch's attributes mean for one that may be stopped, and started again. */
enum meaning {
	BARS,	 /* it would not be kept */
	NOTHING, /* it says nothing about how blocks run together */
	KEPT,	 /* a launch that is started again has it too */
	DROPPED, /* it allows something that need not happen */
};

/* Machine code is launched with its own grid, and so with most of what the program wanted. */
static enum meaning meaning_of(const CUlaunchAttribute *a)
{
	switch (a->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
		return NOTHING;
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		return a->value.cooperative ? BARS : NOTHING;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		return DROPPED;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return KEPT;
	default:
		return BARS;
	}
}

/* Of machine code: which attributes stay (false: there are none), and whether the launch may be
 * stopped (`way->barred`). */
static bool read_attributes(struct way *w, const struct tally_kernel *kernel,
			    struct tally_attributes *kept)
{
	if (!w->config || !w->config->numAttrs || !kernel || !tally_kernel_opaque(kernel))
		return false;
	kept->count = 0;
	kept->cluster = 1;
	w->barred = TALLY_WHY_NONE;
	for (unsigned i = 0; i < w->config->numAttrs; i++) {
		const CUlaunchAttribute *a = &w->config->attrs[i];
		enum meaning meaning = meaning_of(a);

		if (meaning == BARS || (meaning == KEPT && kept->count == TALLY_ATTRIBUTES))
			w->barred = a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE ? TALLY_WHY_COOPERATIVE
									     : TALLY_WHY_ATTRIBUTES;
		else if (meaning == KEPT)
			kept->list[kept->count++] = *a;
		if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			kept->cluster = a->value.clusterDim.x * a->value.clusterDim.y *
					a->value.clusterDim.z;
	}
	return true;
}

/* True when the launch is done, with the driver's answer in `result`; false when the caller is to
 * call the driver, and then opaque_done(). */
static bool instead(struct tally_stream *s, CUfunction function, const struct tally_dimensions *at,
		    struct way *w, CUresult *result)
{
	const void *packed = w->parameters ? NULL : tally_packed_parameters(w->extra);
	struct tally_device *d = s->context->device;
	struct tally_plan *plan = &w->piece.plan;
	struct tally_attributes attributes;
	struct tally_kernel *kernel;
	bool any;

	/* While something is captured nothing may have to be started again: the stream could have
	 * joined the capture by then. */
	if (atomic_load_explicit(&tally_process.captures, memory_order_relaxed)) {
		tally_report_trace(d->report, TALLY_TRACE_LAUNCH, s->number, NULL,
				   TALLY_LEVEL_GATE);
		tally_fence(s);
		return false;
	}
	kernel = tally_kernel_of(function);
	any = read_attributes(w, kernel, &attributes);
	tally_plan(plan, d, kernel, at, w->barred);
	plan->attributes = any ? &attributes : NULL;
	if (plan->configuration && asked_now())
		tally_report_trace(d->report, TALLY_TRACE_LAUNCH, s->number,
				   plan->configuration->row, plan->choice.level);
	if (stoppable(s, w) && (w->parameters || packed || !plan->configuration->kernel->count) &&
	    tally_guard_launch(s, plan, w->parameters, packed, result))
		return true;
	plan->choice.level = TALLY_LEVEL_GATE;
	tally_fence(s);
	if (plan->configuration) {
		w->piece.cost = &plan->configuration->whole;
		w->piece.blocks = plan->configuration->blocks;
		tally_queue_enter(s, &w->piece, tally_plan_ns(plan), plan->measure);
	}
	return false;
}

static void opaque_done(struct tally_stream *s, struct way *w, CUresult result)
{
	struct tally_configuration *c = w->piece.plan.configuration;

	tally_queue_leave(&w->piece, result == CUDA_SUCCESS);
	if (!c || result)
		return;
	tally_plan_given(&w->piece.plan, TALLY_LEVEL_GATE);
	tally_report_trace(s->context->device->report, TALLY_TRACE_START, s->number, c->row,
			   c->blocks);
}

/* Somebody records what a program without guards does: the row is made for the record's sake. */
static struct tally_report_row *__attribute__((noinline))
trace_whole(struct tally_stream *s, CUfunction function, const struct tally_dimensions *at)
{
	static const struct tally_choice whole = {TALLY_LEVEL_GATE, TALLY_WHY_HIGH, 0};
	struct tally_report *report = s->context->device->report;
	struct tally_kernel *k = tally_kernel_of(function);
	struct tally_report_row *row = NULL;
	struct tally_row_key key;

	if (k) {
		key = tally_report_key(k->module ? k->module->hash : NULL, k->hash, at->grid,
				       at->block, at->shared);
		row = tally_report_row(report, &key, k->name);
		tally_report_choose(row, &whole);
	}
	tally_report_record(report, TALLY_TRACE_LAUNCH, 0, s->number, row, TALLY_LEVEL_GATE);
	return row;
}

static inline bool traced(const struct tally_stream *s)
{
	return s && tally_report_tracing(s->context->device->report);
}

/* A door: `at` are the launch's dimensions, the rest of the first line fills in a struct way. */
#define LAUNCH(symbol, function, stream_, per_thread, at, barred_, parameters_, extra_, config_,   \
	       arguments_, call)                                                                   \
	CUresult symbol arguments_                                                                 \
	{                                                                                          \
		const struct tally_dimensions dimensions = at;                                     \
		struct tally_stream *s = enter(stream_, per_thread);                               \
		const struct tally_call made = {                                                   \
			function, &dimensions, parameters_,                                        \
			extra_,	  config_,     (barred_) == TALLY_WHY_COOPERATIVE && !(config_)};  \
		CUresult result;                                                                   \
                                                                                                   \
		if (s && tally_ahead_on() && tally_ahead_launch(s, &made, &result)) {              \
			tally_leave();                                                             \
			return result;                                                             \
		}                                                                                  \
		before(s);                                                                         \
		if (s)                                                                             \
			tally_burst_launch(s->context->device, function, dimensions.grid[0],       \
					   dimensions.grid[1], dimensions.grid[2]);                \
		if (!s || !tally_process.config.guards) {                                          \
			bool trace = traced(s);                                                    \
			struct tally_report_row *row =                                             \
				trace ? trace_whole(s, function, &dimensions) : NULL;              \
                                                                                                   \
			result = TALLY_REAL(symbol) call;                                          \
			if (trace)                                                                 \
				tally_report_record(s->context->device->report, TALLY_TRACE_START, \
						    0, s->number, row, 0);                         \
		} else {                                                                           \
			struct way w = {.barred = barred_,                                         \
					.parameters = parameters_,                                 \
					.extra = extra_,                                           \
					.config = config_};                                        \
                                                                                                   \
			if (!instead(s, function, &dimensions, &w, &result)) {                     \
				result = TALLY_REAL(symbol) call;                                  \
				opaque_done(s, &w, result);                                        \
			}                                                                          \
			if (!result)                                                               \
				tally_ahead_accepted(s, &made, w.piece.plan.configuration);        \
		}                                                                                  \
		after(s);                                                                          \
		return result;                                                                     \
	}
#define LAUNCH_BOTH(symbol, function, stream_, ...)                                                \
	LAUNCH(symbol, function, stream_, false, __VA_ARGS__)                                      \
	LAUNCH(symbol##_ptsz, function, stream_, true, __VA_ARGS__)

/* What is written out in the arguments of most doors. */
#define DIMENSIONS                                                                                 \
	((struct tally_dimensions){{gridDimX, gridDimY, gridDimZ},                                 \
				   {blockDimX, blockDimY, blockDimZ},                              \
				   sharedMemBytes})

LAUNCH_BOTH(cuLaunchKernel, f, stream, DIMENSIONS, TALLY_WHY_NONE, kernelParams, extra, NULL,
	    (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
	     unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
	     unsigned int sharedMemBytes, CUstream stream, void **kernelParams, void **extra),
	    (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
	     stream, kernelParams, extra))
/* Its blocks wait for each other. */
LAUNCH_BOTH(cuLaunchCooperativeKernel, f, stream, DIMENSIONS, TALLY_WHY_COOPERATIVE, kernelParams,
	    NULL, NULL,
	    (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
	     unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
	     unsigned int sharedMemBytes, CUstream stream, void **kernelParams),
	    (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
	     stream, kernelParams))

/* Why a launch with these attributes must run whole: what says nothing about how blocks run
 * together is no reason. */
static enum tally_reason barred(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config && i < config->numAttrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];

		switch (a->id) {
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
			break;
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			if (a->value.cooperative)
				return TALLY_WHY_COOPERATIVE;
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			if (a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z !=
			    1)
				return TALLY_WHY_CLUSTER;
			break;
		default:
			return TALLY_WHY_ATTRIBUTES;
		}
	}
	return TALLY_WHY_NONE;
}

static struct tally_dimensions dimensions_of(const CUlaunchConfig *config)
{
	if (!config)
		return (struct tally_dimensions){0};
	return (struct tally_dimensions){{config->gridDimX, config->gridDimY, config->gridDimZ},
					 {config->blockDimX, config->blockDimY, config->blockDimZ},
					 config->sharedMemBytes};
}

LAUNCH_BOTH(cuLaunchKernelEx, f, config ? config->hStream : NULL, dimensions_of(config),
	    barred(config), kernelParams, extra, config,
	    (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
	    (config, f, kernelParams, extra))

static inline void trace_graph(struct tally_stream *s, enum tally_event_kind kind)
{
	if (s)
		tally_report_trace(s->context->device->report, kind, s->number, NULL, 0);
}

#define GRAPH(symbol, per_thread)                                                                  \
	CUresult symbol(CUgraphExec hGraph, CUstream stream)                                       \
	{                                                                                          \
		struct tally_stream *s = enter(stream, per_thread);                                \
		CUresult result;                                                                   \
                                                                                                   \
		if (s && tally_ahead_on() && tally_graph_ahead(s, hGraph, &result)) {              \
			tally_leave();                                                             \
			return result;                                                             \
		}                                                                                  \
		before(s);                                                                         \
		if (s)                                                                             \
			tally_burst_launch(s->context->device, hGraph, 0, 0, 0);                   \
		if (asked_now())                                                                   \
			trace_graph(s, TALLY_TRACE_LAUNCH);                                        \
		if (s && tally_process.config.guards) {                                            \
			result = tally_graph_launch(s, hGraph);                                    \
			tally_report_count(s->context->device->report, TALLY_COUNT_GRAPHS, 1);     \
		} else {                                                                           \
			result = TALLY_REAL(symbol)(hGraph, stream);                               \
			trace_graph(s, TALLY_TRACE_START);                                         \
		}                                                                                  \
		after(s);                                                                          \
		return result;                                                                     \
	}
GRAPH(cuGraphLaunch, false)
GRAPH(cuGraphLaunch_ptsz, true)
