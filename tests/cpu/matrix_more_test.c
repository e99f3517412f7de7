/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma.sp, factors for blocks, m8n8k4 on halves and directed rounding against the ISA's text (PTX
 * ISA 9.7.14.3, 9.7.14.5.1, 9.7.14.6): fragments, metadata and selectors are laid out by its
 * formulas, written here once more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/matrix_harness.h"

enum { M = 16, N = 8, MAX_K = 128, LANES = 32, MAX_SCALES = 4 };

/* One product: A as a whole matrix, which of its elements are given, and the operands. */
struct product {
	const struct tally_matrix_form *f;
	int a[M][MAX_K], b[MAX_K][N], c[M][N];
	bool given[M][MAX_K];
	int row_factor[M][MAX_SCALES], column_factor[N][MAX_SCALES];
	uint64_t in[LANES * MATRIX_WORDS], out[LANES * MATRIX_WORDS];
};

static bool sparse(const struct tally_matrix_form *f)
{
	return f->kind == TALLY_MATRIX_SPARSE;
}

/* Columns of a chunk of metadata: two of four, one of two of tf32, two pairs of eight nibbles. */
static unsigned chunk_of(const struct tally_matrix_form *f)
{
	unsigned bits = matrix_bits_of(f->a);

	return bits == 32 ? 2 : bits == 4 ? 8 : 4;
}

/* Which two of a chunk's four places (pairs of nibbles, halves of tf32's two) are given, in their
 * order; metadata that is not ordered may name them the other way round. */
static void choose(const struct product *p, unsigned row, unsigned chunk, unsigned place[2])
{
	static const uint8_t pairs[6][2] = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
	unsigned which = (row * 37 + chunk * 11 + row * chunk) % 6;
	bool swap = !strstr(p->f->name, "ordered") && (row + chunk) % 3 == 0;

	if (chunk_of(p->f) == 2) { /* 0b0100 or 0b1110 */
		place[0] = which % 2 * 2;
		place[1] = place[0] + 1;
		return;
	}
	place[0] = pairs[which][swap];
	place[1] = pairs[which][!swap];
}

/* The dense column of stored element `i` of a row. */
static unsigned column_of(const struct product *p, unsigned row, unsigned i)
{
	unsigned chunk = chunk_of(p->f), half = chunk / 2, place[2];

	if (!sparse(p->f))
		return i;
	choose(p, row, i / half, place);
	return i / half * chunk + (chunk == 2	? place[0] / 2
				   : chunk == 4 ? place[i % 2]
						: place[i % 4 / 2] * 2 + i % 2);
}

static void put_a(struct product *p)
{
	const struct tally_matrix_form *f = p->f;
	unsigned per = matrix_bits_of(f->a) == 32 ? 1 : 32 / matrix_bits_of(f->a);
	unsigned stored = sparse(f) ? f->k / 2 : f->k;

	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned i = 0; i < M * stored / LANES; i++) {
			unsigned r = i / per, row = lane / 4 + r % 2 * 8;
			unsigned column = lane % 4 * per + i % per + r / 2 * 4 * per;
			int v = matrix_number(f->a, lane * 64 + i + 5);

			column = column_of(p, row, column);
			p->a[row][column] = v;
			p->given[row][column] = true;
			matrix_put(p->in + lane * MATRIX_WORDS, 0, f->a, i,
				   matrix_bits_for(f->a, v));
		}
}

static void place_b(unsigned lane, unsigned i, unsigned per, unsigned *row, unsigned *column)
{
	*row = lane % 4 * per + i % per + i / per * 4 * per;
	*column = lane / 4;
}

/* B and C; returns the register behind them. */
static unsigned put_b_and_c(struct product *p)
{
	const struct tally_matrix_form *f = p->f;
	unsigned per = matrix_bits_of(f->b) == 32 ? 1 : 32 / matrix_bits_of(f->b);
	unsigned pair = matrix_bits_of(f->c) == 16 ? 2 : 1;
	unsigned first_b = M * f->k / (sparse(f) ? 2 : 1) / LANES / per;
	unsigned first_c = first_b + f->k * N / LANES / per;

	for (unsigned lane = 0; lane < LANES; lane++) {
		uint64_t *words = p->in + lane * MATRIX_WORDS;

		for (unsigned i = 0; i < f->k * N / LANES; i++) {
			unsigned row, column;
			int v = matrix_number(f->b, lane * 77 + i + 1234);

			place_b(lane, i, per, &row, &column);
			p->b[row][column] = v;
			matrix_put(words, first_b, f->b, i, matrix_bits_for(f->b, v));
		}
		for (unsigned i = 0; i < 4; i++) {
			int v = f->flags & TALLY_MATRIX_SATURATED
					? (i % 2 ? INT32_MAX - 5 : INT32_MIN + 5)
					: matrix_number(f->c, lane * 4 + i + 99);

			p->c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = v;
			matrix_put(words, first_c, f->c, i, matrix_bits_for(f->c, v));
		}
	}
	return first_c + 4 / pair;
}

/*
 * Figures of PTX ISA 9.7.14.6.2; where the lanes stand was seen on an H200 (build/tests/
 * ptx_matrix_more_device), bit for bit. Of 16- and 32-bit elements a lane has four chunks of row
 * `group` below four of row group + 8; of narrower ones eight chunks of one row, the other row's
 * are in the next lane.
 */
static void put_metadata(struct product *p, unsigned at)
{
	unsigned chunk = chunk_of(p->f), chunks = p->f->k / chunk;
	bool narrow = matrix_bits_of(p->f->a) <= 8;
	unsigned holders = chunks / 4; /* lanes of a group that have any */
	unsigned selector = (unsigned)atoi(strrchr(p->f->name, '.') + 1);

	for (unsigned lane = 0; lane < LANES; lane++) /* what is not selected does not count */
		p->in[lane * MATRIX_WORDS + at] =
			lane % 4 / holders == selector ? 0 : 0xdeadbeef * (lane + 1u) & 0xffffffff;
	for (unsigned row = 0; row < M; row++)
		for (unsigned k = 0; k < chunks; k++) {
			unsigned lane = row % 8 * 4 + selector * holders, bit, place[2];

			choose(p, row, k, place);
			lane += narrow ? k / 8 * 2 + row / 8 : k / 4;
			bit = narrow ? k % 8 * 4 : row / 8 * 16 + k % 4 * 4;
			p->in[lane * MATRIX_WORDS + at] |= (uint64_t)(place[0] | place[1] << 2)
							   << bit;
		}
}

/* Factors 1, 2 and 4 of ue8m0, 1 to 3 of ue4m3, in the bytes and lanes that the selectors name. */
static void put_factors(struct product *p, unsigned at)
{
	bool ue4m3 = p->f->flags & TALLY_MATRIX_UE4M3;
	unsigned count = TALLY_MATRIX_SCALES(p->f->flags);
	unsigned byte_a = count == 1 ? 3 : count == 2 ? 2 : 0, byte_b = count == 1 ? 1 : 0;
	unsigned pair_a = 1, lane_b = 2;

	for (unsigned lane = 0; lane < LANES; lane++) {
		uint64_t *words = p->in + lane * MATRIX_WORDS + at;

		words[0] = words[3] = 0x8a8b8c8d;
		words[1] = byte_a;
		words[2] = pair_a;
		words[4] = byte_b;
		words[5] = lane_b;
	}
	for (unsigned i = 0; i < M + N; i++)
		for (unsigned s = 0; s < count; s++) {
			bool of_b = i >= M;
			unsigned index = of_b ? i - M : i, step = (index + s + of_b) % 3;
			unsigned lane =
				of_b ? index * 4 + lane_b : index % 8 * 4 + pair_a * 2 + index / 8;
			unsigned shift = ((of_b ? byte_b : byte_a) + s) * 8;
			uint64_t *word = p->in + lane * MATRIX_WORDS + at + (of_b ? 3 : 0);
			/* 1, 2, 3 of ue4m3: exponents 7, 8, 8 */
			uint64_t bits = ue4m3 ? (step == 0   ? 0x38u
						 : step == 1 ? 0x40u
							     : 0x44u)
					      : 127 + step;

			(of_b ? p->column_factor[index] : p->row_factor[index])[s] =
				ue4m3 ? (int)step + 1 : 1 << step;
			*word = (*word & ~(0xffull << shift)) | bits << shift;
		}
}

static int64_t expected(const struct product *p, unsigned row, unsigned column)
{
	unsigned scales = TALLY_MATRIX_SCALES(p->f->flags);
	int64_t sum = p->c[row][column];

	for (unsigned k = 0; k < p->f->k; k++) {
		unsigned s = k / (p->f->k / (scales ? scales : 1));

		if (p->given[row][k])
			sum += (int64_t)p->a[row][k] * p->b[k][column] *
			       (scales ? p->row_factor[row][s] * p->column_factor[column][s] : 1);
	}
	if (p->f->flags & TALLY_MATRIX_SATURATED)
		sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
	return sum;
}

static void check(const struct tally_matrix_form *f)
{
	static struct product p;
	struct tally_buffer text = {0};
	unsigned at, pair = matrix_bits_of(f->d) == 16 ? 2 : 1;

	memset(&p, 0, sizeof p);
	p.f = f;
	put_a(&p);
	at = put_b_and_c(&p);
	if (sparse(f))
		put_metadata(&p, at++);
	if (TALLY_MATRIX_SCALES(f->flags))
		put_factors(&p, at);
	matrix_print_kernel(&text, f->name, f->signature);
	matrix_run(text.data, p.in, p.out);
	tally_buffer_free(&text);
	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned i = 0; i < 4; i++) {
			uint64_t got = p.out[lane * MATRIX_WORDS + i / pair], want;

			want = matrix_bits_for(f->d, (int)expected(&p, lane / 4 + i / 2 * 8,
								   lane % 4 * 2 + i % 2));
			got = pair == 2 ? got >> i % 2 * 16 & 0xffff : got & 0xffffffff;
			if (got != want)
				fail_msg("%s: lane %u element %u: %llx, not %llx", f->name, lane, i,
					 (unsigned long long)got, (unsigned long long)want);
		}
}

static void sparse_and_scaled(void **state)
{
	const struct tally_operation *o;
	unsigned count[2] = {0, 0};

	for (size_t i = 0; (o = tally_operation_at(i)); i++) {
		const struct tally_matrix_form *f = tally_matrix_find(o->name, NULL);
		/* The other selectors, signs and orders of a shape differ in their name. */
		bool few = f && f->kind == TALLY_MATRIX_SPARSE && f->sm < 100;

		if (!f || (!sparse(f) && !TALLY_MATRIX_SCALES(f->flags)))
			continue;
		count[sparse(f)]++;
		if (!few || count[true] % 3 != 1)
			check(f);
	}
	matrix_check_count(count[false], 29);
	matrix_check_count(count[true], 239);
}

/* A zero that is not stored is not multiplied: an infinity in B meets nothing. */
static void absent_elements(void **state)
{
	const struct tally_matrix_form *f =
		tally_matrix_find("tally.mma.sp.m16n8k16.row.col.f32.f16.f16.f32.0", NULL);
	uint64_t in[LANES * MATRIX_WORDS] = {0}, out[LANES * MATRIX_WORDS] = {0};
	struct tally_buffer text = {0};

	assert_non_null(f);
	for (unsigned lane = 0; lane < LANES; lane++)
		in[lane * MATRIX_WORDS + 8] = 0x44444444; /* columns 0 and 1 of each four */
	in[0] = 0x3c003c00;				  /* row 0: 1, 1 */
	in[2] = 0x40003c00;				  /* column 0: 1, 2 */
	in[1 * MATRIX_WORDS + 2] = 0x7c007c00;		  /* and rows 2 and 3: infinity */
	matrix_print_kernel(&text, f->name, f->signature);
	matrix_run(text.data, in, out);
	tally_buffer_free(&text);
	assert_int_equal((uint32_t)out[0], 0x40400000);
}

/* Four products, of lanes 4 i to 4 i + 3 and 16 further on. */
struct quads {
	int a[4][8][4], b[4][4][8], c[4][8][8];
};

static void quads_factors(struct quads *q, const struct tally_matrix_form *f, bool a_row,
			  bool b_row, uint64_t *in)
{
	for (unsigned lane = 0; lane < LANES; lane++) {
		unsigned n = lane / 4 % 4, upper = lane < 16 ? 0 : 4;
		uint64_t *words = in + lane * MATRIX_WORDS;

		for (unsigned i = 0; i < 4; i++) {
			int x = matrix_number(f->a, lane * 4 + i);
			int y = matrix_number(f->b, lane * 4 + i + 500);

			if (a_row)
				q->a[n][lane % 4 + upper][i] = x;
			else
				q->a[n][i + upper][lane % 4] = x;
			if (b_row)
				q->b[n][lane % 4][i + upper] = y;
			else
				q->b[n][i][lane % 4 + upper] = y;
			matrix_put(words, 0, f->a, i, matrix_bits_for(f->a, x));
			matrix_put(words, 2, f->b, i, matrix_bits_for(f->b, y));
		}
	}
}

/* Where element i of C (or D) is in its product: halves of C lie their own way. */
static void quads_place(const struct tally_matrix_form *f, bool result, unsigned lane, unsigned i,
			unsigned *row, unsigned *column)
{
	bool halves = f->d == TALLY_MATRIX_F16 || (f->c != f->d && !result);

	*row = (halves ? lane % 4 : (lane & 1) + (i & 2)) + (lane < 16 ? 0 : 4);
	*column = halves ? i : (i & 4) + (lane & 2) + (i & 1);
}

static void quads_sums(struct quads *q, const struct tally_matrix_form *f, uint64_t *in)
{
	for (unsigned n = 0; n < LANES * 8; n++) {
		unsigned lane = n / 8, i = n % 8, row, column;
		int x = matrix_number(TALLY_MATRIX_F16, n + 77);

		quads_place(f, false, lane, i, &row, &column);
		q->c[lane / 4 % 4][row][column] = x;
		matrix_put(in + lane * MATRIX_WORDS, 4, f->c, i, matrix_bits_for(f->c, x));
	}
}

static void quads_check(const struct quads *q, const struct tally_matrix_form *f,
			const uint64_t *out)
{
	for (unsigned m = 0; m < LANES * 8; m++) {
		unsigned lane = m / 8, i = m % 8, n = lane / 4 % 4, row, column;
		const uint64_t *words = out + lane * MATRIX_WORDS;
		uint64_t got = f->d == TALLY_MATRIX_F16 ? words[i / 2] >> i % 2 * 16 & 0xffff
							: words[i] & 0xffffffff;
		int x;

		quads_place(f, true, lane, i, &row, &column);
		x = q->c[n][row][column];
		for (unsigned k = 0; k < 4; k++)
			x += q->a[n][row][k] * q->b[n][k][column];
		if (got != matrix_bits_for(f->d, x))
			fail_msg("%s: lane %u element %u: %llx", f->name, lane, i,
				 (unsigned long long)got);
	}
}

static void quads(void **state)
{
	static const char *const layouts[] = {"row.row", "row.col", "col.row", "col.col"};
	static const char *const types[] = {"f16.f16.f16.f16", "f32.f16.f16.f32",
					    "f32.f16.f16.f16"};

	for (unsigned v = 0; v < 12; v++) {
		uint64_t in[LANES * MATRIX_WORDS] = {0}, out[LANES * MATRIX_WORDS] = {0};
		const struct tally_matrix_form *f;
		struct tally_buffer text = {0};
		struct quads q;
		char name[80];

		snprintf(name, sizeof name, "tally.mma.m8n8k4.%s.%s", layouts[v / 3], types[v % 3]);
		f = tally_matrix_find(name, NULL);
		assert_non_null(f);
		quads_factors(&q, f, v / 3 < 2, v / 3 % 2 == 0, in);
		quads_sums(&q, f, in);
		matrix_print_kernel(&text, f->name, f->signature);
		matrix_run(text.data, in, out);
		tally_buffer_free(&text);
		quads_check(&q, f, out);
	}
}

/* 1 + 2^-60 and -1 - 2^-60 in each direction: the product of two elements, added to c. */
static void directed(void **state)
{
	static const struct {
		const char *name;
		uint64_t up, down; /* of the positive and the negative sum */
	} cases[] = {
		{"tally.mma.m8n8k4.row.col.rz.f64.f64.f64.f64", 0x3ff0000000000000,
		 0xbff0000000000000},
		{"tally.mma.m8n8k4.row.col.rm.f64.f64.f64.f64", 0x3ff0000000000000,
		 0xbff0000000000001},
		{"tally.mma.m8n8k4.row.col.rp.f64.f64.f64.f64", 0x3ff0000000000001,
		 0xbff0000000000000},
	};

	for (unsigned i = 0; i < 3; i++) {
		const struct tally_matrix_form *f = tally_matrix_find(cases[i].name, NULL);
		uint64_t in[LANES * MATRIX_WORDS] = {0}, out[LANES * MATRIX_WORDS] = {0};
		struct tally_buffer text = {0};

		assert_non_null(f);
		in[0] = 0x3e10000000000000;		       /* 2^-30: row 0, column 0 of A */
		in[1] = 0x3e10000000000000;		       /* row 0, column 0 of B */
		in[4 * MATRIX_WORDS + 1] = 0xbe10000000000000; /* column 1: -2^-30 */
		in[2] = 0x3ff0000000000000;
		in[3] = 0xbff0000000000000;
		matrix_print_kernel(&text, f->name, f->signature);
		matrix_run(text.data, in, out);
		tally_buffer_free(&text);
		assert_int_equal(out[0], cases[i].up);
		assert_int_equal(out[1], cases[i].down);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sparse_and_scaled),
		cmocka_unit_test(absent_elements),
		cmocka_unit_test(quads),
		cmocka_unit_test(directed),
	};

	const struct CMUnitTest portable[] = {cmocka_unit_test(directed)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* Directed rounding has a portable body too. */
	cpu_test_portable_matrix = true;
	return failed + cmocka_run_group_tests_name("portable bodies", portable, NULL, NULL);
}
