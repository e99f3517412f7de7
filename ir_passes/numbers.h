/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of a value or block in a list that is kept in the order of the function. Lists sorted
 * by address would make the order of what is built from them differ from run to run.
 */
#ifndef TALLY_IR_PASSES_NUMBERS_H
#define TALLY_IR_PASSES_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_number;

/* Start as `{0}` or by opening. Not shared between threads. */
struct tally_numbers {
	struct tally_number *slots;
	size_t capacity; /* a power of two */
};
#define TALLY_NO_NUMBER SIZE_MAX

/* Room for `count` keys. False when memory ran out; close it all the same. */
bool tally_numbers_open(struct tally_numbers *numbers, size_t count);
void tally_numbers_close(struct tally_numbers *numbers);

/* Gives `key` (not NULL) a number; one that it has already stays. */
void tally_numbers_set(struct tally_numbers *numbers, const void *key, size_t number);
/* TALLY_NO_NUMBER when `key` has none. */
size_t tally_numbers_find(const struct tally_numbers *numbers, const void *key);

#endif
