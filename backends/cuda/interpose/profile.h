/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of each kernel in each launch configuration, and what follows: what the next launch
 * of it runs as, how long it will take, and whether it is to be timed. All of it is learnt while
 * the program runs (timing.c); docs/profiler.md describes the report that it goes to.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_PROFILE_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_PROFILE_H

#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/state.h"
#include "profiler/choice.h"
#include "profiler/report.h"

/* What a piece of work that was never timed is taken for, and the unit of TALLY_DEPTH. */
#define TALLY_UNIT_NS 50000

/* How long a kind of work lasts, as far as samples tell. Plain stores: two threads may lose one. */
struct tally_cost {
	_Atomic uint64_t ns; /* 0: never timed */
	_Atomic uint32_t seen;
};

/* Counts a piece; whether it is one of those to be timed: the first few, then fewer and fewer. */
static inline bool tally_cost_due(struct tally_cost *c)
{
	uint32_t n = atomic_load_explicit(&c->seen, memory_order_relaxed);

	atomic_store_explicit(&c->seen, n + 1, memory_order_relaxed);
	return n < 4 || !(n & (n - 1)) || n % 1024 == 0;
}

static inline uint64_t tally_cost_ns(const struct tally_cost *c, uint64_t otherwise)
{
	uint64_t ns = atomic_load_explicit(&c->ns, memory_order_relaxed);

	return ns ? ns : otherwise;
}

void tally_cost_learn(struct tally_cost *c, uint64_t ns);

#define TALLY_MANNERS 4

/* A kernel with one grid, block and size of shared memory. Lives as long as the kernel's record is
 * that kernel's. */
struct tally_configuration {
	struct tally_configuration *next;
	struct tally_kernel *kernel;
	struct tally_dimensions at;
	struct tally_report_row *row;
	const struct tally_row *stored; /* what earlier runs measured, or NULL */
	uint64_t blocks;
	bool splits; /* the grid may be launched in one dimension */

	_Atomic uint64_t launches;
	_Atomic uint64_t choice;  /* level | reason << 8 | slice << 32 */
	_Atomic int kernel_state; /* what was known of the kernel when that was chosen */
	const void *waved;	  /* the form of the kernel that these are known of: */
	uint64_t wave;		  /* blocks that run at the same time, 0: unknown */
	bool crowded; /* they all would as they are, but not in the form that can be stopped */
	struct tally_cost whole, guarded; /* a whole launch, in either form */
	/* In what manners it was launched that the driver took (ahead.h); 0: none. */
	_Atomic uint64_t accepted[TALLY_MANNERS];
};

/* What a launch of machine code keeps of its attributes when it is stopped and started again. */
#define TALLY_ATTRIBUTES 4

struct tally_attributes {
	unsigned count;
	unsigned cluster; /* blocks of a cluster, 1: none */
	CUlaunchAttribute list[TALLY_ATTRIBUTES];
};

/* What is to be done with one launch. */
struct tally_plan {
	struct tally_configuration *configuration; /* NULL: nothing is known or kept */
	struct tally_choice choice;
	bool measure;
	const struct tally_attributes *attributes; /* of machine code; NULL: none */
};

/* What is known of the kernel in this configuration; NULL: out of memory, or there are too many. */
struct tally_configuration *tally_configuration_of(struct tally_device *device,
						   struct tally_kernel *kernel,
						   const struct tally_dimensions *at);

/* Plans a launch and counts it. `barred`: why this launch must run whole, or TALLY_WHY_NONE. */
void tally_plan(struct tally_plan *plan, struct tally_device *device, struct tally_kernel *kernel,
		const struct tally_dimensions *at, enum tally_reason barred);

/* The kernel is gone, and no launch or sample of it is left. */
void tally_configurations_free(struct tally_kernel *kernel);

/* How long the launch will take as a whole, ns. */
uint64_t tally_plan_ns(const struct tally_plan *plan);

/* What the report counts when the launch has been given to the driver as `level`. */
static inline void tally_plan_given(const struct tally_plan *plan, enum tally_level level)
{
	if (plan->configuration)
		tally_report_launch(plan->configuration->row, level);
}

static inline struct tally_report_row *tally_plan_row(const struct tally_plan *plan)
{
	return plan->configuration ? plan->configuration->row : NULL;
}

/* timing.c ------------------------------------------------------------------------------------- */

/* One piece of work between two events, whose distance is read when the piece is known done. */
struct tally_sample {
	CUevent before, begin, end;  /* `before`: in front of `begin`, with nothing between */
	bool pair;		     /* it has the first one */
	struct tally_stream *stream; /* NULL: free */
	struct tally_cost *cost;
	struct tally_configuration *configuration; /* NULL: no kernel */
	enum tally_level level;
	uint64_t blocks, whole; /* of the piece, of the launch that it is part of */
	bool loads;		/* the kernel's code may have been loaded between the events */
	uint32_t mark;		/* known done with this mark of the stream (queue.h); 0: not so */
	uint64_t closings;	/* of the gate, when it began */
};

/* Puts the first event into the stream. NULL: no sample (all are in use, the driver refused).
 * Device lock held. */
struct tally_sample *tally_sample_begin(struct tally_stream *stream);

/*
 * The piece is (blocks of) a launch of `configuration` in form `level`. The first one of a kernel
 * in a form says nothing of how long it takes, as the driver may load its code only then: that is
 * up to milliseconds between the events. Device lock held.
 */
void tally_sample_of(struct tally_sample *sample, struct tally_configuration *configuration,
		     enum tally_level level);

/* The second one. False when the driver refused; the sample is free then. Device lock held. */
bool tally_sample_end(struct tally_sample *sample);

/* The piece is done: learns from it, and frees it. Device lock held. */
void tally_sample_take(struct tally_sample *sample);

/* It says nothing (stopped, refused, lost): frees it. NULL is allowed. Device lock held. */
static inline void tally_sample_drop(struct tally_sample *sample)
{
	if (sample)
		sample->stream = NULL;
}

/* Takes the stream's samples up to mark `mark`. Device lock held. */
void tally_samples_marked(struct tally_stream *stream, uint32_t mark);

/* Drops the samples of kernels that are gone. No lock held. */
void tally_samples_forget_gone(void);

/* Drops the samples of what lasts `cost`, which is about to end. No lock held. */
void tally_samples_forget_cost(const struct tally_cost *cost);

/* The stream ends: nothing is learnt any more. Device lock held. */
void tally_samples_forget(struct tally_stream *stream);

#endif
