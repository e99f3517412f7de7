/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix operations of a warp on NVIDIA's GPUs: the instruction that each one is named after. */
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "base/buffer.h"
#include "ir_passes/ir.h"
#include "ir_passes/matrix.h"

/* The text of one instruction, and the number of its next operand. */
struct instruction {
	struct tally_buffer text;
	unsigned number;
};

/* "{$4,$5}" of `count` registers. */
static void print_vector(struct instruction *i, unsigned count)
{
	for (unsigned k = 0; k < count; k++)
		tally_buffer_print(&i->text, "%s$%u", k ? "," : "{", i->number++);
	tally_buffer_print(&i->text, "}");
}

/* How many registers hold a fragment of so many elements; those of f64 are counted, not their bits.
 */
static unsigned registers(uint8_t type, unsigned elements)
{
	static const uint8_t bits[TALLY_MATRIX_TYPES] = {
		[TALLY_MATRIX_F16] = 16, [TALLY_MATRIX_BF16] = 16,     [TALLY_MATRIX_TF32] = 32,
		[TALLY_MATRIX_F32] = 32, [TALLY_MATRIX_F64] = 32,      [TALLY_MATRIX_U8] = 8,
		[TALLY_MATRIX_S8] = 8,	 [TALLY_MATRIX_U4] = 4,	       [TALLY_MATRIX_S4] = 4,
		[TALLY_MATRIX_B1] = 1,	 [TALLY_MATRIX_S32] = 32,      [TALLY_MATRIX_E4M3] = 8,
		[TALLY_MATRIX_E5M2] = 8, [TALLY_MATRIX_E3M2] = 8,      [TALLY_MATRIX_E2M3] = 8,
		[TALLY_MATRIX_E2M1] = 4, [TALLY_MATRIX_E2M1_BYTE] = 8,
	};

	return elements * bits[type] / 32 / 32;
}

/* The vectors of a product, and behind them metadata and factors. */
static void print_product(struct instruction *i, const struct tally_matrix_form *f,
			  unsigned results, unsigned arguments)
{
	bool wide = f->kind == TALLY_MATRIX_WMMA && f->a == TALLY_MATRIX_F16;
	bool sparse = f->kind == TALLY_MATRIX_SPARSE, scaled = TALLY_MATRIX_SCALES(f->flags);
	/* Each of the four products of QUADS is of a quarter of the lanes. */
	unsigned times = f->kind == TALLY_MATRIX_QUADS ? 4 : 1;
	unsigned a = wide ? 8 : registers(f->a, times * f->m * f->k / (sparse ? 2 : 1));
	unsigned b = wide ? 8 : registers(f->b, times * f->k * f->n);

	print_vector(i, results);
	tally_buffer_print(&i->text, ", ");
	print_vector(i, a);
	tally_buffer_print(&i->text, ", ");
	print_vector(i, b);
	tally_buffer_print(&i->text, ", ");
	print_vector(i, arguments - a - b - (sparse ? 1 : 0) - (scaled ? 6 : 0));
	if (sparse)
		tally_buffer_print(&i->text, ", $%u, %u", i->number++,
				   TALLY_MATRIX_SELECTOR(f->flags));
	for (unsigned k = 0; scaled && k < 2; k++) {
		tally_buffer_print(&i->text, ", $%u, ", i->number++);
		print_vector(i, 2);
	}
}

static void print_operands(struct instruction *i, const struct tally_matrix_form *f,
			   unsigned results, unsigned arguments)
{
	switch (f->kind) {
	case TALLY_MATRIX_MMA:
	case TALLY_MATRIX_WMMA:
	case TALLY_MATRIX_QUADS:
	case TALLY_MATRIX_SPARSE:
		print_product(i, f, results, arguments);
		break;
	case TALLY_MATRIX_MOVE:
		tally_buffer_print(&i->text, "$0, $1");
		break;
	case TALLY_MATRIX_STORE:
	case TALLY_MATRIX_WMMA_D:
		tally_buffer_print(&i->text, "[$%u], ", i->number++);
		print_vector(i, arguments - (f->kind == TALLY_MATRIX_STORE ? 1 : 2));
		break;
	default:
		print_vector(i, results);
		tally_buffer_print(&i->text, ", [$%u]", i->number++);
	}
	if (f->kind >= TALLY_MATRIX_WMMA_A && f->kind <= TALLY_MATRIX_WMMA_D)
		tally_buffer_print(&i->text, ", $%u", i->number++);
}

/* Multiplications touch registers only and may be merged and moved among others. */
static bool touches_memory(const struct tally_matrix_form *f)
{
	return f->kind != TALLY_MATRIX_MMA && f->kind != TALLY_MATRIX_WMMA &&
	       f->kind != TALLY_MATRIX_MOVE && f->kind != TALLY_MATRIX_QUADS &&
	       f->kind != TALLY_MATRIX_SPARSE;
}

static bool make_body(LLVMValueRef function, const struct tally_matrix_form *f,
		      struct tally_error *error)
{
	LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(function));
	struct instruction i = {0};
	unsigned results = LLVMGetTypeKind(result) == LLVMStructTypeKind
				   ? LLVMCountStructElementTypes(result)
				   : LLVMGetTypeKind(result) != LLVMVoidTypeKind;
	bool ok;

	tally_buffer_print(&i.text, "%s ", f->ptx);
	print_operands(&i, f, results, LLVMCountParams(function));
	tally_buffer_print(&i.text, ";");
	ok = !i.text.failed &&
	     tally_cuda_assembly(function, i.text.data, i.text.size, touches_memory(f));
	tally_buffer_free(&i.text);
	return ok || tally_fail(error, "out of memory");
}

bool tally_cuda_matrix(LLVMModuleRef module, const struct tally_cuda_target *target,
		       struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, function) {
		size_t length;
		const struct tally_matrix_form *f;

		if (!LLVMIsDeclaration(function))
			continue;
		f = tally_matrix_find(LLVMGetValueName2(function, &length), NULL);
		if (f && target->sm >= f->sm && !make_body(function, f, error))
			return false;
	}
	return true;
}
