/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard as machine code, one for each chip that the build's ptxas knows: prelude.ptx, compiled
 * at build time, taken apart and checked by make_prelude.
 */
#ifndef TALLY_BACKENDS_CUDA_SASS_PRELUDE_H
#define TALLY_BACKENDS_CUDA_SASS_PRELUDE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/sass/words.h"

/* A word that reads the launch parameter: at which of its bytes, and where in the word that stands
 * (sass_set_constant). */
struct sass_fixup {
	uint16_t word, field, lowest;
};

struct sass_prelude {
	unsigned arch;	     /* 90: sm_90 */
	uint16_t parameters; /* where a kernel's parameters begin in constant bank 0, bytes */
	uint16_t stack;	     /* where its first word finds the stack's address there */
	uint16_t registers;  /* that the guard needs */
	bool split;	     /* how branches are written: words.h */
	bool reads_z;	     /* it needs the attribute that says so */
	uint16_t count;	     /* words */
	uint16_t leave;	     /* the first of three words that make way for the kernel */
	uint16_t fixups;
	const struct sass_word *word;
	const struct sass_fixup *fixup;
};

/* Generated; ends with an arch of 0. Without a ptxas at build time there are none. */
extern const struct sass_prelude sass_preludes[];

#endif
