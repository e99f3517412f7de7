/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix operations of a warp (PTX ISA 9.7.14), on the fragments that its lanes hold.
 *
 * Order of sums, which the ISA leaves open: floating-point products are exact, they are added to c
 * by ascending k in double precision, and the sum is rounded once, to nearest even, to the type of
 * d; .f64 is a chain of fused multiply-adds by ascending k, each rounded as the instruction says.
 * Integers are added in 64 bits, then wrapped, or clamped with .satfinite. A NaN is the canonical
 * one. Fragments of wmma, whose layout the ISA leaves open too, hold element i of the matrix,
 * counted by rows, in slot i / 32 of lane i % 32. Registers of lanes that have exited read as zero.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backends/cpu/executor/matrix.h"

enum { LANES = TALLY_CPU_LANES, WMMA_REGISTERS = 8 };

static const struct tally_matrix_form forms[] = {
#define FORM TALLY_MATRIX_FORM
#include "ir_passes/matrix.def"
#undef FORM
};

/* Which element of its matrix a slot of a lane's fragment is. */
struct place {
	unsigned row, column;
};

typedef struct place place_function(unsigned lane, unsigned slot, unsigned per, unsigned columns);

/*
 * Fragments of mma.m8n8k* and m16n8k* (PTX ISA 9.7.14.5): lane = 4 * group + i. A register of A
 * holds `per` neighbours of one row: rows group and group + 8 in turn, then 4 * per columns on.
 */
static struct place place_a8(unsigned lane, unsigned slot, unsigned per, unsigned columns)
{
	return (struct place){lane / 4, lane % 4 * per + slot % per + slot / per * 4 * per};
}

static struct place place_a16(unsigned lane, unsigned slot, unsigned per, unsigned columns)
{
	unsigned r = slot / per;

	return (struct place){lane / 4 + r % 2 * 8, lane % 4 * per + slot % per + r / 2 * 4 * per};
}

/* B is held as A's 8 rows, by columns. */
static struct place place_b(unsigned lane, unsigned slot, unsigned per, unsigned columns)
{
	struct place p = place_a8(lane, slot, per, columns);

	return (struct place){p.column, p.row};
}

/* C and D: two neighbours of row group, two of row group + 8. */
static struct place place_c(unsigned lane, unsigned slot, unsigned per, unsigned columns)
{
	return (struct place){lane / 4 + slot / 2 * 8, lane % 4 * 2 + slot % 2};
}

static struct place place_wmma(unsigned lane, unsigned slot, unsigned per, unsigned columns)
{
	unsigned i = slot * LANES + lane;

	return (struct place){i / columns, i % columns};
}

/* A fragment in the registers from `first` on, as a matrix by rows. */
static void read_fragment(tally_cpu_lanes lanes, unsigned first, uint8_t type, unsigned rows,
			  unsigned columns, place_function *place, union tally_cpu_element *out)
{
	unsigned per = tally_cpu_elements(type), slots = rows * columns / LANES;

	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned slot = 0; slot < slots; slot++) {
			struct place p = place(lane, slot, per, columns);
			uint64_t bits = lanes[lane] ? lanes[lane]->source[first + slot / per] : 0;

			if (per > 1)
				bits >>= slot % per * tally_cpu_element_bits(type);
			out[p.row * columns + p.column] = tally_cpu_decode(type, bits);
		}
}

static void write_fragment(tally_cpu_lanes lanes, const struct tally_matrix_form *f, uint8_t type,
			   unsigned rows, unsigned columns, place_function *place,
			   const union tally_cpu_element *in)
{
	unsigned per = tally_cpu_elements(type), slots = rows * columns / LANES;

	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned slot = 0; lanes[lane] && slot < slots; slot++) {
			struct place p = place(lane, slot, per, columns);
			uint64_t bits =
				tally_cpu_encode(type, f->flags, in[p.row * columns + p.column]);

			if (per > 1)
				bits <<= slot % per * tally_cpu_element_bits(type);
			lanes[lane]->result[slot / per] |= bits;
		}
}

/* The operands of a product, as matrices by rows. */
struct operands {
	union tally_cpu_element a[TALLY_CPU_MAX_A], b[TALLY_CPU_MAX_B], c[TALLY_CPU_MAX_C];
	bool absent[TALLY_CPU_MAX_A]; /* of a sparse A */
	double row_factor[16][TALLY_CPU_MAX_SCALES], column_factor[8][TALLY_CPU_MAX_SCALES];
};

static double multiply_add(const struct tally_matrix_form *f, double a, double b, double sum)
{
	uint32_t direction = f->flags & TALLY_MATRIX_ZERO   ? TALLY_CPU_RZ
			     : f->flags & TALLY_MATRIX_DOWN ? TALLY_CPU_RM
							    : TALLY_CPU_RP;

	if (f->flags & (TALLY_MATRIX_ZERO | TALLY_MATRIX_DOWN | TALLY_MATRIX_UP))
		return tally_cpu_round64(TALLY_CPU_ROUND_FMA * 4 + direction, a, b, sum);
	return fma(a, b, sum);
}

/* The sum of the products of a row and a column, and of c. */
static union tally_cpu_element sum_products(const struct tally_matrix_form *f,
					    const struct operands *o, unsigned row, unsigned column)
{
	union tally_cpu_element sum = o->c[row * f->n + column];
	bool whole = tally_cpu_element_whole(f->a), sparse = f->kind == TALLY_MATRIX_SPARSE;
	unsigned scales = TALLY_MATRIX_SCALES(f->flags);

	for (unsigned k = 0; k < f->k; k++) {
		union tally_cpu_element a = o->a[row * f->k + k], b = o->b[k * f->n + column];

		if (sparse && o->absent[row * f->k + k])
			continue;
		if (f->a == TALLY_MATRIX_B1)
			sum.whole +=
				f->flags & TALLY_MATRIX_AND ? a.whole & b.whole : a.whole ^ b.whole;
		else if (whole)
			sum.whole += a.whole * b.whole;
		else if (f->a == TALLY_MATRIX_F64)
			sum.real = multiply_add(f, a.real, b.real, sum.real);
		else if (scales)
			sum.real += a.real * o->row_factor[row][k * scales / f->k] * b.real *
				    o->column_factor[column][k * scales / f->k];
		else
			sum.real += a.real * b.real;
	}
	return sum;
}

static unsigned registers(uint8_t type, unsigned elements)
{
	return elements / LANES / tally_cpu_elements(type);
}

static void resolve_mma(const struct tally_matrix_form *f, tally_cpu_lanes lanes)
{
	struct operands o;
	union tally_cpu_element packed[TALLY_CPU_MAX_A / 2];
	bool wmma = f->kind == TALLY_MATRIX_WMMA, sparse = f->kind == TALLY_MATRIX_SPARSE;
	unsigned stored = sparse ? f->k / 2 : f->k; /* columns of A */
	place_function *place = wmma ? place_wmma : f->m == 16 ? place_a16 : place_a8;
	unsigned first_b = registers(f->a, f->m * stored);
	unsigned first_c = first_b + registers(f->b, f->k * f->n);
	unsigned behind = first_c + registers(f->c, f->m * f->n);

	if (wmma && f->a == TALLY_MATRIX_F16) { /* registers to spare */
		first_b = WMMA_REGISTERS;
		first_c = 2 * WMMA_REGISTERS;
	}
	read_fragment(lanes, 0, f->a, f->m, stored, place, sparse ? packed : o.a);
	read_fragment(lanes, first_b, f->b, f->k, f->n, wmma ? place_wmma : place_b, o.b);
	read_fragment(lanes, first_c, f->c, f->m, f->n, wmma ? place_wmma : place_c, o.c);
	if (sparse)
		tally_cpu_spread(f, lanes, behind, packed, o.a, o.absent);
	if (TALLY_MATRIX_SCALES(f->flags))
		tally_cpu_read_factors(f, lanes, behind + sparse, o.row_factor, o.column_factor);
	for (unsigned row = 0; row < f->m; row++)
		for (unsigned column = 0; column < f->n; column++)
			o.c[row * f->n + column] = sum_products(f, &o, row, column);
	write_fragment(lanes, f, f->d, f->m, f->n, wmma ? place_wmma : place_c, o.c);
}

/* Loads and stores of wmma: every lane gives the same address and stride (in elements). */
static void resolve_wmma_memory(const struct tally_matrix_form *f, tally_cpu_lanes lanes)
{
	bool store = f->kind == TALLY_MATRIX_WMMA_D, down = f->flags & TALLY_MATRIX_TRANSPOSED;
	unsigned rows = f->kind == TALLY_MATRIX_WMMA_B ? f->k : f->m;
	unsigned columns = f->kind == TALLY_MATRIX_WMMA_A ? f->k : f->n;
	unsigned per = tally_cpu_elements(f->a), width = tally_cpu_element_bits(f->a);
	unsigned bytes = width < 8 ? 1 : width / 8;
	unsigned stride_at = store ? 1 + rows * columns / LANES / per : 1;

	for (unsigned i = 0; i < rows * columns; i++) {
		struct tally_cpu_matrix *m = lanes[i % LANES];
		unsigned slot = i / LANES, shift = per > 1 ? slot % per * width : 0;
		struct place p = place_wmma(i % LANES, slot, per, columns);
		size_t offset;
		uint64_t bits = 0;
		char *at;

		if (!m)
			continue;
		offset = down ? p.column * (size_t)(uint32_t)m->source[stride_at] + p.row
			      : p.row * (size_t)(uint32_t)m->source[stride_at] + p.column;
		at = (char *)(uintptr_t)m->source[0] + offset * width / 8;
		if (store) {
			bits = m->source[1 + slot / per] >> shift;
			memcpy(at, &bits, bytes);
		} else {
			memcpy(&bits, at, bytes);
			if (width < 8)
				bits = bits >> offset * width % 8 & ((1u << width) - 1);
			m->result[slot / per] |= bits << shift;
		}
	}
}

/*
 * ldmatrix and stmatrix: lane 8 * i + r gives the address of row r of matrix i; lane l holds the
 * two neighbours from column 2 * (l % 4) of row l / 4, or with .trans of that column and row.
 */
static void resolve_rows(const struct tally_matrix_form *f, tally_cpu_lanes lanes)
{
	bool store = f->kind == TALLY_MATRIX_STORE, trans = f->flags & TALLY_MATRIX_TRANSPOSED;

	for (unsigned i = 0; i < f->m * 64u; i++) {
		unsigned matrix = i / 64, row = i / 8 % 8, column = i % 8;
		unsigned across = trans ? row : column, down = trans ? column : row;
		const struct tally_cpu_matrix *addresses = lanes[matrix * 8 + row];
		struct tally_cpu_matrix *m = lanes[down * 4 + across / 2];
		unsigned shift = across % 2 * 16;
		uint16_t half, *at;

		if (!addresses || !m)
			continue;
		at = (uint16_t *)(uintptr_t)addresses->source[0] + column;
		if (store) {
			half = (uint16_t)(m->source[1 + matrix] >> shift);
			memcpy(at, &half, sizeof half);
		} else {
			memcpy(&half, at, sizeof half);
			m->result[matrix] |= (uint64_t)half << shift;
		}
	}
}

/* movmatrix: element (row, column) of an 8 x 8 matrix of halves goes to (column, row). */
static void resolve_move(const struct tally_matrix_form *f, tally_cpu_lanes lanes)
{
	(void)f;
	for (unsigned i = 0; i < 64; i++) {
		unsigned row = i / 8, column = i % 8;
		const struct tally_cpu_matrix *from = lanes[row * 4 + column / 2];
		struct tally_cpu_matrix *to = lanes[column * 4 + row / 2];

		if (from && to)
			to->result[0] |= (from->source[0] >> column % 2 * 16 & 0xffff)
					 << row % 2 * 16;
	}
}

static void (*const resolve[])(const struct tally_matrix_form *f, tally_cpu_lanes lanes) = {
	[TALLY_MATRIX_MMA] = resolve_mma,
	[TALLY_MATRIX_WMMA] = resolve_mma,
	[TALLY_MATRIX_WMMA_A] = resolve_wmma_memory,
	[TALLY_MATRIX_WMMA_B] = resolve_wmma_memory,
	[TALLY_MATRIX_WMMA_C] = resolve_wmma_memory,
	[TALLY_MATRIX_WMMA_D] = resolve_wmma_memory,
	[TALLY_MATRIX_LOAD] = resolve_rows,
	[TALLY_MATRIX_STORE] = resolve_rows,
	[TALLY_MATRIX_MOVE] = resolve_move,
	[TALLY_MATRIX_QUADS] = tally_cpu_resolve_quads,
	[TALLY_MATRIX_SPARSE] = resolve_mma,
};

void tally_cpu_resolve_matrix(struct tally_cpu_thread *threads, uint32_t set)
{
	const struct tally_matrix_form *f = &forms[threads[__builtin_ctz(set)].operation >> 8];
	tally_cpu_lanes lanes = {NULL};

	for (unsigned lane = 0; lane < LANES; lane++) {
		if (!(set >> lane & 1))
			continue;
		lanes[lane] = (struct tally_cpu_matrix *)(uintptr_t)threads[lane].value;
		memset(lanes[lane]->result, 0, sizeof lanes[lane]->result);
	}
	resolve[f->kind](f, lanes);
}
