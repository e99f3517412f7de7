/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that the length of every kind of image is found, and that nothing is guessed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
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

static struct tally_image_facts peek(const char *text)
{
	return tally_image_peek(text, strlen(text));
}

/* Variables of the module are found wherever they may stand, and nothing else is taken for one. */
static void variables_of_text(void **state)
{
	static const char *const with[] = {
		".version 8.0\n.visible .global .align 4 .u32 x;",
		".version 8.0\n.global .u32 x;",
		".version 8.0 // ( \n/* ( */.const .f32 x = 0f00000000;",
		".version 8.0\n.entry k() {\n.global .u32 inside;\n}",
		".version 8.0\n.weak\t.tex .u32 t;",
	};
	static const char *const without[] = {
		".version 8.0\n.entry k(.param .u64 .ptr .global .align 4 p)\n{\nld.global.u32 "
		"%r1, [%rd1];\nret;\n}",
		".version 8.0\n// .global .u32 x;\n/* .const .u32 y; */\n",
		".version 8.0\n.file 1 \"a .global b\"\n.shared .b8 s[4];",
		".version 8.0\n.globally .u32 x;",
	};

	for (size_t i = 0; i < sizeof with / sizeof *with; i++)
		assert_int_equal(peek(with[i]).variables, TALLY_YES);
	for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
		assert_int_equal(peek(without[i]).variables, TALLY_NO);
		assert_true(peek(without[i]).liftable);
	}
}

/* A fatbin of machine code alone has nothing to lift; of a compressed text nobody knows. */
static void entries_of_fatbins(void **state)
{
	static struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t size;
		struct {
			uint16_t kind, version;
			uint32_t header, payload, unused[4], arch, unused_also[2];
			uint64_t flags, unused_too[2];
			char text[64];
		} entry[2];
	} fatbin = {0xBA55ED50u, 1, 16, sizeof fatbin.entry, {{0}}};
	struct tally_image_facts facts;

	for (unsigned i = 0; i < 2; i++) {
		fatbin.entry[i].kind = 2;
		fatbin.entry[i].header = fatbin.entry[i].payload = 64;
	}
	facts = tally_image_peek(&fatbin, sizeof fatbin);

	assert_false(facts.liftable);
	fatbin.entry[1].kind = 1;
	fatbin.entry[1].flags = 0x8000;
	facts = tally_image_peek(&fatbin, sizeof fatbin);
	assert_true(facts.liftable);
	assert_int_equal(facts.variables, TALLY_MAYBE);
	assert_int_equal(facts.arch, 0);
	fatbin.entry[0].kind = 1;
	fatbin.entry[0].arch = 120;
	fatbin.entry[1].arch = 90;
	assert_int_equal(tally_image_peek(&fatbin, sizeof fatbin).arch, 90);
	fatbin.entry[0].kind = 2;
	fatbin.entry[0].arch = 75; /* machine code says nothing about what can be lifted */
	assert_int_equal(tally_image_peek(&fatbin, sizeof fatbin).arch, 90);
	fatbin.entry[1].flags = 0;
	strcpy(fatbin.entry[1].text, ".version 8.0\n.shared .u32 s;");
	assert_int_equal(tally_image_peek(&fatbin, sizeof fatbin).variables, TALLY_NO);
	strcpy(fatbin.entry[1].text, ".version 8.0\n.global .u32 s;");
	assert_int_equal(tally_image_peek(&fatbin, sizeof fatbin).variables, TALLY_YES);
	/* Damaged: what stands behind is not looked at. */
	fatbin.entry[0].payload = UINT32_MAX;
	assert_false(tally_image_peek(&fatbin, sizeof fatbin).liftable);
	assert_false(tally_image_peek(&fatbin, 70).liftable);
}

static void cubins(void **state)
{
	Elf64_Ehdr elf = {.e_ident = ELFMAG, .e_machine = 190};

	assert_false(tally_image_peek(&elf, sizeof elf).liftable);
	elf.e_machine = EM_X86_64; /* an executable may carry anything */
	assert_true(tally_image_peek(&elf, sizeof elf).liftable);
	assert_int_equal(tally_image_peek(&elf, sizeof elf).variables, TALLY_MAYBE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptx_text),
		cmocka_unit_test(fatbin_and_wrapper),
		cmocka_unit_test(bitcode_has_a_size_only_in_its_wrapper),
		cmocka_unit_test(elf_file),
		cmocka_unit_test(variables_of_text),
		cmocka_unit_test(entries_of_fatbins),
		cmocka_unit_test(cubins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
