/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which a kernel can be run so that it gives way, and why one of them was taken. */
#ifndef TALLY_PROFILER_LEVEL_H
#define TALLY_PROFILER_LEVEL_H

#include <stdint.h>

/* The numbers are in the store: a new level goes to the end. */
enum tally_level {
	TALLY_LEVEL_GATE,    /* the original; waits before the launch, is never stopped inside */
	TALLY_LEVEL_GUARD,   /* the guarded form, all blocks in one launch */
	TALLY_LEVEL_SLICE,   /* the guarded form in launches of at most N blocks */
	TALLY_LEVEL_PERSIST, /* as many workers as fit take one block after another */
	TALLY_LEVEL_OPAQUE,  /* machine code that was made stoppable without its source */
	TALLY_LEVELS,
};

#define TALLY_LEVEL_BIT(level) (1u << (level))

/* X(NAME, word, text): the word is for JSON and traces, the text for people. What the choice finds
 * (choice.h) comes first, what the backend knows of a kernel or a launch after it. The numbers are
 * in the store: a new reason goes to the end. */
#define TALLY_REASONS(X)                                                                           \
	X(NONE, "none", "nothing is known yet")                                                    \
	X(UNMEASURED, "unmeasured", "not measured yet")                                            \
	X(EXPLORING, "exploring", "being measured in this form")                                   \
	X(SHORT, "short", "shorter than the bound as it is")                                       \
	X(FASTEST, "fastest", "the fastest form that stops within the bound")                      \
	X(LONG, "long", "longer than the bound: stops between blocks")                             \
	X(MANY_BLOCKS, "many-blocks",                                                              \
	  "so many blocks that skipping them takes longer than the bound")                         \
	X(ONE_WAVE, "one-wave", "all of its blocks run at once: there is nothing to stop between") \
	X(OVER_BOUND, "over-bound", "no form stops within the bound: the quickest one to stop")    \
	X(NO_CODE, "no-code", "there is nothing to transform: it came as machine code alone")      \
	X(COMPILING, "compiling", "its stoppable form is being compiled")                          \
	X(NOT_COMPILED, "not-compiled", "its stoppable form could not be compiled")                \
	X(DRIVER, "driver", "the driver refused its stoppable form")                               \
	X(COOPERATIVE, "cooperative", "a cooperative launch: its blocks wait for each other")      \
	X(CLUSTER, "cluster", "its blocks run in clusters")                                        \
	X(LOOK_BACK, "look-back", "its blocks wait for earlier blocks of the same grid")           \
	X(DEVICE_LAUNCH, "device-launch", "launches from the device")                              \
	X(ATTRIBUTES, "attributes", "launched with attributes that a split launch would not keep") \
	X(GRAPH, "graph", "part of a graph, which is launched as a whole")                         \
	X(HIGH, "high", "the program's priority is high: it is never stopped inside")              \
	X(ASKED, "asked", "the user asked for it")                                                 \
	X(VARIABLES, "variables", "has device variables: stoppable when the program starts again") \
	X(CLOSED, "closed",                                                                        \
	  "from a closed library, or nobody knows whose: --opaque all would have it stop")         \
	X(OPAQUE_OFF, "opaque-off", "it came as machine code alone, and --opaque is off")          \
	X(SELF_TEST, "self-test", "this driver does not run machine code that was made stoppable") \
	X(NOT_PATCHED, "not-patched", "its machine code could not be made stoppable")              \
	X(SHARED, "shared-variables",                                                              \
	  "uses device variables, which a second copy of its machine code would have twice")       \
	X(COLLECTIVE, "collective", "it waits for kernels of other devices")                       \
	X(CROWDED, "crowded",                                                                      \
	  "its blocks fit on the device at once, and would not in its stoppable form")

enum tally_reason {
#define TALLY_REASON_NUMBER(name, word, text) TALLY_WHY_##name,
	TALLY_REASONS(TALLY_REASON_NUMBER)
#undef TALLY_REASON_NUMBER
		TALLY_REASON_COUNT
};

/* What a kernel runs as, and why. */
struct tally_choice {
	enum tally_level level;
	enum tally_reason reason;
	uint32_t slice; /* blocks a launch; TALLY_LEVEL_SLICE alone, else 0 */
};

/* Words without spaces, and sentences' parts. Never NULL: "?" for a number out of range. */
const char *tally_level_word(enum tally_level level);
const char *tally_reason_word(enum tally_reason reason);
const char *tally_reason_text(enum tally_reason reason);

#endif
