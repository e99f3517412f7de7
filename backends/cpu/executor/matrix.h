/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the matrix operations share: elements, and the lanes that hold them. */
#ifndef TALLY_BACKENDS_CPU_EXECUTOR_MATRIX_H
#define TALLY_BACKENDS_CPU_EXECUTOR_MATRIX_H

#include "backends/cpu/executor/internal.h"
#include "ir_passes/matrix.h"

/* Elements of the largest A (m16n8k256), B and C; factors along k. */
enum {
	TALLY_CPU_LANES = 32,
	TALLY_CPU_MAX_A = 16 * 256,
	TALLY_CPU_MAX_B = 8 * 256,
	TALLY_CPU_MAX_C = 16 * 16,
	TALLY_CPU_MAX_SCALES = 4,
};

/* One element: `whole` where the type is an integer. */
union tally_cpu_element {
	double real;
	int64_t whole;
};

/* Types (matrix_element.c): bits of one, whether it is counted in whole numbers, how many lie in a
 * register; an element from its bits, and the bits of one, rounded to nearest even (wrapped, or
 * clamped with .satfinite). */
unsigned tally_cpu_element_bits(uint8_t type);
bool tally_cpu_element_whole(uint8_t type);
unsigned tally_cpu_elements(uint8_t type);
union tally_cpu_element tally_cpu_decode(uint8_t type, uint64_t bits);
uint64_t tally_cpu_encode(uint8_t type, uint16_t flags, union tally_cpu_element e);

/* A factor for a block of elements: ue4m3 or ue8m0. */
double tally_cpu_factor(unsigned bits, bool ue4m3);

/* The lanes' records; NULL for a lane that has exited. */
typedef struct tally_cpu_matrix *tally_cpu_lanes[TALLY_CPU_LANES];

/* matrix_sparse.c: A of mma.sp as a whole matrix, and which elements are not there; `packed` is its
 * half, by rows, the metadata are source `at`. */
void tally_cpu_spread(const struct tally_matrix_form *f, tally_cpu_lanes lanes, unsigned at,
		      const union tally_cpu_element *packed, union tally_cpu_element *a,
		      bool *absent);
/* The factors of the rows of A and of the columns of B; their operands are the sources from `at`
 * on. */
void tally_cpu_read_factors(const struct tally_matrix_form *f, tally_cpu_lanes lanes, unsigned at,
			    double (*rows)[TALLY_CPU_MAX_SCALES],
			    double (*columns)[TALLY_CPU_MAX_SCALES]);
void tally_cpu_resolve_quads(const struct tally_matrix_form *f, tally_cpu_lanes lanes);

#endif
