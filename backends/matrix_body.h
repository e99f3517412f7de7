/* SPDX-License-Identifier: Apache-2.0 */
/* Portable bodies of matrix operations, as IR text: what the files that write them share. */
#ifndef TALLY_BACKENDS_MATRIX_BODY_H
#define TALLY_BACKENDS_MATRIX_BODY_H

#include <stdint.h>

#include "base/buffer.h"
#include "ir_passes/matrix.h"

enum { TALLY_MATRIX_LANES = 32, TALLY_MATRIX_WMMA_REGISTERS = 8 };

/* One body on its way. Its parameters are %p0, %p1 …, its values %v0, %v1 … */
struct tally_matrix_body {
	struct tally_buffer *text;
	const struct tally_matrix_form *form;
	unsigned next;	 /* number of the next value */
	unsigned lane;	 /* the value that is the lane's number */
	unsigned params; /* how many */
};

/* Writes one instruction that gives a value; its number. */
unsigned tally_matrix_value(struct tally_matrix_body *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Value `index` of lane `lane` of the warp: 32 bits. */
unsigned tally_matrix_shuffle(struct tally_matrix_body *b, const char *word, unsigned lane);

/* Bits of an element of that type, how many of them a register holds, and log2 of a power of 2. */
unsigned tally_matrix_bits(uint8_t type);
unsigned tally_matrix_per(uint8_t type);
unsigned tally_matrix_log2(unsigned n);

/* Ends the body with the values, cast to what the operation gives: `types` in the signature's
 * codes. */
void tally_matrix_return(struct tally_matrix_body *b, const unsigned *values);

/* matrix_rows.c: everything that moves elements: loads, stores, ldmatrix, stmatrix, movmatrix. */
void tally_matrix_write_move(struct tally_matrix_body *b);

#endif
