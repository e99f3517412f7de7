/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, recursion, tables of functions, switches, and printing. */
#include <stdio.h>

#include "conformance/cases.h"

#define BLOCKS	(case_blocks(c))
#define THREADS (case_threads(c))
#define TOTAL	((size_t)BLOCKS * THREADS)

static uint32_t ackermann(uint32_t m, uint32_t n)
{
	if (m == 0)
		return n + 1;
	return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

static void recursion(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++)
		((uint32_t *)buffer[0])[i] = ackermann((uint32_t)i % 3, (uint32_t)i % 5);
}

static void function_pointer(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		int32_t v = ((const int32_t *)buffer[0])[i], k = (int32_t)i;

		((int32_t *)buffer[1])[i] = v % 3 == 0 ? v + k : v % 3 == 1 ? v - k : v * k;
	}
}

static void device_function_ids(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t b = 0; b < BLOCKS; b++)
		for (uint32_t t = 0; t < THREADS; t++) {
			uint32_t where = b * 1000 + t, salt = t & 3, h = c->grid[1];

			((uint32_t *)buffer[0])[b * THREADS + t] =
				where + salt * h + (where + (salt + 1) * h) * 2;
		}
}

static void switch_table(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		int32_t v = ((const int32_t *)buffer[0])[i];
		const int32_t answer[] = {v * 3, v - 7, v ^ 0x55, v << 2,  1,
					  -v,	 v / 3, v % 5,	  1000 + v};

		((int32_t *)buffer[1])[i] = answer[v % 9];
	}
}

static const int32_t n7 = 7;

static void nothing(void *const *buffer, const struct conformance_case *c)
{
}

static void prints_line(char *text, size_t size, unsigned block, const struct conformance_case *c)
{
	snprintf(text, size, "block %d of %u: %s %c %5.2f %lld %#x %p%%", (int)block, BLOCKS,
		 "text", 'c', 1.5 * n7, (long long)block << 33, block + 255u, (void *)0x10);
}

const struct conformance_case cases_program[] = {
	{
		.name = "recursion",
		.kernel = "recursion",
		.grid = {6, 1, 1},
		.block = {40, 1, 1},
		.parameters = "br",
		.buffer = {{CASE_I32, 240, NULL, 0, NULL}},
		.reference = recursion,
	},
	{
		.name = "function_pointer",
		.kernel = "function_pointer",
		.grid = {6, 1, 1},
		.block = {50, 1, 1},
		.parameters = "bbr",
		.buffer = {{CASE_I32, 300, fill_small_ints, 0, NULL},
			   {CASE_I32, 300, NULL, 0, NULL}},
		.reference = function_pointer,
	},
	{
		.name = "device_function_ids",
		.kernel = "device_function_ids",
		.grid = {5, 3, 1},
		.block = {32, 1, 1},
		.parameters = "br",
		.buffer = {{CASE_I32, 480, NULL, 0, NULL}},
		.reference = device_function_ids,
	},
	{
		.name = "switch_table",
		.kernel = "switch_table",
		.grid = {10, 1, 1},
		.block = {36, 1, 1},
		.parameters = "bbr",
		.buffer = {{CASE_I32, 360, fill_small_ints, 0, NULL},
			   {CASE_I32, 360, NULL, 0, NULL}},
		.reference = switch_table,
	},
	{
		.name = "prints",
		.kernel = "prints",
		.grid = {11, 1, 1},
		.block = {32, 1, 1},
		.parameters = "vr",
		.blob = {{&n7, 4, 4}},
		.reference = nothing,
		.line = prints_line,
	},
	{.name = NULL},
};
