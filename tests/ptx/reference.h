/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests give the JIT for the operations of the contract. */
#ifndef TALLY_TESTS_PTX_REFERENCE_H
#define TALLY_TESTS_PTX_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

struct reference_symbol {
	const char *name;
	void *address;
};

extern const struct reference_symbol reference_symbols[]; /* ends with a NULL name */
extern const char *const reference_pairs;		  /* IR for operations that return pairs */

#endif
