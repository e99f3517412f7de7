/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix operations of a warp (PTX ISA 9.7.14), on the fragments that its lanes hold.
 *
 * Order of sums, which the ISA leaves open: floating-point products are exact, they are added to c
 * by ascending k in double precision, and the sum is rounded once, to nearest even, to the type of
 * d; .f64 is a chain of fused multiply-adds by ascending k. Integers are added in 64 bits, then
 * wrapped, or clamped with .satfinite. A NaN is the canonical one. Fragments of wmma, whose layout
 * the ISA leaves open too, hold element i of the matrix, counted by rows, in slot i / 32 of lane
 * i % 32. Registers of lanes that have exited read as zero.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backends/cpu/executor/internal.h"
#include "ir_passes/matrix.h"

/* Elements of the largest A (m16n8k256), B and C. */
enum { LANES = 32, MAX_A = 16 * 256, MAX_B = 8 * 256, MAX_C = 16 * 16, WMMA_REGISTERS = 8 };

static const struct tally_matrix_form forms[] = {
#define FORM TALLY_MATRIX_FORM
#include "ir_passes/matrix.def"
#undef FORM
};

/* Bits of an element, and whether it is counted in whole numbers. */
static const struct {
	uint8_t bits;
	bool integer, sign;
} types[] = {
	[TALLY_MATRIX_F16] = {16, false, false},  [TALLY_MATRIX_BF16] = {16, false, false},
	[TALLY_MATRIX_TF32] = {32, false, false}, [TALLY_MATRIX_F32] = {32, false, false},
	[TALLY_MATRIX_F64] = {64, false, false},  [TALLY_MATRIX_U8] = {8, true, false},
	[TALLY_MATRIX_S8] = {8, true, true},	  [TALLY_MATRIX_U4] = {4, true, false},
	[TALLY_MATRIX_S4] = {4, true, true},	  [TALLY_MATRIX_B1] = {1, true, false},
	[TALLY_MATRIX_S32] = {32, true, true},	  [TALLY_MATRIX_E4M3] = {8, false, false},
	[TALLY_MATRIX_E5M2] = {8, false, false},
};

/* One element: `whole` where the type is an integer. */
union element {
	double real;
	int64_t whole;
};

/* The lanes' records; NULL for a lane that has exited. */
typedef struct tally_cpu_matrix *lanes_array[LANES];

static unsigned per_register(uint8_t type)
{
	return types[type].bits >= 32 ? 1 : 32 / types[type].bits;
}

static double from_half(uint16_t bits)
{
	_Float16 half;

	memcpy(&half, &bits, sizeof half);
	return (double)half;
}

static double from_single(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* Sign, four bits of exponent, three of mantissa; the largest size is NaN. */
static double from_e4m3(unsigned bits)
{
	unsigned exponent = bits >> 3 & 15, mantissa = bits & 7;
	double size = exponent ? ldexp(8 + mantissa, (int)exponent - 10) : ldexp(mantissa, -9);

	if ((bits & 0x7f) == 0x7f)
		return NAN;
	return bits & 0x80 ? -size : size;
}

static union element decode(uint8_t type, uint64_t bits)
{
	union element e = {0};
	unsigned width = types[type].bits;

	if (width < 64)
		bits &= (1ull << width) - 1;
	if (types[type].integer) {
		e.whole = types[type].sign ? (int64_t)(bits << (64 - width)) >> (64 - width)
					   : (int64_t)bits;
	} else if (type == TALLY_MATRIX_F16) {
		e.real = from_half((uint16_t)bits);
	} else if (type == TALLY_MATRIX_BF16) {
		e.real = from_single((uint32_t)bits << 16);
	} else if (type == TALLY_MATRIX_E4M3) {
		e.real = from_e4m3((unsigned)bits);
	} else if (type == TALLY_MATRIX_E5M2) {
		e.real = from_half((uint16_t)(bits << 8));
	} else if (type == TALLY_MATRIX_TF32) {
		e.real = from_single((uint32_t)bits & 0xffffe000);
	} else if (type == TALLY_MATRIX_F32) {
		e.real = from_single((uint32_t)bits);
	} else {
		memcpy(&e.real, &bits, sizeof e.real);
	}
	return e;
}

static uint64_t encode(uint8_t type, uint8_t flags, union element e)
{
	uint64_t bits = 0;
	float f = (float)e.real;

	switch (type) {
	case TALLY_MATRIX_F16: {
		_Float16 half = (_Float16)e.real;

		if (isnan(e.real))
			return 0x7fff;
		memcpy(&bits, &half, sizeof half);
		return bits;
	}
	case TALLY_MATRIX_F32:
		if (isnan(e.real))
			return 0x7fffffff;
		memcpy(&bits, &f, sizeof f);
		return bits;
	case TALLY_MATRIX_F64:
		memcpy(&bits, &e.real, sizeof e.real);
		return bits;
	default:
		if (flags & TALLY_MATRIX_SATURATED)
			e.whole = e.whole > INT32_MAX	? INT32_MAX
				  : e.whole < INT32_MIN ? INT32_MIN
							: e.whole;
		return (uint32_t)e.whole;
	}
}

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
static void read_fragment(lanes_array lanes, unsigned first, uint8_t type, unsigned rows,
			  unsigned columns, place_function *place, union element *out)
{
	unsigned per = per_register(type), slots = rows * columns / LANES;

	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned slot = 0; slot < slots; slot++) {
			struct place p = place(lane, slot, per, columns);
			uint64_t bits = lanes[lane] ? lanes[lane]->source[first + slot / per] : 0;

			if (per > 1)
				bits >>= slot % per * types[type].bits;
			out[p.row * columns + p.column] = decode(type, bits);
		}
}

static void write_fragment(lanes_array lanes, const struct tally_matrix_form *f, uint8_t type,
			   unsigned rows, unsigned columns, place_function *place,
			   const union element *in)
{
	unsigned per = per_register(type), slots = rows * columns / LANES;

	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned slot = 0; lanes[lane] && slot < slots; slot++) {
			struct place p = place(lane, slot, per, columns);
			uint64_t bits = encode(type, f->flags, in[p.row * columns + p.column]);

			if (per > 1)
				bits <<= slot % per * types[type].bits;
			lanes[lane]->result[slot / per] |= bits;
		}
}

/* Row `a` times column `b` (its elements n apart), added to `sum`. */
static union element multiply(const struct tally_matrix_form *f, const union element *a,
			      const union element *b, union element sum)
{
	for (unsigned k = 0; k < f->k; k++, a++, b += f->n) {
		if (f->a == TALLY_MATRIX_B1)
			sum.whole += f->flags & TALLY_MATRIX_AND ? a->whole & b->whole
								 : a->whole ^ b->whole;
		else if (types[f->a].integer)
			sum.whole += a->whole * b->whole;
		else if (f->a == TALLY_MATRIX_F64)
			sum.real = fma(a->real, b->real, sum.real);
		else
			sum.real += a->real * b->real;
	}
	return sum;
}

static void resolve_mma(const struct tally_matrix_form *f, lanes_array lanes)
{
	union element a[MAX_A], b[MAX_B], c[MAX_C];
	bool wmma = f->kind == TALLY_MATRIX_WMMA;
	place_function *place = f->m == 16 ? place_a16 : place_a8;
	unsigned first_b = f->m * f->k / LANES / per_register(f->a);
	unsigned first_c = first_b + f->k * f->n / LANES / per_register(f->b);

	if (wmma && f->a == TALLY_MATRIX_F16) { /* registers to spare */
		first_b = WMMA_REGISTERS;
		first_c = 2 * WMMA_REGISTERS;
	}
	read_fragment(lanes, 0, f->a, f->m, f->k, wmma ? place_wmma : place, a);
	read_fragment(lanes, first_b, f->b, f->k, f->n, wmma ? place_wmma : place_b, b);
	read_fragment(lanes, first_c, f->c, f->m, f->n, wmma ? place_wmma : place_c, c);
	for (unsigned row = 0; row < f->m; row++)
		for (unsigned column = 0; column < f->n; column++) {
			union element *to = &c[row * f->n + column];

			*to = multiply(f, a + row * f->k, b + column, *to);
		}
	write_fragment(lanes, f, f->d, f->m, f->n, wmma ? place_wmma : place_c, c);
}

/* Loads and stores of wmma: every lane gives the same address and stride (in elements). */
static void resolve_wmma_memory(const struct tally_matrix_form *f, lanes_array lanes)
{
	bool store = f->kind == TALLY_MATRIX_WMMA_D, down = f->flags & TALLY_MATRIX_TRANSPOSED;
	unsigned rows = f->kind == TALLY_MATRIX_WMMA_B ? f->k : f->m;
	unsigned columns = f->kind == TALLY_MATRIX_WMMA_A ? f->k : f->n;
	unsigned per = per_register(f->a), width = types[f->a].bits;
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
static void resolve_rows(const struct tally_matrix_form *f, lanes_array lanes)
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
static void resolve_move(const struct tally_matrix_form *f, lanes_array lanes)
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

static void (*const resolve[])(const struct tally_matrix_form *f, lanes_array lanes) = {
	[TALLY_MATRIX_MMA] = resolve_mma,
	[TALLY_MATRIX_WMMA] = resolve_mma,
	[TALLY_MATRIX_WMMA_A] = resolve_wmma_memory,
	[TALLY_MATRIX_WMMA_B] = resolve_wmma_memory,
	[TALLY_MATRIX_WMMA_C] = resolve_wmma_memory,
	[TALLY_MATRIX_WMMA_D] = resolve_wmma_memory,
	[TALLY_MATRIX_LOAD] = resolve_rows,
	[TALLY_MATRIX_STORE] = resolve_rows,
	[TALLY_MATRIX_MOVE] = resolve_move,
};

void tally_cpu_resolve_matrix(struct tally_cpu_thread *threads, uint32_t set)
{
	const struct tally_matrix_form *f = &forms[threads[__builtin_ctz(set)].operation >> 8];
	lanes_array lanes = {NULL};

	for (unsigned lane = 0; lane < LANES; lane++) {
		if (!(set >> lane & 1))
			continue;
		lanes[lane] = (struct tally_cpu_matrix *)(uintptr_t)threads[lane].value;
		memset(lanes[lane]->result, 0, sizeof lanes[lane]->result);
	}
	resolve[f->kind](f, lanes);
}
