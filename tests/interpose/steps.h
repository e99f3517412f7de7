/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the launch protocol inside one process share: the kernels of guard_kernels.c on
 * the CPU device, a rival of higher priority that is another membership of this process, and chains
 * of launches of which each depends on the one before.
 */
#ifndef TALLY_TESTS_INTERPOSE_STEPS_H
#define TALLY_TESTS_INTERPOSE_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/state.h"

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

enum { BLOCKS = 24 };
/* A block of this long makes a launch that can usually be met while it runs. */
enum { LONG_US = 2000 };
/* A block of this long lasts until chain_let_go(). Of such launches one at a time. */
#define HELD_US UINT32_MAX

/* From now on each piece of work is measured to have taken so long, whatever a busy machine made of
 * it; 0: as long as it took. */
void steps_say_took(float ms);

/* From now on two events are that much farther from each other, as on a device where they take
 * their time. */
void steps_events_take(float ms);

/* How long anything may take to happen: longer than a busy machine looks elsewhere. */
enum { PATIENCE_S = 60 };

/* Sleeps a moment; whether `end`, of tally_now()'s clock, is over. */
bool steps_waited(uint64_t end);

/* Waits until CONDITION; fails when it took all patience. */
#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t end_ = tally_now() + PATIENCE_S * UINT64_C(1000000000);                   \
		while (!(condition))                                                               \
			if (steps_waited(end_))                                                    \
				fail_msg("line %d: never: %s", __LINE__, #condition);              \
	} while (0)

extern CUcontext context;
extern CUfunction step, empty; /* of a stoppable module */
extern struct tally_device *device;

/* Loads the kernels once more; `stoppable`: as if the compiler had made the image from something.
 */
CUmodule load_steps(bool stoppable);

/* Launches of this program that were stopped so far. */
uint64_t stops(void);

/* Some device memory, 4 KiB each, and a copy from one to the other. */
extern CUdeviceptr memory, other;
const CUDA_MEMCPY3D *some_copy(void);

/* For one test (a setup and a teardown): the doors take nothing ahead, and wait themselves. */
int doors_wait(void **state);
int doors_run_ahead(void **state);

/* The rival ------------------------------------------------------------------------------------ */

extern struct tally_client *rival;

/* Until rival_ends(): active and quiet in turn for random times, so that stops meet every moment of
 * a launch. */
void rival_begins(unsigned seed);
void rival_ends(void);

/* The victim ----------------------------------------------------------------------------------- */

struct chain {
	CUstream stream;
	CUfunction step; /* whose turn it is: `step` unless changed */
	bool flat;	 /* a grid of one dimension: another configuration of the kernel */
	CUdeviceptr values, ran;
	uint32_t expected[BLOCKS];
	uint32_t launches;
};

void chain_open(struct chain *c, CUstream stream);
/* `work`: microseconds of each block. */
void chain_step(struct chain *c, uint32_t number, uint32_t work, bool packed);
/* A launch of it that somebody else made, or will make. */
void chain_expect(struct chain *c, uint32_t number);
/* A node of `graph` behind `count` others: a step of the chain, or another kernel like it. */
CUgraphNode chain_node(struct chain *c, CUgraph graph, CUfunction kernel, uint32_t number,
		       uint32_t work, const CUgraphNode *after, size_t count);
/* Launches `count` steps, which the rival stops in the middle, and again where a busy machine let
 * them come to their end first. The rival stays active, and blocks are left to run until it is not.
 */
void chain_stop(struct chain *c, unsigned count);
/* Work of HELD_US comes to its end. */
void chain_let_go(struct chain *c);
/* How many blocks have run so far; nothing is waited for. */
uint32_t chain_ran(const struct chain *c);
/* Waits for the chain, and sees that each launch ran once and in its turn. */
void chain_check(struct chain *c);

/* What is known of kernel `k` as chains launch it, with a `flat` grid or not; it was launched so.
 */
struct tally_configuration *chain_configuration(CUfunction k, bool flat);

/* A setup of a group: device 0, its context, the kernels, the rival. */
int steps_setup(void **state);

#endif
