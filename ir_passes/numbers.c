/* SPDX-License-Identifier: Apache-2.0 */
/* Places of values and blocks in lists (numbers.h): a table by address, which nobody walks. */
#include "ir_passes/numbers.h"

#include <stdlib.h>

struct tally_number {
	const void *key;
	size_t number;
};

bool tally_numbers_open(struct tally_numbers *numbers, size_t count)
{
	numbers->capacity = 16;
	while (numbers->capacity < count * 2)
		numbers->capacity *= 2;
	numbers->slots = calloc(numbers->capacity, sizeof *numbers->slots);
	return numbers->slots != NULL;
}

void tally_numbers_close(struct tally_numbers *numbers)
{
	free(numbers->slots);
	*numbers = (struct tally_numbers){0};
}

/* The slot of `key`, or the empty one where it belongs. */
static struct tally_number *slot_of(const struct tally_numbers *numbers, const void *key)
{
	size_t mask = numbers->capacity - 1;
	size_t k = (size_t)((uintptr_t)key * 0x9e3779b97f4a7c15u >> 20) & mask;

	while (numbers->slots[k].key && numbers->slots[k].key != key)
		k = (k + 1) & mask;
	return &numbers->slots[k];
}

void tally_numbers_set(struct tally_numbers *numbers, const void *key, size_t number)
{
	struct tally_number *slot = slot_of(numbers, key);

	if (!slot->key)
		*slot = (struct tally_number){key, number};
}

size_t tally_numbers_find(const struct tally_numbers *numbers, const void *key)
{
	const struct tally_number *slot = slot_of(numbers, key);

	return slot->key ? slot->number : TALLY_NO_NUMBER;
}
