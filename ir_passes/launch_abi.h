/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch ABI: what a transformed kernel and the runtime that launches it agree on. Shared by
 * the passes (which build IR to these layouts), by every backend and by the CPU executor. Device
 * code is little-endian 64-bit everywhere, so the C layouts below are the device layouts.
 *
 * Every transformed entry (`K$slice`, `K$guard`, `K$slice_guard`, `K$persist`) takes the original's
 * parameters and, last, one `struct tally_launch` by value, 8-byte aligned. Machine code that a
 * guard was put into (docs/opaque.md) takes its first 16 bytes, and has no other name.
 *
 * A block's linear id u counts x fastest: u = (z * grid.y + y) * grid.x + x, in the original grid.
 *   slice   the launch is one-dimensional, hi - lo blocks; block b of it runs u = lo + b
 *   guard   the launch has the original grid (slice_guard: that of slice); a block with u outside
 *           [lo, hi) ends at once; control == 0 means: run without asking
 *   persist the launch is one-dimensional, as many blocks as there are to be workers; each runs one
 *           block of [lo, hi) after another: the next of the control block's counter, or, with
 *           control == 0, lo + its own id and every so-many-eth as there are workers
 */
#ifndef TALLY_IR_PASSES_LAUNCH_ABI_H
#define TALLY_IR_PASSES_LAUNCH_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_launch {
	uint64_t control;  /* device address of a struct tally_control, or 0; guards: see
			      TALLY_CONTROL_WHOLE */
	uint32_t lo, hi;   /* range of linear block ids, [lo, hi) */
	uint32_t grid[3];  /* the original grid */
	uint32_t reserved; /* 0 */
};

/*
 * One launch's control block, in device memory, 8-byte aligned. `word` is W of the stop protocol:
 * upper half stop, lower half max. Before each start the runtime stores `lo` in it with stop 0.
 * From the total order of the atomic operations on W follows: all threads of a block agree; the
 * blocks that ran are exactly [lo, max); so resuming is a launch with lo = max, no block runs
 * twice, none is lost, and a block that waits for lower ids never waits for a skipped one.
 */
struct tally_control {
	uint64_t word;
	uint64_t gate;	   /* address of the process's u32 gate word: non-zero asks to stop */
	uint64_t broken;   /* address of the stream's u32 broken word: an earlier launch of this
			      stream was stopped, so this one must not run either */
	uint64_t mailbox;  /* address of the stream's u64 stop mailbox, in host-visible memory */
	uint32_t sequence; /* this launch's number in its stream, from 1 */
	uint32_t hi;	   /* the launch's end: a launch whose max is hi already is not stopped */
};

/*
 * Added to the address of a control block, which is even: the launch runs as a whole or not at all.
 * The first of its blocks that enters claims all of them, so no later one can stop it; stopped
 * before that, it has run none. For grids whose blocks all run at the same time: those may wait for
 * each other in any order, and half of them would wait for ever.
 */
#define TALLY_CONTROL_WHOLE ((uint64_t)1)

#define TALLY_WORD_STOP	  ((uint64_t)1 << 32)
#define TALLY_WORD_MAX(w) ((uint32_t)(w))

/* The control block that a launch's `control` names; NULL for 0. */
static inline struct tally_control *tally_control_of(uint64_t control)
{
	return (struct tally_control *)(uintptr_t)(control & ~TALLY_CONTROL_WHOLE);
}

/* What the block that stops a launch posts to the mailbox: {sequence, max}. 0 means none. */
#define TALLY_MAILBOX(sequence, max) ((uint64_t)(sequence) << 32 | (uint32_t)(max))
#define TALLY_MAILBOX_SEQUENCE(m)    ((uint32_t)((m) >> 32))
#define TALLY_MAILBOX_MAX(m)	     ((uint32_t)(m))

/* guard.ll and the guard of machine code have these as numbers. */
_Static_assert(sizeof(struct tally_launch) == 32, "device layout");
_Static_assert(offsetof(struct tally_launch, lo) == 8, "device layout");
_Static_assert(offsetof(struct tally_launch, hi) == 12, "device layout");
_Static_assert(offsetof(struct tally_launch, grid) == 16, "device layout");
_Static_assert(sizeof(struct tally_control) == 40, "device layout");
_Static_assert(offsetof(struct tally_control, word) == 0, "device layout");
_Static_assert(offsetof(struct tally_control, gate) == 8, "device layout");
_Static_assert(offsetof(struct tally_control, broken) == 16, "device layout");
_Static_assert(offsetof(struct tally_control, mailbox) == 24, "device layout");
_Static_assert(offsetof(struct tally_control, sequence) == 32, "device layout");
_Static_assert(offsetof(struct tally_control, hi) == 36, "device layout");

/* After `old` was read while the stop bit was set: the one that set it, when blocks remain and no
 * earlier launch of the stream was stopped, says so, broken first. */
static inline void tally_guard_post(struct tally_control *c, uint64_t old)
{
	if (old < TALLY_WORD_STOP && TALLY_WORD_MAX(old) < c->hi &&
	    !__atomic_exchange_n((uint32_t *)(uintptr_t)c->broken, 1, __ATOMIC_ACQ_REL))
		__atomic_store_n((uint64_t *)(uintptr_t)c->mailbox,
				 TALLY_MAILBOX(c->sequence, TALLY_WORD_MAX(old)), __ATOMIC_RELEASE);
}

/*
 * The decision, once per block, by one thread, for all (`tally.guard.enter` of the IR contract).
 * This C form is the reference and what the CPU executor runs; ir_passes/guard.ll has the same in
 * IR for the GPU targets, the guard of machine code (docs/opaque.md) in its vendor's words; tests
 * compare both with this one. Returns whether block `u` is to run.
 *
 * gate or broken set: atomicOr(W, stop). If old.max >= u+1 this block was promised to run before
 * the launch was stopped (a higher id entered first): it runs. Otherwise it ends. The one whose OR
 * set the bit, when blocks remain and no earlier launch of the stream broke, sets broken and posts
 * the mailbox: broken first, so that no later launch of the stream can start between the two.
 * Otherwise: atomicMax(W, u+1), or hi instead where the launch is one that runs as a whole; stop
 * was set and max frozen below u+1: it ends; else it runs.
 */
static inline bool tally_guard_enter(uint64_t control, uint32_t u)
{
	struct tally_control *c = tally_control_of(control);
	uint64_t old, claim = control & TALLY_CONTROL_WHOLE ? c->hi : (uint64_t)u + 1;
	uint32_t *gate = (uint32_t *)(uintptr_t)c->gate;
	uint32_t *broken = (uint32_t *)(uintptr_t)c->broken;

	uint32_t was_broken = __atomic_load_n(broken, __ATOMIC_ACQUIRE);
	if (!(__atomic_load_n(gate, __ATOMIC_RELAXED) | was_broken)) {
		/* x86-64 has no atomic max: this is one, and the common case is one exchange. */
		old = __atomic_load_n(&c->word, __ATOMIC_RELAXED);
		while (old < claim)
			if (__atomic_compare_exchange_n(&c->word, &old, claim, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				return true;
		return old < TALLY_WORD_STOP || TALLY_WORD_MAX(old) >= u + 1;
	}
	old = __atomic_fetch_or(&c->word, TALLY_WORD_STOP, __ATOMIC_ACQ_REL);
	tally_guard_post(c, old);
	return TALLY_WORD_MAX(old) >= u + 1;
}

/*
 * The next block of a worker (`tally.persist.next` of the IR contract), asked by one thread for
 * all: max is the counter here. UINT32_MAX: none. A number of hi and more is none either: every
 * worker claims once more than there are blocks, so max may pass hi, by no more than there are
 * workers. From the total order of the atomic operations follows that the blocks that ran are
 * exactly [lo, max), as with guards, and the mailbox says so in the same way.
 */
static inline uint32_t tally_persist_claim(struct tally_control *c)
{
	uint32_t *gate = (uint32_t *)(uintptr_t)c->gate;
	uint32_t *broken = (uint32_t *)(uintptr_t)c->broken;
	uint64_t old;

	if (!(__atomic_load_n(gate, __ATOMIC_RELAXED) |
	      __atomic_load_n(broken, __ATOMIC_ACQUIRE))) {
		old = __atomic_fetch_add(&c->word, 1, __ATOMIC_ACQ_REL);
		return old < TALLY_WORD_STOP ? TALLY_WORD_MAX(old) : UINT32_MAX;
	}
	old = __atomic_fetch_or(&c->word, TALLY_WORD_STOP, __ATOMIC_ACQ_REL);
	tally_guard_post(c, old);
	return UINT32_MAX;
}

#endif
