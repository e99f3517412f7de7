/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers, warp operations, and blocks that wait for each other. */
#include <stdlib.h>
#include <string.h>

#include "conformance/cases.h"

#define BLOCKS	(case_blocks(c))
#define THREADS (case_threads(c))
#define TOTAL	((size_t)BLOCKS * THREADS)

static const int32_t n64 = 64, n2000 = 2000;

static void matmul_tiled(void *const *buffer, const struct conformance_case *c)
{
	const float *a = buffer[0], *b = buffer[1];

	for (int y = 0; y < n64; y++)
		for (int x = 0; x < n64; x++) {
			float sum = 0;

			for (int k = 0; k < n64; k++)
				sum += a[y * n64 + k] * b[k * n64 + x];
			((float *)buffer[2])[y * n64 + x] = sum;
		}
}

static void reduce_tree(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < (size_t)n2000; i++)
		((int32_t *)buffer[1])[i / THREADS] += ((const int32_t *)buffer[0])[i];
}

static void early_return(void *const *buffer, const struct conformance_case *c)
{
	const uint32_t half = THREADS / 2;

	for (uint32_t b = 0; b < BLOCKS; b++) {
		const int32_t *in = (const int32_t *)buffer[0] + b * THREADS;
		int32_t sum[128];

		for (uint32_t t = 0; t < half; t++)
			sum[t] = in[(t + 1) % half] + in[t];
		for (uint32_t t = 0; t < 64; t++)
			((int32_t *)buffer[1])[b * 64 + t] = sum[t] + sum[63 - t];
	}
}

static void barrier_trip_count(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t b = 0; b < BLOCKS; b++) {
		int32_t value[128], next[128];

		for (uint32_t t = 0; t < THREADS; t++)
			value[t] = (int32_t)t;
		for (uint32_t k = 0; k < b % 7; k++) {
			for (uint32_t t = 0; t < THREADS; t++)
				next[t] = value[(t + 1) % THREADS] + (int32_t)k;
			memcpy(value, next, THREADS * sizeof *value);
		}
		memcpy((int32_t *)buffer[0] + b * THREADS, value, THREADS * sizeof *value);
	}
}

static void shuffle_divergent(void *const *buffer, const struct conformance_case *c)
{
	for (size_t w = 0; w < TOTAL; w += 32) {
		const int32_t *in = (const int32_t *)buffer[0] + w;
		int32_t v[32], x[32];

		for (int l = 0; l < 16; l++)
			x[l] = in[l ^ 5];
		for (int l = 0; l < 16; l++) {
			if (l % 2)
				v[l] = x[l] + x[l + 2 < 16 ? l + 2 : l];
			else
				v[l] = x[l] - x[l >= 4 ? l - 4 : l];
		}
		for (int l = 16; l < 32; l++)
			v[l] = in[16 + l * 7 % 16];
		for (int l = 0; l < 32; l++)
			((int32_t *)buffer[1])[w + (size_t)l] = v[l] + v[(l & ~7) | ((l + 3) & 7)];
	}
}

static void block_scan(void *const *buffer, const struct conformance_case *c)
{
	const int32_t *in = buffer[0];
	int32_t sum = 0;

	for (size_t i = 0; i < TOTAL; i++) {
		sum = (i % THREADS ? sum : 0) + in[i];
		((int32_t *)buffer[1])[i] = sum;
	}
}

static void votes(void *const *buffer, const struct conformance_case *c)
{
	for (size_t w = 0; w < TOTAL; w += 32) {
		const int32_t *v = (const int32_t *)buffer[0] + w;
		uint32_t odd = 0, two = 0, four = 0, any = 0, all = 1, above = 0, r;

		for (unsigned l = 0; l < 32; l++) {
			odd |= (uint32_t)(v[l] & 1) << l;
			two |= (l & 1) && (v[l] & 2) ? 1u << l : 0;
			four += !(l & 1) && (v[l] & 4);
			any |= v[l] == 7;
			all &= v[l] < 90;
			above += v[l] > 50;
		}
		r = odd ^ any << 3 ^ all << 5 ^ (uint32_t)(above == 0 || above == 32) << 7;
		for (unsigned l = 0; l < 32; l++)
			((uint32_t *)buffer[1])[w + l] = l & 1 ? r + two : r - four;
	}
}

static void matches(void *const *buffer, const struct conformance_case *c)
{
	for (size_t w = 0; w < TOTAL; w += 32) {
		const int32_t *v = (const int32_t *)buffer[0] + w;
		uint32_t equal = 1;

		for (unsigned l = 0; l < 32; l++)
			equal &= v[l] == v[0];
		for (unsigned l = 0; l < 32; l++) {
			uint32_t any = 0, wide = 0, r;

			for (unsigned k = 0; k < 32; k++) {
				any |= (uint32_t)((v[k] & 3) == (v[l] & 3)) << k;
				wide += (v[k] & 1) == (v[l] & 1);
			}
			r = any + wide;
			r ^= 0xffffffffu; /* match.all of a value that is the block's own */
			r += 1;
			r ^= equal ? 0xffffffffu : 0;
			((uint32_t *)buffer[1])[w + l] = r + equal * 17;
		}
	}
}

/* Every third warp holds one value, so that match.all answers both ways. */
static void fill_matches(void *data, size_t count)
{
	fill_small_ints(data, count);
	for (size_t i = 0; i < count; i++)
		if (i / 32 % 3 == 0)
			((int32_t *)data)[i] = 5;
}

static void reduce_warp(void *const *buffer, const struct conformance_case *c)
{
	for (size_t w = 0; w < TOTAL; w += 32) {
		const int32_t *v = (const int32_t *)buffer[0] + w;
		int32_t sum = 0, low = v[0] - 50, high = v[0] - 50;
		uint32_t ulow = (uint32_t)v[0], uhigh = (uint32_t)v[0], all = ~0u, some = 0,
			 odd = 0, r;

		for (int l = 0; l < 32; l++) {
			uint32_t u = (uint32_t)v[l];

			sum += v[l];
			low = v[l] - 50 < low ? v[l] - 50 : low;
			high = v[l] - 50 > high ? v[l] - 50 : high;
			ulow = u < ulow ? u : ulow;
			uhigh = u > uhigh ? u : uhigh;
			all &= u | 0x60;
			some |= u;
			odd ^= u;
		}
		r = (uint32_t)sum ^ (uint32_t)low ^ (uint32_t)high;
		r += ulow ^ uhigh;
		r ^= all + some + odd;
		for (int l = 0; l < 32; l++)
			((uint32_t *)buffer[1])[w + (size_t)l] = r + 32;
	}
}

static void lookback(void *const *buffer, const struct conformance_case *c)
{
	const int32_t *in = buffer[0];
	int32_t sum = 0;

	for (uint32_t b = 0; b < BLOCKS; b++) {
		for (uint32_t t = 0; t < THREADS; t++)
			((int32_t *)buffer[1])[b * THREADS + t] = in[b * THREADS + t] + sum;
		for (uint32_t t = 0; t < THREADS; t++)
			sum += in[b * THREADS + t];
		((int32_t *)buffer[2])[b] = 1;
		((int32_t *)buffer[3])[b] = sum;
	}
}

static void named_barriers(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t b = 0; b < BLOCKS; b++)
		for (int32_t round = 0; round < 4; round++)
			for (uint32_t t = 0; t < 64; t++)
				((int32_t *)buffer[1])[(b * 4 + (uint32_t)round) * 64 + t] =
					(((const int32_t *)
						  buffer[0])[(b * 4 + (uint32_t)round) * 64 + 63 -
							     t] +
					 round) *
					2;
}

static void barrier_reduce(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t b = 0; b < BLOCKS; b++) {
		const int32_t *in = (const int32_t *)buffer[0] + b * THREADS;
		int32_t count = 0, all = 1, some = 0;

		for (uint32_t t = 0; t < THREADS; t++) {
			count += in[t] & 1;
			all &= in[t] < 99;
			some |= in[t] == 42;
		}
		for (uint32_t t = 0; t < THREADS; t++)
			((int32_t *)buffer[1])[b * THREADS + t] = count * 4 + all * 2 + some;
	}
}

static void exit_in_call(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t b = 0; b < BLOCKS; b++) {
		const int32_t *in = (const int32_t *)buffer[0] + b * THREADS;
		int32_t count = 0;

		for (uint32_t t = 0; t < THREADS; t++)
			count += in[t] % 3 != 0;
		for (uint32_t t = 0; t < THREADS; t++)
			if (in[t] % 3 != 0)
				((int32_t *)buffer[1])[b * THREADS + t] = count;
	}
}

static void tiled_groups(void *const *buffer, const struct conformance_case *c)
{
	const int32_t *in = buffer[0];

	for (size_t i = 0; i < TOTAL; i++) {
		const int32_t *eight = in + (i & ~(size_t)7), *sixteen = in + (i & ~(size_t)15);
		int32_t v = 0, some = 0;

		for (int k = 0; k < 8; k++) {
			v += eight[k];
			some |= eight[k] == 13;
		}
		((int32_t *)buffer[1])[i] =
			v + sixteen[(i & 15) ^ 3] * 2 + (int32_t)(i & 15) + some;
	}
}

static void warp_loop_divergent(void *const *buffer, const struct conformance_case *c)
{
	for (size_t w = 0; w < TOTAL; w += 32) {
		int32_t most = 0;

		for (size_t l = 0; l < 32; l++) {
			int32_t v = ((const int32_t *)buffer[0])[w + l], steps = 0;

			while (v > 1 && steps < 200) {
				v = v & 1 ? 3 * v + 1 : v / 2;
				steps++;
			}
			most = steps > most ? steps : most;
		}
		for (size_t l = 0; l < 32; l++)
			((int32_t *)buffer[1])[w + l] = most;
	}
}

static void atomic_ordering(void *const *buffer, const struct conformance_case *c)
{
	((int32_t *)buffer[0])[0] = 42;
	((int32_t *)buffer[1])[0] = 1;
	((int32_t *)buffer[2])[0] = 1;
	for (uint32_t b = 1; b < BLOCKS; b++)
		((int32_t *)buffer[2])[b] = 42;
}

static void copy_async(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t i = 0; i < BLOCKS * 64; i++) {
		uint32_t t = i % 64, sum = 0;

		for (uint32_t r = 0; r < 5; r++) {
			const int32_t *in = (const int32_t *)buffer[0] + (i / 64 * 5 + r) * 256;

			for (uint32_t k = 0; k < 4; k++) {
				uint32_t at = (4 * t + 5 * k + 7) & 255;

				/* The last 8 bytes of each round are not copied, but cleared. */
				sum = sum * 3 + (at < 254 ? (uint32_t)in[at] : 0);
			}
		}
		((uint32_t *)buffer[1])[i] = sum;
	}
}

static void mbarriers(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t b = 0; b < BLOCKS; b++) {
		const int32_t *in = (const int32_t *)buffer[0] + b * 5 * 64;
		uint32_t sum[64], value[64], next[64];

		for (uint32_t t = 0; t < 64; t++) {
			sum[t] = 0;
			for (uint32_t r = 0; r < 5; r++)
				sum[t] = sum[t] * 3 + (uint32_t)in[r * 64 + ((t + 1) & 63)];
		}
		for (uint32_t t = 0; t < 64; t++)
			value[t] = sum[t] + sum[63 - t];
		for (uint32_t r = 0; r < 5; r++) {
			for (uint32_t t = 0; t < 64; t++)
				next[t] = value[t] * 2 + value[(t + 1) % 64];
			memcpy(value, next, sizeof value);
		}
		memcpy((uint32_t *)buffer[1] + b * 64, value, sizeof value);
	}
}

static const int32_t rounds5 = 5;
#define ROUNDS(function, ints)                                                                     \
	{                                                                                          \
		.name = #function,                                                                 \
		.kernel = #function,                                                               \
		.grid = {4, 1, 1},                                                                 \
		.block = {64, 1, 1},                                                               \
		.parameters = "bbvr",                                                              \
		.buffer = {INTS(4 * 5 * (ints)), ZERO(4 * 64)},                                    \
		.blob = {{&rounds5, sizeof rounds5, 4}},                                           \
		.reference = function,                                                             \
	}

#define INTS(n) {CASE_I32, n, fill_small_ints, 0, NULL}
#define ZERO(n) {CASE_I32, n, NULL, 0, NULL}
/* A kernel (in, out, runs) over one int a thread: block sizes and grids are its whole variety. */
#define IN_OUT(label, function, blocks, threads)                                                   \
	{                                                                                          \
		.name = label,                                                                     \
		.kernel = #function,                                                               \
		.grid = {blocks, 1, 1},                                                            \
		.block = {threads, 1, 1},                                                          \
		.parameters = "bbr",                                                               \
		.buffer = {INTS((blocks) * (threads)), ZERO((blocks) * (threads))},                \
		.reference = function,                                                             \
	}

const struct conformance_case cases_sync[] = {
	{
		.name = "matmul_tiled",
		.kernel = "matmul_tiled",
		.grid = {4, 4, 1},
		.block = {16, 16, 1},
		.parameters = "bbbvr",
		.buffer = {{CASE_F32, 4096, fill_floats, 0, NULL},
			   {CASE_F32, 4096, fill_floats, 0, NULL},
			   {CASE_F32, 4096, NULL, 0, NULL}},
		.blob = {{&n64, 4, 4}},
		.reference = matmul_tiled,
	},
	{
		.name = "reduce_tree",
		.kernel = "reduce_tree",
		.grid = {16, 1, 1},
		.block = {128, 1, 1},
		.dynamic_shared = 512,
		.parameters = "bbvr",
		.buffer = {INTS(2048), ZERO(16)},
		.blob = {{&n2000, 4, 4}},
		.reference = reduce_tree,
	},
	{
		.name = "early_return",
		.kernel = "early_return",
		.grid = {9, 1, 1},
		.block = {256, 1, 1},
		.parameters = "bbvr",
		.buffer = {INTS(9 * 256), ZERO(9 * 64)},
		.blob = {{&n64, 4, 4}},
		.reference = early_return,
	},
	{
		.name = "barrier_trip_count",
		.kernel = "barrier_trip_count",
		.grid = {15, 1, 1},
		.block = {96, 1, 1},
		.parameters = "br",
		.buffer = {ZERO(15 * 96)},
		.reference = barrier_trip_count,
	},
	IN_OUT("shuffle_divergent", shuffle_divergent, 5, 64),
	IN_OUT("block_scan.1", block_scan, 7, 1),
	IN_OUT("block_scan.33", block_scan, 7, 33),
	IN_OUT("block_scan.1000", block_scan, 3, 1000),
	IN_OUT("block_scan.1024", block_scan, 3, 1024),
	IN_OUT("votes", votes, 4, 128),
	{
		.name = "matches",
		.kernel = "matches",
		.grid = {6, 1, 1},
		.block = {64, 1, 1},
		.parameters = "bbr",
		.buffer = {{CASE_I32, 384, fill_matches, 0, NULL}, ZERO(384)},
		.reference = matches,
	},
	IN_OUT("reduce_warp", reduce_warp, 4, 64),
	{
		.name = "lookback",
		.kernel = "lookback",
		.grid = {40, 1, 1},
		.block = {64, 1, 1},
		.parameters = "bbbbr",
		.buffer = {INTS(2560), ZERO(2560), ZERO(40), ZERO(40)},
		.reference = lookback,
	},
	{
		.name = "named_barriers",
		.kernel = "named_barriers",
		.grid = {6, 1, 1},
		.block = {128, 1, 1},
		.parameters = "bbr",
		.buffer = {INTS(6 * 256), ZERO(6 * 256)},
		.reference = named_barriers,
	},
	IN_OUT("barrier_reduce", barrier_reduce, 8, 72),
	ROUNDS(copy_async, 256),
	ROUNDS(mbarriers, 64),
	IN_OUT("exit_in_call", exit_in_call, 8, 96),
	IN_OUT("tiled_groups", tiled_groups, 4, 64),
	IN_OUT("warp_loop_divergent", warp_loop_divergent, 6, 64),
	{
		.name = "atomic_ordering",
		.kernel = "atomic_ordering",
		.grid = {20, 1, 1},
		.block = {32, 1, 1},
		.parameters = "bbbr",
		.buffer = {ZERO(1), ZERO(1), ZERO(20)},
		.reference = atomic_ordering,
	},
	{.name = NULL},
};
