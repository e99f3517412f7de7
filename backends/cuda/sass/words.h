/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of sm_70 and newer: 128 bits in two words. Only what a guard needs to know of them:
 * branches, where a constant's address stands, what waits for what. Everything else is ptxas's.
 * Shared with make_prelude, which checks at build time that ptxas writes them so.
 */
#ifndef TALLY_BACKENDS_CUDA_SASS_WORDS_H
#define TALLY_BACKENDS_CUDA_SASS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sass_word {
	uint64_t lo, hi;
};

#define SASS_WORD_BYTES sizeof(struct sass_word)

enum sass_opcode {
	SASS_BRA = 0x947,
	SASS_BRA_UNIFORM = 0x547,
	SASS_CALL_RELATIVE = 0x944,
	SASS_BSSY = 0x945,
	SASS_BSYNC = 0x941,
	SASS_EXIT = 0x94d,
	SASS_BMOV_CLEAR = 0x355,
	SASS_NOP = 0x918,
	SASS_PMTRIG = 0x801,
};

static inline unsigned sass_opcode(struct sass_word word)
{
	return word.lo & 0xfff;
}

struct sass_word sass_word_at(const uint8_t *code, size_t index);

/*
 * Relative branches count from the next instruction, in units of 4 bytes; the lowest 8 bits of that
 * number stand apart from sm_90 on (`split`). Offsets are bytes from the start of the code.
 */
struct sass_word sass_branch(bool split, uint64_t at, uint64_t target);
int64_t sass_branch_target(bool split, struct sass_word word, uint64_t at);
/* The same of BSSY, which names where the warp meets again. */
int64_t sass_meeting_target(struct sass_word word, uint64_t at);

/* Does nothing, after all that is under way has arrived in its registers. */
struct sass_word sass_wait_for_all(void);
struct sass_word sass_nop(void);

/* Byte offset in the constant bank of an instruction that has an operand there: 16 bits, the lowest
 * is SASS_CONSTANT or, in loads to uniform registers from sm_100 on, SASS_CONSTANT - 1. */
#define SASS_CONSTANT 38u
unsigned sass_constant(struct sass_word word, unsigned lowest);
struct sass_word sass_set_constant(struct sass_word word, unsigned lowest, unsigned offset);

/* Whether a word is the first of every kernel: R1 = c[0][stack], in one of three spellings. */
bool sass_loads_stack(struct sass_word word, unsigned stack);

#endif
