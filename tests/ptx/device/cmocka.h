/* SPDX-License-Identifier: Apache-2.0 */
/* As much of cmocka as the tables of cases use, for machines that have neither it nor LLVM. */
#ifndef TALLY_TESTS_PTX_DEVICE_CMOCKA_H
#define TALLY_TESTS_PTX_DEVICE_CMOCKA_H

#include <stdio.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
};

extern size_t device_wrong;

#define cmocka_unit_test(function)    {#function, function}
#define assert_int_equal(value, zero) ((void)(device_wrong += (value) != (zero)))
#define assert_non_null(pointer)      ((void)(device_wrong += !(pointer)))
#define fail_msg(...)                                                                              \
	do {                                                                                       \
		device_wrong++;                                                                    \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fprintf(stderr, "\n");                                                             \
		return;                                                                            \
	} while (0)

static inline int run_tests(const struct CMUnitTest *tests, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t before = device_wrong;

		tests[i].run(NULL);
		printf("%s %s\n", device_wrong == before ? "ok  " : "FAIL", tests[i].name);
	}
	return device_wrong != 0;
}

#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                  \
	cmocka_run_group_tests(tests, setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
	run_tests(tests, sizeof(tests) / sizeof *(tests))

#endif
