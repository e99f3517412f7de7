/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of matrix operations share. */
#ifndef TALLY_TESTS_CPU_MATRIX_HARNESS_H
#define TALLY_TESTS_CPU_MATRIX_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"
#include "ir_passes/matrix.h"

/* 64-bit words that a lane has for its registers, in and out. */
enum { MATRIX_WORDS = 32 };

/* Where the ISA puts element i of a lane's fragment. */
typedef void matrix_place(unsigned lane, unsigned i, unsigned *row, unsigned *column);

/* A kernel that loads one operation's registers, does it, and stores its results; and its run by
 * one warp. */
void matrix_print_kernel(struct tally_buffer *text, const char *name, const char *signature);
void matrix_run(const char *text, const uint64_t *in, uint64_t *out);

/* Whether operations have their portable bodies instead of the device's own (harness.h). */
extern bool cpu_test_portable_matrix;

/* How many forms a test has found; a device may lack some (tests/ptx/device/matrix.c). */
#ifdef MATRIX_ON_DEVICE
#define matrix_check_count(count, all) ((void)(count))
#else
#define matrix_check_count(count, all) assert_int_equal(count, all)
#endif

/* Bits of an element; small numbers of every sign that the type has; the bits of one. */
unsigned matrix_bits_of(unsigned type);
int matrix_number(unsigned type, unsigned i);
uint64_t matrix_bits_for(unsigned type, int v);

/* Element i of the fragment that starts at register `first` of a lane. */
void matrix_put(uint64_t *lane, unsigned first, unsigned type, unsigned i, uint64_t bits);

/* Distributes a matrix over the lanes; returns the register behind it. */
unsigned matrix_distribute(uint64_t *in, unsigned first, unsigned type, unsigned elements,
			   unsigned columns, matrix_place *where, const int *matrix);

#endif
