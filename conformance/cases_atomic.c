/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations: results that do not depend on the order in which threads arrive. */
#include "conformance/cases.h"

#define BLOCKS	(case_blocks(c))
#define THREADS (case_threads(c))
#define TOTAL	((size_t)BLOCKS * THREADS)

static const int32_t n3000 = 3000;

static void atomics_scopes(void *const *buffer, const struct conformance_case *c)
{
	uint32_t *sums = buffer[0], in_block = 0;

	for (uint32_t t = 0; t < THREADS; t++)
		in_block += t;
	sums[0] = (uint32_t)TOTAL;
	sums[1] = in_block * BLOCKS;
	sums[2] = in_block * BLOCKS;
	*(uint64_t *)buffer[1] = ((uint64_t)1 << 33) * TOTAL + (uint64_t)in_block * BLOCKS;
}

static void fill_wide(void *data, size_t count)
{
	uint64_t *w = data;

	w[0] = 0;	     /* for the maximum */
	w[1] = ~(uint64_t)0; /* for the minimum */
	w[2] = 0x123456789abcdef0u;
}

static void atomics_all(void *const *buffer, const struct conformance_case *c)
{
	int32_t *g = buffer[0];
	uint32_t *u = buffer[1];
	uint64_t *w = buffer[2];

	for (uint32_t b = 0; b < BLOCKS; b++) {
		int32_t s[5] = {0};

		for (uint32_t t = 0; t < THREADS; t++) {
			int32_t v = (int32_t)(b * THREADS + t);

			g[0] = v - 1000 < g[0] ? v - 1000 : g[0];
			g[1] = v > g[1] ? v : g[1];
			u[0] &= ~(1u << (v % 31));
			u[1] |= 1u << (v % 29);
			u[2] ^= (uint32_t)v * 2654435761u;
			u[3] = u[3] >= 1000000u ? 0 : u[3] + 1;
			u[4] = u[4] == 0 || u[4] > 1000000u ? 1000000u : u[4] - 1;
			u[5] -= 3;
			w[0] = (uint64_t)v << 20 > w[0] ? (uint64_t)v << 20 : w[0];
			w[1] = (uint64_t)v << 20 < w[1] ? (uint64_t)v << 20 : w[1];
			w[2] ^= (uint64_t)v * 0x9e3779b97f4a7c15u;
			g[2] += 5;
			s[t % 4] += v;
			s[4] = v > s[4] ? v : s[4];
		}
		g[3] += s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4];
	}
	g[4] = 77;
}

static void atomics_float(void *const *buffer, const struct conformance_case *c)
{
	float *f = buffer[0];
	uint16_t *h = buffer[2];

	f[0] = 0.5f * (float)TOTAL;
	for (uint32_t b = 0; b < BLOCKS; b++)
		for (uint32_t t = 0; t < THREADS; t++)
			f[1 + t % 3] += (float)(t % 8);
	*(double *)buffer[1] = 0.25 * (double)TOTAL;
	_Float16 one = (_Float16)(float)BLOCKS, two = (_Float16)(2.0f * (float)BLOCKS);
	__builtin_memcpy(&h[0], &one, 2);
	__builtin_memcpy(&h[1], &two, 2);
}

static void histogram(void *const *buffer, const struct conformance_case *c)
{
	for (int i = 0; i < n3000; i++)
		((uint32_t *)buffer[1])[((const uint8_t *)buffer[0])[i]]++;
}

const struct conformance_case cases_atomic[] = {
	{
		.name = "atomics_scopes",
		.kernel = "atomics_scopes",
		.grid = {10, 1, 1},
		.block = {96, 1, 1},
		.parameters = "bbr",
		.buffer = {{CASE_I32, 3, NULL, 0, NULL}, {CASE_I64, 1, NULL, 0, NULL}},
		.reference = atomics_scopes,
	},
	{
		.name = "atomics_all",
		.kernel = "atomics_all",
		.grid = {8, 1, 1},
		.block = {64, 1, 1},
		.parameters = "bbbr",
		.buffer = {{CASE_I32, 5, NULL, 0, NULL},
			   {CASE_I32, 6, fill_words, 0, NULL},
			   {CASE_I64, 3, fill_wide, 0, NULL}},
		.reference = atomics_all,
	},
	{
		.name = "atomics_float",
		.kernel = "atomics_float",
		.grid = {12, 1, 1},
		.block = {48, 1, 1},
		.parameters = "bbbr",
		.buffer = {{CASE_F32, 4, NULL, 0, NULL},
			   {CASE_F64, 1, NULL, 0, NULL},
			   {CASE_F16, 2, NULL, 0, NULL}},
		.reference = atomics_float,
	},
	{
		.name = "histogram",
		.kernel = "histogram",
		.grid = {5, 1, 1},
		.block = {64, 1, 1},
		.parameters = "bbvr",
		.buffer = {{CASE_U8, 3000, fill_bytes, 0, NULL}, {CASE_I32, 256, NULL, 0, NULL}},
		.blob = {{&n3000, 4, 4}},
		.reference = histogram,
	},
	{.name = NULL},
};
