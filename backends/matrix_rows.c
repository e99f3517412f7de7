/* SPDX-License-Identifier: Apache-2.0 */
/* Portable bodies of the matrix operations that move elements: see matrix.c for the fragments. */
#include <stdbool.h>
#include <stdio.h>

#include "backends/matrix_body.h"

#define VALUE(...) tally_matrix_value(b, __VA_ARGS__)

/* ---- ldmatrix, stmatrix: lane 8 * i + r gives the address of row r of matrix i ---- */

/* The address of `row` (a value) of matrix `i`, moved by `offset` (a value) bytes: addresses of
 * shared memory are exchanged by their low halves. */
static unsigned row_address(struct tally_matrix_body *b, unsigned own, unsigned i, unsigned row,
			    unsigned offset)
{
	unsigned lane = VALUE("or i32 %%v%u, %u", row, i * 8), address;
	char word[16];

	snprintf(word, sizeof word, "%%v%u", own);
	address = tally_matrix_shuffle(b, word, lane);
	address = VALUE("add i32 %%v%u, %%v%u", address, offset);
	return VALUE("inttoptr i32 %%v%u to ptr addrspace(3)", address);
}

static unsigned load(struct tally_matrix_body *b, const char *type, unsigned address,
		     unsigned bytes)
{
	return VALUE("load %s, ptr addrspace(3) %%v%u, align %u", type, address, bytes);
}

static void store(struct tally_matrix_body *b, const char *type, unsigned value, unsigned address,
		  unsigned bytes)
{
	tally_buffer_print(b->text, "  store %s %%v%u, ptr addrspace(3) %%v%u, align %u\n", type,
			   value, address, bytes);
}

/* Two halves, the second above the first. */
static unsigned pair_of(struct tally_matrix_body *b, unsigned low, unsigned high)
{
	low = VALUE("zext i16 %%v%u to i32", low);
	high = VALUE("zext i16 %%v%u to i32", high);
	high = VALUE("shl i32 %%v%u, 16", high);
	return VALUE("or i32 %%v%u, %%v%u", low, high);
}

/*
 * Lane l holds the two neighbours from column 2 * (l % 4) of row l / 4; with .trans the elements of
 * column l / 4 in rows 2 * (l % 4) and the next.
 */
static void write_rows(struct tally_matrix_body *b)
{
	bool is_store = b->form->kind == TALLY_MATRIX_STORE;
	bool trans = b->form->flags & TALLY_MATRIX_TRANSPOSED;
	unsigned own = VALUE("ptrtoint ptr addrspace(3) %%p0 to i32");
	unsigned high = VALUE("lshr i32 %%v%u, 2", b->lane),
		 low = VALUE("and i32 %%v%u, 3", b->lane);
	unsigned offset = trans ? VALUE("shl i32 %%v%u, 1", high) : VALUE("shl i32 %%v%u, 2", low);
	unsigned row = trans ? VALUE("shl i32 %%v%u, 1", low) : high, next = 0, values[4];

	if (trans)
		next = VALUE("or i32 %%v%u, 1", row);
	for (unsigned i = 0; i < b->form->m; i++) {
		unsigned at = row_address(b, own, i, row, offset), second = 0;
		unsigned value = is_store ? VALUE("or i32 %%p%u, 0", 1 + i) : 0;

		if (trans)
			second = row_address(b, own, i, next, offset);
		if (is_store && trans) {
			store(b, "i16", VALUE("trunc i32 %%v%u to i16", value), at, 2);
			value = VALUE("lshr i32 %%v%u, 16", value);
			store(b, "i16", VALUE("trunc i32 %%v%u to i16", value), second, 2);
		} else if (is_store) {
			store(b, "i32", value, at, 4);
		} else if (trans) {
			values[i] = pair_of(b, load(b, "i16", at, 2), load(b, "i16", second, 2));
		} else {
			values[i] = load(b, "i32", at, 4);
		}
	}
	if (is_store)
		tally_buffer_print(b->text, "  ret void\n");
	else
		tally_matrix_return(b, values);
}

/* movmatrix: element (row, column) goes to (column, row). */
static void write_transpose(struct tally_matrix_body *b)
{
	unsigned row = VALUE("and i32 %%v%u, 3", b->lane),
		 column = VALUE("lshr i32 %%v%u, 3", b->lane);
	unsigned shift = VALUE("lshr i32 %%v%u, 2", b->lane), from, halves[2], value;

	row = VALUE("shl i32 %%v%u, 3", row);
	from = VALUE("or i32 %%v%u, %%v%u", row, column);
	shift = VALUE("and i32 %%v%u, 1", shift);
	shift = VALUE("shl i32 %%v%u, 4", shift);
	for (unsigned k = 0; k < 2; k++) {
		value = tally_matrix_shuffle(b, "%p0", VALUE("or i32 %%v%u, %u", from, k * 4));
		value = VALUE("lshr i32 %%v%u, %%v%u", value, shift);
		halves[k] = VALUE("trunc i32 %%v%u to i16", value);
	}
	value = pair_of(b, halves[0], halves[1]);
	tally_matrix_return(b, &value);
}

/* ---- wmma: loads and stores; the address and the stride, in elements, are the same in all lanes
 */

static const char *space(const struct tally_matrix_body *b)
{
	const char *code = b->form->signature;

	/* The one pointer among the parameters. */
	for (; *code && *code != 'p' && *code != 'q' && *code != 'g'; code++)
		;
	return *code == 'g' ? " addrspace(1)" : *code == 'q' ? " addrspace(3)" : "";
}

/* Where element number `offset` (an i64 value) of the matrix in memory begins. */
static unsigned place(struct tally_matrix_body *b, unsigned offset, unsigned bits)
{
	unsigned bytes = bits >= 8
				 ? VALUE("shl i64 %%v%u, %u", offset, tally_matrix_log2(bits / 8))
				 : VALUE("lshr i64 %%v%u, %u", offset, tally_matrix_log2(8 / bits));

	return VALUE("getelementptr i8, ptr%s %%p0, i64 %%v%u", space(b), bytes);
}

/* `across` along the lines of memory, `down` from one to the next: both i64 values. */
static unsigned offset_of(struct tally_matrix_body *b, unsigned across, unsigned down)
{
	unsigned stride = VALUE("zext i32 %%p%u to i64", b->params - 1);
	unsigned line = VALUE("mul i64 %%v%u, %%v%u", down, stride);

	return VALUE("add i64 %%v%u, %%v%u", line, across);
}

/* The lane's part of a number, `constant` added: i64. */
static unsigned moved(struct tally_matrix_body *b, unsigned value, unsigned constant)
{
	value = VALUE("add i32 %%v%u, %u", value, constant);
	return VALUE("zext i32 %%v%u to i64", value);
}

static unsigned load_at(struct tally_matrix_body *b, const char *type, unsigned at, unsigned bytes)
{
	return VALUE("load %s, ptr%s %%v%u, align %u", type, space(b), at, bytes);
}

/* Fragments of A and B: registers of neighbours along k. */
static void write_load_factor(struct tally_matrix_body *b)
{
	const struct tally_matrix_form *f = b->form;
	unsigned rows = f->kind == TALLY_MATRIX_WMMA_A ? f->m : f->n,
		 bits = tally_matrix_bits(f->a);
	unsigned per = tally_matrix_per(f->a), shift = tally_matrix_log2(rows), values[8];
	unsigned registers = rows * f->k / per / TALLY_MATRIX_LANES;
	bool along = (f->kind == TALLY_MATRIX_WMMA_A) == !(f->flags & TALLY_MATRIX_TRANSPOSED);
	unsigned row = VALUE("and i32 %%v%u, %u", b->lane, rows - 1);
	unsigned step = VALUE("lshr i32 %%v%u, %u", b->lane, shift);

	step = VALUE("mul i32 %%v%u, %u", step, per);
	row = moved(b, row, 0);
	for (unsigned r = 0; r < registers; r++) {
		unsigned k = r * TALLY_MATRIX_LANES / rows * per;

		if (along) { /* a register's elements are neighbours in memory too */
			unsigned at = place(b, offset_of(b, moved(b, step, k), row), bits);

			values[r] =
				load_at(b, bits == 64 ? "double" : "i32", at, bits == 64 ? 8 : 4);
			continue;
		}
		for (unsigned e = 0; e < per; e++) {
			unsigned at = place(b, offset_of(b, row, moved(b, step, k + e)), bits);
			char type[8];
			unsigned value;

			snprintf(type, sizeof type, "i%u", bits);
			value = load_at(b, bits == 64 ? "double" : type, at, bits / 8);
			if (bits < 32) {
				value = VALUE("zext %s %%v%u to i32", type, value);
				value = VALUE("shl i32 %%v%u, %u", value, e * bits);
			}
			values[r] = e ? VALUE("or i32 %%v%u, %%v%u", values[r], value) : value;
		}
	}
	for (; f->a == TALLY_MATRIX_F16 && registers < TALLY_MATRIX_WMMA_REGISTERS; registers++)
		values[registers] = VALUE("add i32 0, 0"); /* registers to spare */
	tally_matrix_return(b, values);
}

static const char *sum_type(uint8_t type)
{
	return type == TALLY_MATRIX_F16	  ? "i16"
	       : type == TALLY_MATRIX_F32 ? "float"
	       : type == TALLY_MATRIX_F64 ? "double"
					  : "i32";
}

/* Where slot `s` of the lane's fragment of C or D is in memory. */
static unsigned slot_place(struct tally_matrix_body *b, unsigned s)
{
	const struct tally_matrix_form *f = b->form;
	unsigned row = VALUE("lshr i32 %%v%u, %u", b->lane, tally_matrix_log2(f->n));
	unsigned column = VALUE("and i32 %%v%u, %u", b->lane, f->n - 1u);
	bool down = f->flags & TALLY_MATRIX_TRANSPOSED;

	row = moved(b, row, s * TALLY_MATRIX_LANES / f->n);
	column = moved(b, column, 0);
	return place(b, down ? offset_of(b, row, column) : offset_of(b, column, row),
		     tally_matrix_bits(f->a));
}

static void write_load_sum(struct tally_matrix_body *b)
{
	const struct tally_matrix_form *f = b->form;
	unsigned slots = f->m * f->n / TALLY_MATRIX_LANES, values[8],
		 bytes = tally_matrix_bits(f->a) / 8;

	for (unsigned s = 0; s < slots; s++)
		values[s] = load_at(b, sum_type(f->a), slot_place(b, s), bytes);
	for (unsigned s = 0; f->a == TALLY_MATRIX_F16 && s < slots; s += 2)
		values[s / 2] = pair_of(b, values[s], values[s + 1]);
	tally_matrix_return(b, values);
}

static void write_store_sum(struct tally_matrix_body *b)
{
	const struct tally_matrix_form *f = b->form;
	unsigned slots = f->m * f->n / TALLY_MATRIX_LANES;
	const char *type = sum_type(f->a);

	for (unsigned s = 0; s < slots; s++) {
		unsigned at = slot_place(b, s), value;

		if (f->a == TALLY_MATRIX_F16) {
			value = VALUE("lshr i32 %%p%u, %u", 1 + s / 2, s % 2 * 16);
			value = VALUE("trunc i32 %%v%u to i16", value);
			tally_buffer_print(b->text, "  store i16 %%v%u", value);
		} else {
			tally_buffer_print(b->text, "  store %s %%p%u", type, 1 + s);
		}
		tally_buffer_print(b->text, ", ptr%s %%v%u, align %u\n", space(b), at,
				   tally_matrix_bits(f->a) / 8);
	}
	tally_buffer_print(b->text, "  ret void\n");
}

void tally_matrix_write_move(struct tally_matrix_body *b)
{
	static void (*const writers[])(struct tally_matrix_body *b) = {
		[TALLY_MATRIX_WMMA_A] = write_load_factor,
		[TALLY_MATRIX_WMMA_B] = write_load_factor,
		[TALLY_MATRIX_WMMA_C] = write_load_sum,
		[TALLY_MATRIX_WMMA_D] = write_store_sum,
		[TALLY_MATRIX_LOAD] = write_rows,
		[TALLY_MATRIX_STORE] = write_rows,
		[TALLY_MATRIX_MOVE] = write_transpose,
	};

	writers[b->form->kind](b);
}
