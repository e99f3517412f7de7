/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests of matrix operations (tests/cpu/matrix_test.c, matrix_more_test.c) on a device through
 * CUDA's driver: the instruction that each operation is named after, as PTX. On an NVIDIA GPU that
 * shows whether the expected values, and where fragments and metadata lie, are the hardware's; on
 * the CPU device the whole way from text to result.
 */
#include "device.h"
#include "tests/cpu/matrix_harness.h"

#include <stdlib.h>
#include <string.h>

bool cpu_test_portable_matrix;

static const struct tally_matrix_form forms[] = {
#define FORM TALLY_MATRIX_FORM
#include "ir_passes/matrix.def"
#undef FORM
};

static struct tally_operation operations[sizeof forms / sizeof *forms];

const struct tally_matrix_form *tally_matrix_find(const char *name, unsigned *index)
{
	(void)index;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (!strcmp(forms[i].name, name))
			return &forms[i];
	return NULL;
}

/* The next form that the device has. */
const struct tally_operation *tally_operation_at(size_t index)
{
	size_t i = 0;

	for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
		if (forms[k].sm <= device_capability() && i++ == index) {
			operations[k].name = forms[k].name;
			operations[k].signature = forms[k].signature;
			return &operations[k];
		}
	return NULL;
}

/* Where the next register comes from, and the text of the instruction's operands. */
struct operands {
	struct tally_buffer *text;
	const char *codes; /* of the signature */
	unsigned next;
};

static char letter(char code)
{
	return code == 'i' ? 'r' : code == 's' ? 'h' : code;
}

static void vector(struct operands *o, unsigned count)
{
	for (unsigned k = 0; k < count; k++, o->next++)
		tally_buffer_print(o->text, "%s%%%c%u", k ? "," : "{", letter(o->codes[o->next]),
				   o->next);
	tally_buffer_print(o->text, "}");
}

static unsigned registers(unsigned type, unsigned elements)
{
	unsigned bits = matrix_bits_of(type);

	return elements * (bits == 64 ? 32 : bits) / 32 / 32;
}

static void print_instruction(struct tally_buffer *text, const struct tally_matrix_form *f,
			      const char *codes, unsigned results)
{
	struct operands o = {text, codes, 0};
	bool sparse = f->kind == TALLY_MATRIX_SPARSE, scaled = TALLY_MATRIX_SCALES(f->flags);
	unsigned times = f->kind == TALLY_MATRIX_QUADS ? 4 : 1, all = (unsigned)strlen(codes);
	unsigned a = registers(f->a, times * f->m * f->k / (sparse ? 2 : 1));
	unsigned b = registers(f->b, times * f->k * f->n);

	tally_buffer_print(text, "%s {", f->ptx);
	for (unsigned k = 0; k < results; k++)
		tally_buffer_print(text, "%s%%o%u", k ? "," : "", k);
	tally_buffer_print(text, "}, ");
	vector(&o, a);
	tally_buffer_print(text, ", ");
	vector(&o, b);
	tally_buffer_print(text, ", ");
	vector(&o, all - a - b - sparse - (scaled ? 6 : 0));
	if (sparse)
		tally_buffer_print(text, ", %%r%u, %u", o.next++, TALLY_MATRIX_SELECTOR(f->flags));
	for (unsigned k = 0; scaled && k < 2; k++) {
		tally_buffer_print(text, ", %%r%u, ", o.next++);
		vector(&o, 2);
	}
	tally_buffer_print(text, ";\n");
}

void matrix_print_kernel(struct tally_buffer *text, const char *name, const char *signature)
{
	const struct tally_matrix_form *f = tally_matrix_find(name, NULL);
	const char *results = signature + 1, *codes = strchr(signature, '}') + 1;
	unsigned count = (unsigned)(codes - results) - 1;
	const char *type = *results == 'f' ? "f32" : *results == 'd' ? "f64" : "b32";

	tally_buffer_print(text,
			   ".version 9.0\n.target %s\n.address_size 64\n"
			   ".visible .entry k(.param .u64 from, .param .u64 to) {\n"
			   ".reg .b32 %%t; .reg .b64 %%in, %%out, %%at; "
			   ".reg .b32 %%r<40>; .reg .b16 %%h<40>; .reg .f32 %%f<40>; "
			   ".reg .f64 %%d<40>; .reg .%s %%o<9>;\n"
			   "mov.u32 %%t, %%tid.x; ld.param.u64 %%in, [from]; ld.param.u64 %%out, "
			   "[to];\nmul.wide.u32 %%at, %%t, %u; add.u64 %%in, %%in, %%at; "
			   "add.u64 %%out, %%out, %%at;\n",
			   device_target(), type, MATRIX_WORDS * 8);
	for (unsigned k = 0; codes[k]; k++)
		tally_buffer_print(text, "ld.global.%s %%%c%u, [%%in+%u];\n",
				   codes[k] == 'f'   ? "f32"
				   : codes[k] == 'd' ? "f64"
				   : codes[k] == 's' ? "b16"
						     : "b32",
				   letter(codes[k]), k, k * 8);
	print_instruction(text, f, codes, count);
	for (unsigned k = 0; k < count; k++)
		tally_buffer_print(text, "st.global.%s [%%out+%u], %%o%u;\n", type, k * 8, k);
	tally_buffer_print(text, "ret; }\n");
}

void matrix_run(const char *text, const uint64_t *in, uint64_t *out)
{
	device_run(text, "k", 32, in, out, 32 * MATRIX_WORDS * sizeof *in);
}
