/* SPDX-License-Identifier: Apache-2.0 */
/* Every reason for which a kernel or an image is left alone: one thing changed in an image that
 * takes a guard. The images are kernels.ptx, as ptxas made it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cuda/sass/image.h"
#include "backends/cuda/sass/info.h"
#include "backends/cuda/sass/patch.h"
#include "backends/cuda/sass/words.h"
#include "base/file.h"

#define KERNEL "plain"

struct cubin {
	struct tally_buffer file;
	const char *target;
};

static struct cubin load(const char *target)
{
	struct cubin cubin = {.target = target};
	struct tally_error error = {0};
	char path[512];

	snprintf(path, sizeof path, TALLY_BUILD_DIR "/tests/sass/kernels.%s.cubin", target);
	assert_true(tally_file_read(path, &cubin.file, &error));
	return cubin;
}

static uint8_t *bytes(struct cubin *cubin)
{
	return (uint8_t *)cubin->file.data;
}

static Elf64_Ehdr *head(struct cubin *cubin)
{
	return (Elf64_Ehdr *)(void *)cubin->file.data;
}

static Elf64_Shdr *section(struct cubin *cubin, const char *name)
{
	Elf64_Shdr *all = (Elf64_Shdr *)(void *)(bytes(cubin) + head(cubin)->e_shoff);
	const char *names = cubin->file.data + all[head(cubin)->e_shstrndx].sh_offset;

	for (unsigned k = 0; k < head(cubin)->e_shnum; k++)
		if (!strcmp(names + all[k].sh_name, name))
			return &all[k];
	fail_msg("no section %s", name);
	return NULL;
}

static unsigned section_number(struct cubin *cubin, const char *name)
{
	Elf64_Shdr *all = (Elf64_Shdr *)(void *)(bytes(cubin) + head(cubin)->e_shoff);

	return (unsigned)(section(cubin, name) - all);
}

static uint8_t *content(struct cubin *cubin, const char *name)
{
	return bytes(cubin) + section(cubin, name)->sh_offset;
}

static Elf64_Sym *symbol(struct cubin *cubin, const char *name)
{
	Elf64_Shdr *table = section(cubin, ".symtab");
	Elf64_Sym *all = (Elf64_Sym *)(void *)(bytes(cubin) + table->sh_offset);
	const char *names = (char *)content(cubin, ".strtab");

	for (size_t k = 0; k < table->sh_size / sizeof *all; k++)
		if (!strcmp(names + all[k].st_name, name))
			return &all[k];
	fail_msg("no symbol %s", name);
	return NULL;
}

/* An attribute of the kernel; its format is the byte before its name's. */
static uint8_t *attribute(struct cubin *cubin, unsigned name)
{
	uint8_t *info = content(cubin, ".nv.info." KERNEL);
	size_t size = section(cubin, ".nv.info." KERNEL)->sh_size, at = 0;
	struct sass_attribute found;

	while (sass_info_next(info, size, &at, &found))
		if (found.name == name)
			return info + found.at;
	fail_msg("no attribute %#x", name);
	return NULL;
}

static struct sass_word *code(struct cubin *cubin)
{
	return (struct sass_word *)(void *)content(cubin, ".text." KERNEL);
}

/* Relocations and branches are written in the newer way. */
static bool is_new(struct cubin *cubin)
{
	return (head(cubin)->e_flags >> 8 & 0xff) >= 90;
}

/* What is changed, and what is said of KERNEL then; or of the image. */
static void rename_to_launch(struct cubin *c)
{
	memcpy((char *)content(c, ".strtab") + symbol(c, "addressed_by_device")->st_name,
	       "cudaLaunchDevice_x", 19);
}

static void name_in_table(struct cubin *c)
{
	Elf64_Shdr *table = section(c, ".symtab");
	Elf64_Sym *all = (Elf64_Sym *)(void *)(bytes(c) + table->sh_offset);
	bool rela = is_new(c);
	Elf64_Rel *relocation = (Elf64_Rel *)(void *)content(c, rela ? ".rela.nv.global.init"
								     : ".rel.nv.global.init");

	relocation->r_info = (relocation->r_info & 0xffffffff) | (uint64_t)(symbol(c, KERNEL) - all)
									 << 32;
}

static void lose_info(struct cubin *c)
{
	section(c, ".nv.info." KERNEL)->sh_name++;
}

static void lose_constants(struct cubin *c)
{
	section(c, ".nv.constant0." KERNEL)->sh_info = 0;
}

static void swap_info_type(struct cubin *c)
{
	section(c, ".nv.info." KERNEL)->sh_type = SHT_PROGBITS;
}

static void enter_later(struct cubin *c)
{
	symbol(c, KERNEL)->st_value = 16;
}

static void shorten(struct cubin *c)
{
	symbol(c, KERNEL)->st_size -= 16;
}

static void other_first(struct cubin *c)
{
	code(c)[0] = code(c)[1];
}

static void other_stack(struct cubin *c)
{
	code(c)[0].lo ^= (uint64_t)4 << SASS_CONSTANT;
}

static void keep_operand(struct cubin *c)
{
	code(c)[0].hi |= (uint64_t)1 << 58;
}

static void relocate_first(struct cubin *c)
{
	bool rela = is_new(c);
	const char *name = rela ? ".rela.debug_frame" : ".rel.debug_frame";
	Elf64_Shdr *frame = section(c, name);
	Elf64_Rel *relocation = (Elf64_Rel *)(void *)content(c, name);
	Elf64_Shdr *table = section(c, ".symtab");
	Elf64_Sym *all = (Elf64_Sym *)(void *)(bytes(c) + table->sh_offset);

	/* Both point to the kernel itself, so that its address is nobody else's. */
	for (size_t at = 0; at < frame->sh_size; at += rela ? 24 : 16) {
		relocation = (Elf64_Rel *)(void *)(content(c, name) + at);
		relocation->r_offset = 8;
		relocation->r_info = (uint64_t)(symbol(c, KERNEL) - all) << 32;
	}
	frame->sh_info = section_number(c, ".text." KERNEL);
}

static void branch_to_first(struct cubin *c)
{
	code(c)[3] = sass_branch(is_new(c), 48, 0);
}

static void damage_attributes(struct cubin *c)
{
	attribute(c, SASS_EXIT_INSTR_OFFSETS)[0] = 9;
}

static void cut_attributes(struct cubin *c)
{
	sass_put16(attribute(c, SASS_EXIT_INSTR_OFFSETS) + 2, 0xfff0);
}

static void short_bank(struct cubin *c)
{
	attribute(c, SASS_PARAM_CBANK)[0] = SASS_HALF;
}

static void cluster_grid(struct cubin *c)
{
	attribute(c, SASS_MAXREG_COUNT)[1] = SASS_BLOCKS_ARE_CLUSTERS;
}

static void many_parameters(struct cubin *c)
{
	sass_put16(attribute(c, SASS_CBANK_PARAM_SIZE) + 2, 4084);
}

static void fewer_parameters(struct cubin *c)
{
	sass_put16(attribute(c, SASS_CBANK_PARAM_SIZE) + 2, 8);
}

static void other_bank(struct cubin *c)
{
	uint8_t *bank = attribute(c, SASS_PARAM_CBANK) + 8;

	sass_put16(bank, (uint16_t)(sass_get16(bank) + 4));
}

static void guard_before(struct cubin *c)
{
	struct tally_sass_report report;
	struct tally_buffer out = {0};
	struct tally_error error = {0};

	assert_true(tally_sass_patch(c->file.data, c->file.size, c->target, KERNEL, &out, &report,
				     &error));
	tally_sass_report_free(&report);
	tally_buffer_free(&c->file);
	c->file = out;
}

static void few_registers(struct cubin *c)
{
	sass_put16(attribute(c, SASS_MAXREG_COUNT) + 2, 8);
}

static void uncounted_registers(struct cubin *c)
{
	uint8_t *info = content(c, ".nv.info");
	size_t size = section(c, ".nv.info")->sh_size, at = 0;
	struct sass_attribute found;

	while (sass_info_next(info, size, &at, &found))
		if (found.name == SASS_REGCOUNT)
			info[found.at + 1] = SASS_FRAME_SIZE;
}

static void not_elf(struct cubin *c)
{
	bytes(c)[0] = 'E';
}

static void other_machine(struct cubin *c)
{
	head(c)->e_machine = EM_X86_64;
}

static void relocatable(struct cubin *c)
{
	head(c)->e_type = ET_REL;
}

static void no_sections(struct cubin *c)
{
	head(c)->e_shnum = 0;
}

static void sections_outside(struct cubin *c)
{
	head(c)->e_shoff = c->file.size - 32;
}

static void programs_outside(struct cubin *c)
{
	head(c)->e_phoff = UINT64_MAX - 8;
}

static void program_outside(struct cubin *c)
{
	((Elf64_Phdr *)(void *)(bytes(c) + head(c)->e_phoff))[1].p_filesz = UINT64_MAX;
}

static void section_outside(struct cubin *c)
{
	section(c, ".debug_frame")->sh_size = UINT64_MAX - 16;
}

static void odd_alignment(struct cubin *c)
{
	section(c, ".debug_frame")->sh_addralign = 24;
}

static void name_outside(struct cubin *c)
{
	section(c, ".debug_frame")->sh_name = 1u << 20;
}

static void no_names(struct cubin *c)
{
	head(c)->e_shstrndx = (uint16_t)section_number(c, ".text." KERNEL);
}

static void two_symbol_tables(struct cubin *c)
{
	section(c, ".debug_frame")->sh_type = SHT_SYMTAB;
}

static void no_symbols(struct cubin *c)
{
	section(c, ".symtab")->sh_type = SHT_PROGBITS;
}

static void odd_symbols(struct cubin *c)
{
	section(c, ".symtab")->sh_size -= 8;
}

static void symbol_outside(struct cubin *c)
{
	symbol(c, KERNEL)->st_name = 1u << 20;
}

static void no_kernels(struct cubin *c)
{
	symbol(c, KERNEL)->st_other = 0;
	symbol(c, "addressed_by_device")->st_other = 0;
}

static void overlap(struct cubin *c)
{
	section(c, ".nv.callgraph")->sh_offset = section(c, ".debug_frame")->sh_offset + 4;
}

static void alias_of_changed(struct cubin *c)
{
	Elf64_Shdr *info = section(c, ".nv.info." KERNEL), *frame = section(c, ".debug_frame");

	frame->sh_offset = info->sh_offset;
	frame->sh_size = info->sh_size;
	frame->sh_addralign = 4;
}

static void other_chip(struct cubin *c)
{
	c->target = "sm_120";
}

static void older_chip(struct cubin *c)
{
	c->target = "sm_70";
}

static void no_chip(struct cubin *c)
{
	c->target = "x86-64";
}

static void unknown_chip(struct cubin *c)
{
	/* sm_87, in both places. */
	head(c)->e_flags = (head(c)->e_flags & ~0xff00u) | 87u << 8;
	c->target = "sm_87";
}

static const struct {
	void (*change)(struct cubin *cubin);
	enum tally_sass_reason reason; /* of KERNEL; or: */
	const char *error;
} changes[] = {
	{rename_to_launch, TALLY_SASS_LAUNCHES, NULL},
	{name_in_table, TALLY_SASS_ADDRESS, NULL},
	{lose_info, TALLY_SASS_PIECES, NULL},
	{lose_constants, TALLY_SASS_PIECES, NULL},
	{swap_info_type, TALLY_SASS_PIECES, NULL},
	{enter_later, TALLY_SASS_ENTRY, NULL},
	{shorten, TALLY_SASS_SIZE, NULL},
	{guard_before, TALLY_SASS_GUARDED, NULL},
	{other_first, TALLY_SASS_FIRST, NULL},
	{other_stack, TALLY_SASS_FIRST, NULL},
	{keep_operand, TALLY_SASS_FIRST, NULL},
	{relocate_first, TALLY_SASS_RELOCATED, NULL},
	{branch_to_first, TALLY_SASS_LOOP, NULL},
	{damage_attributes, TALLY_SASS_ATTRIBUTES, NULL},
	{cut_attributes, TALLY_SASS_ATTRIBUTES, NULL},
	{short_bank, TALLY_SASS_ATTRIBUTES, NULL},
	{cluster_grid, TALLY_SASS_CLUSTER_GRID, NULL},
	{many_parameters, TALLY_SASS_LARGE, NULL},
	{fewer_parameters, TALLY_SASS_PARAMETERS, NULL},
	{other_bank, TALLY_SASS_PARAMETERS, NULL},
	{few_registers, TALLY_SASS_REGISTERS, NULL},
	{uncounted_registers, TALLY_SASS_REGISTERS, NULL},
	{not_elf, 0, "is no 64-bit ELF file"},
	{other_machine, 0, "holds no NVIDIA machine code"},
	{relocatable, 0, "is not linked yet"},
	{no_sections, 0, "damaged: 0 sections"},
	{sections_outside, 0, "damaged: its section headers"},
	{programs_outside, 0, "damaged: its program headers"},
	{program_outside, 0, "damaged: program header 1"},
	{section_outside, 0, "damaged: section "},
	{odd_alignment, 0, "is aligned to 24 bytes"},
	{name_outside, 0, "has its name at 1048576"},
	{no_names, 0, "damaged: its sections have no names"},
	{two_symbol_tables, 0, "damaged: two symbol tables"},
	{no_symbols, 0, "holds no kernel"},
	{odd_symbols, 0, "damaged: its symbol table"},
	{symbol_outside, 0, "has its name at 1048576"},
	{no_kernels, 0, "holds no kernel"},
	{overlap, 0, "damaged: two parts of it overlap"},
	{alias_of_changed, 0, "damaged: two parts of it overlap"},
	{other_chip, 0, "which sm_120 does not run"},
	{older_chip, 0, "which sm_70 does not run"},
	{no_chip, 0, "which x86-64 does not run"},
	{unknown_chip, 0, "no guard for machine code of sm_87 in this build"},
};

static const char *const targets[] = {"sm_80", "sm_90"};

static void each_reason(void **state)
{
	bool seen[TALLY_SASS_REASON_COUNT] = {[TALLY_SASS_PATCHED] = true,
					      [TALLY_SASS_OTHER] = true};

	for (size_t t = 0; t < 2; t++)
		for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
			struct cubin cubin = load(targets[t]);
			struct tally_sass_report report;
			struct tally_buffer out = {0};
			struct tally_error error = {0};

			changes[k].change(&cubin);
			bool ok = tally_sass_patch(cubin.file.data, cubin.file.size, cubin.target,
						   KERNEL, &out, &report, &error);
			if (changes[k].error) {
				if (ok || !strstr(error.message, changes[k].error))
					fail_msg("change %zu of %s: '%s', not '%s'", k, targets[t],
						 error.message, changes[k].error);
			} else {
				enum tally_sass_reason reason = TALLY_SASS_REASON_COUNT;

				for (size_t n = 0; n < report.count; n++)
					if (!strcmp(report.kernel[n].name, KERNEL))
						reason = report.kernel[n].reason;
				if (reason != changes[k].reason)
					fail_msg("change %zu of %s: reason %d, not %d", k,
						 targets[t], reason, changes[k].reason);
				seen[reason] = true;
				assert_false(ok);
				assert_non_null(
					strstr(error.message, tally_sass_reason_text(reason)));
			}
			assert_int_equal(out.size, 0);
			tally_sass_report_free(&report);
			tally_buffer_free(&cubin.file);
		}
	for (int r = 0; r < TALLY_SASS_REASON_COUNT; r++)
		if (!seen[r])
			fail_msg("nothing here makes '%s'",
				 tally_sass_reason_text((enum tally_sass_reason)r));
}

static void patched(void **state)
{
	for (size_t t = 0; t < 2; t++) {
		struct cubin cubin = load(targets[t]);
		struct tally_sass_report report, again;
		struct tally_buffer out = {0}, second = {0};
		struct tally_error error = {0};
		struct sass_image image;

		/* Behind what is there already. */
		tally_buffer_append(&out, "before", 6);
		assert_true(tally_sass_patch(cubin.file.data, cubin.file.size, targets[t], NULL,
					     &out, &report, &error));
		assert_memory_equal(out.data, "before", 6);
		assert_int_equal(report.count, 2);
		assert_int_equal(report.patched, 1);
		assert_true(sass_image_read(&image, out.data + 6, out.size - 6, &error));
		sass_image_free(&image);
		/* Once is enough. */
		assert_false(tally_sass_patch(out.data + 6, out.size - 6, targets[t], KERNEL,
					      &second, &again, &error));
		assert_non_null(strstr(error.message, tally_sass_reason_text(TALLY_SASS_GUARDED)));
		tally_sass_report_free(&again);
		tally_sass_report_free(&report);
		tally_buffer_free(&out);
		tally_buffer_free(&cubin.file);
	}
}

static void only_one(void **state)
{
	struct cubin cubin = load("sm_90");
	struct tally_sass_report report;
	struct tally_buffer out = {0};
	struct tally_error error = {0};

	assert_true(tally_sass_patch(cubin.file.data, cubin.file.size, "sm_90", KERNEL, &out,
				     &report, &error));
	assert_int_equal(report.patched, 1);
	for (size_t k = 0; k < report.count; k++)
		assert_int_equal(report.kernel[k].reason, strcmp(report.kernel[k].name, KERNEL)
								  ? TALLY_SASS_OTHER
								  : TALLY_SASS_PATCHED);
	tally_sass_report_free(&report);
	tally_buffer_free(&out);
	assert_false(tally_sass_patch(cubin.file.data, cubin.file.size, "sm_90", "nobody", &out,
				      &report, &error));
	assert_string_equal(error.message, "there is no kernel 'nobody' in it");
	tally_sass_report_free(&report);
	tally_buffer_free(&cubin.file);
}

/* Which image the driver would take. */
static void fit(void **state)
{
	struct cubin old = load("sm_80"), new = load("sm_90"), specific = load("sm_90a");
	unsigned plain = tally_sass_fit(new.file.data, new.file.size, "sm_90", NULL);

	assert_int_not_equal(plain, 0);
	assert_true(tally_sass_fit(specific.file.data, specific.file.size, "sm_90", NULL) > plain);
	assert_int_equal(tally_sass_fit(old.file.data, old.file.size, "sm_90", NULL), 0);
	assert_int_equal(tally_sass_fit(new.file.data, new.file.size, "sm_80", NULL), 0);
	assert_int_not_equal(tally_sass_fit(old.file.data, old.file.size, "sm_86", KERNEL), 0);
	assert_int_equal(tally_sass_fit(old.file.data, old.file.size, "sm_86", "nobody"), 0);
	assert_int_equal(tally_sass_fit("", 0, "sm_90", NULL), 0);
	tally_buffer_free(&old.file);
	tally_buffer_free(&new.file);
	tally_buffer_free(&specific.file);
}

/* A second form of the code, from which the driver makes that for a related chip. */
static void related_chip(void **state)
{
	struct cubin cubin = load("sm_100");
	struct tally_sass_report report;
	struct tally_buffer out = {0};
	struct tally_error error = {0};

	assert_true(tally_sass_patch(cubin.file.data, cubin.file.size, "sm_100", NULL, &out,
				     &report, &error));
	tally_sass_report_free(&report);
	tally_buffer_free(&out);
	assert_false(tally_sass_patch(cubin.file.data, cubin.file.size, "sm_103", NULL, &out,
				      &report, &error));
	assert_non_null(strstr(error.message, "makes anew for sm_103"));
	tally_sass_report_free(&report);
	tally_buffer_free(&cubin.file);
}

/* Branches are written as they are read, forwards and back. */
static void branches(void **state)
{
	static const uint64_t places[][2] = {{0, 16},  {0, 4096},    {4096, 16},
					     {64, 64}, {0, 1 << 24}, {1 << 24, 0}};

	for (int split = 0; split < 2; split++)
		for (size_t k = 0; k < sizeof places / sizeof *places; k++)
			assert_int_equal(
				sass_branch_target(split,
						   sass_branch(split, places[k][0], places[k][1]),
						   places[k][0]),
				places[k][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patched),	cmocka_unit_test(each_reason),
		cmocka_unit_test(only_one),	cmocka_unit_test(fit),
		cmocka_unit_test(related_chip), cmocka_unit_test(branches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
