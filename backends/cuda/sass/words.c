/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction words: see words.h. */
#include "backends/cuda/sass/words.h"

#include <string.h>

/* How long to wait, for whom, and what to keep, for the scheduler: the same bits on all chips. */
#define CONTROL_SHIFT 41
#define CONTENT_MASK  (((uint64_t)1 << CONTROL_SHIFT) - 1)
#define REUSE_SHIFT   58

#define TARGET_MASK ((uint64_t)0x3ffff) /* the branch's upper 18 bits, in `hi` */
#define BRANCH_LO   0x7947u
#define BRANCH_HI   0x000fea0003800000u

#define CONSTANT_MASK ((uint64_t)0xffff)

struct sass_word sass_word_at(const uint8_t *code, size_t index)
{
	struct sass_word word;

	memcpy(&word, code + index * sizeof word, sizeof word);
	return word;
}

struct sass_word sass_branch(bool split, uint64_t at, uint64_t target)
{
	uint64_t units = (target - at - SASS_WORD_BYTES) >> 2;
	struct sass_word word = {BRANCH_LO, BRANCH_HI};

	if (split) {
		word.lo |= (units & 0xff) << 16 | (units >> 8 & 0x3fffffff) << 34;
		word.hi |= units >> 38 & TARGET_MASK;
	} else {
		word.lo |= (units & 0x3fffffff) << 34;
		word.hi |= units >> 30 & TARGET_MASK;
	}
	return word;
}

int64_t sass_branch_target(bool split, struct sass_word word, uint64_t at)
{
	uint64_t units, bits = split ? 56 : 48;

	if (split)
		units = (word.lo >> 16 & 0xff) | word.lo >> 34 << 8 | (word.hi & TARGET_MASK) << 38;
	else
		units = word.lo >> 34 | (word.hi & TARGET_MASK) << 30;
	/* Signed, without shifting a negative number. */
	units = (units ^ (uint64_t)1 << (bits - 1)) - ((uint64_t)1 << (bits - 1));
	return (int64_t)(at + SASS_WORD_BYTES + units * 4);
}

int64_t sass_meeting_target(struct sass_word word, uint64_t at)
{
	return (int64_t)(at + SASS_WORD_BYTES) + (int32_t)(word.lo >> 32);
}

struct sass_word sass_wait_for_all(void)
{
	/* 15 cycles, no barrier set, all six waited for. */
	return (struct sass_word){0x7918, (uint64_t)0x1ffef << CONTROL_SHIFT};
}

struct sass_word sass_nop(void)
{
	return (struct sass_word){0x7918, (uint64_t)0x7e0 << CONTROL_SHIFT};
}

unsigned sass_constant(struct sass_word word, unsigned lowest)
{
	return (unsigned)(word.lo >> lowest & CONSTANT_MASK);
}

struct sass_word sass_set_constant(struct sass_word word, unsigned lowest, unsigned offset)
{
	word.lo = (word.lo & ~(CONSTANT_MASK << lowest)) | (uint64_t)offset << lowest;
	return word;
}

bool sass_loads_stack(struct sass_word word, unsigned stack)
{
	static const struct sass_word forms[] = {
		{0x00000000ff017b82, 0x0000000800}, /* LDC R1, c[0][...] */
		{0x00000000ff017624, 0x00078e00ff}, /* IMAD.MOV.U32 R1, RZ, RZ, c[0][...] */
		{0x0000000000017a02, 0x0000000f00}, /* MOV R1, c[0][...] */
	};

	/* The instruction behind it is not the next one any more: nothing to keep for it. */
	if (word.hi >> REUSE_SHIFT & 0xf)
		return false;
	for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
		if (sass_set_constant(word, SASS_CONSTANT, 0).lo == forms[k].lo &&
		    (word.hi & CONTENT_MASK) == forms[k].hi &&
		    sass_constant(word, SASS_CONSTANT) == stack)
			return true;
	return false;
}
