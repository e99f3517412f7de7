/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction table itself: every row can be met, and says where the ISA describes it. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "frontend/ptx/instruction.h"

static void rows_are_whole(void **state)
{
	size_t n = 0;

	for (const struct ptx_row *r; (r = ptx_row_at(n)); n++) {
		assert_true(*r->name);
		if (strncmp(r->section, "9.7.", 4))
			fail_msg("%s: section %s", r->name, r->section);
		for (const char *c = r->operands; *c; c++)
			if (!strchr("dDPsvpminxyz*?", *c))
				fail_msg("%s: operand shape %c", r->name, *c);
		/* `*` takes anything: nothing may stand behind it */
		if (strchr(r->operands, '*'))
			assert_string_equal(r->operands, "*");
	}
	assert_true(n > 200);
}

/* A row that an earlier one of the same name and patterns hides would never be met. */
static void no_row_is_hidden(void **state)
{
	const struct ptx_row *a, *b;

	for (size_t i = 0; (a = ptx_row_at(i)); i++)
		for (size_t k = 0; k < i; k++) {
			b = ptx_row_at(k);
			if (strcmp(a->name, b->name))
				continue;
			if (!strcmp(b->modifiers, "*") || (!strcmp(a->modifiers, b->modifiers) &&
							   !strcmp(a->operands, b->operands)))
				fail_msg("row %zu of %s is hidden by row %zu", i, a->name, k);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(no_row_is_hidden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
