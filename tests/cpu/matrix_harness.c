/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of one matrix operation, and numbers in every type of element, made without the code
 * under test. */
#include "tests/cpu/matrix_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cpu/harness.h"

struct params {
	const uint64_t *in;
	uint64_t *out;
};

static const char *type_text(char code)
{
	return code == 'i'   ? "i32"
	       : code == 's' ? "i16"
	       : code == 'f' ? "float"
	       : code == 'd' ? "double"
			     : "ptr addrspace(3)";
}

/* "%v = load float, ptr %p": 8 bytes a register, one row of MATRIX_WORDS a lane. */
static void print_in(struct tally_buffer *text, const char *signature)
{
	unsigned k = 0;

	for (const char *c = signature; *c; c++, k++)
		tally_buffer_print(text,
				   "  %%p%u = getelementptr i64, ptr %%from, i32 %u\n"
				   "  %%s%u = load %s, ptr %%p%u, align 8\n",
				   k, k, k, *c == 'q' ? "i64" : type_text(*c), k);
}

/* A kernel that loads one operation's registers, does it, and stores its results. */
void matrix_print_kernel(struct tally_buffer *text, const char *name, const char *signature)
{
	char results[16];
	bool many = *signature == '{';
	size_t n = many ? strcspn(signature + 1, "}") : 1;

	snprintf(results, sizeof results, "%.*s", (int)n, signature + many);
	signature += many ? n + 2 : 1;
	tally_buffer_print(text, "define void @k(ptr %%in, ptr %%out) \"tally.kernel\" {\n"
				 "  %%x = call i32 @tally.thread.id.x()\n"
				 "  %%row = mul i32 %%x, 32\n"
				 "  %%from = getelementptr i64, ptr %%in, i32 %%row\n"
				 "  %%to = getelementptr i64, ptr %%out, i32 %%row\n");
	print_in(text, signature);
	tally_buffer_print(text, "  %%r = call %s", many ? "{" : type_text(*results));
	for (const char *c = results; many && *c; c++)
		tally_buffer_print(text, "%s%s", c == results ? "" : ", ", type_text(*c));
	tally_buffer_print(text, "%s @%s(", many ? "}" : "", name);
	for (unsigned k = 0; signature[k]; k++)
		tally_buffer_print(text, "%s%s %%s%u", k ? ", " : "", type_text(signature[k]), k);
	tally_buffer_print(text, ")\n");
	for (unsigned k = 0; results[k]; k++) {
		tally_buffer_print(text, "  %%q%u = getelementptr i64, ptr %%to, i32 %u\n", k, k);
		if (many) {
			tally_buffer_print(text, "  %%e%u = extractvalue {", k);
			for (const char *c = results; *c; c++)
				tally_buffer_print(text, "%s%s", c == results ? "" : ", ",
						   type_text(*c));
			tally_buffer_print(text, "} %%r, %u\n  store %s %%e%u, ptr %%q%u\n", k,
					   type_text(results[k]), k, k);
		} else {
			tally_buffer_print(text, "  store %s %%r, ptr %%q%u\n", type_text(*results),
					   k);
		}
	}
	tally_buffer_print(text, "  ret void\n}\n");
}

void matrix_run(const char *text, const uint64_t *in, uint64_t *out)
{
	struct tally_cpu_image image = cpu_test_image(text, "none");
	struct params params = {in, out};
	char message[256] = "";

	assert_int_equal(cpu_test_run(&image,
				      &(struct cpu_test_launch){.kernel = "k",
								.grid = {1, 1, 1},
								.block = {32, 1, 1},
								.params = &params},
				      message),
			 TALLY_CPU_OK);
	tally_cpu_image_close(&image);
}
