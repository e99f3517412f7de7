/* SPDX-License-Identifier: Apache-2.0 */
/* Indexing, memory and parameters. */
#include <math.h>
#include <stdio.h>

#include "conformance/cases.h"

/* The names the kernels use, for a case's own launch. */
#define BLOCKS	(case_blocks(c))
#define THREADS (case_threads(c))
#define TOTAL	((size_t)BLOCKS * THREADS)

static const int32_t n1000 = 1000, n5000 = 5000;

static void vadd(void *const *buffer, const struct conformance_case *c)
{
	const float *a = buffer[0], *b = buffer[1];
	float *out = buffer[2];

	for (int i = 0; i < n1000; i++)
		out[i] = a[i] + b[i];
}

static void grid_stride(void *const *buffer, const struct conformance_case *c)
{
	const int32_t *in = buffer[0];
	int32_t *out = buffer[1];

	for (int i = 0; i < n5000; i++)
		out[i] = in[i] * 3 + (int32_t)c->grid[0];
}

static void grid_3d(void *const *buffer, const struct conformance_case *c)
{
	uint32_t *out = buffer[0];
	const uint32_t *g = c->grid, *b = c->block;

	for (uint32_t z = 0; z < g[2] * b[2]; z++)
		for (uint32_t y = 0; y < g[1] * b[1]; y++)
			for (uint32_t x = 0; x < g[0] * b[0]; x++)
				out[(z * g[1] * b[1] + y) * g[0] * b[0] + x] =
					x / b[0] + 10 * (y / b[1]) + 100 * (z / b[2]) +
					1000 * (x % b[0] + 10 * (y % b[1]) + 100 * (z % b[2])) +
					1000000 * (g[0] + g[1] + g[2]);
}

static void no_parameters(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++)
		((int32_t *)buffer[0])[i] = (int32_t)(i / THREADS * 100 + i % THREADS);
}

static struct {
	int32_t value[1000];
	double scale;
} big;

static void fill_big(void *data, size_t count)
{
	/* The struct that is passed by value is filled along with the output buffer. */
	for (int i = 0; i < 1000; i++)
		big.value[i] = i * 7 - 1000;
	big.scale = 12.75;
	for (size_t i = 0; i < count; i++)
		((int32_t *)data)[i] = 0;
}

static const int8_t first = -3;

static void big_parameters(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++)
		((int32_t *)buffer[0])[i] = big.value[i * 37 % 1000] * first + (int32_t)big.scale;
}

static const struct {
	uint8_t r, g, b;
} tiny = {10, 20, 30};

static const struct {
	int8_t c;
	int16_t s;
	double d;
	float f[3];
	int64_t l;
} mixed = {-5, 300, 0.5, {1.5f, 2.5f, 3.5f}, -123456789012};

static const uint8_t on = 1;

static void struct_parameter(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++)
		((double *)buffer[0])[i] = mixed.c + mixed.s * 2 + mixed.d + (double)mixed.f[0] +
					   (double)(mixed.f[1] * 10) + (double)(mixed.f[2] * 100) +
					   (double)mixed.l + tiny.r + tiny.g * 3 + tiny.b * 5 +
					   (double)i;
}

static void constant_table(void *const *buffer, const struct conformance_case *c)
{
	static const int32_t fixed[4] = {3, 1, 4, 1};
	const int32_t *table = buffer[0];

	for (size_t i = 0; i < TOTAL; i++)
		((int32_t *)buffer[1])[i] =
			table[i % 64] * fixed[i / THREADS % 4] + table[i / THREADS % 64];
}

static void local_array(void *const *buffer, const struct conformance_case *c)
{
	const int32_t *in = buffer[0];

	for (size_t i = 0; i < TOTAL; i++) {
		int32_t stack[32];

		for (int k = 0; k < 32; k++)
			stack[k] = in[i] * k;
		for (int k = 0; k < 32; k++) {
			uint32_t j = ((uint32_t)in[i] + (uint32_t)k * 11) % 32;
			int32_t t = stack[j];

			stack[j] = stack[k];
			stack[k] = t + 1;
		}
		((int32_t *)buffer[1])[i] = stack[(uint32_t)in[i] % 32] + stack[31] * 3;
	}
}

static void vector_access(void *const *buffer, const struct conformance_case *c)
{
	const float *a = buffer[0];
	const int32_t *b = buffer[1];
	const uint8_t *z = buffer[2];

	for (size_t i = 0; i < TOTAL; i++) {
		const float *x = a + 4 * i;
		const int32_t *y = b + 2 * i;
		const uint8_t *u = z + 4 * i;

		((double *)buffer[3])[2 * i] = (double)x[0] + (double)x[1] + (double)x[2] * y[0];
		((double *)buffer[3])[2 * i + 1] =
			(double)(x[3] * (float)y[1] + (float)u[0] + (float)(u[1] * 2) +
				 (float)(u[2] * 3) + (float)(u[3] * 4));
		((int16_t *)buffer[4])[i] =
			(int16_t)((int8_t)u[0] + (uint8_t)(u[1] + 200) - (int16_t)y[0]);
	}
}

static const int32_t width = 100, height = 70;

static void transpose(void *const *buffer, const struct conformance_case *c)
{
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++)
			((float *)buffer[1])[x * height + y] =
				((const float *)buffer[0])[y * width + x];
}

#define INT(value) {&(value), 4, 4}

const struct conformance_case cases_basic[] = {
	{
		.name = "vadd",
		.kernel = "vadd",
		.grid = {8, 1, 1},
		.block = {128, 1, 1},
		.parameters = "bbbvr",
		.buffer = {{CASE_F32, 1024, fill_floats, 0, NULL},
			   {CASE_F32, 1024, fill_floats, 0, NULL},
			   {CASE_F32, 1024, NULL, 0, NULL}},
		.blob = {INT(n1000)},
		.reference = vadd,
	},
	{
		.name = "grid_stride",
		.kernel = "grid_stride",
		.grid = {7, 1, 1},
		.block = {96, 1, 1},
		.parameters = "bbvr",
		.buffer = {{CASE_I32, 5000, fill_small_ints, 0, NULL},
			   {CASE_I32, 5000, NULL, 0, NULL}},
		.blob = {INT(n5000)},
		.reference = grid_stride,
	},
	{
		.name = "grid_3d",
		.kernel = "grid_3d",
		.grid = {3, 4, 5},
		.block = {4, 3, 2},
		.parameters = "br",
		.buffer = {{CASE_I32, 3 * 4 * 5 * 24, NULL, 0, NULL}},
		.reference = grid_3d,
	},
	{
		.name = "grid_3d.many",
		.kernel = "grid_3d",
		.grid = {37, 11, 13},
		.block = {8, 1, 1},
		.parameters = "br",
		.buffer = {{CASE_I32, 37 * 11 * 13 * 8, NULL, 0, NULL}},
		.reference = grid_3d,
	},
	{
		.name = "no_parameters",
		.kernel = "no_parameters",
		.grid = {64, 1, 1},
		.block = {32, 1, 1},
		.parameters = "",
		.buffer = {{CASE_I32, 64 * 32, NULL, 0, "no_parameters_out"}},
		.runs_symbol = "no_parameters_runs",
		.reference = no_parameters,
	},
	{
		.name = "big_parameters",
		.kernel = "big_parameters",
		.grid = {9, 1, 1},
		.block = {64, 1, 1},
		.parameters = "vvbr",
		.buffer = {{CASE_I32, 9 * 64, fill_big, 0, NULL}},
		.blob = {{&first, 1, 1}, {&big, sizeof big, 8}},
		.reference = big_parameters,
	},
	{
		.name = "struct_parameter",
		.kernel = "struct_parameter",
		.grid = {5, 1, 1},
		.block = {33, 1, 1},
		.parameters = "vvbvr",
		.buffer = {{CASE_F64, 5 * 33, NULL, 0, NULL}},
		.blob = {{&tiny, 3, 1}, {&mixed, sizeof mixed, 8}, {&on, 1, 1}},
		.reference = struct_parameter,
	},
	{
		.name = "constant_table",
		.kernel = "constant_table",
		.grid = {12, 1, 1},
		.block = {80, 1, 1},
		.parameters = "br",
		.buffer = {{CASE_I32, 64, fill_small_ints, 0, "constant_table_data"},
			   {CASE_I32, 12 * 80, NULL, 0, NULL}},
		.reference = constant_table,
	},
	{
		.name = "local_array",
		.kernel = "local_array",
		.grid = {6, 1, 1},
		.block = {64, 1, 1},
		.parameters = "bbr",
		.buffer = {{CASE_I32, 384, fill_small_ints, 0, NULL},
			   {CASE_I32, 384, NULL, 0, NULL}},
		.reference = local_array,
	},
	{
		.name = "vector_access",
		.kernel = "vector_access",
		.grid = {4, 1, 1},
		.block = {128, 1, 1},
		.parameters = "bbbbbr",
		.buffer = {{CASE_F32, 2048, fill_floats, 0, NULL},
			   {CASE_I32, 1024, fill_small_ints, 0, NULL},
			   {CASE_U8, 2048, fill_bytes, 0, NULL},
			   {CASE_F64, 1024, NULL, 0, NULL},
			   {CASE_I16, 512, NULL, 0, NULL}},
		.reference = vector_access,
	},
	{
		.name = "transpose",
		.kernel = "transpose",
		.grid = {4, 3, 1},
		.block = {32, 8, 1},
		.parameters = "bbvvr",
		.buffer = {{CASE_F32, 7000, fill_floats, 0, NULL}, {CASE_F32, 7000, NULL, 0, NULL}},
		.blob = {INT(width), INT(height)},
		.reference = transpose,
	},
	{.name = NULL},
};
