/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of a warp. All inputs are small multiples of 1/8: every sum is exact whatever its
 * order, so that any device has to give these very bits.
 */
#include "conformance/cases.h"

#define BLOCKS (case_blocks(c))

/* Element (row, column) of A * B, A by rows (k long), B by rows (n long). */
static float product(const float *a, const float *b, int k, int n, int row, int column)
{
	float sum = 0;

	for (int i = 0; i < k; i++)
		sum += a[row * k + i] * b[i * n + column];
	return sum;
}

static void matrix_f16(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t block = 0; block < BLOCKS; block++) {
		const float *a = (const float *)buffer[0] + block * 512;
		const float *b = (const float *)buffer[1] + block * 256;
		float *d = (float *)buffer[2] + block * 128, *t = (float *)buffer[3] + block * 128;

		for (int row = 0; row < 16; row++)
			for (int column = 0; column < 8; column++) {
				d[row * 8 + column] = product(a, b, 32, 8, row, column);
				t[column * 16 + row] = 0;
				for (int k = 0; k < 8; k++)
					t[column * 16 + row] += a[row * 32 + k] * b[k * 8 + column];
			}
	}
}

static void matrix_bf16(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t block = 0; block < BLOCKS; block++)
		for (int i = 0; i < 128; i++)
			((float *)buffer[2])[block * 128 + (uint32_t)i] =
				product((const float *)buffer[0] + block * 512,
					(const float *)buffer[1] + block * 256, 32, 8, i / 8,
					i % 8) +
				(float)(1 + i / 64 * 2 + i % 2);
}

static void matrix_tf32(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t block = 0; block < BLOCKS; block++)
		for (int i = 0; i < 128; i++)
			((float *)buffer[2])[block * 128 + (uint32_t)i] =
				product((const float *)buffer[0] + block * 192,
					(const float *)buffer[1] + block * 96, 12, 8, i / 8, i % 8);
}

static int32_t clamped(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

static void matrix_s8(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t block = 0; block < BLOCKS; block++)
		for (int i = 0; i < 128; i++) {
			int row = i / 8, column = i % 8, lane = row % 8 * 4 + column / 2;
			const int8_t *a = (const int8_t *)buffer[0] + block * 512 + row * 32;
			const uint8_t *b = (const uint8_t *)buffer[1] + block * 256 + column * 32;
			const int32_t start[] = {lane, 0, -lane, 7};
			int32_t sum = start[row / 8 * 2 + column % 2];
			int64_t wide = column % 2 ? INT32_MIN : INT32_MAX;

			for (int k = 0; k < 32; k++)
				sum += a[k] * b[k];
			for (int k = 0; k < 16; k++)
				wide += a[k] * (int8_t)b[k];
			((int32_t *)buffer[2])[block * 128 + (uint32_t)i] = sum;
			if (row < 8)
				((int32_t *)buffer[3])[block * 64 + (uint32_t)i] = clamped(wide);
		}
}

static void matrix_wmma(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t block = 0; block < BLOCKS; block++) {
		const float *a = (const float *)buffer[0] + block * 256;
		const float *b = (const float *)buffer[1] + block * 256;

		for (int i = 0; i < 256; i++) {
			_Float16 half = (_Float16)b[i % 16 * 16 + i / 16];

			((_Float16 *)buffer[2])[block * 256 + (uint32_t)i] = half;
			((float *)buffer[3])[block * 256 + (uint32_t)i] =
				3 * product(a, b, 16, 16, i / 16, i % 16);
		}
	}
}

static void matrix_wmma_types(void *const *buffer, const struct conformance_case *c)
{
	for (uint32_t block = 0; block < BLOCKS; block++) {
		const float *a = (const float *)buffer[0] + block * 256;
		const float *b = (const float *)buffer[1] + block * 256;

		for (int i = 0; i < 256; i++) {
			int row = i / 16, column = i % 16, whole = -5;
			float *d = (float *)buffer[2] + block * 512, sum = 0;

			d[i] = product(a, b, 16, 16, row, column) + 1;
			for (int k = 0; k < 8; k++)
				sum += a[row * 16 + k] * b[k * 16 + column];
			d[256 + column * 16 + row] = sum;
			for (int k = 0; k < 16; k++)
				whole += (int8_t)(a[row * 16 + k] * 8) *
					 (int8_t)(b[k * 16 + column] * 8);
			((int32_t *)buffer[3])[block * 256 + (uint32_t)i] = whole;
		}
		for (int i = 0; i < 64; i++) {
			double sum = 0.5;

			for (int k = 0; k < 4; k++)
				sum += (double)a[i / 8 * 16 + k] * b[k * 16 + i % 8];
			((double *)buffer[4])[block * 64 + (uint32_t)i] = sum;
		}
	}
}

/* -1 to 0.875: products of eight stay exact in f16. */
static void fill_eighths(void *data, size_t count)
{
	fill_floats(data, count);
	for (size_t i = 0; i < count; i++)
		((float *)data)[i] = (float)((int)(((float *)data)[i] * 8) % 8) * 0.125f;
}

#define EIGHTHS(n)   {CASE_F32, n, fill_eighths, 0, NULL}
#define FLOATS(n)    {CASE_F32, n, fill_floats, 0, NULL}
#define OUT(type, n) {type, n, NULL, 0, NULL}
#define MATRIX(function, ...)                                                                      \
	{.name = #function,                                                                        \
	 .kernel = #function,                                                                      \
	 .grid = {3, 1, 1},                                                                        \
	 .block = {32, 1, 1},                                                                      \
	 .reference = function,                                                                    \
	 __VA_ARGS__}

const struct conformance_case cases_matrix[] = {
	MATRIX(matrix_f16, .parameters = "bbbbr",
	       .buffer = {EIGHTHS(3 * 512), EIGHTHS(3 * 256), OUT(CASE_F32, 3 * 128),
			  OUT(CASE_F32, 3 * 128)}),
	MATRIX(matrix_bf16, .parameters = "bbbr",
	       .buffer = {FLOATS(3 * 512), FLOATS(3 * 256), OUT(CASE_F32, 3 * 128)}),
	MATRIX(matrix_tf32, .parameters = "bbbr",
	       .buffer = {FLOATS(3 * 192), FLOATS(3 * 96), OUT(CASE_F32, 3 * 128)}),
	MATRIX(matrix_s8, .parameters = "bbbbr",
	       .buffer = {{CASE_U8, 3 * 512, fill_bytes, 0, NULL},
			  {CASE_U8, 3 * 256, fill_bytes, 0, NULL},
			  OUT(CASE_I32, 3 * 128),
			  OUT(CASE_I32, 3 * 64)}),
	MATRIX(matrix_wmma, .parameters = "bbbbr",
	       .buffer = {FLOATS(3 * 256), FLOATS(3 * 256), OUT(CASE_F16, 3 * 256),
			  OUT(CASE_F32, 3 * 256)}),
	MATRIX(matrix_wmma_types, .parameters = "bbbbbr",
	       .buffer = {FLOATS(3 * 256), FLOATS(3 * 256), OUT(CASE_F32, 3 * 512),
			  OUT(CASE_I32, 3 * 256), OUT(CASE_F64, 3 * 64)}),
	{.name = NULL},
};
