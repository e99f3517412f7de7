/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels as people see them: demangled also when cut, and fitted into any width. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/kernel_name.h"

static void expect_name(const char *symbol, const char *wanted)
{
	struct tally_buffer got = {0};

	tally_kernel_name(&got, symbol);
	assert_string_equal(got.data, wanted);
	tally_buffer_free(&got);
}

static void test_names(void **state)
{
	expect_name("_Z6vectorPKfiPf", "vector");
	expect_name("_ZN2at6native4tailIiLi4EEEvT_", "at::native::tail<int, 4>");
	expect_name("_ZN12_GLOBAL__N_14fillEPf", "(anonymous namespace)::fill");
	expect_name("triton_poi_fused_add_0d1d2d", "triton_poi_fused_add_0d1d2d");
	expect_name("_Zebra", "_Zebra");
	expect_name("", "");
}

/* A report keeps the first bytes of a long name: what is whole there is told. */
static void test_cut_names(void **state)
{
	static const char symbol[] =
		"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE";

	expect_name(symbol, "at::native::vectorized_elementwise_kernel<...>");
	expect_name("_ZN2at6native29vectorized_eleme", "at::native<...>");
	expect_name("_ZN12_GLOBAL__N_14fillIfEEvP", "(anonymous namespace)::fill<float>");
	expect_name("_Z99999999999999999999999999999999999999x",
		    "_Z99999999999999999999999999999999999999x");
	expect_name("_Z4tailI", "tail<...>");
	/* Anywhere: no crash, and something to read. */
	for (size_t n = 0; n < sizeof symbol; n++) {
		struct tally_buffer got = {0};
		char *cut = strndup(symbol, n);

		tally_kernel_name(&got, cut);
		assert_int_equal(got.size > 0, n > 0);
		tally_buffer_free(&got);
		free(cut);
	}
}

static void expect_fit(const char *text, unsigned columns, bool utf8, const char *wanted)
{
	struct tally_buffer got = {0};

	tally_text_fit(&got, text, columns, utf8);
	assert_string_equal(got.data ? got.data : "", wanted);
	tally_buffer_free(&got);
}

static void test_fitting(void **state)
{
	expect_fit("short", 8, true, "short   ");
	expect_fit("at::native::tail", 4, true, "tail");
	expect_fit("at::native::tail", 16, true, "at::native::tail");
	expect_fit("cutlass_80_tensorop_s16816gemm_256x128_nn", 20, false, "cutlas..._256x128_nn");
	expect_fit("n::elementwise<a::b<int>, c>", 16, true, "elementwise…, c>");
	expect_fit("abcdef", 3, true, "abc");
	expect_fit("abcdef", 0, true, "");
	/* Of two columns each: none is cut in half. */
	expect_fit("\xe6\xbc\xa2\xe5\xad\x97", 3, true, "\xe6\xbc\xa2 ");
	expect_fit("\xe6\xbc\xa2\xe5\xad\x97", 4, false, "??  ");
	/* Bytes that are no UTF-8, and control characters, reach no terminal. */
	expect_fit("a\xff\x1b[2J", 8, true, "a??[2J  ");
	expect_fit("\xc3", 2, true, "? ");
	expect_fit("a\xc2\x9b"
		   "2J",
		   6, true, "a?2J  ");
	expect_fit("\xed\xa0\x80", 3, true, "???");
}

/* In every width the result takes exactly that many columns. */
static void test_widths(void **state)
{
	static const char *const texts[] = {"", "kernel", "at::native::f<a::b, c>(x)",
					    "\xe6\xbc\xa2\xe5\xad\x97kanji_kernel_name_256x128",
					    "void \xff\xfe<>"};

	for (unsigned t = 0; t < sizeof texts / sizeof *texts; t++)
		for (unsigned columns = 1; columns < 40; columns++) {
			struct tally_buffer got = {0};

			tally_text_fit(&got, texts[t], columns, true);
			assert_int_equal(tally_text_columns(got.data), columns);
			tally_buffer_free(&got);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_cut_names),
		cmocka_unit_test(test_fitting),
		cmocka_unit_test(test_widths),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
