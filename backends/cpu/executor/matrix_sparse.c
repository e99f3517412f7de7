/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of matrix operations beside the plain product of fragments: where the elements of a sparse
 * A stand, factors for blocks of elements, and the four products of m8n8k4 on halves.
 */
#include "backends/cpu/executor/matrix.h"

/* The lane and the bit where the four bits of a row's chunk stand, see below. */
static unsigned metadata_place(const struct tally_matrix_form *f, unsigned row, unsigned chunk,
			       unsigned chunks, unsigned *bit)
{
	bool narrow = tally_cpu_element_bits(f->a) <= 8;
	unsigned in_lane = narrow ? 8 : 4, per_half = narrow ? 2 : 1;
	unsigned holders = chunks * per_half / in_lane; /* lanes of the group that hold any */

	*bit = chunk % in_lane * 4 + (narrow ? 0 : row / 8 * 16);
	return row % 8 * 4 + TALLY_MATRIX_SELECTOR(f->flags) * holders +
	       chunk / in_lane * per_half + (narrow ? row / 8 : 0);
}

/*
 * Metadata of mma.sp (PTX ISA 9.7.14.6): four bits for each chunk of 4 columns of a row, the places
 * of the two elements that are there; for 8 columns of nibbles, those of two pairs; for 2 columns
 * of tf32, that of one, twice as large. Of elements of 16 and 32 bits a lane has four chunks of row
 * `group` and, above them, four of row group + 8; of narrower ones eight chunks of one row, lanes
 * of even number those of row `group`, of odd number those of row group + 8. The selector says
 * which of the group's lanes begin.
 */
void tally_cpu_spread(const struct tally_matrix_form *f, tally_cpu_lanes lanes, unsigned at,
		      const union tally_cpu_element *packed, union tally_cpu_element *a,
		      bool *absent)
{
	unsigned bits = tally_cpu_element_bits(f->a);
	unsigned chunk = bits == 32 ? 2 : bits == 4 ? 8 : 4, half = chunk / 2;

	for (unsigned i = 0; i < f->m * f->k; i++)
		absent[i] = true;
	for (unsigned i = 0; i < f->m * f->k / 2u; i++) {
		unsigned row = i / (f->k / 2), column = i % (f->k / 2), bit;
		unsigned first = column / half * chunk, which = column % half;
		unsigned lane = metadata_place(f, row, first / chunk, f->k / chunk, &bit);
		uint64_t word = lanes[lane] ? lanes[lane]->source[at] : 0;
		unsigned four = word >> bit & 15;
		unsigned place = chunk == 2   ? (four & 3) / 2
				 : chunk == 4 ? four >> 2 * which & 3
					      : (four >> which / 2 * 2 & 3) * 2 + which % 2;

		a[row * f->k + first + place] = packed[i];
		absent[row * f->k + first + place] = false;
	}
}

/*
 * PTX ISA 9.7.14.3: of a group's lanes two hold the factors of row `group` and row group + 8 of A,
 * the lower or the upper two; one holds those of column `group` of B.
 */
void tally_cpu_read_factors(const struct tally_matrix_form *f, tally_cpu_lanes lanes, unsigned at,
			    double (*rows)[TALLY_CPU_MAX_SCALES],
			    double (*columns)[TALLY_CPU_MAX_SCALES])
{
	unsigned count = TALLY_MATRIX_SCALES(f->flags);
	bool ue4m3 = f->flags & TALLY_MATRIX_UE4M3;

	for (unsigned i = 0; i < f->m + f->n * 1u; i++) {
		bool of_b = i >= f->m;
		unsigned index = of_b ? i - f->m : i, from = at + (of_b ? 3 : 0);
		double *out = of_b ? columns[index] : rows[index];
		const struct tally_cpu_matrix *any = lanes[index % 8 * 4], *m;
		unsigned byte = any ? (unsigned)any->source[from + 1] & 3 : 0;
		unsigned who = any ? (unsigned)any->source[from + 2] & 3 : 0;

		m = lanes[index % 8 * 4 + (of_b ? who : who % 2 * 2 + index / 8)];
		for (unsigned s = 0; s < count; s++)
			out[s] = tally_cpu_factor(
				m ? (unsigned)(m->source[from] >> (byte + s) % 4 * 8) & 0xff : 0,
				ue4m3);
	}
}

/* Rows and columns of m8n8k4's fragments on halves (PTX ISA 9.7.14.5.1); lanes from 16 on are the
 * upper group of their product. */
static void place_quad(bool across, unsigned lane, unsigned i, unsigned *row, unsigned *column)
{
	unsigned upper = lane / 16 * 4;

	*row = across ? lane % 4 + upper : i + upper;
	*column = across ? i : lane % 4;
}

static void place_quad_sum(bool single, unsigned lane, unsigned i, unsigned *row, unsigned *column)
{
	unsigned upper = lane / 16 * 4;

	*row = (single ? (lane & 1) + (i & 2) : lane % 4) + upper;
	*column = single ? (i & 4) + (lane & 2) + (i & 1) : i;
}

static double half_of(const struct tally_cpu_matrix *m, unsigned first, unsigned i)
{
	return m ? tally_cpu_decode(TALLY_MATRIX_F16, m->source[first + i / 2] >> i % 2 * 16).real
		 : 0;
}

/* The lane of one product's eight that is its n-th. */
static unsigned lane_of(unsigned which, unsigned n)
{
	return which * 4 + n % 4 + n / 4 * 16;
}

/* One of the products: lanes 4 * which to 4 * which + 3, and the same 16 further on. */
static void resolve_quad(const struct tally_matrix_form *f, tally_cpu_lanes lanes, unsigned which)
{
	double a[8][4], b[4][8], c[8][8];
	unsigned row, column;

	for (unsigned n = 0; n < 32; n++) {
		unsigned lane = lane_of(which, n / 4), i = n % 4;

		place_quad(!(f->flags & TALLY_MATRIX_COLUMN_A), lane, i, &row, &column);
		a[row][column] = half_of(lanes[lane], 0, i);
		/* B by columns lies as A by rows does. */
		place_quad(!(f->flags & TALLY_MATRIX_ROW_B), lane, i, &column, &row);
		b[row][column] = half_of(lanes[lane], 2, i);
	}
	for (unsigned n = 0; n < 64; n++) {
		unsigned lane = lane_of(which, n / 8), i = n % 8;
		const struct tally_cpu_matrix *m = lanes[lane];

		place_quad_sum(f->c == TALLY_MATRIX_F32, lane, i, &row, &column);
		c[row][column] = f->c == TALLY_MATRIX_F16 ? half_of(m, 4, i)
				 : m ? tally_cpu_decode(f->c, m->source[4 + i]).real
				     : 0;
	}
	for (unsigned n = 0; n < 64; n++) {
		unsigned lane = lane_of(which, n / 8), i = n % 8;
		struct tally_cpu_matrix *m = lanes[lane];
		union tally_cpu_element sum;
		uint64_t bits;

		if (!m)
			continue;
		place_quad_sum(f->d == TALLY_MATRIX_F32, lane, i, &row, &column);
		sum.real = c[row][column];
		for (unsigned k = 0; k < 4; k++)
			sum.real += a[row][k] * b[k][column];
		bits = tally_cpu_encode(f->d, f->flags, sum);
		if (f->d == TALLY_MATRIX_F16)
			m->result[i / 2] |= bits << i % 2 * 16;
		else
			m->result[i] = bits;
	}
}

void tally_cpu_resolve_quads(const struct tally_matrix_form *f, tally_cpu_lanes lanes)
{
	for (unsigned which = 0; which < 4; which++)
		resolve_quad(f, lanes, which);
}
