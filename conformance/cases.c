/* SPDX-License-Identifier: Apache-2.0 */
/* What all conformance cases share. */
#include "conformance/cases.h"

const struct conformance_case *const conformance_groups[] = {
	cases_basic, cases_sync, cases_atomic, cases_maths, cases_matrix, cases_program, NULL,
};

uint32_t case_blocks(const struct conformance_case *c)
{
	return c->grid[0] * c->grid[1] * c->grid[2];
}

uint32_t case_threads(const struct conformance_case *c)
{
	return c->block[0] * c->block[1] * c->block[2];
}

size_t case_type_size(enum case_type type)
{
	static const size_t size[] = {
		[CASE_I32] = 4, [CASE_U8] = 1,	[CASE_I16] = 2, [CASE_F32] = 4,
		[CASE_F64] = 8, [CASE_I64] = 8, [CASE_F16] = 2,
	};
	return size[type];
}

/* A mixed but fixed sequence: the same inputs on every machine. */
static uint32_t mix(size_t i)
{
	uint32_t x = (uint32_t)i * 2654435761u + 97u;

	x ^= x >> 15;
	x *= 2246822519u;
	x ^= x >> 13;
	return x;
}

void fill_small_ints(void *data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		((int32_t *)data)[i] = (int32_t)(mix(i) % 100);
}

void fill_floats(void *data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		((float *)data)[i] = ((float)(mix(i) % 200) - 100.0f) * 0.125f;
}

void fill_words(void *data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		((uint32_t *)data)[i] = mix(i);
}

void fill_bytes(void *data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		((uint8_t *)data)[i] = (uint8_t)mix(i);
}
