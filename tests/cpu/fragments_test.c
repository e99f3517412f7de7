/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix operations whose bodies are shuffles and sums (backends/matrix.c) beside those of the
 * CPU device: mma on registers of any bits, and wmma through memory, whose fragments differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"
#include "tests/cpu/matrix_harness.h"

enum { WORDS = 32 * MATRIX_WORDS };

static const char *type_text(char code)
{
	return code == 'f' ? "float" : code == 'd' ? "double" : code == 'p' ? "ptr" : "i32";
}

/* How many codes the result has; *arguments is set behind them. */
static unsigned split(const char *signature, const char **results, const char **arguments)
{
	bool many = *signature == '{';
	unsigned count = many ? (unsigned)strcspn(signature + 1, "}") : 1;

	*results = signature + many;
	*arguments = signature + count + (many ? 2 : 0);
	return count;
}

static void print_type(struct tally_buffer *text, const char *signature)
{
	const char *results, *arguments;
	unsigned count = split(signature, &results, &arguments);

	for (unsigned k = 0; k < count; k++)
		tally_buffer_print(text, "%s%s",
				   k		       ? ", "
				   : *signature == '{' ? "{"
						       : "",
				   type_text(results[k]));
	tally_buffer_print(text, "%s", *signature == '{' ? "}" : "");
}

/* Element `k` of value %`name` of an operation of that signature as %`name`_k. */
static void print_parts(struct tally_buffer *text, const char *signature, const char *name)
{
	const char *results, *arguments;
	unsigned count = split(signature, &results, &arguments);

	for (unsigned k = 0; k < count; k++) {
		if (*signature == '{') {
			tally_buffer_print(text, "  %%%s_%u = extractvalue ", name, k);
			print_type(text, signature);
			tally_buffer_print(text, " %%%s, %u\n", name, k);
		} else {
			tally_buffer_print(text, "  %%%s_0 = select i1 true, %s %%%s, %s %%%s\n",
					   name, type_text(*results), name, type_text(*results),
					   name);
		}
	}
}

/* Runs `text` with either kind of body; the results go to out[0] and out[1]. */
static void run_both(const char *text, const uint64_t *in, uint64_t out[2][WORDS])
{
	for (unsigned portable = 0; portable < 2; portable++) {
		cpu_test_portable_matrix = portable;
		memset(out[portable], 0, sizeof out[portable]);
		matrix_run(text, in, out[portable]);
	}
	cpu_test_portable_matrix = false;
}

/* Any bits: infinities, NaNs, denormals, sums that overflow. f64 passes NaNs on as they are. */
static void any_bits(void **state)
{
	static uint64_t in[WORDS];
	static uint64_t out[2][WORDS];
	const struct tally_operation *o;
	unsigned count = 0;

	for (size_t i = 0; (o = tally_operation_at(i)); i++) {
		const struct tally_matrix_form *f = tally_matrix_find(o->name, NULL);
		struct tally_buffer text = {0};

		/* Those of .kind have no portable body. */
		if (!f || f->kind != TALLY_MATRIX_MMA || f->flags & TALLY_MATRIX_SATURATED ||
		    strstr(f->name, ".kind."))
			continue;
		for (unsigned k = 0; k < WORDS; k++)
			in[k] = f->a == TALLY_MATRIX_F64
					? (uint64_t)(cpu_test_random() & 0x3fffffff) << 32 |
						  cpu_test_random()
					: cpu_test_random() &
						  (k % 3 ? 0xffffffff
							 : 0x3bff3bff); /* some finite */
		matrix_print_kernel(&text, f->name, f->signature);
		run_both(text.data, in, out);
		tally_buffer_free(&text);
		if (memcmp(out[0], out[1], sizeof *out))
			fail_msg("%s: results differ", f->name);
		count++;
	}
	assert_int_equal(count, 70);
}

static const char *word_of(uint8_t type)
{
	static const char *const words[] = {
		[TALLY_MATRIX_F16] = "f16",   [TALLY_MATRIX_BF16] = "bf16",
		[TALLY_MATRIX_TF32] = "tf32", [TALLY_MATRIX_F32] = "f32",
		[TALLY_MATRIX_F64] = "f64",   [TALLY_MATRIX_U8] = "u8",
		[TALLY_MATRIX_S8] = "s8",     [TALLY_MATRIX_U4] = "u4",
		[TALLY_MATRIX_S4] = "s4",     [TALLY_MATRIX_B1] = "b1",
		[TALLY_MATRIX_S32] = "s32",
	};

	return words[type];
}

/* "  %a = call … @tally.wmma.load.a.row.m16n16k16.f16(ptr %pa, i32 STRIDE)", and its parts. */
static const char *print_load(struct tally_buffer *text, char letter, const char *layout,
			      const char *shape, uint8_t type, unsigned stride)
{
	char name[128], value[2] = {letter, 0};
	const struct tally_operation *o;

	snprintf(name, sizeof name, "tally.wmma.load.%c.%s.%s.%s", letter, layout, shape,
		 word_of(type));
	o = tally_operation_find(name);
	if (!o)
		fail_msg("no operation %s", name);
	tally_buffer_print(text, "  %%%c = call ", letter);
	print_type(text, o->signature);
	tally_buffer_print(text, " @%s(ptr %%p%c, i32 %u)\n", name, letter, stride);
	print_parts(text, o->signature, value);
	return o->signature;
}

static void print_arguments(struct tally_buffer *text, const char *signature, char letter)
{
	const char *results, *arguments;
	unsigned count = split(signature, &results, &arguments);

	for (unsigned k = 0; k < count; k++)
		tally_buffer_print(text, "%s%s %%%c_%u", k || letter != 'a' ? ", " : "",
				   type_text(results[k]), letter, k);
}

/* D = A * B + C from memory to memory; layouts of a, b, c and d, strides of 32 elements and more.
 */
static void print_wmma(struct tally_buffer *text, const struct tally_matrix_form *f, bool down)
{
	const char *at = strstr(f->name, "row") && (!strstr(f->name, "col") ||
						    strstr(f->name, "row") < strstr(f->name, "col"))
				 ? strstr(f->name, "row")
				 : strstr(f->name, "col");
	const char *sums = down ? "col" : "row", *results, *arguments, *a, *b, *c;
	unsigned stride = f->k > 32 ? f->k : 32;
	char layouts[2][4], shape[32];
	unsigned count;

	snprintf(layouts[0], sizeof layouts[0], "%.3s", at);
	snprintf(layouts[1], sizeof layouts[1], "%.3s", at + 4);
	snprintf(shape, sizeof shape, "m%un%uk%u", f->m, f->n, f->k);
	tally_buffer_print(text, "define void @k(ptr %%pa, ptr %%pd) \"tally.kernel\" {\n"
				 "  %%pb = getelementptr i8, ptr %%pa, i32 1024\n"
				 "  %%pc = getelementptr i8, ptr %%pa, i32 2048\n");
	a = print_load(text, 'a', layouts[0], shape, f->a, stride);
	b = print_load(text, 'b', layouts[1], shape, f->b, stride);
	c = print_load(text, 'c', sums, shape, f->c, 32);
	tally_buffer_print(text, "  %%d = call ");
	print_type(text, f->signature);
	tally_buffer_print(text, " @%s(", f->name);
	print_arguments(text, a, 'a');
	print_arguments(text, b, 'b');
	print_arguments(text, c, 'c');
	tally_buffer_print(text, ")\n");
	print_parts(text, f->signature, "d");
	count = split(f->signature, &results, &arguments);
	tally_buffer_print(text, "  call void @tally.wmma.store.d.%s.%s.%s(ptr %%pd", sums, shape,
			   word_of(f->d));
	for (unsigned k = 0; k < count; k++)
		tally_buffer_print(text, ", %s %%d_%u", type_text(results[k]), k);
	tally_buffer_print(text, ", i32 32)\n  ret void\n}\n");
}

static void through_memory(void **state)
{
	static uint64_t in[2 * WORDS];
	static uint64_t out[2][WORDS];
	const struct tally_operation *o;
	unsigned count = 0;

	for (size_t i = 0; (o = tally_operation_at(i)); i++) {
		const struct tally_matrix_form *f = tally_matrix_find(o->name, NULL);
		struct tally_buffer text = {0};
		unsigned changed = 0;

		if (!f || f->kind != TALLY_MATRIX_WMMA || f->flags & TALLY_MATRIX_SATURATED)
			continue;
		for (unsigned k = 0; k < 2 * WORDS; k++) /* finite in every type */
			in[k] = ((uint64_t)cpu_test_random() << 32 | cpu_test_random()) &
				0x3bff3bff3bff3bff;
		print_wmma(&text, f, count % 2);
		run_both(text.data, in, out);
		tally_buffer_free(&text);
		if (memcmp(out[0], out[1], sizeof *out))
			fail_msg("%s: results differ", f->name);
		for (unsigned k = 0; k < sizeof *out; k++)
			changed += ((const uint8_t *)out[0])[k] != 0;
		assert_true(changed > f->m * f->n / 2u);
		count++;
	}
	assert_int_equal(count, 96);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bits),
		cmocka_unit_test(through_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
