/* SPDX-License-Identifier: Apache-2.0 */
/* What can be told about machine code: the part for a device, and the variables that it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"

/* --- fatbins --- */

struct entry {
	uint16_t kind, version;
	uint32_t header, payload, unused[4], arch, unused_too[2];
	uint64_t flags, more[2];
	char code[16];
};

static struct {
	uint32_t magic;
	uint16_t version, header;
	uint64_t size;
	struct entry entries[5];
} fatbin = {0xBA55ED50u, 1, 16, sizeof fatbin.entries, {{0}}};

static void fill(unsigned i, unsigned kind, unsigned arch)
{
	fatbin.entries[i] = (struct entry){.kind = (uint16_t)kind,
					   .header = offsetof(struct entry, code),
					   .payload = 16,
					   .arch = arch};
	memset(fatbin.entries[i].code, 'a' + (int)i, 16);
}

static void the_part_for_a_device(void **state)
{
	void *part;
	size_t size;

	fill(0, 2, 75);
	fill(1, 2, 80);
	fill(2, 1, 80); /* text */
	fill(3, 2, 86);
	fill(4, 2, 90);
	assert_true(tally_image_machine_code(&fatbin, sizeof fatbin, 90, &part, &size));
	assert_int_equal(size, 16 + sizeof(struct entry));
	assert_memory_equal((char *)part + 16, &fatbin.entries[4], sizeof(struct entry));
	assert_memory_equal(part, &fatbin, 8);
	assert_int_equal(*(uint64_t *)((char *)part + 8), sizeof(struct entry));
	free(part);
	/* Older code of the same major number runs too: which of them, the driver's rule says. */
	assert_true(tally_image_machine_code(&fatbin, sizeof fatbin, 89, &part, &size));
	assert_int_equal(size, 16 + 2 * sizeof(struct entry));
	assert_memory_equal((char *)part + 16, &fatbin.entries[1], sizeof(struct entry));
	assert_memory_equal((char *)part + 16 + sizeof(struct entry), &fatbin.entries[3],
			    sizeof(struct entry));
	free(part);
	assert_false(tally_image_machine_code(&fatbin, sizeof fatbin, 100, &part, &size));
	assert_false(tally_image_machine_code(&fatbin, sizeof fatbin, 0, &part, &size));
	/* Cut off, or with lengths that lead nowhere: what is whole counts. */
	assert_false(tally_image_machine_code(&fatbin, sizeof fatbin - 1, 90, &part, &size));
	assert_false(tally_image_machine_code(&fatbin, 20, 90, &part, &size));
	fatbin.entries[0].payload = UINT32_MAX;
	assert_false(tally_image_machine_code(&fatbin, sizeof fatbin, 90, &part, &size));
	assert_false(tally_image_machine_code("text", 4, 90, &part, &size));
}

/* --- cubins --- */

enum { NOTHING, GLOBAL, ZERO, CONSTANT, SHARED, SYMBOLS, STRINGS, NAMES, SECTIONS };

static const char names[] = "\0.nv.global.init\0.nv.global\0.nv.constant3\0.nv.shared.k\0";

/* An image of one symbol. */
static struct {
	Elf64_Ehdr header;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym symbols[1];
	char strings[80], names[sizeof names];
} cubin;

static void place(unsigned i, unsigned type, const void *data, size_t size, unsigned link)
{
	cubin.sections[i] =
		(Elf64_Shdr){.sh_type = type,
			     .sh_offset = (uint64_t)((const char *)data - (const char *)&cubin),
			     .sh_size = size,
			     .sh_link = link};
}

static void make(const char *name, unsigned type, unsigned section, unsigned size)
{
	static const char *const of[] = {
		[GLOBAL] = ".nv.global.init",
		[ZERO] = ".nv.global",
		[CONSTANT] = ".nv.constant3",
		[SHARED] = ".nv.shared.k",
	};

	memset(&cubin, 0, sizeof cubin);
	memcpy(cubin.header.e_ident, ELFMAG, SELFMAG);
	cubin.header.e_ident[EI_CLASS] = ELFCLASS64;
	cubin.header.e_machine = 190;
	cubin.header.e_shoff = offsetof(__typeof__(cubin), sections);
	cubin.header.e_shnum = SECTIONS;
	cubin.header.e_shstrndx = NAMES;
	memcpy(cubin.names, names, sizeof names);
	strcpy(cubin.strings + 1, name);
	place(SYMBOLS, SHT_SYMTAB, cubin.symbols, sizeof cubin.symbols, STRINGS);
	place(STRINGS, SHT_STRTAB, cubin.strings, sizeof cubin.strings, 0);
	place(NAMES, SHT_STRTAB, cubin.names, sizeof cubin.names, 0);
	for (unsigned i = GLOBAL; i <= SHARED; i++) {
		place(i, i == ZERO ? SHT_NOBITS : SHT_PROGBITS, cubin.strings, 8, 0);
		cubin.sections[i].sh_name =
			(uint32_t)((char *)memmem(names, sizeof names, of[i], strlen(of[i]) + 1) -
				   names);
	}
	cubin.symbols[0] = (Elf64_Sym){.st_name = 1,
				       .st_info = (unsigned char)type,
				       .st_shndx = (uint16_t)section,
				       .st_size = size};
}

static void expect(enum tally_fact variables, enum tally_fact constants)
{
	struct tally_cubin_facts facts = tally_cubin_look(&cubin, sizeof cubin);

	assert_int_equal(facts.variables, variables);
	assert_int_equal(facts.constants, constants);
	assert_int_equal(facts.variable[0] != 0, variables == TALLY_YES);
}

static void variables_are_found(void **state)
{
	make("counter", STT_OBJECT, GLOBAL, 4);
	expect(TALLY_YES, TALLY_NO);
	assert_string_equal(tally_cubin_look(&cubin, sizeof cubin).variable, "counter");
	make("counter", STT_OBJECT, ZERO, 4);
	expect(TALLY_YES, TALLY_NO);
	make("flag", STT_OBJECT, ZERO, 1); /* small, but anything may be in it */
	expect(TALLY_YES, TALLY_NO);
	make("picture", 10, NOTHING, 8); /* a texture */
	expect(TALLY_YES, TALLY_NO);
	make("elsewhere", STT_OBJECT, SHN_UNDEF, 8);
	expect(TALLY_YES, TALLY_NO);
	make("k", STT_FUNC, SHARED, 128);
	expect(TALLY_NO, TALLY_NO);
	make("tile", STT_OBJECT, SHARED, 128);
	expect(TALLY_NO, TALLY_NO);
	make("scale", STT_OBJECT, CONSTANT, 4);
	expect(TALLY_NO, TALLY_YES);
}

static void what_nobody_writes(void **state)
{
	make("$str$1", STT_OBJECT, GLOBAL, 30);
	expect(TALLY_NO, TALLY_NO);
	make("mrg32k3aM1SubSeq", STT_OBJECT, GLOBAL, 2016);
	expect(TALLY_NO, TALLY_NO);
	make("_ZN41_INTERNAL_79bc5628_4_x_cu_ecc675fb4cuda3std3__45__cpo5beginE", STT_OBJECT, ZERO,
	     1);
	expect(TALLY_NO, TALLY_NO);
	/* The same name with something in it. */
	make("_ZN4cuda3std3__45tableE", STT_OBJECT, ZERO, 8);
	expect(TALLY_YES, TALLY_NO);
	make("_ZN4cuda3std3__44onesE", STT_OBJECT, GLOBAL, 1);
	expect(TALLY_YES, TALLY_NO);
}

/* Whatever is wrong with it: "may have", never a crash. */
static void damaged(void **state)
{
	make("counter", STT_OBJECT, GLOBAL, 4);
	for (size_t size = 0; size < sizeof cubin; size++)
		assert_true(tally_cubin_look(&cubin, size).variables != TALLY_NO);
	for (size_t at = 0; at < sizeof cubin; at++) {
		unsigned char *byte = (unsigned char *)&cubin + at, before = *byte;

		for (unsigned bit = 0; bit < 8; bit++) {
			*byte = before ^ (unsigned char)(1 << bit);
			tally_cubin_look(&cubin, sizeof cubin);
		}
		*byte = before;
	}
	cubin.header.e_machine = EM_X86_64;
	expect(TALLY_MAYBE, TALLY_MAYBE);
	cubin.header.e_machine = 190;
	cubin.sections[SYMBOLS].sh_type = SHT_PROGBITS; /* no symbols at all */
	expect(TALLY_MAYBE, TALLY_MAYBE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_part_for_a_device),
		cmocka_unit_test(variables_are_found),
		cmocka_unit_test(what_nobody_writes),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
