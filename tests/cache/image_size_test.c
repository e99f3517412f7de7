/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that the length of every kind of image is found, and that nothing is guessed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cache/cache.h"

static const void *start;
static size_t size;

static void ptx_text(void **state)
{
	static const char plain[] = ".version 8.0\n",
			  header[] = "\n// a /* b\n/* c\n */ .version 9.0";

	assert_true(tally_image_size(plain, &start, &size));
	assert_ptr_equal(start, plain);
	assert_int_equal(size, strlen(plain));
	assert_true(tally_image_size(header, &start, &size));
	assert_int_equal(size, strlen(header));
	assert_false(tally_image_size("", &start, &size));
	assert_false(tally_image_size("/* never closed", &start, &size));
	assert_false(tally_image_size(".target sm_80", &start, &size));
	assert_false(tally_image_size("hello", &start, &size));
	assert_false(tally_image_size(NULL, &start, &size));
}

static void fatbin_and_wrapper(void **state)
{
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t size;
		char rest[32];
	} fatbin = {0xBA55ED50u, 1, 16, 32, ""};
	struct {
		uint32_t magic, version;
		const void *data, *unused;
	} wrapper = {0x466243B1u, 1, &fatbin, NULL};

	assert_true(tally_image_size(&fatbin, &start, &size));
	assert_int_equal(size, 48);
	assert_true(tally_image_size(&wrapper, &start, &size));
	assert_ptr_equal(start, &fatbin);
	assert_int_equal(size, 48);
	fatbin.size = UINT64_MAX;
	assert_false(tally_image_size(&fatbin, &start, &size));
	fatbin.size = 32;
	fatbin.header = 4;
	assert_false(tally_image_size(&fatbin, &start, &size));
	wrapper.data = &wrapper; /* would never end */
	assert_false(tally_image_size(&wrapper, &start, &size));
	wrapper.data = NULL;
	assert_false(tally_image_size(&wrapper, &start, &size));
}

static void bitcode_has_a_size_only_in_its_wrapper(void **state)
{
	uint32_t wrapper[5] = {0x0B17C0DEu, 0, 20, 100, 7};
	static const unsigned char raw[] = "BC\xC0\xDE\x35\x14";

	assert_true(tally_image_size(wrapper, &start, &size));
	assert_int_equal(size, 120);
	assert_false(tally_image_size(raw, &start, &size));
}

/* This very program is an ELF file whose length is known. */
static void elf_file(void **state)
{
	struct tally_buffer file = {0};
	struct tally_error error = {0};

	assert_true(tally_file_read("/proc/self/exe", &file, &error));
	assert_true(tally_image_size(file.data, &start, &size));
	assert_int_equal(size, file.size);
	file.data[4] = 1; /* 32-bit */
	assert_false(tally_image_size(file.data, &start, &size));
	tally_buffer_free(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptx_text),
		cmocka_unit_test(fatbin_and_wrapper),
		cmocka_unit_test(bitcode_has_a_size_only_in_its_wrapper),
		cmocka_unit_test(elf_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
