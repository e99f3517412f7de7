/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix operations of a warp on machines that have no instruction for them: each lane fetches the
 * registers of its row and column from the lanes that hold them, and adds the products up.
 *
 * Results are those of the CPU device (backends/cpu/executor/matrix.c), bit for bit: products of
 * floats are exact, added to c by ascending k in double precision and rounded once; .f64 is a chain
 * of fused multiply-adds; sums of products of whole numbers fit 32 bits, and are added to c last.
 *
 * Fragments of wmma, whose layout is the device's own, hold here: of A and B register number
 * q * rows + row (columns for B) counted over the warp, with the elements from q * per on along k
 * of that row; of C and D element i of the matrix, counted by rows, in slot i / 32 of lane i % 32.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/library.h"
#include "backends/matrix_body.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

enum { MAX_SLOTS = 8, MOST_INLINED = 4 };

static const struct {
	uint8_t bits;
	bool integer, sign;
} types[TALLY_MATRIX_TYPES] = {
	[TALLY_MATRIX_F16] = {16, false, false},  [TALLY_MATRIX_BF16] = {16, false, false},
	[TALLY_MATRIX_TF32] = {32, false, false}, [TALLY_MATRIX_F32] = {32, false, false},
	[TALLY_MATRIX_F64] = {64, false, false},  [TALLY_MATRIX_U8] = {8, true, false},
	[TALLY_MATRIX_S8] = {8, true, true},	  [TALLY_MATRIX_U4] = {4, true, false},
	[TALLY_MATRIX_S4] = {4, true, true},	  [TALLY_MATRIX_B1] = {1, true, false},
	[TALLY_MATRIX_S32] = {32, true, true},	  [TALLY_MATRIX_E4M3] = {8, false, false},
	[TALLY_MATRIX_E5M2] = {8, false, false},
};

unsigned tally_matrix_bits(uint8_t type)
{
	return types[type].bits;
}

unsigned tally_matrix_per(uint8_t type)
{
	return types[type].bits >= 32 ? 1 : 32u / types[type].bits;
}

unsigned tally_matrix_log2(unsigned n)
{
	return (unsigned)__builtin_ctz(n);
}

unsigned tally_matrix_value(struct tally_matrix_body *b, const char *format, ...)
{
	char line[256];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof line, format, list);
	va_end(list);
	tally_buffer_print(b->text, "  %%v%u = %s\n", b->next, line);
	return b->next++;
}

#define VALUE(...) tally_matrix_value(b, __VA_ARGS__)

unsigned tally_matrix_shuffle(struct tally_matrix_body *b, const char *word, unsigned lane)
{
	unsigned pair = VALUE("call { i32, i1 } @tally.shuffle.idx(i32 -1, i32 %s, i32 %%v%u, "
			      "i32 31)",
			      word, lane);

	return VALUE("extractvalue { i32, i1 } %%v%u, 0", pair);
}

/* Register `index` (a parameter) of lane `lane`: i32, or a double. */
static unsigned fetch(struct tally_matrix_body *b, uint8_t type, unsigned index, unsigned lane)
{
	unsigned bits, low, high;
	char name[16];

	snprintf(name, sizeof name, "%%p%u", index);
	if (type != TALLY_MATRIX_F64)
		return tally_matrix_shuffle(b, name, lane);
	bits = VALUE("bitcast double %%p%u to i64", index);
	snprintf(name, sizeof name, "%%v%u", VALUE("trunc i64 %%v%u to i32", bits));
	low = tally_matrix_shuffle(b, name, lane);
	bits = VALUE("lshr i64 %%v%u, 32", bits);
	snprintf(name, sizeof name, "%%v%u", VALUE("trunc i64 %%v%u to i32", bits));
	high = tally_matrix_shuffle(b, name, lane);
	low = VALUE("zext i32 %%v%u to i64", low);
	high = VALUE("zext i32 %%v%u to i64", high);
	high = VALUE("shl i64 %%v%u, 32", high);
	return VALUE("bitcast i64 %%v%u to double", VALUE("or i64 %%v%u, %%v%u", low, high));
}

static unsigned from_half(struct tally_matrix_body *b, unsigned word)
{
	unsigned half = VALUE("trunc i32 %%v%u to i16", word);

	half = VALUE("bitcast i16 %%v%u to half", half);
	return VALUE("fpext half %%v%u to double", half);
}

static unsigned from_single(struct tally_matrix_body *b, unsigned word)
{
	unsigned single = VALUE("bitcast i32 %%v%u to float", word);

	return VALUE("fpext float %%v%u to double", single);
}

/* Its exponent and mantissa are a half's, whose bias is larger by 8; the largest size is NaN. */
static unsigned from_e4m3(struct tally_matrix_body *b, unsigned byte)
{
	unsigned size = VALUE("and i32 %%v%u, 127", byte);
	unsigned sign = VALUE("and i32 %%v%u, 128", byte);
	unsigned nan = VALUE("icmp eq i32 %%v%u, 127", size), whole;

	size = VALUE("shl i32 %%v%u, 7", size);
	sign = VALUE("shl i32 %%v%u, 8", sign);
	whole = from_half(b, VALUE("or i32 %%v%u, %%v%u", size, sign));
	whole = VALUE("fmul double %%v%u, 256.0", whole);
	return VALUE("select i1 %%v%u, double 0x7FF8000000000000, double %%v%u", nan, whole);
}

/* Element `e` of a register: a double, or for whole numbers an i32. */
static unsigned element(struct tally_matrix_body *b, uint8_t type, unsigned word, unsigned e)
{
	unsigned width = types[type].bits;

	if (type == TALLY_MATRIX_F64)
		return word;
	if (type == TALLY_MATRIX_TF32)
		return from_single(b, VALUE("and i32 %%v%u, -8192", word));
	word = VALUE("shl i32 %%v%u, %u", word, 32 - width * (e + 1));
	if (type == TALLY_MATRIX_BF16)
		return from_single(b, VALUE("and i32 %%v%u, -65536", word));
	word = VALUE("%s i32 %%v%u, %u", types[type].sign ? "ashr" : "lshr", word, 32 - width);
	if (types[type].integer)
		return word;
	if (type == TALLY_MATRIX_E4M3)
		return from_e4m3(b, word);
	if (type == TALLY_MATRIX_E5M2)
		word = VALUE("shl i32 %%v%u, 8", word);
	return from_half(b, word);
}

/* Elements of a row's and a column's register, taken apart once for all sums that they are in. */
struct operand {
	unsigned count, values[32];
};

static struct operand take(struct tally_matrix_body *b, uint8_t type, unsigned first,
			   unsigned index, unsigned lane)
{
	unsigned word = fetch(b, type, first + index, lane);
	struct operand o = {.count = tally_matrix_per(type)};

	if (type == TALLY_MATRIX_B1) /* all bits at once */
		return (struct operand){1, {word}};
	for (unsigned e = 0; e < o.count; e++)
		o.values[e] = element(b, type, word, e);
	return o;
}

/* The products of two registers added to `sum`, by ascending k. */
static unsigned add_products(struct tally_matrix_body *b, const struct operand *x,
			     const struct operand *y, unsigned sum)
{
	bool whole = types[b->form->a].integer, bits = b->form->a == TALLY_MATRIX_B1;
	unsigned flags = b->form->flags;
	const char *direction = flags & TALLY_MATRIX_ZERO   ? "rz"
				: flags & TALLY_MATRIX_DOWN ? "rm"
				: flags & TALLY_MATRIX_UP   ? "rp"
							    : NULL;
	const char *how = !bits ? "mul" : b->form->flags & TALLY_MATRIX_AND ? "and" : "xor";

	for (unsigned e = 0; e < x->count; e++) {
		unsigned product;

		if (direction) {
			sum = VALUE("call double @tally.round.fma.%s.f64(double %%v%u, double "
				    "%%v%u, double %%v%u)",
				    direction, x->values[e], y->values[e], sum);
			continue;
		}
		if (!whole) {
			sum = VALUE("call double @llvm.fma.f64(double %%v%u, double %%v%u, "
				    "double %%v%u)",
				    x->values[e], y->values[e], sum);
			continue;
		}
		product = VALUE("%s i32 %%v%u, %%v%u", how, x->values[e], y->values[e]);
		if (bits)
			product = VALUE("call i32 @llvm.ctpop.i32(i32 %%v%u)", product);
		sum = VALUE("add i32 %%v%u, %%v%u", sum, product);
	}
	return sum;
}

/* What a sum starts with: c, or zero for whole numbers, whose c comes last. */
static unsigned start(struct tally_matrix_body *b, unsigned first, unsigned slot)
{
	unsigned word;

	switch (b->form->c) {
	case TALLY_MATRIX_F16:
		word = VALUE("lshr i32 %%p%u, %u", first + slot / 2, slot % 2 * 16);
		return from_half(b, word);
	case TALLY_MATRIX_F32:
		return VALUE("fpext float %%p%u to double", first + slot);
	case TALLY_MATRIX_F64:
		return VALUE("fadd double %%p%u, -0.0", first + slot);
	default:
		return VALUE("add i32 0, 0");
	}
}

/* A sum as the bits of a D element: i32, float or double; a NaN is the canonical one. */
static unsigned finish(struct tally_matrix_body *b, unsigned sum, unsigned first, unsigned slot)
{
	unsigned nan, rounded;

	switch (b->form->d) {
	case TALLY_MATRIX_S32:
		if (!(b->form->flags & TALLY_MATRIX_SATURATED))
			return VALUE("add i32 %%v%u, %%p%u", sum, first + slot);
		return VALUE("call i32 @llvm.sadd.sat.i32(i32 %%v%u, i32 %%p%u)", sum,
			     first + slot);
	case TALLY_MATRIX_F64:
		return sum;
	case TALLY_MATRIX_F32:
		nan = VALUE("fcmp uno double %%v%u, %%v%u", sum, sum);
		rounded = VALUE("fptrunc double %%v%u to float", sum);
		return VALUE("select i1 %%v%u, float 0x7FFFFFFFE0000000, float %%v%u", nan,
			     rounded);
	default:
		nan = VALUE("fcmp uno double %%v%u, %%v%u", sum, sum);
		rounded = VALUE("fptrunc double %%v%u to half", sum);
		rounded = VALUE("bitcast half %%v%u to i16", rounded);
		rounded = VALUE("select i1 %%v%u, i16 32767, i16 %%v%u", nan, rounded);
		return VALUE("zext i16 %%v%u to i32", rounded);
	}
}

static void return_sums(struct tally_matrix_body *b, const unsigned *sums, unsigned slots,
			unsigned first)
{
	unsigned values[MAX_SLOTS];

	for (unsigned s = 0; s < slots; s++) {
		unsigned value = finish(b, sums[s], first, s);

		if (b->form->d != TALLY_MATRIX_F16) {
			values[s] = value;
		} else if (s % 2) {
			value = VALUE("shl i32 %%v%u, 16", value);
			values[s / 2] = VALUE("or i32 %%v%u, %%v%u", values[s / 2], value);
		} else {
			values[s / 2] = value;
		}
	}
	tally_matrix_return(b, values);
}

/*
 * mma (PTX ISA 9.7.14.5): lane 4 * group + i holds, of A's rows group and group + 8 and of B's
 * column group, elements 4 * per * q + per * i on along k in its registers number q; of C and D two
 * neighbours from column 2 * i of those rows.
 */
static void write_mma(struct tally_matrix_body *b)
{
	const struct tally_matrix_form *f = b->form;
	unsigned halves = f->m / 8u, slots = halves * 2, per = tally_matrix_per(f->a);
	unsigned first_b = f->m * f->k / TALLY_MATRIX_LANES / per;
	unsigned first_c = first_b + f->k * f->n / TALLY_MATRIX_LANES / per;
	unsigned row = VALUE("and i32 %%v%u, 28", b->lane), sums[4];
	unsigned column = VALUE("and i32 %%v%u, 3", b->lane);

	column = VALUE("shl i32 %%v%u, 3", column);
	for (unsigned s = 0; s < slots; s++)
		sums[s] = start(b, first_c, s);
	for (unsigned step = 0; step < f->k / per; step++) {
		unsigned q = step / 4, i = step % 4;
		struct operand x[2], y[2];

		for (unsigned h = 0; h < halves; h++)
			x[h] = take(b, f->a, 0, q * halves + h, VALUE("or i32 %%v%u, %u", row, i));
		for (unsigned c = 0; c < 2; c++)
			y[c] = take(b, f->b, first_b, q,
				    VALUE("or i32 %%v%u, %u", column, c * 4 + i));
		for (unsigned s = 0; s < slots; s++)
			sums[s] = add_products(b, &x[s / 2], &y[s % 2], sums[s]);
	}
	return_sums(b, sums, slots, first_c);
}

static void write_wmma(struct tally_matrix_body *b)
{
	const struct tally_matrix_form *f = b->form;
	bool spare = f->a == TALLY_MATRIX_F16; /* registers to spare */
	unsigned per = tally_matrix_per(f->a), rows = TALLY_MATRIX_LANES / f->n;
	unsigned slots = f->m / rows, sums[MAX_SLOTS];
	unsigned first_b = spare ? (unsigned)TALLY_MATRIX_WMMA_REGISTERS
				 : f->m * f->k / TALLY_MATRIX_LANES / per;
	unsigned first_c = first_b + (spare ? (unsigned)TALLY_MATRIX_WMMA_REGISTERS
					    : f->k * f->n / TALLY_MATRIX_LANES / per);
	unsigned column = VALUE("and i32 %%v%u, %u", b->lane, f->n - 1u);
	unsigned row = VALUE("lshr i32 %%v%u, %u", b->lane, tally_matrix_log2(f->n));

	for (unsigned s = 0; s < slots; s++)
		sums[s] = start(b, first_c, s);
	for (unsigned q = 0; q < f->k / per; q++) {
		unsigned at = q * f->n;
		struct operand y = take(b, f->b, first_b, at / TALLY_MATRIX_LANES,
					VALUE("or i32 %%v%u, %u", column, at % TALLY_MATRIX_LANES));

		for (unsigned s = 0; s < slots; s++) {
			struct operand x;

			at = q * f->m + s * rows;
			x = take(b, f->a, 0, at / TALLY_MATRIX_LANES,
				 VALUE("or i32 %%v%u, %u", row, at % TALLY_MATRIX_LANES));
			sums[s] = add_products(b, &x, &y, sums[s]);
		}
	}
	return_sums(b, sums, slots, first_c);
}

static const char *type_text(char code)
{
	return code == 'v'   ? "void"
	       : code == 'f' ? "float"
	       : code == 'd' ? "double"
	       : code == 'p' ? "ptr"
	       : code == 'g' ? "ptr addrspace(1)"
	       : code == 'q' ? "ptr addrspace(3)"
			     : "i32";
}

/* The result's codes: those in braces, or the one. */
static const char *results(const struct tally_matrix_form *f, unsigned *count)
{
	const char *codes = f->signature + (*f->signature == '{');

	*count = *f->signature == '{' ? (unsigned)strcspn(codes, "}") : 1;
	return codes;
}

static void print_result_type(struct tally_matrix_body *b)
{
	unsigned count;
	const char *codes = results(b->form, &count);

	if (*b->form->signature != '{') {
		tally_buffer_print(b->text, "%s", type_text(*codes));
		return;
	}
	for (unsigned k = 0; k < count; k++)
		tally_buffer_print(b->text, "%s%s", k ? ", " : "{ ", type_text(codes[k]));
	tally_buffer_print(b->text, " }");
}

void tally_matrix_return(struct tally_matrix_body *b, const unsigned *values)
{
	unsigned count;
	const char *codes = results(b->form, &count);
	char whole[16] = "poison";

	if (*b->form->signature != '{') {
		tally_buffer_print(b->text, "  ret %s %%v%u\n", type_text(*codes), values[0]);
		return;
	}
	for (unsigned k = 0; k < count; k++) {
		tally_buffer_print(b->text, "  %%r%u = insertvalue ", k);
		print_result_type(b);
		tally_buffer_print(b->text, " %s, %s %%v%u, %u\n", whole, type_text(codes[k]),
				   values[k], k);
		snprintf(whole, sizeof whole, "%%r%u", k);
	}
	tally_buffer_print(b->text, "  ret ");
	print_result_type(b);
	tally_buffer_print(b->text, " %s\n", whole);
}

static void write_body(struct tally_buffer *text, const struct tally_matrix_form *f)
{
	struct tally_matrix_body b = {.text = text, .form = f};
	unsigned count;
	const char *codes = results(f, &count) + count + (*f->signature == '{');

	tally_buffer_print(text, "define ");
	print_result_type(&b);
	tally_buffer_print(text, " @%s(", f->name);
	for (; codes[b.params]; b.params++)
		tally_buffer_print(text, "%s%s %%p%u", b.params ? ", " : "",
				   type_text(codes[b.params]), b.params);
	tally_buffer_print(text, ") convergent nounwind {\n");
	b.lane = tally_matrix_value(&b, "call i32 @tally.lane.id()");
	if (f->kind == TALLY_MATRIX_MMA)
		write_mma(&b);
	else if (f->kind == TALLY_MATRIX_WMMA)
		write_wmma(&b);
	else
		tally_matrix_write_move(&b);
	tally_buffer_print(text, "}\n");
}

/* Sparse and block-scaled products, the narrowest floats and m8n8k4 on halves have no body here. */
static bool has_body(const struct tally_matrix_form *f)
{
	/* Moves of whole registers have no elements. */
	if (f->kind == TALLY_MATRIX_LOAD || f->kind == TALLY_MATRIX_STORE ||
	    f->kind == TALLY_MATRIX_MOVE)
		return true;
	return f->kind != TALLY_MATRIX_SPARSE && f->kind != TALLY_MATRIX_QUADS &&
	       !TALLY_MATRIX_SCALES(f->flags) && types[f->a].bits && types[f->b].bits;
}

static const struct tally_matrix_form *declared(LLVMValueRef function)
{
	const struct tally_matrix_form *f =
		LLVMIsDeclaration(function) ? tally_matrix_find(tally_name(function), NULL) : NULL;

	return f && has_body(f) ? f : NULL;
}

static bool is_wmma(const struct tally_matrix_form *f)
{
	return f->kind >= TALLY_MATRIX_WMMA && f->kind <= TALLY_MATRIX_WMMA_D;
}

/* A body is some hundred instructions: with many calls it stays a function. */
static void keep_long(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function) {
		unsigned calls = 0;

		if (LLVMIsDeclaration(function) || !tally_matrix_find(tally_name(function), NULL))
			continue;
		TALLY_EACH_USE (function, use)
			calls++;
		if (calls <= MOST_INLINED)
			continue;
		LLVMRemoveEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex,
					       LLVMGetEnumAttributeKindForName("alwaysinline", 12));
		tally_add_attribute(function, "noinline", 0);
	}
}

bool tally_lower_matrix(LLVMModuleRef module, unsigned sm, struct tally_error *error)
{
	struct tally_library library = {.name = "matrix operations"};
	struct tally_buffer text = {0};
	bool all_wmma = false, any = false, ok;

	tally_buffer_print(&text, "declare double @tally.round.fma.rz.f64(double, double, double)\n"
				  "declare double @tally.round.fma.rm.f64(double, double, double)\n"
				  "declare double @tally.round.fma.rp.f64(double, double, double)\n"
				  "declare i32 @tally.lane.id()\n"
				  "declare { i32, i1 } @tally.shuffle.idx(i32, i32, i32, i32) "
				  "convergent nounwind\n");
	TALLY_EACH_FUNCTION (module, function) {
		const struct tally_matrix_form *f = declared(function);

		all_wmma |= f && is_wmma(f) && f->sm > sm;
	}
	TALLY_EACH_FUNCTION (module, function) {
		const struct tally_matrix_form *f = declared(function);

		if (!f || !(f->sm > sm || (all_wmma && is_wmma(f))))
			continue;
		write_body(&text, f);
		any = true;
	}
	library.text = text.data;
	library.end = text.data + text.size;
	ok = text.failed ? tally_fail(error, "out of memory")
			 : !any || tally_lower_link_library(module, &library, error);
	if (ok && any)
		keep_long(module);
	tally_buffer_free(&text);
	return ok;
}
